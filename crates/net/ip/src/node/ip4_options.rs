//! ip4-options: slow path of IPv4 packets with options (RFC 791, 3.1; RFC 7126 on source routes). Fills in record route and
//! timestamp (RFC 1812, 5.3.13.5 and 5.3.13.6).
//!
//! ip4-input has checked everything else: the header lies inside the packet, and its checksum is right.

use crate::icmp::leaves_from;
use crate::options4::{self, Fault, Wishes};
use crate::{Ip, IpTrace};
use volley_fib::V4;
use volley_fib::dataplane::{DataPlane, DpoKind, View};
use volley_graph::{ArcId, Clock, Col, Consumed, Cx, Isa, Node, Packet, Vector, counters, nexts};
use volley_wire::checksum::checksum;

nexts! {
    /// Where ip4-options sends packets.
    pub enum Next { Error => "ip4-icmp-error", Lookup => "ip4-lookup", Mfib => "ip4-mfib-forward-lookup" }
}

counters! {
    /// What ip4-options counts.
    pub enum Count {
        /// an option does not fit the header, or its contents are invalid
        BadOptions = "bad-options" (Error),
        /// the packet requests a source route, which is refused (RFC 7126)
        SourceRoute = "source-route" (Error),
        /// packets whose record route or timestamp was filled in
        Filled = "filled-in" (Info),
    }
}

impl From<Fault> for Count {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Bad => Count::BadOptions,
            Fault::SourceRoute => Count::SourceRoute,
        }
    }
}

/// State of ip4-options.
pub struct Ip4Options {
    fib: DataPlane<V4>,
    arc: ArcId,
    clock: Clock,
}

impl Ip4Options {
    /// Takes the FIB, which has the address to be recorded, the arc `ip4-unicast`, and a clock for the time of day.
    pub fn new(fib: DataPlane<V4>, arc: ArcId, clock: Clock) -> Self {
        Ip4Options { fib, arc, clock }
    }
}

/// Offset of the end of the packet's options.
fn end(packet: &Packet<'_>) -> usize {
    let bytes = packet.bytes();
    bytes.first().map_or(0, |b| usize::from(b & 15) * 4)
}

/// Fills in the requested options if the egress interface is known; otherwise returns false and records nothing.
fn fill(view: &View<'_, V4>, packet: &mut Packet<'_>, wishes: Wishes, day_ms: u32) -> bool {
    let Some(own) = leaves_from(view, &packet.view()) else {
        return false;
    };
    let (table, end) = (view.table_of(packet.rx()), end(packet));
    let Some(header) = packet.bytes_mut().get_mut(..end) else {
        return false;
    };
    let is_ours = |address| view.follow(table, address).kind() == DpoKind::Local;
    options4::fill(&mut header[20..], wishes, (own, day_ms), is_ours);
    header[10..12].fill(0);
    let sum = checksum(header).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    true
}

