//! The HTTP interface of a running daemon: replies, refusals, and clients that misbehave.

mod support;

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use support::http::Http;
use support::traffic::run_out;
use support::{Daemon, Folder, text, volley};

const PLAIN: &str = "\
[[interface]]
name = \"pg0\"
kind = \"pg\"
addresses = [\"192.0.2.1/24\"]
";

fn socket(daemon: &Daemon) -> PathBuf {
    daemon.folder.file("s.http.sock")
}

fn connect(daemon: &Daemon) -> Http {
    Http::connect(&socket(daemon))
}

#[test]
fn every_question_of_the_document_is_answered() {
    let daemon = Daemon::start(PLAIN, &[]);
    let mut http = connect(&daemon);
    let document = http.get("/v1/openapi.json");
    let paths = document["paths"].as_object().unwrap();
    let needed = |parameter: &Value| match parameter["name"].as_str().unwrap() {
        "family" => "family=ip4",
        "name" => "name=ip4-input",
        // The destination does not exist: the reply reports that no host replied.
        "destination" => "destination=192.0.2.77",
        "address" => "address=192.0.2.77",
        "interface" => "interface=pg0",
        other => panic!("no value for {other}"),
    };
    let mut asked = 0;
    for (path, operations) in paths.iter().filter(|(p, _)| p.starts_with("/v1/show/")) {
        // A packet generator has no link with hosts that could reply.
        let status = if path == "/v1/show/arping" { 422 } else { 200 };
        let all = operations["get"]["parameters"].as_array().unwrap();
        let required = all.iter().filter(|p| p["required"] == true);
        let query: Vec<&str> = required.map(needed).collect();
        let answer = http.call("GET", &format!("{path}?{}", query.join("&")), b"");
        assert_eq!(answer.0, status, "{path}: {}", text(&answer.1));
        let answer: Value = serde_json::from_slice(&answer.1).unwrap();
        assert!(answer.is_object(), "{path}: {answer}");
        let bad = http.call("GET", &format!("{path}?no-such=1"), b"");
        assert_eq!(bad.0, 400, "{path}: {}", text(&bad.1));
        asked += 1;
    }
    assert!(asked >= 19, "{asked}");
    // The same data as in the command line.
    let mut shown = http.get("/v1/show/interfaces");
    let mut reported = daemon.json("show interface");
    for answer in [&mut shown, &mut reported] {
        answer["interfaces"][0]["more"].take();
    }
    assert_eq!(shown, reported);
}

fn add(table: u32) -> Value {
    json!({"set": {"class": "table", "family": "ip4", "id": table}})
}

/// Path, body, and the status, code and a part of the message of the refusal.
type Fault = (&'static str, Vec<u8>, u16, &'static str, &'static str);

fn faults_of_requests() -> [Fault; 6] {
    [
        ("/v1/requests", b"{".to_vec(), 400, "malformed", "line 1"),
        ("/v1/requests", b"".to_vec(), 400, "malformed", "EOF"),
        (
            "/v1/requests",
            vec![b'['; 70_000],
            400,
            "malformed",
            "line 1",
        ),
        (
            "/v1/requests",
            add(7).to_string().into(),
            409,
            "exists",
            "table 7",
        ),
        (
            "/v1/requests",
            br#"{"set":{"class":"table","family":"ip4","id":1,"x":0}}"#.to_vec(),
            400,
            "malformed",
            "unknown field `x`",
        ),
        (
            "/v1/requests",
            br#"{"set":{"class":"mtu","interface":"pg0","mtu":5}}"#.to_vec(),
            400,
            "malformed",
            "mtu must be a number from 68 to 65535",
        ),
    ]
}

fn faults_of_more() -> [Fault; 6] {
    [
        (
            "/v1/transactions",
            json!([add(8), {"interface-delete": {"name": "pg7"}}])
                .to_string()
                .into(),
            404,
            "not-found",
            "pg7",
        ),
        (
            "/v1/transactions",
            b"{}".to_vec(),
            400,
            "malformed",
            "sequence",
        ),
        (
            "/v1/config/commit",
            br#"{"source":"running"}"#.to_vec(),
            422,
            "invalid",
            "--state-dir",
        ),
        (
            "/v1/config/check",
            br#"{"source":{"text":"[engin]"}}"#.to_vec(),
            422,
            "config",
            "engin",
        ),
        (
            "/v1/config/explode",
            b"".to_vec(),
            404,
            "no-such-path",
            "rollback",
        ),
        (
            "/v2/requests",
            b"".to_vec(),
            404,
            "no-such-path",
            "/v1/openapi.json",
        ),
    ]
}

#[test]
fn requests_are_carried_out_or_refused_in_one_sentence() {
    let daemon = Daemon::start(PLAIN, &[]);
    let mut http = connect(&daemon);
    let (status, done) = http.post("/v1/requests", &add(7));
    assert_eq!((status, &done["changed"]), (200, &json!(1)), "{done}");
    let before = http.get("/v1/state");
    for (path, body, status, code, part) in faults_of_requests().into_iter().chain(faults_of_more())
    {
        let (answered, answer) = http.call("POST", path, &body);
        let shown = text(&body).chars().take(80).collect::<String>();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(answered, status, "{path} {shown}: {message}");
        assert_eq!(answer["error"]["code"], code, "{path} {shown}");
        assert!(message.contains(part), "{path} {shown}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
    let two = json!([add(8), {"interface-delete": {"name": "pg7"}}]);
    assert_eq!(http.post("/v1/transactions", &two).1["error"]["index"], 1);
    assert_eq!(http.call("GET", "/v1/requests", b"").0, 405);
    assert_eq!(http.get("/v1/state"), before);
    // A body that is too large is refused by its announced length.
    http.send(b"POST /v1/requests HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n");
    assert_eq!(http.answer().0, 413);
    assert!(connect(&daemon).get("/v1/show/version").is_object());
}

#[test]
fn curl_reads_state_and_events() {
    let daemon = Daemon::start(PLAIN, &[]);
    let path = socket(&daemon).display().to_string();
    let curl = |more: &[&str]| {
        let mut command = Command::new("curl");
        command
            .args(["--silent", "--unix-socket", &path])
            .args(more);
        command.output()
    };
    let Ok(output) = curl(&["http://volley/v1/state"]) else {
        println!("skipped: curl is not installed");
        return;
    };
    let state: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(state["requests"].as_array().unwrap().len() >= 3, "{state}");
    let events = ["--max-time", "2", "--no-buffer", "http://volley/v1/events"];
    let seen = std::thread::scope(|scope| {
        let listens = scope.spawn(|| curl(&events).unwrap());
        std::thread::sleep(Duration::from_millis(700));
        let add = r#"{"set":{"class":"table","family":"ip6","id":3}}"#;
        let done = curl(&["--fail", "--data", add, "http://volley/v1/requests"]).unwrap();
        assert!(done.status.success(), "{}", text(&done.stdout));
        text(&listens.join().unwrap().stdout)
    });
    assert!(seen.starts_with("event: start\n"), "{seen}");
    assert!(seen.contains("event: change\nid: "), "{seen}");
    assert!(seen.contains(r#""kind":"created""#), "{seen}");
}

#[test]
fn a_reader_of_events_is_told_what_it_lost() {
    let daemon = Daemon::start(PLAIN, &[]);
    let mut events = connect(&daemon);
    events.send(b"GET /v1/events?kind=change HTTP/1.0\r\naccept: application/x-ndjson\r\n\r\n");
    assert_eq!(events.head().0, 200);
    let start: Value = serde_json::from_str(&events.line().unwrap()).unwrap();
    let mut next = start["start"]["next_event"].as_u64().unwrap();
    let first = next;
    // More routes at once than the limit for any client.
    let route = |i: u32| {
        let prefix = format!("10.{}.{}.0/24", i >> 8, i & 255);
        json!({"route-add": {"prefix": prefix, "paths": [{"target": "drop"}]}})
    };
    let routes: Vec<Value> = (0..20_000).map(route).collect();
    let (status, done) = connect(&daemon).post("/v1/transactions", &routes);
    assert_eq!(status, 200, "{done}");
    let mut lost = 0;
    while next < first + 20_000 {
        let line = events.line().expect("events do not end");
        if line.is_empty() {
            continue;
        }
        let reported: Value = serde_json::from_str(&line).unwrap();
        if let Some(count) = reported["lost"]["events"].as_u64() {
            lost += count;
            next += count;
        } else {
            assert_eq!(reported["change"]["sequence"], next);
            next += 1;
        }
    }
    assert!(lost > 0);
    println!("lost and told: {lost} of 20000");
}

/// Checks the text format, and returns each sample's value by its name and labels.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let (mut helped, mut typed, mut found) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(helped.insert(name.to_owned()), "{name} twice");
            assert!(help.len() > 4, "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(helped.contains(name), "{name} has no help");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            typed.insert(name.to_owned(), kind.to_owned());
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        let well = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(
            name.starts_with("volley_") && name.chars().all(well),
            "{line}"
        );
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end).filter(|f| typed.contains_key(*f)))
            .unwrap_or(name);
        assert!(typed.contains_key(family), "{family} has no type");
        let value: f64 = value.parse().unwrap();
        assert!(value >= 0.0, "{line}");
        assert!(
            found.insert(series.to_owned(), value).is_none(),
            "{series} twice"
        );
    }
    found
}

#[test]
fn figures_are_those_of_the_packets() {
    let config = format!(
        "[icmp]\nerrors = false\n{PLAIN}[[stream]]\nname = \"s\"\ninterface = \"pg0\"\nlimit = 1000\n\
         template = \"eth / ip4 src 192.0.2.9 dst 10.0.0.1 / udp / payload 20\"\n"
    );
    let mut daemon = Daemon::start(&config, &[]);
    daemon.ok("packet-generator enable-stream s");
    daemon.wait_for_answer("show packet-generator", "1000");
    let mut http = connect(&daemon);
    let mut page = || {
        let (status, page) = http.call("GET", "/metrics", b"");
        assert_eq!(status, 200);
        samples(&text(&page))
    };
    let has = |page: &BTreeMap<String, f64>, name: &str| {
        let found = page.iter().filter(|(n, _)| n.starts_with(name));
        found.map(|(_, v)| v).sum::<f64>()
    };
    let start = Instant::now();
    let mut now = page();
    while has(&now, "volley_drops_total{") < 1000.0 && start.elapsed() < Duration::from_secs(10) {
        now = page();
    }
    let received = "volley_interface_receive_packets_total{interface=\"pg0\"}";
    assert_eq!(now[received], 1000.0);
    assert_eq!(has(&now, "volley_drops_total{"), 1000.0);
    assert_eq!(has(&now, "volley_worker_packets_total{"), 1000.0);
    let nodes = "volley_node_packets_total{worker=\"worker0\",node=\"ethernet-input\"}";
    assert_eq!(now[nodes], 1000.0);
    let (busy, up) = (
        has(&now, "volley_worker_busy_seconds_total"),
        now["volley_uptime_seconds"],
    );
    assert!(busy > 0.0 && busy < up, "{busy} of {up}");
    let rounds = has(&now, "volley_worker_rounds_total");
    let working = has(&now, "volley_worker_busy_rounds_total");
    assert!(working >= 1.0 && working <= rounds, "{working} of {rounds}");
    let buffers = has(&now, "volley_buffers{");
    assert_eq!(buffers, 16_384.0);
    // A page counts the queries of the pages before it.
    now = page();
    let latency = |le: &str| {
        let name = "volley_control_latency_seconds_bucket{operation=\"query\",le=\"";
        now[&format!("{name}{le}\"}}")]
    };
    assert!(latency("0.0001") <= latency("1") && latency("1") <= latency("+Inf"));
    let count = now["volley_control_latency_seconds_count{operation=\"query\"}"];
    assert_eq!(latency("+Inf"), count);
    assert!(count >= 7.0);
}

/// Sends packets into pg0 on a worker, and waits until all are sent. An IPv4 packet has 28 bytes more than its payload.
fn enter(daemon: &mut Daemon, (worker, count): (u32, u32), to: &str, payload: u32) {
    let name = format!("s{worker}-{count}");
    daemon.ok(&format!(
        "packet-generator new name {name} interface pg0 worker {worker} limit {count} template \
         {{ eth dst 02:fe:00:00:00:00 / ip4 src 192.0.2.9 dst {to} / udp / payload {payload} }}"
    ));
    run_out(daemon, &name, count);
}

#[test]
fn counted_routes_are_shown_by_commands_http_and_metrics() {
    let mut daemon = Daemon::start("", &["--workers", "2"]);
    for line in [
        "create packet-generator interface pg0 mac 02:fe:00:00:00:00",
        "set interface state pg0 up",
        "set interface ip address pg0 192.0.2.1/24",
        "ip route add 10.0.0.0/8 via drop",
        "ip route add 10.1.0.0/16 via drop",
    ] {
        daemon.ok(line);
    }
    enter(&mut daemon, (0, 5), "10.0.0.1", 20);
    let route = daemon.ok("show ip fib 10.0.0.0/8");
    assert!(!route.contains("packets"), "{route}");
    daemon.ok("set ip route-counter 10.0.0.0/8 longer");
    enter(&mut daemon, (0, 7), "10.0.0.1", 20);
    enter(&mut daemon, (1, 13), "10.0.0.1", 50);
    enter(&mut daemon, (1, 11), "10.1.2.3", 100);
    let wide =
        json!({"prefix": "10.0.0.0/8", "table": 0, "packets": 20, "bytes": 7 * 48 + 13 * 78});
    let narrow = json!({"prefix": "10.1.0.0/16", "table": 0, "packets": 11, "bytes": 11 * 128});
    let both = json!({"routes": [wide, narrow]});
    assert_eq!(daemon.json("show ip route-counters"), both);
    let route = daemon.ok("show ip fib 10.0.0.0/8");
    assert!(route.contains("  20 packets, 1350 bytes\n"), "{route}");
    let mut http = connect(&daemon);
    assert_eq!(http.get("/v1/show/route-counters?family=ip4"), both);
    let mut metrics = || samples(&text(&http.call("GET", "/metrics", b"").1));
    let page = metrics();
    let labels = "{prefix=\"10.1.0.0/16\",table=\"0\"}";
    assert_eq!(page[&format!("volley_route_packets_total{labels}")], 11.0);
    assert_eq!(page[&format!("volley_route_bytes_total{labels}")], 1408.0);
    // A table with a counted prefix stays until the counter is removed.
    daemon.ok("ip table add 7");
    daemon.ok("set ip route-counter 10.0.0.0/8 table 7");
    let refused = daemon.refused("ip table del 7");
    assert!(refused.contains("10.0.0.0/8"), "{refused}");
    for line in [
        "set ip route-counter del 10.0.0.0/8 table 7",
        "ip table del 7",
        "set ip route-counter del 10.0.0.0/8",
    ] {
        daemon.ok(line);
    }
    assert_eq!(daemon.json("show ip route-counters"), json!({"routes": []}));
    assert!(!metrics().keys().any(|name| name.contains("volley_route")));
}

#[test]
fn clients_that_stall_harm_nobody_and_are_cut_off() {
    let daemon = Daemon::start(PLAIN, &[]);
    let mut stalled: Vec<Http> = Vec::new();
    for _ in 0..20 {
        // Half a head, half a body, replies and events that the client does not read.
        let starts: [&[u8]; 4] = [
            b"GET /v1/state HT",
            b"POST /v1/requests HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{\"set\":",
            b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n",
            b"GET /v1/events HTTP/1.1\r\nhost: x\r\n\r\n",
        ];
        for (i, start) in starts.into_iter().enumerate() {
            let mut http = connect(&daemon);
            http.send(&start.repeat(if i == 2 { 40 } else { 1 }));
            stalled.push(http);
        }
    }
    let (mut http, mut slowest) = (connect(&daemon), Duration::ZERO);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(12) {
        let start = Instant::now();
        http.get("/v1/show/version");
        let table = json!({"set": {"class": "table", "family": "ip4", "id": 5}});
        assert_eq!(http.post("/v1/requests", &table).0, 200);
        let table = json!({"unset": {"class": "table", "family": "ip4", "id": 5}});
        assert_eq!(http.post("/v1/requests", &table).0, 200);
        slowest = slowest.max(start.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("slowest three answers beside 80 stalled clients: {slowest:?}");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    // Clients that read nothing for 10 s get the data in flight, and the end.
    let whole = 40 * http.call("GET", "/v1/openapi.json", b"").1.len();
    let came = stalled[2].drain();
    assert!(came < whole, "{came} of {whole} bytes");
    let state = http.get("/v1/state").to_string();
    assert!(!state.contains("\"class\":\"table\""), "{state}");
    if std::env::var_os("VOLLEY_LONG").is_some() {
        std::thread::sleep(Duration::from_secs(20));
        assert_eq!(stalled[0].drain(), 0, "half a head ends without an answer");
        assert_eq!(stalled[1].answer().0, 408);
    }
}

#[test]
fn tcp_wants_tls_and_a_token() {
    let folder = Folder::new();
    let file = folder.file("volley.toml");
    let check = |api: &str| {
        std::fs::write(&file, format!("{PLAIN}[api]\n{api}")).unwrap();
        let output = volley(&["config", "check", &file.display().to_string()]);
        (output.status.success(), text(&output.stderr))
    };
    let (taken, reply) = check("listen = \"127.0.0.1:8443\"\n");
    assert!(!taken && reply.contains("TLS and a token only"), "{reply}");
    assert!(reply.contains("certificate, key and token_file"), "{reply}");
    let (taken, reply) = check("token_file = \"t\"\n");
    assert!(!taken && reply.contains("set listen"), "{reply}");
    let (taken, reply) = check("listen = \"somewhere\"\n");
    assert!(!taken, "{reply}");
    let (taken, reply) = check("socket = \"/tmp/x.sock\"\n");
    assert!(taken, "{reply}");
}

/// A daemon that also serves TLS, its port and its token; none if TLS cannot be tested here.
fn with_tls(folder: &Folder) -> Option<(Daemon, u16, &'static str)> {
    let file = |name: &str| folder.file(name).display().to_string();
    let (key, certificate, token) = (file("key.pem"), file("cert.pem"), "0123456789abcdef0123");
    let words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost";
    let made = Command::new("openssl")
        .args(words.split(' '))
        .args(["-keyout", &key, "-out", &certificate])
        .output();
    if !made.is_ok_and(|o| o.status.success()) || Command::new("curl").arg("-V").output().is_err() {
        println!("SKIP: it needs openssl and curl");
        return None;
    }
    std::fs::write(folder.file("ops.token"), token).unwrap();
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(folder.file("ops.token"), private).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let config = format!(
        "{PLAIN}[api]\nlisten = \"127.0.0.1:{port}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\ntoken_file = \"{}\"\n",
        file("ops.token")
    );
    Some((Daemon::start(&config, &[]), port, token))
}

#[test]
fn idle_connections_over_tcp_take_no_places_of_others() {
    let folder = Folder::new();
    let Some((daemon, port, token)) = with_tls(&folder) else {
        return;
    };
    let curl = |from: &str| {
        let bearer = format!("Authorization: Bearer {token}");
        let url = format!("https://127.0.0.1:{port}/v1/show/version");
        let words = [
            "-sk",
            "-m",
            "5",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--interface",
        ];
        let mut command = Command::new("curl");
        command.args(words).args([from, "-H", &bearer, &url]);
        text(&command.output().unwrap().stdout)
    };
    assert_eq!(curl("127.0.0.1"), "200");
    let open = || std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let idle: Vec<_> = (0..300).map(|_| open()).collect();
    std::thread::sleep(Duration::from_millis(500));
    // All connections of the unix socket are used, and other sources have separate limits.
    let mut unix: Vec<Http> = (0..200).map(|_| connect(&daemon)).collect();
    for http in &mut unix {
        http.get("/v1/show/version");
    }
    assert_eq!(curl("127.0.0.2"), "200");
    assert_eq!(curl("127.0.0.1"), "000", "this source has no more places");
    let log = daemon.log();
    assert!(log.contains("32 connections are from this source"), "{log}");
    drop(idle);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(curl("127.0.0.1"), "200");
    // The handshakes of a client that opens many connections at once delay no request.
    let storm = "for n in $(seq 200); do curl -sk -m 5 -o /dev/null https://127.0.0.1:$0/v1/show/version & \
        [ $((n % 20)) = 0 ] && wait; done; wait";
    let mut storm = Command::new("sh")
        .args(["-c", storm, &port.to_string()])
        .spawn()
        .unwrap();
    let mut slowest = Duration::ZERO;
    while storm.try_wait().unwrap().is_none() {
        let begin = Instant::now();
        unix[0].get("/v1/show/version");
        slowest = slowest.max(begin.elapsed());
    }
    println!("slowest answer beside 200 handshakes: {slowest:?}, at most 1 s");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}

#[test]
fn the_python_client_works_against_a_daemon() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    // `cargo xtask install` creates this environment, with the parsers that the tests use.
    let target = std::path::Path::new(env!("CARGO_BIN_EXE_volley"))
        .ancestors()
        .nth(2);
    let venv = target.map(|t| t.join("venv/bin/python"));
    let python = venv.filter(|p| p.exists()).unwrap_or("python3".into());
    let mut command = Command::new(python);
    command
        .args(["-m", "unittest", "discover", "-s", "clients/python/tests"])
        .current_dir(root)
        .env("PYTHONPATH", "clients/python")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("VOLLEY", env!("CARGO_BIN_EXE_volley"));
    let Ok(output) = command.output() else {
        println!("skipped: there is no python3");
        return;
    };
    let reply = text(&output.stderr);
    assert!(output.status.success(), "{reply}");
    println!(
        "{}",
        reply.lines().rev().take(3).collect::<Vec<_>>().join("; ")
    );
}
