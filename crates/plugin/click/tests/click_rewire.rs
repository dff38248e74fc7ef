//! Graphs that change while packets flow: what is in both goes on, and no packet is lost.

mod support;

use std::time::Duration;
use support::{Bench, read_file, write_file};

const STEP: Duration = Duration::from_micros(50);

/// Random numbers by a linear congruence: every run is the same.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A part of a graph, and what else it needs. Parts of the same name may be of another class in the next graph.
fn part(random: &mut Random, at: usize, size: usize) -> (String, String) {
    let none = String::new();
    // No queue is full before the buffers are used up.
    let room = 250 * size as u64 + 100 * random.below(2);
    match random.below(11) {
        0 => ("Null".to_owned(), none),
        1 => (format!("e{at} :: Counter"), none),
        2 => (format!("e{at} :: Null"), none),
        3 => (format!("Queue({room}) -> Unqueue"), none),
        4 => (format!("q{at} :: Queue({room}) -> Unqueue"), none),
        // Holds packets until the graph changes.
        5 => (
            format!("q{at} :: Queue({room}) -> Unqueue(ACTIVE false)"),
            none,
        ),
        6 => (
            format!("t{at} :: Tee"),
            format!("t{at} [1] -> Strip(4) -> Discard;"),
        ),
        7 => (
            format!("k{at} :: Classifier(11/00%01, -) -> j{at} :: Null"),
            format!("k{at} [1] -> EtherMirror -> EtherMirror -> j{at};"),
        ),
        8 => (
            format!("Queue({room}) -> l{at} :: LinkUnqueue(300us, 1GBps)"),
            none,
        ),
        9 => (
            format!("Queue({room}) -> e{at} :: DelayUnqueue(80us)"),
            none,
        ),
        _ => (
            "{ -> Strip(6) -> Paint(3) -> Unstrip(6) -> }".to_owned(),
            none,
        ),
    }
}

fn graph(random: &mut Random, size: usize) -> String {
    let (mut chain, mut others) = (Vec::new(), Vec::new());
    for _ in 0..random.below(5) {
        let (link, other) = part(random, chain.len(), size);
        chain.push(link);
        others.push(other);
    }
    let middle: String = chain.iter().map(|it| format!("{it} -> ")).collect();
    format!(
        "src :: FromDump(in.pcap) -> total :: Counter -> {middle}out :: ToDump(out.pcap);\n{}",
        others.join("\n")
    )
}

/// Changes a graph this often while packets pass, and compares what comes out with what went in.
fn changes(times: usize, size: usize) {
    let mut random = Random(size as u64);
    let frames: Vec<Vec<u8>> = (0..(times * 3 * size) as u32)
        .map(|n| [&[2; 8][..], &n.to_be_bytes(), &[8; 20]].concat())
        .collect();
    let folder = tempfile::tempdir().unwrap();
    write_file(&folder.path().join("in.pcap"), &frames);
    let first = "src :: FromDump(in.pcap) -> total :: Counter -> out :: ToDump(out.pcap);";
    let mut bench = Bench::new(first, folder.path(), size).unwrap();
    let mut held = 0;
    for n in 0..times {
        let text = graph(&mut random, size);
        bench
            .change(&text)
            .unwrap_or_else(|error| panic!("{n}: {error}\n{text}"));
        bench.rounds(random.below(4) as usize, STEP);
        held += usize::from(read(&bench, ".length").iter().any(|it| *it > 0));
    }
    bench.change(first).unwrap();
    bench.rounds(frames.len() / size + 20, STEP);
    assert_eq!(bench.read("total.count"), frames.len().to_string());
    assert_eq!(bench.read("src.count"), bench.read("out.count"));
    assert!(bench.is_empty(), "buffers are lost");
    assert!(bench.drops().is_empty(), "{:?}", bench.drops());
    assert!(
        held > times / 20,
        "only {held} graphs of {times} were changed with packets in a queue"
    );
    let mut out = read_file(&folder.path().join("out.pcap"));
    out.sort();
    assert!(out == frames, "{} frames of {}", out.len(), frames.len());
}

/// The values of a handler of all elements that have it.
fn read(bench: &Bench, handler: &str) -> Vec<u64> {
    let name = &handler[1..];
    let all = bench
        .live
        .placed()
        .filter_map(|it| it.read(name).ok()?.parse().ok());
    all.collect()
}

