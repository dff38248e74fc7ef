//! The probe: what the generator writes into each packet, and where the sink finds it.
//!
//! A probe has 18 bytes, so that it fits the UDP payload of the shortest Ethernet frame (60 bytes without frame check sequence).

use volley_wire::eth::EthHeader;
use volley_wire::ip4::Ip4Header;
use volley_wire::ip6::Ip6Header;
use volley_wire::udp::UdpHeader;
use volley_wire::vlan::VlanTag;
use volley_wire::{Header, ethertype};

/// Bytes of a probe.
pub const LENGTH: usize = 18;
/// Bytes at the front of a frame in which a probe is searched.
pub const FRONT: usize = 96;
/// First byte of a probe.
const MAGIC: u8 = 0x56;
/// Bytes of an Ethernet header without tags.
pub const ETHERNET: usize = EthHeader::LEN;
/// Bytes of a VLAN tag.
pub const TAG: usize = VlanTag::LEN;
/// Bytes of a UDP header.
pub const UDP: usize = UdpHeader::LEN;
/// Bytes of an IPv4 header without options.
pub const IP4: usize = Ip4Header::LEN;
/// Bytes of an IPv6 header.
pub const IP6: usize = Ip6Header::LEN;

/// What a packet says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Number of the trial, modulo 256.
    pub trial: u8,
    /// Sequence number within the trial.
    pub sequence: u64,
    /// Time stamp counter at which the packet was due.
    pub due: u64,
}

impl Probe {
    /// The bytes of the probe.
    #[inline(always)]
    pub fn bytes(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[0] = MAGIC;
        bytes[1] = self.trial;
        bytes[2..10].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[10..].copy_from_slice(&self.due.to_be_bytes());
        bytes
    }

    /// The probe of a frame of `length` bytes with UDP over IPv4 or IPv6, behind at most one VLAN tag, if it has one. Bytes
    /// behind the frame's end are not read.
    #[inline(always)]
    pub fn find(front: &[u8; FRONT], length: usize) -> Option<Probe> {
        let kind = |at: usize| u16::from_be_bytes([front[at - 2], front[at - 1]]);
        let ip = match kind(ETHERNET) {
            ethertype::VLAN => ETHERNET + TAG,
            _ => ETHERNET,
        };
        let at = match kind(ip) {
            ethertype::IP4 => ip + 4 * usize::from(front[ip] & 15) + UDP,
            ethertype::IP6 => ip + IP6 + UDP,
            _ => return None,
        };
        let bytes = front.get(at..at + LENGTH)?;
        if bytes[0] != MAGIC || at + LENGTH > length {
            return None;
        }
        let word = |at: usize| {
            let eight = bytes[at..at + 8].try_into().ok()?;
            Some(u64::from_be_bytes(eight))
        };
        Some(Probe {
            trial: bytes[1],
            sequence: word(2)?,
            due: word(10)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_found_where_it_was_written_and_nowhere_else() {
        let probe = Probe {
            trial: 7,
            sequence: 0x0102_0304_0506_0708,
            due: u64::MAX - 1,
        };
        for (ethertype, first, at) in [
            (0x0800u16, 0x45, 42),
            (0x0800, 0x46, 46),
            (0x86dd, 0x60, 62),
        ] {
            let mut front = [0xaa; FRONT];
            front[12..14].copy_from_slice(&ethertype.to_be_bytes());
            front[14] = first;
            assert_eq!(Probe::find(&front, FRONT), None);
            front[at..at + LENGTH].copy_from_slice(&probe.bytes());
            assert_eq!(Probe::find(&front, at + LENGTH), Some(probe));
            assert_eq!(Probe::find(&front, at + LENGTH - 1), None, "cut off");
            front[12] = 0x88;
            assert_eq!(Probe::find(&front, FRONT), None, "another protocol");
        }
        // The longest IPv4 header leaves no room in the part that is searched.
        let mut front = [0; FRONT];
        front[12..15].copy_from_slice(&[8, 0, 0x4f]);
        assert_eq!(Probe::find(&front, 1500), None);
    }
}
