//! Elements against linear models, rates over time, handlers, and what is refused.

mod support;

use proptest::prelude::*;
use std::time::Duration;
use support::{Bench, read_file, refusal, run};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_source_makes_its_packets_and_counters_count_them() {
    let folder = tempfile::tempdir().unwrap();
    let text = "s :: InfiniteSource(\"abcd\", 100, 7) -> c :: Counter -> q :: Queue(50) -> u :: Unqueue(ACTIVE false) -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(30, MS);
    assert_eq!(
        (bench.read("c.count"), bench.read("c.byte_count")),
        ("100".into(), "400".into())
    );
    assert_eq!(
        (bench.read("q.length"), bench.read("q.drops")),
        ("50".into(), "50".into())
    );
    assert_eq!(
        bench.drops(),
        [("click/q".to_owned(), "queue-full".to_owned(), 50)]
    );
    bench.write("u.active", "true");
    bench.engine.wake();
    bench.rounds(3, MS);
    assert_eq!(
        (bench.read("q.length"), bench.read("q.highwater_length")),
        ("0".into(), "50".into())
    );
    bench.write("c.reset_counts", "");
    assert_eq!(bench.read("c.count"), "0");
    assert!(bench.is_empty());
}

#[test]
fn rates_hold_over_time() {
    for (element, rate) in [
        ("RatedUnqueue(2000)", 2000.0),
        ("Shaper(500) -> Unqueue", 500.0),
        ("BandwidthShaper(80kbps) -> Unqueue", 100.0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "InfiniteSource(LENGTH 100, DATA \"x\") -> Queue(1000) -> {element} -> c :: Counter -> Discard;"
        );
        let mut bench = Bench::new(&text, folder.path(), 64).unwrap();
        bench.rounds(5000, MS);
        let count: f64 = bench.read("c.count").parse().unwrap();
        assert!((count - 5.0 * rate).abs() <= 3.0, "{element}: {count}");
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "RatedSource(RATE 300) -> c :: AverageCounter -> Discard; TimedSource(0.25) -> t :: Counter -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(10_001, MS);
    let count: i64 = bench.read("c.count").parse().unwrap();
    assert!((count - 3000).abs() <= 2, "{count}");
    let average: f64 = bench.read("c.rate").parse().unwrap();
    assert!((average - 300.0).abs() < 1.0, "{average}");
    assert_eq!(bench.read("t.count"), "40");
}

#[test]
fn a_meter_and_a_splitter_divide_by_rate() {
    let folder = tempfile::tempdir().unwrap();
    let text = "RatedSource(RATE 1000) -> m :: Meter(400, 2000) -> a :: Counter -> Discard; m[1] -> b :: Counter -> Discard; m[2] -> c :: Counter -> Discard;\n\
        RatedSource(RATE 1000) -> s :: RatedSplitter(250) -> d :: Counter -> Discard; s[1] -> e :: Counter -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(10_000, MS);
    let count = |name: &str| bench.read(name).parse::<i64>().unwrap();
    // The average needs some intervals to pass the first limit.
    assert!(count("a.count") < 200 && count("b.count") > 9_700 && count("c.count") == 0);
    assert!((count("d.count") - 2500).abs() < 5 && (count("e.count") - 7500).abs() < 10);
}

/// The labels of the printed lines, in order.
fn labels(bench: &Bench) -> Vec<char> {
    let lines = bench.lines.iter();
    lines.filter_map(|it| it.chars().next()).collect()
}

#[test]
fn a_reader_takes_packets_of_several_queues_by_priority_tickets_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let ran = |scheduler: &str, lengths: [usize; 2]| {
        let [a, b] = lengths;
        let text = format!(
            "s :: {scheduler} -> RatedUnqueue(1000) -> c :: Classifier(0/61, -) -> a :: Counter -> Print(a) -> Discard; c [1] -> b :: Counter -> Print(b) -> Discard;\n\
             InfiniteSource(\"a\", LENGTH {a}, LIMIT 400) -> Queue(400) -> s; InfiniteSource(\"b\", LENGTH {b}, LIMIT 400) -> Queue(400) -> [1] s;"
        );
        let mut bench = Bench::new(&text, folder.path(), 32).unwrap();
        bench.rounds(300, MS);
        let count = |name: &str| bench.read(name).parse::<usize>().unwrap();
        let both = (count("a.count"), count("b.count"));
        (both, labels(&bench))
    };
    let ((a, b), order) = ran("PrioSched", [64, 64]);
    assert!((295..=305).contains(&a) && b == 0, "{a} and {b}: {order:?}");
    let ((a, b), _) = ran("StrideSched(1, 3)", [64, 64]);
    assert!((3 * a).abs_diff(b) < 20, "{a} and {b}");
    let ((a, b), _) = ran("DRRSched(500)", [100, 300]);
    assert!(a.abs_diff(3 * b) < 20, "{a} and {b}");
    // When the first queue is empty, the second one has its turn.
    let text = "s :: PrioSched -> RatedUnqueue(1000) -> p :: Print -> c :: Classifier(0/61, -) -> a :: Counter -> Discard; c [1] -> b :: Counter -> Discard;\n\
        InfiniteSource(\"a\", LIMIT 50) -> Queue -> s; InfiniteSource(\"b\", LIMIT 50) -> Queue -> [1] s;";
    let mut bench = Bench::new(text, folder.path(), 32).unwrap();
    bench.rounds(200, MS);
    assert_eq!(
        (bench.read("a.count"), bench.read("b.count")),
        ("50".into(), "50".into())
    );
    assert!(bench.is_empty());
}

