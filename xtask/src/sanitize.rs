//! Repeats tests under AddressSanitizer, valgrind memcheck and loom, and runs the fuzz targets for a limited time.

use crate::cargo_test::{self, tests_line, tests_run};
use crate::disk;
use crate::home::Home;
use crate::report::{Fail, Outcome, Pass, Skip};
use crate::run::{Program, exists};
use std::path::{Path, PathBuf};

/// Crates with unsafe code: the ones to look at.
pub(crate) const BASE: [&str; 6] = [
    "volley-simd",
    "volley-wire",
    "volley-buf",
    "volley-heap",
    "volley-tables",
    "volley-graph",
];
/// Drivers with unsafe code that can be tested without hardware.
const DRIVERS: [&str; 2] = ["volley-memif", "volley-vhost"];
/// Crates whose values are shared by threads.
const THREADS: [&str; 4] = ["volley-buf", "volley-tables", "volley-graph", "volley-rss"];
const LOOM: [&str; 2] = ["volley-buf", "volley-tables"];
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// Flags of the compiler beside those of `.cargo/config.toml`, which the variable `RUSTFLAGS` would replace.
const FLAGS: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS";
/// The flags that cargo-fuzz passes to rustc, so that cargo-fuzz itself is not needed.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address --cfg fuzzing -Ccodegen-units=1";

pub(crate) fn packages(names: &[&str]) -> Vec<String> {
    names
        .iter()
        .flat_map(|name| ["-p".to_owned(), (*name).to_owned()])
        .collect()
}

/// AddressSanitizer with the stable compiler, which includes the runtime; only the flag is unstable.
pub fn address(home: &Home, cases: u32) -> Outcome {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Skip("AddressSanitizer is set up for x86-64 Linux".into());
    }
    let kept = home.root.join(KEPT);
    let tests = address_tests(Program::cargo(home), home)
        .env("LSAN_OPTIONS", format!("suppressions={}", kept.display()))
        .env("PROPTEST_CASES", cases.to_string())
        .env("VOLLEY_SMALL", "1");
    cargo_test::run(tests)
}

/// The tests that run under AddressSanitizer, with this cargo.
pub(crate) fn address_tests(cargo: Program, home: &Home) -> Program {
    cargo
        .args(["test", "--lib", "--tests", "--no-fail-fast"])
        .args(["--target", TRIPLE])
        .args(packages(&BASE))
        .args(packages(&DRIVERS))
        .env("RUSTC_BOOTSTRAP", "1")
        .env(FLAGS, "-Zsanitizer=address")
        .env("CARGO_TARGET_DIR", home.target.join("asan"))
}

/// Memory that stays allocated on purpose.
const KEPT: &str = "xtask/lsan.supp";
/// Suppressions for false positives in a standard library that is not built with ThreadSanitizer.
const SUPPRESSED: &str = "xtask/tsan.supp";
/// Two threads write one word: ThreadSanitizer must report this race.
const RACE: &str = "static mut N: u64 = 0;
fn add() { for _ in 0..1000 { unsafe { let n = &raw mut N; n.write_volatile(n.read_volatile() + 1) } } }
fn main() { let other = std::thread::spawn(add); add(); other.join().unwrap(); }
";

/// ThreadSanitizer over what threads share: rings, free lists, grace periods, handoffs. The standard library should be
/// built with it, which requires its source. Without the source, its internal synchronisation looks like a race in a few
/// known places; a program with a race shows first that other races are still found.
pub fn thread(home: &Home) -> Outcome {
    let sysroot = match Program::new(home, "rustc")
        .args(["--print", "sysroot"])
        .require()
    {
        Ok(output) => PathBuf::from(output.stdout.trim()),
        Err(reason) => return Fail(reason),
    };
    let has_source = sysroot.join("lib/rustlib/src/rust/library").is_dir();
    let whole = ["-Zbuild-std"];
    let tests = Program::cargo(home)
        .args(["test", "--lib", "--tests", "--no-fail-fast"])
        .args(whole.iter().filter(|_| has_source))
        .args(["--target", TRIPLE])
        .args(packages(&THREADS))
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", home.target.join("tsan"))
        .env("PROPTEST_CASES", "4")
        .env("VOLLEY_SMALL", "1");
    if has_source {
        return cargo_test::run(tests.env(FLAGS, "-Zsanitizer=thread"));
    }
    if let Err(reason) = finds_a_race(home) {
        return Fail(reason);
    }
    let tests = tests
        .env(FLAGS, WITHOUT_SOURCE.join(" "))
        .env("TSAN_OPTIONS", options(home));
    match cargo_test::run(tests) {
        Pass(text) => Pass(format!(
            "{text}; no rust-src: the standard library is not instrumented, {SUPPRESSED} says what that hides; a race made on purpose is found"
        )),
        other => other,
    }
}

