//! Plugins in a running daemon: commands, file, HTTP, replacement under traffic, a panic.

mod support;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;
use support::{
    Daemon, Folder,
    http::Http,
    traffic::{drain, packets},
};

const CONFIG: &str = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\nmac = \"02:00:00:00:00:01\"\naddresses = [\"10.0.0.1/24\"]\n\
    [[interface]]\nname = \"pg1\"\nkind = \"pg\"\naddresses = [\"10.0.1.1/24\"]\n\
    [[neighbor]]\ninterface = \"pg1\"\naddress = \"10.0.1.2\"\nmac = \"02:00:00:00:00:02\"\n";
const STREAM: &str = "packet-generator new name s interface pg0 \
    template { eth dst 02:00:00:00:00:01 / ip4 src 10.0.0.9 dst 10.0.1.2 / udp / payload 20 }";
const FEATURE: &str = "set interface feature pg0 stamp arc ip4-unicast";
/// Most memory in kB that 200 replacements may add.
const MORE_KB: u64 = 4096;

/// The shared library of `volley-plugin-sample`; VOLLEY_SAMPLE names one that was built outside of the workspace.
fn sample() -> PathBuf {
    if let Some(outside) = std::env::var_os("VOLLEY_SAMPLE") {
        return outside.into();
    }
    let test = std::env::current_exe().unwrap();
    test.with_file_name("libvolley_plugin_sample.so")
}

fn load(name: &str) -> String {
    format!("plugin load {} name {name}", sample().display())
}

/// Memory of the daemon in use.
fn resident_kb(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let words = line.unwrap().split_whitespace().next().unwrap();
    words.parse().unwrap()
}

fn states(daemon: &Daemon) -> Vec<String> {
    let shown = daemon.json("show plugins");
    let rows = shown["plugins"].as_array().unwrap().iter();
    rows.map(|it| format!("{} {}", it["name"], it["state"]).replace('"', ""))
        .collect()
}

#[test]
fn replacements_under_traffic_lose_no_packet() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    daemon.ok(&load("ip4"));
    daemon.ok(FEATURE);
    daemon.ok(STREAM);
    daemon.ok("packet-generator enable");
    // Two paths of the same file: an object that does not change is no change.
    let other = daemon.folder.file("other.so");
    fs::copy(sample(), &other).unwrap();
    let replace = |daemon: &mut Daemon, times: usize| {
        for n in 0..times {
            let path = if n % 2 == 0 { &other } else { &sample() };
            daemon.ok(&format!("plugin replace ip4 {}", path.display()));
        }
        daemon.wait_for("old versions unmapped", |d| states(d) == ["ip4 loaded"]);
        resident_kb(daemon)
    };
    let before = replace(&mut daemon, 50);
    let (packets_before, start) = (packets(&daemon, "pg1", "tx"), Instant::now());
    let after = replace(&mut daemon, 200);
    let took = start.elapsed();
    let rate = (packets(&daemon, "pg1", "tx") - packets_before) as f64 / took.as_secs_f64();
    assert!(after < before + MORE_KB, "{before} kB, then {after} kB");
    let (received, sent) = drain(&mut daemon);
    assert!(received > 1000, "{received}");
    assert_eq!(received, sent);
    let shown = daemon.json("show interface pg0");
    assert_eq!(shown["interfaces"][0]["drops"], 0, "{shown}");
    daemon.stop("TERM");
    // `cargo xtask show nodes --only traffic` reads this line.
    println!(
        "figures: 200 replacements in {:.1} s at {:.2} Mpps, {received} packets received, {} lost, memory {before} kB before and {after} kB after (bars: none lost, {MORE_KB} kB more)",
        took.as_secs_f64(),
        rate / 1e6,
        received - sent
    );
}

