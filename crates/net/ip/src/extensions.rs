//! Extension headers of an IPv6 packet, as its destination must process them (RFC 8200, 4).

use crate::node::ip6_hop_by_hop;
use volley_wire::IpProto;

const HOP_BY_HOP: u8 = IpProto::HOP_BY_HOP.0;
const ROUTING: u8 = IpProto::ROUTING.0;
const FRAGMENT: u8 = IpProto::FRAGMENT.0;
const AUTHENTICATION: u8 = IpProto::AH.0;
const NOTHING: u8 = IpProto::NO_NEXT.0;
const DESTINATION: u8 = IpProto::DEST_OPTS.0;

/// The upper layer of an IPv6 packet, behind the extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Upper {
    /// Protocol of the upper layer.
    pub proto: u8,
    /// Offset of the upper layer.
    pub at: usize,
    /// Offset of the next-header field that has the protocol.
    pub named_at: usize,
    /// The packet is a fragment other than the first.
    pub later_fragment: bool,
}

/// Reason why the header chain cannot be followed to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// A header or an option exceeds the packet or its header.
    Malformed,
    /// An unknown option that must not be ignored.
    UnknownOption,
    /// A routing header with segments left.
    SourceRoute,
    /// A fragment header.
    Fragment,
    /// No next header.
    Nothing,
}

/// Where and why parsing stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub stop: Stop,
    /// Code of the parameter problem to send; none to drop silently.
    pub code: Option<u8>,
    /// Offset of the byte at fault.
    pub at: usize,
}

fn fault<T>(stop: Stop, code: Option<u8>, at: usize) -> Result<T, Fault> {
    Err(Fault { stop, code, at })
}

/// Size of the extension header at `at`, if the packet contains all of it.
fn size(packet: &[u8], at: usize) -> Option<usize> {
    let size = 8 * (usize::from(*packet.get(at + 1)?) + 1);
    (at + size <= packet.len()).then_some(size)
}

/// The upper layer of a packet (trimmed to its own length) for its destination.
pub(crate) fn upper(packet: &[u8]) -> Result<Upper, Fault> {
    let Some(&first) = packet.get(6).filter(|_| packet.len() >= 40) else {
        return fault(Stop::Malformed, None, 0);
    };
    upper_at(packet, first, 6, 40)
}

/// The same from a header of type `proto` on, which begins at `at` and whose type is at `named_at`.
pub(crate) fn upper_at(
    packet: &[u8],
    mut proto: u8,
    mut named_at: usize,
    mut at: usize,
) -> Result<Upper, Fault> {
    loop {
        match proto {
            HOP_BY_HOP if at == 40 => {
                if let Some(found) = ip6_hop_by_hop::fault(packet) {
                    let stop = match found.count {
                        ip6_hop_by_hop::Count::UnknownOption => Stop::UnknownOption,
                        _ => Stop::Malformed,
                    };
                    return fault(stop, found.code, found.at);
                }
            }
            DESTINATION | ROUTING => {}
            FRAGMENT => {
                let word = packet
                    .get(at + 2..at + 4)
                    .filter(|_| packet.len() >= at + 8);
                match word {
                    // RFC 6946: an atomic fragment is processed as a whole packet.
                    Some(word) if word[0] == 0 && word[1] & 0xf9 == 0 => {}
                    Some(_) => return fault(Stop::Fragment, None, at),
                    None => return fault(Stop::Malformed, None, at),
                }
                (proto, named_at, at) = (packet[at], at, at + 8);
                continue;
            }
            NOTHING => return fault(Stop::Nothing, None, named_at),
            _ => {
                return Ok(Upper {
                    proto,
                    at,
                    named_at,
                    later_fragment: false,
                });
            }
        }
        let Some(size) = size(packet, at) else {
            return fault(Stop::Malformed, Some(0), at + 1);
        };
        if proto == DESTINATION
            && let Some(found) = ip6_hop_by_hop::option_fault(&packet[at + 2..at + size])
        {
            let stop = match found.count {
                ip6_hop_by_hop::Count::UnknownOption => Stop::UnknownOption,
                _ => Stop::Malformed,
            };
            return fault(stop, found.code, at + 2 + found.at);
        }
        // RFC 5095 and RFC 8200, 4.4: a routing header of an unknown type with segments left.
        if proto == ROUTING && packet[at + 3] != 0 {
            return fault(Stop::SourceRoute, Some(0), at + 2);
        }
        (proto, named_at, at) = (packet[at], at, at + size);
    }
}

