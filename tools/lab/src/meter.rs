//! Measures one point: the benchmark in this process, on a pinned thread; its events; or latencies.
//!
//! The arguments of a point are those of `volley bench`. A word in front of them chooses another measurement: `events`, `ipc`,
//! `latency LOAD`, `clock MHZ`, `cores ALLOCATION`, `loop STYLE`, `plugin SCENARIO`, `switch`, `wake PPS`, `generator`.

use crate::allocation::{self, Allocation};
use crate::level::Level;
use crate::plugin::output_within;
use crate::switch::{self, Beds, Spec, dependent};
use crate::traffic::Offer;
use crate::{clock, events, latency, plugin, wake};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use volley_bench::{Args, BenchError, Command, CostKind, Report, Setup};

pub use crate::samples::{Length, NODE, SHARE, Samples, TIME, parse};

/// Arguments of the measurement of generator and sink by themselves.
pub const GENERATOR: &str = "generator";

/// Quantity of points whose rates were derived from the clock.
pub const DERIVED: &str = "derived";

/// Time in which a process has measured one repetition, besides the repetition's own: of a full table, on a busy machine.
const ALONE: Duration = Duration::from_secs(120);

/// Something that measures points.
pub trait Meter {
    /// Samples of one point.
    ///
    /// # Errors
    /// A sentence, if the point could not be measured.
    fn measure(&mut self, args: &str, length: Length) -> Result<Samples, String>;
}

/// What a point measures.
#[derive(Clone, Debug)]
pub enum Task {
    /// The benchmark.
    Bench(Box<Args>),
    /// Events of the benchmark: the arguments as a text, which another process reads.
    Events(String),
    /// Instructions per cycle of the core, with the events.
    PerCycle(String),
    /// Latency at this part of the largest rate.
    Latency(f64, Box<Args>),
    /// The rate at this clock in MHz, derived from the cycles of the core where the processor cannot be set to it.
    Clock(f64, Box<Args>),
    /// The rate of workers whose threads have this allocation.
    Cores(Allocation, Box<Args>),
    /// The benchmark packet by packet through the whole path, with this style of the loop.
    Loop(Loop, Box<Args>),
    /// A scenario of the tutorial's plugin.
    Plugin(String),
    /// A switch that runs as a process.
    Switch(Box<Spec>),
    /// The kernel's wake-up of a thread, so many times a second.
    Wake(f64),
    /// Generator and sink by themselves, in memory.
    Generator,
}

/// Style of a loop over the packets of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Loop {
    /// One packet a step.
    Single,
    /// One packet a step, those of later steps are prefetched.
    Prefetch,
    /// Four packets a step.
    Unrolled,
    /// Four packets a step, those of later steps are prefetched.
    UnrolledPrefetch,
}

impl Loop {
    /// Process packets in this style.
    fn install(self, setup: &mut Setup, args: &Args) -> Result<(), BenchError> {
        match self {
            Loop::Single => setup.run_to_completion::<1, 0>(args),
            Loop::Prefetch => setup.run_to_completion::<1, 8>(args),
            Loop::Unrolled => setup.run_to_completion::<4, 0>(args),
            Loop::UnrolledPrefetch => setup.run_to_completion::<4, 2>(args),
        }
    }
}

impl Task {
    /// Whether a switch is measured that runs as a process.
    pub fn is_switch(&self) -> bool {
        matches!(self, Task::Switch(_))
    }