#[test]
fn names_of_addresses_and_patterns_are_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let text = "AddressInfo(inside 10.0.0.1 10.0.0.0/8 0:50:ba:85:84:a9, outside 192.0.2.5 0:e0:98:9:ab:af, server 10.0.0.10);\n\
        IPRewriterPatterns(out outside 50000-65535 - -, in inside 50000-65535 server -);\n\
        ScheduleInfo(r 1);\n\
        InfiniteSource(\"data\", LIMIT 3) -> UDPIPEncap(server, 5, 203.0.113.9, 53, true) -> c :: IPClassifier(dst net inside, src net inside and dst udp port dns, -);\n\
        r :: IPRewriter(pattern out 0 1, pattern in 1 0); t :: TCPRewriter(pattern out 0 0, drop);\n\
        c -> Discard; c [1] -> r; c [2] -> Discard; Idle -> [1] r; Idle -> t -> Discard; Idle -> [1] t;\n\
        r -> f :: IPFilter(allow src host outside) -> EtherEncap(0x0800, outside:eth, inside) -> e :: Classifier(0/0050ba85 6/00e09809, -) -> ok :: Counter -> Discard;\n\
        e [1] -> bad :: Counter -> Discard; r [1] -> Discard;\n\
        q :: ARPQuerier(inside) -> Discard; Idle -> q; Idle -> [1] q; Idle -> ARPResponder(inside, outside:ip inside:eth) -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(5, MS);
    assert_eq!(
        (bench.read("ok.count"), bench.read("bad.count")),
        ("3".into(), "0".into())
    );
    let wrong = refusal("AddressInfo(a 10.0.0.1, b 10.0.0.300);");
    assert!(wrong.contains("'10.0.0.300' is no address of b"), "{wrong}");
    let unknown = refusal("Idle -> e :: EtherEncap(0x0800, outside, 2:0:0:0:0:1) -> Discard;");
    assert!(unknown.contains("must be a MAC address"), "{unknown}");
}

#[test]
fn a_timed_sink_takes_a_packet_in_each_interval() {
    let folder = tempfile::tempdir().unwrap();
    let text = "TimedSource(0.2) -> q :: Queue(20) -> [0] r :: RoundRobinSched; TimedSource(0.5) -> p :: Queue(20) -> [1] r; r -> c :: Counter -> TimedSink(0.5);\n\
        FastUDPSource(100, 5, 100, 2:0:0:0:0:1, 192.0.2.1, 5, 2:0:0:0:0:2, 192.0.2.2, 6) -> Strip(14) -> CheckIPHeader -> CheckUDPHeader -> u :: Counter -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(10_001, MS);
    let count: i64 = bench.read("c.count").parse().unwrap();
    assert!((count - 20).abs() <= 1, "{count}");
    assert_eq!(bench.read("u.count"), "5");
}

#[test]
fn packets_without_an_answer_to_arp_are_counted_drops() {
    let folder = tempfile::tempdir().unwrap();
    let text = "InfiniteSource(LIMIT 100, BURST 1) -> SetIPAddress(10.0.0.9) -> a :: ARPQuerier(10.0.0.1, 2:0:0:0:0:1) -> Discard; a[1] -> Discard; \
        Idle -> [1] a; later :: InfiniteSource(LIMIT 1, ACTIVE false) -> SetIPAddress(10.0.0.9) -> a;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(100, MS);
    let unresolved = |packets| [("click/a".to_owned(), "unresolved".to_owned(), packets)];
    // 64 wait.
    assert_eq!(bench.drops(), unresolved(36));
    bench.rounds(1, 4000 * MS);
    bench.write("later.active", "true");
    bench.rounds(2, MS);
    assert_eq!(bench.drops(), unresolved(100));
    assert_eq!(bench.read("a.drops"), "100");
    assert!(bench.is_empty());
}

/// Connections in a circle without a queue: a round ends all the same.
#[test]
fn packets_in_a_circle_of_elements_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let text = "InfiniteSource(LIMIT 30, BURST 10) -> a :: Counter -> b :: Null -> a;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(5, MS);
    assert_eq!(
        bench.drops(),
        [("error-drop".to_owned(), "loop".to_owned(), 30)]
    );
    assert!(bench.is_empty());
}

