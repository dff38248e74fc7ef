//! Instructions per packet, counted by callgrind and compared with `bench/budgets.toml`.
//!
//! Cycles depend on the machine and its other load; instructions do not. Two runs with different packet counts are made:
//! their common part (start, tables, the report) cancels out in the difference.

use crate::error::Error;
use crate::home::Home;
use crate::report::{Fail, Outcome, Skip};
use crate::run::{Program, exists};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const FILE: &str = "bench/budgets.toml";

/// A measurement.
struct Case {
    /// Name in the file.
    name: &'static str,
    /// Arguments of `volley bench`.
    args: &'static str,
    /// The function whose callees (inclusive) are counted.
    counted: &'static str,
}

/// All nodes except the source, and the dispatcher's work for them.
const GRAPH: &str = "volley_graph::worker::round::Worker::run_pending";
/// A worker's complete rounds: source, nodes, and the loop itself.
pub const ROUND: &str = "volley_graph::worker::round::Worker::round";

const CASES: [Case; 10] = [
    Case {
        name: "xc",
        args: "--scenario xc",
        counted: GRAPH,
    },
    Case {
        name: "ip4",
        args: "--scenario ip4",
        counted: GRAPH,
    },
    Case {
        name: "ip6",
        args: "--scenario ip6",
        counted: GRAPH,
    },
    Case {
        name: "ip4-1",
        args: "--scenario ip4 --vector-size 1",
        counted: GRAPH,
    },
    Case {
        name: "mix",
        args: "--scenario mix",
        counted: GRAPH,
    },
    Case {
        name: "bridge-16",
        args: "--scenario bridge --stations src-dst --macs 16",
        counted: GRAPH,
    },
    Case {
        name: "round-xc",
        args: "--scenario xc",
        counted: ROUND,
    },
    Case {
        name: "round-xc-4",
        args: SMALL,
        counted: ROUND,
    },
    Case {
        name: "round-ip4-64k",
        args: "--scenario ip4 --destinations uniform --prefixes 16",
        counted: ROUND,
    },
    Case {
        name: "round-mix",
        args: "--scenario mix",
        counted: ROUND,
    },
];
/// A patch with four packets in a vector, which shows the cost of a round best.
const SMALL: &str = "--scenario xc --vector-size 4";
/// valgrind 3.19 does not support AVX-512, so v4 cannot be counted.
const LEVELS: [&str; 2] = ["scalar", "x86-64-v3"];
const PACKETS: (u64, u64) = (51_200, 153_600);

/// The checked-in budgets.
#[derive(Debug, Deserialize, Serialize, PartialEq)]
pub struct Budgets {
    /// Maximum change of a count, up or down, before the budget must be reviewed.
    pub tolerance_percent: f64,
    /// Instructions per packet by `case/isa`.
    pub budget: BTreeMap<String, f64>,
}

/// Counts everything and compares; with `update` it writes the file instead.
pub fn run(home: &Home, update: bool) -> Outcome {
    if !exists("valgrind") {
        return Skip("valgrind is not installed".into());
    }
    if !home.volley().is_file() {
        return Skip(format!(
            "{} is not built (cargo build --release)",
            home.volley().display()
        ));
    }
    let counted = match count_all(home) {
        Ok(counted) => counted,
        Err(reason) => return Fail(reason),
    };
    let path = home.root.join(FILE);
    let result = if update {
        write(&path, counted)
    } else {
        read(&path)
            .map_err(|error| error.to_string())
            .and_then(|budgets| judge(&budgets, &counted))
    };
    Outcome::of(result)
}

fn read(path: &Path) -> Result<Budgets, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    toml::from_str(&text).map_err(|error| Error::format(FILE, error))
}

fn write(path: &Path, counted: BTreeMap<String, f64>) -> Result<String, String> {
    let rounded = counted
        .into_iter()
        .map(|(name, figure)| (name, (figure * 10.0).round() / 10.0))
        .collect();
    let budgets = Budgets {
        tolerance_percent: 3.0,
        budget: rounded,
    };
    let text = toml::to_string(&budgets).map_err(|error| error.to_string())?;
    let head = "# Instructions per packet, counted by callgrind: `cargo xtask budget --update`. `round-`: everything, source and loop included;\n# the others: all nodes but the source.\n";
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, format!("{head}{text}")))
        .map_err(|error| format!("{FILE}: {error}"))?;
    Ok(format!("{FILE} written: {text}"))
}

fn judge(budgets: &Budgets, counted: &BTreeMap<String, f64>) -> Result<String, String> {
    let mut problems = Vec::new();
    let mut lines = Vec::new();
    for (name, figure) in counted {
        let Some(budget) = budgets.budget.get(name) else {
            problems.push(format!(
                "{name}: {figure:.1} instructions per packet, and no budget in {FILE}"
            ));
            continue;
        };
        let percent = (figure / budget - 1.0) * 100.0;
        lines.push(format!("{name} {figure:.1}"));
        if percent.abs() > budgets.tolerance_percent || !percent.is_finite() {
            problems.push(format!("{name}: {figure:.1} instructions per packet, budget {budget:.1} ({percent:+.1} %); if that is meant, `cargo xtask budget --update`"));
        }
    }
    problems.extend(
        budgets
            .budget
            .keys()
            .filter(|name| !counted.contains_key(*name))
            .map(|name| format!("{name}: in {FILE}, but not counted any more")),
    );
    if problems.is_empty() {
        Ok(lines.join(", "))
    } else {
        Err(problems.join("\n"))
    }
}