#[test]
fn a_plugin_is_an_object_in_every_face() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    daemon.ok(&load("ip4"));
    daemon.ok(FEATURE);
    let written = daemon.ok("config show");
    assert!(written.contains("[[plugin]]"), "{written}");
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    assert_eq!(http.get("/v1/plugin/ip4")["name"], "ip4");
    assert_eq!(
        http.get("/v1/show/plugins")["plugins"][0]["nodes"][0]["name"],
        "stamp"
    );
    let refused = daemon.refused("plugin unload ip4");
    assert!(refused.contains("is enabled on an interface"), "{refused}");
    let refused = daemon.refused(&load("other"));
    assert!(refused.contains("node `stamp` exists already"), "{refused}");
    let refused = daemon.refused("plugin load /etc/hostname name text");
    assert!(
        refused.contains("plugin text is not valid: it is no shared library"),
        "{refused}"
    );
    daemon.ok(&format!("{FEATURE} disable"));
    daemon.ok("plugin unload ip4");
    daemon.wait_for("code unmapped", |d| states(d).is_empty());
    let maps = fs::read_to_string(format!("/proc/{}/maps", daemon.pid())).unwrap();
    assert!(!maps.contains("volley-plugin"), "{maps}");
    daemon.stop("TERM");
}

#[test]
fn a_file_with_a_plugin_and_its_feature_starts() {
    let path = sample();
    let more = format!(
        "[[plugin]]\nname = \"ip4\"\npath = \"{}\"\n\
         [[feature]]\ninterface = \"pg0\"\narc = \"ip4-unicast\"\nfeature = \"stamp\"\n",
        path.display()
    );
    let mut daemon = Daemon::start(&format!("{CONFIG}{more}"), &[]);
    assert_eq!(states(&daemon), ["ip4 loaded"]);
    daemon.ok(STREAM);
    daemon.ok("packet-generator enable");
    daemon.wait_for("packets", |d| packets(d, "pg1", "tx") > 1000);
    let (received, sent) = drain(&mut daemon);
    assert_eq!(received, sent);
    daemon.stop("TERM");
}

#[test]
fn a_panic_in_a_node_leaves_a_router_that_goes_on() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    daemon.ok(&load("ip4-panics"));
    daemon.ok(FEATURE);
    daemon.ok(STREAM);
    daemon.ok("packet-generator enable");
    daemon.wait_for("a panic", |d| {
        d.ok("show plugins").contains("stamp is out of ink")
    });
    daemon.wait_for("drops by name", |d| {
        d.ok("show errors").contains("panicked")
    });
    daemon.ok(&format!("{FEATURE} disable"));
    daemon.ok("plugin unload ip4-panics");
    let before = packets(&daemon, "pg1", "tx");
    daemon.wait_for("packets", |d| packets(d, "pg1", "tx") > before + 1000);
    daemon.stop("TERM");
}

/// A counter of a node.
fn counted(daemon: &Daemon, node: &str, reason: &str) -> u64 {
    let all = daemon.json("show errors");
    let rows = all["errors"].as_array().unwrap().iter();
    let ours = rows.filter(|it| it["node"] == node && it["reason"] == reason);
    ours.map(|it| it["count"].as_u64().unwrap()).sum()
}

/// Sends ten packets to the router by a stream of this name; `rest` is what follows the Ethernet header.
fn one(daemon: &Daemon, name: &str, rest: &str) {
    daemon.ok(&format!(
        "packet-generator new name {name} interface pg0 limit 10 template {{ eth dst 02:00:00:00:00:01 / {rest} }}"
    ));
    daemon.ok(&format!("packet-generator enable {name}"));
}

/// Lines of `show graph` with the nodes of the guest, and those of the nodes that it changes.
fn graph(daemon: &Daemon) -> String {
    let shown = daemon.json("show graph");
    let nodes = shown["nodes"].as_array().unwrap().iter();
    let ours = |it: &&serde_json::Value| {
        let name = it["name"].as_str().unwrap();
        name.starts_with("guest-") || ["ip4-rewrite", "ip4-icmp-echo-request"].contains(&name)
    };
    nodes.filter(ours).map(ToString::to_string).collect()
}

const PING: &str = "ip4 src 10.0.0.9 dst 10.0.0.1 / icmp type 8 / payload 20";
const ECHO: &str = "ip4-icmp-echo-request";

