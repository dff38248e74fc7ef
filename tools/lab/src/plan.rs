//! How long a run takes: an estimate for each point, and the time left while points are measured.

use crate::events;
use crate::figure::FIGURES;
use crate::level::{Length, Level};
use crate::meter::Task;
use crate::switch::Spec;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use volley_bench::Prefixes;

/// Seconds until a scenario of the benchmark can be measured: set up, warm-up, comparison with the reference.
const SET_UP: f64 = 0.35;
/// Seconds for each million routes of a table.
const ROUTES: f64 = 4.0;
/// Repetitions are made again when another program used the core; so many of them, on average.
const AGAIN: f64 = 1.3;
/// Seconds until callgrind has started the benchmark.
const CALLGRIND: f64 = 3.0;
/// Packets per second under callgrind.
const SIMULATED: f64 = 25_000.0;
/// So many times longer, it takes callgrind to load a table.
const SLOWER: f64 = 20.0;
/// Seconds until a switch forwards, and until a VNF does.
const SWITCH: f64 = 1.0;
const VNF: f64 = 0.3;
/// Seconds until a switch of another project forwards.
const PEER: f64 = 2.5;
/// Trials of the searches of a point, of full length.
const SEARCH: usize = 60;
/// Seconds until a virtual machine with an emulated processor forwards.
const GUEST: f64 = 20.0;
/// Seconds until the benchmark has loaded a plugin.
const PLUGIN: f64 = 0.8;

/// Number of prefixes of the tables in the arguments of a point.
fn prefixes(args: &str) -> f64 {
    let mut words = args.split_whitespace();
    let value = words.find(|word| *word == "--prefixes");
    let value = value.and_then(|_| words.next()?.parse().ok());
    value.map_or(0.0, |n: Prefixes| n.v4 as f64)
}

fn switch(spec: &Spec, length: Length) -> f64 {
    let start = match spec.peer.starts_with("volley") {
        true => SWITCH,
        false => PEER,
    };
    let trials = match (spec.load, spec.search) {
        (Some(_), _) => 2 * length.repetitions,
        (_, Some(_)) => SEARCH,
        _ => length.repetitions + 1,
    };
    let vnf = match spec.guest {
        true => GUEST,
        false => VNF,
    };
    start + vnf * f64::from(spec.vnfs) + (length.seconds + 0.03) * trials as f64
}

/// Estimates of points that are measured one after the other.
#[derive(Default)]
pub struct Estimates {
    /// Arguments whose events were counted: several figures show those of the same count.
    counted: BTreeSet<String>,
}

impl Estimates {
    fn events(&mut self, args: String, table: f64, length: Length) -> f64 {
        let packets = events::most(&args, length.counted) as f64;
        match self.counted.insert(args) {
            true => CALLGRIND + table * SLOWER + packets / SIMULATED,
            false => 0.0,
        }
    }

    /// Estimated seconds of the next point.
    pub fn seconds(&mut self, args: &str, length: Length) -> f64 {
        let table = prefixes(args) / 1e6 * ROUTES;
        let repetitions = length.seconds * length.repetitions as f64;
        let bench = SET_UP + table + AGAIN * repetitions;
        match Task::of(args) {
            Ok(Task::Events(args)) => self.events(args, table, length),
            Ok(Task::PerCycle(args)) => bench + self.events(args, table, length),
            Ok(Task::Latency(..)) => bench + length.seconds * (4.0 + length.repetitions as f64),
            Ok(Task::Switch(spec)) => switch(&spec, length),
            Ok(Task::Generator) => (length.seconds + 0.03) * (1 + length.repetitions) as f64,
            Ok(Task::Plugin(_)) => PLUGIN + bench,
            _ => bench,
        }
    }
}

/// The plan of a run: points and estimated seconds of each figure, and the whole.
pub fn text(names: &[String], level: Level) -> String {
    let mut text = format!("{:<16} {:>6} {:>8}\n", "figure", "points", "seconds");
    let (mut points, mut whole) = (0, 0.0);
    let mut estimates = Estimates::default();
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
    for figure in FIGURES.iter().filter(|f| is_chosen(f.name)) {
        let all = figure.points_of(level);
        let times = all
            .iter()
            .map(|p| estimates.seconds(&p.args, level.length()));
        let time: f64 = times.sum();
        text += &format!("{:<16} {:>6} {time:>8.0}\n", figure.name, all.len());
        points += all.len();
        whole += time;
    }
    text + &format!("{:<16} {points:>6} {whole:>8.0}\n", "all")
}

/// Part of a run from which the points so far show how long the whole will take.
const ENOUGH: f64 = 0.1;

/// Progress of a run: a bar on a terminal, else a line for each figure.
pub struct Progress {
    bar: ProgressBar,
    is_terminal: bool,
    start: Instant,
    /// Estimated seconds of all points, and of those that are done.
    whole: f64,
    done: f64,
    figure: String,
}

