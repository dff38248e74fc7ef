//! Sub-interfaces: the frames of another interface that have the same VLAN tags (IEEE 802.1Q, 9).
//!
//! A sub-interface has no driver. The node that removes the tags receives for it; its transmit node adds the tags and sends the
//! frame to the parent's transmit node. MAC address, link, offloads and promiscuous mode are the parent's; the MTU too, unless
//! the sub-interface has a lower one.

use crate::IfIdx;
use std::fmt;
use volley_wire::ethertype;

/// VLAN identifiers: 0 and 4095 are reserved (IEEE 802.1Q, 9.6).
pub const VLAN: std::ops::RangeInclusive<u16> = 1..=4094;

/// The protocol of an outer tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TagKind {
    /// 0x8100: a C-tag (customer).
    Dot1q,
    /// 0x88a8: an S-tag (service provider).
    Dot1ad,
}

impl TagKind {
    /// The EtherType of the tag.
    #[inline(always)]
    pub fn ethertype(self) -> u16 {
        match self {
            TagKind::Dot1q => ethertype::VLAN,
            TagKind::Dot1ad => ethertype::QINQ,
        }
    }
}

/// All tags of a frame, exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tags {
    /// The outer tag's protocol.
    pub kind: TagKind,
    /// The outer VLAN.
    pub vlan: u16,
    /// The VLAN of the inner tag (0x8100), if there is one.
    pub inner: Option<u16>,
}

impl Tags {
    /// Length of the tags in bytes.
    #[inline(always)]
    pub fn len(self) -> u32 {
        if self.inner.is_some() { 8 } else { 4 }
    }

    /// Always false: a frame without tags belongs to the parent.
    pub fn is_empty(self) -> bool {
        false
    }

    /// The tags as in a frame behind the MAC addresses, all priority bits zero; the first [`Tags::len`] bytes are valid.
    #[inline(always)]
    pub fn bytes(self) -> [u8; 8] {
        let outer = u32::from(self.kind.ethertype()) << 16 | u32::from(self.vlan);
        let inner = u32::from(ethertype::VLAN) << 16 | u32::from(self.inner.unwrap_or(0));
        (u64::from(outer) << 32 | u64::from(inner)).to_be_bytes()
    }
}

impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            TagKind::Dot1q => "dot1q",
            TagKind::Dot1ad => "dot1ad",
        };
        write!(f, "{kind} {}", self.vlan)?;
        self.inner
            .map_or(Ok(()), |vlan| write!(f, " inner-dot1q {vlan}"))
    }
}

/// Parent and tags of a sub-interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sub {
    /// The parent interface.
    pub parent: IfIdx,
    /// The tags of the frames.
    pub tags: Tags,
}

const AD: u64 = 1 << 62;
const DOUBLE: u64 = 1 << 61;
const THERE: u64 = 1 << 63;

impl Sub {
    /// The encoding for workers, one word that is never 0.
    pub fn word(self) -> u64 {
        let Tags { kind, vlan, inner } = self.tags;
        let ad = if kind == TagKind::Dot1ad { AD } else { 0 };
        let inner = inner.map_or(0, |vlan| DOUBLE | u64::from(vlan & 0xfff) << 32);
        THERE | ad | inner | u64::from(vlan & 0xfff) << 16 | u64::from(self.parent.0 as u16)
    }

    /// Decodes a word; none for 0.
    #[inline(always)]
    pub fn from_word(word: u64) -> Option<Self> {
        let kind = if word & AD != 0 {
            TagKind::Dot1ad
        } else {
            TagKind::Dot1q
        };
        let tags = Tags {
            kind,
            vlan: (word >> 16) as u16 & 0xfff,
            inner: (word & DOUBLE != 0).then_some((word >> 32) as u16 & 0xfff),
        };
        let parent = IfIdx(word as u32 & 0xffff);
        (word & THERE != 0).then_some(Sub { parent, tags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_bytes_say_it_all() {
        let all = [
            (TagKind::Dot1q, 1, None, "dot1q 1", "81000001"),
            (TagKind::Dot1ad, 4094, None, "dot1ad 4094", "88a80ffe"),
            (
                TagKind::Dot1q,
                100,
                Some(4094),
                "dot1q 100 inner-dot1q 4094",
                "8100006481000ffe",
            ),
            (
                TagKind::Dot1ad,
                4094,
                Some(1),
                "dot1ad 4094 inner-dot1q 1",
                "88a80ffe81000001",
            ),
        ];
        for (kind, vlan, inner, text, hex) in all {
            let tags = Tags { kind, vlan, inner };
            for parent in [IfIdx(0), IfIdx(1023)] {
                let sub = Sub { parent, tags };
                assert_eq!(Sub::from_word(sub.word()), Some(sub));
            }
            let bytes = &tags.bytes()[..tags.len() as usize];
            let got: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!((got.as_str(), tags.to_string().as_str()), (hex, text));
        }
        assert_eq!(Sub::from_word(0), None);
    }
}
