//! Pcap interfaces and `pcap trace` in a real graph, whose workers the test steps.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use volley_graph::buf::Pool;
use volley_graph::*;
use volley_iface::Admin;
use volley_iface::AdminState;
use volley_iface::{IfCounts, Registry};
use volley_model::*;
use volley_object::Verb;
use volley_pcap::model::{Pace, PcapInterface, Repeat};
use volley_pcap::{
    FileFormat, FilterText, Packet, Pcap, PcapTraceOff, PcapTraceOn, ShowPcapTrace, Writer,
    WriterOptions, read_packets,
};
use volley_wire::MacAddr;
use volley_wire::build::Packet as Build;

nexts! { enum Out { Drop => "error-drop", Output => "interface-output" } }
counters! {
    /// What turn counts.
    enum Count {
        /// the last byte is odd
        Odd = "odd" (Error),
    }
}

/// Replaces the stack: drops packets whose last byte is odd, with the position behind the Ethernet header, and sends the
/// others out of interface 1.
struct Turn(Column);

impl Node for Turn {
    const NAME: &'static str = "turn";
    type Next = Out;
    type Count = Count;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Out>) -> Consumed {
        let n = v.len();
        v.advance(14);
        for row in 0..n {
            let mut last = 0;
            v.view(row)
                .segments(0, |s| last = *s.last().unwrap_or(&last));
            self.0.words_mut(n)[row] = u32::from(last % 2 == 1) * Count::Odd.code();
        }
        v.drop_out(cx, &self.0, |_| Out::Drop);
        v.retreat(14);
        v.column_mut(Col::TX).fill(1);
        v.send_all(Out::Output)
    }
}

struct Bench {
    registry: Registry,
    worker: Worker,
    pcap: Pcap,
    clock: Clock,
    pool: Arc<Pool>,
    dir: tempfile::TempDir,
}

fn frames(n: usize) -> Vec<Vec<u8>> {
    let frame = |i: usize| {
        let len = [60, 64, 1500, 2048, 2049, 9000, 65_535][i % 7];
        let ports = (1000 + i as u16, if i.is_multiple_of(3) { 53 } else { 80 });
        let eth = Build::eth(MacAddr::local(2), MacAddr::local(1));
        let ip = eth.ip4([10, 0, 0, 1].into(), [10, 1, 0, i as u8].into());
        let mut bytes = ip.udp(ports.0, ports.1).frame_len(len).build();
        *bytes.last_mut().unwrap() = i as u8;
        bytes
    };
    (0..n).map(frame).collect()
}

fn write(path: &Path, packets: &[(u64, Vec<u8>)]) {
    let mut writer = Writer::create(path, WriterOptions::new(FileFormat::PcapNs)).unwrap();
    for (at_ns, data) in packets {
        writer
            .write(Packet::ethernet(*at_ns, data.clone()).as_ref())
            .unwrap();
    }
    writer.finish().unwrap();
}

fn bench(size: usize, buffers: usize) -> Bench {
    let pool = Pool::new(buffers).unwrap();
    let clock = Clock::manual();
    let settings = Settings {
        vector_size: size,
        clock: clock.clone(),
        ..Settings::default()
    };
    let engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
    let mut registry = Registry::new(engine);
    volley_iface::register(&mut registry).unwrap();
    let pcap = volley_pcap::register(&mut registry).unwrap();
    let mut engine = registry.engine.borrow_mut();
    let turn = engine.add("turn", move |_| Turn(Column::new(size)));
    turn.and_then(|_| engine.set_receiver("turn")).unwrap();
    drop(engine);
    let worker = registry.engine.borrow_mut().build().unwrap().pop().unwrap();
    Bench {
        registry,
        worker,
        pcap,
        clock,
        pool,
        dir: tempfile::tempdir().unwrap(),
    }
}

