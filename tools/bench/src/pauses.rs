//! `volley bench pauses`: a stream of 10 Mpps passes a worker on a separate thread while changes of every type are made,
//! one after the other, each confirmed before the next. No packet may be lost, and no round of the worker may take long.
//!
//! The machine takes the core from a worker occasionally. The frequency is measured in control runs: of the same worker
//! and stream without changes, and of a loop that only reads the clock, both beside a thread that only spins. Rounds in
//! which a change took effect are evaluated separately and attributed to the change in progress.

use super::BenchError;
use super::args::PauseArgs;
use super::path_traffic::rng;
use super::report::print_json;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use volley_cli::Action;
use volley_daemon::EngineSettings;
use volley_daemon::stack::Stack;
use volley_graph::{Clock, Severity, Worker};
use volley_model::Request;

/// Longer gaps are reported.
const LIMIT: Duration = Duration::from_micros(50);
/// Maximum number of recorded rounds with a change.
const LONG_ROUNDS: usize = 4096;
/// Number of objects of each type.
const OBJECTS: u64 = 64;

/// Configuration before the changes, which use `x0` to `x8`.
const ROUTER: &str = "\
create packet-generator interface pg0 mac 02:00:00:00:00:01
create packet-generator interface pg1 mac 02:00:00:00:00:02
create packet-generator interface x0
create packet-generator interface x1
create packet-generator interface x2
create packet-generator interface x3
create packet-generator interface x4
create packet-generator interface x5
create packet-generator interface x6
create packet-generator interface x7
create packet-generator interface x8
bridge-domain add 7
ip table add 9
set interface state pg0 up
set interface state pg1 up
set interface state x0 up
set interface ip address pg1 198.18.0.1/24
set interface ip address pg1 2001:2::1/64
set interface ip address x0 198.18.1.1/24
set ip neighbor pg1 198.18.0.10 02:aa:00:00:00:0a
set ip neighbor x0 198.18.1.10 02:aa:00:00:00:0b
ip route add 20.0.0.0/8 via 198.18.0.10 pg1";

/// Every type of change, with the command that reverts it. `A` is a number from 0 to 63, `B` one from 0 to 3.
const KINDS: [(&str, &str); 42] = [
    (
        "ip route add 30.A.0.0/16 via 198.18.0.10 pg1",
        "ip route del 30.A.0.0/16",
    ),
    (
        "ip route add 20.200.A.0/24 via 198.18.1.10 x0",
        "ip route del 20.200.A.0/24",
    ),
    (
        "ip route add 31.A.0.0/16 via 198.18.0.10 pg1 via 198.18.1.10 x0",
        "ip route del 31.A.0.0/16",
    ),
    (
        "ip route add 32.A.0.0/20 via 30.1.0.9",
        "ip route del 32.A.0.0/20",
    ),
    (
        "ip route add 33.A.0.0/20 via unreachable",
        "ip route del 33.A.0.0/20",
    ),
    (
        "ip6 route add 2001:db8:A::/48 via 2001:2::a pg1",
        "ip6 route del 2001:db8:A::/48",
    ),
    (
        "set ip neighbor x0 198.18.1.A 02:bb:00:00:00:0B",
        "set ip neighbor del x0 198.18.1.A",
    ),
    (
        "create packet-generator interface yA",
        "delete packet-generator interface yA",
    ),
    ("set interface state xB up", "set interface state xB down"),
    ("set interface mtu 1400 xB", "set interface mtu 1500 xB"),
    (
        "set interface ip address x1 10.A.0.1/24",
        "set interface ip address del x1 10.A.0.1/24",
    ),
    (
        "set interface ip address x2 2001:db8:ff:A::1/64",
        "set interface ip address del x2 2001:db8:ff:A::1/64",
    ),
    (
        "set interface feature xB ip4-not-enabled arc ip4-unicast",
        "set interface feature xB ip4-not-enabled arc ip4-unicast disable",
    ),
    ("set interface l2 xconnect x2 x3", "delete xconnect x2"),
    ("test l2patch rx x3 tx x2", "delete l2patch x3"),
    ("ip table add 10A", "ip table del 10A"),
    ("set ip icmp rate 50B", "set ip icmp"),
    (
        "set path-batcher queue 7 batch 3B",
        "delete path-batcher queue 7",
    ),
    (
        "packet-generator new name sA interface x1 limit 10 rate 1000 template { eth / ip4 dst 10.9.9.9 / udp / payload 20 }",
        "packet-generator delete sA",
    ),
    ("trace add ip4-lookup 1", "clear trace"),
    ("set vector-size 1A", "set vector-size 256"),
    ("create sub-interfaces x4 10A", "delete subif x4.10A"),
    ("bridge-domain add 20A", "bridge-domain del 20A"),
    ("set interface l2 bridge x5 7", "delete bridge-port x5"),
    (
        "l2fib add 02:cc:00:00:00:0B 7 filter",
        "l2fib del 02:cc:00:00:00:0B 7",
    ),
    (
        "ip mroute add 239.1.A.1 accept pg0 forward x0 x6",
        "ip mroute del 239.1.A.1",
    ),
    (
        "set interface unnumbered x6 use pg1",
        "set interface unnumbered del x6",
    ),
    ("set urpf ip4 rx loose xB", "set urpf ip4 off xB"),
    (
        "set interface ip redirects xB on",
        "set interface ip redirects xB off",
    ),
    (
        "set interface ip directed-broadcast xB on",
        "set interface ip directed-broadcast xB off",
    ),
    ("set ip multipath resilient", "set ip multipath"),
    (
        "set interface proxy x0 198.18.1.0/25",
        "set interface proxy x0 off",
    ),
    ("set interface dad x3 2", "set interface dad x3 off"),
    ("ip6 nd pg1 ra-send", "ip6 nd pg1 ra-suppress"),
    ("set interface rss pg0 on", "set interface rss pg0 off"),
    ("set interface ip table x7 9", "set interface ip table x7 0"),
    ("set ip4 reassembly timeout 3B", "set ip4 reassembly"),
    (
        "set interface promiscuous on pg0",
        "set interface promiscuous off pg0",
    ),
    (
        "set interface mac address x7 02:00:00:00:02:0B",
        "set interface mac address x7 02:00:00:00:02:09",
    ),
    ("set interface name x8 z8", "set interface name z8 x8"),
    (
        "set interface path-batcher on x1",
        "set interface path-batcher off x1",
    ),
    (
        "set node worker ip6-lookup 0",
        "set node worker ip6-lookup default",
    ),
];