#[test]
fn handlers_switch_elements() {
    let folder = tempfile::tempdir().unwrap();
    let text = "s :: InfiniteSource(LIMIT 30, BURST 1) -> w :: Switch -> a :: Counter -> p :: Suppressor -> Discard; w[1] -> b :: Counter -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(10, MS);
    bench.write("w.switch", "1");
    bench.rounds(10, MS);
    bench.write("w.switch", "-1");
    bench.rounds(5, MS);
    bench.write("w.switch", "0");
    bench.write("p.active0", "false");
    bench.rounds(10, MS);
    assert_eq!(
        (bench.read("a.count"), bench.read("b.count")),
        ("15".into(), "10".into())
    );
    assert_eq!(
        bench.drops(),
        [
            ("click/w".to_owned(), "refused".to_owned(), 5),
            ("click/p".to_owned(), "refused".to_owned(), 5)
        ]
    );
    assert!(bench.read("a.ports").contains("input 0 push w[0]"));
    assert_eq!(bench.read("a.class"), "Counter");
    assert!(bench.read("w.handlers").contains("switch\trw"));
}

#[test]
fn a_sample_is_as_large_as_its_probability() {
    let folder = tempfile::tempdir().unwrap();
    let text = "InfiniteSource(LIMIT 20000, BURST 256) -> r :: RandomSample(0.25) -> a :: Counter -> Discard; r[1] -> b :: Counter -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 256).unwrap();
    bench.rounds(200, MS);
    let count: i64 = bench.read("a.count").parse().unwrap();
    assert!((count - 5000).abs() < 300, "{count}");
}

/// Whether the packet of each round was marked: one packet sees a queue of `length` in each.
fn marks(length: usize, arguments: &str, rounds: usize) -> Vec<bool> {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "InfiniteSource(LIMIT {length}, BURST 256) -> q :: Queue(200) -> Unqueue(ACTIVE false) -> Discard;\n\
         s :: InfiniteSource(BURST 1, ACTIVE false) -> r :: RED({arguments}, QUEUES q) -> Discard;"
    );
    let mut bench = Bench::new(&text, folder.path(), 256).unwrap();
    bench.rounds(2, MS);
    assert_eq!(bench.read("q.length"), length.to_string());
    assert_eq!(bench.read("r.queues"), "q\n");
    bench.write("s.active", "true");
    let drops = |bench: &Bench| bench.read("r.drops").parse::<u64>().unwrap();
    let mut all = Vec::new();
    for _ in 0..rounds {
        let before = drops(&bench);
        bench.rounds(1, MS);
        all.push(drops(&bench) > before);
    }
    all
}

/// Floyd and Jacobson, 1993, section 4: the number of packets between two marks is equally distributed.
#[test]
fn red_marks_by_the_average_length() {
    let share = |marks: &[bool]| {
        let marked = marks.iter().filter(|it| **it).count();
        marked as f64 / marks.len() as f64
    };
    let gap = |marks: &[bool]| {
        let places = marks.iter().enumerate().filter(|(_, it)| **it);
        let places: Vec<usize> = places.map(|(at, _)| at).collect();
        let gaps = places.windows(2).map(|it| it[1] - it[0]);
        gaps.max().unwrap_or(0)
    };
    // Up to the lower threshold none, at 30 one tenth by the average alone: every first to tenth packet.
    assert_eq!(share(&marks(10, "10, 50, 0.2, STABILITY 0", 300)), 0.0);
    let tenth = marks(30, "10, 50, 0.2, STABILITY 0", 6000);
    assert!(
        (share(&tenth) - 1.0 / 5.5).abs() < 0.02,
        "{}",
        share(&tenth)
    );
    assert_eq!(gap(&tenth), 10);
    // Above the upper threshold 0.2 rises to 1 at its double, or is 1.
    let gentle = marks(75, "10, 50, 0.2, STABILITY 0", 3000);
    assert!(
        (share(&gentle) - 1.0 / 1.4).abs() < 0.04,
        "{}",
        share(&gentle)
    );
    assert_eq!(gap(&gentle), 2);
    assert_eq!(share(&marks(100, "10, 50, 0.2, STABILITY 0", 50)), 1.0);
    let hard = marks(51, "10, 50, 0.2, STABILITY 0, GENTLE false", 50);
    assert_eq!(share(&hard), 1.0);
    // The average of 60 passes 50 with the packet n for which 60 - 60 (3/4)^n is above 50.
    let slow = marks(60, "50, 50, 1, STABILITY 2, GENTLE false", 20);
    let first = slow.iter().position(|it| *it).unwrap() as i32 + 1;
    let average = |n: i32| 60.0 - 60.0 * 0.75_f64.powi(n);
    assert!(
        average(first) > 50.0 && average(first - 1) <= 50.0,
        "{first}"
    );
    let wrong = refusal("Idle -> RED(5, 4, 0.5) -> Queue -> Unqueue -> Discard;");
    assert!(
        wrong.ends_with("MAX_THRESH of RED is 4, below MIN_THRESH 5: give a larger one"),
        "{wrong}"
    );
    for (text, why) in [
        (
            "Idle -> RED(4, 5, 0.5) -> Discard;",
            "there is no Queue behind RED@2 (RED)",
        ),
        (
            "Idle -> n :: Null -> RED(4, 5, 0.5, QUEUES n) -> Discard;",
            "n is no Queue",
        ),
        (
            "Idle -> nul :: Null -> RED(4, 5, 0.5, QUEUES nil) -> Discard;",
            "there is no element nil: did you mean nul?",
        ),
    ] {
        let refused = refusal(text);
        assert!(refused.contains(why), "{refused}");
    }
}

