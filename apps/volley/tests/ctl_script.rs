//! `volley ctl` in scripts: commands on standard input, exit statuses, durations.

mod support;

use std::io::Write;
use std::process::{Command, Output, Stdio};
use support::{Daemon, Folder, text};

const CONFIG: &str = r#"
[[interface]]
name = "pg0"
kind = "pg"
addresses = ["192.0.2.1/24"]

[[neighbor]]
interface = "pg0"
address = "192.0.2.2"
mac = "02:aa:00:00:00:02"

[[route]]
prefix = "10.0.0.0/8"
via = "192.0.2.2"
interface = "pg0"

[[route]]
prefix = "10.7.7.0/24"
via = "192.0.2.2"
interface = "pg0"
"#;

/// `volley ctl OPTIONS < input`
fn piped(daemon: &Daemon, options: &[&str], input: &str) -> Output {
    let mut child = Command::new("timeout")
        .args(["30", env!("CARGO_BIN_EXE_volley"), "ctl", "--socket"])
        .arg(daemon.folder.file("s"))
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A script that has ended reads no further input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn lines_of_a_script_that_fail_are_named() {
    let daemon = Daemon::start(CONFIG, &[]);
    let up = "# comes up\nset interface state pg0 up\n\n";
    let good = piped(&daemon, &[], up);
    assert_eq!(
        (good.status.code(), text(&good.stderr).as_str()),
        (Some(0), "")
    );
    let script = format!("{up}set interface mtu 1400 pg9\nset interface mtu 1300 pg0\nbogus\n");
    let stopped = piped(&daemon, &[], &script);
    let error = text(&stopped.stderr);
    assert_eq!(stopped.status.code(), Some(1));
    assert!(
        error.starts_with("volley: stdin:4: there is no interface pg9"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(!daemon.ok("show interfaces").contains("1300"));
    let went_on = piped(&daemon, &["--keep-going"], &script);
    let error = text(&went_on.stderr);
    assert_eq!(went_on.status.code(), Some(1));
    assert!(error.contains("stdin:4: ") && error.contains("stdin:6: column 1: 'bogus'"));
    assert!(
        error.ends_with("volley: 2 of 4 commands failed\n"),
        "{error}"
    );
    assert!(daemon.ok("show interfaces").contains("1300"));
}

#[test]
fn an_absent_prefix_is_answered_with_what_packets_to_it_follow() {
    let daemon = Daemon::start(CONFIG, &[]);
    let reported = daemon.ok("show ip fib 10.7.0.0/16");
    let line = "10.7.0.0/16 is not in the table; packets to it follow (except to 1 longer prefix inside it, which has its own route)\n10.0.0.0/8  source static\n";
    assert!(reported.contains(line), "{reported}");
    assert!(!reported.contains("/24 "), "{reported}");
    let there = daemon.ok("show ip fib 10.7.7.0/24");
    assert!(there.contains("10.7.7.0/24") && !there.contains("not in the table"));
    let error = daemon.refused("show ip fib 203.0.113.0/24");
    assert!(
        error.contains(
            "there is no route to 203.0.113.0/24 in any table: packets to it are dropped"
        ),
        "{error}"
    );
}

#[test]
fn confirm_takes_a_span_with_and_without_a_unit() {
    let state = Folder::new();
    let folder = state.0.display().to_string();
    let daemon = Daemon::start(CONFIG, &["--state-dir", &folder]);
    for (span, seconds) in [("90s", 90), ("2m", 120), ("45", 45), ("1h", 3600)] {
        let before = now_s();
        let answer = daemon.json(&format!("config commit confirm {span}"));
        let by = find(&answer, "confirm-by").or(find(&answer, "confirm_by"));
        let by = by.unwrap_or_else(|| panic!("{answer}"));
        let allowed = before + seconds..=now_s() + seconds;
        assert!(allowed.contains(&by), "{span}: {by} is not in {allowed:?}");
        daemon.ok("config confirm");
    }
    for bad in ["2x", "0", "200h", "-5"] {
        let error = daemon.refused(&format!("config commit confirm {bad}"));
        assert!(
            error.contains("90s, 5m or 2h") || error.contains("1s to 168h"),
            "{error}"
        );
    }
    let help = Command::new(env!("CARGO_BIN_EXE_volley"))
        .args(["config", "commit", "--help"])
        .output()
        .unwrap();
    assert!(text(&help.stdout).contains("a number alone is seconds"));
}

fn now_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// The first number with this name at any depth.
fn find(value: &serde_json::Value, name: &str) -> Option<u64> {
    let direct = value.get(name).and_then(serde_json::Value::as_u64);
    let inner = || value.as_object()?.values().find_map(|v| find(v, name));
    direct.or_else(inner)
}
