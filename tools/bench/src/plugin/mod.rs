//! `volley bench plugin`: the cost of each node that a plugin offers as a benchmark. The router of this process has only the plugin, an
//! interface that receives and one that transmits. Each scenario runs in its own process, so that none finds objects of another.

mod counts;
mod rig;
mod table;

use super::BenchError;
use super::args::PluginArgs;
use super::measure::pin;
use super::report::{Spread, print_json};
use counts::{Counts, Way};
use rig::{Case, Rig};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// Figures of one scenario.
#[derive(Serialize, Deserialize)]
struct Row {
    scenario: String,
    node: String,
    vector_size: usize,
    packets: u64,
    /// TSC cycles of the node per packet.
    clocks: Spread,
    /// Percentage of packets that the node drops, by reason.
    dropped: BTreeMap<String, f64>,
    /// Counted events per packet.
    counts: Option<Counts>,
    published: Vec<Peer>,
}

/// Figures that others have published for the same work.
#[derive(Serialize, Deserialize)]
struct Peer {
    source: String,
    clocks: Option<f64>,
    l1_misses: Option<f64>,
    mispredicted: Option<f64>,
}

/// Result of the whole command.
#[derive(Serialize)]
struct Report {
    plugin: String,
    isa: String,
    /// Origin of `counts`.
    counted_by: Option<Way>,
    rows: Vec<Row>,
}

/// Run the scenarios of the command line.
pub fn run(args: &PluginArgs) -> Result<(), BenchError> {
    let mut rig = Rig::new(args)?;
    let cases = rig.cases(args)?;
    if let [case] = &cases[..] {
        if let Some(packets) = args.packets {
            rig.prepare(case)?;
            print_json(&rig.pass(packets)?);
            return Ok(());
        }
        if args.no_counts {
            pin(args.core);
            rig.prepare(case)?;
            let row = rig.measure(case, args)?;
            return print(args, &rig, None, vec![row]);
        }
    }
    if args.packets.is_some() {
        let text = "--packets is for one scenario: name it with --scenario";
        return Err(BenchError::Args(text.into()));
    }
    let way = match args.no_counts {
        true => None,
        false => counts::way(),
    };
    let rows = cases.iter().map(|case| row(args, case, way));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    print(args, &rig, way, rows)
}

/// The figures of one scenario, measured by separate processes.
fn row(args: &PluginArgs, case: &Case, way: Option<Way>) -> Result<Row, BenchError> {
    let mut words = words(args, case);
    words.extend(["--no-counts", "--json"].map(OsString::from));
    let exe = program()?;
    let mut child = Command::new(&exe);
    let text = output(child.args(&words).stderr(Stdio::inherit()))?;
    let bad = |why: serde_json::Error| BenchError::Wrong(format!("scenario {}: {why}", case.name));
    let mut report: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&text).map_err(bad)?;
    let rows = report.remove("rows").unwrap_or_default();
    let mut rows: Vec<Row> = serde_json::from_value(rows).map_err(bad)?;
    let row = rows.pop();
    let mut row = row.ok_or_else(|| BenchError::Wrong(format!("{}: no row", case.name)))?;
    if let Some(way) = way {
        row.counts = Some(counts::count(way, &exe, args, case)?);
    }
    Ok(row)
}

/// The arguments of a process that runs one scenario.
fn words(args: &PluginArgs, case: &Case) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["bench".into(), "plugin".into(), args.file.clone().into()];
    let option = match case.is_offered {
        true => ["--scenario", &case.name],
        false => ["--node", &case.node],
    };
    words.extend(option.map(OsString::from));
    let mut number = |name: &str, value: String| words.extend([name.into(), value.into()]);
    if let Some(size) = args.vector_size {
        number("--vector-size", size.to_string());
    }
    if let Some(core) = args.core {
        number("--core", core.to_string());
    }
    number("--seconds", args.seconds.to_string());
    number("--repetitions", args.repetitions.to_string());
    number("--isa", args.isa.clone());
    words
}

fn program() -> Result<OsString, BenchError> {
    let found = std::env::current_exe();
    let found = found.map_err(|why| file_error("the running program", &why))?;
    Ok(found.into())
}

/// The standard output of a process that must succeed.
fn output(command: &mut Command) -> Result<String, BenchError> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|why| file_error(&shown, &why))?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr);
        let why = why.lines().last().unwrap_or("the reason is above");
        let text = format!("{shown} ended with {}: {why}", done.status);
        return Err(BenchError::Wrong(text));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

fn file_error(path: &str, why: &std::io::Error) -> BenchError {
    BenchError::File {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

fn print(args: &PluginArgs, rig: &Rig, way: Option<Way>, rows: Vec<Row>) -> Result<(), BenchError> {
    let report = Report {
        plugin: rig.plugin().to_owned(),
        isa: rig.level(),
        counted_by: way,
        rows,
    };
    match args.json {
        true => print_json(&report),
        false => print!("{}", table::text(&report)),
    }
    Ok(())
}
