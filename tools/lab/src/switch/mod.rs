//! Measures a switch that runs as a process: the scenarios of the benchmark of software switches.
//!
//! Generator and sink are in this process. The switch under test and every virtual network function (VNF) are processes of their own,
//! started through an adapter (module `peers`). Ports are memif, vhost-user or veth pairs; a physical port is a memif port or a
//! veth pair, which the report states.

mod kernel;
mod peers;
mod process;
mod router;
mod spec;
mod topology;

pub use peers::{ADAPTERS, Adapter};
pub use process::can_make_namespaces;
pub use router::{RouterArgs, main as router};
pub use spec::Spec;
pub use topology::{Kind, kinds};

use crate::samples::{self, Length, Samples};
use crate::traffic::{Frame, FrameSpec, Latency, Offer, Ports, Rig};
use process::Process;
use std::path::Path;
use std::time::{Duration, Instant};
use topology::Topology;
use volley_model::Mac;

/// Longest time until the first packet passes.
const FIRST: Duration = Duration::from_secs(15);
/// Bytes of a frame that are on the wire but not in the frame: preamble, gap, frame check sequence.
const WIRE: f64 = 24.0;
/// Bytes of the frame check sequence, which the sizes of the paper include.
const FCS: usize = 4;

/// MAC addresses of the generator's packets: of the sender, and of the receiver.
const SOURCE_MAC: Mac = Mac([2, 0, 0, 0, 0, 0x99]);
const MAC: Mac = Mac([2, 0, 0, 0, 0, 0x98]);

/// A switch with its VNFs and the generator.
struct Bed {
    rig: Rig,
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

fn frame(spec: &Spec) -> Result<Frame, String> {
    let parse = |text: &str| text.parse().map_err(|e| format!("{text}: {e}"));
    Frame::new(&FrameSpec {
        source_mac: SOURCE_MAC,
        destination_mac: MAC,
        source: parse("198.19.0.1")?,
        destination: parse("20.0.0.1")?,
        addresses: 1,
        size: spec.size - FCS,
    })
}

impl Bed {
    fn new(spec: &Spec, program: &Path) -> Result<Bed, String> {
        let adapter = peers::find(&spec.peer)?;
        let kinds = kinds(spec);
        if !adapter.has(&kinds) {
            return Err(format!(
                "{} does not have these ports: change --ports or --physical",
                adapter.name
            ));
        }
        let folder = Folder::new()?;
        let links = kernel::start(&kinds)?;
        let topology = Topology::new(spec, &folder.0, links.as_ref().map_or(0, Process::id));
        let mut processes = vec![(adapter.start)(&topology, program)?];
        for vnf in &topology.vnfs {
            processes.push(router::start_vnf(program, vnf)?);
        }
        // Last, so that the switch and the VNFs end before their ports do.
        processes.extend(links);
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
        let rig = Rig::new(&ports, Some(frame(spec)?)).map_err(|e| e.to_string())?;
        let mut bed = Bed {
            rig,
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
        Err(format!("no packet came back in {} s", FIRST.as_secs()))
    }

    fn run(&mut self, rate: Option<f64>, seconds: f64) -> Result<crate::traffic::Outcome, String> {
        for process in &mut self.processes {
            process.check()?;
        }
        let offer = Offer {
            rate,
            burst: 1,
            packets: None,
        };
        let time = Duration::from_secs_f64(seconds);
        self.rig
            .run(&offer, time, &|| false)
            .map_err(|e| e.to_string())
    }
}

/// Gbit/s on the wire of packets per second.
fn gbps(pps: f64, size: usize) -> f64 {
    pps * ((size - FCS) as f64 + WIRE) * 8.0 / 1e9
}

/// Measure throughput, or with a load the round-trip time.
///
/// # Errors
/// If a process cannot be started, or no packet passes.
pub fn measure(spec: &Spec, length: Length) -> Result<Samples, String> {
    let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let mut bed = Bed::new(spec, &program)?;
    let mut samples = Samples::new();
    let mut add = |name: &str, value: f64| samples.entry(name.to_owned()).or_default().push(value);
    // The most that comes back while as many packets as possible are offered: R+ of the paper.
    bed.run(None, length.seconds)?;
    let mut most = 0.0_f64;
    for _ in 0..length.repetitions {
        let outcome = bed.run(None, length.seconds)?;
        let pps = outcome.returned.map_or(0.0, |r| r.pps);
        most = most.max(pps);
        if spec.load.is_none() {
            add("gbps", gbps(pps, spec.size));
            add("mpps", pps / 1e6);
        } else {
            break;
        }
    }
    let Some(load) = spec.load else {
        return Ok(samples);
    };
    let mut trials: Vec<Latency> = Vec::new();
    for _ in 0..2 * length.repetitions {
        let outcome = bed.run(Some(load * most), length.seconds)?;
        trials.extend(outcome.returned.and_then(|r| r.latency));
    }
    // Another program delays packets by milliseconds: the quieter half counts.
    trials.sort_by(|a, b| a.p99_us.total_cmp(&b.p99_us));
    trials.truncate(trials.len().div_ceil(2));
    for latency in trials {
        add("minimum", latency.min_us);
        add("median", latency.median_us);
        add("p90", latency.p90_us);
        add("p99", latency.p99_us);
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_rate_is_that_of_ethernet() {
        let ten = gbps(14_880_952.0, 64);
        assert!((ten - 10.0).abs() < 0.001, "{ten}");
        assert!((gbps(1_197_318.0, 1024) - 10.0).abs() < 0.001);
    }
}
