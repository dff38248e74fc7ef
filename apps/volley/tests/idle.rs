//! The cost of an idle daemon. A separate file, so that no other test runs at the same time. Nothing is captured, because a
//! capture is drained every few milliseconds.

mod support;

use support::Daemon;

const CONFIG: &str = r#"
[[interface]]
name = "pg0"
kind = "pg"
mac = "02:fe:00:00:00:01"
addresses = ["192.0.2.1/24"]
"#;

/// The share of a core that a process used during `wait`.
fn share_of_a_core(pid: u32, wait: std::time::Duration) -> f64 {
    // Nanoseconds of processor time of all threads. The ticks in /proc/PID/stat are samples: a timer that expires with the tick
    // is charged a whole one each time.
    let used = || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let of = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            text.split_whitespace()
                .next()
                .map_or(0, |n| n.parse::<u64>().unwrap())
        };
        threads.map(|thread| of(thread.unwrap())).sum::<u64>() as f64 / 1e9
    };
    let (before, start) = (used(), std::time::Instant::now());
    std::thread::sleep(wait);
    (used() - before) / start.elapsed().as_secs_f64()
}

#[test]
fn an_idle_daemon_sleeps_unless_it_is_told_to_poll() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    daemon.wait_for_answer("show interfaces", "pg0");
    let wait = std::time::Duration::from_secs(2);
    // Other load on the machine only adds to the share: one low measurement of a few is enough.
    let mut looks = (0..5).map(|_| share_of_a_core(daemon.pid(), wait));
    let idle = looks.find(|share| *share < 0.03);
    assert!(
        idle.is_some_and(|share| share > 0.0),
        "an idle daemon uses nothing that is counted, or 3 % of a core or more: {idle:?}"
    );
    for mode in ["interrupt", "adaptive"] {
        daemon.ok(&format!("set interface rx-mode pg0 {mode}"));
        daemon.ok(&format!(
            "packet-generator new name {mode} interface pg0 limit 700 template \
             {{ eth dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 10.0.0.1 / udp / payload 20 }}"
        ));
        daemon.ok(&format!("packet-generator enable {mode}"));
        daemon.wait_for_answer("show hardware pg0", &format!("rx mode {mode}"));
    }
    daemon.wait_for_answer("show interfaces detail", "1400");
    daemon.ok("set interface rx-mode pg0 polling");
    daemon.ok("packet-generator new name slow interface pg0 rate 1 template { eth / ip4 / udp }");
    daemon.ok("packet-generator enable slow");
    let mut looks = (0..5).map(|_| share_of_a_core(daemon.pid(), wait / 4));
    let polls = looks.find(|share| *share > 0.1);
    assert!(
        polls.is_some(),
        "a polling daemon uses 10 % of a core or less"
    );
}
