//! `dpdk-test-fib` on a real table: the best result of DPDK's own test.

use std::path::{Path, PathBuf};
use xtask::home::Home;
use xtask::run::{Program, exists};

const PROGRAM: &str = "dpdk-test-fib";
/// Number of runs of each lookup function.
const RUNS: usize = 3;

/// Lowest cycles per lookup over all runs of all lookup functions, and the function; or the reason why there is no
/// result.
pub fn best(home: &Home, table: &Path, v6: bool) -> Result<(f64, &'static str), String> {
    if !exists(PROGRAM) {
        return Err(format!("{PROGRAM} is not installed (Debian package dpdk)"));
    }
    let routes = routes_file(home, table)?;
    let functions: &[&'static str] = if v6 {
        &["s", "v"]
    } else {
        &["s1", "s2", "s3", "v"]
    };
    let mut found: Vec<(f64, &'static str)> = Vec::new();
    for function in functions.iter().copied() {
        // One pass per run, which other load may disturb: Volley's figures also exclude disturbed runs.
        for _ in 0..RUNS {
            // The program refuses functions that this processor does not support; the others count.
            let cycles = run(home, &routes, v6, function)?;
            found.extend(cycles.map(|cycles| (cycles, function)));
        }
    }
    found
        .into_iter()
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .ok_or_else(|| format!("{PROGRAM} printed no lookup figure"))
}

fn run(home: &Home, routes: &Path, v6: bool, function: &str) -> Result<Option<f64>, String> {
    let program = Program::new(home, PROGRAM).args([
        "-l",
        "0",
        "--no-huge",
        "-m",
        "4096",
        "--no-pci",
        "--force-max-simd-bitwidth=512",
        "--log-level=1",
        "--",
    ]);
    let program = if v6 {
        // With two-byte entries it does not support as many groups as the table needs.
        program.args(["-6", "-b", "trie", "-e", "4", "-g", "400000"])
    } else {
        program.args(["-b", "dir", "-e", "2", "-g", "4096"])
    };
    let output = program
        .arg("-f")
        .arg(routes)
        .args([
            "-l",
            &super::lpm_items::DISTINCT.to_string(),
            "-v",
            function,
        ])
        .limit_seconds(120)
        .output()
        .map_err(|error| error.to_string())?;
    Ok(lowest(&output.stdout))
}

fn lowest(stdout: &str) -> Option<f64> {
    let figures = stdout.lines().filter_map(|line| {
        line.trim()
            .strip_prefix("AVG FIB lookup ")?
            .trim()
            .parse()
            .ok()
    });
    figures.min_by(f64::total_cmp)
}

/// Converts the table to the program's format: plain text, next hops that fit 15 bits.
fn routes_file(home: &Home, table: &Path) -> Result<PathBuf, String> {
    let name = table
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let path = home.target.join(format!("dpdk-{name}"));
    if path.is_file() {
        return Ok(path);
    }
    let text = Program::new(home, "xz")
        .arg("-dc")
        .arg(table)
        .limit_seconds(60)
        .require()?
        .stdout;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if let Some((prefix, id)) = line.split_once(' ') {
            out.push_str(&format!(
                "{prefix} {}\n",
                id.trim().parse::<u32>().unwrap_or(0) % 256
            ));
        }
    }
    std::fs::write(&path, out).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_figure_counts() {
        let text = "AVG FIB add 1200\nAVG FIB lookup 31.5\nAVG FIB lookup 24.0\nAVG FIB delete 9\n";
        assert_eq!(lowest(text), Some(24.0));
        assert_eq!(lowest("Can not init lookup function\n"), None);
    }
}
