//! The commands of sub-interfaces, and the sentences of their errors.

use volley_cli::{Action, parse_line};
use volley_model::{InterfaceKind, Request, SubInterfaceSpec, VlanTag};

fn request(line: &str) -> Request {
    match parse_line(line)
        .unwrap_or_else(|e| panic!("{line}: {e}"))
        .action
    {
        Action::Request(request) => *request,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn spellings() {
    let same = [
        "create sub-interfaces pg0 100 dot1q 100 exact-match",
        "create sub-interfaces pg0 4294967295 dot1q 4094 inner-dot1q 1 exact-match",
        "create sub-interfaces host-eth0.5 1 dot1ad 1 exact-match mtu 1400",
        "create sub-interfaces pg0 7 dot1ad 200 inner-dot1q 7 exact-match",
    ];
    for line in same {
        assert_eq!(request(line).to_string(), line);
    }
    let short = request("create sub-interface pg0 100");
    assert_eq!(short.to_string(), same[0]);
    let Request::InterfaceCreate(spec) = request(same[3]) else {
        panic!()
    };
    assert_eq!(spec.name, "pg0.7");
    let sub = SubInterfaceSpec {
        parent: "pg0".into(),
        id: 7,
        tag: VlanTag::Dot1ad,
        vlan: 200,
        inner: Some(7),
    };
    assert_eq!(spec.kind, InterfaceKind::SubInterface(sub));
    let delete = request("delete sub-interface pg0.7");
    assert_eq!(delete.to_string(), "delete interface pg0.7");
}

#[test]
fn errors_are_one_sentence() {
    let error = |line: &str| parse_line(line).expect_err(line).to_string();
    for (line, want) in [
        (
            "create sub-interfaces pg0 5000",
            "column 27: 5000 is no VLAN: give the tag, such as 'dot1q 100'",
        ),
        (
            "create sub-interfaces pg0 1 inner-dot1q 7",
            "column 29: inner-dot1q stands behind another tag: give dot1q or dot1ad too",
        ),
        (
            "create sub-interfaces pg0 1 dot1q 7 dot1ad 8",
            "column 37: there is one outer tag: dot1q or dot1ad",
        ),
        (
            "create sub-interfaces pg0 1 dot1q 4095",
            "column 35: VLAN 4095 is not valid: it must be 1 to 4094",
        ),
    ] {
        assert_eq!(error(line), want);
    }
}