/// Allows an uninstrumented standard library beside instrumented code.
const WITHOUT_SOURCE: [&str; 2] = [
    "-Zsanitizer=thread",
    "-Cunsafe-allow-abi-mismatch=sanitizer",
];

fn options(home: &Home) -> String {
    let path = home.root.join(SUPPRESSED);
    format!("suppressions={} history_size=4", path.display())
}

/// Checks that a race is reported despite the suppressions.
fn finds_a_race(home: &Home) -> Result<(), String> {
    let dir = home.target.join("tsan");
    let (source, binary) = (dir.join("race.rs"), dir.join("race"));
    let failed = |e: std::io::Error| format!("{}: {e}", source.display());
    std::fs::create_dir_all(&dir).map_err(failed)?;
    std::fs::write(&source, RACE).map_err(failed)?;
    Program::new(home, "rustc")
        .args(["--edition", "2024", "-g", "--target", TRIPLE])
        .args(WITHOUT_SOURCE)
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .env("RUSTC_BOOTSTRAP", "1")
        .require()?;
    let run = Program::new(home, &binary)
        .env("TSAN_OPTIONS", options(home))
        .limit_seconds(60)
        .output()
        .map_err(|e| e.to_string())?;
    if !run.ok && run.stderr.contains("ThreadSanitizer: data race") {
        Ok(())
    } else {
        Err(format!(
            "ThreadSanitizer does not find a race made on purpose: {}",
            run.ending
        ))
    }
}

/// Runs valgrind memcheck over the unit tests of base, one binary after the other.
pub fn memcheck(home: &Home, cases: u32) -> Outcome {
    if !exists("valgrind") {
        return Skip("valgrind is not installed".into());
    }
    let binaries = match test_binaries(home) {
        Ok(binaries) => binaries,
        Err(reason) => return Fail(reason),
    };
    for binary in &binaries {
        let run = under_valgrind(home, binary)
            .env("PROPTEST_CASES", cases.to_string())
            .env("VOLLEY_SMALL", "1")
            .limit_seconds(900)
            .require();
        if let Err(reason) = run {
            return Fail(reason);
        }
    }
    Pass(format!("{} test binaries of base", binaries.len()))
}

/// A test binary under valgrind memcheck.
fn under_valgrind(home: &Home, binary: &Path) -> Program {
    Program::new(home, "valgrind")
        .args([
            "--quiet",
            "--error-exitcode=99",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
            // Threads that wait for each other would starve.
            "--fair-sched=yes",
        ])
        .arg(binary)
        .args(["--test-threads", "1"])
}

/// Runs the test of a name in each file `tests/FILE.rs` of the workspace under valgrind memcheck, with a variable; the output
/// of the tests, of which there must be `wanted`.
pub fn memcheck_test(
    home: &Home,
    wanted: usize,
    [file, test]: [&str; 2],
    (variable, value): (&str, &str),
) -> Result<String, String> {
    if !exists("valgrind") {
        return Err("valgrind is not installed".into());
    }
    let build = Program::cargo(home)
        .args([
            "test",
            "--workspace",
            "--locked",
            "--no-run",
            "--test",
            file,
        ])
        .args(["--message-format", "json"])
        .require()?;
    let mut text = String::new();
    for binary in executables(&build.stdout, &[file]) {
        let run = under_valgrind(home, &binary)
            .args(["--nocapture", test])
            .env(variable, value)
            .limit_seconds(600)
            .require()?;
        text += &run.stdout;
    }
    match tests_run(&text) {
        count if count == wanted => Ok(text),
        count => Err(format!("{count} tests ran under valgrind, not {wanted}")),
    }
}