#[test]
fn graphs_change_under_traffic_and_lose_nothing() {
    changes(50, 4);
    changes(50, 64);
}

#[test]
#[ignore = "long: cargo xtask show nodes --only rewire"]
fn a_thousand_graphs_follow_each_other_under_traffic() {
    changes(1000, 4);
    changes(1000, 256);
}

#[test]
fn what_is_the_same_goes_on_with_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let first = "s :: RatedSource(RATE 1000) -> c :: Counter -> q :: Queue(100) -> u :: Unqueue(ACTIVE false) -> d :: Discard;\n\
        r :: InfiniteSource(LIMIT 7, BURST 1) -> w :: RoundRobinSwitch -> a :: Counter -> Discard; w [1] -> b :: Counter -> Discard;";
    let mut bench = Bench::new(first, folder.path(), 64).unwrap();
    bench.rounds(51, Duration::from_millis(1));
    bench.write("u.active", "0");
    let count: u64 = bench.read("c.count").parse().unwrap();
    assert!((50..=52).contains(&count), "{count}");
    assert_eq!(bench.read("q.length"), count.to_string());
    // Other lines, one more element, another argument of an element behind the queue: counters, queue and switch go on.
    let second = "r :: InfiniteSource(LIMIT 7, BURST 1) -> w :: RoundRobinSwitch -> a :: Counter -> Discard; w [1] -> b :: Counter -> Discard;\n\
        s :: RatedSource(RATE 1000) -> Null -> c :: Counter -> q :: Queue(100) -> u :: Unqueue -> d :: Discard;";
    bench.change(second).unwrap();
    bench.rounds(5, Duration::from_millis(1));
    let later: u64 = bench.read("c.count").parse().unwrap();
    assert!((count + 4..=count + 6).contains(&later), "{later}");
    assert_eq!(bench.read("q.length"), "0");
    assert_eq!(bench.read("d.count"), later.to_string());
    assert_eq!(
        (bench.read("a.count"), bench.read("b.count")),
        ("4".into(), "3".into())
    );
    // Another class or other arguments of the same name begin again.
    bench
        .change(&second.replace("c :: Counter", "c :: AverageCounter"))
        .unwrap();
    bench.rounds(2, Duration::from_millis(1));
    assert!(bench.read("c.count").parse::<u64>().unwrap() <= 3);
    bench.change("").unwrap();
    bench.rounds(2, Duration::from_millis(1));
    assert!(bench.is_empty() && bench.live.placed().next().is_none());
}

#[test]
fn packets_of_a_queue_that_leaves_take_the_old_way() {
    let folder = tempfile::tempdir().unwrap();
    let frames: Vec<Vec<u8>> = (0..90u8).map(|n| vec![n; 40]).collect();
    write_file(&folder.path().join("in.pcap"), &frames);
    let first = "FromDump(in.pcap) -> q :: Queue -> u :: Unqueue(ACTIVE false) -> Strip(10) -> p :: Queue -> Unqueue(ACTIVE false) \
        -> Strip(5) -> out :: ToDump(out.pcap);";
    let mut bench = Bench::new(first, folder.path(), 64).unwrap();
    bench.rounds(5, STEP);
    assert_eq!(bench.read("q.length"), "90");
    bench.change("Idle -> out :: ToDump(out.pcap);").unwrap();
    bench.rounds(2, STEP);
    let stripped: Vec<Vec<u8>> = frames.iter().map(|it| it[15..].to_vec()).collect();
    assert_eq!(read_file(&folder.path().join("out.pcap")), stripped);
    assert!(bench.is_empty());
}

#[test]
fn a_refused_graph_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let text = "s :: InfiniteSource(LIMIT 1000, BURST 1) -> c :: Counter -> q :: Queue -> Unqueue(ACTIVE false) -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(10, STEP);
    for wrong in [
        "Idle -> Discrd",
        "s :: InfiniteSource -> ToDump(none/x.pcap);",
        "a :: Null",
    ] {
        let error = bench.change(wrong).unwrap_err();
        assert!(error.starts_with("t.click:1:"), "{error}");
    }
    bench.rounds(10, STEP);
    assert_eq!(
        (bench.read("c.count"), bench.read("q.length")),
        ("20".into(), "20".into())
    );
}
