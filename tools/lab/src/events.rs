//! Measures events per packet with callgrind: the benchmark in another process, on a simulated processor.
//!
//! A virtual machine often has no hardware counters. callgrind counts instructions exactly, and simulates caches and branch prediction. Two
//! runs with different numbers of packets are made: what is common to both cancels out in the difference.

use crate::samples::{self, Samples};
use crate::switch::{dependent, is_installed};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// All nodes except the source, and the dispatcher's work for them.
const GRAPH: &str = "volley_graph::worker::round::Worker::run_pending";
/// valgrind 3.19 does not know AVX-512.
pub const LEVEL: &str = "x86-64-v3";
/// The longer run has so many times the packets of the shorter one.
const LONGER: u64 = 3;
/// With many destinations, the runs have so many times the packets: each destination must be looked up once before the caches are steady.
const MANY: u64 = 4;
/// The simulated caches: those of the machine that the other figures are from, with its second level as the last.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,8,64"];
/// Largest file of callgrind.
const MOST: u64 = 64 << 20;
/// Longest time of a run.
const LIMIT: Duration = Duration::from_secs(300);

/// Metrics, and the columns of callgrind that they are the sum of.
const METRICS: [(&str, &[&str]); 5] = [
    ("instructions", &["Ir"]),
    ("L1 instruction misses", &["I1mr"]),
    ("L1 data misses", &["D1mr", "D1mw"]),
    ("L2 misses", &["ILmr", "DLmr", "DLmw"]),
    ("branch misses", &["Bcm", "Bim"]),
];

/// Packets of the shorter one of two runs, whose longer one has [`LONGER`] times as many.
fn few(args: &str, packets: u64) -> u64 {
    match args.contains("--distinct") {
        true => MANY * packets,
        false => packets,
    }
}

/// Packets of the longer run of a measurement, which takes longest.
pub fn most(args: &str, packets: u64) -> u64 {
    LONGER * few(args, packets)
}

/// Events per packet of a run of the benchmark. The program `bench` takes its arguments after `words`; the shorter run has
/// `packets` packets. Both runs are made at the same time: callgrind counts the same on a busy processor.
///
/// # Errors
/// If valgrind is not installed, or fails.
pub fn measure(
    program: &Path,
    words: &[&str],
    args: &str,
    packets: u64,
) -> Result<Samples, String> {
    if !is_installed("valgrind") {
        return Err("valgrind is not installed: no events are counted".to_owned());
    }
    let folder = samples::scratch()?;
    let (few, many) = (few(args, packets), most(args, packets));
    let run = |packets: u64| {
        let file = folder.file(&format!("callgrind.{packets}"));
        let mut command = by_valgrind(&file);
        command
            .arg(program)
            .args(words)
            .args(args.split_whitespace())
            .args(["--isa", LEVEL, "--packets", &packets.to_string()]);
        // The path batcher knows no such option, and needs none.
        if !args.trim_start().starts_with("path-batcher") {
            command.arg("--callgrind");
        }
        finish(command, LIMIT)?;
        let text = volley_file::read_text(&file, MOST);
        let text = text.map_err(|e| format!("{}: {e}", file.display()))?;
        Ok::<_, String>(totals(&text))
    };
    let counted = std::thread::scope(|scope| {
        let longer = scope.spawn(|| run(many));
        let shorter = run(few)?;
        let longer = longer.join();
        let longer = longer.map_err(|_| "the thread of callgrind panicked".to_owned())??;
        Ok::<_, String>((shorter, longer))
    });
    let (shorter, longer) = counted?;
    per_packet(&shorter, &longer, many - few)
}

/// callgrind, which ends when this program does.
fn by_valgrind(file: &Path) -> Command {
    let mut command = dependent("valgrind");
    command
        .args([
            "--tool=callgrind",
            "--quiet",
            "--cache-sim=yes",
            "--branch-sim=yes",
        ])
        .args(CACHES)
        .arg(format!("--toggle-collect={GRAPH}"))
        .arg(format!("--callgrind-out-file={}", file.display()));
    command
}

type Totals = BTreeMap<String, u64>;

/// Totals by the name of the event.
fn totals(text: &str) -> Totals {
    let find = |key: &str| text.lines().rev().find_map(|line| line.strip_prefix(key));
    let names = find("events:").unwrap_or_default().split_whitespace();
    let values = find("totals:")
        .or_else(|| find("summary:"))
        .unwrap_or_default();
    let values = values.split_whitespace().map(|v| v.parse().unwrap_or(0));
    names.map(str::to_owned).zip(values).collect()
}

fn per_packet(few: &Totals, many: &Totals, packets: u64) -> Result<Samples, String> {
    let mut samples = Samples::new();
    for (metric, columns) in METRICS {
        let sum = |totals: &Totals| -> Option<u64> {
            columns.iter().map(|c| totals.get(*c).copied()).sum()
        };
        let (Some(few), Some(many)) = (sum(few), sum(many)) else {
            return Err(format!("callgrind did not count {}", columns.join(", ")));
        };
        // Misses of a cold cache are more in the shorter run at times.
        let events = many.saturating_sub(few) as f64 / packets as f64;
        samples.insert(metric.to_owned(), vec![events]);
    }
    match samples["instructions"][0] > 0.0 {
        true => Ok(samples),
        false => Err("callgrind counted no instruction of the graph".to_owned()),
    }
}

/// Run a program to its end; it is ended at the limit.
fn finish(mut command: Command, limit: Duration) -> Result<(), String> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("valgrind: {e}"))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                end(&mut child);
                return Err(format!("valgrind did not end in {} s", limit.as_secs()));
            }
            Err(e) => {
                end(&mut child);
                return Err(format!("valgrind: {e}"));
            }
        }
    };
    let mut text = String::new();
    if let Some(mut out) = child.stderr.take() {
        // What cannot be read is missing in the message only.
        let _ = out.read_to_string(&mut text);
    }
    match status.success() {
        true => Ok(()),
        false => {
            let last = text
                .lines()
                .last()
                .unwrap_or("no message")
                .trim()
                .to_owned();
            Err(format!("valgrind ended with {status}: {last}"))
        }
    }
}

fn end(child: &mut Child) {
    // A process that has ended cannot be ended again.
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: &str = "version: 1\nevents: Ir Dr I1mr D1mr D1mw ILmr DLmr DLmw Bcm Bim\nfn=(1)\n1 2\ntotals: 1000 5 10 20 10 1 1 1 4 4\n";

    #[test]
    fn events_are_differences_by_packet() {
        let few = totals(FEW);
        assert_eq!(few["Ir"], 1000);
        let mut many = few.clone();
        for value in many.values_mut() {
            *value += 102_400;
        }
        let samples = per_packet(&few, &many, 102_400).unwrap();
        assert_eq!(samples["instructions"], [1.0]);
        assert_eq!(samples["L1 data misses"], [2.0]);
        assert_eq!(samples["L2 misses"], [3.0]);
        assert!(per_packet(&few, &few, 1).is_err());
        many.remove("I1mr");
        assert!(per_packet(&few, &many, 1).unwrap_err().contains("I1mr"));
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let start = Instant::now();
        let mut command = Command::new("sleep");
        command.arg("100");
        let error = finish(command, Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("did not end"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(10));
        assert!(finish(Command::new("false"), Duration::from_secs(10)).is_err());
        assert!(finish(Command::new("no-such-program-at-all"), LIMIT).is_err());
    }
}
