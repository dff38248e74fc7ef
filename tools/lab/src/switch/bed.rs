//! A switch with its VNFs and the generator, and how it is measured. A switch is started once for consecutive points that differ in the
//! size of packets or in the load only.

use super::peers::{self, Adapter};
use super::process::Process;
use super::spec::{Spec, Traffic};
use super::topology::{Topology, kinds};
use super::wire::{FCS, MAC, SOURCE_MAC, VLAN, gbps};
use super::{guest, kernel, router};
use crate::level::Level;
use crate::samples::{self, Length, NODE, Samples, TIME};
use crate::search::{self, Device, Goal, SearchError};
use crate::traffic::{Frame, FrameSpec, Latency, Offer, Outcome, PARTS, Ports, Rig};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use volley_file::Scratch;

/// Longest time until the first packet passes.
const FIRST: Duration = Duration::from_secs(10);
/// Time that a peer hangs at its start until it is given up in a run whose time is limited.
const HUNG: Duration = Duration::from_secs(30);
/// Seconds without a packet after which a switch has stopped forwarding.
const SILENT: f64 = 2.0;
/// Upper end of a search, in multiples of the largest rate that came back.
const BEYOND: f64 = 1.1;
/// Upper end of the next search, in multiples of that of one whose rates the generator did not reach: where the switch is faster than the
/// generator, no rate beyond the one that came back can be offered.
const LOWER: f64 = 0.85;
/// Searches that are begun for a result.
const BEGINNINGS: usize = 5;
/// Quantity of a search: results whose range ended where the generator did.
pub const LIMITED: &str = "limited_by_generator";
/// Longest trial while the first packet is awaited.
const LONGEST_FIRST: f64 = 1.0;
/// Largest relative width between the bounds of a search.
const WIDTH: f64 = 0.03;
/// Most searches of a point.
const SEARCHES: usize = 3;
/// Sizes of packets that one bed can send; another size has another bed.
const SIZES: [usize; 3] = [64, 256, 1024];
/// Sizes of a mix of packets of the Internet, 7:4:1.
const IMIX: [usize; 12] = [64, 64, 570, 64, 64, 570, 64, 64, 570, 64, 570, 1518];
/// Size from which on an IPv6 packet has room for a probe.
const MIX: usize = 84;

/// The switch that was measured last, and switches that cannot be measured.
#[derive(Default)]
pub struct Beds {
    kept: Option<Bed>,
    /// Why a switch could not be started, by its arguments: it is not tried again in this run.
    failed: Vec<(Spec, String)>,
    /// Whether the time of the run is limited.
    is_limited: bool,
    /// Peers that hung at their start, and why: in a limited run they are not tried again, because each point would take as long.
    hung: Vec<(String, String)>,
}

/// A running switch.
struct Bed {
    rig: Rig,
    /// What the bed is for.
    spec: Spec,
    adapter: &'static Adapter,
    /// Sizes of the frames of the generator.
    sizes: Vec<usize>,
    /// Largest rates that came back, by size.
    most: BTreeMap<usize, f64>,
    /// Ended when they are dropped: before the folder is removed.
    processes: Vec<Process>,
    /// Sockets.
    _folder: Scratch,
}

/// Addresses of the generator's packets: source and destination.
const IP4: [&str; 2] = ["198.19.0.1", "20.0.0.1"];
const IP6: [&str; 2] = ["2001:2:1::1", "2001:db8::1"];

fn frame(addresses: [&str; 2], size: usize, vlan: Option<u16>) -> Result<Frame, String> {
    let parse = |text: &str| text.parse().map_err(|e| format!("{text}: {e}"));
    Frame::new(&FrameSpec {
        source_mac: SOURCE_MAC,
        destination_mac: MAC,
        source: parse(addresses[0])?,
        destination: parse(addresses[1])?,
        addresses: 1,
        size: size - FCS,
        vlan,
    })
}

/// The frames that take turns.
fn frames(traffic: Traffic, size: usize) -> Result<Vec<Frame>, String> {
    let mixed = size.max(MIX);
    match traffic {
        Traffic::One => Ok(vec![frame(IP4, size, None)?]),
        Traffic::Imix => IMIX
            .into_iter()
            .map(|size| frame(IP4, size, None))
            .collect(),
        Traffic::Mix => Ok(vec![
            frame(IP4, mixed, Some(VLAN))?,
            frame(IP4, mixed, None)?,
            frame(IP6, mixed, None)?,
        ]),
    }
}

