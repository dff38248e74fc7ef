//! `cargo xtask show NAME`: the items of an issue, one line each, with the figure and the bar.
#![forbid(unsafe_code)]

mod batcher;
mod bench_items;
mod build;
mod compliance;
mod control;
mod dpdk;
mod driver_items;
mod engine;
mod guest_items;
mod hostile;
mod house;
mod interfaces;
mod lab;
mod lab_page;
mod lab_points;
mod latency_items;
mod list;
mod lpm_items;
mod memory_items;
mod net_items;
mod nodes;
mod objects;
mod operator;
mod router;
mod run_items;
mod slow_path;
mod speed;
mod twice;
mod workers;

use xtask::error::Error;
use xtask::home::Home;
use xtask::report::{Fail, Outcome, Pass, Report, Skip};

use list::{Item, Sitting, Work, at_least, at_most, item, long, test_file};

/// The command: runs the list of that name.
pub fn run(home: &Home, name: &str, long: bool, only: &[String]) -> Result<bool, Error> {
    let lists: &[&[Item]] = match name {
        "engine" => &[&engine::ITEMS],
        "interfaces" => &[&interfaces::ITEMS],
        "control" => &[&control::ITEMS],
        "router" => &[&router::ITEMS],
        "batcher" => &[&batcher::ITEMS],
        "workers" => &[&workers::ITEMS],
        "objects" => &[objects::ITEMS],
        "operator" => &[operator::ITEMS],
        "hostile" => &[&hostile::ITEMS],
        "speed" => &speed::LISTS,
        "house" => &[house::ITEMS],
        "nodes" => &[nodes::ITEMS],
        "lab" => &[lab::ITEMS],
        other => {
            return Err(Error::Usage(format!(
                "there is no list `{other}`; there are: engine, interfaces, control, router, batcher, workers, objects, operator, hostile, speed, house, nodes, lab"
            )));
        }
    };
    let items: Vec<&Item> = lists.iter().copied().flatten().collect();
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
        .into_iter()
        .filter(|item| only.is_empty() || only.iter().any(|name| name == item.name))
        .collect();
    let built = match chosen.iter().all(|item| item.work.needs_no_build()) {
        true => Ok(()),
        false => xtask::run::Program::cargo(home)
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
        Work::ScalarOverBest(args, bar) => {
            Outcome::of(bench_items::scalar_over_best(sitting, args, *bar))
        }
        Work::Command(words) => run_items::command(sitting, words, &[]),
        Work::With(environment, words) => run_items::command(sitting, words, environment),
        Work::Span(variable, seconds, words) => {
            run_items::spanned(sitting, words, variable, *seconds)
        }
        Work::Look(look) => look(sitting.home),
        Work::Call(call) => call(sitting),
    }
}

/// Reports have one line per item: the first line of a failure's text has the subject, the last one the result.
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

#[cfg(test)]
mod tests {
    use super::*;

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

    /// The words of cargo of an item.
    fn words(item: &Item) -> &'static [&'static str] {
        match &item.work {
            Work::Command(words) | Work::With(_, words) | Work::Span(_, _, words) => words,
            _ => &[],
        }
    }

    #[test]
    fn tests_of_the_daemon_are_those_that_ci_builds() {
        // With `-p`, cargo builds everything again with other features.
        for item in engine::ITEMS
            .iter()
            .chain(&router::ITEMS)
            .chain(&workers::ITEMS)
        {
            let words = words(item);
            let is_of_the_daemon = words.windows(2).any(|pair| pair == ["-p", "volley"]);
            assert!(!is_of_the_daemon, "{}: {words:?}", item.name);
            let is_chosen = words.iter().any(|word| ["--test", "--lib"].contains(word));
            let is_whole = words.contains(&"--workspace") && !is_chosen && item.name != "tests";
            assert!(!is_whole, "{}: {words:?}", item.name);
        }
    }

    #[test]
    fn item_names_are_unique_and_plain() {
        let lists: [&[&[Item]]; 13] = [
            &[&engine::ITEMS],
            &[&interfaces::ITEMS],
            &[&control::ITEMS],
            &[&batcher::ITEMS],
            &[&workers::ITEMS],
            &speed::LISTS,
            &[&router::ITEMS],
            &[operator::ITEMS],
            &[&hostile::ITEMS],
            &[objects::ITEMS],
            &[house::ITEMS],
            &[nodes::ITEMS],
            &[lab::ITEMS],
        ];
        for list in lists {
            let items = list.iter().copied().flatten();
            let mut names: Vec<&str> = items.map(|item| item.name).collect();
            names.sort_unstable();
            let before = names.len();
            names.dedup();
            assert_eq!(names.len(), before);
            assert!(names.iter().all(|name| !name.contains(' ')));
        }
    }
}
