//! An operator's first week: configurations that a start refuses, files of other users, warnings, drops.
//!
//! The tests with hosts need root, `ip` and `ping`; without them they say so and pass.

mod support;

use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::bed::{Bed, Space};
use support::mirror::{in_step, soon};
use support::{Daemon, Folder, signal, text, volley};

const TWO: &str = r#"
[[interface]]
name = "pg0"
kind = "pg"
addresses = ["192.0.2.1/24"]

[[interface]]
name = "pg1"
kind = "pg"
addresses = ["198.51.100.1/24"]
"#;

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Runs `volley WORDS < input` in a folder.
fn in_folder(folder: &Folder, words: &[&str], input: &str) -> Output {
    let mut child = Command::new("timeout")
        .args(["30", env!("CARGO_BIN_EXE_volley")])
        .args(words)
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// `onlink` suppresses the warning about a gateway outside the prefixes of its link.
fn onlink_is_meant(daemon: &Daemon) {
    for (family, prefix, gateway) in [
        ("ip", "10.7.0.0/16", "203.0.113.9"),
        ("ip6", "2001:db8:7::/48", "2001:db8:ffff::9"),
    ] {
        let route = format!("{family} route add {prefix} via {gateway} pg0 onlink");
        assert_eq!(daemon.ok(&route), "");
        let shown = daemon.ok(&format!("show {family} fib"));
        let line = format!("{prefix} via {gateway} \"pg0\" onlink proto static");
        let plain = line.replace('"', "");
        assert!(shown.contains(&line) || shown.contains(&plain), "{shown}");
        let detail = daemon.ok(&format!("show {family} fib {prefix}"));
        assert!(detail.contains(" onlink weight 1"), "{detail}");
        let data = daemon
            .json(&format!("show {family} fib {prefix}"))
            .to_string();
        assert!(data.contains("\"onlink\":true"), "{data}");
        let commands = daemon.ok("config export commands");
        assert!(commands.contains(" onlink"), "{commands}");
    }
    // The file has `onlink`, and is read back.
    let file = daemon.folder.file("onlink.toml");
    let text = daemon.ok("config show");
    assert_eq!(text.matches("onlink = true").count(), 2, "{text}");
    std::fs::write(&file, text).unwrap();
    let same = daemon.ok(&format!("config diff {}", file.display()));
    assert!(!same.contains("onlink"), "{same}");
    // The path is removed without `onlink`, as in Linux.
    daemon.ok("ip route del 10.7.0.0/16 via 203.0.113.9 pg0");
    assert!(!daemon.ok("show ip fib").contains("10.7.0.0/16"));
    for refused in [
        "ip route add 10.6.0.0/16 via 203.0.113.9 onlink",
        "ip route add 10.6.0.0/16 via pg0 onlink",
        "ip route add 10.6.0.0/16 via drop onlink",
    ] {
        let why = daemon.refused(refused);
        assert!(
            why.contains("on the link of its interface"),
            "{refused}: {why}"
        );
    }
}

/// The check refuses a configuration that a start refuses, for the same reason.
fn both_refuse(config: &str, why: &str) {
    let folder = Folder::new();
    let file = folder.file("volley.toml");
    std::fs::write(&file, config.replace('@', &shown(&folder.0))).unwrap();
    let (file, socket) = (shown(&file), shown(&folder.file("s")));
    let check = volley(&["config", "check", &file]);
    let started = volley(&["run", "-c", &file, "--socket", &socket, "--log-to", "none"]);
    for (what, output) in [("check", check), ("run", started)] {
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{what}: {error}");
        assert!(error.contains(why), "{what}: {error}");
    }
}

#[test]
fn check_finds_what_a_start_would_refuse() {
    let twice = TWO.replace("198.51.100.1/24", "192.0.2.1/25");
    both_refuse(&twice, "address 192.0.2.1 on pg0 exists already");
    let arc = format!(
        "{TWO}[[feature]]\ninterface = \"pg0\"\narc = \"ip4-unicast\"\nfeature = \"no-such\"\n"
    );
    both_refuse(&arc, "no-such");
    // This needs no kernel interfaces: the fault is the same on every machine.
    let taps = twice.replace("kind = \"pg\"", "kind = \"tap\"");
    let folder = Folder::new();
    let file = folder.file("volley.toml");
    std::fs::write(&file, taps).unwrap();
    let check = volley(&["config", "check", &shown(&file)]);
    assert!(text(&check.stderr).contains("192.0.2.1 on pg0 exists already"));
}

#[test]
fn check_judges_the_token_and_with_here_the_machine() {
    let folder = Folder::new();
    let file = folder.file("volley.toml");
    let api = "[api]\nlisten = \"127.0.0.1:0\"\ncertificate = \"@/c\"\nkey = \"@/k\"\ntoken_file = \"@/t\"\n";
    let config = format!("{api}{TWO}").replace('@', &shown(&folder.0));
    std::fs::write(&file, &config).unwrap();
    let check = |more: &[&str]| {
        let file = shown(&file);
        let output = volley(&[&["config", "check", &file], more].concat());
        (output.status.code(), text(&output.stderr))
    };
    // The machine that will use the file may have the files that it names.
    assert_eq!(check(&[]), (Some(0), String::new()));
    let (code, error) = check(&["--here"]);
    assert!(
        code == Some(1) && error.contains("/c: No such file"),
        "{error}"
    );
    std::fs::write(folder.file("t"), "short").unwrap();
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(folder.file("t"), private).unwrap();
    let (code, error) = check(&[]);
    assert!(code == Some(1) && error.contains("16 or more"), "{error}");

    let pcap =
        format!("{TWO}[[interface]]\nname = \"p\"\nkind = \"pcap\"\nrx = \"/no/such.pcap\"\n");
    let socket = shown(&folder.file("s"));
    let engine = format!("[engine]\nsocket = \"{socket}\"\n");
    std::fs::write(&file, format!("{engine}worker_core = 999\n{pcap}")).unwrap();
    assert_eq!(check(&[]).0, Some(0));
    let (code, error) = check(&["--here"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("there is no core 999"), "{error}");
    assert!(error.contains("p: /no/such.pcap: No such file"), "{error}");
    let waits = "[[interface]]\nname = \"w\"\nkind = \"host-interface\"\nhost = \"no-such-nic\"\n";
    std::fs::write(&file, format!("{engine}{waits}")).unwrap();
    let (code, error) = check(&["--here"]);
    assert_eq!(code, Some(0), "it waits for it: {error}");
    assert!(
        error.contains("warning: ") && error.contains("no-such-nic"),
        "{error}"
    );
}

#[test]
fn files_are_the_clients() {
    let state = Folder::new();
    let daemon = Daemon::start(TWO, &["--state-dir", &shown(&state.0)]);
    let socket = shown(&daemon.folder.file("s"));
    let folder = Folder::new();
    // The daemon has an empty standard input; `/dev/stdin` is the one of the process that opens it.
    let more = format!("{TWO}\n[[route]]\nprefix = \"10.0.0.0/8\"\naction = \"drop\"\n");
    let stdin = "/dev/stdin";
    let diff = in_folder(
        &folder,
        &["config", "diff", stdin, "--socket", &socket],
        &more,
    );
    assert_eq!(text(&diff.stderr), "");
    assert_eq!(text(&diff.stdout), "+ ip route add 10.0.0.0/8 via drop\n");
    let line = [
        "ctl", "--socket", &socket, "config", "commit", "file", stdin,
    ];
    let bad = in_folder(&folder, &line, "[[interface]]\nname = 7\n");
    assert!(
        text(&bad.stderr).contains("/dev/stdin:2:"),
        "{}",
        text(&bad.stderr)
    );
    std::fs::write(folder.file("new.toml"), &more).unwrap();
    let line = [
        "ctl", "--socket", &socket, "config", "commit", "file", "new.toml",
    ];
    let good = in_folder(&folder, &line, "");
    assert_eq!(text(&good.stderr), "");
    assert!(daemon.ok("config show").contains("10.0.0.0/8"));

    let trace = ["ctl", "--socket", &socket, "pcap trace rx file x.pcap"];
    let answer = in_folder(&folder, &trace, "");
    let whole = shown(&folder.0.canonicalize().unwrap().join("x.pcap"));
    assert!(
        text(&answer.stdout).contains(&format!("file: {whole}\n")),
        "{answer:?}"
    );
    daemon.ok("pcap trace off");
    assert!(folder.file("x.pcap").exists());
}

#[test]
fn what_cannot_be_an_address_is_refused_and_what_is_odd_is_warned_of() {
    let daemon = Daemon::start(TWO, &[]);
    for (address, why) in [
        ("10.0.0.0/24", "it is the network address of 10.0.0.0/24"),
        (
            "10.0.0.255/24",
            "it is the broadcast address of 10.0.0.0/24",
        ),
        ("127.0.0.1/8", "loopback"),
        ("224.0.0.5/24", "multicast"),
    ] {
        let error = daemon.refused(&format!("set interface ip address pg0 {address}"));
        assert!(error.contains(why), "{address}: {error}");
    }
    assert!(
        daemon
            .refused("set interface ip6 address pg0 ::1/128")
            .contains("loopback")
    );
    // Both addresses of a /31 are hosts (RFC 3021).
    assert_eq!(daemon.ok("set interface ip address pg0 10.0.0.0/31"), "");
    let warned = daemon.ok("set interface ip address pg1 192.0.2.129/25");
    let overlap = "the network of 192.0.2.129/25 on pg1 overlaps that of 192.0.2.1/24 on pg0";
    assert!(
        warned.starts_with(&format!("warning: {overlap}")),
        "{warned}"
    );
    let odd = daemon.ok("ip route add 10.9.0.0/16 via 203.0.113.1 pg0");
    assert!(
        odd.contains("warning: gateway 203.0.113.1 is not on the link of pg0"),
        "{odd}"
    );
    assert_eq!(daemon.ok("ip route add 10.9.0.0/16 via 192.0.2.9 pg0"), "");
    // A neighbour with a MAC address is accepted.
    daemon.ok("set ip neighbor pg0 203.0.113.2 02:aa:00:00:00:02");
    assert_eq!(
        daemon.ok("ip route add 10.8.0.0/16 via 203.0.113.2 pg0"),
        ""
    );
    assert_eq!(daemon.ok("ip6 route add 2001:db8::/32 via fe80::9 pg0"), "");
    onlink_is_meant(&daemon);

    let odd = TWO.replace("198.51.100.1/24", "192.0.2.129/25");
    let folder = Folder::new();
    std::fs::write(folder.file("odd.toml"), odd).unwrap();
    let check = volley(&["config", "check", &shown(&folder.file("odd.toml"))]);
    assert_eq!(check.status.code(), Some(0));
    assert!(
        text(&check.stderr).contains(overlap),
        "{}",
        text(&check.stderr)
    );
}

#[test]
fn a_link_that_is_down_is_the_reason_of_its_own_drops() {
    let daemon = Daemon::start(TWO, &[]);
    daemon.ok("ip route add 0.0.0.0/0 via 192.0.2.9");
    daemon.ok("ip route add 10.0.0.0/8 via drop");
    let default = || daemon.ok("show ip fib 203.0.113.1");
    assert!(default().contains("192.0.2.9") && !default().contains("drop ("));
    daemon.ok("set interface state pg0 down");
    assert!(default().contains("drop (interface-down)"), "{}", default());
    let blackhole = daemon.ok("show ip fib 10.1.1.1");
    assert!(!blackhole.contains("(unresolved)"), "{blackhole}");
    daemon.ok("set interface ip address del pg0 192.0.2.1/24");
    assert!(default().contains("drop (recursion-loop)"), "{}", default());
    daemon.ok("set interface ip address pg0 192.0.2.1/24");
    assert!(default().contains("drop (interface-down)"), "{}", default());
    daemon.ok("set interface state pg0 up");
    assert!(!default().contains("drop ("), "{}", default());
}

fn drops(daemon: &Daemon) -> Vec<Value> {
    daemon.json("show drops")["drops"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn a_quiet_lan_has_no_drops() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    // Ignores frames from before the interfaces were up.
    daemon.ok("clear errors");
    daemon.ok("clear interfaces");
    let solicit = "r=socket.socket(socket.AF_INET6,socket.SOCK_RAW,58); r.setsockopt(41,18,255)\n\
        r.sendto(b'\\x85'+bytes(7),('ff02::2',0,0,socket.if_nametoindex('e')))\n";
    assert!(bed.python("a", solicit).wait().unwrap().success());
    // Duplicate address detection, MLD reports and router solicitations of a kernel host.
    bed.ip("a", "addr add 2001:db8:77::99/64 dev e");
    std::thread::sleep(Duration::from_secs(4));
    let counted = daemon.json("show errors")["errors"].to_string();
    assert!(
        counted.contains("\"not-nd\""),
        "the host sent nothing: {counted}"
    );
    assert_eq!(drops(&daemon), [Value::Null; 0]);
    let rows = daemon.json("show interface left");
    assert_eq!(rows["interfaces"][0]["drops"], 0);
    // An interface without IPv6 does not count the messages of its hosts as drops.
    daemon.ok("set interface ip6 address del left 2001:db8:77::1/64");
    bed.ip("a", "addr add 2001:db8:77::98/64 dev e");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(drops(&daemon), [Value::Null; 0]);
}

#[test]
fn packets_that_the_kernel_drops_have_an_interface() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    signal(daemon.pid(), "STOP");
    let flood = "s.settimeout(5)\nfor n in range(40000):\n\
        \x20 s.send(b'\\x02'*6+me[:6]+b'\\x08\\x00'+b'\\0'*1400)\n";
    let done = bed.python("a", flood).wait_with_output().unwrap();
    signal(daemon.pid(), "CONT");
    assert!(done.status.success());
    let mut left = None;
    soon("kernel-drops of left", || {
        let rows = drops(&daemon);
        let mut rows = rows.into_iter().filter(|d| d["reason"] == "kernel-drops");
        left = rows.next();
        left.is_some()
    });
    assert_eq!(left.unwrap()["interface"], "left");
    let row = daemon.json("show interface left")["interfaces"][0].clone();
    assert!(row["more"].to_string().contains("kernel-drops"), "{row}");
}

#[test]
fn link_local_addresses_that_the_kernel_makes_are_no_configuration() {
    let Some(bed) = Bed::new() else { return };
    let (daemon, space) = (bed.router(), Space::new(bed.name("k")).unwrap());
    daemon.ok("set interface ip6 address del left 2001:db8:77::1/64");
    daemon.ok(&format!("lcp create left host-if left netns {}", space.0));
    space.ip("link set left up");
    let automatic = || {
        let row = daemon.json("show interface left")["interfaces"][0].clone();
        (row["automatic"].to_string(), row["addresses"].to_string())
    };
    soon("the address of the kernel", || {
        automatic().0.contains("fe80::")
    });
    in_step(&daemon);
    let (_, configured) = automatic();
    assert!(!configured.contains("fe80"), "{configured}");
    let config = daemon.ok("config show");
    assert!(!config.contains("fe80"), "{config}");
    // The address is used nevertheless: the host reaches it.
    let near = || space.ip("-6 -o addr show left scope link");
    soon("its use by the kernel", || !near().contains("tentative"));
    let kernel = near();
    let near = kernel
        .split_whitespace()
        .find(|w| w.starts_with("fe80"))
        .unwrap();
    let near = near.split('/').next().unwrap();
    assert!(
        bed.pings("a", &format!("{near}%e"), 5, "0.3") >= 3,
        "{kernel}"
    );
    // A link-local address of the operator is configuration.
    space.ip("addr add fe80::77/64 dev left");
    soon("the address that was given", || {
        daemon.ok("config show").contains("fe80::77/64")
    });
    space.ip("link set left down");
    soon("no address", || automatic().0 == "[]");
}

#[test]
fn a_file_that_was_edited_after_the_commit_is_told_of_at_start() {
    let (state, folder) = (Folder::new(), Folder::new());
    let (file, socket) = (shown(&folder.file("v.toml")), shown(&folder.file("s")));
    let place = shown(&state.0);
    let daemon = Daemon::start(TWO, &["--state-dir", &place]);
    daemon.ok("config commit");
    drop(daemon);
    for (text, differs) in [(TWO.to_owned(), false), (TWO.replace("pg1", "pg2"), true)] {
        std::fs::write(&file, text).unwrap();
        let log = folder.file("log");
        let to = format!("file:{}", log.display());
        let args = [
            "run",
            "-c",
            &file,
            "--socket",
            &socket,
            "--state-dir",
            &place,
            "--log-to",
            &to,
        ];
        let mut child = Command::new(env!("CARGO_BIN_EXE_volley"))
            .args(args)
            .spawn()
            .unwrap();
        let message = || std::fs::read_to_string(&log).unwrap_or_default();
        soon("the start", || message().contains("ready, control socket"));
        signal(child.id(), "TERM");
        child.wait().unwrap();
        let hint = format!("`volley config commit {file}` applies it");
        assert_eq!(message().contains(&hint), differs, "{}", message());
        std::fs::remove_file(&log).unwrap();
    }
}

#[test]
fn interfaces_are_a_line_each_with_rates_and_a_description() {
    let mut daemon = Daemon::start(TWO, &[]);
    daemon.ok("set interface description pg0 to-AS64500");
    let args = "limit 100000000 rate 1000 template { eth / payload 86 }";
    daemon.ok(&format!("packet-generator new name s interface pg0 {args}"));
    daemon.ok("packet-generator enable s");
    let rates = |d: &Daemon| d.json("show interface pg0")["interfaces"][0]["rates"].clone();
    daemon.wait_for("rates of three spans", |d| {
        rates(d)
            .as_array()
            .is_some_and(|all| all.len() == 3 && all[1]["rx_pps"].as_u64() > Some(500))
    });
    // Frames of 100 bytes, a thousand a second.
    let ten = rates(&daemon)[1].clone();
    assert_eq!(ten["span_s"], 10);
    let (pps, bps) = (
        ten["rx_pps"].as_u64().unwrap(),
        ten["rx_bps"].as_u64().unwrap(),
    );
    assert!((500..=1500).contains(&pps), "{ten}");
    assert!(bps.abs_diff(pps * 800) <= pps * 8, "{ten}");
    let all = daemon.ok("show interfaces");
    let line = all.lines().find(|l| l.starts_with("pg0")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        (words[1], words[3], words[10]),
        ("up", "-", "to-AS64500"),
        "{all}"
    );
    assert!(all.lines().all(|l| l.chars().count() <= 80), "{all}");
    assert_eq!(
        all.lines().filter(|l| l.starts_with("pg")).count(),
        2,
        "{all}"
    );
    let detail = daemon.ok("show interfaces detail");
    assert!(
        detail.contains("pg0: 60 s: in ") && detail.contains("rx packets"),
        "{detail}"
    );
    assert!(
        daemon
            .ok("config show")
            .contains("description = \"to-AS64500\"")
    );
    daemon.ok("delete interface description pg0");
    assert!(!daemon.ok("show interfaces").contains("AS64500"));
}

#[test]
fn routes_are_a_line_each_and_errors_are_in_columns() {
    let daemon = Daemon::start(TWO, &[]);
    daemon.ok("ip route add 10.0.0.0/8 via 192.0.2.9 weight 2 via 198.51.100.9");
    let all = daemon.ok("show ip fib");
    let line = "10.0.0.0/8 via 192.0.2.9 weight 2 via 198.51.100.9 proto static\n";
    assert!(all.contains(line), "{all}");
    assert!(!all.contains("load-balance"), "{all}");
    assert!(daemon.ok("show ip fib detail").contains("load-balance"));
    assert!(daemon.ok("show ip fib 10.0.0.0/8").contains("load-balance"));
    let arguments = "limit 3 template { eth dst 02:00:00:00:00:99 / payload 86 }";
    daemon.ok(&format!(
        "packet-generator new name s interface pg0 {arguments}"
    ));
    daemon.ok("packet-generator enable s");
    soon("a fault", || {
        daemon.ok("show errors").contains("ethernet-input")
    });
    let errors = daemon.ok("show errors");
    assert!(errors.lines().all(|l| l.chars().count() <= 80), "{errors}");
    let at = errors.lines().next().unwrap().find("Severity").unwrap();
    let row = errors
        .lines()
        .find(|l| l.contains("ethernet-input"))
        .unwrap();
    assert!(
        row[at..].starts_with("error") || row[at..].starts_with("warn"),
        "{errors}"
    );
}

#[test]
fn pings_print_answers_as_they_come_until_ctrl_c() {
    use std::io::{BufRead, BufReader};
    let daemon = Daemon::start(TWO, &[]);
    let socket = shown(&daemon.folder.file("s"));
    let words = [
        "ctl",
        "ping",
        "192.0.2.1",
        "count",
        "0",
        "interval",
        "200",
        "--socket",
        &socket,
    ];
    let mut child = Command::new(env!("CARGO_BIN_EXE_volley"))
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        line
    };
    assert!(line().starts_with("192.0.2.1 from 192.0.2.1: 56 bytes"));
    // A run without an end: these packets come while it runs.
    for number in 0..4 {
        let answer = line();
        assert!(
            answer.starts_with(&format!("{number}: from 192.0.2.1, hops ")),
            "{answer}"
        );
    }
    signal(child.id(), "INT");
    let rest = [line(), line()].concat();
    assert!(
        rest.contains(" received, 0 lost; least, mean, most: "),
        "{rest}"
    );
    assert!(child.wait().unwrap().success());
    let trace = daemon.ok("traceroute 192.0.2.1 probes 1");
    assert!(trace.contains("\n 1  192.0.2.1 "), "{trace}");
    // A pipe or JSON gets the whole reply at the end.
    assert_eq!(
        daemon.json("ping 192.0.2.1 count 2 interval 10")["received"],
        2
    );
}

#[test]
fn words_of_other_routers_are_understood_or_answered() {
    let daemon = Daemon::start(TWO, &[]);
    for (line, same) in [
        ("show ip route", "show ip fib"),
        ("show arp", "show ip neighbors"),
        ("show mac address-table", "show l2fib"),
        ("show running-config", "config show"),
        (
            "show running-config | include pg1",
            "config show | include pg1",
        ),
    ] {
        assert_eq!(daemon.ok(line), daemon.ok(same), "{line}");
    }
    for (line, hint) in [
        ("no ip route 10.0.0.0/8", "`... del ...`"),
        ("show vlan", "sub-interfaces"),
        ("configure terminal", "`config commit`"),
        ("show interafces", "did you mean 'interface"),
        ("ste interface state pg0 up", "did you mean 'set'"),
    ] {
        let error = daemon.refused(line);
        assert!(error.contains(hint), "{line}: {error}");
    }
    assert_eq!(daemon.ok("config show | head 1").lines().count(), 1);
    let last = daemon.ok("config show | begin pg1 | include name | tail 1");
    assert!(last.contains("pg1"), "{last}");
    assert!(!daemon.ok("config show | exclude pg1").contains("pg1"));
}

#[test]
fn the_socket_may_be_named_anywhere() {
    let daemon = Daemon::start(TWO, &[]);
    let socket = shown(&daemon.folder.file("s"));
    let equal = format!("--socket={socket}");
    for words in [
        &["ctl", "show", "version", "--socket", &socket][..],
        &["ctl", "show", &equal, "version"],
        &["--socket", &socket, "ctl", "show", "version"],
        &[&equal, "config", "show"],
    ] {
        let output = volley(words);
        assert!(
            output.status.success(),
            "{words:?}: {}",
            text(&output.stderr)
        );
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_volley"));
    command
        .args(["ctl", "show", "version"])
        .env("VOLLEY_SOCKET", &socket);
    assert!(command.status().unwrap().success());
}

#[test]
fn a_client_stays_when_its_daemon_is_restarted() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new();
    let (file, socket) = (shown(&folder.file("v.toml")), shown(&folder.file("s")));
    std::fs::write(&file, TWO).unwrap();
    let start = || {
        let args = ["run", "-c", &file, "--socket", &socket, "--log-to", "none"];
        let child = Command::new(env!("CARGO_BIN_EXE_volley"))
            .args(args)
            .spawn()
            .unwrap();
        soon("the socket", || {
            std::os::unix::net::UnixStream::connect(&socket).is_ok()
        });
        child
    };
    let mut daemon = start();
    let mut client = Command::new(env!("CARGO_BIN_EXE_volley"))
        .args(["ctl", "--socket", &socket])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = client.stdin.take().unwrap();
    let mut output = BufReader::new(client.stdout.take().unwrap());
    let mut ask = || {
        input.write_all(b"show version | count\n").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    let before = ask();
    assert!(before.trim().parse::<u32>().is_ok(), "{before}");
    signal(daemon.id(), "TERM");
    daemon.wait().unwrap();
    let mut daemon = start();
    let after = ask();
    signal(daemon.id(), "TERM");
    daemon.wait().unwrap();
    assert_eq!(after, before);
    let _ = client.kill();
    let _ = client.wait();
}

/// Sets the speed of a tap as its owner: `struct ethtool_link_settings`, read and written.
const SET_SPEED: &str = "import fcntl, socket, struct, sys
s = socket.socket()
name, speed = sys.argv[1], int(sys.argv[2])
import ctypes
def call(buffer):
    address = ctypes.addressof(buffer)
    fcntl.ioctl(s, 0x8946, struct.pack('16sQ8x', name.encode(), address))
b = ctypes.create_string_buffer(2048)
struct.pack_into('I', b, 0, 0x4c)
call(b)
words = -struct.unpack_from('b', b, 15)[0]
struct.pack_into('I', b, 0, 0x4c)
struct.pack_into('b', b, 15, words)
call(b)
struct.pack_into('II', b, 0, 0x4d, speed)
call(b)
";

#[test]
fn speeds_are_those_of_the_devices() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    let space = bed.name("b");
    daemon.ok(&format!(
        "create tap name t0 host-if-name t0 host-ns {space}"
    ));
    daemon.ok("set interface state t0 up");
    daemon.ok("create packet-generator interface pg0");
    daemon.ok("create sub-interfaces left 7");
    let speed = |name: &str| {
        let row = daemon.json(&format!("show interface {name}"))["interfaces"][0].clone();
        row["speed_bps"].as_u64()
    };
    let kernel = |at: &str, device: &str| {
        let message = bed.exec(at, 10, &["cat", &format!("/sys/class/net/{device}/speed")]);
        let mbps: u64 = text(&message.stdout).trim().parse().unwrap();
        mbps * 1_000_000
    };
    assert_eq!(speed("left"), Some(kernel("r", "left")));
    assert_eq!(speed("left.7"), speed("left"));
    assert_eq!(speed("pg0"), None);
    assert_eq!(speed("t0"), Some(kernel("b", "t0")));
    let python = support::oracle::python().unwrap();
    for mbps in [100u64, 25_000, 2_500] {
        let message = bed.exec(
            "b",
            20,
            &[
                python.to_str().unwrap(),
                "-c",
                SET_SPEED,
                "t0",
                &mbps.to_string(),
            ],
        );
        assert!(message.status.success(), "{}", text(&message.stderr));
        assert_eq!(speed("t0"), Some(mbps * 1_000_000));
        assert_eq!(kernel("b", "t0"), mbps * 1_000_000);
    }
    let all = daemon.ok("show interfaces");
    let column = |name: &str| {
        let line = all.lines().find(|l| l.split(' ').next() == Some(name));
        line.unwrap().split_whitespace().nth(3).unwrap().to_owned()
    };
    assert_eq!(
        (column("t0").as_str(), column("pg0").as_str()),
        ("2.5G", "-"),
        "{all}"
    );
    assert_eq!(
        all.lines().next().unwrap().split_whitespace().nth(3),
        Some("Speed")
    );
    assert!(all.lines().all(|l| l.chars().count() <= 80), "{all}");
}