    /// The task of a point.
    ///
    /// # Errors
    /// If the arguments are not those of a measurement.
    pub fn of(args: &str) -> Result<Task, String> {
        let (word, rest) = args.split_once(' ').unwrap_or((args, ""));
        let valued = || {
            let (value, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let number: f64 = value.parse().map_err(|e| format!("{value}: {e}"))?;
            Ok::<_, String>((number, Box::new(parse(rest)?)))
        };
        match word {
            "events" => parse(rest).map(|_| Task::Events(rest.to_owned())),
            "ipc" => parse(rest).map(|_| Task::PerCycle(rest.to_owned())),
            GENERATOR => Ok(Task::Generator),
            "plugin" => Ok(Task::Plugin(rest.to_owned())),
            "loop" => {
                let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                Ok(Task::Loop(
                    Loop::from_str(name, false)?,
                    Box::new(parse(rest)?),
                ))
            }
            "cores" => {
                let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                let allocation = Allocation::from_str(name, false)?;
                Ok(Task::Cores(allocation, Box::new(parse(rest)?)))
            }
            "wake" => match rest.parse() {
                Ok(pps) if (1.0..=1e5).contains(&pps) => Ok(Task::Wake(pps)),
                _ => Err(format!("wake {rest}: choose 1 to 100000 times a second")),
            },
            "switch" => Spec::of(rest).map(|spec| Task::Switch(Box::new(spec))),
            "latency" => match valued()? {
                (load, args) if load > 0.0 && load <= 1.0 => Ok(Task::Latency(load, args)),
                (load, _) => Err(format!("latency {load}: choose more than 0, at most 1")),
            },
            "clock" => match valued()? {
                (mhz, args) if (1.0..=1e5).contains(&mhz) => Ok(Task::Clock(mhz, args)),
                (mhz, _) => Err(format!("clock {mhz}: choose 1 to 100000 MHz")),
            },
            _ => parse(args).map(|args| Task::Bench(Box::new(args))),
        }
    }

    /// Whether callgrind counts events for a point with these arguments.
    pub fn is_simulated(args: &str) -> bool {
        matches!(Task::of(args), Ok(Task::Events(_) | Task::PerCycle(_)))
    }
}

/// How the points of a run are measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// File of the tutorial's plugin; none to look for it.
    #[serde(default)]
    pub plugin: Option<PathBuf>,
    /// Each repetition of the benchmark is measured in another process.
    #[serde(default)]
    pub fresh: bool,
    /// Percent of time that nodes take in addition where the benchmark is measured, to check comparisons of runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn: Option<f64>,
}

/// `volley-bench` in this process, and what is measured with it.
#[derive(Default)]
pub struct Bench {
    /// Events that were counted, or why they could not be: several figures show those of the same run.
    counted: BTreeMap<String, Result<Samples, String>>,
    /// Switches that still run.
    beds: Beds,
    options: Options,
}

impl Bench {
    /// For a run of this extent with these options.
    pub fn new(options: Options, level: Level) -> Bench {
        Bench {
            beds: Beds::of(level),
            options,
            ..Bench::default()
        }
    }

    /// Events of the benchmark.
    fn events(&mut self, args: &str, length: Length) -> Result<Samples, String> {
        self.once(args, || {
            let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
            events::measure(&program, &["bench"], args, length.counted)
        })
    }

    /// Events of arguments, counted once: a callgrind that hangs would take minutes for each point.
    fn once(
        &mut self,
        args: &str,
        count: impl FnOnce() -> Result<Samples, String>,
    ) -> Result<Samples, String> {
        if let Some(known) = self.counted.get(args) {
            return known.clone();
        }
        let counted = count();
        self.counted.insert(args.to_owned(), counted.clone());
        counted
    }

    /// The benchmark, each repetition in another process.
    fn fresh(&self, args: &str, length: Length) -> Result<Samples, String> {
        let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
        // Processes differ more than repetitions of one process do: more of them, each shorter.
        let (repetitions, seconds) = (2 * length.repetitions, length.seconds / 2.0);
        let mut all = Samples::new();
        for _ in 0..repetitions {
            let mut command = dependent(&program.to_string_lossy());
            command.args(["point", "--repetitions", "1", "--seconds"]);
            command.arg(seconds.to_string());
            command.args(args.split_whitespace());
            if let Some(percent) = self.options.burn {
                command.args(["--burn", &percent.to_string()]);
            }
            let output = output_within(command, ALONE + Duration::from_secs_f64(seconds))?;
            if !output.status.success() {
                let text = String::from_utf8_lossy(&output.stderr);
                return Err(text.lines().last().unwrap_or("no message").to_owned());
            }
            let one: Samples = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
            for (name, samples) in one {
                all.entry(name).or_default().extend(samples);
            }
        }
        Ok(all)
    }

    /// Instructions per cycle of the core.
    fn per_cycle(&mut self, args: &str, length: Length) -> Result<Samples, String> {
        let counted = self.events(args, length)?;
        let cycles = bench(parse(&format!("{args} --isa {}", events::LEVEL))?, length)?;
        let instructions = counted.get("instructions").and_then(|all| all.first());
        let (Some(instructions), Some(cycles)) = (instructions, cycles.get("core_cycles")) else {
            return Err("instructions or cycles were not counted".to_owned());
        };
        let all = cycles.iter().map(|cycles| instructions / cycles).collect();
        Ok(Samples::from([("ipc".to_owned(), all)]))
    }
}

