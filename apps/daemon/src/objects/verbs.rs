//! Verbs of features in the command line and in JSON.

use super::tests::read;
use crate::objects;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value as Json, json};
use volley_cli::parse_line;
use volley_model::{Request, Role};
use volley_object::{VerbClass, classes, instances};

/// Names that can be mistaken for keywords, and others.
const NAMES: [&str; 5] = ["pg0", "any", "ip6", "interface", "bridge-domain"];

/// A command, its canonical spelling if that differs, and the verb in JSON.
type Command = (&'static str, &'static str, Json);

/// Commands of all verbs.
fn commands() -> Vec<Command> {
    [of_router(), of_features()].concat()
}

/// Verbs of counters, workers and traces.
fn of_router() -> Vec<Command> {
    vec![
        (
            "clear run",
            "clear runtime",
            json!({ "verb": "runtime-clear" }),
        ),
        ("clear errors", "", json!({ "verb": "errors-clear" })),
        (
            "clear interface",
            "clear interfaces",
            json!({ "verb": "interfaces-clear" }),
        ),
        ("clear trace", "", json!({ "verb": "trace-clear" })),
        ("set log level default", "", json!({ "verb": "log-level" })),
        (
            "set log level debug module memif",
            "",
            json!({ "verb": "log-level", "level": "debug", "module": "memif" }),
        ),
        ("workers add", "", json!({ "verb": "worker-add" })),
        (
            "workers add core 3",
            "",
            json!({ "verb": "worker-add", "core": 3 }),
        ),
        (
            "workers del 1",
            "",
            json!({ "verb": "worker-delete", "worker": 1 }),
        ),
        (
            "set vector-size 128",
            "",
            json!({ "verb": "vector-size", "packets": 128 }),
        ),
        (
            "trace add pg-input 10",
            "",
            json!({ "verb": "trace-add", "node": "pg-input", "count": 10 }),
        ),
        (
            "trace add ip4-input 5 filter udp.dport == 53 or not ip4",
            "trace add ip4-input 5 filter \"udp.dport == 53 or not ip4\"",
            json!({
                "verb": "trace-add", "node": "ip4-input", "count": 5, "filter": "udp.dport == 53 or not ip4",
            }),
        ),
    ]
}

/// All other verbs.
fn of_features() -> Vec<Command> {
    vec![
        (
            "clear path-batcher",
            "",
            json!({ "verb": "path-batcher-clear" }),
        ),
        ("click reload", "", json!({ "verb": "click-reload" })),
        (
            "click write s.active false",
            "",
            json!({ "verb": "click-write", "handler": "s.active", "value": "false" }),
        ),
        ("l2fib flush-mac", "", json!({ "verb": "l2-fib-flush" })),
        (
            "l2fib flush bridge-domain 10 interface pg0",
            "l2fib flush-mac interface pg0 bridge-domain 10",
            json!({ "verb": "l2-fib-flush", "interface": "pg0", "domain": 10 }),
        ),
        ("lcp resync", "", json!({ "verb": "lcp-resync" })),
        (
            "clear ip neighbor",
            "clear ip neighbor",
            json!({ "verb": "neighbor-clear", "family": "ip4" }),
        ),
        (
            "clear ip6 neighbors pg1",
            "clear ip6 neighbor pg1",
            json!({ "verb": "neighbor-clear", "family": "ip6", "interface": "pg1" }),
        ),
        ("pcap trace off", "", json!({ "verb": "pcap-trace-off" })),
        (
            "perfmon start bundle inst-and-clock",
            "",
            json!({ "verb": "perfmon-start", "bundle": "inst-and-clock" }),
        ),
        ("perfmon stop", "", json!({ "verb": "perfmon-stop" })),
        ("perfmon reset", "", json!({ "verb": "perfmon-reset" })),
        (
            "pcap trace tx intfc any max 1000 file /tmp/x.pcap",
            "pcap trace tx file /tmp/x.pcap",
            json!({ "verb": "pcap-trace-on", "tx": true, "file": "/tmp/x.pcap" }),
        ),
        (
            "pcap trace rx drop max 10 intfc pg0 file /tmp/x.pcap max-b 64 filter ip4.dst == 10.0.0.1 and udp",
            "pcap trace rx drop max 10 intfc pg0 file /tmp/x.pcap max-bytes-per-packet 64 filter \"ip4.dst == 10.0.0.1 and udp\"",
            json!({
                "verb": "pcap-trace-on", "rx": true, "drop": true, "max": 10, "interface": "pg0", "file": "/tmp/x.pcap",
                "max_bytes_per_packet": 64, "filter": "ip4.dst == 10.0.0.1 and udp",
            }),
        ),
        (
            "packet-generator capture pg1 pcap /tmp/a.pcap count 3",
            "",
            json!({ "verb": "pg-capture", "interface": "pg1", "file": "/tmp/a.pcap", "count": 3 }),
        ),
        (
            "packet-generator capture pg1 disable",
            "",
            json!({ "verb": "pg-capture", "interface": "pg1", "off": true }),
        ),
        (
            "packet-generator capture pg1 pcap /tmp/a.pcap disable",
            "",
            json!({ "verb": "pg-capture", "interface": "pg1", "file": "/tmp/a.pcap", "off": true }),
        ),
    ]
}

