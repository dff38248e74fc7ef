//! Verbs of features in the command line and in JSON.

use super::tests::read;
use crate::objects;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value as Json, json};
use volley_model::{Request, Role};
use volley_object::{VerbClass, classes, instances};

/// Names that can be taken for keywords, and others.
const NAMES: [&str; 5] = ["pg0", "any", "ip6", "interface", "bridge-domain"];

/// Commands, each with its spelling where that is another one, and with the verb in JSON.
fn commands() -> Vec<(&'static str, &'static str, Json)> {
    vec![
        (
            "clear path-batcher",
            "",
            json!({ "verb": "path-batcher-clear" }),
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
    ]
}

fn all() -> Vec<VerbClass> {
    objects::register().unwrap();
    let classes = classes();
    // Verbs that other tests register come and go.
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
            let request = Request::Do(verb.invoke(slots.collect()).unwrap());
            assert_eq!(read(&request.to_string()), request, "{request}");
            let text = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
        }
    }
}