/// The rate at this clock: measured where the processor can be set to it, else derived.
fn at_clock(mhz: f64, args: Args, length: Length) -> Result<Samples, String> {
    let processor = volley_graph::cores().last().copied().unwrap_or(0);
    let held = clock::hold(&clock::folder(processor), mhz)?;
    let samples = bench(args, length)?;
    match held {
        Some(_) => Ok(samples),
        None => Ok(derived(mhz, &samples)),
    }
}

/// The rate that a core with this clock would reach.
fn derived(mhz: f64, samples: &Samples) -> Samples {
    let rates = |cycles: &Vec<f64>| cycles.iter().map(|c| mhz / c).collect();
    let derived = samples.get("together_core_cycles").map(rates);
    let derived = derived.map(|rates| {
        // That the rate was not measured is a quantity of the point.
        [("mpps", rates), (DERIVED, vec![1.0])].map(|(name, all)| (name.to_owned(), all))
    });
    derived.into_iter().flatten().collect()
}

impl Meter for Bench {
    fn measure(&mut self, args: &str, length: Length) -> Result<Samples, String> {
        let task = Task::of(args)?;
        if !task.is_switch() {
            // A switch polls: it would take a core from the other measurements.
            self.beds.close();
        }
        match task {
            Task::Bench(_) if self.options.fresh => self.fresh(args, length),
            Task::Bench(args) => {
                let burn = self.options.burn.or(args.burn);
                bench(Args { burn, ..*args }, length)
            }
            Task::Loop(style, args) => in_style(style, *args, length),
            Task::Clock(mhz, args) => at_clock(mhz, *args, length),
            Task::Events(args) => self.events(&args, length),
            Task::PerCycle(args) => self.per_cycle(&args, length),
            Task::Switch(spec) => self.beds.measure(&spec, length),
            Task::Generator => generator(length),
            Task::Wake(pps) => on_thread(move || wake::measure(pps, length)),
            Task::Plugin(scenario) => {
                plugin::measure(self.options.plugin.as_deref(), &scenario, length)
            }
            Task::Cores(allocation, args) => {
                on_thread(move || allocation::measure(allocation, *args, length))
            }
            Task::Latency(load, args) => on_thread(move || latency::measure(load, &args, length)),
        }
    }
}

/// Rates of generator and sink in memory, with packets of 64 bytes.
fn generator(length: Length) -> Result<Samples, String> {
    let mut mpps = Vec::new();
    let mut rig = switch::memory()?;
    // The first trial warms up.
    for trial in 0..=length.repetitions {
        let time = Duration::from_secs_f64(length.seconds);
        let outcome = rig.run(&Offer::most(), time, &|| false);
        let outcome = outcome.map_err(|e| e.to_string())?;
        let pps = outcome.returned.map_or(0.0, |r| r.pps);
        mpps.extend((trial > 0).then_some(pps / 1e6));
    }
    Ok(Samples::from([("mpps".to_owned(), mpps)]))
}

/// The measurements pin their thread.
fn on_thread(
    run: impl FnOnce() -> Result<Samples, String> + Send + 'static,
) -> Result<Samples, String> {
    match std::thread::spawn(run).join() {
        Ok(samples) => samples,
        Err(_) => Err("the benchmark panicked".to_owned()),
    }
}

fn bench(mut args: Args, length: Length) -> Result<Samples, String> {
    args.seconds = length.seconds;
    args.repetitions = length.repetitions;
    if let Some(Command::PathBatcher(paths)) = &mut args.command {
        paths.seconds = length.seconds;
        paths.repetitions = length.repetitions;
    }
    on_thread(move || {
        if let Some(Command::PathBatcher(paths)) = &args.command {
            let cycles = volley_bench::path_cycles(paths).map_err(|e| e.to_string())?;
            return Ok(Samples::from([("path_cycles".to_owned(), cycles)]));
        }
        if args.workers > 1 {
            let samples = volley_bench::speedup(&args).map_err(|e| e.to_string())?;
            return match samples.is_empty() {
                true => Err("other programs used the cores all the time".to_owned()),
                false => Ok(Samples::from([("speedup".to_owned(), samples)])),
            };
        }
        let report = volley_bench::measure(&args).map_err(|e| e.to_string())?;
        Ok(samples(&report))
    })
}

