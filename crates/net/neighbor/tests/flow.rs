//! The nodes, the process and the FIB together, with a clock that tests control: from the packet without a path to the host
//! route.

use crossbeam_queue::ArrayQueue;
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use volley_fib::columns::DPO;
use volley_fib::dataplane::{Dpo, DpoKind};
use volley_fib::{Fib, IfInfo, Neighbor};
use volley_graph::buf::Pool;
use volley_graph::*;
use volley_iface::AdminState;
use volley_iface::{NewInterface, Registry};
use volley_model::{Family, Request};
use volley_neighbor::{Dad, NeighborClear, Neighbors};
use volley_wire::arp::{ArpPacket, REPLY, REQUEST};
use volley_wire::build::Packet as Build;
use volley_wire::{IntoBytes, MacAddr};

const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const SECOND: u64 = 1_000_000_000;

nexts! { enum Next { Glean => "ip4-glean", Arp => "arp-input" } }

/// A packet to inject: whether it is ARP, and its bytes.
type Fed = (bool, Vec<u8>);

struct Feed(Arc<ArrayQueue<Fed>>, u32);

impl Source for Feed {
    const NAME: &'static str = "feed";
    type Next = Next;
    type Count = NoCounters;
    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, Next>) -> usize {
        let Some((arp, bytes)) = self.0.pop() else {
            return 0;
        };
        let rx = self.1;
        let mut fresh = out.alloc(1, rx);
        assert!(fresh.write(0, &bytes));
        let glean = Dpo::new(DpoKind::Glean, rx).0;
        fresh.prepare(|_, packet| {
            packet.advance(14);
            packet.set(DPO.col, glean);
        });
        fresh.send(if arp { Next::Arp } else { Next::Glean })
    }
}

/// Packets that arrived at a node: its name and the bytes.
type Seen = Arc<Mutex<Vec<(&'static str, Vec<u8>)>>>;

struct Sink(&'static str, Seen);

impl Node for Sink {
    const NAME: &'static str = "sink";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        for row in 0..v.len() {
            let bytes = v.view(row).bytes().to_vec();
            self.1.lock().unwrap().push((self.0, bytes));
        }
        v.free()
    }
}

struct Lab {
    registry: Registry,
    fib: Rc<RefCell<Fib>>,
    neighbors: Neighbors,
    worker: Worker,
    clock: Clock,
    pool: Arc<Pool>,
    feed: Arc<ArrayQueue<Fed>>,
    seen: Seen,
    rx: u32,
}

/// A router with `eth0`, up, 10.0.0.1/16.
fn lab() -> Lab {
    let (pool, clock) = (Pool::new(8192).unwrap(), Clock::manual());
    let settings = Settings {
        clock: clock.clone(),
        ..Settings::default()
    };
    let domain = Domain::new();
    let fib = Rc::new(RefCell::new(Fib::new(&domain)));
    let mut registry = Registry::new(Engine::new(settings, pool.clone(), domain).unwrap());
    volley_iface::register(&mut registry).unwrap();
    let neighbors = volley_neighbor::register(&mut registry, fib.clone()).unwrap();
    let (feed, seen) = (Arc::new(ArrayQueue::new(1024)), Seen::default());
    let to = fib.clone();
    registry.interfaces.borrow_mut().listen(move |change| {
        if let volley_iface::Change::Created(i) | volley_iface::Change::Updated(i) = change {
            let info = IfInfo {
                index: i.index.0,
                name: i.name.clone(),
                mac: i.mac,
                mtu: 1500,
                up: i.is_up(),
            };
            to.borrow_mut().set_interface(info).unwrap();
        }
    });
    let sink = seen.clone();
    let eth0 = NewInterface::new("eth0", "test");
    let rx = registry
        .host()
        .attach(eth0, move |_, _| Sink("eth0-tx", sink.clone()));
    let rx = rx.unwrap().0;
    {
        let mut engine = registry.engine.borrow_mut();
        for name in ["ip4-lookup", "ip6-lookup"] {
            let sink = seen.clone();
            engine.add(name, move |_| Sink(name, sink.clone())).unwrap();
        }
        for name in ["ip4-icmp-error", "ip6-icmp-error", "linux-cp-punt"] {
            // Drops are counted; their packets are not recorded.
            let unseen = Seen::default();
            let make = move |_| Sink(name, unseen.clone());
            engine.add(name, make).unwrap();
        }
        let from = feed.clone();
        let add = engine.add_source(Feed::NAME, move |_| Feed(from.clone(), rx));
        add.unwrap();
    }
    let worker = registry.engine.borrow_mut().build().unwrap().pop().unwrap();
    let address = "10.0.0.1/16".parse().unwrap();
    fib.borrow_mut().add_address(rx, address).unwrap();
    let up = |i: &mut volley_iface::Interface| i.state = AdminState::Up;
    registry.interfaces.borrow_mut().update("eth0", up).unwrap();
    Lab {
        registry,
        fib,
        neighbors,
        worker,
        clock,
        pool,
        feed,
        seen,
        rx,
    }
}

