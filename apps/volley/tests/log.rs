//! The log of a running daemon: changes with their clients, links, neighbours, refused clients; destinations, and lost records.

mod support;

use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::bed::Bed;
use support::http::Http;
use support::kept::Small;
use support::{Daemon, Folder, text};

/// The name of the user who runs the tests.
fn me() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    text(&output.stdout).trim().to_owned()
}

fn http(daemon: &Daemon) -> Http {
    Http::connect(&daemon.folder.file("s.http.sock"))
}

fn records(daemon: &Daemon, line: &str) -> Vec<Value> {
    daemon.json(line)["records"].as_array().unwrap().clone()
}

/// The newest record of a module whose message contains a text.
fn record(daemon: &Daemon, module: &str, part: &str) -> Value {
    let all = records(daemon, &format!("show log 10000 module {module}"));
    let found = all
        .iter()
        .rev()
        .find(|r| r["message"].as_str().unwrap().contains(part));
    found
        .unwrap_or_else(|| panic!("no '{part}' in {all:#?}"))
        .clone()
}

#[test]
fn who_changed_what_is_logged_and_kept_with_the_commits() {
    let state = Folder::new();
    let state = state.0.display().to_string();
    let mut daemon = Daemon::start("", &["--state-dir", &state]);
    let started = record(&daemon, "daemon", "is starting with ");
    assert!(
        started["message"].as_str().unwrap().contains("volley.toml"),
        "{started}"
    );
    assert_eq!(started["fields"]["pid"], daemon.pid().to_string());
    daemon.ok("create packet-generator interface pg7");
    daemon.ok("set interface name pg7 uplink7");
    daemon.ok("set interface state uplink7 up");
    let made = record(&daemon, "config", "`create packet-generator interface pg7`");
    let fields = &made["fields"];
    assert_eq!(made["level"], "info");
    assert_eq!(
        (fields["user"].as_str(), fields["via"].as_str()),
        (Some(&me()[..]), Some("cli"))
    );
    assert!(
        fields["from"].as_str().unwrap().starts_with("pid "),
        "{made}"
    );
    assert_eq!(
        record(&daemon, "interface", "created")["fields"]["interface"],
        "pg7"
    );
    assert_eq!(
        record(&daemon, "interface", "renamed from pg7")["fields"]["interface"],
        "uplink7"
    );
    record(&daemon, "interface", "set up");
    refusals(&daemon);
    commits(&mut daemon);
    // Standard error contains the same lines.
    let shown = daemon.ok("show log 10000");
    daemon.wait_for("the last line", |d| {
        d.log().contains(shown.lines().last().unwrap())
    });
    let log = daemon.log();
    assert!(
        shown.lines().count() > 10 && shown.lines().all(|line| log.contains(line)),
        "{log}"
    );
    daemon.stop("TERM");
    assert!(
        daemon.log().contains(" info  daemon: ending: SIGTERM\n"),
        "{}",
        daemon.log()
    );
    assert!(
        daemon.log().ends_with(" info  daemon: ended\n"),
        "{}",
        daemon.log()
    );
}

fn refusals(daemon: &Daemon) {
    // Refusals are logged at debug.
    daemon.refused("delete interface nothing");
    let refused = |d: &Daemon| {
        d.ok("show log")
            .matches("refused: `delete interface nothing`")
            .count()
    };
    assert_eq!(refused(daemon), 0);
    daemon.ok("set log level debug module config");
    daemon.refused("delete interface nothing");
    assert_eq!(refused(daemon), 1);
    assert_eq!(daemon.json("show log 1")["levels"], "info,config=debug");
    daemon.ok("set log level default module config");
    daemon.refused("delete interface nothing");
    assert_eq!(refused(daemon), 1);
    assert!(daemon.refused("set log level loud").contains("loud"));
}

