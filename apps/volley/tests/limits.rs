//! Configurations beyond `[limits]`, and transactions that could need more memory than the process may have, are refused before
//! anything changes: the daemon does not end, and forwards as before.

mod support;

use serde_json::{Value, json};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use support::cgroup::Cgroup;
use support::http::Http;
use support::{Daemon, Folder, text, volley};

/// Longest time of a refusal: other tests use the cores.
const SOON: Duration = Duration::from_secs(20);

fn routes(daemon: &Daemon) -> u64 {
    let line = daemon.ok("show ip fib summary");
    let lines = line.lines().filter(|l| l.trim_start().starts_with("/32"));
    let counts = lines.filter_map(|l| l.split_whitespace().last()?.parse::<u64>().ok());
    counts.sum()
}

fn attempt(daemon: &Daemon, line: &str) -> Result<(), String> {
    let socket = daemon.folder.file("s").display().to_string();
    let output = volley(
        &[
            &["ctl", "--socket", &socket][..],
            &line.split(' ').collect::<Vec<_>>(),
        ]
        .concat(),
    );
    match output.status.success() {
        true => Ok(()),
        false => Err(text(&output.stderr)),
    }
}

fn refused(daemon: &Daemon, line: &str) -> String {
    let begun = Instant::now();
    let message = daemon.refused(line);
    assert!(begun.elapsed() < SOON, "`{line}`: {:?}", begun.elapsed());
    message
}

#[test]
fn a_configuration_beyond_its_limits_is_refused() {
    let folder = Folder::new();
    let state = folder.file("state").display().to_string();
    let limits = "[limits]\nroutes = 1000\ntables = 2\ninterfaces = 2\naddresses = 3\n";
    let pg0 = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\naddresses = [\"192.0.2.1/24\"]\n";
    let daemon = Daemon::start(&format!("{limits}{pg0}"), &["--state-dir", &state]);
    daemon.ok("ip route add 10.0.0.0/32 via drop count 1000");
    daemon.ok("ip table add 7");
    daemon.ok("ip6 table add 7");
    daemon.ok("create packet-generator interface pg1");
    daemon.ok("set interface ip address pg0 192.0.2.2/24");
    daemon.ok("set interface ip address pg0 192.0.2.3/24");
    let before = daemon.ok("config show");
    for (line, what) in [
        ("ip route add 11.0.0.0/32 via drop", "routes"),
        ("ip route add 11.0.0.0/32 via drop count 9000", "routes"),
        ("ip table add 8", "tables"),
        ("create packet-generator interface pg2", "interfaces"),
        ("set interface ip address pg0 192.0.2.4/24", "addresses"),
    ] {
        let message = refused(&daemon, line);
        let wanted = format!("the number of {what} (`{what}` in [limits]) is ");
        assert!(message.contains(&wanted), "`{line}`: {message}");
    }
    let file = folder.file("large.toml");
    let route = "[[route]]\nprefix = \"10.0.0.0/32\"\naction = \"drop\"\ncount = 1001\n";
    std::fs::write(&file, format!("{pg0}{route}")).unwrap();
    let message = refused(&daemon, &format!("config commit file {}", file.display()));
    assert!(message.contains("is 1001, the limit is 1000"), "{message}");
    assert_eq!(daemon.ok("config show"), before);
    // Routes that are removed make room for others.
    daemon.ok("ip route del 10.0.0.0/32 via drop count 500");
    daemon.ok("ip route add 11.0.0.0/32 via drop count 500");
    daemon.ok("config commit");
    println!("6 changes beyond limits: 6 are refused, bar 6");
}

/// A request for routes without a common /24.
fn scattered(count: u32) -> Value {
    let address = |i: u32| std::net::Ipv4Addr::from((20 << 24) + i * 257);
    let put: Vec<Value> = (0..count)
        .map(|i| json!([format!("{}/32", address(i)), 0]))
        .collect();
    json!([{"routes": {"family": "ip4", "sets": [[{"target": "drop"}]], "put": put}}])
}

#[test]
fn more_than_the_memory_of_the_cgroup_is_refused_and_the_daemon_goes_on() {
    let Some(group) = Cgroup::new("220M") else {
        println!("SKIP no memory cgroup can be made here");
        return;
    };
    let procs = group.0.join("cgroup.procs").display().to_string();
    let mut daemon = Daemon::start_in(&procs, "");
    for line in [
        "ip route add 10.0.0.0/32 via drop count 16777216",
        "ip route replace 10.0.0.0/32 via drop count 500000",
    ] {
        let message = refused(&daemon, line);
        assert!(
            message.contains("could need") && message.contains("memory_mb"),
            "{message}"
        );
    }
    let before = routes(&daemon);
    // As many as fit, until no more do: each is carried out or refused, and the process stays within its memory.
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    let (status, message) = http.post("/v1/transactions", &scattered(20_000));
    assert_eq!(status, 200, "{message}");
    let (mut done, mut first) = (20_000, 30);
    let message = loop {
        let line = format!("ip route add {first}.0.0.0/32 via drop count 20000");
        match attempt(&daemon, &line) {
            Ok(()) => (done, first) = (done + 20_000, first + 1),
            Err(message) => break message,
        }
        assert!(first < 200, "nothing was refused");
    };
    assert!(message.contains("could need"), "{message}");
    assert_eq!(routes(&daemon) - before, done);
    daemon.ok("ip route del 30.0.0.0/32 via drop count 20000");
    println!("a cgroup of 220 MB: {done} host routes, the next 20,000 are refused, at least 20000");
    daemon.stop("TERM");
}

#[test]
fn sessions_beyond_their_limit_are_refused() {
    let daemon = Daemon::start("[limits]\nsessions = 2\n", &[]);
    let idle: Vec<_> = ["s", "s.http.sock"]
        .map(|name| {
            let path = daemon.folder.file(name);
            let connect = || UnixStream::connect(&path).unwrap();
            [connect(), connect()]
        })
        .into();
    for (name, begin) in [("s", "{"), ("s.http.sock", "HTTP/1.1 503")] {
        let mut third = UnixStream::connect(daemon.folder.file(name)).unwrap();
        let mut answer = String::new();
        third.read_to_string(&mut answer).unwrap();
        let is_refused = answer.contains("2 clients are connected, no more are allowed");
        assert!(is_refused && answer.starts_with(begin), "{name}: {answer}");
    }
    drop(idle);
    let begun = Instant::now();
    while attempt(&daemon, "show version").is_err() {
        assert!(begun.elapsed() < SOON);
    }
}
