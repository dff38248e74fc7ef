use super::*;
use crate::dad::solicitation;
use std::net::Ipv6Addr;
use volley_fib::{Fib, IfInfo, Neighbor};
use volley_graph::harness::{In, Out, run, run_once};
use volley_graph::{Domain, Level};
use volley_iface::IfIdx;
use volley_router_discovery::nd::FRAME;
use volley_router_discovery::nd::{Message, NdMessageOut, group_mac};
use volley_tables::Publisher;

const ME: [u8; 6] = [2, 0, 0, 0, 0, 1];
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// Interface 1 has 2001:db8:1::1/64, learns neighbours, and knows 2001:db8:1::5 at HOST; 2 has 2001:db8:2::1/64 and does not
/// learn; 3 has no address.
struct Lab {
    domain: Arc<Domain>,
    fib: Fib,
    table: Arc<IfTable>,
    lane: Arc<ControlQueues>,
    proxies: Publisher<Proxies>,
}

fn lab() -> Lab {
    let domain = Domain::new();
    let (mut fib, table) = (Fib::new(&domain), IfTable::new(1));
    for index in 1..=3 {
        let info = IfInfo {
            index,
            name: format!("pg{index}"),
            mac: ME,
            mtu: 1500,
            up: true,
        };
        fib.set_interface(info).unwrap();
        table.set_mac(IfIdx(index), ME);
        table.set(IfIdx(index), Flag::Ip6, index < 3);
    }
    table.set(IfIdx(1), Flag::ResolveNeighbors, true);
    for (index, address) in [(1, "2001:db8:1::1/64"), (2, "2001:db8:2::1/64")] {
        fib.add_address(index, address.parse().unwrap()).unwrap();
    }
    let known = "2001:db8:1::5".parse().unwrap();
    fib.set_neighbor(1, known, Neighbor::learned(HOST)).unwrap();
    let proxies = Publisher::new(&domain, Proxies::default());
    Lab {
        domain,
        fib,
        table,
        lane: Arc::default(),
        proxies,
    }
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// A message with a valid checksum.
fn message(say: NdMessageOut, mac: [u8; 6], from: &str, to: &str, target: &str) -> Vec<u8> {
    let (from, target) = (address(from), address(target));
    let to = match to {
        "group" => solicited_node(target),
        other => address(other),
    };
    let mut frame = [0; FRAME];
    let to_mac = group_mac(to);
    let own = mac;
    Message {
        say,
        target,
        from,
        to,
        own,
        to_mac,
    }
    .write(&mut frame);
    frame.to_vec()
}

fn ask(from: &str, target: &str) -> Vec<u8> {
    message(NdMessageOut::Solicit, HOST, from, "group", target)
}

const SAYS: NdMessageOut = NdMessageOut::Advertise { solicited: true };
const TELLS: NdMessageOut = NdMessageOut::Advertise { solicited: false };
const US: &str = "2001:db8:1::1";

impl Lab {
    fn node(&self) -> impl Fn(usize) -> NdInput + Clone + 'static {
        let proxies = self.proxies.snap();
        let parts = (
            self.fib.dataplane6(),
            (self.table.clone(), proxies),
            self.lane.clone(),
        );
        move |_| NdInput::new(parts.0.clone(), parts.1.clone(), parts.2.clone())
    }

    fn outcome(&self, rx: u32, bytes: &[u8]) -> String {
        let packet = In::new(bytes).rx(rx).advance(14);
        let out = run(&[packet], &self.domain, self.node());
        let Out { to, reason, .. } = &out[0];
        reason.clone().unwrap_or_else(|| to.clone())
    }

    /// How many packets nd-input forwards, and what it reports to the control thread, for one packet.
    fn reported(&self, bytes: &[u8]) -> (usize, Vec<NeighborMessage>) {
        let pop = || {
            self.lane
                .received_messages
                .pop()
                .or_else(|| self.lane.received_requests.pop())
        };
        while pop().is_some() {}
        let packet = [In::new(bytes).rx(1).advance(14)];
        let out = run_once(Level::detect(), 4, &packet, &self.domain, self.node()).unwrap();
        (out.len(), std::iter::from_fn(pop).collect())
    }
}

