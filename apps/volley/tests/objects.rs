//! Objects of registered classes on a running daemon: as HTTP resources, and as the same objects on the command line.

mod support;

use serde_json::{Value, json};
use support::http::Http;
use support::{Daemon, text};

const PLAIN: &str =
    "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n[[interface]]\nname = \"pg1\"\nkind = \"pg\"\n";

fn call(http: &mut Http, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let bytes = match body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let (status, answer) = http.call(method, path, &bytes);
    let read = serde_json::from_slice(&answer);
    (
        status,
        read.unwrap_or_else(|e| panic!("{path}: {e}: {}", text(&answer))),
    )
}

#[test]
fn a_resource_is_the_object_of_the_command_line() {
    let daemon = Daemon::start(PLAIN, &[]);
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    // A setting of the router has its defaults until it is set.
    assert_eq!(http.get("/v1/icmp")["rate"], 1000);
    let (status, _) = call(&mut http, "PATCH", "/v1/icmp", &json!({"rate": 7}));
    assert_eq!(status, 200);
    let (status, _) = call(&mut http, "PATCH", "/v1/icmp", &json!({"burst": 9}));
    assert_eq!(status, 200);
    let icmp = http.get("/v1/icmp");
    assert_eq!((&icmp["rate"], &icmp["burst"]), (&json!(7), &json!(9)));
    assert!(
        daemon
            .ok("config export commands")
            .contains("set ip icmp rate 7 burst 9")
    );
    // PUT replaces: fields that the body leaves out get their defaults again.
    call(&mut http, "PUT", "/v1/icmp", &json!({"errors": false}));
    let exported = daemon.ok("config export commands");
    assert!(exported.contains("set ip icmp errors off\n"), "{exported}");
    call(&mut http, "DELETE", "/v1/icmp", &Value::Null);
    assert!(!daemon.ok("config export commands").contains("icmp"));

    // A setting of an interface has a key.
    let (status, _) = call(&mut http, "GET", "/v1/urpf/pg0/ip4", &Value::Null);
    assert_eq!(status, 404);
    call(
        &mut http,
        "PUT",
        "/v1/urpf/pg0/ip4",
        &json!({"mode": "strict"}),
    );
    daemon.ok("set urpf ip6 rx loose pg1");
    assert_eq!(http.get("/v1/urpf").as_array().map(Vec::len), Some(2));
    let loose = http.get("/v1/urpf?mode=loose");
    assert_eq!(loose[0]["interface"], "pg1");
    assert!(
        daemon
            .ok("show features pg0")
            .contains("ip4-rx-urpf-strict")
    );
    call(&mut http, "DELETE", "/v1/urpf/pg0/ip4", &Value::Null);
    assert_eq!(http.get("/v1/urpf").as_array().map(Vec::len), Some(1));
    daemon.ok("delete interface pg1");
    assert_eq!(http.get("/v1/urpf").as_array().map(Vec::len), Some(0));
}

#[test]
fn an_interface_is_a_resource_of_its_kind() {
    let daemon = Daemon::start(PLAIN, &[]);
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    let count = |http: &mut Http| http.get("/v1/pg").as_array().map(Vec::len);
    assert_eq!(count(&mut http), Some(2));
    assert_eq!(http.get("/v1/pg/pg0")["name"], "pg0");
    let (status, answer) = call(&mut http, "PUT", "/v1/pg/pg2", &json!({}));
    assert_eq!((status, &answer["changed"]), (200, &json!(1)), "{answer}");
    daemon.ok("set interface state pg2 up");
    // The same object again changes nothing, and traffic does not stop.
    let (status, answer) = call(&mut http, "PUT", "/v1/pg/pg2", &json!({}));
    assert_eq!((status, &answer["changed"]), (200, &json!(0)), "{answer}");
    assert!(daemon.ok("show interfaces").contains("pg2"));

    daemon.ok("create sub-interfaces pg0 7");
    let now = http.get("/v1/sub_interface");
    assert_eq!(now[0]["name"], "pg0.7", "{now}");
    // An interface of another type is not this resource.
    let (status, _) = call(&mut http, "DELETE", "/v1/pg/pg0.7", &Value::Null);
    assert_eq!(status, 404);
    assert_eq!(
        http.get("/v1/sub_interface").as_array().map(Vec::len),
        Some(1)
    );
    let (status, _) = call(&mut http, "DELETE", "/v1/pg/pg0", &Value::Null);
    assert_eq!(status, 200);
    assert_eq!(http.get("/v1/sub_interface"), json!([]));
    assert_eq!(count(&mut http), Some(2));

    let file = daemon.folder.file("out.pcap");
    let path = json!({"tx": file.to_str()});
    let other = json!({"tx": daemon.folder.file("other.pcap").to_str()});
    let (status, answer) = call(&mut http, "PUT", "/v1/pcap/cap0", &path);
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = call(&mut http, "PUT", "/v1/pcap/cap0", &other);
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("DELETE it first"), "{status} {answer}");
}

/// Method, path, body, and the status and a part of the sentence of the refusal.
type Fault = (&'static str, &'static str, Value, u16, &'static str);

fn faults() -> Vec<Fault> {
    vec![
        (
            "PUT",
            "/v1/icmp",
            json!({"rate": "x"}),
            400,
            "rate must be a number",
        ),
        (
            "PUT",
            "/v1/icmp",
            json!({"rat": 1}),
            400,
            "unknown field `rat`",
        ),
        (
            "PUT",
            "/v1/multipath",
            json!({"buckets": 100}),
            400,
            "power of two",
        ),
        (
            "PUT",
            "/v1/urpf/pg0",
            json!({"mode": "strict"}),
            404,
            "/v1/urpf/{interface}/{family}",
        ),
        (
            "PUT",
            "/v1/urpf/pg0/ip5",
            json!({"mode": "strict"}),
            400,
            "family must be ip4 or ip6",
        ),
        ("PUT", "/v1/urpf/pg0/ip4", json!({}), 400, "mode is missing"),
        (
            "PUT",
            "/v1/urpf/pg0/ip4",
            json!({"mode": "strict", "family": "ip6"}),
            400,
            "as the path has it",
        ),
        (
            "PUT",
            "/v1/urpf/pg7/ip4",
            json!({"mode": "strict"}),
            404,
            "pg7",
        ),
        (
            "PATCH",
            "/v1/urpf/pg0/ip4",
            json!({"mode": "strict"}),
            404,
            "urpf pg0 ip4",
        ),
        ("GET", "/v1/urpf?x=1", Value::Null, 400, "no parameter 'x'"),
        ("POST", "/v1/urpf", json!({}), 405, "POST"),
        ("GET", "/v1/nothing", Value::Null, 404, "/v1/nothing"),
    ]
}

#[test]
fn a_wrong_request_for_a_resource_changes_nothing_and_names_the_field() {
    let daemon = Daemon::start(PLAIN, &[]);
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    let before = daemon.ok("config export commands");
    for (method, path, body, status, sentence) in faults() {
        let (found, answer) = call(&mut http, method, path, &body);
        assert_eq!(found, status, "{method} {path}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(sentence), "{method} {path}: {message}");
    }
    assert_eq!(daemon.ok("config export commands"), before);
}
