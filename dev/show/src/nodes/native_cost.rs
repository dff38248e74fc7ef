//! The cost of a node as a plugin against the same node built in, in instructions, which other load does not change.

use crate::at_most;
use xtask::budget;
use xtask::home::Home;
use xtask::report::{Outcome, Skip};
use xtask::run::{Program, exists};

/// Maximum difference in percent.
const BAR: f64 = 2.0;
/// Rounds of the two runs: the first rounds, which allocate, cancel out.
const ROUNDS: (u32, u32) = (200, 600);
/// Packets of a vector.
const SIZE: u32 = 256;
/// valgrind does not support AVX-512.
const LEVELS: [&str; 2] = ["scalar", "x86-64-v3"];

/// Builds the example of `volley-plugin-host`, and counts its rounds with the plugin, with the built-in node and without it.
pub fn judge(home: &Home) -> Outcome {
    if !exists("valgrind") {
        return Skip("valgrind is not installed".into());
    }
    Outcome::of(LEVELS.iter().try_fold(String::new(), |text, level| {
        let more = one(home, level)?;
        Ok(if text.is_empty() {
            more
        } else {
            format!("{text}; {more}")
        })
    }))
}

fn one(home: &Home, level: &str) -> Result<String, String> {
    let build = ["build", "--release", "--locked", "-p", "volley-plugin-host"];
    let program = Program::cargo(home).args(build);
    program.args(["--example", "native_cost"]).require()?;
    let library = home.target.join("release/deps/libvolley_plugin_sample.so");
    let none = round(home, "none", level)?;
    let built_in = round(home, "built-in", level)? - none;
    let plugin = round(home, &library.to_string_lossy(), level)? - none;
    let figures = format!(
        "{level}: {:.2} instructions per packet as a plugin, {:.2} built in",
        plugin / f64::from(SIZE),
        built_in / f64::from(SIZE)
    );
    if built_in <= 0.0 {
        return Err(format!("{figures}: that cannot be"));
    }
    let verdict = at_most((plugin / built_in - 1.0) * 100.0, BAR, "percent more");
    verdict
        .map(|text| format!("{text} ({figures})"))
        .map_err(|text| format!("{text} ({figures})"))
}

/// Instructions of a round.
fn round(home: &Home, node: &str, level: &str) -> Result<f64, String> {
    let few = instructions(home, node, level, ROUNDS.0)?;
    let many = instructions(home, node, level, ROUNDS.1)?;
    Ok((many as f64 - few as f64) / f64::from(ROUNDS.1 - ROUNDS.0))
}

fn instructions(home: &Home, node: &str, level: &str, rounds: u32) -> Result<u64, String> {
    let file = home.target.join("callgrind.native-cost");
    let (size, rounds) = (SIZE.to_string(), rounds.to_string());
    let ran = Program::new(home, "valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--toggle-collect={}", budget::ROUND))
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(home.target.join("release/examples/native_cost"))
        .args([node, level, &size, &rounds])
        .limit_seconds(300)
        .require()?;
    let packets = format!("{}\n", u64::from(SIZE) * rounds.parse::<u64>().unwrap_or(0));
    if ran.stdout != packets {
        let passed = ran.stdout.trim();
        return Err(format!("{node}: {passed} packets of {}", packets.trim()));
    }
    let text = std::fs::read_to_string(&file);
    let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
    budget::column(&text, "Ir").ok_or_else(|| format!("{}: no total of Ir in it", file.display()))
}
