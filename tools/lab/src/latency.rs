//! Measures the latency of a scenario of the benchmark, in memory: the generator feeds the scenario, the sink is where its packets
//! would be transmitted.
//!
//! R+ is the largest rate that the generator, the scenario and the sink reach together on one core. A trial offers a part of it. Another
//! program that takes the core delays packets by milliseconds, so the quieter half of the trials counts: those with the smaller 99th
//! percentiles.

use crate::samples::{Length, Samples};
use crate::traffic::{Frame, FrameSpec, Instruments, Latency, Offer, SinkAt};
use std::time::{Duration, Instant};
use volley_bench::{Args, Entry, Setup, TX};
use volley_model::Mac;

/// Bytes of a packet: IPv6 has room for a probe from 80 bytes on.
const LEAST: u32 = 80;
/// Trials for each repetition that counts.
const TRIALS: usize = 2;

/// A scenario with the instruments.
struct Bed {
    setup: Setup,
    instruments: Instruments,
}

fn frame(entry: &Entry, size: u32) -> Result<Frame, String> {
    let source = match entry.address.is_ipv4() {
        true => "198.19.0.1",
        false => "2001:2:1::1",
    };
    Frame::new(&FrameSpec {
        source_mac: Mac([2, 0, 0, 0, 0, 0x99]),
        destination_mac: Mac(entry.mac),
        source: source.parse().map_err(|e| format!("{source}: {e}"))?,
        destination: entry.address,
        addresses: 1,
        size: size.max(LEAST) as usize,
        vlan: None,
    })
}

impl Bed {
    fn new(args: &Args) -> Result<Bed, String> {
        let mut setup = Setup::new(args).map_err(|e| e.to_string())?;
        let index = |name: &str| {
            let found = setup.stack.interfaces.borrow().index(name);
            found.map_err(|e| e.to_string())
        };
        let mut frames = Vec::new();
        for entry in args.scenario.entries() {
            frames.push((index(entry.interface)?, frame(&entry, args.size)?));
        }
        let sink = SinkAt::Transmission(index(TX)?);
        let installed = Instruments::install(&setup.stack, vec![frames], &[sink], None);
        let instruments = installed.map_err(|e| e.to_string())?;
        while !setup.stack.settled() {
            setup.worker.step();
        }
        Ok(Bed { setup, instruments })
    }

    fn run(&mut self, offer: &Offer, seconds: f64) -> crate::traffic::Outcome {
        self.instruments.begin(offer);
        let (start, time) = (Instant::now(), Duration::from_secs_f64(seconds));
        while start.elapsed() < time {
            self.setup.worker.steps(16);
        }
        self.instruments.end();
        // No packet stays in a router in memory.
        self.setup.worker.steps(64);
        self.instruments.outcome(offer)
    }
}

/// The statistics by metric.
fn add(samples: &mut Samples, latency: &Latency) {
    for (name, value) in [
        ("minimum", latency.min_us),
        ("mean", latency.mean_us),
        ("deviation", latency.deviation_us),
        ("median", latency.median_us),
        ("p99", latency.p99_us),
        ("p99.9", latency.p999_us),
    ] {
        samples.entry(name.to_owned()).or_default().push(value);
    }
}

/// Measure the latency with a part of the largest rate, on this thread. The samples are in microseconds.
///
/// # Errors
/// If the scenario cannot be set up, or loses packets at that load.
pub fn measure(load: f64, args: &Args, length: Length) -> Result<Samples, String> {
    volley_bench::pin(None);
    let mut bed = Bed::new(args)?;
    let most = Offer::most();
    bed.run(&most, length.seconds);
    let rates = (0..3).map(|_| bed.run(&most, length.seconds).sent_pps);
    let most = rates.fold(0.0, f64::max);
    let offer = Offer::of(load * most);
    let mut trials: Vec<Latency> = Vec::new();
    for _ in 0..TRIALS * length.repetitions {
        let outcome = bed.run(&offer, length.seconds);
        let returned = outcome.returned.filter(|r| r.lost == 0);
        trials.extend(returned.and_then(|r| r.latency));
    }
    if trials.len() < length.repetitions {
        return Err(format!(
            "packets were lost at {load} of {most:.0} packets per second"
        ));
    }
    trials.sort_by(|a, b| a.p99_us.total_cmp(&b.p99_us));
    let mut samples = Samples::new();
    let quiet = trials.iter().take(length.repetitions);
    quiet.for_each(|latency| add(&mut samples, latency));
    samples.insert("capacity".to_owned(), vec![most / 1e6]);
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn every_scenario_returns_its_packets() {
        volley_daemon::objects::register().unwrap();
        for scenario in ["xc", "l2xc", "ip4", "ip6", "bridge", "mix"] {
            let args = samples::parse(&format!("--scenario {scenario}")).unwrap();
            let mut bed = Bed::new(&args).unwrap();
            let outcome = bed.run(&Offer::of(20_000.0), 0.05);
            let returned = outcome.returned.unwrap();
            assert!(returned.packets > 0, "{scenario}: {outcome:?}");
            assert_eq!((returned.lost, returned.others), (0, 0), "{scenario}");
        }
    }
}
