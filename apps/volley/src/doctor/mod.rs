//! `volley doctor`: what this machine can do for Volley, what is missing, and the command that fixes it.
//!
//! - True on entry: nothing; every file that is read may be missing, and nothing is changed.
//! - True on exit: one finding for each check, always in the same order. The packet generator and capture files work without
//!   anything that may be missing, so the exit code is always 0.

mod checks;
mod kernel;
mod machine;
#[cfg(test)]
mod tests;

pub use machine::Machine;

use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;

/// `volley doctor ...`
#[derive(clap::Args)]
pub struct Args {
    /// Answer in JSON.
    #[arg(long)]
    json: bool,
}

/// The state of one item.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The machine has what is needed.
    Ok,
    /// The machine has what is needed, but could be better.
    Limited,
    /// The machine lacks what is needed.
    Missing,
}

/// The result of one check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// What was checked.
    pub name: &'static str,
    /// State of what was examined.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What needs it.
    pub needed_for: &'static str,
    /// The command that fixes it, if something is to be fixed.
    pub fix: Option<String>,
}

impl Finding {
    /// A finding without a fault.
    pub(crate) fn ok(
        name: &'static str,
        needed_for: &'static str,
        found: impl Into<String>,
    ) -> Self {
        Finding {
            name,
            state: State::Ok,
            found: found.into(),
            needed_for,
            fix: None,
        }
    }

    /// The same finding with a fault, and the command that fixes it.
    pub(crate) fn but(self, state: State, fix: impl Into<String>) -> Self {
        Finding {
            state,
            fix: Some(fix.into()),
            ..self
        }
    }
}

/// All findings as a document.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    findings: &'a [Finding],
}

/// Runs all checks and prints the findings.
pub fn main(args: &Args) -> Result<(), serde_json::Error> {
    let findings = checks::all(&Machine::here());
    let out = match args.json {
        true => {
            let report = Report {
                version: env!("CARGO_PKG_VERSION"),
                findings: &findings,
            };
            serde_json::to_string_pretty(&report)? + "\n"
        }
        false => text(&findings),
    };
    // A closed output is not an error here.
    let _ = std::io::stdout().write_all(out.as_bytes());
    Ok(())
}

/// A line for each finding; for a fault, below it what needs the item and what fixes it.
fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for f in findings {
        let state = match f.state {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
        };
        let _ = writeln!(out, "{state:<8} {:<width$}  {}", f.name, f.found);
        if let Some(fix) = &f.fix {
            let _ = writeln!(out, "{:<8} needed for: {}", "", f.needed_for);
            let _ = writeln!(out, "{:<8} fix: {fix}", "");
        }
    }
    let count = |state| findings.iter().filter(|f| f.state == state).count();
    let _ = writeln!(
        out,
        "{} ok, {} limited, {} missing; packet generator and capture files need none of it",
        count(State::Ok),
        count(State::Limited),
        count(State::Missing)
    );
    out
}