/// The benchmark with a style of the loop.
fn in_style(style: Loop, mut args: Args, length: Length) -> Result<Samples, String> {
    args.seconds = length.seconds;
    args.repetitions = length.repetitions;
    on_thread(move || {
        let report = volley_bench::measure_with(&args, |setup| style.install(setup, &args));
        Ok(samples(&report.map_err(|e| e.to_string())?))
    })
}

fn samples(report: &Report) -> Samples {
    let of =
        |what: &dyn Fn(&volley_bench::Sample) -> f64| report.samples.iter().map(what).collect();
    let metrics: [(&str, Vec<f64>); 10] = [
        (
            "per_ghz",
            of(&|s| 1e3 / (s.together_cycles_per_packet * s.core_cycles_per_tsc)),
        ),
        ("mpps", of(&|s| s.mpps_with_source)),
        ("cycles", of(&|s| s.cycles_per_packet)),
        (
            "core_cycles",
            of(&|s| s.cycles_per_packet * s.core_cycles_per_tsc),
        ),
        ("together_cycles", of(&|s| s.together_cycles_per_packet)),
        (
            "together_core_cycles",
            of(&|s| s.together_cycles_per_packet * s.core_cycles_per_tsc),
        ),
        ("core_speed", of(&|s| s.core_cycles_per_tsc)),
        ("vector_size", of(&|s| s.vectors_per_call)),
        ("speedup", of(&|_| 1.0)),
        ("undisturbed", vec![report.undisturbed]),
    ];
    let mut all: Samples = metrics
        .into_iter()
        .map(|(name, samples)| (name.to_owned(), samples))
        .collect();
    let whole: u64 = report.nodes.iter().map(|n| n.clocks).sum();
    for node in &report.nodes {
        let share = node.clocks as f64 * 100.0 / whole.max(1) as f64;
        // Sources that sent nothing have shares near 0.
        if share >= 0.5 {
            all.insert(format!("{SHARE}{}", node.name), vec![share]);
        }
        if node.kind == CostKind::Node {
            all.insert(
                format!("{NODE}{}", node.name),
                vec![node.cycles_per_packet()],
            );
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_chooses_the_measurement() {
        let of = |args| Task::of(args).unwrap();
        assert!(matches!(of("--scenario xc"), Task::Bench(_)));
        assert!(
            matches!(of("events --scenario xc"), Task::Events(args) if args == "--scenario xc")
        );
        assert!(matches!(of("latency 0.5 --scenario ip4"), Task::Latency(load, _) if load == 0.5));
        assert!(matches!(of("clock 2600 --scenario ip4"), Task::Clock(mhz, _) if mhz == 2600.0));
        assert!(matches!(of("ipc --scenario ip4"), Task::PerCycle(_)));
        assert!(matches!(
            of("loop unrolled-prefetch --scenario ip6"),
            Task::Loop(Loop::UnrolledPrefetch, _)
        ));
        assert!(matches!(of(GENERATOR), Task::Generator));
        assert!(matches!(of("plugin one"), Task::Plugin(name) if name == "one"));
        assert!(matches!(
            of("cores two-workers --scenario ip4"),
            Task::Cores(Allocation::TwoWorkers, _)
        ));
        for bad in [
            "cores three --scenario ip4",
            "loop none --scenario ip4",
            "latency --scenario xc",
            "events --scenario none",
            "clock",
            "clock 0 --scenario ip4",
            "latency nan --scenario ip4",
            "latency 2 --scenario ip4",
            "wake 0",
        ] {
            assert!(Task::of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn events_are_counted_once_even_if_that_fails() {
        let mut bench = Bench::default();
        let mut calls = 0;
        for _ in 0..2 {
            let counted = bench.once("--scenario ip4", || {
                calls += 1;
                Err("valgrind did not end".to_owned())
            });
            assert_eq!(counted.unwrap_err(), "valgrind did not end");
        }
        assert_eq!(calls, 1);
        let samples = Samples::from([("instructions".to_owned(), vec![1.0])]);
        let counted = bench.once("--scenario xc", || Ok(samples.clone()));
        assert_eq!(counted.unwrap(), samples);
        let known = bench.once("--scenario xc", || Err("counted again".to_owned()));
        assert_eq!(known.unwrap(), samples);
    }

    #[test]
    fn a_rate_at_a_clock_is_derived_from_the_cycles() {
        let samples = Samples::from([("together_core_cycles".to_owned(), vec![50.0, 100.0])]);
        assert_eq!(derived(2000.0, &samples)["mpps"], [40.0, 20.0]);
        assert!(derived(2000.0, &Samples::new()).is_empty());
    }
}