fn commits(daemon: &mut Daemon) {
    daemon.ok("config commit comment first");
    daemon.ok("create packet-generator interface pg8");
    daemon.ok("config commit comment second");
    let second = record(daemon, "config", "commit 2 is active");
    assert_eq!(second["fields"]["comment"], "second");
    assert_eq!(second["fields"]["user"], me());
    daemon.ok("config rollback 1");
    assert_eq!(
        record(daemon, "config", "commit 3 is active")["fields"]["how"],
        "rollback"
    );
    daemon.ok("create packet-generator interface pg9");
    daemon.ok("config commit confirm 1s comment risky");
    daemon.wait_for("the deadline", |d| {
        d.ok("show log")
            .contains("commit 4 was not confirmed in time")
    });
    let lapsed = record(
        daemon,
        "config",
        "commit 4 was not confirmed in time and is rolled back to commit 3",
    );
    assert_eq!(
        (lapsed["level"].as_str(), lapsed["fields"]["how"].as_str()),
        (Some("warn"), Some("deadline"))
    );
    daemon.ok("config commit confirm 60s");
    daemon.ok("config confirm");
    record(daemon, "config", "commit 5 is confirmed");
    let history = daemon.json("config history")["history"]["commits"].clone();
    let row = |row: &Value| {
        (
            row["number"].as_u64(),
            row["user"].clone(),
            row["how"].clone(),
            row["lapsed_s"].is_u64(),
        )
    };
    let rows: Vec<_> = history.as_array().unwrap().iter().map(row).collect();
    let by = |how: &str| (json!(me()), json!(how));
    let ((user, operator), (_, rollback)) = (by("operator"), by("rollback"));
    let expected = [
        (5, &operator, false),
        (4, &operator, true),
        (3, &rollback, false),
        (2, &operator, false),
        (1, &operator, false),
    ];
    let expected: Vec<_> = expected
        .map(|(n, how, lapsed)| (Some(n), user.clone(), how.clone(), lapsed))
        .into();
    assert_eq!(rows, expected);
    let shown = daemon.ok("config history");
    assert!(
        shown.contains("not confirmed, rolled back ") && shown.contains("rollback"),
        "{shown}"
    );
}

#[test]
fn events_have_a_time_and_a_user_and_the_log_comes_with_them() {
    let daemon = Daemon::start("", &[]);
    let read = |query: &str| {
        let mut events = http(&daemon);
        let head =
            format!("GET /v1/events{query} HTTP/1.0\r\naccept: application/x-ndjson\r\n\r\n");
        events.send(head.as_bytes());
        assert_eq!(events.head().0, 200);
        assert!(events.line().unwrap().starts_with("{\"start\""));
        events
    };
    let next =
        |events: &mut Http| -> Value { serde_json::from_str(&events.line().unwrap()).unwrap() };
    let (mut all, mut changes, mut log) = (read(""), read("?kind=change"), read("?kind=log"));
    let (status, done) = http(&daemon).post(
        "/v1/requests",
        &json!({"set": {"class": "table", "family": "ip4", "id": 3}}),
    );
    assert_eq!(status, 200, "{done}");
    let change = next(&mut all)["change"].clone();
    let record = next(&mut all)["log"].clone();
    assert_eq!(
        (&change["user"], &change["object"]),
        (&json!(me()), &json!("object"))
    );
    let time = change["time"].as_str().unwrap();
    assert!(
        time.len() == 27 && time.starts_with("20") && time.ends_with('Z'),
        "{time}"
    );
    assert!(
        time <= record["time"].as_str().unwrap(),
        "{change} {record}"
    );
    assert_eq!(
        (&record["module"], &record["fields"]["via"]),
        (&json!("config"), &json!("http"))
    );
    assert_eq!(
        record["fields"]["transaction"],
        change["transaction"].to_string()
    );
    assert_eq!(next(&mut changes)["change"], change);
    assert_eq!(next(&mut log)["log"], record);
    let newest = http(&daemon).get("/v1/log?max=1&module=config");
    assert_eq!(newest["records"], json!([record]));
    assert_eq!(
        http(&daemon).get("/v1/show/log?max=1&module=config"),
        newest
    );
    let behind = format!("/v1/log?after={}", record["sequence"]);
    assert_eq!(http(&daemon).get(&behind)["records"], json!([]));
    assert_eq!(
        http(&daemon).call("GET", "/v1/log?module=memiff", b"").0,
        400
    );
    assert_eq!(http(&daemon).call("GET", "/v1/events?kind=all", b"").0, 400);
}

