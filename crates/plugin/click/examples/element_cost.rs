//! What each element costs a packet: runs a graph with the element and one without it, in rounds with full vectors.
//!
//! `element_cost` prints a line for each element: the name, the packets, and the nanoseconds of the rounds. The first line is that
//! of the graph without an element. `cargo xtask show nodes --only click` runs it under callgrind, which counts the
//! instructions of each call of `measured`.
//!
//! `element_cost router [LEVEL]` runs `router.click`, Click's IP router for two interfaces, and prints the packets that it forwarded,
//! the TSC cycles of the rounds, and those of the source (`--only click-speed`).
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use volley_click::graph::{Environment, build};
use volley_click::{Live, Spec};
use volley_click_lang::Source;
use volley_graph::buf::Pool;
use volley_graph::{Clock, Domain, Engine, Level, Settings, Worker, cycles};

/// Packets of a vector.
const SIZE: usize = 256;
/// Rounds before those that are measured, and those.
const ROUNDS: (usize, usize) = (20, 50);
/// Rounds of the router.
const LONG: usize = 2_000;

/// A frame with a datagram of UDP, and one with an ARP request.
const UDP: &str = "0200000000020200000000010800450000320007000040116\
6af0a0000010a00010203e80035001e0000000102030405060708090a0b0c0d0e0f101112131415";
const ARP: &str = "ffffffffffff02000000000108060001080006040001020000000001\
0a0000010000000000000a000102000000000000000000000000000000000000";