/// Offset of the first fragment header, if the packet contains all of it, and of the field with its type.
pub(crate) fn fragment_header(packet: &[u8]) -> Option<(usize, usize)> {
    let (mut proto, mut named_at, mut at) = (*packet.get(6)?, 6, 40);
    loop {
        match proto {
            FRAGMENT => return packet.get(at..at + 8).map(|_| (at, named_at)),
            HOP_BY_HOP | ROUTING | DESTINATION => {
                let size = size(packet, at)?;
                (proto, named_at, at) = (packet[at], at, at + size);
            }
            _ => return None,
        }
    }
}

/// The upper layer without any check of the headers; none if the chain cannot be followed.
pub(crate) fn loose_upper(packet: &[u8]) -> Option<Upper> {
    let (mut proto, mut named_at, mut at) = (*packet.get(6)?, 6, 40);
    let mut later_fragment = false;
    loop {
        let size = match proto {
            HOP_BY_HOP | ROUTING | DESTINATION => size(packet, at)?,
            FRAGMENT => {
                let word = packet
                    .get(at + 2..at + 4)
                    .filter(|_| packet.len() >= at + 8)?;
                later_fragment |= word[0] != 0 || word[1] & 0xf8 != 0;
                8
            }
            AUTHENTICATION => 4 * (usize::from(*packet.get(at + 1)?) + 2),
            _ => {
                return Some(Upper {
                    proto,
                    at,
                    named_at,
                    later_fragment,
                });
            }
        };
        (proto, named_at, at) = (*packet.get(at)?, at, at + size);
        if later_fragment {
            // The rest of the packet is payload: the first fragment has the headers.
            return Some(Upper {
                proto,
                at,
                named_at,
                later_fragment,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet whose first header is `first`, with `body` behind the fixed header.
    fn packet(first: u8, body: &[u8]) -> Vec<u8> {
        let mut p = vec![0x60, 0, 0, 0, 0, body.len() as u8, first, 64];
        p.resize(40, 1);
        p.extend(body);
        p
    }

    #[test]
    fn headers_are_followed_to_what_they_carry() {
        let udp = [1, 2, 3, 4, 0, 8, 0, 0];
        let headers = [
            vec![60, 0, 1, 4, 0, 0, 0, 0],
            vec![43, 0, 1, 4, 0, 0, 0, 0],
            vec![44, 0, 0, 0, 0, 0, 0, 0],
            vec![17, 0, 0, 0, 9, 9, 9, 9],
        ]
        .concat();
        let all = packet(0, &[&headers[..], &udp].concat());
        let want = Upper {
            proto: 17,
            at: 72,
            named_at: 64,
            later_fragment: false,
        };
        assert_eq!(upper(&all), Ok(want));
        assert_eq!(loose_upper(&all), Some(want));
        for cut in 0..72 {
            assert!(upper(&all[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn what_stops_is_told_with_its_place() {
        let stop = |first, body: &[u8]| {
            let f = upper(&packet(first, body)).unwrap_err();
            (f.stop, f.code, f.at)
        };
        let unknown = |kind| [17, 0, kind, 4, 0, 0, 0, 0];
        assert_eq!(stop(60, &unknown(0x80)), (Stop::UnknownOption, Some(2), 42));
        assert_eq!(stop(60, &unknown(0x41)), (Stop::UnknownOption, None, 42));
        assert_eq!(stop(0, &unknown(0xc1)), (Stop::UnknownOption, Some(2), 42));
        assert_eq!(
            stop(60, &[17, 1, 1, 4, 0, 0, 0, 0]),
            (Stop::Malformed, Some(0), 41)
        );
        assert_eq!(
            stop(43, &[17, 0, 0, 1, 0, 0, 0, 0]),
            (Stop::SourceRoute, Some(0), 42)
        );
        assert_eq!(
            stop(44, &[17, 0, 0, 1, 0, 0, 0, 0]),
            (Stop::Fragment, None, 40)
        );
        assert_eq!(
            stop(44, &[17, 0, 1, 0, 0, 0, 0, 0]),
            (Stop::Fragment, None, 40)
        );
        assert_eq!(stop(59, &[]), (Stop::Nothing, None, 6));
        let twice = [0, 0, 1, 4, 0, 0, 0, 0].repeat(2);
        assert_eq!(stop(0, &twice), (Stop::Malformed, Some(1), 40));
        assert!(upper(&packet(60, &unknown(0x01))).is_ok());
    }
}
