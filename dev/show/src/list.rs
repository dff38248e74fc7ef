//! Items of a list, how they are judged, and results that they share.

use std::cell::RefCell;
use std::collections::HashMap;
use xtask::home::Home;
use xtask::measure::{self, Bench, LpmBench};
use xtask::report::Outcome;

/// One line of the list.
pub struct Item {
    /// Short name, for `--only`.
    pub name: &'static str,
    /// Short description of the requirement.
    pub what: &'static str,
    /// Runs only with `--long`, or if it is named.
    pub long: bool,
    pub work: Work,
}

pub const fn item(name: &'static str, what: &'static str, work: Work) -> Item {
    Item {
        name,
        what,
        long: false,
        work,
    }
}

pub const fn long(name: &'static str, what: &'static str, work: Work) -> Item {
    Item {
        name,
        what,
        long: true,
        work,
    }
}

/// The command for the tests of one file of integration tests, or for those of them whose names contain one of the words behind its
/// name. The tests are built with the features of the whole workspace, as those of CI are: nothing is compiled twice.
macro_rules! test_file {
    [$file:literal $(, $word:literal)* $(,)?] => {
        &["test", "--workspace", "--test", $file, "--", $($word),*]
    };
}
pub(crate) use test_file;

/// Method of judging an item.
pub enum Work {
    /// Maximum TSC cycles per packet of a bench run. The arguments may contain `TABLES`.
    Cycles(&'static str, f64),
    /// Minimum ratio of the graph's Mpps to the Mpps of packet-by-packet processing.
    GraphOverRtc(&'static str, f64),
    /// Maximum ratio of the graph's cycles at the level `scalar` to those at the processor's best level.
    ScalarOverBest(&'static str, f64),
    /// A command that must succeed; the text describes its tests.
    Command(&'static [&'static str]),
    /// A command with these variables in its environment.
    With(
        &'static [(&'static str, &'static str)],
        &'static [&'static str],
    ),
    /// A test that runs for about so many seconds, by this variable unless it is set already.
    Span(&'static str, u64, &'static [&'static str]),
    /// A check of the checkout, without a program.
    Look(fn(&Home) -> Outcome),
    /// Anything else.
    Call(fn(&Sitting<'_>) -> Outcome),
}

impl Work {
    /// Whether the item needs no release build: a test run builds what it needs.
    pub fn needs_no_build(&self) -> bool {
        match self {
            Work::Command(words) | Work::With(_, words) | Work::Span(_, _, words) => {
                words.first() == Some(&"test")
            }
            other => matches!(other, Work::Look(_)),
        }
    }
}

/// One run of a list. Each measurement is made once, so that ratios compare the same figures.
pub struct Sitting<'a> {
    pub home: &'a Home,
    pub seconds: u64,
    benches: RefCell<HashMap<String, Result<Bench, String>>>,
    lpms: RefCell<HashMap<String, Result<LpmBench, String>>>,
    tables: String,
}

impl<'a> Sitting<'a> {
    pub fn new(home: &'a Home, seconds: u64) -> Self {
        let tables = xtask::bench::big_tables(home).0.join(" ");
        Self {
            home,
            seconds,
            benches: RefCell::default(),
            lpms: RefCell::default(),
            tables,
        }
    }

    /// `volley bench ARGS`, with `TABLES` replaced by the full-size tables.
    pub fn bench(&self, args: &str) -> Result<Bench, String> {
        if let Some(known) = self.benches.borrow().get(args) {
            return known.clone();
        }
        let full = format!(
            "{} --repetitions 5 --seconds {}",
            args.replace("TABLES", &self.tables),
            self.seconds
        );
        let words: Vec<&str> = full.split_whitespace().collect();
        let run = measure::bench(self.home, &words, self.seconds);
        self.benches
            .borrow_mut()
            .insert(args.to_owned(), run.clone());
        run
    }

    /// `volley bench lpm ARGS`.
    pub fn lpm(&self, args: &str) -> Result<LpmBench, String> {
        if let Some(known) = self.lpms.borrow().get(args) {
            return known.clone();
        }
        let words: Vec<&str> = ["bench", "lpm"]
            .into_iter()
            .chain(args.split_whitespace())
            .collect();
        let run: Result<LpmBench, String> = measure::json(self.home, &words, 300);
        let run = run.and_then(|run| {
            if run.verified {
                Ok(run)
            } else {
                Err("lookups do not agree with the reference".into())
            }
        });
        self.lpms.borrow_mut().insert(args.to_owned(), run.clone());
        run
    }
}

/// Compares `figure` with a maximum.
pub fn at_most(figure: f64, bar: f64, unit: &str) -> Result<String, String> {
    verdict(figure <= bar, format!("{figure:.2} {unit}, at most {bar}"))
}

/// Compares `figure` with a minimum.
pub fn at_least(figure: f64, bar: f64, unit: &str) -> Result<String, String> {
    verdict(figure >= bar, format!("{figure:.2} {unit}, at least {bar}"))
}

fn verdict(good: bool, text: String) -> Result<String, String> {
    if good { Ok(text) } else { Err(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_hold_on_the_right_side() {
        assert!(at_most(9.0, 9.0, "cycles").is_ok() && at_most(9.01, 9.0, "cycles").is_err());
        assert!(at_least(1.8, 1.8, "times").is_ok() && at_least(1.79, 1.8, "times").is_err());
        assert!(
            at_most(f64::NAN, 9.0, "cycles").is_err() && at_least(f64::NAN, 1.0, "times").is_err()
        );
    }
}
