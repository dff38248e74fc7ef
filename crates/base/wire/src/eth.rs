//! Ethernet (IEEE 802.3): destination, source, type or length.
//!
//! Contract: frames have no preamble and no FCS. [`frame`] walks any number of VLAN tags; the rest is the payload of the
//! innermost one, padding included (the IP header contains the length of the packet).

use crate::header::header;
use crate::vlan::{VlanTag, VlanTags};
use crate::{EtherType, Header, MacAddr, WireError};

header! {
    /// The 14 bytes in front of every frame.
    pub struct EthHeader: 14, "Ethernet header" {
        /// Receiver
        pub dst: MacAddr,
        /// Sender
        pub src: MacAddr,
        /// Type of the payload, or its length (802.3)
        pub ether_type: EtherType,
    }
}

/// A parsed frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Addresses and the outermost type.
    pub header: &'a EthHeader,
    /// VLAN tags, the outermost first.
    pub tags: VlanTags<'a>,
    /// Type of the payload: that of the innermost tag, or the header's.
    pub ether_type: EtherType,
    /// Bytes from the frame's start to the payload.
    pub offset: usize,
    /// The payload, padding included.
    pub payload: &'a [u8],
}

/// Parses a frame; an error if the header or a tag is truncated.
pub fn frame(bytes: &[u8]) -> Result<Frame<'_>, WireError> {
    let (header, tagged) = EthHeader::split(bytes)?;
    let mut ether_type = header.ether_type;
    let mut payload = tagged;
    while ether_type.is_vlan() {
        let (tag, rest) = VlanTag::split(payload)?;
        (ether_type, payload) = (tag.ether_type, rest);
    }
    let tags = VlanTags::new(tagged, payload);
    Ok(Frame {
        header,
        tags,
        ether_type,
        offset: bytes.len() - payload.len(),
        payload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntoBytes;

    const BYTES: [u8; 26] = [
        0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x88, 0xa8, 0x20, 0x64, 0x81, 0x00, 0x00, 0x0a,
        0x08, 0x00, 1, 2, 3, 4,
    ];

    #[test]
    fn bytes_both_ways() {
        let header = EthHeader {
            dst: MacAddr::local(2),
            src: MacAddr::local(1),
            ether_type: EtherType::QINQ,
        };
        assert_eq!(header.as_bytes(), &BYTES[..14]);
        let (parsed, rest) = EthHeader::split(&BYTES).unwrap();
        assert_eq!((parsed, rest.len()), (&header, 12));
        let mut out = [0u8; 15];
        assert_eq!(header.emit(&mut out).unwrap().len(), 1);
        assert_eq!(&out[..14], &BYTES[..14]);
        let error = header.emit(&mut out[..13]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no room for Ethernet header: needs 14 bytes, has 13"
        );
    }

    #[test]
    fn tags_are_walked() {
        let f = frame(&BYTES).unwrap();
        assert_eq!(
            (f.ether_type, f.offset, f.payload),
            (EtherType::IP4, 22, &[1, 2, 3, 4][..])
        );
        let ids: alloc::vec::Vec<u16> = f.tags.map(|t| t.tci.id()).collect();
        assert_eq!(ids, [100, 10]);
    }

    #[test]
    fn every_cut() {
        for cut in 0..BYTES.len() {
            assert_eq!(frame(&BYTES[..cut]).is_ok(), cut >= 22, "{cut}");
        }
        let error = frame(&BYTES[..20]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "VLAN tag cut short: needs 4 bytes, has 2"
        );
    }

    use alloc::string::ToString;

    #[test]
    fn change_in_place() {
        let mut bytes = BYTES;
        let (header, _) = EthHeader::split_mut(&mut bytes).unwrap();
        core::mem::swap(&mut header.dst, &mut header.src);
        assert_eq!(frame(&bytes).unwrap().header.dst, MacAddr::local(1));
    }
}
