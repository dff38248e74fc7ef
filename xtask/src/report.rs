//! Outcomes, one line each, and a machine-readable closing line.

use std::time::{Duration, Instant};

/// Result of a stage or item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Passed; the text has the figure and its bar.
    Pass(String),
    /// Failed; the text has the fault.
    Fail(String),
    /// Cannot be judged here; the text has the reason.
    Skip(String),
}

pub use Outcome::{Fail, Pass, Skip};

impl Outcome {
    /// `Err` is a failure.
    pub fn of(result: Result<String, String>) -> Self {
        match result {
            Ok(text) => Pass(text),
            Err(text) => Fail(text),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Pass(_) => "PASS",
            Fail(_) => "FAIL",
            Skip(_) => "SKIP",
        }
    }

    fn text(&self) -> &str {
        match self {
            Pass(text) | Fail(text) | Skip(text) => text,
        }
    }
}

/// Counts and prints outcomes.
#[derive(Default)]
pub struct Report {
    passed: usize,
    failed: usize,
    skipped: usize,
    lines: Vec<String>,
}

impl Report {
    /// Runs one stage and prints its line, with its duration.
    pub fn stage(&mut self, name: &str, work: impl FnOnce() -> Outcome) {
        let started = Instant::now();
        println!("---- {name}");
        let outcome = work();
        self.add(name, &outcome, Some(started.elapsed()));
    }

    /// Print an outcome that is known already.
    pub fn add(&mut self, name: &str, outcome: &Outcome, took: Option<Duration>) {
        match outcome {
            Pass(_) => self.passed += 1,
            Fail(_) => self.failed += 1,
            Skip(_) => self.skipped += 1,
        }
        let time = took
            .map(|took| format!(" ({:.1} s)", took.as_secs_f64()))
            .unwrap_or_default();
        let text = outcome.text();
        let gap = if text.is_empty() { "" } else { ": " };
        println!("{} {name}{gap}{text}{time}", outcome.word());
        let first = text.lines().next().unwrap_or_default();
        self.lines
            .push(format!("{} {name}{gap}{first}{time}", outcome.word()));
    }

    /// Prints all outcomes again, one line each, at the end of a long log.
    pub fn summary(&self) {
        println!("\n==== summary");
        for line in &self.lines {
            println!("{line}");
        }
    }

    /// Prints the closing line; true if nothing failed.
    pub fn close(&self) -> bool {
        println!("{}", self.closing());
        self.failed == 0
    }

    fn closing(&self) -> String {
        format!(
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// Reports a command that is a single stage.
pub fn single(name: &str, outcome: Outcome) -> bool {
    let mut report = Report::default();
    report.add(name, &outcome, None);
    report.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_closes() {
        let mut report = Report::default();
        report.stage("a", || Pass("1 of 1".into()));
        report.stage("b", || Skip("no tool".into()));
        assert!(report.close());
        report.add("c", &Outcome::of(Err("first\nsecond".into())), None);
        assert!(!report.close());
        assert_eq!(report.closing(), "1 passed, 1 failed, 1 skipped");
        assert_eq!(report.lines[2], "FAIL c: first");
        assert!(report.lines[1].starts_with("SKIP b: no tool ("));
    }
}
