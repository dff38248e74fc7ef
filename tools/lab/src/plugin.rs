//! Measures the nodes of the tutorial's plugin, in a process of the benchmark for each scenario.

use crate::samples::{Length, Samples};
use crate::switch::dependent;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// File name of the library.
const LIBRARY: &str = "libip_in_ip.so";
/// Where the library is, seen from the folder of this program.
const PLACES: [&str; 2] = ["", "../tutorial/release"];

/// Longest time of the benchmark, beside its repetitions.
const LIMIT: Duration = Duration::from_secs(120);
/// So many times longer than the repetitions, the benchmark may take: it repeats those that other programs have disturbed.
const AGAIN: f64 = 20.0;

/// What is read of the output of `volley bench plugin`.
#[derive(Deserialize)]
struct Report {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    clock_samples: Vec<f64>,
}

/// The library that was named, or one beside this program.
fn library(named: Option<&Path>, program: &Path) -> Result<PathBuf, String> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let folder = program.parent().unwrap_or(Path::new("."));
    let mut all = PLACES.iter().map(|place| folder.join(place).join(LIBRARY));
    all.find(|path| path.is_file()).ok_or_else(|| {
        format!("{LIBRARY} is not beside this program: build docs/tutorial/ip-in-ip and name the library with --plugin")
    })
}

/// Cycles of the node of a scenario per packet, of each repetition.
///
/// # Errors
/// If the library cannot be used.
pub fn measure(named: Option<&Path>, scenario: &str, length: Length) -> Result<Samples, String> {
    let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let library = library(named, &program)?;
    let mut command = dependent(&program.to_string_lossy());
    command.args(["bench", "plugin"]).arg(&library);
    command.args(["--scenario", scenario, "--no-counts", "--json"]);
    command.args(["--seconds", &length.seconds.to_string()]);
    command.args(["--repetitions", &length.repetitions.to_string()]);
    let limit = AGAIN * length.seconds * length.repetitions as f64;
    let done = output_within(command, LIMIT + Duration::from_secs_f64(limit));
    let done = done.map_err(|why| format!("{}: {why}", library.display()))?;
    if !done.status.success() {
        let text = String::from_utf8_lossy(&done.stderr);
        let last = text.lines().last().unwrap_or("no message").trim();
        return Err(format!("{}: {last}", library.display()));
    }
    clocks(&String::from_utf8_lossy(&done.stdout))
}

/// The output of a program, which is killed at the limit: a plugin may not end.
pub fn output_within(mut command: Command, limit: Duration) -> Result<Output, String> {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|e| e.to_string())?;
    let id = Pid::from_child(&child);
    let (done, ended) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let is_late = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if is_late {
            // A process that has ended meanwhile cannot be killed.
            let _ = kill_process(id, Signal::KILL);
        }
        is_late
    });
    let output = child.wait_with_output();
    drop(done);
    match watch.join() {
        Ok(true) => Err(format!(
            "the benchmark did not end in {} s",
            limit.as_secs_f64()
        )),
        _ => output.map_err(|e| e.to_string()),
    }
}

fn clocks(text: &str) -> Result<Samples, String> {
    let report: Report = serde_json::from_str(text).map_err(|e| format!("the benchmark: {e}"))?;
    let row = report.rows.into_iter().next();
    let row = row.ok_or("the benchmark printed no row")?;
    match row.clock_samples.is_empty() {
        true => Err("other programs used the core all the time".to_owned()),
        false => Ok(Samples::from([("clocks".to_owned(), row.clock_samples)])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_of_a_row() {
        let text = r#"{"plugin":"x","rows":[{"clock_samples":[1.0,4.5,2.0,2.5],"node":"n"}]}"#;
        assert_eq!(clocks(text).unwrap()["clocks"], [1.0, 4.5, 2.0, 2.5]);
        for bad in [r#"{"rows":[]}"#, r#"{"rows":[{"clock_samples":[]}]}"#] {
            assert!(clocks(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_benchmark_that_does_not_end_is_killed() {
        let mut command = Command::new("sleep");
        command.arg("100");
        let error = output_within(command, Duration::from_millis(50)).unwrap_err();
        assert_eq!(error, "the benchmark did not end in 0.05 s");
        let mut command = Command::new("echo");
        command.arg("done");
        let output = output_within(command, Duration::from_secs(100)).unwrap();
        assert_eq!(output.stdout, b"done\n");
    }

    #[test]
    fn a_library_is_named_or_beside_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("volley-lab");
        let error = library(None, &program).unwrap_err();
        assert!(error.contains("--plugin"), "{error}");
        let named = library(Some(Path::new("/x.so")), &program).unwrap();
        assert_eq!(named, Path::new("/x.so"));
        std::fs::write(folder.path().join(LIBRARY), "").unwrap();
        assert!(library(None, &program).is_ok());
    }
}
