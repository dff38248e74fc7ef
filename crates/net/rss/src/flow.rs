//! Flow of a packet: addresses and ports, of the packet or of the one inside its tunnel.
//!
//! The flow of a fragment has addresses only: ports are in the first fragment at most, and all fragments must go to one worker.
//! No input causes an error: a truncated or unknown packet has fewer fields or no flow.

use volley_wire::ethertype::{IP4, IP6, QINQ, VLAN};
use volley_wire::{IpProto, ethertype};

/// Bytes of the longest flow: two IPv6 addresses and two ports.
pub(crate) const MOST: usize = 36;
/// Most nested tunnels that are followed.
const TUNNELS: usize = 3;
/// Most IPv6 extension headers that are followed.
const EXTENSIONS: usize = 8;

/// Ethernet in GRE (RFC 7637).
const BRIDGED: u16 = ethertype::TEB;
const VXLAN: u16 = volley_wire::udp::port::VXLAN;

const TCP: u8 = IpProto::TCP.0;
const UDP: u8 = IpProto::UDP.0;
const SCTP: u8 = IpProto::SCTP.0;
const IN_IP4: u8 = IpProto::IP4.0;
const IN_IP6: u8 = IpProto::IP6.0;
const GRE: u8 = IpProto::GRE.0;

/// Input of the hash: source, destination, and the ports if any, in network order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flow {
    bytes: [u8; MOST],
    len: u8,
    /// Bytes of one address.
    address: u8,
}

impl Flow {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// A flow between two addresses of equal length.
    pub(crate) fn between(from: &[u8], to: &[u8], ports: Option<(u16, u16)>) -> Flow {
        let mut bytes = [0; MOST];
        let n = from.len().min(16);
        bytes[..n].copy_from_slice(&from[..n]);
        bytes[n..2 * n].copy_from_slice(&to[..n]);
        let mut len = 2 * n;
        if let Some((from, to)) = ports {
            bytes[len..len + 2].copy_from_slice(&from.to_be_bytes());
            bytes[len + 2..len + 4].copy_from_slice(&to.to_be_bytes());
            len += 4;
        }
        Flow {
            bytes,
            len: len as u8,
            address: n as u8,
        }
    }

    /// A flow that is the same for both directions: the smaller end comes first.
    pub(crate) fn symmetric(self) -> Flow {
        let n = usize::from(self.address);
        let (from, to) = (&self.bytes[..n], &self.bytes[n..2 * n]);
        let ports = (usize::from(self.len) == 2 * n + 4).then(|| {
            let port = |at: usize| u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]);
            (port(2 * n), port(2 * n + 2))
        });
        let swap = match ports {
            Some((a, b)) => (from, a) > (to, b),
            None => from > to,
        };
        if swap {
            Flow::between(to, from, ports.map(|(a, b)| (b, a)))
        } else {
            self
        }
    }
}