/// A vector is marked as if its packets came one by one.
#[test]
fn red_finds_the_queues_next_to_it_and_counts_the_packets_of_a_vector() {
    for size in [4, 64, 256] {
        let folder = tempfile::tempdir().unwrap();
        let text = "InfiniteSource(LIMIT 100, BURST 100) -> r :: RED(20, 20, 1, STABILITY 0, GENTLE false) -> Null -> q :: Queue(200) -> \
            u :: Unqueue(ACTIVE false) -> Discard; r [1] -> m :: Counter -> Discard;";
        let mut bench = Bench::new(text, folder.path(), size).unwrap();
        bench.rounds(30, MS);
        let seen = [
            bench.read("q.length"),
            bench.read("r.drops"),
            bench.read("m.count"),
        ];
        assert_eq!(seen, ["21", "79", "79"], "vectors of {size}");
        let stats = "21 current queue\n21 avg queue\n79 drops\n";
        assert_eq!(bench.read("r.stats"), stats, "vectors of {size}");
        // A reset of the numbers leaves the length, which RED reads.
        bench.write("q.reset_counts", "");
        let seen = ["q.length", "q.highwater_length"].map(|it| bench.read(it));
        assert_eq!(seen, ["21", "0"], "vectors of {size}");
        // The element goes on with another queue.
        let other = text.replace("q :: Queue", "p :: Queue");
        bench
            .change(&other.replace("LIMIT 100,", "LIMIT 9,"))
            .unwrap();
        bench.rounds(10, MS);
        assert_eq!(bench.read("r.queues"), "p\n");
        assert_eq!([bench.read("p.length"), bench.read("r.drops")], ["9", "79"]);
        let text = "InfiniteSource(LIMIT 100, BURST 100) -> q :: Queue(100) -> Null -> r :: RED(20, 20, 1, STABILITY 0, GENTLE false) -> \
            c :: Counter -> u :: Unqueue(ACTIVE false) -> Discard;";
        let mut bench = Bench::new(text, folder.path(), size).unwrap();
        bench.rounds(30, MS);
        bench.write("u.active", "true");
        bench.engine.wake();
        bench.rounds(3, MS);
        let seen = [bench.read("c.count"), bench.read("r.drops")];
        assert_eq!(seen, ["21", "79"], "vectors of {size}");
        assert_eq!(
            bench.drops(),
            [("click/r".to_owned(), "refused".to_owned(), 79)]
        );
        assert!(bench.is_empty());
    }
}

