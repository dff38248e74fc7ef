//! Multicast routes: spellings, files, lists that lose interfaces, requests of commits that earlier versions wrote.

use super::keyed::{all, error, refusal, state, steps, was};
use volley_control::Core;
use volley_model::Request;

const BED: [&str; 4] = [
    "create packet-generator interface pg0",
    "create packet-generator interface pg1",
    "create packet-generator interface pg2",
    "ip table add 7",
];
const ROUTE: &str =
    "ip mroute add 239.1.1.1/32 table 7 source 192.0.2.9 accept pg0 pg1 forward pg0 pg2";
const SIX: &str = "ip6 mroute add ff05::/16 accept pg1";

fn with<'l>(lines: &[&'l str]) -> Vec<&'l str> {
    BED.into_iter().chain(lines.iter().copied()).collect()
}

#[test]
fn they_keep_their_spellings() {
    let json = r#"{"mroute-set":{"group":"239.1.1.1/32","source":"192.0.2.9","table":7,"accept":["pg1","pg0"],"forward":["pg2","pg0"]}}"#;
    was(json, ROUTE);
    let json = r#"{"mroute-set":{"group":"ff05::/16","source":null,"table":0,"accept":["pg1"],"forward":[]}}"#;
    was(json, SIX);
    let nowhere = r#"{"mroute-set":{"group":"10.0.0.0/8","accept":["pg0"]}}"#;
    assert!(serde_json::from_str::<Request>(nowhere).is_err());
    for line in [
        ROUTE,
        SIX,
        "ip mroute add 239.1.1.1/32 accept \"a\" forward \"forward\"",
        "ip mroute del 239.1.1.1/32",
        "ip6 mroute del ff05::1/128 table 7 source 2001:db8::9",
        "default mroute 239.1.1.1/32 source 192.0.2.9 table 7",
    ] {
        let [request] = &all(&[line])[..] else {
            panic!("one request")
        };
        let spelled = match request {
            Request::Unset(key) if line.starts_with("default") => key.default_command(),
            other => other.to_string(),
        };
        assert_eq!(all(&[&spelled]), all(&[line]), "{spelled}");
        assert_eq!(spelled.replace('"', ""), line.replace('"', ""));
    }
    for (line, same) in [
        (
            "ip mroute set 239.1.1.1 forward pg2 pg0 accept pg1 pg0 source 192.0.2.9 table 7",
            ROUTE,
        ),
        ("ip mroute add ff05::/16 accept pg1", SIX),
        ("ip mroute delete 239.1.1.1", "ip mroute del 239.1.1.1/32"),
    ] {
        assert_eq!(all(&[line]), all(&[same]), "{line}");
    }
}

#[test]
fn wrong_ones_are_refused_in_a_sentence() {
    for (line, part) in [
        (
            "ip mroute add 10.0.0.1 accept pg0",
            "column 15: group must be in 224.0.0.0/4",
        ),
        ("ip mroute add 224.0.0.5 accept pg0", "never forwarded"),
        (
            "ip mroute add 239.1.0.0/16 source 192.0.2.9 accept pg0",
            "a source goes with one group",
        ),
        (
            "ip mroute add 239.1.1.1 source 2001:db8::9 accept pg0",
            "IP version of the group",
        ),
        (
            "ip mroute add 239.1.1.1 source 239.1.1.1 accept pg0",
            "of one host",
        ),
        ("ip mroute add 239.1.1.1 forward pg0", "accept"),
        (
            "ip mroute add 239.1.1.1 accept pg0 pg0",
            "accept must not have pg0 twice",
        ),
        ("ip mroute add 239.1.1.1/8 accept pg0", "host bits"),
    ] {
        let message = error(line);
        assert!(message.contains(part), "{line}: {message}");
    }
    let message = refusal(&with(&["ip mroute add 239.1.1.1 accept pg9"]));
    assert!(message.contains("there is no interface pg9"), "{message}");
    let message = refusal(&with(&["ip mroute add 239.1.1.1 table 8 accept pg0"]));
    assert!(message.contains("there is no table 8"), "{message}");
    let message = refusal(&with(&[ROUTE, "ip table del 7"]));
    assert!(
        message.contains("in use by mroute 239.1.1.1/32 source 192.0.2.9 table 7"),
        "{message}"
    );
    let message = refusal(&with(&["ip mroute del 239.1.1.1"]));
    assert!(
        message.contains("there is no mroute 239.1.1.1/32"),
        "{message}"
    );
}

