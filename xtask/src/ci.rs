//! All checks that must pass before a change is merged.

use crate::ahead::{Ahead, BUILD};
use crate::command::{self, SHOW};
use crate::home::Home;
use crate::report::{Fail, Outcome, Pass, Report, Skip};
use crate::run::Program;
use crate::{
    arm, budget, cargo_test, disk, docs, fresh, install, readme, sanitize, suite, tidy, tutorial,
    x86_v2,
};

/// Extent of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// During development: no sanitizers, no release build.
    Quick,
    /// Before a change is merged.
    Usual,
    /// More cases, longer fuzzing.
    Long,
}

impl Depth {
    /// The depth that the flags `--quick` and `--long` select.
    pub fn from_flags(quick: bool, long: bool) -> Self {
        match (quick, long) {
            (true, _) => Self::Quick,
            (false, true) => Self::Long,
            (false, false) => Self::Usual,
        }
    }

    /// Cases per property test under a sanitizer, which is slow.
    fn cases(self) -> u32 {
        if self == Self::Long { 64 } else { 4 }
    }

    fn fuzz_seconds(self) -> u32 {
        if self == Self::Long { 120 } else { 4 }
    }
}

/// State of a run: checkout, extent, and builds that were started early.
struct Sitting<'a> {
    home: &'a Home,
    depth: Depth,
    /// Whether later builds may be started early.
    whole: bool,
    ahead: Ahead,
}

