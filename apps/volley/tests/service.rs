//! The daemon as a service: messages to its manager, and its rights.

mod support;

use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;
use support::{Daemon, Folder, signal};

const CONFIG: &str = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n";

/// The next message within a time.
fn heard(manager: &UnixDatagram, within: Duration) -> Option<String> {
    manager.set_read_timeout(Some(within)).unwrap();
    let mut message = [0; 256];
    let n = manager.recv(&mut message).ok()?;
    Some(String::from_utf8(message[..n].to_vec()).unwrap())
}

#[test]
fn the_service_manager_hears_of_readiness_life_and_end() {
    let folder = Folder::new();
    let name = folder.file("notify");
    let manager = UnixDatagram::bind(&name).unwrap();
    let environment = [
        ("NOTIFY_SOCKET", name.to_str().unwrap()),
        ("WATCHDOG_USEC", "300000"),
    ];
    let mut daemon = Daemon::start_with(CONFIG, &[], &environment);
    let long = Duration::from_secs(20);
    assert_eq!(heard(&manager, long).as_deref(), Some("READY=1"));
    for _ in 0..5 {
        assert_eq!(heard(&manager, long).as_deref(), Some("WATCHDOG=1"));
    }
    // A stopped daemon sends nothing.
    signal(daemon.pid(), "STOP");
    while heard(&manager, Duration::from_millis(200)).is_some() {}
    assert_eq!(heard(&manager, Duration::from_millis(900)), None);
    signal(daemon.pid(), "CONT");
    assert_eq!(heard(&manager, long).as_deref(), Some("WATCHDOG=1"));
    daemon.stop("TERM");
    let rest = std::iter::from_fn(|| heard(&manager, Duration::from_millis(10)));
    assert_eq!(rest.last().as_deref(), Some("STOPPING=1"));
}

/// Of each thread of a process: its name, effective and permitted capabilities, and whether it may gain new ones.
fn threads(pid: u32) -> Vec<BTreeMap<String, String>> {
    let all = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let status = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("status")).ok()?;
        let pair = |line: &str| {
            let (key, value) = line.split_once(':')?;
            Some((key.to_owned(), value.trim().to_owned()))
        };
        Some(text.lines().filter_map(pair).collect())
    };
    all.flatten().filter_map(status).collect()
}

const NONE: &str = "0000000000000000";

#[test]
fn capabilities_are_given_up_when_the_file_says_so() {
    if threads(std::process::id())[0]["CapEff"] == NONE {
        println!("skipped: this test has no capabilities to give up");
        return;
    }
    let state = Folder::new();
    let state = state.0.display().to_string();
    let config = format!("[process]\ncapabilities = \"drop\"\n{CONFIG}");
    let mut daemon = Daemon::start(&config, &["--state-dir", &state]);
    // The control socket replies when all earlier work is done.
    daemon.ok("set interface state pg0 up");
    for thread in threads(daemon.pid()) {
        let sets = ["CapEff", "CapPrm", "CapInh", "CapAmb"].map(|set| thread[set].as_str());
        assert_eq!(sets, [NONE; 4], "{}", thread["Name"]);
        assert_eq!(thread["NoNewPrivs"], "1", "{}", thread["Name"]);
    }
    daemon.ok("config commit comment kept");
    let error = daemon.refused("create tap id 0 host-if-name volley-svc0");
    assert!(error.contains("cap_net_admin"), "{error}");
    daemon.stop("TERM");
}

#[test]
fn workers_have_no_capabilities_in_any_case() {
    let own = threads(std::process::id())[0]["CapEff"].clone();
    let daemon = Daemon::start(CONFIG, &[]);
    let all = threads(daemon.pid());
    let of = |name: &str| {
        let mut named = all.iter().filter(|t| t["Name"] == name);
        named.next().unwrap()["CapEff"].clone()
    };
    assert_eq!((of("volley"), of("volley-w0")), (own, NONE.to_owned()));
}
