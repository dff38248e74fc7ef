//! Graphs in Click's language: the tests of elements and configurations, and what each element costs a packet.

use std::path::{Path, PathBuf};
use xtask::budget;
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::{Program, exists};

/// The tests: elements against models, and configurations against scapy.
const TESTS: [&str; 7] = [
    "test",
    "--workspace",
    "--no-fail-fast",
    "--test",
    "click_configurations",
    "--test",
    "click_elements",
];

/// Packets of one call of `measured`.
pub const MEASURED_PACKETS: f64 = 50.0 * 256.0;
/// The function of the example whose calls are counted; callgrind finds it by the whole name only.
const MEASURED: &str = "element_cost::measured";

/// Runs the tests, and prints the cost of each element.
pub fn judge(home: &Home) -> Outcome {
    Outcome::of(show(home))
}

fn show(home: &Home) -> Result<String, String> {
    let tests = Program::cargo(home).args(TESTS).require()?;
    let passed: usize = tests.stdout.lines().filter_map(passed).sum();
    let costs = costs(home)?;
    Ok(format!("{passed} tests; {costs}"))
}

/// `test result: ok. 12 passed; ...`
pub fn passed(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("test result: ok. ")?;
    rest.split_once(' ')?.0.parse().ok()
}

/// Builds the example.
pub fn example(home: &Home) -> Result<PathBuf, String> {
    let build = ["build", "--release", "--locked", "-p", "volley-click"];
    let program = Program::cargo(home).args(build);
    program.args(["--example", "element_cost"]).require()?;
    Ok(home.target.join("release/examples/element_cost"))
}

/// callgrind with a dump for each call of `measured`; the program is to follow.
pub fn counting(home: &Home, file: &Path) -> Program {
    Program::new(home, "valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--toggle-collect={}", budget::ROUND))
        .arg(format!("--zero-before={MEASURED}"))
        .arg(format!("--dump-after={MEASURED}"))
        .arg(format!("--callgrind-out-file={}", file.display()))
}

/// The instructions of each element, or its nanoseconds without valgrind.
fn costs(home: &Home) -> Result<String, String> {
    let example = example(home)?;
    let counted = exists("valgrind");
    let file = home.target.join("callgrind.click");
    let program = match counted {
        false => Program::new(home, &example),
        true => counting(home, &file).arg(&example),
    };
    let ran = program.limit_seconds(900).require()?;
    let mut rows = Vec::new();
    for (number, line) in ran.stdout.lines().enumerate() {
        let row = row(line).ok_or_else(|| format!("`{line}` is no line of element_cost"))?;
        let (name, packets, nanoseconds) = row;
        let amount = match counted {
            false => nanoseconds,
            true => instructions(&file, number + 1)?,
        };
        rows.push((name, amount / packets));
    }
    let Some(((_, without), elements)) = rows.split_first() else {
        return Err("element_cost printed nothing".to_owned());
    };
    let unit = if counted {
        "instructions"
    } else {
        "nanoseconds"
    };
    let each: Vec<String> = elements
        .iter()
        .map(|(name, cost)| format!("{name} {:.0}", (cost - without).max(0.0)))
        .collect();
    Ok(format!(
        "{unit} per packet, over {without:.0} of a source, CheckIPHeader and Discard: {}",
        each.join(", ")
    ))
}

/// Name, packets and nanoseconds.
fn row(line: &str) -> Option<(&str, f64, f64)> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let mut number = || words.next()?.parse::<f64>().ok();
    Some((name, number()?, number()?))
}

/// The instructions of one dump.
pub fn instructions(file: &Path, number: usize) -> Result<f64, String> {
    let name = format!("{}.{number}", file.display());
    let text = std::fs::read_to_string(&name).map_err(|error| format!("{name}: {error}"))?;
    let count =
        budget::column(&text, "Ir").ok_or_else(|| format!("{name}: no total of Ir in it"))?;
    Ok(count as f64)
}