/// A daemon with the plugin `guest` and packets from pg0 to pg1; what was shown before the plugin.
fn with_guest() -> (Daemon, [String; 2]) {
    let mut daemon = Daemon::start(CONFIG, &[]);
    let before = [graph(&daemon), daemon.ok("show features")];
    daemon.ok("set ip neighbor pg0 10.0.0.9 02:00:00:00:00:09");
    daemon.ok(STREAM);
    daemon.ok("packet-generator enable");
    daemon.wait_for("packets", |d| packets(d, "pg1", "tx") > 100);
    daemon.ok(&load("guest"));
    daemon.wait_for("packets by the stage", |d| {
        counted(d, "guest-late", "seen") > 100
    });
    (daemon, before)
}

#[test]
fn a_plugin_brings_sources_stages_arcs_edges_and_goes_without_a_trace() {
    let (mut daemon, before) = with_guest();
    // The source, the verb that drives it, the receiver of an EtherType.
    let refused = daemon.refused("guest receive 0 pg0");
    assert!(refused.contains("1 to 1000000"), "{refused}");
    let refused = daemon.refused("guest receive 13 pg0");
    assert!(refused.contains("13 frames are too many"), "{refused}");
    daemon.ok("guest receive 100 pg0");
    daemon.wait_for("frames", |d| counted(d, "guest-gate", "seen") == 100);
    assert_eq!(counted(&daemon, "guest-input", "seen"), 100);
    assert_eq!(counted(&daemon, "guest-mark", "seen"), 0);
    // The arc and its feature; the verb by HTTP.
    daemon.ok("set interface feature pg0 guest-mark arc guest-arc");
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    let body = br#"{"times": 50, "interface": "pg0"}"#;
    assert!(http.call("POST", "/v1/do/guest-receive", body).0 < 300);
    daemon.wait_for("marks", |d| counted(d, "guest-mark", "seen") == 50);
    let document = http.get("/v1/openapi.json").to_string();
    assert!(document.contains("Receive frames on an interface."));
    // Versions follow each other while packets flow.
    let other = daemon.folder.file("other.so");
    fs::copy(sample(), &other).unwrap();
    for n in 0..20 {
        let path = if n % 2 == 0 { &other } else { &sample() };
        daemon.ok(&format!("plugin replace guest {}", path.display()));
    }
    daemon.ok("guest receive 10 pg0");
    daemon.wait_for("marks of the last version", |d| {
        counted(d, "guest-mark", "seen") == 60
    });
    let refused = daemon.refused("plugin unload guest");
    assert!(refused.contains("is enabled on an interface"), "{refused}");
    daemon.ok("set interface feature pg0 guest-mark arc guest-arc disable");
    daemon.ok("plugin unload guest");
    daemon.wait_for("code unmapped", |d| states(d).is_empty());
    // Nothing is left, and no packet was lost.
    assert_eq!([graph(&daemon), daemon.ok("show features")], before);
    let refused = daemon.refused("guest receive 1 pg0");
    assert!(refused.contains("guest"), "{refused}");
    assert_eq!(http.call("POST", "/v1/do/guest-receive", body).0, 404);
    let (received, sent) = drain(&mut daemon);
    assert_eq!(received, sent);
    let shown = daemon.json("show interface pg0");
    assert_eq!(shown["interfaces"][0]["drops"], 0, "{shown}");
    let maps = fs::read_to_string(format!("/proc/{}/maps", daemon.pid())).unwrap();
    assert!(!maps.contains("volley-plugin"), "{maps}");
    daemon.stop("TERM");
}

#[test]
fn a_plugin_receives_protocols_and_replaces_a_node() {
    let (mut daemon, _) = with_guest();
    let sunk = |daemon: &Daemon| counted(daemon, "guest-sink", "seen");
    let before = sunk(&daemon);
    one(
        &daemon,
        "ip",
        "ip4 src 10.0.0.9 dst 10.0.0.1 protocol 253 / payload 20",
    );
    daemon.wait_for("protocol 253", |d| sunk(d) == before + 10);
    one(
        &daemon,
        "udp",
        "ip4 src 10.0.0.9 dst 10.0.0.1 / udp dport 9999 / payload 20",
    );
    daemon.wait_for("port 9999", |d| sunk(d) == before + 20);
    one(&daemon, "ping", PING);
    daemon.wait_for("pings", |d| counted(d, ECHO, "seen") == 10);
    assert_eq!(counted(&daemon, ECHO, "answered"), 0);
    // A consumer: what pg1 transmits goes to the plugin.
    daemon.ok("set interface feature pg1 guest-tx arc interface-output");
    daemon.wait_for("packets of pg1", |d| counted(d, "guest-tx", "seen") > 100);
    daemon.ok("set interface feature pg1 guest-tx arc interface-output disable");
    daemon.ok("plugin unload guest");
    one(&daemon, "again", PING);
    daemon.wait_for("answers", |d| counted(d, ECHO, "answered") == 10);
    daemon.stop("TERM");
}