#[test]
fn packets_leave_a_delay_and_a_link_when_their_time_has_come() {
    let folder = tempfile::tempdir().unwrap();
    let text = "TimedSource(0.05) -> Queue -> DelayUnqueue(0.1s) -> c :: Counter -> Discard; Idle -> Queue -> d :: DelayUnqueue(20ms) -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    // Packets are made at 50 ms, 100 ms, and so on.
    let mut seen = Vec::new();
    for _ in 0..301 {
        bench.rounds(1, MS);
        seen.push(bench.read("c.count").parse::<usize>().unwrap());
    }
    let expected = |ms: usize| if ms < 150 { 0 } else { (ms - 150) / 50 + 1 };
    assert_eq!(seen, (0..=300).map(expected).collect::<Vec<_>>());
    assert_eq!(bench.read("d.delay"), "0.020000");

    // 1,000 bytes need 10 ms, and 30 ms to the other end; packets that find no room in the queue are lost.
    let text = "s :: InfiniteSource(LIMIT 8, LENGTH 1000, BURST 8) -> q :: Queue(5) -> Null -> l :: LinkUnqueue(30ms, 800kbps) -> c :: Counter -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    for ms in 0..100 {
        bench.rounds(1, MS);
        let begun = (ms / 10 + 1).min(5);
        let arrived = if ms < 40 {
            0
        } else {
            ((ms - 40) / 10 + 1).min(5)
        };
        let expected = [5 - begun, begun - arrived, arrived].map(|it| it.to_string());
        let seen = ["q.length", "l.size", "c.count"].map(|it| bench.read(it));
        assert_eq!(seen, expected, "{ms} ms");
    }
    assert_eq!(
        [bench.read("l.latency"), bench.read("l.bandwidth")],
        ["0.030000", "100000"]
    );
    assert_eq!(
        bench.drops(),
        [("click/q".to_owned(), "queue-full".to_owned(), 3)]
    );
    assert!(bench.is_empty());

    // Without a bandwidth only the latency counts; a reset drops what is on the link, and no later packet.
    let text = "s :: InfiniteSource(LIMIT 9, BURST 9) -> Queue -> l :: LinkUnqueue(1s, 0) -> c :: Counter -> Discard; \
        t :: InfiniteSource(LIMIT 2, ACTIVE false) -> Queue -> k :: LinkUnqueue(2ms, 0) -> d :: Counter -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 4).unwrap();
    bench.rounds(5, MS);
    assert_eq!(bench.read("l.size"), "9");
    for link in ["l", "k"] {
        bench.write(&format!("{link}.reset"), "");
    }
    bench.write("t.active", "true");
    bench.engine.wake();
    bench.rounds(1200, MS);
    assert_eq!([bench.read("c.count"), bench.read("d.count")], ["0", "2"]);
    assert_eq!(
        bench.drops(),
        [("click/l".to_owned(), "refused".to_owned(), 9)]
    );
    assert!(bench.is_empty());
}

#[test]
fn replies_to_pings_are_counted_and_timed() {
    let folder = tempfile::tempdir().unwrap();
    let text = "p :: ICMPPingSource(192.0.2.1, 192.0.2.2, INTERVAL 10ms, IDENTIFIER 7, LIMIT 5, DATA \"abc\", STOP true) -> t :: Tee -> ToDump(out.pcap); \
        t [1] -> CheckICMPHeader -> ICMPPingResponder -> Queue -> d :: DelayUnqueue(4ms) -> l :: Switch(0); \
        l [0] -> p; l [1] -> Discard; l [2] -> two :: Tee -> p; two [1] -> p;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(15, MS);
    // Two are answered after 4 ms, the next one is lost, and the one behind it is answered twice after 9 ms.
    bench.write("l.switch", "1");
    bench.rounds(10, MS);
    bench.write("l.switch", "2");
    bench.write("d.delay", "9ms");
    bench.rounds(15, MS);
    bench.write("l.switch", "1");
    bench.rounds(30, MS);
    assert!(bench.live.wants_end());
    assert_eq!(
        bench.read("p.summary"),
        "5 requests sent, 3 answered, 1 repeated answers, 40.0 % lost\n\
         round-trip time 0.004000 s minimum, 0.005666 s average, 0.009000 s maximum\n"
    );
    let times = ["p.rtt_min", "p.rtt_avg", "p.rtt_max", "p.interval"].map(|it| bench.read(it));
    assert_eq!(times, ["0.004000", "0.005666", "0.009000", "0.010000"]);
    let sent = read_file(&folder.path().join("out.pcap"));
    assert_eq!(sent.len(), 5);
    for (n, packet) in sent.iter().enumerate() {
        let mut expected = vec![
            0x45, 0, 0, 31, 0, n as u8, 0, 0, 255, 1, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
        ];
        with_sum(&mut expected);
        // The data have an odd length.
        let echo = [8, 0, 0, 0, 0, 7, 0, n as u8, b'a', b'b', b'c', 0];
        let [high, low] = sum(&echo).to_be_bytes();
        expected.extend([8, 0, high, low, 0, 7, 0, n as u8, b'a', b'b', b'c']);
        assert_eq!(*packet, expected);
    }
    bench.write("p.reset_counts", "");
    bench.write("p.dst", "192.0.2.9");
    bench.rounds(1, MS);
    assert_eq!(bench.read("p.dst"), "192.0.2.9");
    assert_eq!(bench.read("p.rtt_max"), "0.000000");
    bench.write("p.active", "false");
    bench.rounds(20, MS);
    assert!(bench.is_empty());
    // Without a connected input there is only the source.
    let text = "ICMPPingSource(192.0.2.1, 192.0.2.2, LIMIT 1) -> CheckIPHeader -> c :: Counter -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(5, MS);
    assert_eq!(bench.read("c.count"), "1");
    let why = refusal("Idle -> [1] ICMPPingSource(192.0.2.1, 192.0.2.2) -> Discard;");
    assert!(why.contains("has one input port, 0"), "{why}");
}