/// The flow of an Ethernet frame: of its packet, or, with `inner`, of the innermost packet in a tunnel. None without IP.
pub(crate) fn flow(frame: &[u8], inner: bool) -> Option<Flow> {
    let (mut kind, mut at) = ethernet(frame, 0)?;
    let mut found = None;
    for _ in 0..=TUNNELS {
        let Some(packet) = ip(frame, kind, at) else {
            break;
        };
        found = Some(packet.flow);
        let inside = if inner { packet.inside(frame) } else { None };
        let Some(next) = inside else { break };
        (kind, at) = next;
    }
    found
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

/// EtherType and offset after an Ethernet header and at most two VLAN tags.
fn ethernet(frame: &[u8], at: usize) -> Option<(u16, usize)> {
    let mut at = at + 12;
    for _ in 0..2 {
        if !matches!(word(frame, at)?, VLAN | QINQ) {
            break;
        }
        at += 4;
    }
    Some((word(frame, at)?, at + 2))
}

/// An IP packet and its payload.
struct Packet {
    flow: Flow,
    protocol: u8,
    /// Offset of the payload.
    at: usize,
    is_fragment: bool,
}

fn ip(frame: &[u8], kind: u16, at: usize) -> Option<Packet> {
    match kind {
        IP4 => ip4(frame, at),
        IP6 => ip6(frame, at),
        _ => None,
    }
}

fn ip4(frame: &[u8], at: usize) -> Option<Packet> {
    let header = frame.get(at..at + 20)?;
    if header[0] >> 4 != 4 {
        return None;
    }
    // More fragments, and the fragment offset; without "don't fragment".
    let is_fragment = word(header, 6)? & 0x3fff != 0;
    let (protocol, next) = (header[9], at + usize::from(header[0] & 15) * 4);
    let ports = ports(frame, protocol, next, is_fragment);
    Some(Packet {
        flow: Flow::between(&header[12..16], &header[16..20], ports),
        protocol,
        at: next,
        is_fragment,
    })
}

fn ip6(frame: &[u8], at: usize) -> Option<Packet> {
    let header = frame.get(at..at + 40)?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let (protocol, next, is_fragment) = extensions(frame, header[6], at + 40);
    let ports = ports(frame, protocol, next, is_fragment);
    Some(Packet {
        flow: Flow::between(&header[8..24], &header[24..40], ports),
        protocol,
        at: next,
        is_fragment,
    })
}

/// Follows the extension headers of RFC 8200: returns the next header, its offset, and whether the packet is a fragment.
fn extensions(frame: &[u8], mut protocol: u8, mut at: usize) -> (u8, usize, bool) {
    for _ in 0..EXTENSIONS {
        let Some(&[next, length]) = frame.get(at..).and_then(<[u8]>::first_chunk) else {
            break;
        };
        match protocol {
            // Hop-by-hop options, routing, destination options.
            0 | 43 | 60 => at += 8 + 8 * usize::from(length),
            44 => {
                // An atomic fragment (offset 0, no more fragments) is a whole packet (RFC 6946).
                let part = word(frame, at + 2).unwrap_or(1) & 0xfff9 != 0;
                if part {
                    return (next, at + 8, true);
                }
                at += 8;
            }
            _ => break,
        }
        protocol = next;
    }
    (protocol, at, false)
}

fn ports(frame: &[u8], protocol: u8, at: usize, is_fragment: bool) -> Option<(u16, u16)> {
    let has = matches!(protocol, TCP | UDP | SCTP) && !is_fragment;
    let (from, to) = (word(frame, at), word(frame, at + 2));
    if has { from.zip(to) } else { None }
}

impl Packet {
    /// EtherType and offset of the inner packet, if this one is a tunnel.
    fn inside(&self, frame: &[u8]) -> Option<(u16, usize)> {
        if self.is_fragment {
            return None;
        }
        match self.protocol {
            IN_IP4 => Some((IP4, self.at)),
            IN_IP6 => Some((IP6, self.at)),
            GRE => gre(frame, self.at),
            UDP if word(frame, self.at + 2)? == VXLAN => {
                // RFC 7348: the I flag marks a valid VNI.
                let flags = *frame.get(self.at + 8)?;
                let ethernet = || ethernet(frame, self.at + 16);
                if flags & 8 != 0 { ethernet() } else { None }
            }
            _ => None,
        }
    }
}

/// RFC 2784 and 2890: checksum, key and sequence number are present if their bits are set.
fn gre(frame: &[u8], at: usize) -> Option<(u16, usize)> {
    let (flags, kind) = (word(frame, at)?, word(frame, at + 2)?);
    if flags & 0x4007 != 0 {
        return None;
    }
    let set = [0x8000, 0x2000, 0x1000]
        .iter()
        .filter(|&bit| flags & bit != 0);
    let behind = at + 4 + 4 * set.count();
    match kind {
        BRIDGED => ethernet(frame, behind),
        kind => Some((kind, behind)),
    }
}

#[cfg(test)]
mod tests;
