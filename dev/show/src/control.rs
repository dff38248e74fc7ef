//! The items of "One control core": the section `To show`, then the requirements of its parts.

use super::{Item, Sitting, Work, at_most, item, long, test_file};
use xtask::report::{Fail, Outcome, Skip};
use xtask::run::Program;

/// The property tests against the real stack.
const PROPERTIES: &[&str] = &["test", "-p", "volley-daemon", "--lib", "run::tests"];
/// The daemon as a service.
const SERVICE: &[&str] = test_file!["service"];
/// Reasons, traces and captures of dropped packets.
const DROPS: &[&str] = test_file!["drops"];
/// Tests of the book's claims.
const BOOK: &[&str] = test_file!["book"];

pub const ITEMS: [Item; 23] = [
    item(
        "commit-10000",
        "10,000 objects committed with traffic undisturbed",
        Work::Call(|sitting| timed(sitting, "ten_thousand_objects", 2.0)),
    ),
    item(
        "routes-100000",
        "100,000 routes in one transaction with traffic undisturbed",
        Work::Call(|sitting| timed(sitting, "a_hundred_thousand_routes", 3.0)),
    ),
    item(
        "api-clients",
        "200 clients with random requests for 10 s: the state equals the replay",
        Work::Call(|sitting| clients(sitting, "10")),
    ),
    long(
        "api-clients-long",
        "the same for 5 minutes",
        Work::Call(|sitting| clients(sitting, "300")),
    ),
    item(
        "fuzz-file",
        "fuzzers for file, command line and HTTP",
        Work::Call(fuzzers),
    ),
    item(
        "hostile-clients",
        "a reader who never closes, a client that stalls in a request",
        Work::Command(&["test", "-p", "volley-cli", "--test", "server"]),
    ),
    item(
        "hostile-http",
        "the same over HTTP, and everything that is refused; the Python client",
        Work::Command(test_file!["http"]),
    ),
    item(
        "full-disk",
        "a full disk refuses a commit and loses none",
        Work::Call(full_disk),
    ),
    item(
        "a-then-b",
        "apply(A); apply(B) is a fresh start with B; again is nothing; failures are rolled back",
        Work::Command(PROPERTIES),
    ),
    long(
        "a-then-b-many",
        "the same, 2000 cases each",
        Work::With(&[("PROPTEST_CASES", "2000")], PROPERTIES),
    ),
    item(
        "every-byte",
        "stopped at every byte of a commit: old or new",
        Work::Command(&["test", "-p", "volley-control", "journal"]),
    ),
    item(
        "kill-9",
        "a daemon killed in commits: old or new, never a mix",
        Work::Call(|sitting| outcome_of(sitting, "a_daemon_killed_at_any_time", "kills:", "12")),
    ),
    long(
        "kill-9-many",
        "the same, 100 kills",
        Work::Call(|sitting| outcome_of(sitting, "a_daemon_killed_at_any_time", "kills:", "100")),
    ),
    item(
        "unconfirmed",
        "a commit that is not confirmed undoes itself, also after a restart",
        Work::Call(|sitting| {
            outcome_of(sitting, "a_commit_that_nobody_confirms", "test result", "")
        }),
    ),
    item(
        "commits",
        "compare, commit, restore, roll back, export",
        Work::Call(|sitting| outcome_of(sitting, "a_commit_is_compared", "test result", "")),
    ),
    item(
        "file-errors",
        "all errors of a file at once, with line, key and allowed values",
        Work::Call(|sitting| outcome_of(sitting, "errors_of_a_file", "test result", "")),
    ),
    item(
        "transactions",
        "order, taking back, renames, events and their gaps",
        Work::Command(&["test", "-p", "volley-control"]),
    ),
    item(
        "batch",
        "batch files with undo, watch, completions",
        Work::Call(|sitting| outcome_of(sitting, "a_batch_is_undone", "test result", "")),
    ),
    item("metrics", "Prometheus endpoint", Work::Call(figures)),
    item(
        "drops",
        "drops by reason and interface with the last packet, traces with a filter, captures others read",
        Work::Command(DROPS),
    ),
    item(
        "service",
        "readiness, watchdog, capabilities given up",
        Work::Command(SERVICE),
    ),
    item(
        "package",
        "Debian package with the systemd unit, unpacked and tried",
        Work::Call(package),
    ),
    item(
        "book",
        "the commands of `A router in 5 minutes` do what the page shows",
        Work::Command(BOOK),
    ),
];

