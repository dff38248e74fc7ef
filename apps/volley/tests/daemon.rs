//! The daemon as operators use it: started with a file, controlled by `volley ctl`, stopped by a signal.

mod support;

use support::{Daemon, Folder, frames, text, volley};

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
capture = "@/out.pcap"

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

/// A stream of `packets` packets to 10.0.0.1.
fn stream(name: &str, packets: u32) -> String {
    let packet =
        "{ eth dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 10.0.0.1 / udp / payload 20 }";
    format!("packet-generator new name {name} interface pg0 limit {packets} template {packet}")
}

/// The number of prefixes in the IPv4 table.
fn prefixes(daemon: &Daemon) -> u64 {
    daemon.json("show tables")["tables"][0]["prefixes"]
        .as_u64()
        .unwrap()
}

#[test]
fn every_show_command_answers_in_text_and_json() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    daemon.wait_for_answer("show interfaces detail", "1000");
    let wanted = [
        ("show version", "vector size 256"),
        ("show interfaces", "pg1"),
        ("show interfaces pg0", "rx packets"),
        ("show interface address", "192.0.2.1/24"),
        ("show interface features pg0", "ip4-unicast"),
        ("show hardware", "02:fe:00:00:00:02"),
        ("show runtime", "ip4-lookup"),
        ("show runtime verbose", "ip6-lookup"),
        ("show errors", "no counter"),
        ("show drops", "no packet was dropped"),
        ("show trace", "No packets"),
        ("show node ip4-lookup", "1000 vectors"),
        ("show graph", "ip4-rewrite"),
        ("show graph dot", "digraph"),
        ("show ip fib", "10.0.0.0/8"),
        ("show ip fib 10.0.0.0/8", "via 198.51.100.2 pg1"),
        ("show ip fib 10.1.2.3", "10.0.0.0/8"),
        ("show ip fib summary", "/24"),
        ("show ip6 fib 2001:db8:8::1", "2001:db8:8::/48"),
        ("show ip neighbors", "02:aa:00:00:00:02"),
        ("show ip6 neighbors", "2001:db8:1::2"),
        ("show tables", "IPv6"),
        ("show buffers", "16384"),
        ("show memory", "without packet buffers"),
        ("show packet-generator", "s0"),
        ("show features", "ip6-unicast"),
        ("show l2", "no L2"),
        ("show pcap trace", "no capture"),
    ];
    for (line, part) in wanted {
        let answer = daemon.ok(line);
        assert!(answer.contains(part), "`{line}`: {answer}");
        assert!(daemon.json(line).is_object(), "`{line}`");
    }
    assert_eq!(
        daemon.json("show interfaces")["interfaces"][1]["tx"]["packets"],
        1000
    );
    daemon.stop("TERM");
    assert_eq!(frames(&daemon.folder.file("out.pcap")).len(), 1000);
}

#[test]
fn routes_come_and_go_by_the_thousand() {
    let daemon = Daemon::start(CONFIG, &[]);
    let before = prefixes(&daemon);
    daemon.ok("ip route add 10.9.0.0/24 via 198.51.100.2 pg1 count 1000");
    assert_eq!(prefixes(&daemon), before + 1000);
    assert!(daemon.ok("show ip fib 10.9.7.7").contains("10.9.7.0/24"));
    daemon.ok("ip route del 10.9.0.0/24 count 1000");
    assert_eq!(prefixes(&daemon), before);
    assert!(daemon.ok("show ip fib 10.9.7.7").contains("10.0.0.0/8"));
}

