//! Elements and whole configurations: packets of capture files in, and out what scapy expects (`cases.py`, `configurations.py`), at
//! several vector sizes.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Bench, read_file};

/// A Python with scapy: `$VOLLEY_PYTHON`, the environment that `cargo xtask install` makes, or the system's.
fn python() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |dir| root.join(dir));
    let named = std::env::var_os("VOLLEY_PYTHON").map(PathBuf::from);
    let all = [
        named,
        Some(target.join("venv/bin/python")),
        Some("python3".into()),
    ];
    all.into_iter().flatten().find(|python| {
        let mut check = Command::new(python);
        check.args(["-c", "import scapy.all"]);
        check.stdout(Stdio::null()).stderr(Stdio::null());
        check.status().is_ok_and(|status| status.success())
    })
}

/// The faults of a case at a vector size.
fn faults(folder: &Path, size: usize) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("t.click")).unwrap();
    let mut bench = match Bench::new(&text, folder, size) {
        Ok(bench) => bench,
        Err(error) => return vec![error],
    };
    bench.rounds(600, Duration::from_micros(100));
    let drops = bench.drops();
    let free = bench.is_empty();
    let mut faults = Vec::new();
    if !free {
        faults.push("buffers are lost".to_owned());
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(out) = name.strip_prefix("expected-") else {
            continue;
        };
        let (expected, got) = (read_file(&path), read_file(&folder.join(out)));
        if expected.len() != got.len() {
            faults.push(format!(
                "{out}: {} packets, not {}; {drops:?}",
                got.len(),
                expected.len()
            ));
        }
        for (n, (got, expected)) in got.iter().zip(&expected).enumerate() {
            if got != expected {
                faults.push(format!(
                    "{out}: packet {n}\n got {}\nwant {}",
                    hex(got),
                    hex(expected)
                ));
            }
        }
    }
    faults
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs the cases that a script makes, at several vector sizes. Returns their number, or none without scapy.
fn judged(script: &str) -> Option<usize> {
    let Some(python) = python() else {
        eprintln!("SKIP: no Python with scapy (cargo xtask install, or set VOLLEY_PYTHON)");
        return None;
    };
    let all = tempfile::tempdir().unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let done = Command::new(python)
        .arg("-B")
        .arg(tests.join(script))
        .arg(all.path())
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let mut wrong = Vec::new();
    let mut cases = 0;
    for entry in std::fs::read_dir(all.path()).unwrap() {
        let folder = entry.unwrap().path();
        cases += 1;
        for size in [4, 64, 256] {
            for fault in faults(&folder, size) {
                wrong.push(format!("{} at {size}: {fault}", folder.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} faults\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    Some(cases)
}

#[test]
fn packets_come_out_as_scapy_expects_them() {
    let cases = judged("cases.py");
    assert!(cases.is_none_or(|cases| cases >= 40), "{cases:?} cases");
}

#[test]
fn whole_configurations_transmit_what_scapy_expects() {
    let cases = judged("configurations.py");
    assert!(cases.is_none_or(|cases| cases >= 12), "{cases:?} cases");
}
