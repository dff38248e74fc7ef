//! Offloads in software in the whole output path: compared with packets built segment by segment, and with scapy.

mod flow;

use flow::{Flow, flow, tcp};
use proptest::prelude::*;
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use volley_graph::buf::Pool;
use volley_graph::{
    Checksum, Clock, Col, Consumed, Cx, Domain, Engine, Gso, Isa, NoCounters, NoNext, Node,
    Offload, Output, PacketTrace, Settings, Source, Vector, Worker, nexts,
};
use volley_iface::Admin;
use volley_iface::AdminState;
use volley_iface::driver::{Caps, DriverHost};
use volley_iface::virtio::VirtioNetHdr;
use volley_iface::{GsoProtocol, IfIdx, NewInterface, Registry};

nexts! {
    enum Next { Output => "interface-output" }
}

type Packets = Arc<Mutex<Vec<(Vec<u8>, Offload)>>>;

struct Tx(Packets);

impl Node for Tx {
    const NAME: &'static str = "test-tx";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        for row in 0..v.len() {
            let view = v.view(row);
            let bytes = view.slices().flatten().copied().collect();
            self.0.lock().unwrap().push((bytes, view.offload()));
        }
        v.free()
    }
}

struct Rx(Packets);

impl Source for Rx {
    const NAME: &'static str = "test-rx";
    type Next = Next;
    type Count = NoCounters;
    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, Next>) -> usize {
        let mut waiting = self.0.lock().unwrap();
        let n = waiting.len().min(out.vector_size());
        let mut fresh = out.alloc(n, 0);
        for (row, (bytes, offload)) in waiting.drain(..n).enumerate() {
            assert!(fresh.write(row, &bytes));
            fresh.set_offload(row, &offload).unwrap();
        }
        fresh.prepare(|_, packet| packet.set(Col::TX, 0));
        fresh.send(Next::Output)
    }
}

/// One egress interface.
struct Bench {
    worker: Worker,
    engine: Rc<RefCell<Engine>>,
    pool: Arc<Pool>,
    host: DriverHost,
    index: IfIdx,
    waiting: Packets,
    sent: Packets,
}

impl Bench {
    fn new(caps: Caps, buffers: usize) -> Self {
        let pool = Pool::new(buffers).unwrap();
        let settings = Settings {
            clock: Clock::manual(),
            ..Settings::default()
        };
        let engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
        let mut registry = Registry::new(engine);
        volley_iface::register(&mut registry).unwrap();
        let (sent, waiting) = (Packets::default(), Packets::default());
        let (out, feed) = (sent.clone(), waiting.clone());
        let host = registry.host();
        let new = NewInterface {
            caps,
            ..NewInterface::new("out0", "test")
        };
        let index = host.attach(new, move |_, _| Tx(out.clone())).unwrap();
        let up = Admin::request("out0", AdminState::Up).unwrap();
        registry.owners.apply(&up).unwrap().unwrap();
        let engine = registry.engine.clone();
        let added = engine
            .borrow_mut()
            .add_source("test-rx", move |_| Rx(feed.clone()));
        added.unwrap();
        let worker = engine.borrow_mut().build().unwrap().pop().unwrap();
        Bench {
            worker,
            engine,
            pool,
            host,
            index,
            waiting,
            sent,
        }
    }

    /// Sends packets through the output path and returns those that leave.
    fn pass(&mut self, packets: Vec<(Vec<u8>, Offload)>) -> Vec<(Vec<u8>, Offload)> {
        *self.waiting.lock().unwrap() = packets;
        while self.worker.step() > 0 {}
        assert_eq!(self.pool.report().in_use(), 0, "every buffer came back");
        std::mem::take(&mut *self.sent.lock().unwrap())
    }

    fn count(&self, name: &str) -> u64 {
        let counters = self.engine.borrow().counters();
        let mine = counters.iter().filter(|c| c.node == "interface-tx");
        mine.filter(|c| c.info.name == name).map(|c| c.count).sum()
    }
}

