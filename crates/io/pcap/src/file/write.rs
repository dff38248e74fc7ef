//! Writing: pcap and pcapng, little-endian, times in microseconds (pcap) or nanoseconds.
//!
//! Contract: a file ends with a complete record. When the system refuses a write (a full disk), the file is truncated to the
//! end of its last complete record, [`Writer::packets_written`] counts the packets in it, and every later write fails.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{FileFormat, LinkType, MAX_PACKET, PacketRef, PcapError};

/// The options of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterOptions {
    /// Format and resolution of times.
    pub format: FileFormat,
    /// Link type of the file, or of interface 0 in pcapng.
    pub linktype: LinkType,
    /// Packets are truncated to this length; at most [`MAX_PACKET`].
    pub snaplen: u32,
}

impl WriterOptions {
    /// Ethernet, complete packets.
    pub fn new(format: FileFormat) -> WriterOptions {
        WriterOptions {
            format,
            linktype: LinkType::ETHERNET,
            snaplen: MAX_PACKET as u32,
        }
    }
}

/// A destination of captures.
pub trait Output: Write {
    /// Remove everything behind the first `len` bytes.
    fn cut(&mut self, len: u64) -> io::Result<()>;
}

impl Output for File {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

impl Output for Vec<u8> {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(())
    }
}

/// The number of bytes that are buffered before they are written.
const GATHER: usize = 256 << 10;

/// A capture file that is written. Call [`Writer::finish`]: dropping a writer loses the buffered records.
pub struct Writer<W: Output = File> {
    pub(super) out: W,
    path: PathBuf,
    options: WriterOptions,
    /// pcapng interfaces described so far.
    interfaces: u32,
    block: Vec<u8>,
    /// Complete records that are not in the file yet.
    held: Vec<u8>,
    /// The end of each buffered record, and the number of packets up to it, including those in the file.
    ends: Vec<(usize, u64)>,
    /// Bytes and packets in the file.
    len: u64,
    filed: u64,
    /// Packets written, including buffered ones.
    packets: u64,
    /// The error after which nothing more can be written.
    broken: Option<(ErrorKind, String)>,
}

impl Writer {
    /// Creates the file, which only its owner can read, and writes its header. An existing file is replaced; a path that is not
    /// a regular file is refused.
    pub fn create(path: impl AsRef<Path>, options: WriterOptions) -> Result<Writer, PcapError> {
        let path = path.as_ref();
        let file = volley_file::create(path).map_err(|source| PcapError::Write {
            path: path.to_owned(),
            source: named(&source),
        })?;
        Writer::new(file, path, options)
    }
}

impl Writer<Vec<u8>> {
    /// Takes the complete records that were written so far.
    pub fn take_written(&mut self) -> Vec<u8> {
        // Writing into memory does not fail; bytes that were not written are still buffered.
        let _ = self.flush();
        self.len = 0;
        std::mem::take(&mut self.out)
    }

    /// The number of bytes that can be taken.
    pub fn pending(&self) -> usize {
        self.out.len() + self.held.len()
    }
}

impl<W: Output> Writer<W> {
    /// Writes to any destination; errors call it `name`.
    pub fn new(
        out: W,
        name: impl AsRef<Path>,
        options: WriterOptions,
    ) -> Result<Writer<W>, PcapError> {
        let options = WriterOptions {
            snaplen: options.snaplen.min(MAX_PACKET as u32),
            ..options
        };
        let path = name.as_ref().to_owned();
        let mut writer = Writer {
            out,
            path,
            options,
            interfaces: 0,
            block: Vec::new(),
            held: Vec::new(),
            ends: Vec::new(),
            len: 0,
            filed: 0,
            packets: 0,
            broken: None,
        };
        writer.start()?;
        writer.flush()?;
        Ok(writer)
    }