/// The Debian packages around the release build.
pub(super) fn package(sitting: &Sitting<'_>) -> Outcome {
    let binary = sitting.home.volley();
    Outcome::of(xtask::deb::run(sitting.home, Some(binary), None))
}

/// The output of one test of the daemon's commits.
fn test(sitting: &Sitting<'_>, name: &str, kills: &str) -> Result<String, String> {
    test_of(sitting, "commits", name, ("VOLLEY_KILLS", kills))
}

/// The output of one test of the daemon, in a release build.
pub(super) fn test_of(
    sitting: &Sitting<'_>,
    file: &str,
    name: &str,
    (variable, value): (&str, &str),
) -> Result<String, String> {
    let run = Program::cargo(sitting.home)
        .args([
            "test",
            "--release",
            "--locked",
            "-p",
            "volley",
            "--test",
            file,
            name,
        ])
        .args(["--", "--nocapture"])
        .env(variable, value)
        .limit_seconds(900)
        .require()?;
    match run.stdout.contains("1 passed") {
        true => Ok(run.stdout),
        false => Err(format!("no test {name} ran")),
    }
}

pub(super) fn line<'t>(text: &'t str, part: &str) -> Option<&'t str> {
    text.lines().find(|line| line.contains(part))
}

/// Runs a test; the outcome is its output line that contains `part`.
fn outcome_of(sitting: &Sitting<'_>, name: &str, part: &str, kills: &str) -> Outcome {
    let text = test(sitting, name, kills);
    Outcome::of(text.map(|text| line(&text, part).unwrap_or_default().to_owned()))
}

fn full_disk(sitting: &Sitting<'_>) -> Outcome {
    match test(sitting, "a_full_disk", "") {
        Err(reason) => Fail(reason),
        Ok(text) => match line(&text, "skipped:") {
            Some(why) => Skip(why.to_owned()),
            None => Outcome::of(Ok("256 kB of tmpfs".into())),
        },
    }
}

/// 200 clients for the given time.
fn clients(sitting: &Sitting<'_>, seconds: &str) -> Outcome {
    let variable = ("VOLLEY_API_SECONDS", seconds);
    let text = test_of(sitting, "api_clients", "what_runs_is_what", variable);
    Outcome::of(text.map(|text| line(&text, "api clients:").unwrap_or_default().to_owned()))
}

fn figures(sitting: &Sitting<'_>) -> Outcome {
    let text = test_of(sitting, "http", "figures_are_those", ("VOLLEY_LONG", ""));
    Outcome::of(text.map(|_| "the figures are those of the packets".to_owned()))
}

/// Fuzz targets of file, command line and HTTP, five seconds each (with all the others).
fn fuzzers(sitting: &Sitting<'_>) -> Outcome {
    xtask::sanitize::fuzz(sitting.home, 5, true)
}

/// The seconds in the line with the bar.
fn seconds(text: &str) -> Option<f64> {
    let line = line(text, ", bar ")?;
    line.split(": ").nth(1)?.split(' ').next()?.parse().ok()
}

pub(super) fn timed(sitting: &Sitting<'_>, name: &str, bar: f64) -> Outcome {
    let judged = test(sitting, name, "").and_then(|text| {
        let figure = seconds(&text).ok_or("the test printed no figure")?;
        let traffic = line(&text, "traffic:").unwrap_or_default();
        let add = |verdict: String| format!("{verdict}; {traffic}");
        at_most(figure, bar, "s").map(add).map_err(add)
    });
    Outcome::of(judged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_found() {
        let text = "running 1 test\n10000 objects: 1.250 s, bar 2 s; commit 2: 9 steps\n";
        assert_eq!(seconds(text), Some(1.25));
        assert_eq!(seconds("nothing"), None);
    }
}