/// An interface without files.
fn files() -> PcapInterface {
    PcapInterface {
        name: String::new(),
        rx: None,
        tx: None,
        r#loop: Repeat::Times(1),
        pace: Pace::Fast,
    }
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn perform(&mut self, verb: &impl Verb) -> Result<Applied, ModelError> {
        let request = Request::of(verb)?;
        self.registry.owners.apply(&request).unwrap()
    }

    fn ask(&mut self, request: Request) -> Result<Applied, ModelError> {
        request.validate()?;
        let mut answers = self.registry.handlers.iter_mut();
        answers
            .find_map(|h| h.apply(&request))
            .expect("somebody's request")
    }

    /// Creates interfaces `in` (plays `packets`) and `out` (writes a file); `in` is still down.
    fn pair(&mut self, packets: &[(u64, Vec<u8>)], repeat: Repeat, pace: Pace) {
        let (rx, tx) = (self.path("rx.pcap"), self.path("tx.pcap"));
        write(&rx, packets);
        let spec = |name: &str, files: PcapInterface| {
            let name = name.into();
            InterfaceSpec::of(&PcapInterface { name, ..files }).unwrap()
        };
        let input = PcapInterface {
            rx: Some(rx),
            r#loop: repeat,
            pace,
            ..files()
        };
        let output = PcapInterface {
            tx: Some(tx),
            ..files()
        };
        self.ask(Request::InterfaceCreate(spec("in", input)))
            .unwrap();
        self.ask(Request::InterfaceCreate(spec("out", output)))
            .unwrap();
        self.state("out", AdminState::Up);
    }

    fn state(&mut self, name: &str, state: AdminState) {
        let set = Admin::request(name, state).unwrap();
        self.registry.owners.apply(&set).unwrap().unwrap();
    }

    fn run(&mut self) {
        while self.worker.step() > 0 {
            self.pcap.drain();
        }
        self.pcap.drain();
    }

    fn counts(&self, name: &str) -> IfCounts {
        let all = self.registry.interfaces.borrow();
        all.counts(all.by_name(name).unwrap())
    }

    fn counter(&self, node: &str, name: &str) -> u64 {
        let counters = self.registry.engine.borrow().counters();
        let found = counters
            .iter()
            .find(|c| c.node == node && c.info.name == name);
        found.unwrap().count
    }

    /// Closes `out` and returns the packets that it wrote.
    fn written(&mut self) -> Vec<Vec<u8>> {
        self.ask(Request::InterfaceDelete { name: "out".into() })
            .unwrap();
        let capture = read_packets(self.path("tx.pcap")).unwrap();
        capture.packets.into_iter().map(|p| p.data).collect()
    }
}

fn timed(packets: Vec<Vec<u8>>) -> Vec<(u64, Vec<u8>)> {
    let at = |(i, packet)| (i as u64 * 1_000_000, packet);
    packets.into_iter().enumerate().map(at).collect()
}

#[test]
fn a_file_goes_in_and_comes_out() {
    let all = frames(50);
    let even: Vec<_> = all.iter().step_by(2).cloned().collect();
    for size in [4, 7, 256] {
        let mut b = bench(size, 8192);
        b.pair(&timed(all.clone()), Repeat::Times(3), Pace::Fast);
        assert_eq!(b.worker.step(), 0, "it waits for its interface");
        b.state("in", AdminState::Up);
        b.run();
        assert_eq!(b.counts("in").rx_packets, 150);
        assert_eq!(b.counts("in").drops, 75);
        assert_eq!(b.counts("out").tx_packets, 75);
        assert_eq!(
            b.written(),
            [even.clone(), even.clone(), even.clone()].concat()
        );
        assert_eq!(b.pool.report().in_use(), 0);
    }
}

#[test]
fn the_recorded_pace_follows_the_clock() {
    let mut b = bench(256, 4096);
    b.pair(&timed(frames(10)), Repeat::Times(2), Pace::Recorded);
    b.state("in", AdminState::Up);
    assert_eq!(b.worker.step(), 1, "the first at once");
    for (after_us, packets) in [(999, 0), (1, 1), (2_500, 2), (500, 1), (4_000, 4)] {
        b.clock.advance(after_us * 1000);
        assert_eq!(b.worker.step(), packets);
    }
    b.clock.advance(1_000_000);
    assert_eq!(
        (b.worker.step(), b.worker.step()),
        (1, 1),
        "the last, and the first of the next time round"
    );
    b.clock.advance(1_000_000_000);
    b.run();
    assert_eq!(b.counts("in").rx_packets, 20);
}

#[test]
fn going_down_drops_and_ends_what_plays_for_ever() {
    let mut b = bench(4, 4096);
    b.pair(&timed(frames(20)), Repeat::Times(1), Pace::Fast);
    b.state("in", AdminState::Up);
    b.worker.step();
    b.state("in", AdminState::Down);
    b.run();
    assert_eq!(b.counter("pcap-input", "admin-down"), 16);
    assert_eq!(
        (b.counts("in").rx_packets, b.counts("in").drops),
        (4, 16 + 2)
    );
    let mut b = bench(4, 4096);
    b.pair(&timed(frames(20)), Repeat::Forever, Pace::Fast);
    b.state("in", AdminState::Up);
    assert!((0..100).all(|_| b.worker.step() > 0));
    b.state("in", AdminState::Down);
    assert_eq!(b.worker.step(), 0);
    assert_eq!(b.counter("pcap-input", "admin-down"), 0);
    b.state("in", AdminState::Up);
    b.ask(Request::InterfaceDelete { name: "in".into() })
        .unwrap();
    assert_eq!(b.worker.step(), 0);
    assert_eq!(b.pool.report().in_use(), 0);
}

#[test]
fn running_out_of_buffers_drops_and_counts() {
    let mut b = bench(256, 64);
    b.pair(&timed(frames(50)), Repeat::Times(20), Pace::Fast);
    b.state("in", AdminState::Up);
    b.run();
    let (lost, counts) = (b.counter("pcap-input", "no-buffers"), b.counts("in"));
    assert!(lost > 0 && counts.rx_packets > 0);
    assert_eq!(counts.rx_packets + lost, 1000);
    assert_eq!(counts.rx_errors, lost);
    assert_eq!(counts.drops, lost + b.counter("turn", "odd"));
    assert_eq!(b.pool.report().in_use(), 0);
}