#[test]
fn messages_are_judged_in_the_order_of_the_rules() {
    let lab = lab();
    let good = ask("2001:db8:1::9", US);
    assert_eq!(lab.outcome(1, &good), "nd-reply");
    let with = |at: usize, byte: u8| {
        let mut bad = good.clone();
        bad[14 + at] = byte;
        bad
    };
    assert_eq!(lab.outcome(1, &good[..14 + 39]), "malformed");
    assert_eq!(lab.outcome(1, &good[..14 + 71]), "malformed");
    assert_eq!(lab.outcome(1, &with(0, 0x40)), "malformed");
    assert_eq!(lab.outcome(1, &with(6, 17)), "not-nd");
    assert_eq!(lab.outcome(1, &with(40, 134)), "not-nd");
    assert_eq!(lab.outcome(3, &with(7, 254)), "bad-hop-limit");
    assert_eq!(lab.outcome(3, &with(71, 0)), "bad-checksum");
    assert_eq!(lab.outcome(3, &good), "not-enabled");
    let says = |from, to, target| message(SAYS, HOST, from, to, target);
    assert_eq!(lab.outcome(1, &says("::1", "ff02::1", US)), "bad-message");
    assert_eq!(
        lab.outcome(1, &ask("::", US)),
        "bad-message",
        "an option, from nobody"
    );
    let group = message(
        NdMessageOut::Solicit,
        [1, 0, 0, 0, 0, 1],
        "::1",
        "group",
        US,
    );
    assert_eq!(lab.outcome(1, &group), "bad-sender-mac");
    for from in ["::1", "ff02::9", "::ffff:192.0.2.1"] {
        assert_eq!(lab.outcome(1, &ask(from, US)), "bad-sender-address");
    }
    let near = "2001:db8:1::9";
    assert_eq!(lab.outcome(1, &ask(near, "2001:db8:1::2:7")), "not-for-us");
    let elsewhere = message(NdMessageOut::Solicit, HOST, near, "ff02::2", US);
    assert_eq!(lab.outcome(1, &elsewhere), "not-for-us");
    let mine = message(NdMessageOut::Solicit, ME, US, "group", US);
    assert_eq!(lab.outcome(1, &mine), "own-frame");
    for from in [US, "2001:db8:2::1", "fe80::ff:fe00:1"] {
        assert_eq!(lab.outcome(1, &ask(from, US)), "address-conflict");
    }
    for from in ["2001:db9::1", "2001:db8:2::9"] {
        assert_eq!(lab.outcome(1, &ask(from, US)), "sender-elsewhere");
    }
    // Another address with the same solicited-node group.
    assert_eq!(lab.outcome(1, &ask(near, "2001:db8:1:7::1")), "not-for-us");
    assert_eq!(
        lab.outcome(1, &ask("fe80::9", "fe80::ff:fe00:1")),
        "nd-reply"
    );
    assert_eq!(lab.outcome(1, &ask("fe80::9", US)), "nd-reply");
    let reply = says("2001:db8:2::9", "2001:db8:2::1", "2001:db8:2::9");
    assert_eq!(lab.outcome(2, &reply), "static-only");
}

#[test]
fn the_control_thread_hears_what_is_new() {
    let lab = lab();
    let (stranger, known) = ("2001:db8:1::9", "2001:db8:1::5");
    let heard = |addr, mac, what| NeighborMessage {
        rx: 1,
        addr: address(addr).into(),
        mac,
        what,
    };
    let advert = |solicited| NeighborMessageKind::Advertisement {
        solicited,
        overrides: true,
    };
    let other = [2, 0, 0, 0, 0, 7];
    let from = |mac, from| message(NdMessageOut::Solicit, mac, from, "group", US);
    let cases = [
        (
            from(HOST, stranger),
            1,
            Some(heard(stranger, HOST, NeighborMessageKind::Question)),
        ),
        (from(HOST, known), 1, None),
        (
            from(other, known),
            1,
            Some(heard(known, other, NeighborMessageKind::Question)),
        ),
        (
            from(HOST, "fe80::9"),
            1,
            Some(heard("fe80::9", HOST, NeighborMessageKind::Question)),
        ),
        (
            message(SAYS, HOST, known, US, known),
            0,
            Some(heard(known, HOST, advert(true))),
        ),
        (
            message(TELLS, other, known, "ff02::1", known),
            0,
            Some(heard(known, other, advert(false))),
        ),
        (
            message(TELLS, HOST, "fe80::9", "ff02::1", US),
            1,
            Some(heard(US, HOST, NeighborMessageKind::Conflict)),
        ),
    ];
    for (packet, left, tells) in cases {
        let (out, reported) = lab.reported(&packet);
        assert_eq!(
            (out, reported),
            (left, tells.into_iter().collect()),
            "{packet:02x?}"
        );
    }
}