impl Progress {
    /// A run of points with this estimate in seconds.
    pub fn new(points: usize, whole: f64) -> Progress {
        let bar = ProgressBar::new(points as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}, {msg}") {
            bar.set_style(style);
        }
        let is_terminal = std::io::stderr().is_terminal();
        if !is_terminal {
            eprintln!("{points} points, about {}", duration(whole));
        }
        Progress {
            bar,
            is_terminal,
            start: Instant::now(),
            whole,
            done: 0.0,
            figure: String::new(),
        }
    }

    /// Estimated seconds that are left, corrected by what the points so far have taken.
    fn left(&self) -> f64 {
        let left = self.whole - self.done;
        match self.done > 0.0 {
            true => left * self.elapsed() / self.done,
            false => left,
        }
    }

    /// Seconds since the begin of the run.
    pub fn elapsed(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Whether the whole will take longer than a limit in seconds, by the estimate, or by what the points so far have taken.
    pub fn exceeds(&self, limit: f64) -> bool {
        match self.done < ENOUGH * self.whole {
            true => self.whole > limit,
            false => self.elapsed() + self.left() > limit,
        }
    }

    /// A point is being measured.
    pub fn begin(&mut self, figure: &str, name: &str) {
        let left = duration(self.left());
        self.bar.set_message(format!("{left} left, {name}"));
        if !self.is_terminal && self.figure != figure {
            eprintln!("{} ({left} left)", figure);
        }
        self.figure = figure.to_owned();
    }

    /// The point has been measured.
    pub fn end(&mut self, estimate: f64) {
        self.done += estimate;
        self.bar.inc(1);
    }

    /// No further point is measured.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// `50 s`, `7 min`.
fn duration(seconds: f64) -> String {
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    match time.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Estimated seconds of the points of all figures that Volley has by itself, and of each peer.
    fn whole(level: Level) -> (f64, BTreeMap<String, f64>) {
        let (mut own, mut peers) = (0.0, BTreeMap::new());
        let mut estimates = Estimates::default();
        for point in FIGURES.iter().flat_map(|f| f.points_of(level)) {
            let time = estimates.seconds(&point.args, level.length());
            match Task::of(&point.args) {
                Ok(Task::Switch(spec)) if !spec.peer.starts_with("volley") => {
                    *peers.entry(spec.peer).or_default() += time;
                }
                _ => own += time,
            }
        }
        (own, peers)
    }

    #[test]
    fn short_runs_are_planned_as_such() {
        let (smoke, quick, full) = (whole(Level::Smoke), whole(Level::Quick), whole(Level::Full));
        assert!(smoke.0 < quick.0 && quick.0 < full.0);
        // The peers differ between machines.
        for ((own, peers), level) in [(smoke, Level::Smoke), (quick, Level::Quick)] {
            let limit = level.limit().unwrap();
            assert!(own < 0.7 * limit, "{own}");
            for (peer, time) in peers {
                assert!(time < 0.08 * limit, "{peer} {time}");
            }
        }
    }

    #[test]
    fn events_are_counted_once() {
        let mut estimates = Estimates::default();
        let length = Level::Quick.length();
        let first = estimates.seconds("events --scenario ip4", length);
        assert!(first > CALLGRIND);
        assert_eq!(estimates.seconds("events --scenario ip4", length), 0.0);
        let bench = estimates.seconds("--scenario ip4", length);
        assert_eq!(estimates.seconds("ipc --scenario ip4", length), bench);
        // Each of many destinations is looked up before the caches are steady.
        let many = estimates.seconds("events --scenario ip4 --distinct 32768", length);
        assert!(many > first, "{many} {first}");
    }

    #[test]
    fn a_run_that_takes_too_long_is_noticed() {
        let mut progress = Progress::new(2, 700.0);
        assert!(progress.exceeds(600.0) && !progress.exceeds(800.0));
        // The first points took no time: neither will the others.
        progress.end(350.0);
        assert!(!progress.exceeds(600.0));
        let mut late = Progress::new(2, 100.0);
        late.end(1.0);
        late.start = Instant::now().checked_sub(Duration::from_secs(60)).unwrap();
        assert!(!late.exceeds(600.0), "too early to say");
        late.end(9.0);
        assert!(late.exceeds(590.0) && !late.exceeds(610.0));
    }

    #[test]
    fn tables_loads_and_chains_take_longer() {
        let of = |args| Estimates::default().seconds(args, Level::Quick.length());
        let one = of("--scenario ip4");
        assert!(of("--scenario ip4 --prefixes 1000000") > 2.0 + one);
        assert!(of("--scenario ip4 --prefixes full") > 2.0 + one);
        assert!(of("switch loopback --vnfs 5") > of("switch loopback"));
        assert!(of("switch p2p --load 0.5") > of("switch p2p"));
        assert!(of("events --scenario ip4") > of("--scenario ip4"));
    }

    #[test]
    fn the_time_left_follows_the_points_that_were_measured() {
        let mut progress = Progress::new(2, 100.0);
        assert_eq!(progress.left(), 100.0);
        progress.end(50.0);
        // Half of the plan took no time: neither will the other half.
        assert!(progress.left() < 1.0);
        assert_eq!(duration(50.0), "50 s");
        assert_eq!(duration(400.0), "7 min");
    }
}