fn trace(b: &Bench, directions: [bool; 3], filter: Option<&str>) -> PcapTraceOn {
    let [rx, tx, drop] = directions;
    PcapTraceOn {
        rx,
        tx,
        drop,
        interface: None,
        max: 1000,
        max_bytes_per_packet: None,
        file: b.path("trace.pcap"),
        filter: filter.map(|it| FilterText(it.to_owned())),
    }
}

fn traced(b: &mut Bench, spec: PcapTraceOn) -> Vec<Packet> {
    b.pair(&timed(frames(42)), Repeat::Times(1), Pace::Fast);
    b.perform(&spec).unwrap();
    b.state("in", AdminState::Up);
    b.run();
    b.perform(&PcapTraceOff).unwrap();
    assert_eq!(b.pool.report().in_use(), 0);
    read_packets(b.path("trace.pcap")).unwrap().packets
}

#[test]
fn drops_are_traced_whole_and_with_their_reason() {
    let mut b = bench(16, 8192);
    let spec = trace(&b, [false, false, true], None);
    let packets = traced(&mut b, spec);
    let odd: Vec<_> = frames(42).into_iter().skip(1).step_by(2).collect();
    assert_eq!(
        packets.iter().map(|p| p.data.clone()).collect::<Vec<_>>(),
        odd
    );
    assert!(
        packets
            .iter()
            .all(|p| p.comment.as_deref() == Some("turn: odd (the last byte is odd)"))
    );
}

#[test]
fn directions_interfaces_and_filters_select() {
    let all = frames(42);
    let port53 = all.iter().step_by(3).count();
    type Case<'a> = ([bool; 3], Option<&'a str>, Option<&'a str>, usize);
    let cases: [Case<'_>; 6] = [
        ([true, false, false], None, None, 42),
        ([true, true, true], None, None, 42 + 21 + 21),
        ([true, true, true], Some("out"), None, 21),
        ([true, false, false], None, Some("udp.dport == 53"), port53),
        (
            [true, false, false],
            Some("in"),
            Some("ip4.dst == 10.1.0.0/30 and not port 53"),
            2,
        ),
        (
            [false, false, true],
            None,
            Some("host 10.1.0.7 or len == 65535"),
            1 + 3,
        ),
    ];
    for (directions, interface, filter, expected) in cases {
        let mut b = bench(16, 8192);
        let mut spec = trace(&b, directions, filter);
        spec.interface = interface.map(String::from);
        assert_eq!(
            traced(&mut b, spec).len(),
            expected,
            "{directions:?} {interface:?} {filter:?}"
        );
    }
}

#[test]
fn snap_cuts_and_max_ends_it() {
    let mut b = bench(16, 8192);
    let mut spec = trace(&b, [true, false, false], None);
    (spec.max_bytes_per_packet, spec.max) = (Some(50), 10);
    b.pair(&timed(frames(42)), Repeat::Times(1), Pace::Fast);
    b.perform(&spec).unwrap();
    b.state("in", AdminState::Up);
    b.run();
    let reply = b.registry.owners.ask(&ShowPcapTrace).unwrap();
    assert_eq!((reply.packets, reply.lost, reply.active), (10, 0, false));
    assert_eq!(reply.spec, Some(spec));
    let packets = read_packets(b.path("trace.pcap")).unwrap().packets;
    let whole = frames(10);
    assert!(
        packets
            .iter()
            .zip(&whole)
            .all(|(p, w)| p.data == w[..50] && p.orig_len == w.len() as u32)
    );
    assert_eq!(
        (packets.len(), b.perform(&PcapTraceOff).unwrap().changed),
        (10, 0)
    );
}

#[test]
fn faults_are_told_and_change_nothing() {
    let mut b = bench(16, 1024);
    let bad = trace(&b, [true, false, false], Some("udp.dport = 53"));
    let error = b.perform(&bad).unwrap_err().to_string();
    assert_eq!(
        error,
        "filter 'udp.dport = 53' is not valid: column 11: '=' means nothing here: write =="
    );
    let mut other = trace(&b, [true, false, false], None);
    other.interface = Some("none".into());
    assert!(
        b.perform(&other)
            .unwrap_err()
            .to_string()
            .starts_with("there is no interface none")
    );
    assert!(!b.path("trace.pcap").exists());
    let path = b.path("cut.pcap");
    write(&path, &timed(frames(3)));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let files = PcapInterface {
        name: "p".into(),
        rx: Some(path.clone()),
        tx: Some(b.path("never.pcap")),
        ..files()
    };
    let spec = InterfaceSpec::of(&files).unwrap();
    let error = b
        .ask(Request::InterfaceCreate(spec))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(&format!("{}: packet 3, byte", path.display())),
        "{error}"
    );
    assert!(!b.path("never.pcap").exists());
    assert!(b.registry.interfaces.borrow().by_name("p").is_none());
}