#[test]
fn links_and_neighbours_are_logged() {
    let Some(bed) = Bed::new() else {
        return;
    };
    let mut daemon = bed.router();
    daemon.ok("set log level debug module neighbor");
    let made = record(&daemon, "interface", "created");
    assert_eq!(made["fields"]["interface"], "right");
    assert_eq!(made["fields"]["kind"], "host-interface");
    assert!(bed.pings("a", "10.78.0.2", 3, "0.2") > 0);
    let learned = record(&daemon, "neighbor", "10.77.0.2 is at ");
    assert_eq!(learned["fields"]["interface"], "left");
    let mac = support::bed::mac_of(&bed, "a");
    assert!(
        learned["message"].as_str().unwrap().ends_with(&mac),
        "{learned} {mac}"
    );
    // The host gets another MAC address, and announces it.
    let notify = "echo 1 > /proc/sys/net/ipv4/conf/e/arp_notify";
    let notify = ["sh", "-c", notify];
    assert!(bed.exec("a", 5, &notify).status.success());
    bed.ip("a", "link set e address 02:00:00:00:77:02");
    daemon.wait_for("the other MAC address", |d| {
        let moved = format!("10.77.0.2 moved from {mac} to 02:00:00:00:77:02");
        d.ok("show log 1000 module neighbor").contains(&moved)
    });
    // Its link goes down and up.
    bed.ip("a", "link set e down");
    daemon.wait_for("the link to be down", |d| {
        d.ok("show log level warn").contains("link down: ")
    });
    let down = record(&daemon, "interface", "link down: ");
    assert_eq!(
        (&down["level"], &down["fields"]["interface"]),
        (&json!("warn"), &json!("left"))
    );
    bed.ip("a", "link set e up");
    daemon.wait_for("the link to be up", |d| {
        let all = records(d, "show log 1000 module interface");
        let up = |r: &&Value| r["fields"]["interface"] == "left" && r["message"] == "link up";
        all.iter().any(|r| up(&r))
    });
    // The removal of a kernel interface is logged once, with the reason.
    bed.ip("r", "link del right");
    daemon.wait_for("right to be gone", |d| {
        let all = records(d, "show log 1000 module interface");
        all.iter()
            .any(|r| r["fields"]["interface"] == "right" && r["level"] == "warn")
    });
    let one = records(&daemon, "show log 1000 level warn module interface");
    let of_right = one.iter().filter(|r| r["fields"]["interface"] == "right");
    assert_eq!(of_right.count(), 1, "{one:#?}");
}

#[test]
fn a_file_of_json_lines_and_a_flood() {
    let config = "[log]\ndestination = \"file\"\nfile = \"@/log\"\nformat = \"json\"\n\
        modules = { client = \"debug\" }\n";
    let mut daemon = Daemon::start(config, &["--log", "info,daemon=debug"]);
    // The command line's levels replace the file's.
    assert_eq!(daemon.json("show log 1")["levels"], "info,daemon=debug");
    let flood = "clear errors\n".repeat(1500);
    let mut ctl = Command::new(env!("CARGO_BIN_EXE_volley"));
    let socket = daemon.folder.file("s");
    ctl.args(["ctl", "--socket", socket.to_str().unwrap()]);
    let mut ctl = ctl
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut ctl.stdin.take().unwrap(), flood.as_bytes()).unwrap();
    assert!(ctl.wait().unwrap().success());
    let reply = daemon.json("show log 10000 module config");
    let suppressed = reply["suppressed"].as_u64().unwrap();
    let kept = reply["records"].as_array().unwrap().len() as u64;
    assert!(suppressed > 0 && kept >= 100, "{suppressed} {kept}");
    assert!(
        daemon
            .ok("show log 1")
            .contains(" records were suppressed since start"),
        "{suppressed}"
    );
    daemon.wait_for("the report", |d| {
        d.ok("show log")
            .contains(" more records such as the following were suppressed in ")
    });
    // logrotate moves the file away, and sends SIGHUP or no signal.
    let log = daemon.folder.file("log");
    daemon.wait_for("the file", |d| d.log().contains("more records such as"));
    for line in daemon.log().lines() {
        let record: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(
            record["time"].is_string() && record["module"].is_string(),
            "{line}"
        );
    }
    std::fs::rename(&log, daemon.folder.file("log.old")).unwrap();
    support::signal(daemon.pid(), "HUP");
    daemon.ok("create packet-generator interface pg5");
    daemon.wait_for("the new file", |d| {
        d.log().contains("\"interface\":\"pg5\"")
    });
    let socket = daemon.folder.file("s.http.sock");
    assert!(socket.exists(), "SIGHUP does not end it");
    daemon.stop("TERM");
}

