//! `volley bench scatter`: ways to scatter a batch, natively and in Lua, by share of complex packets and batch size. Each figure is
//! that of a scenario of the plugin, measured by a separate process.

use super::BenchError;
use super::args::PluginArgs;
use super::plugin::{Case, Rig, row};
use super::report::{Spread, print_json};
use serde::Serialize;
use std::fmt::Write;

/// The beginning of the names of scenarios.
const PREFIX: &str = "scatter-";
/// UDP source ports below this one are those of complex packets.
const PORTS: u16 = 1000;

/// Figures of one way, share and batch size.
#[derive(Serialize)]
struct Cell {
    way: String,
    share_percent: u16,
    batch: u16,
    /// Cycles per packet of all nodes behind the source.
    graph: Spread,
    /// Cycles per packet of the node that scatters.
    node: Spread,
    /// Packets of a vector, on average of these nodes.
    vector: f64,
}

/// Run the command line.
pub fn run(args: &PluginArgs) -> Result<(), BenchError> {
    let of = |batch: u16, share: u16| PluginArgs {
        batch: Some(batch),
        edit: vec![edit(share)],
        ..args.clone()
    };
    let ways = ways(args)?;
    let all = args.batches.len() * args.shares.len() * ways.len();
    let mut cells = Vec::new();
    for &batch in &args.batches {
        for &share in &args.shares {
            eprintln!("{} of {all}: batch {batch}, {share} % complex", cells.len());
            for way in &ways {
                let row = row(&of(batch, share), way, None)?;
                if let Some((reason, _)) = row.dropped.first_key_value() {
                    let text = format!("{} drops packets: {reason}", way.name);
                    return Err(BenchError::Wrong(text));
                }
                cells.push(Cell {
                    way: way.name.trim_start_matches(PREFIX).to_owned(),
                    share_percent: share,
                    batch,
                    graph: row.whole.graph,
                    node: row.clocks,
                    vector: row.whole.vector,
                });
            }
        }
    }
    match args.json {
        true => print_json(&cells),
        false => print!("{}", text(&cells, ways.len())),
    }
    Ok(())
}

/// The ways that the plugin offers.
fn ways(args: &PluginArgs) -> Result<Vec<Case>, BenchError> {
    let mut cases = Rig::new(args)?.cases(args)?;
    cases.retain(|case| case.name.starts_with(PREFIX));
    match cases.is_empty() {
        true => Err(BenchError::Args(format!(
            "{}: no scenario is named {PREFIX}...: name libvolley_lua.so",
            args.file.display()
        ))),
        false => Ok(cases),
    }
}

/// Source ports for a share of complex packets in percent.
fn edit(share: u16) -> String {
    let first = PORTS - PORTS / 100 * share;
    format!("udp.sport random {first} {}", first + PORTS - 1)
}

/// A table for each batch size: shares down, ways across.
fn text(cells: &[Cell], ways: usize) -> String {
    let mut text = String::from(
        "TSC cycles per packet of all nodes behind the source, median (minimum to maximum)\n",
    );
    let mut batch = None;
    // Writing to a text cannot fail.
    for row in cells.chunks(ways) {
        let Some(first) = row.first() else { continue };
        if batch.replace(first.batch) != Some(first.batch) {
            let _ = write!(text, "\nbatch {:<3} complex", first.batch);
            row.iter()
                .for_each(|it| _ = write!(text, " {:>24}", it.way));
            text.push('\n');
        }
        let _ = write!(text, "{:>15} %", first.share_percent);
        row.iter()
            .for_each(|it| _ = write!(text, " {:>24}", it.graph.to_string()));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_share_of_the_ports_is_complex() {
        assert_eq!(super::edit(0), "udp.sport random 1000 1999");
        assert_eq!(super::edit(25), "udp.sport random 750 1749");
        assert_eq!(super::edit(100), "udp.sport random 0 999");
    }
}
