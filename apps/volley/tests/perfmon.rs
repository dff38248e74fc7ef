//! Performance events of a daemon's nodes: the kernel's events on every machine, the processor's where there is a PMU. The kernel's
//! list of a process's files says which counters are open.

mod support;

use serde_json::Value;
use support::http::Http;
use support::{Daemon, has_pmu, text};

const CONFIG: &str = "[engine]\nworkers = 2\n\
    [[interface]]\nname = \"pg0\"\nkind = \"pg\"\n\
    [[interface]]\nname = \"pg1\"\nkind = \"pg\"\n\
    [[l2patch]]\nrx = \"pg0\"\ntx = \"pg1\"\n";

/// The bundles that need a PMU.
const HARDWARE: [&str; 3] = ["inst-and-clock", "cache-hierarchy", "branch-mispred"];

/// A daemon whose first worker forwards packets all the time.
fn daemon(config: &str) -> Daemon {
    let daemon = Daemon::start(&format!("{config}{CONFIG}"), &[]);
    daemon.ok("packet-generator new name s interface pg0 worker 0 rate 2000 template { eth / payload 50 }");
    daemon.ok("packet-generator enable");
    daemon
}

/// The number of performance counters that the daemon has open.
fn open_counters(daemon: &Daemon) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap();
    let targets = files
        .flatten()
        .filter_map(|it| std::fs::read_link(it.path()).ok());
    targets
        .filter(|it| it.to_string_lossy().contains("perf_event"))
        .count()
}

/// The line of a node on a worker.
fn node<'a>(reply: &'a Value, worker: usize, name: &str) -> Option<&'a Value> {
    let nodes = reply["workers"][worker]["nodes"].as_array()?;
    nodes.iter().find(|it| it["node"] == name)
}

/// Packets of a node on the first worker.
fn packets(reply: &Value, name: &str) -> u64 {
    node(reply, 0, name).map_or(0, |it| it["packets"].as_u64().unwrap())
}

#[test]
fn events_of_the_kernel_are_counted_for_each_node() {
    let mut daemon = daemon("");
    let before = daemon.ok("show perfmon");
    assert_eq!(
        before.trim_end(),
        "nothing was counted: `perfmon start bundle NAME` starts, `show perfmon bundle` lists the bundles"
    );
    let error = daemon.refused("perfmon stop");
    assert!(
        error.contains("no bundle runs: `perfmon start bundle NAME` starts one"),
        "{error}"
    );
    daemon.ok("perfmon reset");
    assert_eq!(open_counters(&daemon), 0);
    let bundles = daemon.json("show perfmon bundle page-faults");
    if let Some(why) = bundles["bundles"][0]["why_not"].as_str() {
        // A user without rights gets the sentence.
        assert!(
            why.contains("set kernel.perf_event_paranoid to 2 or less"),
            "{why}"
        );
        let error = daemon.refused("perfmon start bundle page-faults");
        assert!(error.contains(why), "{error}");
        println!("SKIP: {why}");
        return;
    }
    // The bundle has three events, and there are two workers.
    daemon.ok("perfmon start bundle page-faults");
    assert_eq!(open_counters(&daemon), 6);
    let error = daemon.refused("perfmon start bundle page-faults");
    assert!(
        error.contains("page-faults runs: `perfmon stop` stops it"),
        "{error}"
    );
    daemon.wait_for("packets of the patch", |d| {
        packets(&d.json("show perfmon"), "pg1-tx") > 300
    });
    nodes(&daemon);
    table(&daemon);
    metrics(&daemon);
    end(&mut daemon);
    daemon.stop("TERM");
}

