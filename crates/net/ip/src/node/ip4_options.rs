//! ip4-options: the slow lane of IPv4 packets with options (RFC 791, 3.1; RFC 7126 on source routes).
//!
//! ip4-input found everything else right: the header lies inside the packet, and its checksum holds.

use crate::{Ip, IpTrace};
use volley_fib::V4;
use volley_graph::{ArcId, Col, Cx, Done, Isa, Node, Packet, Vector, counters, nexts};

nexts! {
    /// Where ip4-options sends packets.
    pub enum Next { Error => "ip4-icmp-error", Lookup => "ip4-lookup", Mfib => "ip4-mfib-forward-lookup" }
}

counters! {
    /// What ip4-options counts.
    pub enum Count {
        /// an option does not fit the header
        BadOptions = "bad-options" (Error),
        /// the packet asks for a source route, which is refused (RFC 7126)
        SourceRoute = "source-route" (Error),
    }
}

/// State of ip4-options.
pub struct Ip4Options {
    arc: ArcId,
}

impl Ip4Options {
    /// `arc` is `ip4-unicast`.
    pub fn new(arc: ArcId) -> Self {
        Ip4Options { arc }
    }
}

/// What is wrong with the options of a header, if anything, and how far behind the first option.
pub(crate) fn fault(options: &[u8]) -> Option<(Count, usize)> {
    let mut left = options;
    loop {
        let at = options.len() - left.len();
        match left {
            [] | [0, ..] => return None,
            [1, rest @ ..] => left = rest,
            [_] => return Some((Count::BadOptions, at)),
            [_, len, ..] if *len < 2 || usize::from(*len) > left.len() => {
                return Some((Count::BadOptions, at));
            }
            [131 | 137, ..] => return Some((Count::SourceRoute, at)),
            [_, len, ..] => left = &left[usize::from(*len)..],
        }
    }
}

fn options<'a>(packet: &'a Packet<'_>) -> &'a [u8] {
    let bytes = packet.bytes();
    let end = bytes.first().map_or(0, |b| usize::from(b & 15) * 4);
    bytes.get(20..end).unwrap_or(&[])
}

impl Node for Ip4Options {
    const NAME: &'static str = "ip4-options";
    type Next = Next;
    type Count = Count;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Done {
        v.forget(&[Col::Err]);
        v.sift(
            |packet| match fault(options(packet)) {
                Some((count, _)) => packet.fail(cx, count),
                None => {
                    let total = packet
                        .bytes()
                        .get(2..4)
                        .map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]])));
                    packet.truncate(total);
                    true
                }
            },
            Next::Error,
        );
        // ip4-input lets packets to groups through that may be routed.
        v.sift(|packet| !V4::is_for_group(packet.bytes()), Next::Mfib);
        v.send_arc(self.arc, Col::Rx, Next::Lookup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_graph::harness::{In, run};
    use volley_graph::{Counters, Domain};

    #[test]
    fn options_are_walked_to_their_end() {
        let cases: [(&[u8], &str); 9] = [
            (&[1, 1, 1, 0], "ip4-lookup"),
            (&[7, 3, 4, 0], "ip4-lookup"),
            (&[7, 4, 4, 0], "ip4-lookup"),
            (&[0, 131, 131, 131], "ip4-lookup"),
            (&[7, 5, 4, 0], "bad-options"),
            (&[7, 1, 4, 0], "bad-options"),
            (&[1, 1, 1, 7], "bad-options"),
            (&[131, 3, 4, 0], "source-route"),
            (&[1, 137, 3, 4], "source-route"),
        ];
        for (options, want) in cases {
            let mut bytes = vec![
                0x46, 0, 0, 26, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ];
            bytes.extend(options);
            bytes.extend([9; 22]);
            let out = run(&[In::new(&bytes)], &Domain::new(), |_| {
                Ip4Options::new(ArcId(0))
            });
            let went = (out[0].to.as_str(), fault(options));
            match want {
                "ip4-lookup" => assert_eq!(went, (want, None)),
                _ => {
                    let (count, _) = went.1.unwrap();
                    assert_eq!(
                        (went.0, Count::INFO[count.index()].name),
                        ("ip4-icmp-error", want)
                    );
                }
            }
            if want == "ip4-lookup" {
                assert_eq!(out[0].bytes, bytes[..26]);
            }
        }
    }
}
