//! The optimisation talk's IP-in-IP node in six stages, the plugin of `docs/tutorial/ip-in-ip`: outputs, and figures beside the talk's.

use serde_json::Value;
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::Program;
use xtask::tutorial;

/// The first stage, and the one without branches that depend on the table, with random destinations. Columns (stage 6) cost more than
/// it: the tutorial states this.
const ENDS: [&str; 2] = ["one-10k", "split-10k"];
/// Maximum of the second one's clocks, as a share of the first one's.
const BAR: f64 = 0.5;

/// Tests the stages, runs `volley bench plugin`, and judges its figures.
pub fn judge(home: &Home) -> Outcome {
    Outcome::of(show(home))
}

fn show(home: &Home) -> Result<String, String> {
    let judges = match tutorial::test(home)? {
        true => "frames built by scapy",
        false => "frames that scapy built earlier (scapy is not installed)",
    };
    let library = tutorial::build(home)?;
    let ran = Program::new(home, home.volley())
        .args(["bench", "plugin", "--json"])
        .arg(&library)
        .limit_seconds(900)
        .require()?;
    let report: Value = serde_json::from_str(&ran.stdout).map_err(|error| error.to_string())?;
    let rows = report["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let table: Vec<String> = rows.iter().map(line).collect();
    let by = report["counted_by"].as_str().unwrap_or("nothing");
    let table = format!(
        "six stages as {judges}; counted by {by}: {}",
        table.join("; ")
    );
    let told = |why: String| format!("{why} ({table})");
    let [first, best] = ENDS.map(|name| figure(rows, name, "/clocks/median"));
    let (first, best) = (first.map_err(told)?, best.map_err(told)?);
    if best > BAR * first {
        return Err(told(format!(
            "stage 5 needs {best:.1} clocks, more than half of the {first:.1} of stage 1"
        )));
    }
    if by != "nothing" {
        let instructions = |name| figure(rows, name, "/counts/instructions").map_err(told);
        let (one, vector) = (instructions("one")?, instructions("vector")?);
        if vector >= one {
            return Err(told(format!(
                "a packet of a vector needs {vector:.1} instructions, one alone {one:.1}"
            )));
        }
    }
    Ok(format!(
        "with 10,000 destinations, stage 5 needs {:.0} % of the clocks of stage 1, at most 50 ({table})",
        100.0 * best / first
    ))
}

/// A figure of a scenario.
fn figure(rows: &[Value], scenario: &str, path: &str) -> Result<f64, String> {
    let mut ours = rows.iter().filter(|row| row["scenario"] == scenario);
    let found = ours.next().and_then(|row| row.pointer(path)?.as_f64());
    found.ok_or_else(|| format!("scenario {scenario} has no {path}"))
}

/// One scenario: clocks, the talk's clocks, instructions and misses.
fn line(row: &Value) -> String {
    let number = |path: &str| row.pointer(path).and_then(Value::as_f64);
    let name = row["scenario"].as_str().unwrap_or_default();
    let mut text = format!(
        "{name} {:.1} clocks",
        number("/clocks/median").unwrap_or_default()
    );
    if let Some(talk) = number("/published/0/clocks") {
        text += &format!(" (talk {talk})");
    }
    if let Some(count) = number("/counts/instructions") {
        text += &format!(" {count:.0} instructions");
    }
    if let Some(misses) = number("/counts/l1_misses") {
        text += &format!(" {misses:.2} L1 misses");
    }
    text
}
