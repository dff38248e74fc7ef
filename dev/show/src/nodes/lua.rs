//! Routers and graphs in Lua: the router beside the native one, and the ways to scatter a batch.

use crate::at_most;
use serde_json::Value;
use std::path::PathBuf;
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::Program;

/// Scenarios of the router, with MoonRoute's rate in Mpps at its clock.
const ROUTERS: [(&str, f64); 3] = [("router", 14.6), ("router-1m", 14.2), ("router-16m", 11.6)];
/// Clock of MoonRoute's measurement in GHz.
const MOONROUTE_GHZ: f64 = 3.2;
/// Maximum cost of a packet of the router in Lua with one route, as a multiple of the native one's, source and loop included.
const BAR: f64 = 1.5;
/// Batch sizes of the comparison.
const BATCHES: &str = "4,32,256";
/// Maximum cost of drop-out, as a multiple of that of arrays, at low shares and with large batches.
const SCATTER_BAR: f64 = 1.0;
/// Small shares in percent.
const LOW: u64 = 10;
/// A large batch.
const LARGE: u64 = 256;

/// Tests the router, then measures it beside the native router of the same process.
pub fn router(home: &Home) -> Outcome {
    Outcome::of(router_figures(home))
}

fn router_figures(home: &Home) -> Result<String, String> {
    let tests = ["test", "--workspace", "--test", "lua"];
    Program::cargo(home).args(tests).require()?;
    let library = library(home)?;
    let mut table = Vec::new();
    let mut first = None;
    for (name, moonroute) in ROUTERS {
        let words = ["plugin", "--no-counts", "--json", "--scenario", name];
        let report = bench(home, &library, &words)?;
        let row = &report["rows"][0];
        let figure = |path: &str| {
            let found = row.pointer(path).and_then(Value::as_f64);
            found.ok_or_else(|| format!("scenario {name} has no {path}"))
        };
        let (lua, native) = (figure("/whole/all/median")?, figure("/native/all/median")?);
        let per_tsc = figure("/whole/core_cycles_per_tsc")?;
        let at_clock = MOONROUTE_GHZ * 1e3 / (lua * per_tsc);
        table.push(format!(
            "{name} {:.2} Mpps, native {:.2}, {:.2} times its cost (nodes alone {:.1} and {:.1} cycles); at {MOONROUTE_GHZ} GHz {at_clock:.1} Mpps, MoonRoute {moonroute}",
            figure("/whole/mpps")?,
            figure("/native/mpps")?,
            lua / native,
            figure("/whole/graph/median")?,
            figure("/native/graph/median")?,
        ));
        first = first.or(Some(lua / native));
    }
    let (ratio, table) = (first.unwrap_or(f64::MAX), table.join("; "));
    let add = |text: String| format!("one route costs {text} ({table})");
    let judged = at_most(ratio, BAR, "times the native router");
    judged.map(add).map_err(add)
}

/// Tests that all ways have the same packets, then compares their costs.
pub fn scatter(home: &Home) -> Outcome {
    Outcome::of(scatter_figures(home))
}

fn scatter_figures(home: &Home) -> Result<String, String> {
    let tests = ["test", "--workspace", "--lib", "tests::scatter::"];
    Program::cargo(home).args(tests).require()?;
    let library = library(home)?;
    let words = [
        "scatter",
        "--json",
        "--seconds",
        "0.01",
        "--repetitions",
        "5",
        "--batches",
        BATCHES,
    ];
    let cells = bench(home, &library, &words)?;
    let cells = cells.as_array().map_or(&[][..], Vec::as_slice);
    let mut text = Vec::new();
    let (mut drop_out, mut arrays) = (0.0, 0.0);
    for cell in cells {
        let cost = cell.pointer("/graph/median").and_then(Value::as_f64);
        let cost = cost.ok_or("a cell has no cost")?;
        let way = cell["way"].as_str().unwrap_or_default();
        let number = |name: &str| cell[name].as_u64().unwrap_or_default();
        let (share, batch) = (number("share_percent"), number("batch"));
        text.push(format!("{way}/{share} %/{batch}: {cost:.0}"));
        if share <= LOW && batch == LARGE {
            match way {
                "arrays" => arrays += cost,
                "drop-out" => drop_out += cost,
                _ => {}
            }
        }
    }
    let text = text.join(", ");
    if arrays <= 0.0 || drop_out <= 0.0 {
        return Err(format!("a way is missing ({text})"));
    }
    let add = |verdict: String| {
        format!(
            "with at most {LOW} % complex packets, drop-out costs {verdict} (cycles per packet by way, share and batch: {text})"
        )
    };
    at_most(drop_out / arrays, SCATTER_BAR, "times arrays")
        .map(add)
        .map_err(add)
}

/// The Lua plugin of the release profile, as the router that loads it.
fn library(home: &Home) -> Result<PathBuf, String> {
    let build = ["build", "--release", "--locked", "-p", "volley-lua"];
    Program::cargo(home).args(build).require()?;
    Ok(home.target.join("release/libvolley_lua.so"))
}

/// The JSON of a benchmark of the plugin.
fn bench(home: &Home, library: &PathBuf, words: &[&str]) -> Result<Value, String> {
    let ran = Program::new(home, home.volley())
        .arg("bench")
        .args(words)
        .arg(library)
        .limit_seconds(1800)
        .require()?;
    serde_json::from_str(&ran.stdout).map_err(|error| error.to_string())
}