/// The elements with arguments, and those that need more than one element: `>` is where the packets come from.
const GRAPHS: &[(&str, &str)] = &[
    (
        "ARPQuerier",
        "> e :: ARPQuerier(10.0.1.254, 02:00:00:00:00:02) -> Discard; Idle -> [1] e;",
    ),
    (
        "ARPResponder",
        "arp ARPResponder(10.0.1.0/24 02:00:00:00:00:02) -> Discard;",
    ),
    (
        "BandwidthMeter",
        "> e :: BandwidthMeter(1MBps) -> Discard; e [1] -> Discard;",
    ),
    (
        "BandwidthRatedUnqueue",
        "> Queue -> BandwidthRatedUnqueue(100GBps) -> Discard;",
    ),
    (
        "BandwidthShaper",
        "> Queue -> BandwidthShaper(100GBps) -> Unqueue -> Discard;",
    ),
    ("CheckLength", "> CheckLength(1500) -> Discard;"),
    ("CheckPaint", "> CheckPaint(0) -> Discard;"),
    (
        "Classifier",
        "> e :: Classifier(12/0806 20/0001, 12/0800, -) -> Discard; e [1] -> Discard; e [2] -> Discard;",
    ),
    ("DelayUnqueue", "> Queue -> DelayUnqueue(0s) -> Discard;"),
    ("Discard", ">"),
    (
        "EtherEncap",
        "> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> Discard;",
    ),
    (
        "EtherRewrite",
        "> EtherRewrite(02:00:00:00:00:01, 02:00:00:00:00:02) -> Discard;",
    ),
    ("FixIPSrc", "> FixIPSrc(192.0.2.1) -> Discard;"),
    ("GetIPAddress", "> GetIPAddress(30) -> Discard;"),
    (
        "HashSwitch",
        "> e :: HashSwitch(26, 4) -> Discard; e [1] -> Discard;",
    ),
    (
        "HostEtherFilter",
        "> HostEtherFilter(02:00:00:00:00:02) -> Discard;",
    ),
    (
        "ICMPError",
        "> ICMPError(192.0.2.1, unreachable, port) -> Discard;",
    ),
    (
        "ICMPPingResponder",
        "> e :: ICMPPingResponder -> Discard; e [1] -> Discard;",
    ),
    (
        "IPAddrPairRewriter",
        "> IPAddrPairRewriter(pattern 192.0.2.1 - 0 0) -> Discard;",
    ),
    (
        "IPClassifier",
        "> e :: IPClassifier(tcp port 80, src net 10.0.0.0/8 and udp, -) -> Discard; e [1] -> Discard; e [2] -> Discard;",
    ),
    ("IPEncap", "> IPEncap(4, 192.0.2.1, 192.0.2.2) -> Discard;"),
    (
        "IPFilter",
        "> IPFilter(deny src host 192.0.2.1, deny dst tcp port 25, allow all) -> Discard;",
    ),
    ("IPFragmenter", "> IPFragmenter(1500) -> Discard;"),
    ("IPGWOptions", "> IPGWOptions(192.0.2.1) -> Discard;"),
    (
        "IPRewriter",
        "> IPRewriter(pattern 192.0.2.1 1024-65535 - - 0 0) -> Discard;",
    ),
    (
        "LinkUnqueue",
        "> Queue -> LinkUnqueue(0s, 100GBps) -> Discard;",
    ),
    ("Meter", "> e :: Meter(1000) -> Discard; e [1] -> Discard;"),
    ("Paint", "> Paint(1) -> Discard;"),
    ("PaintTee", "> PaintTee(1) -> Discard;"),
    ("PrioSched", "> Queue -> PrioSched -> Unqueue -> Discard;"),
    (
        "SimplePrioSched",
        "> Queue -> SimplePrioSched -> Unqueue -> Discard;",
    ),
    (
        "StrideSched",
        "> Queue -> StrideSched(1) -> Unqueue -> Discard;",
    ),
    ("DRRSched", "> Queue -> DRRSched -> Unqueue -> Discard;"),
    (
        "TCPRewriter",
        "> TCPRewriter(pattern 192.0.2.1 1024-65535 - - 0 0) -> Discard;",
    ),
    (
        "UDPRewriter",
        "> UDPRewriter(pattern 192.0.2.1 1024-65535 - - 0 0) -> Discard;",
    ),
    (
        "PullTee",
        "> Queue -> e :: PullTee -> Unqueue -> Discard; e [1] -> Discard;",
    ),
    ("PullNull", "> Queue -> PullNull -> Unqueue -> Discard;"),
    ("Queue", "> Queue -> Unqueue -> Discard;"),
    (
        "RED",
        "> RED(1000, 2000, 0.1) -> Queue -> Unqueue -> Discard;",
    ),
    ("RandomSample", "> RandomSample(0.5) -> Discard;"),
    (
        "RatedSplitter",
        "> e :: RatedSplitter(1000) -> Discard; e [1] -> Discard;",
    ),
    (
        "RatedUnqueue",
        "> Queue -> RatedUnqueue(1000000000) -> Discard;",
    ),
    (
        "RoundRobinSched",
        "> Queue -> RoundRobinSched -> Unqueue -> Discard;",
    ),
    (
        "RoundRobinSwitch",
        "> e :: RoundRobinSwitch -> Discard; e [1] -> Discard;",
    ),
    ("SetIPAddress", "> SetIPAddress(192.0.2.1) -> Discard;"),
    ("SetIPDSCP", "> SetIPDSCP(46) -> Discard;"),
    (
        "Shaper",
        "> Queue -> Shaper(1000000000) -> Unqueue -> Discard;",
    ),
    ("SimpleQueue", "> SimpleQueue -> Unqueue -> Discard;"),
    ("StaticSwitch", "> StaticSwitch(0) -> Discard;"),
    ("StoreData", "> StoreData(0, \\<0102>) -> Discard;"),
    ("Strip", "> Strip(14) -> Discard;"),
    ("Switch", "> Switch(0) -> Discard;"),
    ("Tee", "> e :: Tee -> Discard; e [1] -> Discard;"),
    (
        "ThreadSafeQueue",
        "> ThreadSafeQueue -> Unqueue -> Discard;",
    ),
    ("Truncate", "> Truncate(40) -> Discard;"),
    (
        "UDPIPEncap",
        "> UDPIPEncap(192.0.2.1, 5, 192.0.2.2, 6) -> Discard;",
    ),
    ("Unqueue", "> Queue -> Unqueue -> Discard;"),
    ("Unstrip", "> Unstrip(14) -> Discard;"),
    ("VLANEncap", "> VLANEncap(VLAN_ID 7) -> Discard;"),
];
/// Elements that no graph without interfaces and files has, or that make packets without end.
const OTHERS: &[&str] = &[
    "FromDevice",
    "PollDevice",
    "ToDevice",
    "ToHost",
    "ToHostSniffers",
    "AddressInfo",
    "AlignmentInfo",
    "ClickyInfo",
    "IPRewriterPatterns",
    "ScheduleInfo",
    "FastUDPSource",
    "TimedSink",
    "FromDump",
    "ToDump",
    "InfiniteSource",
    "ICMPPingSource",
    "RatedSource",
    "TimedSource",
    "Idle",
];
/// Routes of the elements that look up.
const ROUTES: &str = "10.0.0.0/8 0, 10.0.1.0/24 192.0.2.1 1, 0.0.0.0/0 192.0.2.9 1";

/// The graph of an element class.
fn graph(spec: &Spec) -> String {
    let known = GRAPHS.iter().find(|(name, _)| *name == spec.name);
    match known {
        Some((_, text)) => (*text).to_owned(),
        None if spec.name.contains("Lookup") => {
            format!(
                "> e :: {}({ROUTES}) -> Discard; e [1] -> Discard;",
                spec.name
            )
        }
        None => format!("> {} -> Discard;", spec.name),
    }
}