/// Bytes of a packet with frame check sequence, on average.
fn mean_size(spec: &Spec) -> usize {
    match spec.traffic {
        Traffic::One => spec.size,
        Traffic::Imix => IMIX.into_iter().sum::<usize>() / IMIX.len(),
        Traffic::Mix => spec.size.max(MIX),
    }
}

/// Sizes that the bed of these arguments can send.
fn sizes(spec: &Spec) -> Vec<usize> {
    match spec.traffic == Traffic::One && SIZES.contains(&spec.size) {
        true => SIZES.to_vec(),
        false => vec![spec.size],
    }
}

/// The part of the arguments that the bed depends on.
fn key(spec: &Spec) -> Spec {
    Spec {
        size: sizes(spec).first().copied().unwrap_or(spec.size),
        load: None,
        search: None,
        pps: None,
        ..spec.clone()
    }
}

/// Generator and sink in memory, with the packets that switches get.
///
/// # Errors
/// If they cannot be made.
pub fn memory() -> Result<Rig, String> {
    let kinds = [frames(Traffic::One, SIZES[0])?];
    Rig::new(&Ports::default(), &kinds).map_err(|e| e.to_string())
}

/// Measure a switch by itself.
///
/// # Errors
/// As [`Beds::measure`].
pub fn measure(spec: &Spec, length: Length) -> Result<Samples, String> {
    Beds::default().measure(spec, length)
}

impl Beds {
    /// For a run of this extent.
    pub fn of(level: Level) -> Beds {
        Beds {
            is_limited: level.limit().is_some(),
            ..Beds::default()
        }
    }

    /// Why a switch cannot be measured, if that is known.
    fn failure(&self, key: &Spec) -> Option<String> {
        let failed = self.failed.iter().find(|(failed, _)| failed == key);
        let hung = || self.hung.iter().find(|(peer, _)| *peer == key.peer);
        let why = failed.map(|(_, why)| why.clone());
        why.or_else(|| hung().map(|(_, why)| format!("not tried again in this run: {why}")))
    }

    /// Note why a switch could not be started, after this time.
    fn fail(&mut self, key: Spec, why: &str, time: Duration) {
        // A virtual machine takes as long by itself, and Volley is what the run is for.
        let is_peer = !key.guest && !key.peer.starts_with("volley");
        if self.is_limited && is_peer && time >= HUNG {
            self.hung.push((key.peer.clone(), why.to_owned()));
        }
        self.failed.push((key, why.to_owned()));
    }

    /// Measure throughput, or with a load the time through the switch.
    ///
    /// # Errors
    /// If a process cannot be started, ends or hangs, or no packet passes.
    pub fn measure(&mut self, spec: &Spec, length: Length) -> Result<Samples, String> {
        let key = key(spec);
        if let Some(why) = self.failure(&key) {
            return Err(why);
        }
        if self.kept.as_ref().is_none_or(|bed| bed.spec != key) {
            // The old switch ends before the new one starts: both would poll.
            self.close();
            let start = Instant::now();
            match Bed::new(&key) {
                Ok(bed) => self.kept = Some(bed),
                Err(why) => {
                    self.fail(key, &why, start.elapsed());
                    return Err(why);
                }
            }
        }
        let Some(bed) = &mut self.kept else {
            return Err("no switch runs".to_owned());
        };
        let measured = bed.measure(spec, length);
        if measured.is_err() {
            self.close();
        }
        measured
    }

    /// End the switch that still runs.
    pub fn close(&mut self) {
        self.kept = None;
    }
}

impl Bed {
    fn new(spec: &Spec) -> Result<Bed, String> {
        let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
        let adapter = peers::find(&spec.peer)?;
        if let Some(why) = peers::refusal(adapter, spec) {
            return Err(why);
        }
        let kinds = kinds(spec);
        let folder = samples::scratch()?;
        let links = kernel::start(&kinds)?;
        let holder = links.as_ref().map_or(0, Process::id);
        let placed = Spec {
            memif_queues: adapter.memif_queues,
            ..spec.clone()
        };
        let topology = Topology::new(&placed, folder.path(), holder)?;
        let sizes = sizes(spec);
        let start = || processes(spec, adapter, &topology, &program);
        let (mut rig, mut processes) = match spec.swap {
            // The ports of the switch join those of the generator, which acts as the control thread meanwhile.
            true => {
                let rig = rig(spec, &topology, &sizes)?;
                let processes = std::thread::scope(|scope| {
                    let started = scope.spawn(start);
                    while !started.is_finished() {
                        rig.turn();
                    }
                    let gone = |_| Err(format!("{}: its start panicked", adapter.title));
                    started.join().unwrap_or_else(gone)
                })?;
                (rig, processes)
            }
            false => {
                let mut processes = start()?;
                let rig = rig(spec, &topology, &sizes);
                let rig = rig.or_else(|why| blamed(&mut processes, why))?;
                (rig, processes)
            }
        };
        let linked = rig.wait_for_links(FIRST);
        linked.or_else(|why| blamed(&mut processes, why.to_string()))?;
        // Last, so that the switch and the VNFs end before their ports do.
        processes.extend(links);
        let mut bed = Bed {
            rig,
            spec: spec.clone(),
            adapter,
            sizes,
            most: BTreeMap::new(),
            processes,
            _folder: folder,
        };
        bed.wait_for_packets()?;
        Ok(bed)
    }