#[test]
fn packets_are_traced_captured_counted_and_cleared() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    daemon.wait_for_answer("show interfaces detail", "1000");
    let file = daemon.folder.file("t.pcap");
    daemon.ok(&stream("s1", 20));
    daemon.ok("trace add pg-input 5");
    daemon.ok(&format!("pcap trace rx tx max 100 file {}", file.display()));
    daemon.ok("packet-generator enable s1");
    daemon.wait_for_answer("pcap trace status", "40 packets");
    let trace = daemon.ok("show trace max 1");
    let path = [
        "pg-input",
        "ethernet-input",
        "ip4-input",
        "ip4-lookup",
        "ip4-rewrite",
        "interface-output",
        "pg1-tx",
    ];
    let found: Vec<_> = path
        .iter()
        .map(|node| trace.find(&format!(": {node}\n")).expect(node))
        .collect();
    assert!(found.is_sorted(), "{trace}");
    assert_eq!(
        daemon.json("show trace")["packets"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
    daemon.ok("pcap trace off");
    let frames = frames(&file);
    assert_eq!(frames.len(), 40);
    let leaving: Vec<_> = frames
        .iter()
        .filter(|f| f[..6] == [2, 0xaa, 0, 0, 0, 2])
        .collect();
    assert_eq!(
        (leaving.len(), leaving[0].len(), leaving[0][22]),
        (20, 62, 63)
    );
    assert_eq!(
        daemon.json("show packet-generator")["streams"][1]["sent"],
        20
    );
    daemon.ok("packet-generator disable s1");
    daemon.ok("packet-generator delete s1");
    for what in ["runtime", "errors", "interfaces", "trace"] {
        daemon.ok(&format!("clear {what}"));
    }
    assert!(daemon.ok("show trace").contains("No packets"));
    assert_eq!(
        daemon.json("show interfaces")["interfaces"][0]["rx"]["packets"],
        0
    );
    assert!(!daemon.ok("show runtime").contains("ip4-lookup"));
}

#[test]
fn features_and_patches_change_the_way_of_packets() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    daemon.wait_for_answer("show interfaces detail", "1000");
    daemon.ok("set interface feature pg0 ip4-not-enabled arc ip4-unicast");
    daemon.ok(&stream("off", 7));
    daemon.ok("packet-generator enable off");
    daemon.wait_for_answer("show drops", "not-enabled");
    assert_eq!(daemon.json("show drops")["drops"][0]["count"], 7);
    daemon.ok("set interface feature pg0 ip4-not-enabled arc ip4-unicast disable");
    daemon.ok("clear interfaces");
    daemon.ok(&stream("on", 8));
    daemon.ok("packet-generator enable on");
    daemon.wait_for("8 packets", |d| {
        d.json("show interfaces")["interfaces"][1]["tx"]["packets"] == 8
    });

    daemon.ok("test l2patch rx pg0 tx pg1");
    assert!(daemon.ok("show l2patch").contains("patch"));
    daemon.ok("clear runtime");
    daemon.ok(&stream("patched", 9));
    daemon.ok("packet-generator enable patched");
    daemon.wait_for("9 packets", |d| {
        d.json("show interfaces")["interfaces"][1]["tx"]["packets"] == 17
    });
    let runtime = daemon.ok("show runtime");
    assert!(
        runtime.contains("l2-patch") && !runtime.contains("ip4-lookup"),
        "{runtime}"
    );
    daemon.ok("test l2patch rx pg0 tx pg1 del");
    assert!(!daemon.ok("show l2patch").contains("pg0"));
}

#[test]
fn a_bad_line_gets_one_sentence_and_changes_nothing() {
    let daemon = Daemon::start(CONFIG, &[]);
    let fib = daemon.ok("show ip fib");
    let streams = daemon.json("show packet-generator")["streams"]
        .as_array()
        .unwrap()
        .len();
    let wanted = [
        ("ip route add 10.0.0.1/8 via 198.51.100.2 pg1", "column 14"),
        (
            "ip route add 10.1.0.0/16 via 198.51.100.2 pg9",
            "there is no interface pg9",
        ),
        (
            "ip route add 10.1.0.0/16 via 2001:db8:1::2 pg1",
            "not supported",
        ),
        ("ip route add 10.1.0.0/16", ""),
        (
            "ip route add 255.255.255.0/24 via 198.51.100.2 pg1 count 1000",
            "",
        ),
        ("ip route del 11.0.0.0/8", "no route"),
        ("ip route load /nowhere via 198.51.100.2 pg1", "/nowhere"),
        ("set interface state pg7 up", "pg7"),
        ("set ip neighbor pg1 198.51.100.3 02:fe:00", ""),
        (
            "packet-generator new name s1 interface pg0 template { eth / ip5 }",
            "'ip5' is not a layer",
        ),
        (
            "packet-generator new name s0 interface pg0 template { eth }",
            "exists already",
        ),
        ("packet-generator enable s7", "s7"),
        ("trace add no-such-node 5", "no-such-node"),
        ("show node no-such-node", "no-such-node"),
        ("test l2patch rx pg0 tx pg7", "pg7"),
        (
            "set interface feature pg0 nothing arc ip4-unicast",
            "nothing",
        ),
        ("pcap trace rx file /nowhere/at/all.pcap", "/nowhere"),
        ("shwo version", "column 1"),
    ];
    for (line, part) in wanted {
        let error = daemon.refused(line);
        assert!(
            error.starts_with("volley: ") && error.contains(part),
            "`{line}`: {error}"
        );
    }
    assert_eq!(daemon.ok("show ip fib"), fib);
    assert_eq!(
        daemon.json("show packet-generator")["streams"]
            .as_array()
            .unwrap()
            .len(),
        streams
    );
    assert!(daemon.ok("show l2").contains("no L2"));
}