/// Packets for a graph: with the mark of their header and their destination.
fn with_source(graph: &str) -> String {
    let udp =
        format!("InfiniteSource(\\<{UDP}>, BURST {SIZE}) -> CheckIPHeader(14, CHECKSUM false) ->");
    let arp = format!("InfiniteSource(\\<{ARP}>, BURST {SIZE}) ->");
    match (graph, graph.strip_prefix("arp "), graph.strip_prefix("> ")) {
        (_, Some(rest), _) => format!("{arp} {rest}"),
        (_, _, Some(rest)) => format!("{udp} {rest}"),
        _ => format!("{udp} Discard;"),
    }
}

/// The rounds that are measured.
#[inline(never)]
fn measured(worker: &mut Worker) -> usize {
    worker.steps(ROUNDS.1)
}

/// A graph on a worker.
struct Bench {
    engine: Engine,
    worker: Worker,
    live: Live,
}

fn bench(name: &str, text: String, level: Level) -> Result<Bench, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let settings = Settings {
        vector_size: SIZE,
        buffers: 4096,
        level,
        workers: 1,
        clock: Clock::system(),
    };
    let pool = Pool::new(4096).map_err(|error| failed(&error))?;
    let domain = Domain::new();
    let mut engine = Engine::new(settings, pool, domain.clone()).map_err(|it| failed(&it))?;
    let interface = |name: &str| Err(format!("there is no interface {name}"));
    let environment = Environment {
        interface: &interface,
        addresses: &|_| None,
        domain: &domain,
        folder: Path::new("/"),
        vector_size: SIZE,
    };
    let mut live = Live::new(&domain);
    let source = Source::new(name, text);
    let graph = build(&source, &environment, &live).map_err(|error| failed(&error))?;
    live.change(&mut engine, graph)
        .map_err(|error| failed(&error))?;
    let mut workers = engine.build().map_err(|error| failed(&error))?;
    Ok(Bench {
        engine,
        worker: workers.pop().ok_or("there is no worker")?,
        live,
    })
}

fn run(name: &str, graph: &str) -> Result<String, String> {
    let mut bench = bench(name, with_source(graph), Level::detect())?;
    let worker = &mut bench.worker;
    worker.steps(ROUNDS.0);
    let begin = Instant::now();
    let packets = measured(worker);
    let took = begin.elapsed().as_nanos();
    if packets < ROUNDS.1 * SIZE {
        return Err(format!("{name}: only {packets} packets"));
    }
    Ok(format!("{name} {} {took}", ROUNDS.1 * SIZE))
}

/// The router: packets, cycles of the rounds, cycles of the source.
fn router(level: Level) -> Result<String, String> {
    let mut bench = bench("router", include_str!("router.click").to_owned(), level)?;
    let source = |bench: &Bench| {
        let nodes = bench.engine.runtime(0);
        let found = nodes.iter().find(|it| it.name == "click/source");
        found.map_or(0, |it| it.clocks)
    };
    let forwarded = |bench: &Bench| {
        let mut all = bench.live.placed();
        let out = all.find(|it| it.name == "out1");
        let count = out.and_then(|it| it.read("count").ok());
        count.and_then(|it| it.parse::<usize>().ok()).unwrap_or(0)
    };
    bench.worker.steps(ROUNDS.0);
    let before = (source(&bench), forwarded(&bench));
    let begin = cycles();
    let (mut packets, mut rounds) = (0, 0);
    while rounds < LONG {
        packets += measured(&mut bench.worker);
        rounds += ROUNDS.1;
    }
    let all = cycles() - begin;
    let (of_source, passed) = (source(&bench) - before.0, forwarded(&bench) - before.1);
    // A packet counts when the source makes it, and when the queue releases it.
    match 2 * passed == packets {
        true => Ok(format!("router {passed} {all} {of_source}")),
        false => Err(format!(
            "router: {passed} of {} packets passed",
            packets / 2
        )),
    }
}

fn all() -> Result<(), String> {
    println!("nothing{}", run("", ">")?);
    for spec in volley_click::all().filter(|it| !OTHERS.contains(&it.name)) {
        println!("{}", run(spec.name, &graph(spec))?);
    }
    Ok(())
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let done = match words.next().as_deref() {
        Some("router") => {
            let level = words.next().map_or(Ok(Level::detect()), |it| it.parse());
            let level = level.map_err(|error| error.to_string());
            level.and_then(router).map(|line| println!("{line}"))
        }
        _ => all(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