    /// Wait until packets pass: links of VNFs come up one after the other.
    fn wait_for_packets(&mut self) -> Result<(), String> {
        let start = Instant::now();
        let mut seconds = 0.05;
        while start.elapsed() < FIRST {
            let outcome = self.run(Some(1_000.0), seconds)?;
            if outcome.returned.is_some_and(|r| r.packets > 0) {
                return Ok(());
            }
            // Many processes on few processors: a packet may take longer through a chain than a short trial lasts.
            seconds = LONGEST_FIRST.min(2.0 * seconds);
        }
        Err(format!(
            "{}: no packet came back in {} s",
            self.adapter.title,
            FIRST.as_secs()
        ))
    }

    fn run(&mut self, rate: Option<f64>, seconds: f64) -> Result<Outcome, String> {
        self.check()?;
        let offer = rate.map_or(Offer::most(), Offer::of);
        let time = Duration::from_secs_f64(seconds);
        let outcome = self.rig.run(&offer, time, &|| false);
        let outcome = outcome.map_err(|e| e.to_string());
        // A process that has ended is the reason for a link that went down.
        self.check()?;
        outcome
    }

    /// Whether all processes run.
    fn check(&mut self) -> Result<(), String> {
        self.processes.iter_mut().try_for_each(Process::check)
    }

    /// Packets per second that come back while as many as possible are offered.
    fn pps(&mut self, seconds: f64) -> Result<f64, String> {
        // Another program may have had the processors all the time: a longer trial decides.
        for seconds in [seconds, SILENT] {
            let outcome = self.run(None, seconds)?;
            let pps = outcome.returned.map_or(0.0, |r| r.pps);
            if pps > 0.0 {
                return Ok(pps);
            }
        }
        Err(format!(
            "{} stopped forwarding: no packet came back in {SILENT} s",
            self.adapter.title
        ))
    }

    /// Cycles that a packet costs the switch while as many as possible are offered, and the part of the packets that were lost:
    /// without loss the generator limits the rate, and vectors are short.
    fn cost(&mut self, length: Length) -> Result<Samples, String> {
        let (title, read) = (self.adapter.title, self.adapter.cost);
        let read = read.ok_or_else(|| format!("{title} does not say what a packet costs"))?;
        let mut samples = Samples::new();
        self.pps(length.seconds)?;
        for _ in 0..length.repetitions {
            let before = read(&mut self.processes[0])?;
            let outcome = self.run(None, length.seconds)?;
            let after = read(&mut self.processes[0])?;
            let cycles = after.since(&before);
            let cycles = cycles.ok_or_else(|| format!("{title} received no packet"))?;
            let returned = outcome.returned;
            let nodes = after.nodes_since(&before).into_iter();
            let nodes = nodes.map(|(name, cycles)| (format!("{NODE}{name}"), cycles));
            let all = [
                ("cycles".to_owned(), cycles),
                ("mpps".to_owned(), returned.map_or(0.0, |r| r.pps / 1e6)),
                ("loss".to_owned(), returned.map_or(1.0, |r| r.loss)),
            ];
            for (name, value) in all.into_iter().chain(nodes) {
                samples.entry(name).or_default().push(value);
            }
        }
        Ok(samples)
    }

    fn measure(&mut self, spec: &Spec, length: Length) -> Result<Samples, String> {
        let number = self.sizes.iter().position(|size| *size == spec.size);
        self.rig.choose(number.unwrap_or(0) as u32);
        if spec.cost {
            return self.cost(length);
        }
        if let Some(pps) = spec.pps {
            return self.times(pps, length);
        }
        if let Some(load) = spec.load {
            let most = self.most(spec.size, length)?;
            let mut samples = self.times(load * most, length)?;
            samples.insert("capacity".to_owned(), vec![most / 1e6]);
            return Ok(samples);
        }
        if let Some(goal) = spec.search {
            return self.search(goal.ratio(), mean_size(spec), length);
        }
        let mut samples = Samples::new();
        let mut add =
            |name: &str, value: f64| samples.entry(name.to_owned()).or_default().push(value);
        let gigahertz = volley_simd::cycles_per_second() / 1e9;
        // The first trial warms up.
        self.pps(length.seconds)?;
        for _ in 0..length.repetitions {
            let pps = self.pps(length.seconds)?;
            add("gbps", gbps(pps, mean_size(spec)));
            add("mpps", pps / 1e6);
            add("per_ghz", pps / 1e6 / gigahertz);
        }
        Ok(samples)
    }

