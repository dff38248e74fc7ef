//! `volley demo --net`, the parts that take seconds: two paths, an interruption, and its message if it cannot run.

mod support;

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{text, volley};

/// Namespaces of a demo's process.
fn namespaces(pid: u32) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/run/netns") else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok());
    names
        .filter(|n| n.starts_with(&format!("volley-demo-{pid}-")))
        .collect()
}

/// Whether namespaces and streams can be created here; prints the reason if not.
fn can() -> bool {
    let there = |program: &str, switch: &str| Command::new(program).arg(switch).output().is_ok();
    let root = Command::new("id").arg("-u").output();
    let root = root.is_ok_and(|o| text(&o.stdout).trim() == "0");
    let name = format!("vdn{}", std::process::id());
    let made = root
        && there("iperf3", "-v")
        && there("ping", "-V")
        && Command::new("ip")
            .args(["netns", "add", &name])
            .status()
            .is_ok_and(|s| s.success());
    if made {
        let _ = Command::new("ip").args(["netns", "del", &name]).status();
    } else {
        println!("SKIP: it needs root, network namespaces, ping and iperf3");
    }
    made
}

#[test]
fn packets_pass_beside_the_bridge() {
    if !can() {
        return;
    }
    let output = volley(&[
        "demo",
        "--net",
        "--only",
        "bridge,tap",
        "--seconds",
        "1",
        "--json",
    ]);
    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert!(message.contains("volley: tap: jumbo frames"), "{message}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ways = report["ways"].as_array().unwrap();
    assert_eq!(ways.len(), 2);
    for way in ways {
        let figures = &way["figures"];
        for what in ["ping_us", "tcp_gbps", "udp_gbps", "jumbo_tcp_gbps"] {
            assert!(figures[what].as_f64().is_some_and(|f| f > 0.0), "{way}");
        }
    }
}

#[test]
fn an_interruption_leaves_nothing() {
    if !can() {
        return;
    }
    for signal in ["INT", "TERM"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_volley"));
        command.args(["demo", "--net", "--only", "vhost", "--seconds", "30"]);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (pid, start) = (child.id(), Instant::now());
        while namespaces(pid).len() < 3 {
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(1500));
        let begin = Instant::now();
        let kill = Command::new("kill")
            .args([&format!("-{signal}"), &pid.to_string()])
            .status();
        assert!(kill.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        assert!(message.contains("interrupted"), "{message}");
        assert_eq!(namespaces(pid), [""; 0]);
        let folder = std::env::temp_dir().join(format!("volley-demo-{pid}"));
        assert!(!folder.exists());
        let left = Command::new("pgrep")
            .args(["-f", &format!("volley-demo-{pid}")])
            .output();
        assert_eq!(left.map(|o| text(&o.stdout)).unwrap_or_default(), "");
    }
}

#[test]
fn where_it_cannot_run_it_says_why() {
    if !can() {
        return;
    }
    let message = |command: &mut Command| {
        let output = command.args(["demo", "--net"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    // The program may be readable for root only, so the test runs a copy.
    let folder = support::Folder::new();
    let copy = folder.file("volley");
    std::fs::copy(env!("CARGO_BIN_EXE_volley"), &copy).unwrap();
    let error = message(Command::new(&copy).uid(65534));
    assert!(error.contains("by root only"), "{error}");
    let error = message(Command::new(&copy).env("PATH", "/nowhere"));
    assert_eq!(
        error,
        "volley: `ip` is not installed: `apt-get install iproute2` brings it\n"
    );
    let output = volley(&["demo", "--only", "tap"]);
    assert!(!output.status.success());
}
