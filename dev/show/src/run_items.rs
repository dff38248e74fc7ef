//! Items that are commands: tests, the demo, a fresh clone.

use super::Sitting;
use xtask::cargo_test::{tests_line, tests_run};
use xtask::report::{Fail, Outcome, Pass, Skip};
use xtask::run::{Output, Program};

/// The time limit of a command, beside what its tests run for by request.
const LIMIT_SECONDS: u64 = 1800;

/// Runs a test for the seconds that a variable has, or else for these.
pub fn spanned(sitting: &Sitting<'_>, words: &[&str], variable: &str, seconds: u64) -> Outcome {
    let set = std::env::var(variable).ok();
    let seconds = set.and_then(|text| text.parse().ok()).unwrap_or(seconds);
    let text = seconds.to_string();
    limited(
        sitting,
        words,
        &[(variable, &text)],
        seconds + LIMIT_SECONDS,
    )
}

/// Runs `cargo WORDS` with more variables in its environment; a test run must run at least one test, and no test may
/// report that it could not run.
pub fn command(sitting: &Sitting<'_>, words: &[&str], environment: &[(&str, &str)]) -> Outcome {
    limited(sitting, words, environment, LIMIT_SECONDS)
}

fn limited(
    sitting: &Sitting<'_>,
    words: &[&str],
    environment: &[(&str, &str)],
    seconds: u64,
) -> Outcome {
    let is_test = words.first() == Some(&"test");
    let mut program = Program::cargo(sitting.home).args(words);
    if is_test {
        if !words.contains(&"--") {
            program = program.arg("--");
        }
        program = program.arg("--nocapture");
    }
    let program = environment
        .iter()
        .fold(program, |program, (name, value)| program.env(name, value));
    let output = match program.limit_seconds(seconds).output() {
        Err(error) => return Fail(error.to_string()),
        Ok(output) => output,
    };
    if !output.ok {
        let (ending, why) = (&output.ending, panics(&output.stderr));
        let why = why.unwrap_or_else(|| output.tail(30));
        return Fail(format!("`cargo {}`: {ending}\n{why}", words.join(" ")));
    }
    match output {
        output if is_test && tests_run(&output.stdout) == 0 => {
            Fail(format!("`cargo {}`: no test ran", words.join(" ")))
        }
        output if is_test && !skipped(&output).is_empty() => {
            let (why, all) = (skipped(&output), tests_line(&output.stdout));
            Skip(format!("{} of {all}: {}", why.len(), why.join("; ")))
        }
        output => Pass(format!(
            "{0} of {0} tests pass, bar all: cargo {1}{2}",
            tests_run(&output.stdout),
            words.join(" "),
            figures(&output.stdout)
        )),
    }
}

/// The messages of the threads that panicked: a scope repeats only that one of its threads did. `None`: no thread panicked.
fn panics(stderr: &str) -> Option<String> {
    let (mut lines, mut open) = (Vec::new(), 0);
    for line in stderr.lines() {
        if line.contains(" panicked at ") {
            open = 4;
        } else if line == "stack backtrace:" {
            open = 0;
        }
        if open > 0 && !line.starts_with("note: ") {
            lines.push(line.chars().take(400).collect::<String>());
            open -= 1;
        }
    }
    lines.truncate(40);
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The lines with a figure and its bar that tests have printed: `..., bar N`, `..., at most N`, `..., at least N`.
pub fn figures(stdout: &str) -> String {
    let has_bar = |line: &&str| {
        [", bar ", ", at most ", ", at least "]
            .iter()
            .any(|bar| line.contains(bar))
    };
    let lines = stdout.lines().filter(has_bar);
    lines.map(|line| format!("; {}", line.trim())).collect()
}

/// The reports of tests that could not run here, with their reasons.
fn skipped(output: &Output) -> Vec<&str> {
    let lines = output.stdout.lines().chain(output.stderr.lines());
    // The name of the test may precede it.
    let start = |line: &str| line.find("SKIP").or_else(|| line.find("skipped: "));
    let message = lines.filter_map(|line| Some(line[start(line)?..].trim()));
    let mut all: Vec<&str> = message.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The demo, with the README's command.
pub fn demo(sitting: &Sitting<'_>) -> Outcome {
    match Program::new(sitting.home, sitting.home.volley())
        .arg("demo")
        .limit_seconds(60)
        .require()
    {
        Ok(output) => Pass(format!("{:.0} s, under 60", output.took.as_secs_f64())),
        Err(reason) => Fail(reason),
    }
}

pub fn oracle(sitting: &Sitting<'_>) -> Outcome {
    let run = Program::new(sitting.home, sitting.home.python())
        .args(["-m", "unittest", "--quiet"])
        .dir(&sitting.home.root.join("tests/oracle"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .require();
    Outcome::of(run.map(|_| "tests/oracle".into()))
}

/// A clone into a new folder, with its own build.
pub fn fresh_clone(sitting: &Sitting<'_>) -> Outcome {
    let folder = sitting.home.target.join("fresh-clone");
    // Removes an earlier clone; it is no error if none exists.
    let _ = std::fs::remove_dir_all(&folder);
    let clone = Program::new(sitting.home, "git")
        .args(["clone", "--quiet", "."])
        .arg(&folder)
        .require();
    let inside = |program: &str| {
        let program = Program::new(sitting.home, program)
            .dir(&folder)
            .env("CARGO_TARGET_DIR", folder.join("target"));
        program.env("VOLLEY_SHARED", sitting.home.shared().unwrap_or_default())
    };
    let demo = || {
        inside("cargo")
            .args(["run", "--release", "--", "demo"])
            .limit_seconds(900)
            .require()
    };
    let ci = || {
        let program = inside(".ci/run").env("CI", "true").limit_seconds(2400);
        let run = program.output().map_err(|error| error.to_string())?;
        if run.ok {
            return Ok(run);
        }
        let failed = run.stdout.lines().filter(|l| l.starts_with("FAIL"));
        let failed: Vec<&str> = failed.collect();
        let why = if failed.is_empty() {
            run.tail(30)
        } else {
            failed.join("; ")
        };
        let seconds = run.took.as_secs();
        Err(format!(
            "`.ci/run`: {} after {seconds} s: {why}",
            run.ending
        ))
    };
    let run = clone
        .and_then(|_| demo())
        .and_then(|demo| ci().map(|ci| (demo, ci)));
    let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
    Outcome::of(run.map(|(demo, ci)| {
        format!(
            "demo {:.0} s with its build, tests {:.0} s: {}",
            demo.took.as_secs_f64(),
            ci.took.as_secs_f64(),
            last(&ci.stdout)
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_panic_is_reported_with_what_follows_it() {
        let stderr = "running\nthread '<unnamed>' (7) panicked at a.rs:3:9:\nan answer took 6 s\n\
                      stack backtrace:\n   0: rust_begin_unwind\nnote: run with it\n\n\
                      thread 'main' (1) panicked at scoped.rs:1:1:\na scoped thread panicked\n";
        let lines = panics(stderr).unwrap();
        assert!(
            lines.starts_with("thread '<unnamed>' (7) panicked at a.rs:3:9:\nan answer took 6 s\n")
        );
        assert!(
            lines.contains("a scoped thread panicked")
                && !lines.contains("note:")
                && !lines.contains("unwind"),
            "{lines}"
        );
        assert_eq!(panics("error: no such target\n"), None);
    }
}