    /// The largest rate with at most this loss ratio, in a range whose upper end is what came back of as many packets as possible.
    fn search(&mut self, ratio: f64, size: usize, length: Length) -> Result<Samples, String> {
        self.pps(length.seconds)?;
        let most = BEYOND * self.pps(length.seconds)?;
        let (mut found, mut limited) = (Vec::new(), Vec::new());
        for _ in 0..searches(length) {
            self.check()?;
            let goal = |most: f64| Goal {
                loss_ratios: vec![ratio],
                width: WIDTH,
                seconds: 2.0 * length.seconds,
                phases: 1,
                ..Goal::new(most / 1e3, most)
            };
            let (pps, is_limited) = within_reach(&mut self.rig, most, goal)?;
            found.push(pps);
            limited.push(f64::from(u8::from(is_limited)));
        }
        // A switch that has ended forwards nothing at any rate, which is no result.
        self.check()?;
        let of = |unit: &dyn Fn(f64) -> f64| found.iter().map(|pps| unit(*pps)).collect();
        Ok(Samples::from([
            ("gbps".to_owned(), of(&|pps| gbps(pps, size))),
            ("mpps".to_owned(), of(&|pps| pps / 1e6)),
            (LIMITED.to_owned(), limited),
        ]))
    }

    /// The largest rate with packets of a size, which is R+ of the paper.
    fn most(&mut self, size: usize, length: Length) -> Result<f64, String> {
        if let Some(most) = self.most.get(&size) {
            return Ok(*most);
        }
        self.pps(length.seconds)?;
        let most = self.pps(length.seconds)?;
        self.most.insert(size, most);
        Ok(most)
    }

    /// Times through the switch at a rate.
    fn times(&mut self, rate: f64, length: Length) -> Result<Samples, String> {
        let (mut trials, mut loss): (Vec<Latency>, _) = (Vec::new(), Vec::new());
        for _ in 0..2 * length.repetitions {
            let outcome = self.run(Some(rate), length.seconds)?;
            trials.extend(outcome.returned.and_then(|r| r.latency));
            loss.push(outcome.returned.map_or(1.0, |r| r.loss));
        }
        if trials.is_empty() {
            return Err(format!(
                "{} stopped forwarding: no packet came back",
                self.adapter.title
            ));
        }
        // Another program delays packets by milliseconds: the quieter half counts.
        trials.sort_by(|a, b| a.p99_us.total_cmp(&b.p99_us));
        trials.truncate(trials.len().div_ceil(2));
        let mut samples = Samples::from([("loss".to_owned(), loss)]);
        for latency in trials {
            for (name, value) in [
                ("minimum", latency.min_us),
                ("median", latency.median_us),
                ("p90", latency.p90_us),
                ("p99", latency.p99_us),
                ("p99.9", latency.p999_us),
            ] {
                samples.entry(name.to_owned()).or_default().push(value);
            }
            for (part, value) in PARTS.iter().zip(latency.quantiles_us) {
                samples
                    .entry(format!("{TIME}{part}"))
                    .or_default()
                    .push(value);
            }
        }
        Ok(samples)
    }
}

/// Searches of a point: fewer where a late run has halved the repetitions.
fn searches(length: Length) -> usize {
    length.repetitions.div_ceil(2).min(SEARCHES)
}