#[test]
fn others_are_answered_for_where_they_are_reached_elsewhere() {
    let mut lab = lab();
    let (host, near, far) = ("2001:db8:1::9", "2001:db8:1::77", "2001:db8:2::9");
    assert_eq!(lab.outcome(1, &ask(host, far)), "not-for-us");
    let ranges = vec!["2001:db8::/32".parse().unwrap()];
    lab.proxies.publish(Proxies::new([(1, ranges)].into()));
    lab.table.set(IfIdx(1), Flag::ProxyNeighbors, true);
    assert_eq!(lab.outcome(1, &ask(host, far)), "nd-reply");
    // The target is on the same link, or in no proxied prefix, or the source is unspecified: a proxy does not answer DAD
    // probes.
    for (source, target) in [(host, near), (host, "2001:db9::1"), ("::", far)] {
        assert_ne!(lab.outcome(1, &ask(source, target)), "nd-reply", "{target}");
    }
}

/// A router advertisement with a prefix.
fn advertisement(mac: [u8; 6], from: &str, to: &str, code: u8) -> Vec<u8> {
    let mut body = vec![134, code, 0, 0, 64, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1];
    body.extend(mac);
    body.extend([3, 4, 64, 0xc0, 0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0, 0]);
    body.extend(address("2001:db8:7::").octets());
    let (from, to) = (address(from), address(to));
    volley_router_discovery::nd::frame(mac, group_mac(to), from, to, body)
}

#[test]
fn advertisements_of_routers_are_heard_where_that_is_switched_on() {
    let lab = lab();
    let good = advertisement(HOST, "fe80::9", "ff02::1", 0);
    assert_eq!(lab.outcome(1, &good), "not-nd");
    assert!(lab.lane.adverts.is_empty());
    // The interface needs no address.
    for iface in [1, 3] {
        lab.table.set(IfIdx(iface), Flag::Slaac, true);
        let packet = [In::new(&good).rx(iface).advance(14)];
        let out = run_once(Level::detect(), 4, &packet, &lab.domain, lab.node()).unwrap();
        assert!(out.is_empty(), "it is done with");
        let (rx, output) = lab.lane.adverts.pop().unwrap();
        assert_eq!(
            (rx, output.router, output.mac),
            (iface, address("fe80::9"), HOST)
        );
        assert_eq!((output.lifetime_s, output.offers().len()), (256, 1));
    }
    let is = |mac, from, to, code| lab.outcome(1, &advertisement(mac, from, to, code));
    assert_eq!(is(HOST, "fe80::9", "ff02::1", 1), "bad-message");
    assert_eq!(is([1; 6], "fe80::9", "ff02::1", 0), "bad-sender-mac");
    for from in ["2001:db8:1::9", "::", "ff02::9"] {
        assert_eq!(is(HOST, from, "ff02::1", 0), "bad-sender-address");
    }
    assert_eq!(is(HOST, "fe80::9", "ff02::2", 0), "not-for-us");
    let us = "fe80::ff:fe00:1";
    assert_eq!(is(ME, us, "ff02::1", 0), "own-frame");
    assert_eq!(is(HOST, us, "ff02::1", 0), "address-conflict");
    let mut bad = good.clone();
    bad[21] = 254;
    assert_eq!(lab.outcome(1, &bad), "bad-hop-limit");
    bad[21] = 255;
    bad[60] ^= 1;
    assert_eq!(lab.outcome(1, &bad), "bad-checksum");
    // Unicast to this router.
    let packet = [In::new(&advertisement(HOST, "fe80::9", us, 0))
        .rx(1)
        .advance(14)];
    let out = run_once(Level::detect(), 4, &packet, &lab.domain, lab.node()).unwrap();
    assert!(out.is_empty() && lab.lane.adverts.pop().is_some());
    // Messages that do not fit into the queue are lost.
    for _ in 0..100 {
        let packet = [In::new(&good).rx(1).advance(14)];
        run_once(Level::detect(), 4, &packet, &lab.domain, lab.node()).unwrap();
    }
    assert_eq!(lab.lane.adverts.len(), 32);
}

#[test]
fn a_station_with_our_mac_address_is_counted_and_told_whatever_it_says() {
    let lab = lab();
    let same = |bytes: &[u8]| {
        let (_, reported) = lab.reported(bytes);
        let same = reported
            .into_iter()
            .filter(|h| h.what == NeighborMessageKind::OwnMac);
        same.map(|h| (h.rx, h.mac)).collect::<Vec<_>>()
    };
    let other = "2001:db8:1::9";
    // The announcement of a host with the same MAC address, a request by another router, and a DAD probe: the source MAC
    // address of the probe's frame alone identifies the sender.
    for frame in [
        message(TELLS, ME, US, "ff02::1", US),
        message(NdMessageOut::Solicit, ME, other, "group", US),
        solicitation(ME, address(other)),
    ] {
        assert_eq!(same(&frame), [(1, ME)]);
    }
    assert_eq!(same(&ask(other, US)), []);
    assert_eq!(same(&solicitation(HOST, address(other))), []);
}