fn test_binaries(home: &Home) -> Result<Vec<PathBuf>, String> {
    // The whole workspace, so that these are the binaries that the tests ran with.
    let build = [
        "test",
        "--workspace",
        "--no-run",
        "--lib",
        "--locked",
        "--message-format",
        "json",
    ];
    let output = Program::cargo(home).args(build).require()?;
    let binaries = executables(&output.stdout, &BASE);
    if binaries.len() == BASE.len() {
        Ok(binaries)
    } else {
        Err(format!(
            "cargo named {} test binaries of {}",
            binaries.len(),
            BASE.join(", ")
        ))
    }
}

/// The executables of some packages, from cargo's messages.
fn executables(messages: &str, packages: &[&str]) -> Vec<PathBuf> {
    let lines = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines
        .filter_map(|message| {
            let target = message.get("target")?.get("name")?.as_str()?;
            let wanted = packages.iter().any(|p| p.replace('-', "_") == target);
            wanted.then(|| message.get("executable")?.as_str().map(PathBuf::from))?
        })
        .collect()
}

/// Runs all interleavings that loom finds, in the test files named `loom_*.rs`.
pub fn loom(home: &Home) -> Outcome {
    let run = Program::cargo(home)
        .args(["test", "--release", "--test", "loom_*"])
        .args(packages(&LOOM))
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", home.target.join("loom"))
        .limit_seconds(900)
        .require();
    match run {
        Ok(output) if tests_run(&output.stdout) == 0 => {
            Fail("no test ran in tests/loom_*.rs under --cfg loom".into())
        }
        Ok(output) => Pass(tests_line(&output.stdout)),
        Err(reason) => Fail(reason),
    }
}

/// Runs each fuzz target for some seconds, from its corpus in the tree; without `all`, only those that need no additional
/// crates, which take long to compile.
pub fn fuzz(home: &Home, seconds: u32, all: bool) -> Outcome {
    let dir = home.root.join("fuzz");
    if !dir.join("Cargo.toml").is_file() {
        return Skip("there is no fuzz folder yet".into());
    }
    if !exists("g++") && !exists("c++") {
        return Skip("libFuzzer needs a C++ compiler".into());
    }
    let build = || fuzz_targets_build(Program::cargo(home), home, all).require();
    // The last build of a run may find a full disk on a shared machine, which kills the linker: try a second time.
    let built = build().or_else(|reason| {
        if disk::is_full(&reason) {
            println!("fuzz: a linker died of a full disk; one more try");
            build()
        } else {
            Err(reason)
        }
    });
    if let Err(reason) = built {
        return Fail(reason);
    }
    let names = fuzz_targets(&dir).and_then(|names| {
        let long = listed(&dir, &names)?;
        let wanted = names.into_iter().filter(|name| all || !long.contains(name));
        Ok(wanted.collect::<Vec<String>>())
    });
    match names {
        Ok(names) if names.is_empty() => Fail("fuzz/fuzz_targets is empty".into()),
        Ok(names) => fuzz_each(home, &names, seconds),
        Err(error) => Fail(error.to_string()),
    }
}

/// The build of the fuzz targets, by this cargo.
pub(crate) fn fuzz_targets_build(cargo: Program, home: &Home, all: bool) -> Program {
    let features: &[&str] = if all { &[] } else { &["--no-default-features"] };
    cargo
        .args([
            "build",
            "--release",
            "--bins",
            "--target",
            TRIPLE,
            "--manifest-path",
            "fuzz/Cargo.toml",
        ])
        .args(features)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", COVERAGE)
        .env("CARGO_TARGET_DIR", home.target.join("fuzz"))
}

fn fuzz_targets(dir: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir.join("fuzz_targets"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(
                path.file_stem()
                    .map(|stem| stem.to_string_lossy().into_owned()),
            );
        }
    }
    names.sort();
    Ok(names)
}

