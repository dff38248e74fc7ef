//! ip4-icmp-error, ip6-icmp-error: send ICMP errors about dropped packets to their senders (RFC 792, 1122 3.2.2, 1812 4.3; RFC
//! 4443). Section 13 of `docs/forwarding-rules.md`.
//!
//! The packet was counted where it was dropped and is forwarded to the drop node. The error is a second packet, which is
//! forwarded from the lookup on like any other.

use crate::icmp::{LONGEST, Limits, Reasons, Suppressed, ends, mtu};
use crate::{ErrorReason, Icmp, IcmpSwitches, IpTrace};
use std::sync::Arc;
use volley_fib::columns::{FORWARDING, GROUP_MTU};
use volley_fib::dataplane::{DataPlane, View};
use volley_graph::{
    Col, ColumnInfo, Consumed, Cx, Isa, Node, NodeId, PacketView, ReplicateAction, Replicator,
    Vector, counters, nexts,
};

nexts! {
    /// Edges of the error nodes.
    pub struct Next<F: Icmp> {
        DROP => "error-drop",
        LOOKUP => F::LOOKUP,
    }
}

counters! {
    /// What the error nodes count: errors that were sent, and reasons why others were not.
    pub enum Count {
        /// senders told that the hops were used up
        Expired = "sent-time-exceeded" (Info),
        /// senders told that the destination cannot be reached
        Unreachable = "sent-unreachable" (Info),
        /// senders told that the packet does not fit the next link
        TooBig = "sent-too-big" (Info),
        /// senders told that a field is wrong
        Problem = "sent-parameter-problem" (Info),
        /// not told: the packet is an ICMP error itself
        AboutError = "about-error" (Info),
        /// not told: the packet is a fragment other than the first
        AboutFragment = "about-fragment" (Info),
        /// not told: the source is not the address of one other host
        BadSource = "bad-source" (Info),
        /// not told: the destination is not one host
        BadDestination = "bad-destination" (Info),
        /// not told: no route leads back
        NoWayBack = "no-way-back" (Info),
        /// not told: the receiving interface has no address to tell it from
        NoAddress = "no-address" (Info),
        /// not told: too many were told already
        RateLimited = "rate-limited" (Info),
        /// not told: no buffer is free
        NoBuffers = "no-buffers" (Warn),
    }
}

/// State of an error node.
pub struct IcmpError<F: Icmp> {
    fib: DataPlane<F>,
    switches: Arc<IcmpSwitches>,
    reasons: Reasons,
    limits: Limits,
}

impl<F: Icmp> IcmpError<F> {
    /// Node over the FIB that sends errors for `reasons` as far as `switches` allow.
    pub(crate) fn new(fib: DataPlane<F>, switches: Arc<IcmpSwitches>, reasons: Reasons) -> Self {
        IcmpError {
            fib,
            switches,
            reasons,
            limits: Limits::new(),
        }
    }
}

impl From<Suppressed> for Count {
    fn from(silence: Suppressed) -> Count {
        match silence {
            Suppressed::AboutError => Count::AboutError,
            Suppressed::AboutFragment => Count::AboutFragment,
            Suppressed::BadSource => Count::BadSource,
            Suppressed::BadDestination => Count::BadDestination,
            Suppressed::NoWayBack => Count::NoWayBack,
            Suppressed::NoAddress => Count::NoAddress,
        }
    }
}

