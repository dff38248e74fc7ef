//! pcap: a file header, then records of a fixed header and the packet.

use super::Fault;
use super::source::{Located, Source};
use super::{FileFormat, LinkType, MAX_PACKET, PcapError};

/// The contents of the file header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Classic {
    big_endian: bool,
    nanoseconds: bool,
    /// Bytes of a record header: 16, or 24 in the variant of magic 0xa1b2cd34.
    record: usize,
    pub(super) linktype: LinkType,
    fcs_len: usize,
}

/// Whether the four bytes are a pcap magic number.
pub(super) fn is_magic(start: &[u8]) -> bool {
    const MAGICS: [u32; 3] = [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34];
    let Ok(bytes) = <[u8; 4]>::try_from(start) else {
        return false;
    };
    MAGICS.contains(&u32::from_le_bytes(bytes)) || MAGICS[..2].contains(&u32::from_be_bytes(bytes))
}

impl Classic {
    /// Reads the rest of the file header; the piece contains its first four bytes.
    pub(super) fn start(source: &mut Source) -> Result<Classic, PcapError> {
        source.append(20, "the file header")?;
        let Ok((_, header)) = pcap_parser::pcap::parse_pcap_header(&source.piece) else {
            return Err(source.not_a_capture());
        };
        let (major, minor) = (header.version_major, header.version_minor);
        if major != 2 {
            return Err(source.malformed(Fault::Version("pcap", major, minor)));
        }
        // the upper bits describe a frame check sequence: one flag, then its length in 16-bit units
        let network = header.network.0 as u32;
        let fcs_len = if network & 0x0400_0000 == 0 {
            0
        } else {
            (network >> 28) as usize * 2
        };
        let linktype = u16::try_from(network & 0x03ff_ffff)
            .map(LinkType)
            .map_err(|_| source.malformed(Fault::LinkType(network & 0x03ff_ffff)))?;
        Ok(Classic {
            big_endian: header.is_bigendian(),
            nanoseconds: header.is_nanosecond_precision(),
            record: if header.is_modified_format() { 24 } else { 16 },
            linktype,
            fcs_len,
        })
    }

    pub(super) fn format(&self) -> FileFormat {
        if self.nanoseconds {
            FileFormat::PcapNs
        } else {
            FileFormat::PcapUs
        }
    }

    /// The next packet, or none at the end.
    pub(super) fn next(&self, source: &mut Source) -> Result<Option<Located>, PcapError> {
        source.begin();
        if source.at_end()? {
            return Ok(None);
        }
        source.append(self.record, "a packet header")?;
        let [seconds, fraction, captured, original] = self.fields(&source.piece);
        let len = captured as usize;
        if len > MAX_PACKET {
            return Err(source.too_long("captured length", captured, MAX_PACKET));
        }
        source.append(len, "a packet")?;
        let fraction_ns = u64::from(fraction) * if self.nanoseconds { 1 } else { 1000 };
        let (len, orig_len) = without_fcs(len, original, self.fcs_len);
        Ok(Some(Located {
            timestamp_ns: u64::from(seconds) * 1_000_000_000 + fraction_ns,
            orig_len,
            interface: 0,
            linktype: self.linktype,
            data: self.record..self.record + len,
            commented: false,
        }))
    }

    /// Seconds, fraction, captured and original length.
    fn fields(&self, record: &[u8]) -> [u32; 4] {
        let mut fields = [0; 4];
        for (field, bytes) in fields.iter_mut().zip(record.as_chunks::<4>().0) {
            *field = if self.big_endian {
                u32::from_be_bytes(*bytes)
            } else {
                u32::from_le_bytes(*bytes)
            };
        }
        fields
    }
}

/// Captured and original length without the captured part of the frame check sequence; the second is at least the first.
pub(super) fn without_fcs(captured: usize, original: u32, fcs_len: usize) -> (usize, u32) {
    let orig_len = original.saturating_sub(fcs_len as u32);
    let len = if fcs_len == 0 {
        captured
    } else {
        captured.min(orig_len as usize)
    };
    (len, orig_len.max(len as u32))
}
