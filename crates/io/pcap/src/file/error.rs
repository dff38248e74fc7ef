//! Errors of capture files: one sentence each, with file and position.

use std::io;
use std::path::PathBuf;

use volley_input::InputError;

/// Why a capture file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    /// The file could not be opened, or its decompressor could not be started.
    #[error(transparent)]
    Open(#[from] InputError),
    /// The system or a decompressor failed while reading.
    #[error("{}: packet {packet}, byte {offset}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The packet being read, from 1.
        packet: u64,
        /// Offset in the contents.
        offset: u64,
        /// The error; from a decompressor, it names the file again.
        source: io::Error,
    },
    /// The first bytes are not those of a capture file.
    #[error("{}: not a capture file: starts with {start} where pcap or pcapng has its magic number", path.display())]
    NotACapture {
        /// The file.
        path: PathBuf,
        /// The first bytes in hex.
        start: String,
    },
    /// The file ends within a header, record or block.
    #[error("{}: packet {packet}, byte {offset}: file ends inside {what}: {have} of {need} bytes are there", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The packet being read, from 1.
        packet: u64,
        /// Offset of its start in the contents.
        offset: u64,
        /// The truncated part.
        what: &'static str,
        /// Length of the truncated part according to the file.
        need: u64,
        /// The number of bytes available.
        have: u64,
    },
    /// A length field exceeds the maximum of captures.
    #[error("{}: packet {packet}, byte {offset}: {what} says {len}, the limit is {limit}", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The packet being read, from 1.
        packet: u64,
        /// Offset in the contents.
        offset: u64,
        /// The length field.
        what: &'static str,
        /// The value.
        len: u64,
        /// The maximum.
        limit: u64,
    },
    /// A header or block that contradicts itself or the file before it.
    #[error("{}: packet {packet}, byte {offset}: {fault}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The packet being read, from 1.
        packet: u64,
        /// Offset in the contents.
        offset: u64,
        /// The fault.
        fault: Fault,
    },
    /// The file does not fit in memory.
    #[error("{}: more than {limit} bytes of packets; read it as a stream or cut it (editcap -c)", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// Writing failed.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Contradictions inside a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An unknown version.
    #[error("{0} file version {1}.{2} is not known")]
    Version(&'static str, u16, u16),
    /// A link type that is not in the registry.
    #[error("link type {0} is not known")]
    LinkType(u32),
    /// An impossible block length.
    #[error("block length {0} is not a multiple of 4 or less than {1}")]
    BlockLength(u32, u32),
    /// The two lengths of a block differ.
    #[error("block length is {0} at its start and {1} at its end")]
    BlockLengths(u32, u32),
    /// The byte-order mark is valid in neither order.
    #[error("byte-order mark of the section is 0x{0:08x}")]
    ByteOrder(u32),
    /// A block whose fields exceed its length.
    #[error("the fields of the {0} block do not fit in its length")]
    Block(&'static str),
    /// A packet of an interface that the file has not described.
    #[error("packet of interface {0}, but the section has described {1} so far")]
    Interface(u32, usize),
}