#[derive(Serialize, Default, Clone, Copy)]
struct Gaps {
    seconds: f64,
    /// Total number of rounds, or of clock readings.
    rounds: u64,
    /// Number of gaps of more than 50 us, their fraction of the time, and the longest one.
    long: u64,
    part: f64,
    longest_us: f64,
}

impl Gaps {
    fn add(&mut self, gap: Duration) {
        self.rounds += 1;
        self.seconds += gap.as_secs_f64();
        self.longest_us = self.longest_us.max(gap.as_secs_f64() * 1e6);
        if gap > LIMIT {
            self.long += 1;
            self.part += gap.as_secs_f64();
        }
    }

    fn done(mut self) -> Gaps {
        self.part /= self.seconds.max(1e-9);
        self
    }
}

/// Long rounds in which changes of one type took effect.
#[derive(Serialize, Default, Clone, Copy)]
struct Long {
    rounds: u64,
    longest_us: f64,
}

#[derive(Serialize)]
struct Report {
    changes: u64,
    kinds: usize,
    changes_per_second: f64,
    /// Packets of the stream, and transmitted packets.
    sent: u64,
    received: u64,
    /// Dropped packets, anywhere.
    dropped: u64,
    mpps: f64,
    /// Gaps of a loop that only reads the clock; of the worker without changes; with changes; and of the rounds in which
    /// a change took effect.
    idle: Gaps,
    quiet: Gaps,
    changing: Gaps,
    swapping: Gaps,
    /// Long rounds with a change, by the change in progress.
    long: BTreeMap<&'static str, Long>,
}