impl Node for Ip4Options {
    const NAME: &'static str = "ip4-options";
    type Next = Next;
    type Count = Count;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        v.forget(&[Col::ERR]);
        let (view, day_ms) = (self.fib.read(cx.guard()), self.clock.day_ms());
        v.sift(
            |packet| {
                let options = packet.bytes().get(20..end(packet)).unwrap_or(&[]);
                let wishes = match options4::read(options) {
                    Ok(wishes) => wishes,
                    Err((fault, _)) => return packet.fail(cx, fault.into()),
                };
                let length = packet.bytes().get(2..4);
                let total = length.map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]])));
                packet.truncate(total);
                if wishes.is_any() && fill(&view, packet, wishes, day_ms) {
                    cx.count(Count::Filled, 1);
                }
                true
            },
            Next::Error,
        );
        // ip4-input passes packets to routable groups.
        v.sift(|packet| !V4::is_for_group(packet.bytes()), Next::Mfib);
        v.send_arc(self.arc, Col::RX, Next::Lookup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fib::{address, neighbor, with_interfaces};
    use std::sync::Arc;
    use volley_fib::Fib;
    use volley_graph::harness::{In, Out, run};
    use volley_graph::{Counters, Domain};

    /// 10.0.0.0/24 and 10.0.1.0/24 with one neighbour each, .9; packets are received on the first.
    fn fib(domain: &Arc<Domain>) -> Fib {
        let mut fib = with_interfaces(domain, 2, 1500);
        for index in 0..2 {
            address(&mut fib, index, &format!("10.0.{index}.1/24"));
            neighbor(&mut fib, index, &format!("10.0.{index}.9"), [0, 9]);
        }
        fib
    }

    fn packet(options: &[u8], to: [u8; 4]) -> Vec<u8> {
        let words = (20 + options.len()) as u8 / 4;
        let total = 20 + options.len() as u8 + 2;
        let mut bytes = vec![0x40 | words, 0, 0, total, 0, 0, 0, 0, 64, 17, 0, 0];
        bytes.extend([10, 0, 0, 9]);
        bytes.extend(to);
        bytes.extend(options);
        let sum = checksum(&bytes).to_be_bytes();
        bytes[10..12].copy_from_slice(&sum);
        // Two bytes of payload, and the padding of the frame.
        bytes.extend([9; 22]);
        bytes
    }

    fn out(options: &[u8], to: [u8; 4]) -> Out {
        let domain = Domain::new();
        let plane = fib(&domain).dataplane4();
        let clock = Clock::manual();
        clock.advance(77_000_000);
        let packet = In::new(&packet(options, to));
        let mut out = run(&[packet], &domain, move |_| {
            Ip4Options::new(plane.clone(), ArcId(0), clock.clone())
        });
        out.remove(0)
    }

    const THERE: [u8; 4] = [10, 0, 1, 9];

    #[test]
    fn faults_are_told_and_everything_else_goes_on_cut_to_its_length() {
        let cases: [(&[u8], Option<&str>); 5] = [
            (&[1, 1, 1, 0], None),
            (&[7, 4, 5, 0], None),
            (&[1, 1, 1, 7], Some("bad-options")),
            (&[7, 4, 4, 0], Some("bad-options")),
            (&[131, 3, 4, 0], Some("source-route")),
        ];
        for (options, reason) in cases {
            let out = out(options, THERE);
            let fault = options4::read(options).err();
            let name = fault.map(|(fault, _)| Count::INFO[Count::from(fault).index()].name);
            assert_eq!(name, reason, "{options:?}");
            if reason.is_some() {
                assert_eq!(out.to, "ip4-icmp-error");
            } else {
                assert_eq!(out.to, "ip4-lookup");
                assert_eq!(out.bytes, packet(options, THERE)[..26]);
            }
        }
    }

    #[test]
    fn the_address_is_that_of_the_interface_it_leaves_by_and_the_checksum_is_right() {
        let asked = [7, 7, 4, 0, 0, 0, 0, 68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (to, own) in [(THERE, [10, 0, 1, 1]), ([10, 0, 0, 1], [10, 0, 0, 1])] {
            let bytes = out(&asked, to).bytes;
            assert!(volley_wire::checksum::is_valid(&bytes[..40]));
            assert_eq!((&bytes[20..23], &bytes[23..27]), (&[7, 7, 8][..], &own[..]));
            assert_eq!(
                (&bytes[27..31], &bytes[31..35]),
                (&[68, 12, 13, 1][..], &own[..])
            );
            assert_eq!(bytes[35..40], [0, 0, 0, 77, 0]);
        }
    }

    #[test]
    fn nobody_is_entered_where_no_way_is_known() {
        let asked = [7, 7, 4, 0, 0, 0, 0, 0];
        for to in [[192, 0, 2, 1], [239, 1, 1, 1]] {
            let bytes = out(&asked, to).bytes;
            assert_eq!(bytes[20..28], asked, "{to:?}");
        }
    }
}
