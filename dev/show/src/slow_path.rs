//! `volley bench slow-path` and `volley bench updates`, judged.

use super::Sitting;
use serde::Deserialize;
use xtask::bench::big_tables;
use xtask::measure::{self, Spread};
use xtask::report::{Fail, Outcome, Pass};

/// Minimum number of replies per second of a worker.
const ANSWERS: f64 = 1e6;
/// Minimum fraction of transit beside a flood.
const KEPT: f64 = 0.9;
/// Minimum ratio of forwarded to offered packets beside updates: a lower ratio means that the load was not reached.
const LOADED: f64 = 0.85;

#[derive(Deserialize)]
struct Answers {
    kind: String,
    answered: Spread,
}

#[derive(Deserialize)]
struct Flood {
    answers: Vec<Answers>,
    capacity: Spread,
    offered: f64,
    flood: f64,
    kept: Spread,
    fast_cost: Spread,
    saturated: Spread,
}

/// Medians are judged; minimum and maximum are shown too.
pub fn flood(sitting: &Sitting<'_>) -> Outcome {
    let run: Flood = match measure::json(sitting.home, &["bench", "slow-path"], 600) {
        Ok(run) => run,
        Err(reason) => return Fail(reason),
    };
    let span = |s: &Spread, by: f64| {
        format!(
            "{:.2} ({:.2} to {:.2})",
            s.median / by,
            s.min / by,
            s.max / by
        )
    };
    let answers = run
        .answers
        .iter()
        .map(|a| format!("{} {}", a.kind, span(&a.answered, 1e6)));
    let text = format!(
        "million answers a second: {}; transit at {:.1} of {:.1} Mpps keeps {} beside {:.1} Mpps of flood (nodes cost {} times; with no time left it keeps {})",
        answers.collect::<Vec<_>>().join(", "),
        run.offered / 1e6,
        run.capacity.median / 1e6,
        span(&run.kept, 1.0),
        run.flood / 1e6,
        span(&run.fast_cost, 1.0),
        span(&run.saturated, 1.0),
    );
    let quick = run.answers.iter().all(|a| a.answered.median >= ANSWERS);
    if quick && run.kept.median >= KEPT {
        Pass(text)
    } else {
        Fail(text)
    }
}

#[derive(Deserialize)]
struct Updates {
    prefixes: u64,
    updates: u64,
    from: String,
    updates_per_second: f64,
    offered: f64,
    forwarded: f64,
    sent: u64,
    received: u64,
    dropped: u64,
    astray: u64,
}

pub fn updates(sitting: &Sitting<'_>) -> Outcome {
    let mut words = vec!["bench".to_owned(), "updates".to_owned()];
    let file = |name: &str| {
        sitting
            .home
            .data(name)
            .map(|path| path.display().to_string())
    };
    let files = (
        file("update4-ris3333-20260511.txt.xz"),
        file("update6-ris3333-20260511.txt.xz"),
    );
    if let (Ok(four), Ok(six)) = files {
        words.extend(big_tables(sitting.home).0);
        words.extend(["--updates".into(), four, "--updates6".into(), six]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let run: Updates = match measure::json(sitting.home, &words, 1800) {
        Ok(run) => run,
        Err(reason) => return Fail(reason),
    };
    let text = format!(
        "{} updates ({}) of {} prefixes, {:.0} a second, beside {:.2} of {:.2} Mpps offered: {} sent, {} received, {} dropped, {} astray",
        run.updates,
        run.from,
        run.prefixes,
        run.updates_per_second,
        run.forwarded / 1e6,
        run.offered / 1e6,
        run.sent,
        run.received,
        run.dropped,
        run.astray
    );
    let whole = run.sent > 0 && run.sent == run.received && run.dropped + run.astray == 0;
    if whole && run.forwarded >= LOADED * run.offered {
        Pass(text)
    } else {
        Fail(text)
    }
}
