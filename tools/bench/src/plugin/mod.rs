//! `volley bench plugin`: the cost of each node that a plugin offers as a benchmark. The router of this process has only the plugin, an
//! interface that receives and one that transmits. Each scenario runs in its own process, so that none finds objects of another.

mod child;
mod counts;
mod figures;
mod rig;
mod table;
mod whole;

use super::BenchError;
use super::args::PluginArgs;
use super::measure::pin;
use super::process::{output, program};
use super::report::print_json;
use child::words;
use figures::{Report, Row, Way};
pub use rig::{Case, Rig};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Command, Stdio};

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
    let mut rows = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        // Counting by simulation takes long.
        eprintln!("scenario {} of {}: {}", at + 1, cases.len(), case.name);
        rows.push(row(args, case, way)?);
    }
    print(args, &rig, way, rows)
}

/// The figures of one scenario, measured by separate processes.
pub fn row(args: &PluginArgs, case: &Case, way: Option<Way>) -> Result<Row, BenchError> {
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
