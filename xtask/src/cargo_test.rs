//! `cargo test`, and what it says: how many tests ran, which failed, and why.

use crate::report::Outcome;
use crate::run::{Output, Program};

/// Lines of each failed test that are shown: the panic, and what the test had printed before it.
const LINES_EACH: usize = 25;
/// Characters of a line that are shown: what two long values have in common is no news.
const WIDTH: usize = 400;

/// A test that failed, with what it printed.
#[derive(Debug, PartialEq, Eq)]
struct Failed {
    name: String,
    text: Vec<String>,
}

/// Runs it; the names of the failed tests come first, so that a log cut short still tells them.
pub fn run(program: Program) -> Outcome {
    Outcome::of(count(program).map(|n| format!("{n} tests")))
}

/// Runs what `program` makes of more arguments, and tests that failed once more, alone: on a machine that others share, one
/// of hundreds with real peers may have waited too long. Those are named: a test that is named often is to be mended.
pub fn run_patiently(program: impl Fn(&[String]) -> Program) -> Outcome {
    let first = match program(&[]).output() {
        Ok(output) if output.ok => return Outcome::of(Ok(tests_line(&output.stdout))),
        Ok(output) => output,
        Err(error) => return Outcome::of(Err(error.to_string())),
    };
    let names = again(&first);
    if names.is_empty() {
        return Outcome::of(Err(reason(&first)));
    }
    let filter = ["--", "--exact", "--test-threads=1"];
    let filter = filter.into_iter().map(str::to_owned);
    let second = match program(&filter.chain(names.clone()).collect::<Vec<_>>()).output() {
        Ok(second) => second,
        Err(error) => return Outcome::of(Err(error.to_string())),
    };
    Outcome::of(judge(&first, &second, &names))
}

/// Failed tests that may be tried again: not where something did not compile, a binary died or more than a handful failed.
fn again(first: &Output) -> Vec<String> {
    let names: Vec<String> = failed(&first.stdout).into_iter().map(|t| t.name).collect();
    let died = first.stderr.contains("(signal: ");
    if died || names.len() > 3 {
        return Vec::new();
    }
    names
}

fn judge(first: &Output, second: &Output, names: &[String]) -> Result<String, String> {
    if !second.ok {
        let text = reason(second);
        return Err(format!("{text}\n(also at the first go: {})", reason(first)));
    }
    if tests_run(&second.stdout) < names.len() {
        return Err(reason(first));
    }
    let all = tests_run(&first.stdout) + names.len();
    let text = format!(
        "{all} tests, of which only at the second go: {}",
        names.join(", ")
    );
    println!("{}", reason(first));
    Ok(text)
}

/// Runs it: how many tests passed, or what failed.
pub fn count(program: Program) -> Result<usize, String> {
    match program.output() {
        Ok(output) if output.ok => Ok(tests_run(&output.stdout)),
        Ok(output) => Err(reason(&output)),
        Err(error) => Err(error.to_string()),
    }
}

fn reason(output: &Output) -> String {
    let failed = failed(&output.stdout);
    if failed.is_empty() {
        // It did not compile, or a test binary died.
        let errors = output
            .stderr
            .lines()
            .filter(|line| line.starts_with("error") || line.contains("Sanitizer: "));
        let errors: Vec<&str> = errors.take(5).collect();
        let errors = errors.join("; ");
        return format!("{}: {errors}\n{}", output.ending, output.tail(30));
    }
    let names: Vec<&str> = failed.iter().map(|test| test.name.as_str()).collect();
    let mut text = format!("{} failed: {}", names.len(), names.join(", "));
    // A binary that died has told no names.
    for line in output.stderr.lines().filter(|l| l.contains("(signal: ")) {
        text.push_str(&format!("; {}", line.trim()));
    }
    for test in &failed {
        text.push_str(&format!("\n-- {}", test.name));
        for line in test.text.iter().take(LINES_EACH) {
            text.push('\n');
            text.extend(line.chars().take(WIDTH));
        }
    }
    text
}