    fn start(&mut self) -> Result<(), PcapError> {
        self.block.clear();
        let magic: u32 = match self.options.format {
            FileFormat::PcapUs => 0xa1b2_c3d4,
            FileFormat::PcapNs => 0xa1b2_3c4d,
            FileFormat::PcapNg => {
                self.put(&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0]);
                self.put(&u64::MAX.to_le_bytes()); // section length: unknown
                self.option(4, b"Volley");
                self.option(0, b"");
                return self.flush_block(0x0a0d_0d0a);
            }
        };
        self.words(&[
            magic,
            0x0004_0002,
            0,
            0,
            self.options.snaplen,
            self.options.linktype.0.into(),
        ]);
        self.flush_raw()
    }

    /// Describes one more interface of a pcapng file and returns its number, from 0. Without this call the first packet
    /// describes one named `volley`. In pcap, which has no interfaces, the call has no effect and returns 0.
    pub fn add_interface(&mut self, name: &str, linktype: LinkType) -> Result<u32, PcapError> {
        self.usable()?;
        if self.options.format != FileFormat::PcapNg {
            return Ok(0);
        }
        self.block.clear();
        self.words(&[linktype.0.into(), self.options.snaplen]);
        self.option(2, name.as_bytes());
        self.option(9, &[9]); // nanoseconds
        self.option(0, b"");
        self.flush_block(1)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes one packet. pcapng keeps comment and interface (an unknown interface becomes the last one); pcap keeps neither.
    pub fn write(&mut self, packet: PacketRef<'_>) -> Result<(), PcapError> {
        self.usable()?;
        let data = packet
            .data
            .get(..self.options.snaplen as usize)
            .unwrap_or(packet.data);
        let orig_len = packet
            .orig_len
            .max(u32::try_from(packet.data.len()).unwrap_or(u32::MAX));
        let lens = [data.len() as u32, orig_len];
        if self.options.format == FileFormat::PcapNg && self.interfaces == 0 {
            self.add_interface("volley", self.options.linktype)?;
        }
        self.packets += 1;
        match self.options.format {
            FileFormat::PcapUs => self.record(packet.timestamp_ns, 1000, lens, data),
            FileFormat::PcapNs => self.record(packet.timestamp_ns, 1, lens, data),
            FileFormat::PcapNg => self.enhanced(&packet, lens, data),
        }
    }

    /// Packets written so far; after an error, the packets in the file.
    pub fn packets_written(&self) -> u64 {
        self.packets
    }

    /// Writes the buffered records.
    pub fn flush(&mut self) -> Result<(), PcapError> {
        self.usable()?;
        let mut done = 0;
        while done < self.held.len() {
            let written = match self.out.write(&self.held[done..]) {
                Ok(0) => Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                written => written,
            };
            match written {
                Ok(bytes) => done += bytes,
                Err(error) => return Err(self.give_up(done, &error)),
            }
        }
        self.len += done as u64;
        self.filed = self.packets;
        self.held.clear();
        self.ends.clear();
        match self.out.flush() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.give_up(0, &error)),
        }
    }

    fn usable(&self) -> Result<(), PcapError> {
        match &self.broken {
            Some((kind, why)) => Err(self.error(io::Error::new(*kind, why.clone()))),
            None => Ok(()),
        }
    }

    /// Handles a failed write, of which the first `done` buffered bytes are in the file: keeps the complete records among them.
    fn give_up(&mut self, done: usize, error: &io::Error) -> PcapError {
        let whole = self.ends.iter().rev().find(|(end, _)| *end <= done);
        let (end, packets) = whole.copied().unwrap_or((0, self.filed));
        self.packets = packets;
        self.len += end as u64;
        // A device or a pipe cannot be truncated, and is not read again.
        let _ = self.out.cut(self.len);
        self.held = Vec::new();
        self.ends = Vec::new();
        let error = named(error);
        self.broken = Some((error.kind(), error.to_string()));
        self.error(error)
    }

    fn error(&self, source: io::Error) -> PcapError {
        PcapError::Write {
            path: self.path.clone(),
            source,
        }
    }

    /// Writes the buffered records and returns the destination.
    pub fn finish(mut self) -> Result<W, PcapError> {
        self.flush()?;
        Ok(self.out)
    }

    fn record(
        &mut self,
        timestamp_ns: u64,
        unit_ns: u64,
        lens: [u32; 2],
        data: &[u8],
    ) -> Result<(), PcapError> {
        // the format has 32 bits for seconds: it ends in 2106
        let seconds = u32::try_from(timestamp_ns / 1_000_000_000).unwrap_or(u32::MAX);
        let fraction = (timestamp_ns % 1_000_000_000 / unit_ns) as u32;
        self.block.clear();
        self.words(&[seconds, fraction, lens[0], lens[1]]);
        self.put(data);
        self.flush_raw()
    }

    fn enhanced(
        &mut self,
        packet: &PacketRef<'_>,
        lens: [u32; 2],
        data: &[u8],
    ) -> Result<(), PcapError> {
        let interface = packet.interface.min(self.interfaces - 1);
        let (high, low) = (
            (packet.timestamp_ns >> 32) as u32,
            packet.timestamp_ns as u32,
        );
        self.block.clear();
        self.words(&[interface, high, low, lens[0], lens[1]]);
        self.put(data);
        self.pad();
        if let Some(comment) = packet.comment {
            self.option(1, comment.as_bytes());
            self.option(0, b"");
        }
        self.flush_block(6)
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn words(&mut self, words: &[u32]) {
        words
            .iter()
            .for_each(|word| self.block.extend_from_slice(&word.to_le_bytes()));
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Adds an option; a value that does not fit in the 16 bits of its length is truncated.
    fn option(&mut self, code: u16, value: &[u8]) {
        let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.put(&code.to_le_bytes());
        self.put(&len.to_le_bytes());
        self.put(value.get(..len.into()).unwrap_or(value));
        self.pad();
    }

    /// Buffers the block between its type and its two lengths.
    fn flush_block(&mut self, kind: u32) -> Result<(), PcapError> {
        let len = (self.block.len() as u32 + 12).to_le_bytes();
        self.held.extend_from_slice(&kind.to_le_bytes());
        self.held.extend_from_slice(&len);
        self.held.extend_from_slice(&self.block);
        self.held.extend_from_slice(&len);
        self.end_record()
    }

    fn flush_raw(&mut self) -> Result<(), PcapError> {
        self.held.extend_from_slice(&self.block);
        self.end_record()
    }

    fn end_record(&mut self) -> Result<(), PcapError> {
        self.ends.push((self.held.len(), self.packets));
        match self.held.len() < GATHER {
            true => Ok(()),
            false => self.flush(),
        }
    }
}

/// The same error, with the system's name instead of its number for errors that operators know by name.
fn named(error: &io::Error) -> io::Error {
    let name = match error.kind() {
        ErrorKind::StorageFull => "no space left on device (ENOSPC)",
        ErrorKind::QuotaExceeded => "the disk quota is used up (EDQUOT)",
        ErrorKind::FileTooLarge => "the file is as long as it may be (EFBIG)",
        ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only (EROFS)",
        _ => return io::Error::new(error.kind(), error.to_string()),
    };
    io::Error::new(error.kind(), name)
}
