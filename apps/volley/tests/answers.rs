//! The control thread answers while others change, compare and commit a large configuration, and while many routes get counters and
//! are shown with them; completion offers the names of objects meanwhile.
//!
//! `VOLLEY_ROUTES` sets the number of routes (default 50,000), `VOLLEY_ANSWER_MS` the longest time of an answer (default 2,000,
//! because other tests use the cores). `cargo xtask show hostile` runs it with 962,000 routes and 100 ms. Counters are tested with
//! 200,000 routes at least.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use support::http::Http;
use support::{Daemon, Folder, text};

const PLAIN: &str = "\
[[interface]]
name = \"pg0\"
kind = \"pg\"
addresses = [\"198.51.100.1/24\"]
";

/// Next hops that the routes have in turn.
const HOPS: u32 = 200;
/// Time between two requests whose answers are timed.
const PAUSE: Duration = Duration::from_millis(2);

fn number(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().unwrap())
}

/// A request for many routes: /24 prefixes whose neighbours are added at other times.
fn routes(count: u64) -> Value {
    let hop = |i: u32| Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 51, 100, 2)) + i);
    let path = |i: u32| json!([{"target": {"via": {"addr": hop(i), "interface": "pg0"}}}]);
    let sets: Vec<Value> = (0..HOPS).map(path).collect();
    let prefix = |i: u64| Ipv4Addr::from((20 << 24) + (i * 700_001 % 1_000_003) as u32 * 256);
    let put = (0..count).map(|i| json!([format!("{}/24", prefix(i)), i % u64::from(HOPS)]));
    json!([{"routes": {"family": "ip4", "sets": sets, "put": put.collect::<Vec<_>>()}}])
}

/// The longest answer of each phase.
#[derive(Default)]
struct Answers {
    phase: Mutex<&'static str>,
    longest: Mutex<BTreeMap<&'static str, Duration>>,
    ends: AtomicBool,
}

impl Answers {
    /// Times answers until the test ends.
    fn measure(&self, http: &mut Http) {
        while !self.ends.load(Relaxed) {
            let phase = *self.phase.lock().unwrap();
            let began = Instant::now();
            http.get("/v1/show/version");
            let took = began.elapsed();
            let mut all = self.longest.lock().unwrap();
            let longest = all.entry(phase).or_default();
            *longest = took.max(*longest);
            drop(all);
            std::thread::sleep(PAUSE);
        }
    }

    /// Completes the name of a table until the test ends: the table is always offered. Counts the answers.
    fn complete(&self, socket: &Path) -> u64 {
        let mut ask = UnixStream::connect(socket).unwrap();
        let mut answers = BufReader::new(ask.try_clone().unwrap()).lines();
        let mut count = 0;
        while !self.ends.load(Relaxed) {
            let line = json!({"op": "complete", "line": "ip table del "});
            ask.write_all(format!("{line}\n").as_bytes()).unwrap();
            let answer = answers.next().unwrap().unwrap();
            let phase = *self.phase.lock().unwrap();
            assert!(answer.contains("4711"), "{phase}, answer {count}: {answer}");
            count += 1;
            std::thread::sleep(PAUSE);
        }
        count
    }

    fn phase<T>(&self, name: &'static str, work: impl FnOnce() -> T) -> T {
        *self.phase.lock().unwrap() = name;
        let began = Instant::now();
        let done = work();
        println!("{name}: {:.2} s", began.elapsed().as_secs_f64());
        done
    }
}

/// Ends the measurement when the test fails too.
struct End<'a>(&'a Answers);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.ends.store(true, Relaxed);
    }
}