#[test]
fn a_plugin_has_tasks_metrics_and_a_page() {
    let (mut daemon, _) = with_guest();
    // One task runs; the other one has panicked and ended.
    daemon.wait_for("runs", |d| {
        let shown = d.json("show plugins guest");
        let metrics = shown["plugins"][0]["metrics"].clone();
        assert_eq!(metrics[1]["value"], serde_json::Value::Null);
        metrics[0]["value"].as_f64() > Some(3.0)
    });
    let log = daemon.log();
    let panicked = "a task panicked and does not run again: a tired task";
    assert_eq!(log.matches(panicked).count(), 1, "{log}");
    assert!(daemon.ok("show plugins guest").contains("# Guest"));
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    let (code, page) = http.call("GET", "/metrics", b"");
    let page = String::from_utf8(page).unwrap();
    assert_eq!(code, 200);
    assert!(page.contains("volley_plugin_metric{plugin=\"guest\",metric=\"runs\"}"));
    assert!(page.contains("node=\"guest-late\""), "{page}");
    daemon.stop("TERM");
}

/// A version of the sample with other objects: see its `objects.rs`.
fn version(daemon: &Daemon, digit: u8) -> String {
    let mut bytes = fs::read(sample()).unwrap();
    let mark = b"sample version ";
    let at = bytes.windows(mark.len()).position(|it| it == mark).unwrap();
    bytes[at + mark.len()] = digit;
    let path = daemon
        .folder
        .file(&format!("version-{}.so", char::from(digit)));
    fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

/// What the plugin knows of its objects: it refuses the rule `probe` with that.
fn known(daemon: &Daemon) -> String {
    let refused = daemon.refused("set stamp-rule probe interface pg0");
    let at = refused.find("ink ").unwrap_or_else(|| panic!("{refused}"));
    refused[at..].trim_end().to_owned()
}

/// Checks that no face has the classes of the plugin.
fn no_classes(daemon: &Daemon) {
    let refused = daemon.refused("set stamp-ink level 70");
    assert!(refused.contains("stamp-ink"), "{refused}");
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    assert_eq!(http.call("GET", "/v1/stamp_ink", b"").0, 404);
    let document = http.get("/v1/openapi.json").to_string();
    assert!(!document.contains("stamp_rule"));
    assert!(!daemon.ok("config show").contains("stamp_"));
}

#[test]
fn objects_of_a_plugin_are_in_every_face_and_go_with_it() {
    let state = Folder::new();
    let state = state.0.display().to_string();
    let mut daemon = Daemon::start(CONFIG, &["--state-dir", &state]);
    no_classes(&daemon);
    daemon.ok(&load("ip4"));
    daemon.ok("set stamp-ink level 70");
    daemon.ok("set stamp-rule a interface pg0 limit 7 color red");
    assert_eq!(known(&daemon), "ink 70, rules a pg0 7 red");
    let range = daemon.refused("set stamp-ink level 101");
    assert!(range.contains("1 to 100"), "{range}");
    let check = daemon.refused("set stamp-rule b interface pg0 limit 13");
    assert!(
        check.contains("limit must not be 13: it is unlucky"),
        "{check}"
    );
    let panic = daemon.refused("set stamp-rule b interface pg0 limit 14");
    assert!(
        panic.contains("the plugin panicked: it is too much"),
        "{panic}"
    );
    let used = daemon.refused("delete interface pg0");
    assert!(used.contains("stamp rule a"), "{used}");
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    assert_eq!(http.get("/v1/stamp_rule/a")["limit"], 7);
    let path = &http.get("/v1/openapi.json")["paths"]["/v1/stamp_rule/{name}"];
    assert!(path["put"].is_object(), "{path}");
    let body = br#"{"interface": "pg1"}"#;
    assert!(http.call("PUT", "/v1/stamp_rule/b", body).0 < 300);
    assert_eq!(known(&daemon), "ink 70, rules a pg0 7 red; b pg1 5 black");
    daemon.ok("config commit");
    let written = daemon.ok("config show");
    assert!(
        written.contains("[stamp_rule.a]") && written.contains("level = 70"),
        "{written}"
    );
    daemon.ok("set stamp-rule a interface pg0 limit 9");
    assert!(daemon.ok("config diff").contains("limit 9"));
    daemon.ok("config rollback 1");
    assert_eq!(known(&daemon), "ink 70, rules a pg0 7 red; b pg1 5 black");
    daemon.ok("plugin unload ip4");
    no_classes(&daemon);
    daemon.wait_for("code unmapped", |d| states(d).is_empty());
    // The commit has the plugin and its objects.
    daemon.ok("config rollback 1");
    assert_eq!(known(&daemon), "ink 70, rules a pg0 7 red; b pg1 5 black");
    daemon.stop("TERM");
}

#[test]
fn objects_of_a_plugin_go_to_the_next_version_or_it_is_refused() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    daemon.ok(&load("ip4"));
    daemon.ok(FEATURE);
    daemon.ok("set stamp-ink level 70");
    daemon.ok("set stamp-rule a interface pg0 limit 70");
    let [second, third] = [b'2', b'3'].map(|digit| version(&daemon, digit));
    daemon.ok(&format!("plugin replace ip4 {second}"));
    assert_eq!(known(&daemon), "ink 70, rules a pg0 70 black false");
    daemon.ok("set stamp-rule a interface pg0 limit 70 strict on");
    assert_eq!(known(&daemon), "ink 70, rules a pg0 70 black true");
    let lost = daemon.refused(&format!("plugin replace ip4 {}", sample().display()));
    assert!(
        lost.contains("stamp rule a has a value of strict"),
        "{lost}"
    );
    let gone = daemon.refused(&format!("plugin replace ip4 {third}"));
    assert!(
        gone.contains("the new version has no class stamp_ink"),
        "{gone}"
    );
    daemon.ok("default stamp-ink");
    daemon.ok("set stamp-rule a interface pg0 limit 70 strict off");
    let unfit = daemon.refused(&format!("plugin replace ip4 {third}"));
    assert!(
        unfit.contains("stamp rule a does not fit the new version"),
        "{unfit}"
    );
    assert_eq!(known(&daemon), "ink 50, rules a pg0 70 black false");
    daemon.ok("set stamp-rule a interface pg0 limit 7");
    daemon.ok(&format!("plugin replace ip4 {third}"));
    assert_eq!(known(&daemon), "ink 0, rules a pg0 7");
    daemon.ok(&format!("plugin replace ip4 {}", sample().display()));
    assert_eq!(known(&daemon), "ink 0, rules a pg0 7 black");
    // The same path: the file may have changed.
    fs::copy(&second, &third).unwrap();
    daemon.ok(&format!("plugin replace ip4 {third}"));
    fs::copy(sample(), &third).unwrap();
    daemon.ok(&format!("plugin replace ip4 {third}"));
    assert_eq!(known(&daemon), "ink 0, rules a pg0 7 black");
    let refused = daemon.refused("plugin unload ip4");
    assert!(refused.contains("is enabled on an interface"), "{refused}");
    assert_eq!(known(&daemon), "ink 0, rules a pg0 7 black");
    daemon.stop("TERM");
}

#[test]
fn a_file_with_a_plugin_and_its_objects_starts() {
    let more = format!(
        "[stamp_ink]\nlevel = 3\n[stamp_rule.a]\ninterface = \"pg1\"\n\
         [[plugin]]\nname = \"ip4\"\npath = \"{}\"\n",
        sample().display()
    );
    let mut daemon = Daemon::start(&format!("{CONFIG}{more}"), &[]);
    assert_eq!(known(&daemon), "ink 3, rules a pg1 5 black");
    daemon.stop("TERM");
}