#[test]
fn the_file_is_read_and_written() {
    let text = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n[[interface]]\nname = \"pg1\"\nkind = \"pg\"\n\
        [[table]]\nid = 7\n[[mroute]]\ngroup = \"239.1.1.1\"\nsource = \"192.0.2.9\"\ntable = 7\naccept = [\"pg0\"]\n\
        forward = [\"pg1\", \"pg0\"]\n[[mroute]]\ngroup = \"ff05::/16\"\naccept = [\"pg1\"]\n";
    crate::objects::register().unwrap();
    let read = volley_config::parse(text).unwrap().requests;
    let written = volley_config::write(&read);
    assert!(
        written.contains("group = \"ff05::/16\"\naccept = [\"pg1\"]\n"),
        "{written}"
    );
    let again = volley_config::parse(&written).unwrap().requests;
    let [before, after] = [&read, &again].map(|all| Core::state_of(all).unwrap());
    assert_eq!(Core::difference(&before, &after), [""; 0], "{written}");
    for (from, to, part) in [
        ("accept = [\"pg1\"]", "", "'accept' is missing"),
        (
            "accept = [\"pg1\"]",
            "accept = []",
            "accept must have at least 1",
        ),
        (
            "accept = [\"pg1\"]",
            "accept = [\"pg7\"]",
            "mroute.accept: there is no interface pg7",
        ),
        ("239.1.1.1", "224.0.0.5", "never forwarded"),
        ("239.1.1.1", "239.1.0.0/16", "a source goes with one group"),
        (
            "table = 7",
            "table = 8",
            "mroute.table: there is no table 8 ip4 in this file",
        ),
    ] {
        let error = volley_config::parse(&text.replace(from, to))
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn they_lose_interfaces_that_go_and_follow_names() {
    let renamed = state(&with(&[ROUTE, "set interface name pg0 up0"]));
    let wanted =
        "ip mroute add 239.1.1.1/32 table 7 source 192.0.2.9 accept pg1 up0 forward pg2 up0";
    let wanted = state(&[
        "create packet-generator interface up0",
        BED[1],
        BED[2],
        BED[3],
        wanted,
    ]);
    assert_eq!(Core::difference(&wanted, &renamed), [""; 0]);
    let left = state(&with(&[ROUTE, "delete interface pg0"]));
    let wanted = "ip mroute add 239.1.1.1 table 7 source 192.0.2.9 accept pg1 forward pg2";
    let wanted = state(&[BED[1], BED[2], BED[3], wanted]);
    assert_eq!(Core::difference(&wanted, &left), [""; 0]);
    let none = state(&with(&[
        ROUTE,
        "delete interface pg0",
        "delete interface pg1",
    ]));
    assert_eq!(Core::difference(&state(&[BED[2], BED[3]]), &none), [""; 0]);
}

/// Packets by interfaces that stay are forwarded without interruption.
#[test]
fn a_route_stays_while_some_of_its_interfaces_change() {
    let other = "ip mroute add 239.1.1.1/32 accept pg1 pg3";
    let made = "create packet-generator interface pg3";
    let found = steps(
        &with(&["ip mroute add 239.1.1.1 accept pg0 pg1 forward pg2"]),
        &["delete interface pg0", made, other],
    );
    let wanted = [
        "ip mroute add 239.1.1.1/32 accept pg1",
        "delete interface pg0",
        made,
        other,
    ];
    assert_eq!(found, wanted);
    let (delete, other) = ("delete interface pg0", "ip mroute add 239.1.1.1 accept pg1");
    for lines in [[delete, other], [other, delete]] {
        let wanted = [
            "ip mroute del 239.1.1.1/32",
            "delete interface pg0",
            "ip mroute add 239.1.1.1/32 accept pg1",
        ];
        assert_eq!(
            steps(&with(&["ip mroute add 239.1.1.1 accept pg0"]), &lines),
            wanted
        );
    }
}
