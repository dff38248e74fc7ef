//! What can be wrong with a capture file: one sentence each, with file and place.

use std::io;
use std::path::PathBuf;

use volley_input::InputError;

/// Why a capture file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    /// The file could not be opened, or is compressed and could not be started on.
    #[error(transparent)]
    Open(#[from] InputError),
    /// The system or a decompressor failed half-way.
    #[error("{}: packet {packet}, byte {offset}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The packet being read, from 1.
        packet: u64,
        /// Where in the content.
        offset: u64,
        /// What failed; names the file again if it comes from a decompressor.
        source: io::Error,
    },
    /// The first bytes are those of no capture file.
    #[error("{}: not a capture file: starts with {start} where pcap or pcapng has its magic number", path.display())]
    NotACapture {
        /// The file.
        path: PathBuf,
        /// The first bytes in hex.
        start: String,
    },
    /// The file ends in the middle of something.
    #[error("{}: packet {packet}, byte {offset}: file ends inside {what}: {have} of {need} bytes are there", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The packet being read, from 1.
        packet: u64,
        /// Where in the content it starts.
        offset: u64,
        /// What is cut.
        what: &'static str,
        /// Bytes it has by its own account.
        need: u64,
        /// Bytes there are.
        have: u64,
    },
    /// A length field claims more than any capture has.
    #[error("{}: packet {packet}, byte {offset}: {what} says {len}, the limit is {limit}", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The packet being read, from 1.
        packet: u64,
        /// Where in the content.
        offset: u64,
        /// Which length.
        what: &'static str,
        /// The value.
        len: u64,
        /// The most it may be.
        limit: u64,
    },
    /// A header or block that contradicts itself or the file before it.
    #[error("{}: packet {packet}, byte {offset}: {fault}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The packet being read, from 1.
        packet: u64,
        /// Where in the content.
        offset: u64,
        /// What is wrong.
        fault: Fault,
    },
    /// The whole does not fit in memory.
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
        /// What the system said.
        source: io::Error,
    },
}

/// Contradictions inside a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A version nobody writes.
    #[error("{0} file version {1}.{2} is not known")]
    Version(&'static str, u16, u16),
    /// A link type that fits in no registry.
    #[error("link type {0} is not known")]
    LinkType(u32),
    /// A block length that cannot be.
    #[error("block length {0} is not a multiple of 4 or less than {1}")]
    BlockLength(u32, u32),
    /// The two lengths of a block differ.
    #[error("block length is {0} at its start and {1} at its end")]
    BlockLengths(u32, u32),
    /// The byte-order mark is neither way round.
    #[error("byte-order mark of the section is 0x{0:08x}")]
    ByteOrder(u32),
    /// A block whose fields go beyond its length.
    #[error("the fields of the {0} block do not fit in its length")]
    Block(&'static str),
    /// A packet of an interface that was not described before.
    #[error("packet of interface {0}, but the section has described {1} so far")]
    Interface(u32, usize),
}
