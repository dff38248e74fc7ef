//! Runs every test of the workspace: two binaries at a time, because most of them wait for peers more than they compute.
//! A few failed tests are repeated alone.
//!
//! On a shared machine one of hundreds of tests with real peers may time out. A test that passes when repeated is
//! reported: a test that is reported often must be fixed.

use crate::cargo_test::{failed, reason, tests_run};
use crate::home::Home;
use crate::report::Outcome;
use crate::run::{Output, Program};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Number of binaries that run at a time.
const AT_ONCE: usize = 2;
/// Test files with measurements, which run before the others.
const ALONE: [&str; 2] = ["idle", "gap"];
/// Test files that take longest: they start first, so that a short one ends last. `week` is not included: it counts lost
/// packets, and `testpmd` needs a core for itself.
const LONGEST: [&str; 5] = [
    "testpmd",
    "default_routers",
    "reassembly",
    "advertisements",
    "full_table",
];
/// Other test files that take ten seconds or more: a quick run omits them and those of [`LONGEST`] and [`ALONE`].
const SLOW: [&str; 24] = [
    "addresses",
    "api_clients",
    "bridge",
    "commits",
    "demo_capture",
    "discovery",
    "failures",
    "frr",
    "http",
    "in_place",
    "kernel_devices",
    "lcp",
    "listeners",
    "multicast",
    "neighbors",
    "peers",
    "plugins",
    "replay",
    "slaac",
    "soak",
    "spread",
    "vlan",
    "week",
    "workers",
];
/// Number of slowest binaries that are reported.
const NAMED: usize = 24;
/// Maximum number of failed tests that are repeated.
const ACCIDENTS: usize = 3;

/// A test binary, and the folder of its package.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Binary {
    name: String,
    path: PathBuf,
    dir: PathBuf,
}

/// Builds and runs all tests, with `env` set; a quick run omits slow test files. `beside` is called when the measuring
/// tests have ended, to start work that may run beside the others.
pub fn run(home: &Home, env: &[(&str, &str)], quick: bool, beside: impl FnOnce()) -> Outcome {
    Outcome::of(all(home, env, quick, beside))
}

/// Whether a quick run omits a test file.
fn is_slow(name: &str) -> bool {
    ALONE.contains(&name) || LONGEST.contains(&name) || SLOW.contains(&name)
}

fn all(
    home: &Home,
    env: &[(&str, &str)],
    quick: bool,
    begin: impl FnOnce(),
) -> Result<String, String> {
    let build = ["test", "--workspace", "--locked", "--no-run"];
    let build = Program::cargo(home)
        .args(build)
        .args(["--message-format", "json"]);
    let build = build.output().map_err(|e| e.to_string())?;
    if !build.ok {
        return Err(reason(&build));
    }
    println!("built in {:.0} s", build.took.as_secs_f64());
    let built = binaries(&build.stdout);
    let number = built.len();
    let chosen = built.into_iter().filter(|b| !(quick && is_slow(&b.name)));
    let chosen: Vec<Binary> = chosen.collect();
    let left_out = number - chosen.len();
    let (alone, mut beside): (Vec<Binary>, Vec<Binary>) = chosen
        .into_iter()
        .partition(|b| ALONE.contains(&b.name.as_str()));
    beside.sort_by_key(|binary| !LONGEST.contains(&binary.name.as_str()));
    let mut ran = Vec::new();
    for binary in alone {
        let output = start(home, env, &binary, &[])?;
        ran.push((Some(binary), output));
    }
    begin();
    ran.extend(together(home, env, beside)?);
    println!("longest: {}", longest(&ran));
    let doc = ["test", "--workspace", "--locked", "--no-fail-fast", "--doc"];
    let doc = Program::cargo(home).args(doc).output();
    ran.push((None, doc.map_err(|e| e.to_string())?));
    let text = judge(&ran, |binary, names| start(home, env, binary, names))?;
    Ok(match left_out {
        0 => text,
        _ => format!("{text}; {left_out} slow test files only without --quick"),
    })
}

/// The slowest binaries, which determine the time of a run.
fn longest(ran: &[Ran]) -> String {
    let timed = ran.iter().filter_map(|(binary, output)| {
        let name = &binary.as_ref()?.name;
        Some((output.took, name))
    });
    let mut all: Vec<_> = timed.collect();
    all.sort_by(|a, b| b.cmp(a));
    let text = |(took, name): &(std::time::Duration, &String)| {
        format!("{name} {:.0} s", took.as_secs_f64())
    };
    let named = all.iter().take(NAMED).map(text);
    named.collect::<Vec<_>>().join(", ")
}

/// The test binaries of cargo's messages.
fn binaries(messages: &str) -> Vec<Binary> {
    let lines = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let binary = |message: serde_json::Value| {
        message["profile"]["test"].as_bool().filter(|test| *test)?;
        let dir = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(Binary {
            name: message["target"]["name"].as_str()?.to_owned(),
            path: message["executable"].as_str()?.into(),
            dir: dir.to_path_buf(),
        })
    };
    lines.filter_map(binary).collect()
}

fn start(
    home: &Home,
    env: &[(&str, &str)],
    binary: &Binary,
    names: &[String],
) -> Result<Output, String> {
    let mut program = Program::new(home, &binary.path)
        .dir(&binary.dir)
        .env("CARGO_MANIFEST_DIR", &binary.dir);
    for (key, value) in env {
        program = program.env(key, value);
    }
    if !names.is_empty() {
        program = program.args(["--exact", "--test-threads=1"]).args(names);
    }
    program.output().map_err(|e| e.to_string())
}

type Ran = (Option<Binary>, Output);