/// Run the benchmark of the command line.
pub fn run(args: &PauseArgs) -> Result<(), BenchError> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    if cores.len() < 2 {
        return Err(BenchError::Args(
            "the machine has one core: the worker and the changes need one each".into(),
        ));
    }
    let (stack, mut workers) = Stack::new(&EngineSettings::default(), Clock::system())?;
    let mut worker = workers
        .pop()
        .ok_or_else(|| BenchError::Args("no worker".into()))?;
    let mut step = || _ = worker.step();
    for line in ROUTER.lines() {
        change(&stack, line, &mut step)?;
    }
    change(&stack, &args.stream(), &mut step)?;
    stack.pg.switch(None, true)?;
    let stop = AtomicBool::new(false);
    let (idle, quiet, (changing, swapping, rounds), done, took) = std::thread::scope(|scope| {
        let (stop, worker) = (&stop, &mut worker);
        let thread = scope.spawn(move || {
            core_affinity::set_for_current(cores[cores.len() - 1]);
            let span = Duration::from_secs_f64(args.seconds);
            let idle = control(span, || {});
            let quiet = control(span, || _ = worker.step());
            (idle, quiet, watch(worker, stop))
        });
        // The control runs are over by then; earlier changes would disturb the second one. This core spins meanwhile as
        // it is busy later: how often a machine takes a core away depends on the number of running cores.
        let until = Instant::now() + Duration::from_secs_f64(2.0 * args.seconds + 0.1);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let start = Instant::now();
        let done = changes(&stack, args.changes, std::hint::spin_loop);
        let took = start.elapsed();
        stop.store(true, Ordering::Release);
        let (idle, quiet, watched) = thread
            .join()
            .map_err(|_| BenchError::Wrong("the worker's thread panicked".into()))?;
        Ok::<_, BenchError>((idle, quiet, watched, done?, took))
    })?;
    stack.pg.switch(None, false)?;
    (0..64).for_each(|_| _ = worker.step());
    let report = Report {
        changes: args.changes,
        kinds: KINDS.len(),
        changes_per_second: args.changes as f64 / took.as_secs_f64(),
        sent: sent(&stack)?,
        received: left(&stack, "pg1"),
        dropped: dropped(&stack),
        mpps: 0.0,
        idle,
        quiet,
        changing,
        swapping,
        long: blame(&rounds, &done),
    };
    let whole = quiet.seconds + changing.seconds;
    let mpps = report.received as f64 / whole / 1e6;
    print(args, &Report { mpps, ..report })
}

impl PauseArgs {
    fn stream(&self) -> String {
        format!(
            "packet-generator new name stream interface pg0 rate {} size 64 edit ip4.dst increment 20.0.0.1 20.100.255.255 \
             template {{ eth src 02:00:00:00:00:99 dst 02:00:00:00:00:01 / ip4 src 198.19.0.1 dst 20.0.0.1 ttl 64 / udp sport 1234 dport 80 }}",
            self.pps
        )
    }
}

/// Make one change, and wait until the workers use it.
pub(super) fn change(stack: &Stack, line: &str, mut step: impl FnMut()) -> Result<(), BenchError> {
    let command =
        volley_cli::parse_line(line).map_err(|e| BenchError::Args(format!("`{line}`: {e}")))?;
    let Action::Request(request) = command.action else {
        return Err(BenchError::Args(format!("`{line}` is no change")));
    };
    let request: Request = *request;
    stack
        .apply(&request)
        .map_err(|e| BenchError::Wrong(format!("`{line}`: {e}")))?;
    while !stack.settled() {
        step();
    }
    stack.processes.run_manual();
    Ok(())
}

/// Start time and type of each change.
type Done = Vec<(Instant, &'static str)>;

/// Make this number of changes, distributed evenly over the types.
fn changes(stack: &Stack, wanted: u64, mut step: impl FnMut()) -> Result<Done, BenchError> {
    let mut done = Done::with_capacity(wanted as usize);
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut there = BTreeSet::new();
    for at in 0..wanted {
        let (on, off) = KINDS[at as usize % KINDS.len()];
        let (a, b) = (rng(&mut state) % OBJECTS, rng(&mut state) % 4);
        let fill = |line: &str| {
            line.replace('A', &a.to_string())
                .replace('B', &b.to_string())
        };
        // The line of the command that reverts a change identifies its object.
        let key = fill(off);
        let (line, kind) = if there.remove(&key) {
            (key, off)
        } else {
            there.insert(key);
            (fill(on), on)
        };
        done.push((Instant::now(), kind));
        change(stack, &line, &mut step)?;
    }
    Ok(done)
}

/// Attribute long rounds to the changes in progress at their end.
fn blame(rounds: &[(Instant, Duration)], done: &Done) -> BTreeMap<&'static str, Long> {
    let mut all: BTreeMap<&'static str, Long> = BTreeMap::new();
    for (end, took) in rounds {
        let before = done.partition_point(|(begun, _)| begun <= end);
        let Some((_, kind)) = before.checked_sub(1).and_then(|at| done.get(at)) else {
            continue;
        };
        let long = all.entry(kind).or_default();
        long.rounds += 1;
        long.longest_us = long.longest_us.max(took.as_secs_f64() * 1e6);
    }
    all
}