fn all() -> Vec<VerbClass> {
    objects::register().unwrap();
    let classes = classes();
    // Other tests add and remove verbs.
    let own = classes.verbs().filter(|v| !v.name().starts_with("test-"));
    own.cloned().collect()
}

#[test]
fn commands_and_json_make_the_same_verbs() {
    let known = all();
    for (line, spelled, json) in commands() {
        let request = read(line);
        let body = json!({ "do": json });
        assert_eq!(
            serde_json::from_value::<Request>(body.clone()).unwrap(),
            request,
            "{line}"
        );
        assert!(!request.is_configuration());
        let spelled = if spelled.is_empty() { line } else { spelled };
        assert_eq!(request.to_string(), spelled);
    }
    for verb in known {
        let name = verb.name();
        assert!(
            commands().iter().any(|(.., json)| json["verb"] == name),
            "no command of {name}"
        );
        let Request::Do(invocation) = read(verb.class().def().example) else {
            panic!("{name}");
        };
        assert_eq!(invocation.verb().name(), name);
        assert_eq!(Request::Do(invocation).role(), Role::Operate, "{name}");
    }
}

#[test]
fn a_capture_that_names_no_file_is_where_no_other_user_can_write() {
    objects::register().unwrap();
    let file = volley_model::runtime_folder().join("volley.pcap");
    let message = read("pcap trace tx intfc any").to_string();
    assert_eq!(message, format!("pcap trace tx file {}", file.display()));
    assert!(!file.starts_with("/tmp") && file.is_absolute());
}

#[test]
fn what_is_wrong_is_named_with_its_column() {
    objects::register().unwrap();
    for (line, wanted) in [
        (
            "pcap trace max 7",
            "column 17: rx must be given, or tx, drop or several of them",
        ),
        (
            "pcap trace rx max 0",
            "column 19: max must be a number from 1 to 1000000, not '0'",
        ),
        ("pcap trace rx rx", "column 15: 'rx' is given twice"),
        (
            "pcap trace rx filter \"\"",
            "column 22: filter must be a filter, not '': filter is not valid: it is empty",
        ),
        (
            "trace add pg-input",
            "column 19: the command is not complete: expected <count> (Number of packets: a number from 1 to 1000000)",
        ),
        (
            "l2fib flush-mac bridge-domain 0",
            "column 31: domain must be a number from 1 to 16777215, not '0'",
        ),
    ] {
        let error = parse_line(line).unwrap_err().to_string();
        assert_eq!(error, wanted, "{line}");
    }
}

#[test]
fn a_command_and_json_say_all_parameters() {
    for verb in all() {
        let mut runner = TestRunner::new(Config {
            cases: 48,
            failure_persistence: None,
            ..Config::default()
        });
        let strategy = instances(verb.class(), &NAMES);
        for _ in 0..96 {
            let made = strategy.new_tree(&mut runner).unwrap().current();
            let slots = (0..verb.class().fields().len()).map(|at| made.slot(at).cloned());
            let request = Request::Do(verb.call(slots.collect()).unwrap());
            assert_eq!(read(&request.to_string()), request, "{request}");
            let text = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
        }
    }
}
