//! VLAN tags: 802.1Q (0x8100) and 802.1ad (0x88a8).
//!
//! Contract: a [`VlanTag`] contains the bytes behind a tag's own EtherType: control information, then the next type.

use crate::header::header;
use crate::{EtherType, Header, U16};

/// Tag control information: priority, drop eligible, VLAN id.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::KnownLayout,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(transparent)]
pub struct Tci(pub U16);

impl Tci {
    /// From VLAN id (12 bits) and priority (3 bits); higher bits are ignored.
    pub fn new(id: u16, priority: u8) -> Tci {
        Tci(U16::new(u16::from(priority & 7) << 13 | (id & 0xfff)))
    }

    /// VLAN id, 0..=4095 (0: priority only).
    #[inline]
    pub fn id(self) -> u16 {
        self.0.get() & 0xfff
    }

    /// Priority code point, 0..=7.
    #[inline]
    pub fn priority(self) -> u8 {
        (self.0.get() >> 13) as u8
    }

    /// Drop eligible indicator.
    #[inline]
    pub fn drop_eligible(self) -> bool {
        self.0.get() & 0x1000 != 0
    }
}

header! {
    /// Control information and the type of the payload.
    pub struct VlanTag: 4, "VLAN tag" {
        /// Priority and VLAN id
        pub tci: Tci,
        /// Type of the payload
        pub ether_type: EtherType,
    }
}

/// The tags of a frame, outermost first; made by [`crate::eth::frame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanTags<'a> {
    bytes: &'a [u8],
}

impl<'a> VlanTags<'a> {
    /// `tagged`: everything behind the Ethernet header; `payload`: the part of it behind the last tag.
    pub(crate) fn new(tagged: &'a [u8], payload: &[u8]) -> Self {
        let len = tagged.len().saturating_sub(payload.len());
        VlanTags {
            bytes: tagged.get(..len).unwrap_or(&[]),
        }
    }

    /// The number of tags that are left.
    pub fn count_left(&self) -> usize {
        self.bytes.len() / VlanTag::LEN
    }
}

impl<'a> Iterator for VlanTags<'a> {
    type Item = &'a VlanTag;

    fn next(&mut self) -> Option<&'a VlanTag> {
        let (tag, rest) = VlanTag::split(self.bytes).ok()?;
        self.bytes = rest;
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntoBytes;

    #[test]
    fn bytes_both_ways() {
        let tag = VlanTag {
            tci: Tci::new(0xabc, 5),
            ether_type: EtherType::IP6,
        };
        assert_eq!(tag.as_bytes(), [0xaa, 0xbc, 0x86, 0xdd]);
        let (tag, _) = VlanTag::split(&[0x30, 0x01, 0x08, 0x06]).unwrap();
        assert_eq!(
            (tag.tci.id(), tag.tci.priority(), tag.tci.drop_eligible()),
            (1, 1, true)
        );
        assert_eq!(tag.ether_type, EtherType::ARP);
    }

    #[test]
    fn ids_and_priorities_are_cut_to_their_width() {
        assert_eq!(Tci::new(0x1fff, 9), Tci::new(0xfff, 1));
    }
}
