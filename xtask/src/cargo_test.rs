//! Runs `cargo test` and parses its output: number of tests, failed tests and their messages.

use crate::report::Outcome;
use crate::run::{Output, Program};

/// Lines shown of each failed test: the panic, and the output before it.
const LINES_EACH: usize = 25;
/// Characters shown of a line: two long values are mostly equal beyond that.
const WIDTH: usize = 400;

/// A failed test with its output.
#[derive(Debug, PartialEq, Eq)]
pub struct Failed {
    /// Name of the test.
    pub name: String,
    /// Output of the test, by line.
    pub text: Vec<String>,
}

/// Runs the program. The names of the failed tests come first, so that a truncated log still has them.
pub fn run(program: Program) -> Outcome {
    Outcome::of(count(program).map(|n| format!("{n} tests")))
}

/// Runs the program: the number of passed tests, or the reason for the failure.
pub fn count(program: Program) -> Result<usize, String> {
    match program.output() {
        Ok(output) if output.ok => Ok(tests_run(&output.stdout)),
        Ok(output) => Err(reason(&output)),
        Err(error) => Err(error.to_string()),
    }
}

/// The reason for the failure, names of tests first.
pub fn reason(output: &Output) -> String {
    let failed = failed(&output.stdout);
    if failed.is_empty() {
        // Compile errors, or a test binary that died.
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
    // A binary that died printed no names of tests.
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

/// The tests whose output follows `---- NAME stdout ----`.
pub fn failed(stdout: &str) -> Vec<Failed> {
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

/// The number of tests that ran, in words.
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