fn together(home: &Home, env: &[(&str, &str)], binaries: Vec<Binary>) -> Result<Vec<Ran>, String> {
    let (queue, ran) = (Mutex::new(VecDeque::from(binaries)), Mutex::new(Vec::new()));
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front()
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(binary) = next() {
                    let output = start(home, env, &binary, &[]);
                    let output = output.map(|output| (Some(binary), output));
                    ran.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(output);
                }
            });
        }
    });
    let ran = ran.into_inner().unwrap_or_else(PoisonError::into_inner);
    ran.into_iter().collect()
}

/// Judges the results; `again` repeats tests of a binary by name.
fn judge(
    ran: &[Ran],
    again: impl Fn(&Binary, &[String]) -> Result<Output, String>,
) -> Result<String, String> {
    let bad: Vec<&Ran> = ran.iter().filter(|(_, output)| !output.ok).collect();
    let names = |output: &Output| -> Vec<String> {
        failed(&output.stdout).into_iter().map(|t| t.name).collect()
    };
    let mut late = Vec::new();
    let whole = || {
        let all = bad.iter().map(|(binary, output)| {
            let name = binary.as_ref().map_or("doc tests", |b| &b.name);
            format!("{name}: {}", reason(output))
        });
        all.collect::<Vec<_>>().join("\n")
    };
    let many = bad
        .iter()
        .map(|(_, output)| names(output).len())
        .sum::<usize>()
        > ACCIDENTS;
    for (binary, output) in &bad {
        let names = names(output);
        // A binary that died, or that ended before it named a test, is not repeated.
        let (Some(binary), false, false) = (binary, names.is_empty(), many) else {
            return Err(whole());
        };
        let second = again(binary, &names)?;
        if !second.ok || tests_run(&second.stdout) < names.len() {
            return Err(format!(
                "{}\nat the second go: {}",
                whole(),
                reason(&second)
            ));
        }
        println!("{}", reason(output));
        late.extend(names);
    }
    let tests: usize = ran.iter().map(|(_, o)| tests_run(&o.stdout)).sum();
    let text = format!("{} tests", tests + late.len());
    if late.is_empty() {
        return Ok(text);
    }
    Ok(format!(
        "{text}, of which only at the second go: {}",
        late.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(ok: bool, stdout: &str) -> Output {
        Output {
            ok,
            ending: "exit code 101".into(),
            stdout: stdout.into(),
            stderr: String::new(),
            took: std::time::Duration::ZERO,
        }
    }

    fn binary(name: &str) -> Option<Binary> {
        Some(Binary {
            name: name.into(),
            path: "/t/a-1".into(),
            dir: "/x".into(),
        })
    }

    #[test]
    fn test_binaries_are_found_in_cargo_messages() {
        let text = "{\"target\":{\"name\":\"a\"},\"manifest_path\":\"/x/Cargo.toml\",\"profile\":{\"test\":true},\"executable\":\"/t/a-1\"}\n\
            {\"target\":{\"name\":\"b\"},\"manifest_path\":\"/x/Cargo.toml\",\"profile\":{\"test\":false},\"executable\":\"/t/b\"}\n\
            {\"target\":{\"name\":\"c\"},\"manifest_path\":\"/x/Cargo.toml\",\"profile\":{\"test\":true},\"executable\":null}\nnot json\n";
        assert_eq!(binaries(text), [binary("a").unwrap()]);
    }

    const GOOD: &str = "test result: ok. 7 passed; 0 failed\n";
    const BAD: &str = "---- a::b stdout ----\nno\nfailures:\n    a::b\n\ntest result: FAILED. 7 passed; 1 failed\n";

    #[test]
    fn a_second_go_is_named_and_has_to_run_the_test() {
        let ran = [
            (binary("x"), reply(true, GOOD)),
            (binary("y"), reply(false, BAD)),
            (None, reply(true, GOOD)),
        ];
        let one = "test result: ok. 1 passed; 0 failed\n";
        let text = judge(&ran, |binary, names| {
            assert_eq!((&binary.name[..], &names[0][..]), ("y", "a::b"));
            Ok(reply(true, one))
        });
        let late = "22 tests, of which only at the second go: a::b";
        assert_eq!(text.unwrap(), late);
        let none = "test result: ok. 0 passed; 0 failed\n";
        for second in [reply(true, none), reply(false, BAD)] {
            let text = judge(&ran, |_, _| Ok(reply(second.ok, &second.stdout)));
            assert!(text.unwrap_err().starts_with("y: 1 failed: a::b"));
        }
        assert_eq!(
            judge(&ran[..1], |_, _| Err("no".into())).unwrap(),
            "7 tests"
        );
    }

    #[test]
    fn what_is_no_accident_gets_no_second_go() {
        let never = |_: &Binary, _: &[String]| -> Result<Output, String> { panic!("again") };
        let many: String = (0..4).map(|n| format!("---- t{n} stdout ----\n")).collect();
        for ran in [
            (binary("died"), reply(false, "running 3 tests\n")),
            (binary("many"), reply(false, &many)),
            (None, reply(false, BAD)),
        ] {
            assert!(judge(&[ran], never).is_err());
        }
    }

    #[test]
    fn the_test_files_that_a_quick_run_leaves_out_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let crates = ["crates/io", "crates/net"].map(|dir| root.join(dir).read_dir().unwrap());
        let crates = crates.into_iter().flatten().map(|it| it.unwrap().path());
        let dirs: Vec<PathBuf> = crates
            .chain(["apps/volley", "tools/lab"].map(|dir| root.join(dir)))
            .collect();
        for name in ALONE.iter().chain(&LONGEST).chain(&SLOW) {
            let file = format!("tests/{name}.rs");
            assert!(dirs.iter().any(|dir| dir.join(&file).is_file()), "{name}");
        }
    }
}