/// Repeat `work` for a time, and measure the gaps between.
fn control(span: Duration, mut work: impl FnMut()) -> Gaps {
    let mut gaps = Gaps::default();
    let start = Instant::now();
    let mut last = start;
    while last - start < span {
        work();
        let now = Instant::now();
        gaps.add(now - last);
        last = now;
    }
    gaps.done()
}

/// All rounds; rounds in which a change took effect; end time and duration of the long ones among these.
type Watched = (Gaps, Gaps, Vec<(Instant, Duration)>);

/// Step the worker until `stop` is set.
fn watch(worker: &mut Worker, stop: &AtomicBool) -> Watched {
    let (mut all, mut swapping) = (Gaps::default(), Gaps::default());
    let mut long = Vec::with_capacity(LONG_ROUNDS);
    let (mut last, mut changes) = (Instant::now(), worker.changes());
    while !stop.load(Ordering::Acquire) {
        worker.step();
        let now = Instant::now();
        all.add(now - last);
        let seen = worker.changes();
        if seen != changes {
            let gap = now - last;
            swapping.add(gap);
            changes = seen;
            if gap > LIMIT && long.len() < LONG_ROUNDS {
                long.push((now, gap));
            }
        }
        last = now;
    }
    (all.done(), swapping.done(), long)
}

fn sent(stack: &Stack) -> Result<u64, BenchError> {
    let reply = stack.ask(&volley_pg::ShowPacketGenerator)?;
    let stream = reply.streams.iter().find(|s| s.name == "stream");
    Ok(stream.map_or(0, |s| s.sent))
}

/// Packets that an interface has transmitted.
pub fn left(stack: &Stack, name: &str) -> u64 {
    let interfaces = stack.interfaces.borrow();
    let found = interfaces.by_name(name);
    found.map_or(0, |i| interfaces.counts(i).tx_packets)
}

/// Packets that were dropped as errors.
pub fn dropped(stack: &Stack) -> u64 {
    let counters = stack.engine.borrow().counters();
    let lost = counters
        .iter()
        .filter(|c| c.info.severity == Severity::Error);
    lost.map(|c| c.count).sum()
}

fn print(args: &PauseArgs, report: &Report) -> Result<(), BenchError> {
    if args.json {
        print_json(report);
        return Ok(());
    }
    println!(
        "{} changes of {} kinds, {:.0} a second; {} packets sent, {} left, {} dropped, {:.2} Mpps",
        report.changes,
        report.kinds,
        report.changes_per_second,
        report.sent,
        report.received,
        report.dropped,
        report.mpps
    );
    let lines = [
        ("idle loop", &report.idle),
        ("no changes", &report.quiet),
        ("changes", &report.changing),
        ("rounds with one", &report.swapping),
    ];
    for (name, gaps) in lines {
        println!(
            "{name:16} {:6.2} s, {:9} rounds, {} over 50 us ({:.2} % of the time), longest {:.0} us",
            gaps.seconds,
            gaps.rounds,
            gaps.long,
            gaps.part * 100.0,
            gaps.longest_us
        );
    }
    for (kind, long) in &report.long {
        println!(
            "  {:3} long rounds, longest {:.0} us: {kind}",
            long.rounds, long.longest_us
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_change_is_made_and_undone() {
        let (stack, mut workers) = Stack::new(&EngineSettings::default(), Clock::manual()).unwrap();
        let worker = &mut workers[0];
        let mut step = || _ = worker.step();
        for line in ROUTER.lines() {
            change(&stack, line, &mut step).unwrap();
        }
        for (on, off) in KINDS {
            for line in [on, off, on, off] {
                let line = line.replace('A', "5").replace('B', "1");
                change(&stack, &line, &mut step).unwrap();
            }
        }
        changes(&stack, 3000, &mut step).unwrap();
    }

    #[test]
    fn a_long_round_is_laid_at_the_change_that_was_under_way() {
        let start = Instant::now();
        let at = |us| start + Duration::from_micros(us);
        let done = vec![(at(10), "a"), (at(20), "b"), (at(30), "a")];
        let long = |us| Duration::from_micros(us);
        let rounds = [
            (at(5), long(60)),
            (at(20), long(70)),
            (at(29), long(80)),
            (at(99), long(90)),
        ];
        let found = blame(&rounds, &done);
        assert_eq!((found["b"].rounds, found["a"].rounds), (2, 1));
        assert!((found["b"].longest_us - 80.0).abs() < 1e-6);
    }
}