/// The tests whose output stands under `---- NAME stdout ----`.
fn failed(stdout: &str) -> Vec<Failed> {
    let mut failed: Vec<Failed> = Vec::new();
    let mut open = false;
    for line in stdout.lines() {
        let name = line.strip_prefix("---- ").and_then(|rest| {
            rest.strip_suffix(" stdout ----")
                .or_else(|| rest.strip_suffix(" ----"))
        });
        if let Some(name) = name {
            open = true;
            failed.push(Failed {
                name: name.to_owned(),
                text: Vec::new(),
            });
        } else if line == "failures:" || line.starts_with("test result: ") {
            open = false;
        } else if open
            && !line.is_empty()
            && let Some(test) = failed.last_mut()
        {
            test.text.push(line.to_owned());
        }
    }
    failed
}

/// Sum of "N passed" over all `test result:` lines.
pub fn tests_run(stdout: &str) -> usize {
    let lines = stdout
        .lines()
        .filter_map(|line| line.trim().strip_prefix("test result: "));
    lines
        .filter_map(|line| {
            line.split_once(". ")?
                .1
                .split_once(" passed")?
                .0
                .parse::<usize>()
                .ok()
        })
        .sum()
}

pub fn tests_line(stdout: &str) -> String {
    format!("{} tests", tests_run(stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_results_are_added_up() {
        let text = "test result: ok. 12 passed; 0 failed; 1 ignored\nx\ntest result: FAILED. 3 passed; 1 failed\n";
        assert_eq!(tests_run(text), 15);
        assert_eq!(tests_line(""), "0 tests");
    }

    #[test]
    fn failed_tests_come_first_with_their_last_words() {
        let stdout = "running 2 tests\ntest a::b ... FAILED\ntest c ... ok\n\nfailures:\n\n\
            ---- a::b stdout ----\n\nthread 'a::b' panicked at x.rs:1:2:\nleft is not right\n\n\n\
            failures:\n    a::b\n\ntest result: FAILED. 1 passed; 1 failed\n";
        let output = Output {
            ok: false,
            ending: "exit code 101".into(),
            stdout: stdout.into(),
            stderr:
                "     Running x\n  process didn't exit: `y` (signal: 9)\nerror: 2 targets failed:"
                    .into(),
            took: std::time::Duration::ZERO,
        };
        assert_eq!(
            reason(&output),
            "1 failed: a::b; process didn't exit: `y` (signal: 9)\n-- a::b\nthread 'a::b' panicked at x.rs:1:2:\nleft is not right"
        );
    }

    fn said(ok: bool, stdout: &str, stderr: &str) -> Output {
        Output {
            ok,
            ending: "exit code 101".into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
            took: std::time::Duration::ZERO,
        }
    }

    #[test]
    fn a_second_go_is_named_and_has_to_run_the_test() {
        let stdout = "---- a::b stdout ----\nno\nfailures:\n    a::b\n\ntest result: FAILED. 7 passed; 1 failed\n";
        let first = said(false, stdout, "");
        let names = again(&first);
        assert_eq!(names, ["a::b"]);
        let good = said(true, "test result: ok. 1 passed; 0 failed\n", "");
        let text = judge(&first, &good, &names).unwrap();
        assert_eq!(text, "8 tests, of which only at the second go: a::b");
        let none = said(true, "test result: ok. 0 passed; 0 failed\n", "");
        assert!(
            judge(&first, &none, &names)
                .unwrap_err()
                .starts_with("1 failed: a::b")
        );
        let bad = said(false, stdout, "");
        assert!(judge(&first, &bad, &names).is_err());
        let died = said(false, stdout, "process didn't exit (signal: 11)");
        assert!(again(&died).is_empty());
        assert!(again(&said(false, "", "error[E0432]: x")).is_empty());
        let many: String = (0..4).map(|n| format!("---- t{n} stdout ----\n")).collect();
        assert!(
            again(&said(false, &many, "")).is_empty(),
            "that is no accident"
        );
    }

    #[test]
    fn what_does_not_compile_names_the_error() {
        let output = Output {
            ok: false,
            ending: "exit code 101".into(),
            stdout: String::new(),
            stderr: "warning: x\nerror[E0432]: unresolved import `y`".into(),
            took: std::time::Duration::ZERO,
        };
        let reason = reason(&output);
        assert!(
            reason.starts_with("exit code 101: error[E0432]: unresolved import `y`\n"),
            "{reason}"
        );
    }
}
