//! The headers as numbers: what the inner packet says, and the bytes in front of it.
//!
//! The outer header of RFC 2003: type of service, identification and "don't fragment" are the inner packet's, the TTL is 64. The inner
//! packet is not changed. The Ethernet addresses of the frame are exchanged, as the sample plugin of VPP does.

use volley_sdk::wire::ip4::{FLAG_DONT_FRAGMENT, Ip4Header};
use volley_sdk::wire::{EtherType, Header, IpProto};

/// Bytes of the outer header.
pub const OUTER: usize = Ip4Header::LEN;
/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Position of the six words of the frame that a stage reads: the type, and the IPv4 header.
pub const OFFSET: usize = 12;
/// Bytes in front of the inner packet, after the outer header was added.
pub const FRONT: usize = ETHERNET + OUTER;
/// TTL of the outer header.
pub const TTL: u8 = 64;
/// Length of the longest packet that has room for another header.
pub const LONGEST: u32 = u16::MAX as u32 - OUTER as u32;

/// The type of the frame and the version of the packet.
const IP4: u32 = (EtherType::IP4.0.get() as u32) << 4 | 4;

/// Six words from byte 12 of a frame.
#[derive(Clone, Copy)]
pub struct Inner(pub [u32; 6]);

impl Inner {
    /// The destination of the packet.
    #[inline(always)]
    pub fn destination(self) -> u32 {
        self.0[4] << 16 | self.0[5] >> 16
    }

    /// Whether a frame of `len` bytes is an IPv4 packet that can be encapsulated. No term depends on the value of another one, so
    /// the compiler needs no branch.
    #[inline(always)]
    pub fn is_ip4(self, len: u32) -> bool {
        let (total, header) = (self.0[1] >> 16, (self.0[0] >> 8 & 15) * 4);
        (self.0[0] >> 12 == IP4)
            & (header >= OUTER as u32)
            & (header <= total)
            & (total + ETHERNET as u32 <= len)
            & (total <= LONGEST)
    }

    /// The first three words of the outer header.
    // ANCHOR: outer
    #[inline(always)]
    pub fn outer(self, local: u32, remote: u32) -> [u32; 3] {
        let total = (self.0[1] >> 16) + OUTER as u32;
        let first = 0x45 << 24 | (self.0[0] & 0xff) << 16 | total & 0xffff;
        let id = self.0[1] << 16;
        let second = id | self.0[2] >> 16 & u32::from(FLAG_DONT_FRAGMENT);
        let third = u32::from(TTL) << 24 | u32::from(IpProto::IP4.0) << 16;
        let halves = |word: u32| (word >> 16) + (word & 0xffff);
        let sum = halves(first) + halves(second) + halves(third) + halves(local) + halves(remote);
        let sum = halves(halves(sum));
        [first, second, third | !sum & 0xffff]
    }
    // ANCHOR_END: outer
}

/// A pair of addresses, the local one in the upper half; 0 is no pair.
pub fn pair(local: u32, remote: u32) -> u64 {
    u64::from(local) << 32 | u64::from(remote)
}

/// Write the bytes in front of an inner packet, whose Ethernet header is behind the room for the outer header.
#[inline(always)]
pub fn write(front: &mut [u8; FRONT], outer: [u32; 3], pair: u64) {
    let mut out = [0; FRONT];
    out[..6].copy_from_slice(&front[OUTER + 6..OUTER + 12]);
    out[6..12].copy_from_slice(&front[OUTER..OUTER + 6]);
    out[12..14].copy_from_slice(&front[OUTER + 12..FRONT]);
    for (to, word) in out[ETHERNET..].chunks_exact_mut(4).zip(outer) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    out[FRONT - 8..].copy_from_slice(&pair.to_be_bytes());
    *front = out;
}