/// Counts every case at every level, one per processor: other load does not change a count.
fn count_all(home: &Home) -> Result<BTreeMap<String, f64>, String> {
    let cases = CASES.iter();
    let all: Vec<_> = cases
        .flat_map(|case| LEVELS.map(|level| (case, level)))
        .collect();
    let next = AtomicUsize::new(0);
    let some = || {
        let mut counted = Vec::new();
        while let Some((case, level)) = all.get(next.fetch_add(1, Relaxed)) {
            counted.push((format!("{}/{level}", case.name), count(home, case, level)?));
        }
        Ok::<_, String>(counted)
    };
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let counted = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(some)).collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(counted) => counted,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect::<Result<Vec<_>, _>>()
    })?;
    Ok(counted.into_iter().flatten().collect())
}

/// Instructions per packet of one case.
fn count(home: &Home, case: &Case, level: &str) -> Result<f64, String> {
    let few = instructions(home, case, level, PACKETS.0)?;
    let many = instructions(home, case, level, PACKETS.1)?;
    per_packet((PACKETS.0, few), (PACKETS.1, many))
}

/// Instructions of a round with four packets, everything included.
pub fn small_round(home: &Home) -> Result<f64, String> {
    let small = CASES.iter().find(|case| case.args == SMALL);
    let case = small.ok_or("no case with four packets in a vector")?;
    count(home, case, LEVELS[1]).map(|per_packet| 4.0 * per_packet)
}

fn per_packet(few: (u64, u64), many: (u64, u64)) -> Result<f64, String> {
    if many.1 <= few.1 || many.0 <= few.0 {
        return Err(format!(
            "{} packets cost {} instructions and {} cost {}: that cannot be",
            few.0, few.1, many.0, many.1
        ));
    }
    Ok((many.1 - few.1) as f64 / (many.0 - few.0) as f64)
}

fn instructions(home: &Home, case: &Case, level: &str, packets: u64) -> Result<u64, String> {
    let file = home
        .target
        .join(format!("callgrind.{}.{level}.{packets}", case.name));
    Program::new(home, "valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--toggle-collect={}", case.counted))
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(home.volley())
        .arg("bench")
        .args(case.args.split_whitespace())
        .args([
            "--isa",
            level,
            "--callgrind",
            "--packets",
            &packets.to_string(),
        ])
        .limit_seconds(300)
        .require()?;
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    total(&text).ok_or_else(|| format!("{}: no total of Ir in it", file.display()))
}

/// The total of `Ir` in a callgrind file: its column by the `events:` line, in the `totals:` (or `summary:`) line.
fn total(text: &str) -> Option<u64> {
    column(text, "Ir")
}

/// The total of another event.
pub fn column(text: &str, wanted: &str) -> Option<u64> {
    let value = |key: &str| {
        text.lines()
            .rev()
            .find_map(|line| line.strip_prefix(key))
            .map(str::trim)
    };
    let column = value("events:")?
        .split_whitespace()
        .position(|event| event == wanted)?;
    value("totals:")
        .or_else(|| value("summary:"))?
        .split_whitespace()
        .nth(column)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(figures: &[(&str, f64)]) -> BTreeMap<String, f64> {
        figures
            .iter()
            .map(|(name, figure)| ((*name).to_owned(), *figure))
            .collect()
    }

    #[test]
    fn totals_are_read() {
        assert_eq!(
            total("version: 1\nevents: Ir\nfn=(1) main\n1 5\n\ntotals: 12345\n"),
            Some(12345)
        );
        assert_eq!(total("events: Dr Ir Dw\nsummary: 1 22 3\n"), Some(22));
        assert_eq!(total("events: Dr\ntotals: 1\n"), None);
        assert_eq!(total("events: Ir\n"), None);
        assert_eq!(total("events: Ir\ntotals: many\n"), None);
    }

    #[test]
    fn the_common_part_cancels_out() {
        assert_eq!(
            per_packet((100, 1_000_000 + 100 * 60), (300, 1_000_000 + 300 * 60)),
            Ok(60.0)
        );
        assert!(per_packet((100, 5), (300, 5)).is_err());
    }

    #[test]
    fn the_gate_closes_on_both_sides() {
        let budgets = Budgets {
            tolerance_percent: 3.0,
            budget: counted(&[("ip4/scalar", 100.0)]),
        };
        assert!(judge(&budgets, &counted(&[("ip4/scalar", 102.9)])).is_ok());
        assert!(judge(&budgets, &counted(&[("ip4/scalar", 97.1)])).is_ok());
        assert!(
            judge(&budgets, &counted(&[("ip4/scalar", 103.1)]))
                .unwrap_err()
                .contains("+3.1 %")
        );
        assert!(judge(&budgets, &counted(&[("ip4/scalar", 96.0)])).is_err());
        assert!(
            judge(
                &budgets,
                &counted(&[("ip4/scalar", 100.0), ("xc/scalar", 9.0)])
            )
            .unwrap_err()
            .contains("no budget")
        );
        assert!(
            judge(&budgets, &counted(&[]))
                .unwrap_err()
                .contains("not counted")
        );
    }

    #[test]
    fn the_file_goes_there_and_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bench/budgets.toml");
        write(&path, counted(&[("ip4/x86-64-v3", 61.2345)])).unwrap();
        let budgets = read(&path).unwrap();
        assert_eq!(
            budgets,
            Budgets {
                tolerance_percent: 3.0,
                budget: counted(&[("ip4/x86-64-v3", 61.2)])
            }
        );
        std::fs::write(&path, "budget = 3").unwrap();
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .contains("budgets.toml")
        );
    }
}