/// The targets that need a feature, which only long runs build. Fails unless the page and the manifest have the same
/// targets.
fn listed(dir: &Path, names: &[String]) -> std::io::Result<Vec<String>> {
    let page = std::fs::read_to_string(dir.join("README.md"))?;
    let manifest = std::fs::read_to_string(dir.join("Cargo.toml"))?;
    let rows = page.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
        Some(name.to_owned())
    });
    let rows: Vec<String> = rows.collect();
    let mut bins = std::collections::BTreeMap::new();
    for bin in manifest.split("[[bin]]").skip(1) {
        let behind = bin.split_once("\"fuzz_targets/");
        if let Some((name, _)) = behind.and_then(|(_, rest)| rest.split_once(".rs\"")) {
            bins.insert(name.to_owned(), bin.contains("required-features"));
        }
    }
    let seeds = |name: &String| std::fs::read_dir(dir.join("corpus").join(name));
    let has_seed = |name: &String| seeds(name).is_ok_and(|mut files| files.next().is_some());
    if let Some(name) = names
        .iter()
        .find(|name| bins.contains_key(*name) && !has_seed(name))
    {
        let why = format!("fuzz/corpus/{name} has no seed: add one to fuzz/src/corpus");
        return Err(std::io::Error::other(why));
    }
    let missing = names
        .iter()
        .filter(|name| !rows.contains(name) || !bins.contains_key(*name));
    let unknown = rows
        .iter()
        .chain(bins.keys())
        .filter(|name| !names.contains(name));
    let different: Vec<&String> = missing.chain(unknown).collect();
    match different.is_empty() {
        true => Ok(bins
            .into_iter()
            .filter(|(_, long)| *long)
            .map(|(name, _)| name)
            .collect()),
        false => Err(std::io::Error::other(format!(
            "fuzz/fuzz_targets, the table of fuzz/README.md and the [[bin]]s of fuzz/Cargo.toml differ in {different:?}"
        ))),
    }
}

/// Runs each target for some seconds, as many at a time as there are cores.
fn fuzz_each(home: &Home, names: &[String], seconds: u32) -> Outcome {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    for some in names.chunks(cores) {
        let failed = std::thread::scope(|scope| {
            let spawn = |name: &String| {
                let name = name.clone();
                scope.spawn(move || fuzz_one(home, &name, seconds))
            };
            let running: Vec<_> = some.iter().map(spawn).collect();
            let mut ended = running.into_iter().map(|thread| thread.join());
            let lost = |_| Err("a thread that runs a fuzz target has panicked".to_owned());
            ended.find_map(|it| it.unwrap_or_else(lost).err())
        });
        if let Some(reason) = failed {
            return Fail(reason);
        }
    }
    Pass(format!(
        "{} targets, {seconds} s each: {}",
        names.len(),
        names.join(", ")
    ))
}

fn fuzz_one(home: &Home, name: &str, seconds: u32) -> Result<(), String> {
    let found = home.target.join("fuzz/found").join(name);
    std::fs::create_dir_all(&found).map_err(|error| format!("{}: {error}", found.display()))?;
    let binary = home
        .target
        .join("fuzz")
        .join(TRIPLE)
        .join("release")
        .join(name);
    Program::new(home, binary)
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", found.display()))
        // New inputs go into the first folder, so that a run does not change the checkout.
        .arg(&found)
        .args(Some(home.root.join("fuzz/corpus").join(name)).filter(|path| path.is_dir()))
        .limit_seconds(u64::from(seconds) + 120)
        .require()
        .map(drop)
        .map_err(|reason| format!("{name}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_made_on_purpose_is_found() {
        let home = Home::find().unwrap();
        if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
            assert_eq!(finds_a_race(&home), Ok(()));
        }
    }

    #[test]
    fn the_page_of_fuzz_targets_has_all_of_them() {
        let dir = Home::find().unwrap().root.join("fuzz");
        let names = fuzz_targets(&dir).unwrap();
        let long = listed(&dir, &names).unwrap();
        assert!(long.contains(&"http_body".to_owned()) && !long.contains(&"wire_parse".to_owned()));
        let other = [&names[..], &["another".to_owned()]].concat();
        let error = listed(&dir, &other).unwrap_err().to_string();
        assert!(error.contains("another"), "{error}");
    }

    #[test]
    fn executables_are_found_in_cargo_messages() {
        let text = "{\"target\":{\"name\":\"volley_a\"},\"executable\":\"/t/deps/a-1\"}\n\
            {\"target\":{\"name\":\"volley_b\"},\"executable\":\"/t/deps/b-1\"}\n\
            {\"target\":{\"name\":\"volley_a\"},\"executable\":null}\nnot json\n";
        let found = executables(text, &["volley-a", "volley-c"]);
        assert_eq!(found, [PathBuf::from("/t/deps/a-1")]);
    }
}