#[test]
fn lines_of_print_show_packets() {
    let folder = tempfile::tempdir().unwrap();
    let text = "InfiniteSource(\\<45000021000000001000000001020304050607080007000a>, 1) -> Print(a, 6) -> MarkIPHeader -> IPPrint(b) -> Discard;";
    let mut bench = Bench::new(text, folder.path(), 64).unwrap();
    bench.rounds(2, MS);
    assert_eq!(
        bench.lines,
        [
            "a:   24 | 45000021 0000",
            "b: 1.2.3.4 > 5.6.7.8: protocol 0 13"
        ]
    );
}

/// Configurations and the sentences that refuse them.
const REFUSED: &[(&str, &str)] = &[
    (
        "Idle -> Discrd",
        "t.click:1:9: there is no element and no class Discrd: did you mean Discard?",
    ),
    (
        "InfiniteSource(LIMT 5) -> Discard",
        "t.click:1:1: InfiniteSource has no argument LIMT: did you mean LIMIT?",
    ),
    (
        "Idle -> Strip(x) -> Discard",
        "t.click:1:9: the argument LENGTH of Strip must be a number from 0 to 2048, not 'x'",
    ),
    (
        "Idle -> Strip -> Discard",
        "t.click:1:9: Strip needs the argument LENGTH: give a number from 0 to 2048",
    ),
    (
        "Idle -> Null(1) -> Discard",
        "t.click:1:9: Null has no arguments by position: remove '1'",
    ),
    (
        "Idle -> Paint(1, COLOR 2) -> Discard",
        "t.click:1:9: the argument COLOR of Paint is given twice: remove one",
    ),
    (
        "FromDevice(eth7) -> Discard",
        "t.click:1:1: there is no interface eth7",
    ),
    (
        "Idle -> c :: Classifier(12/080) -> Discard",
        "t.click:1:9: '12/080' is no pattern: give place and hexadecimal digits, such as 12/0800, or -",
    ),
    (
        "Idle -> Classifier(12/0800, -) -> Discard",
        "t.click:1:9: output 1 of Classifier@2 (Classifier) is not connected: connect it, to Discard or Idle if no packets pass there",
    ),
    (
        "Idle -> IPFilter(allow udpp) -> Discard",
        "t.click:1:9: in 'allow udpp': there is no test 'udpp': did you mean udp?",
    ),
    (
        "Idle -> StaticIPLookup(10.0.0.0/33 0) -> Discard",
        "t.click:1:9: '10.0.0.0/33 0' is no route: give prefix, next hop and output, such as 10.0.0.0/8 192.0.2.1 1",
    ),
    (
        "Idle -> IPRewriter(patern 1) -> Discard",
        "t.click:1:9: 'patern 1' is no rule for an input: give pattern 192.0.2.1 1024-65535 - - 0 1, keep 0 1, pass 0 or drop",
    ),
    (
        "Idle -> ICMPError(1.2.3.4, unreachabel) -> Discard",
        "t.click:1:9: ICMPError has no type 'unreachabel': did you mean unreachable?",
    ),
    (
        "Idle -> Meter(5, 4) -> Discard",
        "t.click:1:9: the rates must rise, but '4' does not: sort them",
    ),
    (
        "InfiniteSource -> Unqueue -> Discard",
        "t.click:1:16: output 0 of InfiniteSource@1 is push, but input 0 of Unqueue@2 is pull: put a Queue between them",
    ),
    (
        "Idle -> q :: Queue; q -> Discard; q -> Unqueue -> Discard",
        "t.click:1:9: output 0 of q (Queue) has 2 readers, but one is supported: use a queue for each",
    ),
    ("FromDump(no.pcap) -> Discard", "t.click:1:1: "),
];

#[test]
fn wrong_elements_and_arguments_are_refused_in_one_sentence() {
    for (text, expected) in REFUSED {
        let refusal = refusal(text);
        assert!(refusal.starts_with(expected), "{text}: {refusal}");
    }
}

#[test]
fn the_declarations_of_all_elements_agree_with_themselves() {
    let mut names = volley_click::names();
    let count = names.len();
    assert!(count >= 60, "{count} elements");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name is there twice");
    for spec in volley_click::all() {
        assert!(spec.text.ends_with('.'), "{}", spec.name);
        let places: Vec<_> = spec.arguments.iter().map(|it| it.need).collect();
        let first_by_name = places
            .iter()
            .position(|it| *it == volley_click::Need::Keyword);
        let required = places
            .iter()
            .rposition(|it| *it == volley_click::Need::Required);
        assert!(
            required.is_none_or(|it| first_by_name.is_none_or(|first| it < first)),
            "{}",
            spec.name
        );
    }
    let page = volley_click::page::page();
    assert!(
        volley_click::names()
            .iter()
            .all(|name| page.contains(&format!("\n### {name}(")))
    );
}

