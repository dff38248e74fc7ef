//! IP tables and addresses: spellings, files, refusals, requests of commits that earlier versions wrote.

use super::keyed::{all, error, refusal, state, was};
use volley_control::Core;

#[test]
fn tables_keep_their_spellings() {
    let lines = [
        "ip table add 7",
        "ip6 table add 4294967295",
        "ip table del 7",
        "ip6 table del 7",
    ];
    for (line, request) in lines.iter().zip(all(&lines)) {
        assert_eq!(request.to_string(), *line);
    }
    was(
        r#"{"table-add":{"family":"ip4","table":7}}"#,
        "ip table add 7",
    );
    was(
        r#"{"table-add":{"family":"ip6","table":9}}"#,
        "ip6 table add 9",
    );
}

#[test]
fn a_table_is_created_once_and_goes_when_nothing_names_it() {
    const PG0: &str = "create packet-generator interface pg0";
    for (lines, part) in [
        (
            &["ip table add 7", "ip table add 7"][..],
            "table 7 ip4 exists already",
        ),
        (
            &["ip table add 7", "ip6 table del 7"],
            "there is no table 7 ip6; there are: 7 ip4",
        ),
        (
            &["ip table add 7", PG0, "set interface ip6 table pg0 7"],
            "there is no table 7 ip6; there are: 7 ip4",
        ),
        (
            &[
                "ip table add 7",
                PG0,
                "set interface ip table pg0 7",
                "ip table del 7",
            ],
            "table 7 ip4 is in use by interface table pg0 ip4",
        ),
        (
            &[
                "ip table add 7",
                "ip route add 10.0.0.0/8 table 7 via drop",
                "ip table del 7",
            ],
            "table 7 ip4 is in use by route 10.0.0.0/8 table 7",
        ),
        (
            &["ip route add 10.0.0.0/8 via lookup-in-table 7"],
            "there is no table 7 ip4",
        ),
    ] {
        let message = refusal(lines);
        assert!(message.contains(part), "{lines:?}: {message}");
    }
    for (line, part) in [
        (
            "ip table add 0",
            "id must be another one: this object is built in",
        ),
        (
            "ip6 table del 0",
            "table 0 ip6 is not valid: it is always there",
        ),
        (
            "ip table add 4294967296",
            "id must be a number from 0 to 4294967295",
        ),
    ] {
        let message = error(line);
        assert!(message.contains(part), "{line}: {message}");
    }
    // Table 0 of both IP versions always exists, and a table of the same number in the other IP version is another table.
    let lines = [
        "ip table add 7",
        "ip6 table add 7",
        "ip route add 10.0.0.0/8 via lookup-in-table 0",
        "ip6 table del 7",
    ];
    assert_eq!(state(&lines).len(), 2);
}