type Work = fn(&Sitting<'_>) -> Outcome;

/// Name, whether `--quick` runs the stage, and its function. Fast stages come first, so that simple mistakes are found
/// within a minute.
const STAGES: [(&str, bool, Work); 22] = [
    ("install", true, |s| install::stage(s.home)),
    ("fmt", true, |s| fmt(s.home)),
    ("tidy", true, |s| tidy::run(s.home)),
    ("clippy", true, |s| clippy(s.home)),
    ("test", true, tests),
    ("dpdk", false, |s| dpdk(s.home)),
    ("oracle", true, |s| oracle(s.home)),
    ("rustdoc", false, |s| rustdoc(s.home)),
    ("build", false, build),
    ("readme", false, |s| readme::run(s.home, false)),
    ("docs", false, |s| docs::run(s.home, false)),
    ("budget", false, |s| budget::run(s.home, false)),
    ("loom", false, |s| sanitize::loom(s.home)),
    ("asan", false, |s| {
        sanitize::address(s.home, s.depth.cases())
    }),
    ("tsan", false, |s| sanitize::thread(s.home)),
    ("memcheck", false, |s| {
        sanitize::memcheck(s.home, s.depth.cases())
    }),
    ("fuzz", false, |s| {
        let long = s.depth == Depth::Long;
        sanitize::fuzz(s.home, s.depth.fuzz_seconds(), long)
    }),
    ("arm", false, |s| arm::run(s.home)),
    ("x86-v2", false, |s| x86_v2::run(s.home)),
    ("lab", false, |s| lab(s.home)),
    ("outside", false, |s| outside(s.home)),
    ("fresh-clone", false, |s| fresh::clone(s.home)),
];

/// Stages of long runs only: `tsan` builds the standard library, `memcheck` repeats the tests of AddressSanitizer more
/// slowly, `arm` builds for another architecture and runs the tests on an emulated processor, `x86-v2` runs the kernels on
/// emulated x86-64 processors, `lab` builds a further release
/// program and measures for more than a minute (in a default run, the tests of volley-lab measure a figure of each kind),
/// `outside` compiles the daemon for another workspace, and `fresh-clone` is a default run in a separate clone. A default run
/// may take forty minutes on two cores from scratch.
const LONG: [&str; 7] = [
    "tsan",
    "memcheck",
    "arm",
    "x86-v2",
    "lab",
    "outside",
    "fresh-clone",
];

/// Runs the stages (or those in `only`), prints each with its time, and the closing line last.
pub fn run(home: &Home, depth: Depth, only: &[String]) -> bool {
    let mut report = Report::default();
    let sitting = Sitting {
        home,
        depth,
        whole: only.is_empty() && depth != Depth::Quick,
        ahead: Ahead::default(),
    };
    for (name, quick, work) in &STAGES {
        if !only.is_empty() && !only.iter().any(|wanted| wanted == name) {
            continue;
        }
        if depth == Depth::Quick && !quick && only.is_empty() {
            report.add(name, &Skip("--quick".into()), None);
        } else if depth == Depth::Usual && LONG.contains(name) && only.is_empty() {
            let how = format!("only with --long, or by --only {name}");
            report.add(name, &Skip(how), None);
        } else {
            report.stage(name, || work(&sitting));
            if sitting.whole
                && let Some(text) = disk::after(home, name, &STAGES.map(|stage| stage.0))
            {
                println!("{text}");
            }
        }
    }
    for name in only
        .iter()
        .filter(|name| !STAGES.iter().any(|stage| stage.0 == **name))
    {
        report.add(name, &Fail("there is no stage of this name".into()), None);
    }
    report.summary();
    report.close()
}

fn fmt(home: &Home) -> Outcome {
    plain(Program::cargo(home).args(["fmt", "--all", "--check"]))
}

fn clippy(home: &Home) -> Outcome {
    let targets = ["--all-targets", "--locked"];
    let lints = Program::cargo(home)
        .args(["clippy", "--workspace"])
        .args(targets)
        .args(["--", "-D", "warnings"]);
    // A plugin outside of the workspace compiles: the SDK has what it had.
    let plugin = Program::cargo(home)
        .arg("check")
        .args(targets)
        .dir(&home.root.join(tutorial::FOLDER))
        .env("CARGO_TARGET_DIR", &home.target);
    let mut all = [lints, plugin].into_iter();
    let done = all.try_for_each(|cargo| cargo.require().map(|_| ()));
    Outcome::of(done.map(|()| "the workspace; the tutorial's plugin compiles".to_owned()))
}

fn rustdoc(home: &Home) -> Outcome {
    let doc = [
        "doc",
        "--workspace",
        "--no-deps",
        "--locked",
        "--document-private-items",
    ];
    plain(
        Program::cargo(home)
            .args(doc)
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn build(sitting: &Sitting<'_>) -> Outcome {
    if sitting.ahead.is_done() {
        return Pass("begun while the tests ran".into());
    }
    plain(Program::cargo(sitting.home).args(BUILD))
}

fn tests(sitting: &Sitting<'_>) -> Outcome {
    // Whether a change passes must not depend on chance: only long runs use random cases, default runs a fixed seed.
    let env: &[_] = match sitting.depth {
        Depth::Long => &[("PROPTEST_CASES", "1024")],
        _ => &[("PROPTEST_CASES", "32"), ("PROPTEST_RNG_SEED", "20261122")],
    };
    let quick = sitting.depth == Depth::Quick;
    suite::run(sitting.home, env, quick, || {
        if sitting.whole {
            sitting
                .ahead
                .begin(sitting.home, sitting.depth == Depth::Long);
        }
    })
}

/// The optional driver: its lints, its tests, and the binary with it, if libdpdk is installed.
pub fn dpdk(home: &Home) -> Outcome {
    let find = Program::new(home, "pkg-config").args(["--atleast-version=22.11", "libdpdk"]);
    if find.require().is_err() {
        return Skip("pkg-config finds no libdpdk 22.11 or newer".into());
    }
    // Always the whole workspace: with fewer packages cargo would choose other features for shared dependencies, and
    // rebuild them.
    let all = ["--workspace", "--locked", "--features", "volley/dpdk"];
    let lints = Program::cargo(home).arg("clippy").args(all).args([
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]);
    if let Err(reason) = lints.require() {
        return Fail(reason);
    }
    let tests = |chosen: &[&str]| {
        let program = Program::cargo(home).arg("test").args(all).args(chosen);
        cargo_test::count(program)
    };
    let units = tests(&["--lib", "--", "eal::tests", "send::tests"]);
    let whole = units.and_then(|n| Ok((n, tests(&["--test", "dpdk_*"])?)));
    Outcome::of(match whole {
        Ok((0, _) | (_, 0)) => Err("no test of volley-dpdk ran by these names".into()),
        whole => whole.map(|(units, ports)| format!("{} tests", units + ports)),
    })
}

/// All figures of the lab at smoke level, in less than two minutes, and the page that shows them, if Chromium is installed.
fn lab(home: &Home) -> Outcome {
    let words = ["lab", "--only", "smoke"].map(Into::into);
    match command::tool(home, SHOW, &words) {
        Ok(0) => Pass("every figure at smoke level; the page, if Chromium is installed".into()),
        Ok(_) => Fail("`cargo xtask show lab --only smoke` has failed".into()),
        Err(error) => Fail(error.to_string()),
    }
}

/// The tests of the crates outside the workspace: one that shares the target folder, and the tutorial's plugin.
pub fn outside(home: &Home) -> Outcome {
    let tests = Program::cargo(home)
        .args([
            "test",
            "--offline",
            "--manifest-path",
            "tests/outside/Cargo.toml",
        ])
        .env("CARGO_TARGET_DIR", &home.target);
    let done = tests
        .require()
        .and_then(|_| tutorial::test(home).map(|_| ()));
    let what =
        "command line, file, HTTP, OpenAPI, difference, rollback, reference; the tutorial's plugin";
    Outcome::of(done.map(|()| what.to_owned()))
}

/// The oracle's own tests. A test of apps/volley compares Volley with the oracle.
fn oracle(home: &Home) -> Outcome {
    let run = Program::new(home, home.python())
        .args(["-m", "unittest", "--quiet"])
        .dir(&home.root.join("tests/oracle"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .require();
    let opinion = if install::has_scapy(home) {
        "with scapy's opinion"
    } else {
        "without scapy, which is not installed"
    };
    Outcome::of(run.map(|output| format!("{}, {opinion}", unittest_line(&output.stderr))))
}

fn unittest_line(stderr: &str) -> String {
    let line = stderr.lines().find_map(|line| {
        line.strip_prefix("Ran ")?
            .split_once(" in ")
            .map(|(tests, _)| tests.to_owned())
    });
    line.unwrap_or_else(|| "no tests".into())
}

fn plain(program: Program) -> Outcome {
    match program.require() {
        Ok(_) => Pass(String::new()),
        Err(reason) => Fail(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_choose_the_depth() {
        assert_eq!(Depth::from_flags(false, false), Depth::Usual);
        assert_eq!(Depth::from_flags(true, true), Depth::Quick);
        assert!(Depth::Long.fuzz_seconds() > Depth::Usual.fuzz_seconds());
    }

    #[test]
    fn an_unknown_stage_fails() {
        assert!(!run(
            &Home::find().unwrap(),
            Depth::Usual,
            &["no-such-stage".into()]
        ));
    }

    #[test]
    fn unittest_output_is_read() {
        assert_eq!(
            unittest_line("-----\nRan 24 tests in 1.2s\n\nOK"),
            "24 tests"
        );
        assert_eq!(unittest_line(""), "no tests");
    }
}
