//! Plugins in a running daemon: commands, file, HTTP, replacement under traffic, a panic.

mod support;

use std::fs;
use std::path::PathBuf;
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

/// The shared library of `volley-plugin-sample`.
fn sample() -> PathBuf {
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
    let after = replace(&mut daemon, 200);
    assert!(after < before + 4096, "{before} kB, then {after} kB");
    let (received, sent) = drain(&mut daemon);
    assert!(received > 1000, "{received}");
    assert_eq!(received, sent);
    let shown = daemon.json("show interface pg0");
    assert_eq!(shown["interfaces"][0]["drops"], 0, "{shown}");
    daemon.stop("TERM");
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
