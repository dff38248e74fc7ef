//! `volley demo --net`: two network namespaces, connected by the Linux bridge, by Linux forwarding, and by Volley with
//! each of its drivers in turn; pings, TCP and UDP streams and jumbo frames between them, and a table of the results.
//!
//! - True on entry: root, `ip`, `ping` and `iperf3`; otherwise one error.
//! - True on exit: the namespaces, interfaces and programs of the demo are removed, for any reason of its end.
//! - Each connection has its own namespaces and daemons; a failed one is reported, and the others continue.

mod daemon;
mod error;
mod hosts;
mod measure;
mod programs;
mod report;
mod way;

pub use error::NetError;
pub use way::Way;

use clap::ValueEnum;
use hosts::Hosts;
use measure::{Figures, Measurement};
use programs::Programs;
use report::{Report, Row};
use std::io::Write;
use std::path::Path;
use way::Site;

/// Required programs, with Debian's packages.
const NEEDS: [(&str, &str); 4] = [
    ("ip", "iproute2"),
    ("ping", "iputils-ping"),
    ("iperf3", "iperf3"),
    ("timeout", "coreutils"),
];
/// Default duration of a stream in seconds.
const SECONDS: u64 = 2;

/// Options of the demo.
pub struct Plan {
    /// Only these connections; all if empty.
    pub only: Vec<Way>,
    /// Seconds of each stream.
    pub seconds: Option<f64>,
    /// Whether to print JSON.
    pub json: bool,
}

/// Run the demo, with files in `folder`.
pub fn main(plan: &Plan, folder: &Path) -> Result<(), NetError> {
    ready()?;
    let programs = Programs::new()?;
    let seconds = plan.seconds.map_or(SECONDS, |s| s.ceil() as u64);
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        optimised: !cfg!(debug_assertions),
        kernel: rustix::system::uname().release().to_string_lossy().into(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        seconds,
        ways: Vec::new(),
    };
    for way in Way::value_variants() {
        if plan.only.is_empty() || plan.only.contains(way) {
            report.ways.push(measure(*way, &programs, folder, seconds)?);
        }
    }
    let text = match plan.json {
        true => serde_json::to_string_pretty(&report).unwrap_or_default() + "\n",
        false => report::text(&report),
    };
    // Ignore a closed output.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let failed: Vec<&str> = report
        .ways
        .iter()
        .filter(|row| row.figures.is_none())
        .map(|row| row.way.as_str())
        .collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(NetError::Incomplete(failed.join(", "))),
    }
}

/// Check whether the demo can run here.
fn ready() -> Result<(), NetError> {
    if !rustix::process::geteuid().is_root() {
        let program = std::env::current_exe();
        let program = program.map_or("volley".to_owned(), |p| p.display().to_string());
        return Err(NetError::NotRoot(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    match NEEDS.into_iter().find(|(program, _)| !there(program)) {
        Some((program, package)) => Err(NetError::Missing { program, package }),
        None => Ok(()),
    }
}

/// Measure one connection. Only an interruption ends the demo; other failures are reported in the row.
fn measure(way: Way, programs: &Programs, folder: &Path, seconds: u64) -> Result<Row, NetError> {
    let mut row = Row {
        way: way.to_string(),
        what: None,
        figures: None,
        fault: None,
    };
    match try_way(way, programs, folder, seconds, &mut row.what) {
        Ok(figures) => row.figures = Some(figures),
        Err(NetError::Interrupted) => return Err(NetError::Interrupted),
        Err(error) => row.fault = Some(error.to_string()),
    }
    Ok(row)
}

fn try_way(
    way: Way,
    programs: &Programs,
    folder: &Path,
    seconds: u64,
    what: &mut Option<String>,
) -> Result<Figures, NetError> {
    let tell = |part: &str| _ = writeln!(std::io::stderr(), "volley: {way}: {part}");
    tell("joining two namespaces");
    let hosts = Hosts::new(programs)?;
    let folder = folder.join(format!("{way:?}"));
    std::fs::create_dir_all(&folder).map_err(|source| NetError::Io {
        path: folder.clone(),
        source,
    })?;
    let site = Site {
        hosts: &hosts,
        programs,
        folder: &folder,
    };
    let joined = way.join(&site)?;
    *what = Some(joined.what.clone());
    let measurement = Measurement {
        hosts: &hosts,
        programs,
        target: joined.target,
        seconds,
    };
    measurement.run(&tell)
    // `joined` is dropped first: daemons end before their namespaces are removed.
}
