//! A switch with its VNFs and the generator, and how it is measured. A switch is started once for consecutive points that differ in the
//! size of packets or in the load only.

use super::peers::{self, Adapter};
use super::process::Process;
use super::spec::Spec;
use super::topology::{Topology, kinds};
use super::wire::{FCS, MAC, SOURCE_MAC, gbps};
use super::{kernel, router};
use crate::samples::{self, Length, Samples};
use crate::traffic::{Frame, FrameSpec, Latency, Offer, Outcome, Ports, Rig};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longest time until the first packet passes.
const FIRST: Duration = Duration::from_secs(10);
/// Seconds without a packet after which a switch has stopped forwarding.
const SILENT: f64 = 2.0;
/// Sizes of packets that one bed can send; another size has another bed.
const SIZES: [usize; 3] = [64, 256, 1024];

/// The switch that was measured last, and switches that cannot be measured.
#[derive(Default)]
pub struct Beds {
    kept: Option<Bed>,
    /// Why a switch could not be started, by its arguments: it is not tried again in this run.
    failed: Vec<(Spec, String)>,
}

/// A running switch.
struct Bed {
    rig: Rig,
    /// What the bed is for.
    spec: Spec,
    /// Title of the switch.
    title: &'static str,
    /// Sizes of the frames of the generator.
    sizes: Vec<usize>,
    /// Largest rates that came back, by size.
    most: BTreeMap<usize, f64>,
    /// Ended when they are dropped: before the folder is removed.
    processes: Vec<Process>,
    _folder: Folder,
}

/// A folder for sockets, removed when it is dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Result<Folder, String> {
        let path = samples::scratch();
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is empty sockets.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn frame(size: usize) -> Result<Frame, String> {
    let parse = |text: &str| text.parse().map_err(|e| format!("{text}: {e}"));
    Frame::new(&FrameSpec {
        source_mac: SOURCE_MAC,
        destination_mac: MAC,
        source: parse("198.19.0.1")?,
        destination: parse("20.0.0.1")?,
        addresses: 1,
        size: size - FCS,
    })
}

/// The part of the arguments that the bed depends on.
fn key(spec: &Spec) -> Spec {
    let size = match SIZES.contains(&spec.size) {
        true => SIZES[0],
        false => spec.size,
    };
    Spec {
        size,
        load: None,
        ..spec.clone()
    }
}

/// Measure a switch by itself.
///
/// # Errors
/// As [`Beds::measure`].
pub fn measure(spec: &Spec, length: Length) -> Result<Samples, String> {
    Beds::default().measure(spec, length)
}