fn packet(to: [u8; 4], payload: &str) -> Fed {
    let eth = Build::eth(MacAddr::local(1), HOST);
    let packet = eth.ip4([192, 0, 2, 1].into(), to.into()).udp(1, 2);
    (false, packet.payload(payload.as_bytes()).build())
}

impl Lab {
    /// Runs the worker, the process and the worker again; returns the packets that arrived meanwhile.
    fn run(&mut self) -> Vec<(&'static str, Vec<u8>)> {
        while self.worker.step() > 0 || !self.feed.is_empty() {}
        self.registry.processes.run_manual();
        while self.worker.step() > 0 {}
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    fn send(&self, fed: Fed) {
        assert!(self.feed.push(fed).is_ok());
    }

    fn reply(&self, from: [u8; 4], operation: u16, to: [u8; 4]) {
        let mut arp = ArpPacket::request(HOST, from.into(), to.into());
        arp.operation = operation.into();
        self.send((true, [&[0; 14], arp.as_bytes()].concat()));
    }

    fn counter(&self, node: &str, name: &str) -> u64 {
        let all = self.registry.engine.borrow().counters();
        let mine = |c: &&CounterReport| c.node == node && c.info.name == name;
        all.iter().find(mine).unwrap().count
    }

    fn known(&self, address: [u8; 4]) -> Option<Neighbor> {
        self.fib.borrow().neighbor(self.rx, IpAddr::from(address))
    }

    /// What the FIB forwards an address to.
    fn way(&self, address: [u8; 4]) -> DpoKind {
        let reader = self.registry.engine.borrow().domain().register();
        let plane = self.fib.borrow().dataplane4();
        let view = plane.read(reader.guard());
        view.forward(0, Ipv4Addr::from(address).to_bits(), 0).kind()
    }
}

/// The requests among the arrived packets: destination MAC address and target.
fn asked(seen: &[(&'static str, Vec<u8>)]) -> Vec<([u8; 6], Ipv4Addr)> {
    let arp = |(to, bytes): &(&'static str, Vec<u8>)| {
        assert_eq!((*to, bytes.len()), ("eth0-tx", 42));
        let arp = ArpPacket::parse(&bytes[14..]).unwrap();
        assert_eq!(arp.sender_ip(), Ipv4Addr::new(10, 0, 0, 1));
        (bytes[..6].try_into().unwrap(), arp.target_ip())
    };
    seen.iter().map(arp).collect()
}

#[test]
fn first_packets_wait_in_order_and_the_host_route_comes_with_the_answer() {
    let mut lab = lab();
    let all = [0xff; 6];
    assert_eq!(
        asked(&lab.run()),
        [(all, Ipv4Addr::new(10, 0, 0, 1))],
        "it says who it is"
    );
    let host = [10, 0, 0, 9];
    for text in ["one", "two", "three"] {
        lab.send(packet(host, text));
    }
    assert_eq!(asked(&lab.run()), [(all, Ipv4Addr::from(host))]);
    assert_eq!((lab.neighbors.held(), lab.pool.report().in_use()), (3, 3));
    assert_eq!(lab.way(host), DpoKind::Glean);
    lab.reply(host, REPLY, [10, 0, 0, 1]);
    let seen = lab.run();
    let texts: Vec<String> = seen
        .iter()
        .map(|(to, bytes)| format!("{to} {}", String::from_utf8_lossy(&bytes[28..])))
        .collect();
    assert_eq!(
        texts,
        ["ip4-lookup one", "ip4-lookup two", "ip4-lookup three"]
    );
    assert_eq!(lab.way(host), DpoKind::Adj);
    assert_eq!(lab.known(host), Some(Neighbor::learned(HOST.0)));
    assert_eq!((lab.neighbors.held(), lab.pool.report().in_use()), (0, 0));
    assert_eq!(lab.counter("arp-input", "answers"), 1);
    // The entry is probed by unicast after a while, and deleted if the host is silent.
    let mut questions = Vec::new();
    for _ in 0..75 {
        lab.clock.advance(SECOND);
        questions.extend(asked(&lab.run()));
    }
    assert_eq!(questions, [(HOST.0, Ipv4Addr::from(host)); 3]);
    assert_eq!((lab.known(host), lab.way(host)), (None, DpoKind::Glean));
}

#[test]
fn a_host_that_asks_and_sends_at_once_is_answered_at_once() {
    let mut lab = lab();
    let host = [10, 0, 9, 9];
    lab.run();
    // The request and a packet to the same host arrive before the control thread runs.
    lab.reply(host, REQUEST, [10, 0, 0, 1]);
    lab.send(packet(host, "soon"));
    let seen = lab.run();
    let ways: Vec<_> = seen.iter().map(|(to, _)| *to).collect();
    assert_eq!(
        ways,
        ["eth0-tx", "ip4-lookup"],
        "the answer, then the packet"
    );
    assert_eq!(lab.known(host).map(|n| n.mac), Some(HOST.0));
    assert_eq!(lab.way(host), DpoKind::Adj);
}

#[test]
fn what_waits_for_nobody_is_dropped_by_name() {
    let mut lab = lab();
    lab.run();
    (0..20).for_each(|_| lab.send(packet([10, 0, 0, 8], "x")));
    lab.send(packet([10, 0, 0, 7], "x"));
    assert_eq!(asked(&lab.run()).len(), 2);
    assert_eq!(lab.neighbors.held(), 9, "eight may wait for one");
    assert_eq!(
        lab.counter("neighbor-output", "evicted"),
        12,
        "the newest replace the oldest"
    );
    assert_eq!(lab.counter("ip4-glean", "unresolved"), 0);
    for _ in 0..2 {
        lab.clock.advance(SECOND);
        assert_eq!(asked(&lab.run()).len(), 2);
    }
    lab.clock.advance(SECOND);
    assert!(lab.run().is_empty());
    assert_eq!(lab.counter("ip4-glean", "unresolved"), 9);
    assert_eq!((lab.neighbors.held(), lab.pool.report().in_use()), (0, 0));
    assert_eq!(lab.neighbors.counts().0.failed, 2);
}

#[test]
fn no_more_wait_than_may_and_all_go_with_the_interface() {
    let mut lab = lab();
    lab.run();
    lab.reply([10, 0, 0, 9], 1, [10, 0, 0, 1]);
    assert_eq!(lab.run().len(), 1, "it answers");
    assert_eq!(
        lab.known([10, 0, 0, 9]),
        Some(Neighbor::learned(HOST.0)),
        "who asks is learned"
    );
    for n in 0..600u32 {
        lab.send(packet([10, 0, 1 + (n / 100) as u8, (n % 100) as u8], "x"));
    }
    assert_eq!(lab.run().len(), 75, "questions are bounded");
    assert_eq!(lab.counter("ip4-glean", "hold-full"), 600 - 512);
    assert_eq!(
        lab.pool.report().in_use(),
        384,
        "some places are for others"
    );
    assert_eq!(lab.counter("neighbor-output", "evicted"), 128);
    let down = |i: &mut volley_iface::Interface| i.state = AdminState::Down;
    lab.registry
        .interfaces
        .borrow_mut()
        .update("eth0", down)
        .unwrap();
    lab.run();
    assert_eq!((lab.neighbors.held(), lab.pool.report().in_use()), (0, 0));
    assert_eq!(lab.counter("ip4-glean", "unresolved"), 600 - 128);
    assert_eq!(lab.known([10, 0, 0, 9]), None);
}

#[test]
fn configured_neighbours_are_not_overwritten_and_clear_forgets_the_others() {
    let mut lab = lab();
    lab.run();
    let fixed = Neighbor::new([2, 0, 0, 0, 0, 7]);
    lab.fib
        .borrow_mut()
        .set_neighbor(lab.rx, [10, 0, 0, 9].into(), fixed)
        .unwrap();
    for operation in [1, REPLY] {
        lab.reply([10, 0, 0, 9], operation, [10, 0, 0, 1]);
        lab.run();
        assert_eq!(lab.known([10, 0, 0, 9]), Some(fixed));
    }
    assert_eq!(lab.neighbors.counts().1.configured, 2);
    lab.reply([10, 0, 0, 8], 1, [10, 0, 0, 1]);
    lab.run();
    assert!(lab.known([10, 0, 0, 8]).is_some());
    let clear = NeighborClear {
        family: Family::V4,
        interface: Some("eth0".into()),
    };
    let clear = Request::of(&clear).unwrap();
    let done = lab.registry.owners.apply(&clear).unwrap();
    assert!(done.is_ok());
    assert_eq!(
        (lab.known([10, 0, 0, 8]), lab.known([10, 0, 0, 9])),
        (None, Some(fixed))
    );
}

#[test]
fn a_daemon_that_ends_with_packets_waiting_loses_no_buffer() {
    let mut lab = lab();
    lab.run();
    (0..5).for_each(|_| lab.send(packet([10, 0, 0, 8], "x")));
    lab.run();
    let pool = lab.pool.clone();
    assert_eq!(pool.report().in_use(), 5);
    drop(lab);
    assert_eq!(pool.report().in_use(), 0);
}

impl Lab {
    fn probe(&mut self, probes: u32) {
        let interface = "eth0".to_owned();
        let request = Request::set(&Dad { interface, probes }).unwrap();
        self.registry.owners.apply(&request).unwrap().unwrap();
    }

    fn state(&self, state: AdminState) {
        let change = |i: &mut volley_iface::Interface| i.state = state;
        let mut interfaces = self.registry.interfaces.borrow_mut();
        interfaces.update("eth0", change).unwrap();
    }

    /// Runs for five seconds in tenths; returns how many probes for 10.0.0.7 were sent.
    fn probes(&mut self) -> usize {
        let mut probes = 0;
        for _ in 0..50 {
            self.clock.advance(SECOND / 10);
            let arp = self.run();
            let arp = arp
                .iter()
                .filter_map(|(_, bytes)| ArpPacket::parse(&bytes[14..]).ok());
            let probe =
                |arp: &&ArpPacket| arp.sender_ip == [0; 4] && arp.target_ip == [10, 0, 0, 7];
            probes += arp.filter(probe).count();
        }
        probes
    }
}

#[test]
fn an_address_that_is_tried_is_used_when_nobody_answers() {
    let mut lab = lab();
    let (own, new) = ([10, 0, 0, 1], [10, 0, 0, 7]);
    lab.run();
    lab.probe(2);
    assert_eq!(lab.way(own), DpoKind::Local, "it was in use");
    lab.fib
        .borrow_mut()
        .add_address(lab.rx, "10.0.0.7/16".parse().unwrap())
        .unwrap();
    assert_eq!(lab.way(new), DpoKind::Glean, "nobody's yet");
    assert_eq!((lab.probes(), lab.way(new)), (2, DpoKind::Local));
    // After the interface was down, all addresses are tested again.
    lab.state(AdminState::Down);
    lab.run();
    lab.state(AdminState::Up);
    lab.run();
    assert_ne!(lab.way(own), DpoKind::Local);
    assert_eq!(
        (lab.probes(), lab.way(own), lab.way(new)),
        (2, DpoKind::Local, DpoKind::Local)
    );
    // DAD is disabled while the interface is down: all addresses are used as soon as it is up.
    lab.state(AdminState::Down);
    lab.run();
    lab.probe(0);
    lab.state(AdminState::Up);
    assert_eq!(
        (lab.way(own), lab.way(new)),
        (DpoKind::Local, DpoKind::Local)
    );
    // Another host has the address: the router does not use it.
    lab.probe(1);
    lab.state(AdminState::Down);
    lab.run();
    lab.state(AdminState::Up);
    lab.run();
    lab.reply([10, 0, 0, 7], REPLY, own);
    lab.run();
    assert_eq!((lab.probes(), lab.way(new)), (0, DpoKind::Glean));
    assert_eq!(lab.neighbors.counts().1.duplicates, 1);
}