#[test]
fn a_full_disk_is_shown_and_stops_nothing() {
    let folder = Folder::new();
    let disk = folder.file("disk");
    let Some(_small) = Small::mount(&disk) else {
        println!("SKIP: a small file system cannot be mounted here (root only)");
        return;
    };
    std::fs::write(disk.join("filler"), vec![0; 400_000]).unwrap_err();
    let file = disk.join("log").display().to_string();
    let socket = folder.file("s").display().to_string();
    let config = folder.file("c.toml");
    std::fs::write(&config, "").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_volley"))
        .args([
            "run",
            "-c",
            config.to_str().unwrap(),
            "--socket",
            &socket,
            "--log-to",
            &format!("file:{file}"),
        ])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ctl = |line: &str| {
        let words: Vec<&str> = ["ctl", "--socket", &socket]
            .into_iter()
            .chain(line.split(' '))
            .collect();
        text(&support::volley(&words).stdout)
    };
    let begun = Instant::now();
    let refused = format!("were refused by file {file}");
    while !ctl("show log").contains(&refused) {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "{}",
            ctl("show log")
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(
        ctl("show log").contains("No space left on device"),
        "{}",
        ctl("show log")
    );
    support::signal(child.id(), "TERM");
    assert!(child.wait().unwrap().success());
}

/// A comment and a file name with characters that would act on a terminal, or forge a line.
#[test]
fn hostile_text_acts_on_no_terminal() {
    let state = Folder::new();
    let state = state.0.display().to_string();
    let mut daemon = Daemon::start("", &["--state-dir", &state]);
    let evil = "x\u{1b}[2J\n9 2026-01-01 00:00:00 UTC forged\u{9b}31m\u{202e}";
    let body = json!({"source": "running", "comment": evil});
    let (status, done) = http(&daemon).post("/v1/config/commit", &body);
    assert_eq!(status, 200, "{done}");
    daemon.wait_for("the log", |d| d.log().contains("commit 1 is active"));
    for (what, text) in [
        ("show log", daemon.ok("show log 1000")),
        ("config history", daemon.ok("config history")),
        ("stderr", daemon.log()),
    ] {
        let hostile = text
            .chars()
            .find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
        assert_eq!(hostile, None, "{what}: {text:?}");
        assert!(text.contains("\\u{1b}["), "{what}: {text}");
        assert!(
            !text
                .lines()
                .any(|l| l.starts_with("9 2026-01-01") || l.starts_with("red")),
            "{what}: {text}"
        );
    }
    // JSON contains the unchanged text.
    let history = http(&daemon).get("/v1/config/history");
    assert_eq!(history["history"]["commits"][0]["comment"], evil);
}

#[test]
fn a_client_without_the_token_is_logged() {
    let folder = Folder::new();
    let file = |name: &str| folder.file(name).display().to_string();
    let (key, certificate) = (file("key.pem"), file("cert.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-keyout", &key, "-out", &certificate])
        .output();
    if !made.is_ok_and(|o| o.status.success()) || Command::new("curl").arg("-V").output().is_err() {
        println!("SKIP: it needs openssl and curl");
        return;
    }
    support::secret(&folder.file("ops.token"), "0123456789abcdef0123\n");
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let config = format!(
        "[api]\nlisten = \"127.0.0.1:{port}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\ntoken_file = \"{}\"\n",
        file("ops.token")
    );
    let daemon = Daemon::start(&config, &[]);
    let url = format!("https://127.0.0.1:{port}/v1/requests");
    let curl = |token: &str| {
        let add = r#"{"set":{"class":"table","family":"ip4","id":5}}"#;
        let output = Command::new("curl")
            .args([
                "-sk",
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
                "-H",
                &format!("Authorization: Bearer {token}"),
                "-d",
                add,
                &url,
            ])
            .output()
            .unwrap();
        text(&output.stdout)
    };
    assert_eq!(curl("wrong"), "401");
    let refused = record(&daemon, "client", "shows no token of the token file");
    assert_eq!(refused["level"], "warn");
    assert!(
        refused["fields"]["from"]
            .as_str()
            .unwrap()
            .starts_with("127.0.0.1:"),
        "{refused}"
    );
    assert_eq!(curl("0123456789abcdef0123"), "200");
    let made = record(&daemon, "config", "`ip table add 5`");
    assert_eq!(
        (&made["fields"]["user"], &made["fields"]["via"]),
        (&json!("token ops"), &json!("http"))
    );
}

#[test]
fn peers_and_workers_are_logged() {
    let folder = Folder::new();
    let socket = folder.file("m.sock").display().to_string();
    let daemon = |role: &str| {
        let daemon = Daemon::start("", &[]);
        daemon.ok(&format!("create memif socket id 1 filename {socket}"));
        daemon.ok(&format!("create interface memif id 0 socket-id 1 {role}"));
        daemon.ok("set interface state memif1/0 up");
        daemon
    };
    let (mut master, mut slave) = (daemon("master"), daemon("slave"));
    for one in [&mut master, &mut slave] {
        one.wait_for_answer("show log module memif", "peer connected interface=memif1/0");
        one.wait_for_answer("show log module interface", "link up interface=memif1/0");
    }
    // The process is killed, so it closes no connection.
    drop(slave);
    master.wait_for_answer("show log module memif", "peer disconnected: ");
    master.wait_for_answer("show log level warn module interface", "link down: ");
    master.ok("workers add");
    master.ok("workers del 1");
    let worker = |part: &str| record(&master, "worker", part)["fields"]["worker"].clone();
    assert_eq!(worker("worker 1 is added"), "1");
    assert_eq!(worker("worker 1 is leaving"), "1");
    master.wait_for_answer("show log module worker", "worker 1 is removed");
}

/// A systemd journal in a separate mount namespace, and a daemon whose standard error is connected to it.
const JOURNAL: &str = "mount --make-rprivate / && mount -t tmpfs tmpfs /run || exit 77\n\
    mkdir -p /run/systemd/journal /run/log/journal\n\
    $JOURNALD 2>/dev/null & J=$!\n\
    for i in $(seq 100); do [ -S /run/systemd/journal/stdout ] && break; sleep 0.1; done\n\
    systemd-cat --identifier=other sh -c \
    'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec $VOLLEY run -c $FOLDER/c --socket $FOLDER/s' & P=$!\n\
    for i in $(seq 200); do $VOLLEY ctl --socket $FOLDER/s show version >/dev/null 2>&1 && break; sleep 0.1; done\n\
    $VOLLEY ctl --socket $FOLDER/s create packet-generator interface pg0\n\
    kill $P; wait $P\n\
    for i in $(seq 100); do journalctl -D /run/log/journal -o cat --no-pager | grep -q 'daemon: ended' && break; sleep 0.1; done\n\
    journalctl -D /run/log/journal --no-pager -o json SYSLOG_IDENTIFIER=volley\n\
    kill $J; wait $J";

#[test]
fn a_real_journal_gets_records_with_their_fields() {
    let journald = "/lib/systemd/systemd-journald";
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let able = ["unshare", "systemd-cat", "journalctl"]
        .into_iter()
        .all(has);
    if !able || !std::path::Path::new(journald).exists() {
        println!("SKIP: it needs unshare and systemd's journal");
        return;
    }
    let folder = Folder::new();
    std::fs::write(folder.file("c"), "").unwrap();
    let output = Command::new("timeout")
        .args(["-k", "1", "90", "unshare", "-m", "sh", "-c", JOURNAL])
        .env("JOURNALD", journald)
        .env("VOLLEY", env!("CARGO_BIN_EXE_volley"))
        .env("FOLDER", &folder.0)
        .output()
        .unwrap();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    if output.status.code() == Some(77) || errors.contains("unshare failed") {
        println!("SKIP: mount namespaces cannot be made (are we root?): {errors}");
        return;
    }
    let all: Vec<Value> = out
        .lines()
        .filter_map(|l| serde_json::from_str(l).ok())
        .collect();
    let of = |part: &str| {
        let mut found = all
            .iter()
            .filter(|r| r["MESSAGE"].as_str().unwrap().contains(part));
        found
            .next()
            .unwrap_or_else(|| panic!("no '{part}': {out}{errors}"))
    };
    let made = of("config: `create packet-generator interface pg0`");
    assert_eq!(
        (&made["PRIORITY"], &made["VOLLEY_MODULE"]),
        (&json!("6"), &json!("config"))
    );
    assert_eq!(
        (&made["VOLLEY_USER"], &made["VOLLEY_VIA"]),
        (&json!(me()), &json!("cli"))
    );
    assert_eq!(of("interface: created")["VOLLEY_INTERFACE"], "pg0");
    of("daemon: ended");
}
