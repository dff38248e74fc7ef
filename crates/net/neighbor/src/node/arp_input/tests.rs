use super::*;
use volley_fib::{Fib, IfInfo, Neighbor};
use volley_graph::harness::{In, Out, run, run_once};
use volley_graph::{Domain, Level};
use volley_iface::IfIdx;
use volley_tables::Publisher;
use volley_wire::{IntoBytes, MacAddr};

const ME: [u8; 6] = [2, 0, 0, 0, 0, 1];
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// Interface 1 has 10.0.0.1/24, learns neighbours, and knows 10.0.0.5 at HOST; 2 has 10.0.2.1/24 and does not learn; 3 has no
/// address.
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
        table.set(IfIdx(index), Flag::Ip4, index < 3);
    }
    table.set(IfIdx(1), Flag::ResolveNeighbors, true);
    fib.add_address(1, "10.0.0.1/24".parse().unwrap()).unwrap();
    fib.add_address(2, "10.0.2.1/24".parse().unwrap()).unwrap();
    let known = Neighbor::learned(HOST);
    fib.set_neighbor(1, [10, 0, 0, 5].into(), known).unwrap();
    let proxies = Publisher::new(&domain, Proxies::default());
    Lab {
        domain,
        fib,
        table,
        lane: Arc::default(),
        proxies,
    }
}

fn arp(operation: u16, mac: [u8; 6], sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let mut arp = ArpPacket::request(MacAddr(mac), sender.into(), target.into());
    arp.operation = operation.into();
    arp.as_bytes().to_vec()
}

impl Lab {
    fn node(&self) -> impl Fn(usize) -> ArpInput + Clone + 'static {
        let proxies = self.proxies.snap();
        let parts = (
            self.fib.dataplane4(),
            (self.table.clone(), proxies),
            self.lane.clone(),
        );
        move |_| ArpInput::new(parts.0.clone(), parts.1.clone(), parts.2.clone())
    }

    fn outcome(&self, rx: u32, bytes: &[u8]) -> String {
        let out = run(&[In::new(bytes).rx(rx)], &self.domain, self.node());
        let Out { to, reason, .. } = &out[0];
        reason.clone().unwrap_or_else(|| to.clone())
    }

    /// How many packets arp-input forwards, and what it reports to the control thread, for one packet.
    fn reported(&self, bytes: &[u8]) -> (usize, Vec<NeighborMessage>) {
        let pop = || {
            self.lane
                .received_messages
                .pop()
                .or_else(|| self.lane.received_requests.pop())
        };
        while pop().is_some() {}
        let packet = [In::new(bytes).rx(1)];
        let out = run_once(Level::detect(), 4, &packet, &self.domain, self.node()).unwrap();
        (out.len(), std::iter::from_fn(pop).collect())
    }
}