/// One test at a time: each would slow the answers of the other.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn the_control_thread_answers_while_a_large_configuration_changes() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (count, limit) = (
        number("VOLLEY_ROUTES", 50_000),
        number("VOLLEY_ANSWER_MS", 2000),
    );
    let state = Folder::new();
    let place = text(state.file("state").as_os_str().as_encoded_bytes());
    std::fs::create_dir(&place).unwrap();
    let daemon = Daemon::start(PLAIN, &["--state-dir", &place]);
    let socket = daemon.folder.file("s.http.sock");
    daemon.ok("ip table add 4711");
    let answers = Answers::default();
    std::thread::scope(|scope| {
        let end = End(&answers);
        scope.spawn(|| answers.measure(&mut Http::connect(&socket)));
        let completed = scope.spawn(|| answers.complete(&daemon.folder.file("s")));
        let mut http = Http::connect(&socket);
        answers.phase("first commit", || daemon.ok("config commit"));
        let body = serde_json::to_vec(&routes(count)).unwrap();
        let (status, answer) = answers.phase("transaction", || {
            http.call("POST", "/v1/transactions", &body)
        });
        assert_eq!(status, 200, "{}", text(&answer));
        let lines = answers.phase("difference", || daemon.ok("config diff"));
        assert_eq!(lines.lines().count() as u64, count);
        answers.phase("commit", || daemon.ok("config commit"));
        assert_eq!(daemon.ok("config diff"), "no difference\n");
        answers.phase("one route", || {
            daemon.ok("ip route add 9.9.9.0/24 via 198.51.100.9 pg0")
        });
        answers.phase("rollback", || daemon.ok("config rollback 1"));
        // The daemon has closed the other connection if it was idle for 30 s.
        let left = Http::connect(&socket).get("/v1/show/fib?family=ip4&address=20.0.0.1");
        assert!(!left.to_string().contains("via"), "{left}");
        // Many in one command.
        let line = format!("30.0.0.0/32 via drop count {}", count.min(200_000));
        answers.phase("one command", || daemon.ok(&format!("ip route add {line}")));
        answers.phase("one removal", || daemon.ok(&format!("ip route del {line}")));
        drop(end);
        let completed = completed.join().unwrap();
        assert!(completed > 20, "{completed} completions");
    });
    let longest = answers.longest.into_inner().unwrap();
    let limit = Duration::from_millis(limit);
    println!("{count} routes, longest answers: {longest:?}, at most {limit:?}");
    let slow: Vec<_> = longest.iter().filter(|(_, took)| **took > limit).collect();
    assert!(slow.is_empty(), "longer than {limit:?}: {slow:?}");
}

/// Resident bytes of a process.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() << 10
}

/// Most bytes that a counted route takes, its part of longer arrays included.
const COUNTED: u64 = 160;

#[test]
fn the_control_thread_answers_while_many_routes_get_counters() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (count, limit) = (
        number("VOLLEY_ROUTES", 200_000).max(200_000),
        number("VOLLEY_ANSWER_MS", 2000),
    );
    let daemon = Daemon::start(PLAIN, &[]);
    let socket = daemon.folder.file("s.http.sock");
    let answers = Answers::default();
    let (mut before, mut after) = (0, 0);
    std::thread::scope(|scope| {
        let end = End(&answers);
        scope.spawn(|| answers.measure(&mut Http::connect(&socket)));
        let body = serde_json::to_vec(&routes(count)).unwrap();
        let mut http = Http::connect(&socket);
        let (status, answer) = answers.phase("transaction", || {
            http.call("POST", "/v1/transactions", &body)
        });
        assert_eq!(status, 200, "{}", text(&answer));
        before = resident(daemon.pid());
        answers.phase("counters", || {
            daemon.ok("set ip route-counter 0.0.0.0/0 longer")
        });
        after = resident(daemon.pid());
        let one = daemon.json("show ip fib 20.0.0.0/24");
        assert_eq!(
            one["tables"][0]["routes"][0]["counters"]["routes"],
            json!(1),
            "{one}"
        );
        let shown = answers.phase("counters shown", || daemon.ok("show ip route-counters"));
        assert!(shown.lines().count() as u64 > count, "{}", shown.len());
        let (status, page) = answers.phase("metrics", || http.call("GET", "/metrics", b""));
        let of_routes = text(&page).matches("volley_route_packets_total{").count();
        assert_eq!(
            (status, of_routes as u64 > count),
            (200, true),
            "{of_routes}"
        );
        let list = answers.phase("counters by HTTP", || http.get("/v1/show/route-counters"));
        let list = list["routes"].as_array().unwrap();
        assert!(list.iter().any(|row| row["prefix"] == "20.0.0.0/24"));
        assert!(list.len() as u64 > count, "{}", list.len());
        answers.phase("no counters", || {
            daemon.ok("set ip route-counter del 0.0.0.0/0")
        });
        answers.phase("counters again", || {
            daemon.ok("set ip route-counter 0.0.0.0/0 longer")
        });
        drop(end);
    });
    let longest = answers.longest.into_inner().unwrap();
    let limit = Duration::from_millis(limit);
    println!("{count} routes, longest answers: {longest:?}, at most {limit:?}");
    let each = after.saturating_sub(before) / count;
    println!("{each} bytes for each counted route, at most {COUNTED}");
    assert!(each <= COUNTED, "{each}");
    let slow: Vec<_> = longest.iter().filter(|(_, took)| **took > limit).collect();
    assert!(slow.is_empty(), "longer than {limit:?}: {slow:?}");
}
