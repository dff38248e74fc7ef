//! What an idle daemon costs. In a file of its own: nothing else runs beside it then. It captures nothing: a capture is
//! drained every few milliseconds.

mod support;

use support::Daemon;

const CONFIG: &str = r#"
[[interface]]
name = "pg0"
kind = "pg"
mac = "02:fe:00:00:00:01"
addresses = ["192.0.2.1/24", "2001:db8::1/64"]

[[interface]]
name = "pg1"
kind = "pg"
mac = "02:fe:00:00:00:02"
mtu = 1500
addresses = ["198.51.100.1/24", "2001:db8:1::1/64"]

[[neighbor]]
interface = "pg1"
address = "198.51.100.2"
mac = "02:aa:00:00:00:02"

[[neighbor]]
interface = "pg1"
address = "2001:db8:1::2"
mac = "02:aa:00:00:00:06"

[[route]]
prefix = "10.0.0.0/8"
via = "198.51.100.2"
interface = "pg1"

[[route]]
prefix = "2001:db8:8::/48"
via = "2001:db8:1::2"
interface = "pg1"

[[stream]]
name = "s0"
interface = "pg0"
template = "eth src 02:00:00:00:00:99 dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 10.0.0.0 / udp sport 1 dport 2 / payload 20"
edits = ["ip4.dst increment 10.0.0.0 10.0.0.255"]
limit = 1000
enabled = true
"#;

fn stream(name: &str, packets: u32) -> String {
    let packet =
        "{ eth dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 10.0.0.1 / udp / payload 20 }";
    format!("packet-generator new name {name} interface pg0 limit {packets} template {packet}")
}

/// Share of a core that a process used while `wait` took its time.
fn share_of_a_core(pid: u32, wait: std::time::Duration) -> f64 {
    // Nanoseconds on a processor, of every thread. The ticks in /proc/PID/stat are samples: timers that go off with the
    // tick are charged a whole one each time.
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
    daemon.wait_for_answer("show interfaces", "1000");
    let wait = std::time::Duration::from_secs(2);
    // What else the machine does only ever adds to it: other tests of this file run beside
    // it, so it is looked at until one look is good.
    let mut looks = (0..20).map(|_| share_of_a_core(daemon.pid(), wait));
    let idle = looks.find(|share| *share < 0.03);
    assert!(
        idle.is_some_and(|share| share > 0.0),
        "an idle daemon uses nothing that is counted, or 3 % of a core or more: {idle:?}"
    );
    for mode in ["interrupt", "adaptive"] {
        daemon.ok(&format!("set interface rx-mode pg0 {mode}"));
        daemon.ok(&stream(mode, 7));
        daemon.ok(&format!("packet-generator enable {mode}"));
        daemon.wait_for_answer("show interface rx-placement pg0", mode);
    }
    daemon.wait_for_answer("show interfaces", "1014");
    daemon.ok("set interface rx-mode pg0 polling");
    daemon.ok("packet-generator new name slow interface pg0 rate 1 template { eth / ip4 / udp }");
    daemon.ok("packet-generator enable slow");
    let mut looks = (0..20).map(|_| share_of_a_core(daemon.pid(), wait / 4));
    let polls = looks.find(|share| *share > 0.1);
    assert!(
        polls.is_some(),
        "a polling daemon uses 10 % of a core or less"
    );
}