/// A frame with this destination address.
fn frame(dst: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; 14 + len.max(20)];
    bytes[12] = 8;
    bytes[14] = 0x45;
    bytes[30..34].copy_from_slice(&dst.to_be_bytes());
    bytes
}

/// What may be wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Checksum,
    Version,
    Length,
    Source,
    Type,
    Short,
}

/// A frame of IPv4: its fault, TTL, last byte of the destination, words of options, bytes behind the header, and padding.
type Shape = (Fault, u8, u8, u8, u8, u8);

fn sum(header: &[u8]) -> u16 {
    let words = header
        .chunks(2)
        .map(|it| u32::from(it[0]) << 8 | u32::from(it[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

fn with_sum(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = sum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn ip_frame((fault, ttl, last, options, payload, padding): Shape) -> Vec<u8> {
    let header = 20 + 4 * usize::from(options);
    let total = header + usize::from(payload);
    let mut ip = vec![1; header];
    ip[..12].copy_from_slice(&[
        0x40 | (header / 4) as u8,
        0,
        0,
        total as u8,
        0,
        7,
        0,
        0,
        ttl,
        17,
        0,
        0,
    ]);
    ip[12..20].copy_from_slice(&[10, 9, 8, 7, if last < 200 { 10 } else { 11 }, 0, 0, last]);
    match fault {
        Fault::Version => ip[0] |= 0x20,
        Fault::Length => ip[2] = 9,
        Fault::Source => ip[12..16].copy_from_slice(&[192, 0, 2, 255]),
        _ => {}
    }
    with_sum(&mut ip);
    if fault == Fault::Checksum {
        ip[11] ^= 1;
    }
    let mut frame = vec![2; 12];
    frame.extend([8, if fault == Fault::Type { 1 } else { 0 }]);
    frame.extend(ip);
    frame.extend(vec![3; usize::from(payload) + usize::from(padding)]);
    if fault == Fault::Short {
        frame.truncate(1 + usize::from(last) % 13);
    }
    frame
}

/// What a router makes of it.
fn routed(shape: Shape) -> Option<Vec<u8>> {
    let (fault, ttl, last, options, payload, _) = shape;
    if fault != Fault::None || ttl < 2 || last >= 200 {
        return None;
    }
    let header = 20 + 4 * usize::from(options);
    let mut frame = ip_frame(shape);
    frame.truncate(14 + header + usize::from(payload));
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[22] -= 1;
    with_sum(&mut frame[14..14 + header]);
    Some(frame)
}

/// Elements handle a vector as a whole or packet by packet: vectors of 4 packets are handled in the second way.
#[test]
fn packets_that_were_shortened_behind_the_check_are_dropped_in_every_vector() {
    let frames = vec![ip_frame((Fault::None, 64, 1, 0, 20, 0)); 40];
    for element in ["IPGWOptions(192.0.2.7)", "DecIPTTL", "IPFragmenter(1500)"] {
        for length in [0, 1, 19, 20, 39, 40, 41] {
            let text = format!(
                "FromDump(in.pcap) -> Strip(14) -> CheckIPHeader -> Truncate({length}) -> e :: {element} -> ToDump(out.pcap);"
            );
            let passed = if length < 40 { 0 } else { frames.len() };
            let out = run(&text, &frames);
            assert_eq!(out.len(), passed, "{element} behind Truncate({length})");
            for size in [4, 64] {
                let folder = tempfile::tempdir().unwrap();
                support::write_file(&folder.path().join("in.pcap"), &frames);
                let mut bench = Bench::new(&text, folder.path(), size).unwrap();
                bench.rounds(60, MS);
                let dropped = (frames.len() - passed) as u64;
                let drops = ("click/e".to_owned(), "no-ip-header".to_owned(), dropped);
                let expected = Vec::from_iter((dropped > 0).then_some(drops));
                assert_eq!(bench.drops(), expected, "{element}, vectors of {size}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Elements do the same to whole vectors and to single packets.
    #[test]
    fn a_chain_of_a_router_does_what_a_model_does(shapes in prop::collection::vec((
        prop_oneof![
            30 => Just(Fault::None),
            1 => Just(Fault::Checksum), 1 => Just(Fault::Version), 1 => Just(Fault::Length),
            1 => Just(Fault::Source), 1 => Just(Fault::Type), 1 => Just(Fault::Short),
        ],
        prop_oneof![20 => 2u8..=255, 1 => 0u8..2],
        prop_oneof![20 => 0u8..200, 1 => 200u8..=255],
        prop_oneof![20 => Just(0u8), 1 => 1u8..3],
        0u8..60,
        0u8..20,
    ), 1..300)) {
        let text = "FromDump(in.pcap) -> c :: Classifier(12/0806 20/0001, 12/0800, -); c -> Discard; c [2] -> Discard; \
            c [1] -> Paint(3) -> Strip(14) -> CheckIPHeader(192.0.2.255) -> l :: StaticIPLookup(10.0.0.0/8 0, 0.0.0.0/0 192.0.2.1 1); l [1] -> Discard; \
            l -> DropBroadcasts -> PaintTee(4) -> IPGWOptions(192.0.2.7) -> FixIPSrc(192.0.2.7) -> DecIPTTL -> IPFragmenter(200) \
            -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDump(out.pcap);";
        let frames: Vec<Vec<u8>> = shapes.iter().map(|it| ip_frame(*it)).collect();
        let model: Vec<Vec<u8>> = shapes.iter().filter_map(|it| routed(*it)).collect();
        prop_assert_eq!(run(text, &frames), model);
    }

    #[test]
    fn lookups_find_the_longest_prefix(
        routes in prop::collection::vec((any::<u32>(), 0u8..=12, 0usize..3), 1..12),
        addresses in prop::collection::vec(any::<u32>(), 1..40),
    ) {
        let net = |address: u32, len: u8| address & u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
        let texts: Vec<String> = routes.iter().map(|(address, len, port)| {
            format!("{}/{len} {port}", std::net::Ipv4Addr::from_bits(net(*address, *len)))
        }).collect();
        let text = format!(
            "FromDump(in.pcap) -> GetIPAddress(30) -> r :: RadixIPLookup({}); r -> Paint(0) -> q :: Null; r[1] -> q1 :: Paint(1) -> q; r[2] -> Paint(2) -> q; q -> p :: PaintSwitch; p -> Discard; p[1] -> ToDump(out.pcap); p[2] -> Discard;",
            texts.join(", ")
        );
        let frames: Vec<Vec<u8>> = addresses.iter().map(|it| frame(*it, 0)).collect();
        let chosen = |address: u32| {
            let fits = routes.iter().filter(|(it, len, _)| net(address, *len) == net(*it, *len));
            // Of equal prefixes the first one holds.
            fits.rev().max_by_key(|(_, len, _)| *len).map(|it| it.2)
        };
        let model: Vec<Vec<u8>> = frames.iter().zip(&addresses).filter(|(_, it)| chosen(**it) == Some(1)).map(|(it, _)| it.clone()).collect();
        prop_assert_eq!(run(&text, &frames), model);
    }

    #[test]
    fn equal_bytes_choose_equal_outputs(bytes in prop::collection::vec(any::<[u8; 4]>(), 1..50)) {
        let frames: Vec<Vec<u8>> = bytes.iter().map(|it| [&it[..], &[0; 30]].concat()).collect();
        let text = "FromDump(in.pcap) -> h :: HashSwitch(0, 2); h -> Discard; h[1] -> ToDump(out.pcap); h[2] -> Discard;";
        let out = run(text, &frames);
        let chosen: std::collections::BTreeSet<[u8; 2]> = out.iter().map(|it| [it[0], it[1]]).collect();
        let model: Vec<Vec<u8>> = frames.into_iter().filter(|it| chosen.contains(&[it[0], it[1]])).collect();
        prop_assert_eq!(out, model);
    }

    #[test]
    fn any_bytes_pass_every_header_element(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..30)) {
        let text = "FromDump(in.pcap) -> t :: Tee(7);\n\
            t[0] -> MarkIPHeader -> DecIPTTL -> IPGWOptions(1.2.3.4) -> SetUDPChecksum -> Discard;\n\
            t[1] -> MarkIPHeader -> ICMPPingResponder -> ICMPError(1.2.3.4, 3) -> Discard;\n\
            t[2] -> ARPResponder(0.0.0.0/0 1:1:1:1:1:1) -> VLANDecap -> EtherMirror -> Discard;\n\
            t[3] -> MarkIPHeader -> IPFragmenter(68) -> Discard;\n\
            t[4] -> MarkIPHeader -> IPRewriter(pattern 9.9.9.9 5-6 - - 0 0) -> Discard;\n\
            t[5] -> MarkIPHeader -> CheckTCPHeader -> IPClassifier(tcp opt syn or port 80 or icmp type 3) -> IPPrint -> Discard;\n\
            t[6] -> Unstrip(60) -> CheckIPHeader(OFFSET 60) -> Strip(60) -> StripIPHeader -> ToDump(out.pcap);";
        run(text, &frames);
    }
}

#[test]
fn a_file_longer_than_the_queue_to_the_control_thread_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let frames: Vec<Vec<u8>> = (0..10_000u32).map(|n| frame(n, 40)).collect();
    support::write_file(&folder.path().join("in.pcap"), &frames);
    let text = "FromDump(in.pcap, STOP true) -> ToDump(out.pcap);";
    let mut bench = Bench::new(text, folder.path(), 256).unwrap();
    bench.rounds(200, MS);
    assert!(bench.live.wants_end());
    assert_eq!(read_file(&folder.path().join("out.pcap")), frames);
}