fn bytes_of(packets: Vec<(Vec<u8>, Offload)>) -> Vec<Vec<u8>> {
    packets.into_iter().map(|(bytes, _)| bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn super_segments_become_the_packets_they_stand_for(flow in flow()) {
        let mut bench = Bench::new(Caps::NONE, 4096);
        let out = bench.pass(vec![(flow.partial(), flow.request(true))]);
        prop_assert!(out.iter().all(|(_, o)| *o == Offload::NONE));
        let (got, want) = (bytes_of(out), flow.segments());
        prop_assert_eq!(got.len(), want.len());
        for (at, (got, want)) in got.iter().zip(&want).enumerate() {
            prop_assert!(got == want, "segment {}: {:02x?}", at, &got[..100.min(got.len())]);
        }
    }

    #[test]
    fn partial_checksums_are_finished(flow in flow()) {
        let mut bench = Bench::new(Caps::NONE, 4096);
        let out = bench.pass(vec![(flow.partial(), flow.request(false))]);
        prop_assert!(out == [(flow.whole(), Offload::NONE)]);
    }

    #[test]
    fn no_request_makes_a_worker_fall(
        bytes in proptest::collection::vec(any::<u8>(), 0..300), long in any::<bool>(), ip in 0usize..3,
        hdr in (any::<u8>(), 0u8..7, any::<u16>(), 0u16..400, 0u16..20), headers in any::<u16>(),
    ) {
        let mut bytes = bytes;
        if long {
            bytes.resize(5000, 0x45);
        }
        if let Some(kind) = bytes.get_mut(12..15) {
            kind.copy_from_slice(&[[8, 0, 0x45], [0x86, 0xdd, 0x60], [0x81, 0, 0]][ip]);
        }
        let (flags, gso_type, gso_size, csum_start, csum_offset) = hdr;
        let hdr = VirtioNetHdr { flags, gso_type, hdr_len: 0, gso_size, csum_start, csum_offset };
        let mut packets = Vec::new();
        if let Ok(offload) = hdr.to_offload(&bytes) {
            packets.push((bytes.clone(), offload));
        }
        // A request without a check of the headers.
        let gso = Gso { kind: GsoProtocol::Tcp6.into(), size: gso_size, headers };
        let sum = Checksum { start: csum_start, offset: csum_offset };
        let raw = Offload { checksum: Some(sum), gso: Some(gso) };
        if raw.check(bytes.len().min(2048)).is_ok() {
            packets.push((bytes, raw));
        }
        Bench::new(Caps::NONE, 4096).pass(packets);
    }
}

#[test]
fn a_driver_that_can_is_given_the_work_and_order_is_kept() {
    let caps = Caps {
        checksum: true,
        tcp4: true,
        ..Caps::NONE
    };
    let mut bench = Bench::new(caps, 4096);
    let (a, mut b) = (tcp(4000, 1000), tcp(4000, 1000));
    b.six = true;
    let plain = (tcp(10, 100).whole(), Offload::NONE);
    let all = vec![
        (a.partial(), a.request(true)),
        plain.clone(),
        (b.partial(), b.request(true)),
        plain.clone(),
        (b.partial(), b.request(false)),
    ];
    let out = bench.pass(all.clone());
    assert!(out[0] == all[0] && out[1] == plain && out[6] == plain && out[7] == all[4]);
    assert_eq!(bytes_of(out[2..6].to_vec()), b.segments());
    bench.host.set_caps(bench.index, Caps::NONE);
    assert_eq!(bench.pass(all).len(), 4 + 1 + 4 + 1 + 1);
    let counted = ["super-segments", "segments", "checksums"].map(|c| bench.count(c));
    assert_eq!(counted, [3, 12, 1]);
}

#[test]
fn a_trace_names_the_protocol_of_a_super_segment() {
    let mut bench = Bench::new(Caps::NONE, 4096);
    let mut six = tcp(3000, 1000);
    six.six = true;
    for (flow, text) in [
        (
            tcp(3000, 1000),
            ", TCP over IPv4 to be cut every 1000 bytes",
        ),
        (six, ", TCP over IPv6 to be cut every 1000 bytes"),
    ] {
        let mut engine = bench.engine.borrow_mut();
        engine.clear_traces().unwrap();
        engine.trace("interface-output", 1, None).unwrap();
        drop(engine);
        bench.pass(vec![(flow.partial(), flow.request(true))]);
        let traces = bench.engine.borrow_mut().traces(&|_| String::new());
        let step = &traces[0].steps[0];
        assert_eq!(step.node, "interface-output");
        assert!(step.text.contains(text), "{}", step.text);
    }
}

#[test]
fn segments_without_a_checksum_request_are_cut_here() {
    let every = Caps {
        checksum: true,
        tcp4: true,
        tcp6: true,
        udp: true,
    };
    let mut bench = Bench::new(every, 4096);
    let flow = tcp(3000, 1400);
    let request = Offload {
        checksum: None,
        ..flow.request(true)
    };
    let out = bench.pass(vec![(flow.whole(), request)]);
    assert_eq!(bytes_of(out), flow.segments());
}

#[test]
fn bad_requests_and_missing_buffers_are_counted_drops() {
    let mut bench = Bench::new(Caps::NONE, 64);
    let flow = tcp(40_000, 700);
    let right = flow.request(true);
    let gso = right.gso.unwrap();
    let with = |gso| Offload {
        gso: Some(gso),
        ..right
    };
    let bad = [
        with(Gso { headers: 60, ..gso }),
        with(Gso {
            kind: GsoProtocol::Tcp6.into(),
            ..gso
        }),
        with(Gso {
            kind: GsoProtocol::Udp.into(),
            ..gso
        }),
        with(Gso { size: 1, ..gso }),
    ];
    for (at, offload) in bad.into_iter().enumerate() {
        assert!(bench.pass(vec![(flow.partial(), offload)]).is_empty());
        assert_eq!(bench.count("bad-offload"), at as u64 + 1);
    }
    let out = bench.pass(vec![(flow.partial(), right)]);
    assert!(out.len() < 58);
    assert_eq!(bench.count("no-buffers"), 1);
}

/// Cases in the format of `tests/oracle/offload.py`.
fn cases() -> Vec<String> {
    let lens = [1, 99, 100, 101, 536, 1447, 1448, 1449, 2048, 9000, 64_000];
    let kinds = [(false, false), (false, true), (true, false), (true, true)];
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let mut lines = Vec::new();
    for (n, len) in lens.into_iter().enumerate() {
        for ((six, udp), gso) in kinds.into_iter().flat_map(|k| [(k, false), (k, true)]) {
            let flow = Flow {
                six,
                udp,
                tags: (n % 3) as u8,
                options: if udp { 0 } else { n as u8 % 4 },
                flags: 0xb9,
                ..tcp(len, [100, 1448][usize::from(len > 2000)])
            };
            let packet = (flow.partial(), flow.request(gso));
            let out = bytes_of(Bench::new(Caps::NONE, 4096).pass(vec![packet]));
            let out: Vec<String> = out.iter().map(|bytes| hex(bytes)).collect();
            let size = if gso { flow.size } else { 0 };
            let frame = hex(&flow.partial());
            lines.push(format!(
                "{{\"frame\":\"{frame}\",\"size\":{size},\"out\":{out:?}}}\n"
            ));
        }
    }
    lines
}

#[test]
fn scapy_cuts_alike() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let python = std::env::var_os("VOLLEY_PYTHON").unwrap_or_else(|| {
        let target = std::env::var_os("CARGO_TARGET_DIR");
        let target = target.map_or(root.join("target"), |dir| root.join(dir));
        target.join("venv/bin/python").into()
    });
    let mut scapy = Command::new(&python);
    scapy.args(["-c", "import scapy.all"]).stderr(Stdio::null());
    if !scapy.status().is_ok_and(|s| s.success()) {
        eprintln!("SKIP: no Python with scapy (cargo xtask install, or set VOLLEY_PYTHON)");
        return;
    }
    let lines = cases();
    let mut child = Command::new(&python)
        .arg(root.join("tests/oracle/offload.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    to.write_all(lines.concat().as_bytes()).unwrap();
    drop(to);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let agreed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(agreed.trim(), lines.len().to_string());
}
