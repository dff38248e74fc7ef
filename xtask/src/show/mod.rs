//! `cargo xtask show NAME`: the items of an issue, one line each, with the figure and the bar.

mod batcher;
mod bench_items;
mod compliance;
mod control;
mod dpdk;
mod engine;
mod guest_items;
mod hostile;
mod interfaces;
mod lpm_items;
mod net_items;
mod objects;
mod operator;
mod router;
mod run_items;
mod slow_path;
mod speed;
mod workers;

use crate::error::Error;
use crate::home::Home;
use crate::measure::{self, Bench, LpmBench};
use crate::report::{Fail, Outcome, Pass, Report, Skip};
use std::cell::RefCell;
use std::collections::HashMap;

/// One line of the list.
pub struct Item {
    /// Short name, for `--only`.
    pub name: &'static str,
    /// What the issue asks for, in a few words.
    pub what: &'static str,
    /// Runs only with `--long`, or when it is named.
    pub long: bool,
    pub work: Work,
}

const fn item(name: &'static str, what: &'static str, work: Work) -> Item {
    Item {
        name,
        what,
        long: false,
        work,
    }
}

const fn long(name: &'static str, what: &'static str, work: Work) -> Item {
    Item {
        name,
        what,
        long: true,
        work,
    }
}

/// How an item is judged.
pub enum Work {
    /// TSC cycles per packet of a bench run, at most so many. The arguments may hold `TABLES`.
    Cycles(&'static str, f64),
    /// Mpps of the graph over Mpps packet by packet, at least so much.
    GraphOverRtc(&'static str, f64),
    /// A command that must succeed; the text that follows says what its tests are about.
    Command(&'static [&'static str]),
    /// The same, with these variables in its environment.
    With(
        &'static [(&'static str, &'static str)],
        &'static [&'static str],
    ),
    /// A look at the checkout, which needs no program.
    Look(fn(&Home) -> Outcome),
    /// Anything else.
    Call(fn(&Sitting<'_>) -> Outcome),
}

impl Work {
    /// Whether it needs no release build: a run of tests builds what it needs by itself.
    fn needs_no_build(&self) -> bool {
        match self {
            Work::Command(words) => words.first() == Some(&"test"),
            other => matches!(other, Work::Look(_)),
        }
    }
}

/// One sitting: what has been measured once is not measured again, so that ratios compare like with like.
pub struct Sitting<'a> {
    pub home: &'a Home,
    pub seconds: u64,
    benches: RefCell<HashMap<String, Result<Bench, String>>>,
    lpms: RefCell<HashMap<String, Result<LpmBench, String>>>,
    tables: String,
}

impl<'a> Sitting<'a> {
    fn new(home: &'a Home, seconds: u64) -> Self {
        let tables = crate::bench::big_tables(home).0.join(" ");
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

/// The command: runs the list of that name.
pub fn run(home: &Home, name: &str, long: bool, only: &[String]) -> Result<bool, Error> {
    let items: &[Item] = match name {
        "engine" => &engine::ITEMS,
        "interfaces" => &interfaces::ITEMS,
        "control" => &control::ITEMS,
        "router" => &router::ITEMS,
        "batcher" => &batcher::ITEMS,
        "workers" => &workers::ITEMS,
        "objects" => objects::ITEMS,
        "operator" => operator::ITEMS,
        "hostile" => &hostile::ITEMS,
        "speed" => &speed::ITEMS,
        other => {
            return Err(Error::Usage(format!(
                "there is no list `{other}`; there are: engine, interfaces, control, router, batcher, workers, objects, operator, hostile, speed"
            )));
        }
    };
    if let Some(unknown) = only
        .iter()
        .find(|name| !items.iter().any(|item| item.name == **name))
    {
        let names: Vec<&str> = items.iter().map(|item| item.name).collect();
        return Err(Error::Usage(format!(
            "there is no item `{unknown}`; there are {}",
            names.join(", ")
        )));
    }
    let chosen: Vec<&Item> = items
        .iter()
        .filter(|item| only.is_empty() || only.iter().any(|name| name == item.name))
        .collect();
    let built = match chosen.iter().all(|item| item.work.needs_no_build()) {
        true => Ok(()),
        false => crate::run::Program::cargo(home)
            .args(["build", "--release", "--locked"])
            .require()
            .map(|_| ()),
    };
    let sitting = Sitting::new(home, if long { 2 } else { 1 });
    let mut report = Report::default();
    for item in chosen {
        let title = format!("{}: {}", item.name, item.what);
        let outcome = match &built {
            Err(reason) => Fail(format!(
                "the release build fails: {}",
                reason.lines().last().unwrap_or_default()
            )),
            Ok(_) if item.long && !long && only.is_empty() => Skip("long; `--long` runs it".into()),
            Ok(_) => judge(&sitting, &item.work),
        };
        report.add(&title, &one_line(outcome), None);
    }
    Ok(report.close())
}

fn judge(sitting: &Sitting<'_>, work: &Work) -> Outcome {
    match work {
        Work::Cycles(args, bar) => Outcome::of(bench_items::cycles(sitting, args, *bar)),
        Work::GraphOverRtc(args, bar) => {
            Outcome::of(bench_items::graph_over_rtc(sitting, args, *bar))
        }
        Work::Command(words) => run_items::command(sitting, words, &[]),
        Work::With(environment, words) => run_items::command(sitting, words, environment),
        Work::Look(look) => look(sitting.home),
        Work::Call(call) => call(sitting),
    }
}

/// Reports are one line per item; the first line of a failure's text says what it is, the last what came of it.
fn one_line(outcome: Outcome) -> Outcome {
    let short = |text: String| {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default().to_owned();
        let last = lines
            .next_back()
            .map(|line| format!(" ... {line}"))
            .unwrap_or_default();
        first + &last
    };
    match outcome {
        Pass(text) => Pass(short(text)),
        Fail(text) => Fail(short(text)),
        Skip(text) => Skip(short(text)),
    }
}

/// `figure` against a bar that it must not be above.
pub fn at_most(figure: f64, bar: f64, unit: &str) -> Result<String, String> {
    verdict(figure <= bar, format!("{figure:.2} {unit}, at most {bar}"))
}

/// `figure` against a bar that it must reach.
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

    #[test]
    fn outcomes_are_cut_to_one_line() {
        assert_eq!(
            one_line(Fail("a\n\n b \nc\n".into())),
            Fail("a ... c".into())
        );
        assert_eq!(one_line(Pass("a".into())), Pass("a".into()));
    }

    #[test]
    fn lists_and_items_must_exist() {
        let home = Home::find().unwrap();
        assert!(
            run(&home, "nothing", false, &[])
                .unwrap_err()
                .to_string()
                .contains("engine")
        );
        let error = run(&home, "engine", false, &["nothing".into()])
            .unwrap_err()
            .to_string();
        assert!(error.contains("lpm4-bytes"), "{error}");
    }

    #[test]
    fn item_names_are_unique_and_plain() {
        for list in [
            &engine::ITEMS[..],
            &interfaces::ITEMS,
            &control::ITEMS,
            &batcher::ITEMS,
            &workers::ITEMS,
            &speed::ITEMS,
            &router::ITEMS,
            operator::ITEMS,
        ] {
            let mut names: Vec<&str> = list.iter().map(|item| item.name).collect();
            names.sort_unstable();
            let before = names.len();
            names.dedup();
            assert_eq!(names.len(), before);
            assert!(names.iter().all(|name| !name.contains(' ')));
        }
    }
}
