//! ip6-hop-by-hop: slow path of IPv6 packets with a hop-by-hop header (RFC 8200, 4.2 and 4.3; RFC 2675).
//!
//! ip6-input has checked everything else. Section 11 of `docs/forwarding-rules.md` has the order of the checks.

use crate::{Ip, IpTrace};
use volley_fib::V6;
use volley_graph::{ArcId, Col, Consumed, Cx, Isa, Node, Vector, counters, nexts};

nexts! {
    /// Where ip6-hop-by-hop sends packets.
    pub enum Next { Error => "ip6-icmp-error", Lookup => "ip6-lookup", Mfib => "ip6-mfib-forward-lookup" }
}

counters! {
    /// What ip6-hop-by-hop counts.
    pub enum Count {
        /// the payload length is 0: a jumbogram, which is not supported (RFC 2675)
        Jumbogram = "jumbogram" (Error),
        /// the header or an option does not fit, or is where it must not be
        Bad = "bad-hop-by-hop" (Error),
        /// an unknown option says that it must not be ignored
        UnknownOption = "unknown-option" (Error),
    }
}

/// State of ip6-hop-by-hop.
pub struct Ip6HopByHop {
    arc: ArcId,
}

impl Ip6HopByHop {
    /// Takes the arc `ip6-unicast`.
    pub fn new(arc: ArcId) -> Self {
        Ip6HopByHop { arc }
    }
}

/// A fault of a header.
pub(crate) struct Fault {
    pub(crate) count: Count,
    /// Code of the parameter problem to send (RFC 4443, 3.4); none if the option requires a silent drop.
    pub(crate) code: Option<u8>,
    /// Offset of the byte at fault.
    pub(crate) at: usize,
}

fn bad(code: u8, at: usize) -> Option<Fault> {
    let (count, code) = (Count::Bad, Some(code));
    Some(Fault { count, code, at })
}

/// The fault of the hop-by-hop header of a packet, if any.
pub(crate) fn fault(packet: &[u8]) -> Option<Fault> {
    let payload = usize::from(u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]));
    if payload == 0 {
        // RFC 2675, 3: the pointer is at the payload length.
        let count = Count::Jumbogram;
        return bad(0, 4).map(|fault| Fault { count, ..fault });
    }
    let Some(&[next, units]) = packet.get(40..42).filter(|_| payload >= 8) else {
        return bad(0, 41);
    };
    let size = 8 * (usize::from(units) + 1);
    match packet.get(42..40 + size) {
        Some(_) if size <= payload && next == 0 => bad(1, 40),
        Some(options) if size <= payload => {
            let fault = option_fault(options)?;
            let at = 42 + fault.at;
            Some(Fault { at, ..fault })
        }
        _ => bad(0, 41),
    }
}

/// The fault of the options of a hop-by-hop or destination header, if any; offsets count from the first option.
pub(crate) fn option_fault(options: &[u8]) -> Option<Fault> {
    let mut left = options;
    loop {
        let at = options.len() - left.len();
        match left {
            [] => return None,
            [0, rest @ ..] => left = rest,
            [_] => return bad(0, at),
            [_, len, rest @ ..] if usize::from(*len) > rest.len() => return bad(0, at),
            [0xc2, ..] => return bad(0, at),
            [kind, ..] if !matches!(kind, 1 | 5) && kind >> 6 != 0 => {
                // RFC 8200, 4.2: 01 requires a silent drop; the error node suppresses errors for 11 to multicast.
                let (count, code) = (Count::UnknownOption, (kind >> 6 != 1).then_some(2));
                return Some(Fault { count, code, at });
            }
            [_, len, rest @ ..] => left = &rest[usize::from(*len)..],
        }
    }
}

impl Node for Ip6HopByHop {
    const NAME: &'static str = "ip6-hop-by-hop";
    type Next = Next;
    type Count = Count;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        v.forget(&[Col::ERR]);
        v.sift(
            |packet| match fault(packet.bytes()) {
                Some(fault) => packet.fail(cx, fault.count),
                None => {
                    let payload = packet
                        .bytes()
                        .get(4..6)
                        .map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]])));
                    packet.truncate(40 + payload);
                    true
                }
            },
            Next::Error,
        );
        // ip6-input passes packets to routable groups.
        v.sift(|packet| !V6::is_for_group(packet.bytes()), Next::Mfib);
        v.send_arc(self.arc, Col::RX, Next::Lookup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_graph::harness::{In, run};
    use volley_graph::{Counters, Domain};

    #[test]
    fn headers_are_walked_to_their_end() {
        let cases: [(u8, &[u8], &str); 11] = [
            (16, &[17, 0, 5, 2, 0, 0, 1, 0], "ip6-lookup"),
            (16, &[17, 0, 0, 0, 0, 0, 0, 0], "ip6-lookup"),
            (16, &[17, 0, 0x1e, 4, 9, 9, 9, 9], "ip6-lookup"),
            (0, &[17, 0, 0xc2, 4, 0, 1, 0, 0], "jumbogram"),
            (16, &[17, 0, 0xc2, 4, 0, 1, 0, 0], "bad-hop-by-hop"),
            (7, &[17, 0, 1, 4, 0, 0, 0, 0], "bad-hop-by-hop"),
            (16, &[17, 2, 1, 4, 0, 0, 0, 0], "bad-hop-by-hop"),
            (16, &[0, 0, 1, 4, 0, 0, 0, 0], "bad-hop-by-hop"),
            (16, &[17, 0, 1, 5, 0, 0, 0, 0], "bad-hop-by-hop"),
            (16, &[17, 0, 0, 0, 0, 0, 0, 7], "bad-hop-by-hop"),
            (16, &[17, 0, 0x5e, 4, 0, 0, 0, 0], "unknown-option"),
        ];
        for (payload, header, want) in cases {
            let mut bytes = vec![0x60, 0, 0, 0, 0, payload, 0, 64];
            bytes.extend([0x20; 32]);
            bytes.extend(header);
            bytes.extend([7; 8]);
            let out = run(&[In::new(&bytes)], &Domain::new(), |_| {
                Ip6HopByHop::new(ArcId(0))
            });
            let name = fault(&bytes).map(|fault| Count::INFO[fault.count.index()].name);
            let edge = name.map_or("ip6-lookup", |_| "ip6-icmp-error");
            assert_eq!((name.unwrap_or(edge), out[0].to.as_str()), (want, edge));
        }
    }
}