#[test]
fn packets_are_judged_in_the_order_of_the_rules() {
    let lab = lab();
    let good = arp(1, HOST, [10, 0, 0, 9], [10, 0, 0, 1]);
    assert_eq!(lab.outcome(1, &good), "arp-reply");
    for cut in [0, 1, 27] {
        assert_eq!(lab.outcome(1, &good[..cut]), "too-short");
    }
    for (at, byte) in [(1, 6), (2, 0x86), (3, 1), (4, 8), (5, 16)] {
        let mut bad = good.clone();
        bad[at] = byte;
        bad[6..].fill(0);
        assert_eq!(lab.outcome(3, &bad), "bad-format", "byte {at}");
    }
    for operation in [0, 3, 8, 9, 256, 0xffff] {
        let bad = arp(operation, [0; 6], [0; 4], [0; 4]);
        assert_eq!(lab.outcome(3, &bad), "bad-operation");
    }
    let from = |mac, sender| arp(1, mac, sender, [10, 0, 0, 1]);
    assert_eq!(lab.outcome(3, &from([0; 6], [0, 0, 0, 1])), "not-enabled");
    for mac in [[0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
        let bad = from(mac, [127, 0, 0, 1]);
        assert_eq!(lab.outcome(1, &bad), "bad-sender-mac");
    }
    for sender in [
        [127, 0, 0, 1],
        [224, 0, 0, 1],
        [255; 4],
        [240, 0, 0, 1],
        [0, 0, 0, 1],
    ] {
        assert_eq!(lab.outcome(1, &from(HOST, sender)), "bad-sender-address");
    }
    let nobody = arp(2, HOST, [0; 4], [10, 0, 0, 1]);
    assert_eq!(lab.outcome(1, &nobody), "bad-sender-address");
    assert_eq!(lab.outcome(1, &from(ME, [10, 0, 0, 1])), "own-frame");
    assert_eq!(
        lab.outcome(1, &from(HOST, [10, 0, 0, 1])),
        "address-conflict"
    );
    assert_eq!(
        lab.outcome(1, &from(HOST, [10, 0, 2, 1])),
        "address-conflict"
    );
    for sender in [[192, 0, 2, 1], [10, 0, 2, 9]] {
        assert_eq!(lab.outcome(1, &from(HOST, sender)), "sender-elsewhere");
    }
    for target in [[10, 0, 0, 7], [10, 0, 2, 1], [0; 4], [255; 4]] {
        let other = arp(1, HOST, [10, 0, 0, 9], target);
        assert_eq!(lab.outcome(1, &other), "not-for-us");
    }
    let reply = arp(2, HOST, [10, 0, 2, 9], [10, 0, 2, 1]);
    assert_eq!(lab.outcome(2, &reply), "static-only");
    let probe = arp(1, HOST, [0; 4], [10, 0, 0, 1]);
    assert_eq!(lab.outcome(1, &probe), "arp-reply");
}

#[test]
fn the_control_thread_hears_what_is_new() {
    let lab = lab();
    let (other, known, us) = ([2, 0, 0, 0, 0, 7], [10, 0, 0, 5], [10, 0, 0, 1]);
    let heard = |addr: [u8; 4], mac, what| NeighborMessage {
        rx: 1,
        addr: addr.into(),
        mac,
        what,
    };
    let stranger = [10, 0, 0, 9];
    let cases = [
        (
            arp(1, HOST, stranger, us),
            1,
            Some(heard(stranger, HOST, NeighborMessageKind::Question)),
        ),
        (arp(1, HOST, known, us), 1, None),
        (
            arp(1, other, known, us),
            1,
            Some(heard(known, other, NeighborMessageKind::Question)),
        ),
        (arp(1, HOST, [0; 4], us), 1, None),
        (
            arp(2, HOST, stranger, us),
            0,
            Some(heard(stranger, HOST, NeighborMessageKind::Answer)),
        ),
        (
            arp(2, HOST, known, us),
            0,
            Some(heard(known, HOST, NeighborMessageKind::Answer)),
        ),
        (arp(1, HOST, known, known), 1, None),
        (
            arp(1, other, known, known),
            1,
            Some(heard(known, other, NeighborMessageKind::Announcement)),
        ),
        (
            arp(2, other, known, known),
            1,
            Some(heard(known, other, NeighborMessageKind::Announcement)),
        ),
        (
            arp(1, other, known, [10, 0, 0, 77]),
            1,
            Some(heard(known, other, NeighborMessageKind::Announcement)),
        ),
        (arp(1, HOST, stranger, [10, 0, 0, 77]), 1, None),
        (
            arp(2, HOST, us, us),
            1,
            Some(heard(us, HOST, NeighborMessageKind::Conflict)),
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
fn a_full_queue_loses_words_and_no_packet() {
    let lab = lab();
    let packets: Vec<In> = (0..3000u32)
        .map(|n| {
            let [_, _, a, b] = n.to_be_bytes();
            let question = arp(1, [2, 0, 0, 0, a, b], [10, 0, 0, 200], [10, 0, 0, 1]);
            In::new(&question).rx(1)
        })
        .collect();
    let out = run_once(Level::detect(), 256, &packets, &lab.domain, lab.node()).unwrap();
    assert_eq!(out.len(), 3000);
    assert!(
        out.iter()
            .all(|o| o.to == "arp-reply" && o.bytes.len() == 28)
    );
    assert_eq!(
        lab.lane.received_requests.len(),
        lab.lane.received_requests.capacity()
    );
    assert!(
        lab.lane.received_messages.is_empty(),
        "answers have room of their own"
    );
}

#[test]
fn others_are_answered_for_where_they_are_reached_elsewhere() {
    let mut lab = lab();
    let ask = |sender, target| arp(REQUEST, HOST, sender, target);
    let (host, near, far) = ([10, 0, 0, 5], [10, 0, 0, 77], [10, 0, 2, 9]);
    assert_eq!(lab.outcome(1, &ask(host, far)), "not-for-us");
    let ranges = vec!["10.0.0.0/16".parse().unwrap()];
    lab.proxies.publish(Proxies::new([(1, ranges)].into()));
    assert_eq!(
        lab.outcome(1, &ask(host, far)),
        "not-for-us",
        "not switched on"
    );
    lab.table.set(IfIdx(1), Flag::ProxyNeighbors, true);
    assert_eq!(lab.outcome(1, &ask(host, far)), "arp-reply");
    // In this order: the target is on the same link, has no route, is in no proxied prefix; the packet is a probe; an
    // announcement.
    for (sender, target) in [
        (host, near),
        (host, [10, 0, 3, 1]),
        (host, [10, 1, 0, 1]),
        ([0; 4], far),
        (host, host),
    ] {
        assert_eq!(
            lab.outcome(1, &ask(sender, target)),
            "not-for-us",
            "{target:?}"
        );
    }
}

#[test]
fn where_addresses_are_anothers_whoever_asks_for_them_is_answered() {
    let mut lab = lab();
    let ask = |sender, target| arp(1, HOST, sender, target);
    let asked = ask([192, 0, 2, 9], [10, 0, 2, 1]);
    assert_eq!(lab.outcome(3, &asked), "not-enabled");
    lab.fib.set_unnumbered(3, Some(2)).unwrap();
    for flag in [Flag::Ip4, Flag::Unnumbered] {
        lab.table.set(IfIdx(3), flag, true);
    }
    assert_eq!(lab.outcome(3, &asked), "arp-reply");
    // The lending interface has this address, and no other host has.
    let near = ask([10, 0, 2, 9], [10, 0, 2, 1]);
    assert_eq!(lab.outcome(2, &near), "arp-reply");
    for other in [[10, 0, 0, 1], [10, 0, 2, 7]] {
        let asked = ask([192, 0, 2, 9], other);
        assert_eq!(lab.outcome(3, &asked), "not-for-us");
    }
    let taken = ask([10, 0, 2, 1], [10, 0, 2, 1]);
    assert_eq!(lab.outcome(3, &taken), "address-conflict");
}

#[test]
fn a_station_with_our_mac_address_is_counted_and_told_whatever_it_says() {
    let lab = lab();
    let what = |bytes: &[u8]| {
        let (_, reported) = lab.reported(bytes);
        let same: Vec<NeighborMessage> = reported
            .into_iter()
            .filter(|h| h.what == NeighborMessageKind::OwnMac)
            .collect();
        same.into_iter().map(|h| (h.rx, h.mac)).collect::<Vec<_>>()
    };
    // A frame of a host with the same MAC and IP address, of a router with another IP address, for this router and for another
    // host.
    for (sender, target) in [([10, 0, 0, 1], 1), ([10, 0, 0, 9], 1), ([10, 0, 0, 9], 7)] {
        let frame = arp(1, ME, sender, [10, 0, 0, target]);
        assert_eq!(what(&frame), [(1, ME)], "{sender:?}");
    }
    assert_eq!(what(&arp(1, HOST, [10, 0, 0, 9], [10, 0, 0, 1])), []);
}
