//! Reading: a stream of packets, or all of them.

use std::io::BufRead;
use std::path::Path;

use super::classic::{self, Classic};
use super::ng::{self, Ng};
use super::source::Source;
use super::{Capture, FileFormat, LinkType, MAX_CAPTURE, Packet, PacketRef, PcapError};

/// A capture file that is read. The iterator returns copies; [`Reader::next_ref`] returns views.
pub struct Reader {
    source: Source,
    format: Format,
    comment: String,
    over: bool,
}

enum Format {
    Classic(Classic),
    Ng(Ng),
}

impl Reader {
    /// Opens a file, compressed or not, and reads its header.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader, PcapError> {
        let path = path.as_ref();
        Self::start(Source::new(volley_input::open(path)?, path.to_owned()))
    }

    /// Reads from uncompressed bytes of another source; errors call the source `name`.
    pub fn new(
        input: impl BufRead + Send + 'static,
        name: impl AsRef<Path>,
    ) -> Result<Reader, PcapError> {
        Self::start(Source::new(Box::new(input), name.as_ref().to_owned()))
    }

    fn start(mut source: Source) -> Result<Reader, PcapError> {
        match source.append(4, "the file header") {
            Err(PcapError::Truncated { .. }) => return Err(source.not_a_capture()),
            other => other?,
        }
        let format = if classic::is_magic(&source.piece) {
            Format::Classic(Classic::start(&mut source)?)
        } else if ng::is_magic(&source.piece) {
            let mut ng = Ng::default();
            ng.start(&mut source)?;
            Format::Ng(ng)
        } else {
            return Err(source.not_a_capture());
        };
        Ok(Reader {
            source,
            format,
            comment: String::new(),
            over: false,
        })
    }

    /// The file's format.
    pub fn format(&self) -> FileFormat {
        match &self.format {
            Format::Classic(classic) => classic.format(),
            Format::Ng(_) => FileFormat::PcapNg,
        }
    }

    /// Link type of the file, or of the first interface that a pcapng file has described so far.
    pub fn linktype(&self) -> Option<LinkType> {
        match &self.format {
            Format::Classic(classic) => Some(classic.linktype),
            Format::Ng(ng) => ng.linktype(),
        }
    }

    /// The number of packets read so far.
    pub fn packets_read(&self) -> u64 {
        self.source.packets
    }

    /// The next packet in the reader's buffer; none at the end and after it.
    pub fn next_ref(&mut self) -> Result<Option<PacketRef<'_>>, PcapError> {
        if self.over {
            return Ok(None);
        }
        self.over = true; // unless a packet is found
        let found = match &mut self.format {
            Format::Classic(classic) => classic.next(&mut self.source)?,
            Format::Ng(ng) => ng.next(&mut self.source, &mut self.comment)?,
        };
        let Some(found) = found else { return Ok(None) };
        self.over = false;
        self.source.packets += 1;
        Ok(Some(PacketRef {
            timestamp_ns: found.timestamp_ns,
            orig_len: found.orig_len,
            interface: found.interface,
            linktype: found.linktype,
            data: self.source.piece.get(found.data).unwrap_or(&[]),
            comment: found.commented.then_some(self.comment.as_str()),
        }))
    }
}

impl Iterator for Reader {
    type Item = Result<Packet, PcapError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_ref()
            .map(|found| found.map(|p| p.to_packet()))
            .transpose()
    }
}

/// Reads a whole file, compressed or not; at most [`MAX_CAPTURE`] bytes of memory.
pub fn read_packets(path: impl AsRef<Path>) -> Result<Capture, PcapError> {
    read_packets_limited(path, MAX_CAPTURE)
}

/// As [`read_packets`], with another limit on memory, in bytes.
pub fn read_packets_limited(path: impl AsRef<Path>, limit: u64) -> Result<Capture, PcapError> {
    let mut reader = Reader::open(path)?;
    let mut packets = Vec::new();
    let mut bytes = 0u64;
    while let Some(packet) = reader.next_ref()? {
        bytes +=
            (size_of::<Packet>() + packet.data.len() + packet.comment.map_or(0, str::len)) as u64;
        if bytes > limit {
            return Err(PcapError::TooLarge {
                path: reader.source.path().to_owned(),
                limit,
            });
        }
        packets.push(packet.to_packet());
    }
    let first = packets.first().map(|p: &Packet| p.linktype);
    let linktype = first.or(reader.linktype()).unwrap_or(LinkType::ETHERNET);
    Ok(Capture {
        format: reader.format(),
        linktype,
        packets,
    })
}