#[test]
fn a_table_of_the_file_is_of_both_ip_versions_when_it_names_none() {
    crate::objects::register().unwrap();
    let spelled = |text: &str| -> Vec<String> {
        let read = volley_config::parse(text).unwrap_or_else(|e| panic!("{e}"));
        read.requests.iter().map(ToString::to_string).collect()
    };
    let both = spelled("[[table]]\nid = 7\n");
    assert_eq!(both, ["ip table add 7", "ip6 table add 7"]);
    assert_eq!(spelled("[[table]]\nid = 7\nfamily = \"ip6\"\n"), both[1..]);
    let written = volley_config::write(&all(&["ip6 table add 7"]));
    assert_eq!(written, "[[table]]\nid = 7\nfamily = \"ip6\"\n");
    for (text, part) in [
        (
            "[[table]]\nid = 7\n[[table]]\nid = 7\n",
            "volley.toml:3:1: table: table 7 ip4 is declared twice",
        ),
        ("[[table]]\nfamily = 'ip4'\n", "the key 'id' is missing"),
        ("[[table]]\nid = 7\nfamily = 'ip5'\n", "must be ip4 or ip6"),
        (
            "[[table]]\nid = 7\nfamily = 'ip6'\n[[route]]\nprefix = '10.0.0.0/8'\ntable = 7\naction = 'drop'\n",
            "route.table: there is no table 7 ip4 in this file; there are: 7 ip6",
        ),
    ] {
        let message = volley_config::parse(text).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn differences_are_in_order_of_dependence() {
    let before = state(&["ip table add 7", "ip6 table add 7"]);
    let after = state(&["ip table add 8", "ip6 table add 7"]);
    let wanted = ["- ip table del 7", "+ ip table add 8"];
    let lines = Core::difference(&before, &after);
    assert_eq!(
        lines,
        [wanted[0].replace("del", "add"), wanted[1].to_owned()]
    );
}

const PG0: &str = "create packet-generator interface pg0";

#[test]
fn addresses_keep_their_spellings() {
    let lines = [
        "set interface ip address pg0 192.0.2.1/24",
        "set interface ip address pg0 2001:db8::1/64",
        "set interface ip address \"del\" 192.0.2.1/24",
        "set interface ip address del pg0 192.0.2.1/24",
    ];
    for (line, request) in lines.iter().zip(all(&lines)) {
        assert_eq!(request.to_string(), *line);
    }
    let same = all(&["set interface ip6 address pg0 192.0.2.1/24", lines[0]]);
    assert_eq!(same[0], same[1]);
    let short = &all(&["set int ip addr del pg0 192.0.2.1/24"])[0];
    assert_eq!(short.to_string(), lines[3]);
    was(
        r#"{"address-add":{"interface":"pg0","address":"2001:db8::1/64"}}"#,
        lines[1],
    );
    for (line, part) in [
        (
            "set interface ip address pg0 10.0.0.0/24",
            "it is the network address of 10.0.0.0/24",
        ),
        (
            "set interface ip address pg0 10.0.0.255/24",
            "it is the broadcast address of 10.0.0.0/24",
        ),
        ("set interface ip address pg0 127.0.0.1/8", "loopback"),
        ("set interface ip address pg0 ::1/128", "loopback"),
        (
            "set interface ip address pg0 224.0.0.5/24",
            "multicast or broadcast: 224.0.0.5/24",
        ),
    ] {
        let message = error(line);
        assert!(message.contains(part), "{line}: {message}");
    }
    // In a network of two addresses both are hosts (RFC 3021).
    all(&[
        "set interface ip address pg0 10.0.0.0/31",
        "set interface ip address pg0 10.0.0.255/32",
    ]);
}

#[test]
fn an_address_is_created_once_and_removed_once() {
    let one = "set interface ip address pg0 192.0.2.1/24";
    for (lines, part) in [
        (
            &[PG0, one, one][..],
            "address pg0 192.0.2.1/24 exists already",
        ),
        (
            &[PG0, one, "set interface ip address del pg0 192.0.2.2/24"],
            "there is no address pg0 192.0.2.2/24",
        ),
        (&[one], "there is no interface pg0"),
    ] {
        let message = refusal(lines);
        assert!(message.contains(part), "{lines:?}: {message}");
    }
    let lines = [PG0, one, "delete interface pg0"];
    assert!(state(&lines).is_empty());
}

#[test]
fn the_file_has_addresses_in_their_order() {
    crate::objects::register().unwrap();
    let text = "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n\
        addresses = [\"192.0.2.9/24\", \"2001:db8::1/64\", \"192.0.2.1/25\"]\nstate = \"down\"\n";
    let read = volley_config::parse(text).unwrap();
    assert_eq!(volley_config::write(&read.requests), text);
    let state = Core::state_of(&read.requests).unwrap();
    let requests = volley_control::requests(&state);
    assert!(
        volley_config::write(&requests)
            .contains("[\"192.0.2.9/24\", \"2001:db8::1/64\", \"192.0.2.1/25\"]")
    );
    for (from, to, part) in [
        (
            "192.0.2.1/25",
            "192.0.2.9/24",
            "volley.toml:4:48: interface.addresses: address pg0 192.0.2.9/24 is declared twice",
        ),
        (
            "192.0.2.1/25",
            "192.0.2.1",
            "volley.toml:4:48: interface.addresses: ",
        ),
        (
            "192.0.2.1/25",
            "192.0.2.0/25",
            "it is the network address of 192.0.2.0/25",
        ),
        (
            "\"192.0.2.1/25\"",
            "5",
            "must be an address with its prefix length",
        ),
    ] {
        let message = volley_config::parse(&text.replace(from, to)).unwrap_err();
        let message = message.to_string();
        assert!(message.contains(part), "{to}: {message}");
    }
}

#[test]
fn addresses_move_with_the_table_of_their_interface() {
    let lines = [
        "ip table add 7",
        PG0,
        "set interface ip address pg0 192.0.2.2/24",
        "set interface ip address pg0 192.0.2.1/24",
    ];
    let before = state(&lines);
    let after = state(&[&lines[..], &["set interface ip table pg0 7"]].concat());
    let wanted = [
        "+ set interface ip table pg0 7",
        "! the addresses of pg0 are removed and added again: traffic to and from them stops meanwhile",
    ];
    assert_eq!(Core::difference(&before, &after), wanted);
}