impl Beds {
    /// Measure throughput, or with a load the time through the switch.
    ///
    /// # Errors
    /// If a process cannot be started, ends or hangs, or no packet passes.
    pub fn measure(&mut self, spec: &Spec, length: Length) -> Result<Samples, String> {
        let key = key(spec);
        if let Some((_, why)) = self.failed.iter().find(|(failed, _)| *failed == key) {
            return Err(why.clone());
        }
        if self.kept.as_ref().is_none_or(|bed| bed.spec != key) {
            // The old switch ends before the new one starts: both would poll.
            self.close();
            match Bed::new(&key) {
                Ok(bed) => self.kept = Some(bed),
                Err(why) => {
                    self.failed.push((key, why.clone()));
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
        check(adapter, spec)?;
        let kinds = kinds(spec);
        let folder = Folder::new()?;
        let links = kernel::start(&kinds)?;
        let holder = links.as_ref().map_or(0, Process::id);
        let placed = Spec {
            memif_queues: adapter.memif_queues,
            ..spec.clone()
        };
        let topology = Topology::new(&placed, &folder.0, holder)?;
        let mut processes = vec![(adapter.start)(&topology, &program)?];
        for vnf in &topology.vnfs {
            processes.push(router::start_vnf(&program, vnf)?);
        }
        // Last, so that the switch and the VNFs end before their ports do.
        processes.extend(links);
        let sizes = match SIZES.contains(&spec.size) {
            true => SIZES.to_vec(),
            false => vec![spec.size],
        };
        let rig = rig(spec, &topology, &sizes).or_else(|why| {
            // A process that has ended is the reason for a link that does not come up.
            processes.iter_mut().try_for_each(Process::check)?;
            Err(why)
        })?;
        let mut bed = Bed {
            rig,
            spec: spec.clone(),
            title: adapter.title,
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
        while start.elapsed() < FIRST {
            let outcome = self.run(Some(1_000.0), 0.05)?;
            if outcome.returned.is_some_and(|r| r.packets > 0) {
                return Ok(());
            }
        }
        Err(format!(
            "{}: no packet came back in {} s",
            self.title,
            FIRST.as_secs()
        ))
    }

    fn run(&mut self, rate: Option<f64>, seconds: f64) -> Result<Outcome, String> {
        self.check()?;
        let offer = Offer {
            rate,
            burst: 1,
            packets: None,
        };
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
            self.title
        ))
    }

    fn measure(&mut self, spec: &Spec, length: Length) -> Result<Samples, String> {
        let number = self.sizes.iter().position(|size| *size == spec.size);
        self.rig.choose(number.unwrap_or(0) as u32);
        if let Some(load) = spec.load {
            return self.times(load, spec.size, length);
        }
        let mut samples = Samples::new();
        let mut add =
            |name: &str, value: f64| samples.entry(name.to_owned()).or_default().push(value);
        let gigahertz = volley_simd::cycles_per_second() / 1e9;
        // The first trial warms up.
        self.pps(length.seconds)?;
        for _ in 0..length.repetitions {
            let pps = self.pps(length.seconds)?;
            add("gbps", gbps(pps, spec.size));
            add("mpps", pps / 1e6);
            add("per_ghz", pps / 1e6 / gigahertz);
        }
        Ok(samples)
    }

    /// Times through the switch at a part of the largest rate, which is R+ of the paper.
    fn times(&mut self, load: f64, size: usize, length: Length) -> Result<Samples, String> {
        let most = match self.most.get(&size) {
            Some(most) => *most,
            None => {
                self.pps(length.seconds)?;
                let most = self.pps(length.seconds)?;
                self.most.insert(size, most);
                most
            }
        };
        let mut trials: Vec<Latency> = Vec::new();
        for _ in 0..2 * length.repetitions {
            let outcome = self.run(Some(load * most), length.seconds)?;
            trials.extend(outcome.returned.and_then(|r| r.latency));
        }
        if trials.is_empty() {
            return Err(format!(
                "{} stopped forwarding: no packet came back",
                self.title
            ));
        }
        // Another program delays packets by milliseconds: the quieter half counts.
        trials.sort_by(|a, b| a.p99_us.total_cmp(&b.p99_us));
        trials.truncate(trials.len().div_ceil(2));
        let mut samples = Samples::new();
        for latency in trials {
            for (name, value) in [
                ("minimum", latency.min_us),
                ("median", latency.median_us),
                ("p90", latency.p90_us),
                ("p99", latency.p99_us),
            ] {
                samples.entry(name.to_owned()).or_default().push(value);
            }
        }
        Ok(samples)
    }
}

/// Whether the switch can have the ports and the allocation.
fn check(adapter: &Adapter, spec: &Spec) -> Result<(), String> {
    if !adapter.has(&kinds(spec)) {
        return Err(format!(
            "{} does not have these ports: change --ports or --physical",
            adapter.name
        ));
    }
    match spec.cores.is_some() && !adapter.is_placed {
        true => Err(format!(
            "{} cannot be placed on cores: leave --cores out",
            adapter.name
        )),
        false => Ok(()),
    }
}

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
        wait: FIRST,
        ..Ports::default()
    };
    let frames: Result<Vec<Frame>, String> = sizes.iter().map(|size| frame(*size)).collect();
    Rig::new(&ports, &frames?).map_err(|e| e.to_string())
}