/// The lines of nodes agree with `show runtime`.
fn nodes(daemon: &Daemon) {
    let (shown, runtime) = (daemon.json("show perfmon"), daemon.json("show runtime"));
    assert_eq!(shown["bundle"], "page-faults");
    assert_eq!(shown["is_running"], true);
    assert_eq!(shown["workers"].as_array().unwrap().len(), 2);
    for name in ["pg-input", "interface-tx", "pg1-tx"] {
        let line = node(&shown, 0, name).unwrap_or_else(|| panic!("{name}: {shown}"));
        let all = runtime["workers"][0]["nodes"].as_array().unwrap();
        let all = all.iter().find(|it| it["name"] == name).unwrap();
        let (calls, packets) = (&line["calls"], &line["packets"]);
        // Counting began after the daemon.
        assert!(calls.as_u64() <= all["calls"].as_u64(), "{line} {all}");
        assert!(packets.as_u64() <= all["vectors"].as_u64(), "{line} {all}");
        assert_eq!(line["uncounted_calls"], 0, "software is always counted");
        let events = line["events"].as_array().unwrap();
        let names: Vec<&str> = events
            .iter()
            .map(|it| it["event"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["minor-faults", "major-faults", "task-clock"]);
        // The kernel of a machine that is short of memory may read code from the disk again.
        assert!(events[1]["total"].is_number(), "{line}");
        // A node takes some of the thread's time, and each of its packets no more than a millisecond.
        let ns = events[2]["per_packet"].as_f64().unwrap();
        assert!(ns > 0.0 && ns < 1e6, "{line}");
        let (total, count) = (
            events[2]["total"].as_f64().unwrap(),
            packets.as_u64().unwrap(),
        );
        assert!(
            (total / count as f64 - ns).abs() < 1e-6 * ns.max(1.0),
            "{line}"
        );
    }
}

/// The text has the same, for packets and for calls.
fn table(daemon: &Daemon) {
    let table = daemon.ok("show perfmon statistics");
    let mut lines = table.lines();
    let head = lines.next().unwrap();
    assert!(
        head.starts_with("bundle page-faults (kernel), running, "),
        "{table}"
    );
    assert_eq!(lines.next(), Some("Thread worker0, counters read by read"));
    let columns: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(
        columns,
        [
            "Name",
            "Calls",
            "Packets",
            "minor-faults/packet",
            "major-faults/packet",
            "task-clock/packet",
            "minor-faults/call",
            "major-faults/call",
            "task-clock/call"
        ]
    );
}

/// The page of metrics has the counted events.
fn metrics(daemon: &Daemon) {
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    let (status, page) = http.call("GET", "/metrics", b"");
    assert_eq!(status, 200);
    let page = text(&page);
    let wanted =
        "volley_perfmon_events_total{worker=\"worker0\",node=\"pg1-tx\",event=\"task-clock\"} ";
    let line = page.lines().find_map(|line| line.strip_prefix(wanted));
    assert!(
        line.is_some_and(|it| it.parse::<f64>().unwrap() > 0.0),
        "{page}"
    );
}

/// A worker that comes is not counted, and one that goes takes its counters with it; `stop` closes the others and keeps the
/// figures; `reset` forgets them.
fn end(daemon: &mut Daemon) {
    daemon.ok("workers add");
    assert_eq!(open_counters(daemon), 6);
    daemon.ok("workers del 1");
    daemon.wait_for("the end of the worker", |d| {
        d.json("show workers")["workers"].as_array().unwrap().len() == 2
    });
    assert_eq!(open_counters(daemon), 3);
    daemon.ok("perfmon stop");
    daemon.wait_for("closed counters", |d| open_counters(d) == 0);
    let shown = daemon.json("show perfmon");
    assert_eq!(shown["is_running"], false);
    let sent = |d: &Daemon| d.json("show interface pg1")["interfaces"][0]["tx"]["packets"].as_u64();
    let before = sent(daemon);
    daemon.wait_for("more packets", |d| sent(d) > before.map(|it| it + 100));
    assert_eq!(daemon.json("show perfmon"), shown, "it is over");
    let error = daemon.refused("perfmon stop");
    assert!(error.contains("no bundle runs"), "{error}");
    // The new worker is counted from the next start on.
    daemon.ok("perfmon start bundle page-faults");
    assert_eq!(open_counters(daemon), 6);
    daemon.wait_for("packets again", |d| {
        packets(&d.json("show perfmon"), "pg1-tx") > 50
    });
    daemon.ok("perfmon reset");
    daemon.wait_for("closed counters", |d| open_counters(d) == 0);
    assert!(daemon.ok("show perfmon").starts_with("nothing was counted"));
}

/// What a PMU counts: each packet takes instructions, cycles and branches.
fn hardware(daemon: &mut Daemon, rows: &[Value]) {
    for row in rows.iter().filter(|row| row["source"] == "PMU") {
        let bundle = row["bundle"].as_str().unwrap();
        if let Some(why) = row["why_not"].as_str() {
            println!("SKIP {bundle}: {why}");
            continue;
        }
        daemon.ok(&format!("perfmon start bundle {bundle}"));
        daemon.wait_for("packets of the patch", |d| {
            packets(&d.json("show perfmon"), "pg1-tx") > 100
        });
        daemon.ok("perfmon stop");
        let shown = daemon.json("show perfmon");
        let line = node(&shown, 0, "pg1-tx").unwrap();
        println!("{line}");
        let first = line["events"][0]["per_packet"].as_f64().unwrap();
        // A packet may miss no cache.
        assert!(first > 0.0 || bundle == "cache-hierarchy", "{line}");
    }
}

#[test]
fn a_machine_without_pmu_says_so_in_a_sentence() {
    let mut daemon = daemon("");
    let bundles = daemon.json("show perfmon bundle");
    let rows = bundles["bundles"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .map(|it| it["bundle"].as_str().unwrap())
        .collect();
    assert_eq!(names[..3], HARDWARE);
    for row in rows {
        println!("{row}");
        let is_hardware = HARDWARE.contains(&row["bundle"].as_str().unwrap());
        assert_eq!(row["source"], if is_hardware { "PMU" } else { "kernel" });
    }
    if has_pmu() {
        println!("SKIP: this machine has a PMU");
        hardware(&mut daemon, rows);
        return;
    }
    let sentence = "this machine shows the kernel no hardware performance counters (PMU)";
    for bundle in HARDWARE {
        let error = daemon.refused(&format!("perfmon start bundle {bundle}"));
        if error.contains("kernel.perf_event_paranoid") {
            println!("SKIP: {error}");
            return;
        }
        assert!(error.contains(sentence), "{error}");
        assert!(
            error.contains("let the hypervisor give the guest a PMU"),
            "{error}"
        );
    }
    let table = daemon.ok("show perfmon bundle");
    let reasons = table.lines().filter(|line| line.starts_with("PMU: "));
    assert_eq!(reasons.count(), 1, "{table}");
    let one = daemon.ok("show perfmon bundle branch-mispred");
    assert!(
        one.contains("branch-mispred  PMU     no         branches, branch-misses"),
        "{one}"
    );
    assert!(one.contains(sentence), "{one}");
    assert_eq!(open_counters(&daemon), 0);
    assert!(daemon.ok("show perfmon").starts_with("nothing was counted"));
}

#[test]
fn without_the_right_the_operator_reads_what_to_change() {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let paranoid: i32 = paranoid.trim().parse().unwrap();
    let daemon = daemon("[process]\ncapabilities = \"drop\"\n");
    for (bundle, limit) in [("context-switches", 1), ("page-faults", 2)] {
        let line = format!("perfmon start bundle {bundle}");
        if paranoid <= limit {
            daemon.ok(&line);
            daemon.ok("perfmon stop");
            continue;
        }
        let error = daemon.refused(&line);
        let set = format!("set kernel.perf_event_paranoid to {limit} or less");
        assert!(
            error.contains(&set) && error.contains("CAP_PERFMON"),
            "{error}"
        );
    }
}