/// Sends an error about a packet if `may` allows one, and returns the counter; none if the reason causes no error.
fn tell<F: Icmp, I: Isa>(
    view: &View<'_, F>,
    why: ErrorReason,
    packet: &PacketView<'_>,
    (lookup, replicator): (NodeId, &mut Replicator<'_, I>),
    may: Option<impl FnOnce(F::Addr) -> bool>,
) -> Option<Count> {
    if let Some(silence) = F::silence(packet) {
        return Some(silence.into());
    }
    let for_group = F::is_for_group(packet.bytes());
    let mtu = match why {
        // The node that replicates stores the MTU of the replica's interface: there is no route to look up.
        ErrorReason::TooBig if for_group => packet.get(GROUP_MTU.col).unwrap_or(0) as u16,
        ErrorReason::TooBig => mtu(view, packet),
        _ => 0,
    };
    let say = F::say(why, packet, mtu)?;
    if for_group && !F::tells_of_groups(why, say, packet.bytes()) {
        return Some(Count::BadDestination);
    }
    // Under a flood the reverse path is not looked up for each packet.
    let Some(may) = may else {
        return Some(Count::RateLimited);
    };
    let ends = match ends(view, packet) {
        Ok(ends) => ends,
        Err(silence) => return Some(silence.into()),
    };
    if !may(ends.1) {
        return Some(Count::RateLimited);
    }
    let mut message = [0; LONGEST];
    let len = F::write(&mut message, say, ends, packet);
    let made = replicator.build(packet, lookup, len, |part| {
        part.copy_from_slice(&message[..part.len()])
    });
    Some(match (made, why) {
        (None, _) => Count::NoBuffers,
        (_, ErrorReason::Expired | ErrorReason::Reassembly) => Count::Expired,
        (_, ErrorReason::TooBig) => Count::TooBig,
        // ICMPv6 reports an unknown protocol as a parameter problem.
        _ if say.kind == F::PARAMETER_PROBLEM => Count::Problem,
        _ => Count::Unreachable,
    })
}

impl<F: Icmp> Node for IcmpError<F> {
    const NAME: &'static str = F::ICMP_ERROR;
    type Next = Next<F>;
    type Count = Count;
    type Trace = IpTrace;
    const COLUMNS: &'static [ColumnInfo] = &[GROUP_MTU];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        // The error has another destination.
        v.forget(&FORWARDING);
        if !self.switches.errors() {
            return v.send_all(Next::DROP);
        }
        let (lookup, now_ns) = (v.edge(Next::LOOKUP), cx.now_ns());
        let IcmpError {
            fib,
            switches,
            reasons,
            limits,
        } = self;
        let view = fib.read(cx.guard());
        v.replicate(|packet, replicator| {
            let packet = packet.view();
            if let Some(why) = packet.get(Col::ERR).and_then(|word| reasons.find(word)) {
                let spent = limits.is_spent(switches, why.class(), now_ns);
                let may = |to| limits.take(switches, why.class(), F::wide(to), now_ns);
                let may = (!spent).then_some(may);
                let reported = tell::<F, I>(&view, why, &packet, (lookup, replicator), may);
                reported.into_iter().for_each(|count| cx.count(count, 1));
            }
            ReplicateAction::Drop(Next::DROP)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IcmpSettings;
    use crate::testing::fib::{address, neighbor, with_interfaces};
    use volley_fib::columns::DST;
    use volley_fib::{Fib, V4, V6};
    use volley_graph::harness::{In, Out, run};
    use volley_graph::{Domain, NodeId};

    /// A drop reason that is registered in the tests.
    fn reason() -> u32 {
        NodeId(77).reason(3)
    }

    fn fib(domain: &Arc<Domain>) -> Fib {
        let mut fib = with_interfaces(domain, 2, 1400);
        for own in ["10.0.0.1/24", "10.0.1.1/24", "2001:db8::1/64", "fe80::1/64"] {
            address(&mut fib, 0, own);
        }
        for near in ["10.0.1.9", "10.0.0.9", "2001:db8::9"] {
            neighbor(&mut fib, 0, near, [0, 9]);
        }
        fib
    }

    fn tell<F: Icmp>(
        packet: In,
        why: ErrorReason,
        settings: IcmpSettings,
        plane: fn(&Fib) -> DataPlane<F>,
    ) -> Vec<Out> {
        let domain = Domain::new();
        let fib = fib(&domain);
        let (plane, switches) = (plane(&fib), Arc::new(IcmpSwitches::default()));
        switches.set(&settings);
        let make =
            move |_| IcmpError::new(plane.clone(), switches.clone(), Reasons::one(reason(), why));
        run_all(&packet.column(Col::ERR, reason()), &domain, make)
    }

    /// Runs a packet without the harness, which requires as many packets out as in: an error is an additional packet.
    fn run_all<F: Icmp>(
        packet: &In,
        domain: &Arc<Domain>,
        make: impl Fn(usize) -> IcmpError<F> + Clone + 'static,
    ) -> Vec<Out> {
        let mut all = Vec::new();
        for level in volley_graph::Level::available() {
            for size in [1, 7, 64] {
                let many = vec![packet.clone(); size];
                let out = volley_graph::harness::run_once(level, size, &many, domain, make.clone());
                let out = out.unwrap();
                let made = out.len() / size;
                assert_eq!(made * size, out.len());
                let once: Vec<Out> = out.chunks(size).map(|c| c[0].clone()).collect();
                out.chunks(size)
                    .for_each(|c| assert!(c.iter().all(|o| *o == c[0])));
                assert!(all.is_empty() || all == once, "{level} {size}");
                all = once;
            }
        }
        all
    }

    fn unlimited() -> IcmpSettings {
        let (rate, receiver_rate) = (0, 0);
        IcmpSettings {
            rate,
            receiver_rate,
            ..IcmpSettings::default()
        }
    }

    fn ip4(source: [u8; 4], proto: u8, fragment: u16) -> Vec<u8> {
        let mut p = vec![0x45, 0x1c, 2, 188, 0, 0];
        p.extend(fragment.to_be_bytes());
        p.extend([1, proto, 0, 0]);
        p.extend(source);
        p.extend([198, 51, 100, 7]);
        p.resize(720, 8);
        p
    }

    #[test]
    fn an_ip4_error_has_all_that_is_asked_of_it() {
        let packet = ip4([10, 0, 1, 9], 17, 0);
        let out = tell::<V4>(
            In::new(&packet),
            ErrorReason::Expired,
            unlimited(),
            Fib::dataplane4,
        );
        let to: Vec<&str> = out.iter().map(|o| o.to.as_str()).collect();
        assert_eq!(
            to,
            ["error-drop", "ip4-lookup"],
            "the packet goes on to its end"
        );
        let error = &out[1].bytes;
        assert_eq!(error.len(), 576);
        assert_eq!(error[..10], [0x45, 0xdc, 2, 0x40, 0, 0, 0x40, 0, 65, 1]);
        assert_eq!(
            error[12..20],
            [10, 0, 1, 1, 10, 0, 1, 9],
            "from the address that is near"
        );
        assert_eq!(
            (error[20..22].as_ref(), &error[24..28]),
            (&[11, 0][..], &[0; 4][..])
        );
        assert_eq!(error[28..], packet[..548]);
        let right = volley_wire::checksum::is_valid;
        assert!(right(&error[..20]) && right(&error[20..]));
        assert!(!out[1].columns.contains_key(&DST.col));
    }

    #[test]
    fn an_ip6_error_has_all_that_is_asked_of_it() {
        let source: std::net::Ipv6Addr = "2001:db8::9".parse().unwrap();
        let mut packet = vec![0x60, 0, 0, 0, 5, 120, 17, 1];
        packet.extend(source.octets());
        packet.resize(1440, 0x30);
        let out = tell::<V6>(
            In::new(&packet),
            ErrorReason::NoRoute,
            unlimited(),
            Fib::dataplane6,
        );
        let error = &out[1].bytes;
        assert_eq!((out[1].to.as_str(), error.len()), ("ip6-lookup", 1280));
        assert_eq!(error[..8], [0x60, 0, 0, 0, 4, 216, 58, 65]);
        let own: std::net::Ipv6Addr = "2001:db8::1".parse().unwrap();
        assert_eq!(
            (&error[8..24], &error[24..40]),
            (&own.octets()[..], &source.octets()[..])
        );
        assert_eq!(
            (&error[40..42], &error[48..]),
            (&[1, 0][..], &packet[..1232])
        );
        let proto = volley_wire::IpProto(58);
        assert!(volley_wire::checksum::is_valid6(
            own,
            source,
            proto,
            &error[40..]
        ));
    }

    #[test]
    fn silence_where_it_is_asked_for() {
        let reported = |packet: In, settings| {
            let out = tell::<V4>(packet, ErrorReason::NoRoute, settings, Fib::dataplane4);
            out.iter().any(|o| o.to == "ip4-lookup")
        };
        let near = [10, 0, 0, 9];
        let from = |source| reported(In::new(&ip4(source, 17, 0)), unlimited());
        assert!(from(near));
        for source in [
            [10, 0, 0, 255],
            [10, 0, 0, 1],
            [127, 0, 0, 1],
            [224, 0, 0, 1],
            [0, 0, 0, 0],
            [255, 255, 255, 255],
            [11, 0, 0, 1],
        ] {
            assert!(!from(source), "{source:?}");
        }
        assert!(
            !reported(In::new(&ip4(near, 17, 1)), unlimited()),
            "a later fragment"
        );
        assert!(
            reported(In::new(&ip4(near, 17, 0x2000)), unlimited()),
            "the first one"
        );
        let mut about = ip4(near, 1, 0);
        assert!(reported(In::new(&about), unlimited()), "an echo request");
        about[20] = 3;
        assert!(!reported(In::new(&about), unlimited()), "an ICMP error");
        about[20] = 8;
        about[16..20].copy_from_slice(&[10, 0, 1, 255]);
        assert!(
            !reported(In::new(&about), unlimited()),
            "to a subnet's broadcast address"
        );
        let elsewhere = In::new(&ip4(near, 17, 0)).rx(1);
        assert!(
            reported(elsewhere, unlimited()),
            "from an address of the interface that it leaves by"
        );
        let errors = false;
        let off = IcmpSettings {
            errors,
            ..unlimited()
        };
        assert!(!reported(In::new(&ip4(near, 17, 0)), off), "switched off");
    }

    #[test]
    fn the_mtu_is_that_of_the_way_there() {
        let mut packet = ip4([10, 0, 0, 9], 17, 0x4000);
        packet[16..20].copy_from_slice(&[10, 0, 1, 9]);
        let out = tell::<V4>(
            In::new(&packet),
            ErrorReason::TooBig,
            unlimited(),
            Fib::dataplane4,
        );
        assert_eq!(out[1].bytes[20..22], [3, 4]);
        assert_eq!(out[1].bytes[24..28], [0, 0, 0x05, 0x78]);
    }

    #[test]
    fn packets_for_nobody_s_reason_pass_in_silence() {
        let domain = Domain::new();
        let plane = fib(&domain).dataplane4();
        let out = run(
            &[In::new(&ip4([10, 0, 0, 9], 17, 0)).column(Col::ERR, 5)],
            &domain,
            move |_| IcmpError::new(plane.clone(), Arc::default(), Reasons::default()),
        );
        assert_eq!(out.len(), 1);
        assert_eq!(out[0].to, "error-drop");
    }
}
