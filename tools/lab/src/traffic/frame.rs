//! The frames that the generator sends: UDP over IPv4 or IPv6 with a probe.

use super::probe::{ETHERNET, IP4, IP6, LENGTH, Probe, TAG, UDP};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use volley_model::Mac;
use volley_wire::checksum::{self, Sum};
use volley_wire::{IpProto, ethertype};

/// Longest frame.
pub const MOST: usize = 2048;

/// What the frames have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameSpec {
    /// Source MAC address.
    pub source_mac: Mac,
    /// Destination MAC address.
    pub destination_mac: Mac,
    /// Source address.
    pub source: IpAddr,
    /// First destination address.
    pub destination: IpAddr,
    /// Number of consecutive destination addresses, one after the other.
    pub addresses: u32,
    /// Bytes without frame check sequence.
    pub size: usize,
    /// VLAN of a tag (IEEE 802.1Q); none for frames without a tag.
    pub vlan: Option<u16>,
}

/// A frame with room for a probe.
#[derive(Clone, Debug)]
pub struct Frame {
    bytes: Vec<u8>,
    probe_at: usize,
    /// Number of destination addresses, and the last 32 bits of the first one.
    addresses: u64,
    first: u32,
    /// IPv6: the sum of everything that does not change.
    sum: Option<u16>,
}

impl Frame {
    /// Build a frame.
    ///
    /// # Errors
    /// A sentence, if the addresses are of two families or the size does not fit.
    pub fn new(spec: &FrameSpec) -> Result<Frame, String> {
        let ip = match (spec.source, spec.destination) {
            (IpAddr::V4(_), IpAddr::V4(_)) => IP4,
            (IpAddr::V6(_), IpAddr::V6(_)) => IP6,
            (source, destination) => {
                return Err(format!(
                    "{source} and {destination} are of two families: choose two addresses of one"
                ));
            }
        };
        let ethernet = ETHERNET + spec.vlan.map_or(0, |_| TAG);
        let least = ethernet + ip + UDP + LENGTH;
        if !(least..=MOST).contains(&spec.size) {
            return Err(format!(
                "a frame of {} bytes is not possible: choose {least} to {MOST}",
                spec.size
            ));
        }
        let mut bytes = Vec::with_capacity(spec.size);
        bytes.extend_from_slice(&spec.destination_mac.0);
        bytes.extend_from_slice(&spec.source_mac.0);
        for word in spec
            .vlan
            .into_iter()
            .flat_map(|vlan| [ethertype::VLAN, vlan])
        {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        let udp = (spec.size - ethernet - ip) as u16;
        match (spec.source, spec.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                bytes.extend_from_slice(&header4(source, destination, udp));
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                bytes.extend_from_slice(&header6(source, destination, udp));
            }
            _ => {}
        }
        for word in [9u16, 9, udp, 0] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        bytes.resize(spec.size, 0);
        let first_at = ethernet + ip - 4;
        let last: [u8; 4] = std::array::from_fn(|n| bytes[first_at + n]);
        let sum = (ip == IP6).then(|| {
            let constant = Sum::default().word(udp).word(u16::from(IpProto::UDP.0));
            let addresses = constant.bytes(&bytes[ethernet + 8..first_at]);
            addresses.bytes(&bytes[ethernet + ip..]).folded()
        });
        Ok(Frame {
            bytes,
            probe_at: ethernet + ip + UDP,
            addresses: u64::from(spec.addresses.max(1)),
            first: u32::from_be_bytes(last),
            sum,
        })
    }

    /// Write the frame with a probe; returns its length.
    #[inline(always)]
    pub fn write(&self, to: &mut [u8; MOST], probe: &Probe) -> usize {
        let length = self.bytes.len();
        to[..length].copy_from_slice(&self.bytes);
        let at = self.probe_at;
        let bytes = probe.bytes();
        to[at..at + LENGTH].copy_from_slice(&bytes);
        let mut last = self.first;
        if self.addresses > 1 {
            last = last.wrapping_add((probe.sequence % self.addresses) as u32);
            to[at - UDP - 4..at - UDP].copy_from_slice(&last.to_be_bytes());
            if self.sum.is_none() {
                // The checksum is 10 bytes behind the first of the 20 bytes of the header.
                let sum_at = at - UDP - 10;
                let old = u16::from_be_bytes([to[sum_at], to[sum_at + 1]]);
                let new = checksum::update32(old, self.first, last);
                to[sum_at..sum_at + 2].copy_from_slice(&new.to_be_bytes());
            }
        }
        if let Some(sum) = self.sum {
            let sum = Sum::default().word(sum).bytes(&last.to_be_bytes());
            let checksum = sum.bytes(&bytes).checksum_udp();
            to[at - 2..at].copy_from_slice(&checksum.to_be_bytes());
        }
        length
    }
}