#[test]
fn a_bad_configuration_is_refused_with_its_place_and_leaves_nothing() {
    let folder = Folder::new();
    let (file, socket) = (folder.file("bad.toml"), folder.file("s"));
    let (path, socket_path) = (file.display().to_string(), socket.display().to_string());
    let run = || volley(&["run", "-c", &path, "--socket", &socket_path]);
    let cases = [
        (
            "[[route]]\nprefix = \"10.0.0.1/8\"\naction = \"drop\"\n",
            "bad.toml:2:10: route.prefix",
        ),
        (
            "[engine]\nvector_size = 0\n",
            "bad.toml:2:15: engine.vector_size",
        ),
        (
            "[[route_file]]\npath = \"/nowhere\"\npaths = [{ action = \"drop\" }]\n",
            "/nowhere",
        ),
        ("[[interface]\n", "bad.toml:1:"),
    ];
    for (config, place) in cases {
        std::fs::write(&file, config).unwrap();
        let output = run();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{config}: {error}");
        // One sentence beside the lines of the log, which begin with a time.
        let reported: Vec<&str> = error.lines().filter(|l| !l.starts_with("20")).collect();
        assert_eq!(reported.len(), 1, "{error}");
        assert!(reported[0].contains(place), "{config}: {error}");
        assert!(!socket.exists());
    }
    std::fs::write(&file, "[engine]\n").unwrap();
    assert!(volley(&["config", "check", &path]).status.success());
    std::fs::write(&file, "[engin]\n").unwrap();
    let output = volley(&["config", "check", &path]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("bad.toml:1:2"),
        "{}",
        text(&output.stderr)
    );
    assert!(
        text(&volley(&["ctl", "--socket", &socket_path, "show", "version"]).stderr)
            .contains("cannot reach")
    );
}

#[test]
fn settings_of_the_command_line_win_and_signals_end_it() {
    let mut daemon = Daemon::start(
        "[engine]\nvector_size = 64\n",
        &["--vector-size", "16", "--isa", "scalar"],
    );
    let version = daemon.json("show version");
    assert_eq!(
        (&version["vector_size"], version["isa"].as_str()),
        (&16.into(), Some("scalar"))
    );
    let second = volley(&[
        "run",
        "-c",
        &daemon.folder.file("volley.toml").display().to_string(),
        "--socket",
        &daemon.folder.file("s").display().to_string(),
    ]);
    assert_eq!(second.status.code(), Some(1));
    assert!(
        text(&second.stderr).contains("another program serves this socket"),
        "{}",
        text(&second.stderr)
    );
    daemon.stop("INT");
}

#[test]
fn an_interface_lives_through_its_changes() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    daemon.wait_for_answer("show interfaces detail", "1000");
    daemon.ok("set interface name pg1 uplink0");
    assert!(daemon.ok("show ip fib 10.1.2.3").contains("uplink0"));
    assert!(daemon.ok("show node uplink0-tx").contains("uplink0-tx"));
    let error = daemon.refused("set interface name uplink0 pg0");
    assert!(error.contains("exists already"), "{error}");
    assert!(
        daemon
            .refused("show interfaces pg1")
            .contains("no interface pg1")
    );
    daemon.ok("set interface promiscuous on pg0");
    daemon.ok(
        "packet-generator new name other interface pg0 limit 3 template { eth dst 02:00:00:00:77:77 / \
         ip4 src 192.0.2.9 dst 10.0.0.1 / udp / payload 20 }",
    );
    assert!(daemon.ok("show hardware pg0").contains("promiscuous"));
    daemon.ok("packet-generator enable other");
    daemon.wait_for_answer("show interfaces uplink0", "1003");
    daemon.ok("packet-generator delete other");
    daemon.ok("packet-generator delete s0");
    daemon.ok("set interface name pg0 spare0");
    daemon.ok("delete interface spare0");
}

#[test]
fn the_doctor_answers_in_text_and_json() {
    let out = volley(&["doctor"]);
    assert!(out.status.success());
    let out = text(&out.stdout);
    assert!(
        out.contains("huge pages") && out.contains(" missing; "),
        "{out}"
    );
    let json: serde_json::Value =
        serde_json::from_slice(&volley(&["doctor", "--json"]).stdout).unwrap();
    let findings = json["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 19);
    for finding in findings {
        let ok = finding["state"] == "ok";
        assert_eq!(finding["fix"].is_null(), ok, "{finding}");
    }
}