/// The lower bound of a search whose range ends at `most`, or lower where the generator does not reach that; and whether the largest rate
/// of a range that was lowered has passed, so that a faster generator could find more.
fn within_reach(
    device: &mut dyn Device,
    most: f64,
    goal: impl Fn(f64) -> Goal,
) -> Result<(f64, bool), String> {
    let mut end = most;
    let mut late = String::new();
    for _ in 0..BEGINNINGS {
        match search::search(device, &goal(end)) {
            Ok(found) => {
                let bounds = found.bounds.first();
                let bounds = bounds.ok_or("the search has no loss ratio")?;
                return Ok((bounds.lower, end < most && bounds.upper.is_none()));
            }
            Err(error @ SearchError::Late { .. }) => {
                late = error.to_string();
                end *= LOWER;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(late)
}

/// An error with ports; a process that has ended is the reason for it.
fn blamed<T>(processes: &mut [Process], why: String) -> Result<T, String> {
    processes.iter_mut().try_for_each(Process::check)?;
    Err(why)
}

/// Start the switch and the VNFs.
fn processes(
    spec: &Spec,
    adapter: &Adapter,
    topology: &Topology,
    program: &Path,
) -> Result<Vec<Process>, String> {
    let mut all = vec![(adapter.start)(topology, program)?];
    for (number, vnf) in topology.vnfs.iter().enumerate() {
        all.push(match spec.guest {
            true => guest::start(topology, number)?,
            false => router::start_vnf(program, vnf)?,
        });
    }
    Ok(all)
}

/// The generator, before its links are up.
fn rig(spec: &Spec, topology: &Topology, sizes: &[usize]) -> Result<Rig, String> {
    let (first, second) = match spec.reverse {
        false => (&topology.ends[0], &topology.ends[1]),
        true => (&topology.ends[1], &topology.ends[0]),
    };
    let ports = Ports {
        before: first.before.iter().chain(&second.before).cloned().collect(),
        send: Some(first.port.clone()),
        receive: Some(second.port.clone()),
        both: spec.both,
        core: topology.places.as_ref().map(|places| places.generator),
        ..Ports::default()
    };
    let kinds = sizes.iter().map(|size| frames(spec.traffic, *size));
    let kinds = kinds.collect::<Result<Vec<_>, String>>()?;
    Rig::unlinked(&ports, &kinds).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Refusal, Trial};

    /// Forwards up to a rate, behind a generator that reaches another one.
    struct Pair {
        forwards: f64,
        sends: f64,
    }

    impl Device for Pair {
        fn trial(&mut self, rate: f64, seconds: f64) -> Result<Trial, Refusal> {
            if rate > self.sends {
                return Err(Refusal::Late("the generator is slow".to_owned()));
            }
            let count = |rate: f64| (rate * seconds) as u64;
            Ok(Trial {
                sent: count(rate),
                received: count(rate.min(self.forwards)),
            })
        }
    }

    fn found(forwards: f64, sends: f64) -> Result<(f64, bool), String> {
        let goal = |most: f64| Goal {
            loss_ratios: vec![0.0],
            width: WIDTH,
            ..Goal::new(most / 1e3, most)
        };
        within_reach(&mut Pair { forwards, sends }, 1.1e6, goal)
    }

    #[test]
    fn a_peer_that_hangs_is_given_up_in_a_limited_run() {
        let spec = |args: &str| Spec::of(args).unwrap();
        let next = |level: Level, args: &str, time: Duration| {
            let mut beds = Beds::of(level);
            beds.fail(spec(args), "it was not ready", time);
            assert_eq!(beds.failure(&spec(args)).unwrap(), "it was not ready");
            let peer = spec(args).peer;
            assert_eq!(beds.failure(&spec("p2p --peer other")), None);
            beds.failure(&spec(&format!("p2v --peer {peer}")))
        };
        let bess = "p2p --peer bess";
        let why = next(Level::Quick, bess, HUNG).unwrap();
        assert_eq!(why, "not tried again in this run: it was not ready");
        assert_eq!(next(Level::Full, bess, HUNG), None);
        assert_eq!(next(Level::Quick, bess, HUNG / 2), None);
        assert_eq!(next(Level::Quick, "p2p --peer volley", HUNG), None);
        assert_eq!(
            next(Level::Quick, "loopback --guest --peer bess", HUNG),
            None
        );
    }

    #[test]
    fn a_late_run_makes_fewer_searches() {
        let length = Level::Quick.length();
        assert_eq!(searches(length), SEARCHES);
        assert!((1..SEARCHES).contains(&searches(length.shorter())));
        let smoke = Level::Smoke.length().shorter();
        assert_eq!(searches(smoke), 1);
    }

    #[test]
    fn a_generator_that_is_slower_than_the_switch_ends_the_range() {
        let (pps, is_limited) = found(8e5, 2e6).unwrap();
        assert!((pps / 8e5 - 1.0).abs() < WIDTH && !is_limited, "{pps}");
        // The rate is found although the upper end cannot be offered.
        let (pps, is_limited) = found(8e5, 1e6).unwrap();
        assert!((pps / 8e5 - 1.0).abs() < WIDTH && !is_limited, "{pps}");
        let (pps, is_limited) = found(5e6, 1e6).unwrap();
        assert!((1.1e6 * LOWER..=1e6).contains(&pps) && is_limited, "{pps}");
        let error = found(8e5, 1e3).unwrap_err();
        assert!(error.ends_with("the generator is slow"), "{error}");
    }
}