fn header4(source: Ipv4Addr, destination: Ipv4Addr, udp: u16) -> Vec<u8> {
    let mut bytes = vec![0x08, 0x00, 0x45, 0];
    bytes.extend_from_slice(&(udp + IP4 as u16).to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0, 64, IpProto::UDP.0, 0, 0]);
    bytes.extend_from_slice(&source.octets());
    bytes.extend_from_slice(&destination.octets());
    let sum = checksum::checksum(&bytes[2..]);
    bytes[12..14].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn header6(source: Ipv6Addr, destination: Ipv6Addr, udp: u16) -> Vec<u8> {
    let mut bytes = vec![0x86, 0xdd, 0x60, 0, 0, 0];
    bytes.extend_from_slice(&udp.to_be_bytes());
    bytes.extend_from_slice(&[IpProto::UDP.0, 64]);
    bytes.extend_from_slice(&source.octets());
    bytes.extend_from_slice(&destination.octets());
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::probe::FRONT;
    use super::*;

    fn spec(source: &str, destination: &str, size: usize) -> FrameSpec {
        FrameSpec {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            addresses: 300,
            size,
            vlan: None,
        }
    }

    #[test]
    fn a_tag_moves_the_packet_and_nothing_else() {
        let plain = spec("198.19.0.1", "20.0.0.250", 64);
        let tagged = FrameSpec {
            vlan: Some(10),
            size: plain.size + TAG,
            ..plain.clone()
        };
        let probe = Probe {
            trial: 3,
            sequence: 299,
            due: 1,
        };
        let [(plain, one), (tagged, two)] = [plain, tagged].map(|spec| {
            let mut bytes = [0; MOST];
            let length = Frame::new(&spec).unwrap().write(&mut bytes, &probe);
            (bytes, length)
        });
        assert_eq!(tagged[..12], plain[..12]);
        assert_eq!(tagged[12..16], [0x81, 0, 0, 10]);
        assert_eq!(tagged[16..two], plain[12..one]);
        let front: [u8; FRONT] = std::array::from_fn(|n| tagged[n]);
        assert_eq!(Probe::find(&front, two), Some(probe));
        let end = 18 + IP4 + UDP + LENGTH;
        assert_eq!(Probe::find(&front, end - 1), None, "cut off");
    }

    #[test]
    fn frames_are_valid_and_have_their_probe_and_address() {
        let four = spec("198.19.0.1", "20.0.0.250", 60);
        let six = spec("2001:2::1", "2001:db8::fffa", 1514);
        for spec in [four, six] {
            let frame = Frame::new(&spec).unwrap();
            for sequence in [0, 1, 299, 300, 1 << 40] {
                let probe = Probe {
                    trial: 1,
                    sequence,
                    due: sequence.wrapping_mul(0x1234_5678_9abc),
                };
                let mut bytes = [0xee; MOST];
                let length = frame.write(&mut bytes, &probe);
                assert_eq!(length, spec.size);
                let front: [u8; FRONT] = std::array::from_fn(|n| bytes[n]);
                assert_eq!(Probe::find(&front, length), Some(probe));
                let added = (sequence % 300) as u32;
                match (spec.source, spec.destination) {
                    (IpAddr::V4(_), IpAddr::V4(to)) => {
                        assert!(checksum::is_valid(&bytes[14..34]));
                        let got = u32::from_be_bytes(std::array::from_fn(|n| bytes[30 + n]));
                        assert_eq!(got, u32::from(to) + added);
                    }
                    (IpAddr::V6(from), IpAddr::V6(to)) => {
                        let to = Ipv6Addr::from(u128::from(to) + u128::from(added));
                        assert_eq!(bytes[38..54], to.octets());
                        let segment = &bytes[54..length];
                        assert!(checksum::is_valid6(from, to, IpProto::UDP, segment));
                    }
                    _ => unreachable!(),
                }
            }
        }
    }

    #[test]
    fn sizes_and_families_that_are_not_possible() {
        let short = Frame::new(&spec("10.0.0.1", "10.0.0.2", 59)).unwrap_err();
        assert!(short.contains("choose 60 to 2048"), "{short}");
        let long = Frame::new(&spec("::1", "::2", 2049)).unwrap_err();
        assert!(long.contains("choose 80 to 2048"), "{long}");
        assert!(Frame::new(&spec("::1", "10.0.0.1", 100)).is_err());
    }
}
