//! Layer 2 of interfaces: three classes that exclude one another, and what refers to bridge domains.

use super::tests::read;
use crate::objects;
use volley_control::{Core, State};
use volley_model::Request;

const THREE: &str = "[[bridge_domain]]\nid = 10\n[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n\
    [[interface]]\nname = \"pg1\"\nkind = \"pg\"\n[[interface]]\nname = \"pg2\"\nkind = \"pg\"\n";
const PATCH: &str = "test l2patch rx pg0 tx pg1";
const XCONNECT: &str = "set interface l2 xconnect pg0 pg1";
const PORT: &str = "set interface l2 bridge pg0 10 shg 1";
const STATION: &str = "l2fib add 02:fe:00:00:00:01 10 pg0";

/// The state after the commands that create three interfaces and a bridge domain, and then these lines.
fn with(lines: &[&str]) -> Result<State, String> {
    objects::register().unwrap();
    let mut requests = volley_config::parse(THREE).unwrap().requests;
    requests.extend(lines.iter().map(|line| read(line)));
    Core::state_of(&requests).map_err(|e| e.to_string())
}

/// The state after one transaction, and the requests that handlers get.
fn after(state: &State, lines: &[&str]) -> Result<(State, Vec<String>), String> {
    let mut core = Core::default();
    let begun = core.begin_state(state).unwrap();
    core.end(begun, Some(&Default::default()), &());
    let requests: Vec<Request> = lines.iter().map(|line| read(line)).collect();
    match core.begin(&requests, &()) {
        Ok(transaction) => {
            let steps = transaction.steps().iter();
            let reported = steps.map(|step| step.request.to_string()).collect();
            Ok((core.state().clone(), reported))
        }
        Err(error) => {
            assert_eq!(core.state(), state, "a refused transaction changes nothing");
            Err(error.to_string())
        }
    }
}

#[test]
fn an_interface_is_bound_in_one_way() {
    let all = [
        (PATCH, "l2patch pg0 (tx pg1)"),
        (XCONNECT, "xconnect pg0 (tx pg1)"),
        (PORT, "bridge port pg0 (domain 10, shg 1)"),
    ];
    for (one, called) in all {
        let state = with(&[one]).unwrap();
        for (other, _) in all.iter().filter(|(other, _)| *other != one) {
            let reported = after(&state, &[other]).unwrap_err();
            assert_eq!(
                reported,
                format!("interface pg0 is in use by {called}: remove that first")
            );
            let (now, reported) = after(&state, &["set interface l3 pg0", other]).unwrap();
            assert_eq!(now, with(&[other]).unwrap());
            assert_eq!(reported.len(), 2, "{reported:?}");
        }
        let (now, reported) = after(&state, &["set interface l3 pg0"]).unwrap();
        assert_eq!((now, reported.len()), (with(&[]).unwrap(), 1));
        assert!(reported[0].starts_with("delete "), "{reported:?}");
    }
    let none = after(&with(&[]).unwrap(), &["set interface l3 pg0"]).unwrap_err();
    assert!(
        none.contains("it has none of: bridge port, l2patch, xconnect"),
        "{none}"
    );
}

#[test]
fn a_patch_is_removed_by_both_its_ends() {
    let state = with(&[PATCH]).unwrap();
    let wrong = after(&state, &["test l2patch rx pg0 tx pg2 del"]).unwrap_err();
    assert_eq!(wrong, "l2patch pg0 is not valid: it has tx pg1, not tx pg2");
    let (now, reported) = after(&state, &["test l2patch rx pg0 tx pg1 del"]).unwrap();
    assert_eq!(
        (now, reported),
        (with(&[]).unwrap(), vec!["delete l2patch pg0".to_owned()])
    );
    let none = after(&with(&[]).unwrap(), &["test l2patch rx pg0 tx pg1 del"]).unwrap_err();
    assert_eq!(none, "there is no l2patch pg0");
}

#[test]
fn a_difference_marks_what_changes() {
    let difference =
        |a: &[&str], b: &[&str]| Core::difference(&with(a).unwrap(), &with(b).unwrap());
    assert_eq!(
        difference(&[PATCH], &[XCONNECT]),
        [format!("- {PATCH}"), format!("+ {XCONNECT}")]
    );
    assert_eq!(
        difference(&[PORT], &["set interface l2 bridge pg0 10"]),
        [
            format!("- {PORT}"),
            "+ set interface l2 bridge pg0 10".to_owned()
        ]
    );
    assert_eq!(
        difference(&[PORT], &[PORT, STATION]),
        [format!("+ {STATION}")]
    );
}

#[test]
fn a_bridge_domain_is_in_use_by_ports_and_stations() {
    let state = with(&[PORT]).unwrap();
    let reported = after(&state, &["bridge-domain del 10"]).unwrap_err();
    assert_eq!(
        reported,
        "bridge domain 10 is in use by bridge port pg0: remove that first"
    );
    let state = with(&["l2fib add 02:fe:00:00:00:01 10 filter"]).unwrap();
    let reported = after(&state, &["bridge-domain del 10"]).unwrap_err();
    assert!(
        reported.contains("in use by l2fib entry 10 02:fe:00:00:00:01"),
        "{reported}"
    );
    let reported = with(&["set interface l2 bridge pg0 11"]).unwrap_err();
    assert!(
        reported.contains("there is no bridge domain 11; there are: 10"),
        "{reported}"
    );
    let reported = with(&["set interface l2 xconnect pg0 pg7"]).unwrap_err();
    assert!(
        reported.contains("there is no interface pg7; there are: pg0, pg1, pg2"),
        "{reported}"
    );
    let reported = after(&with(&[]).unwrap(), &["l2fib del 02:fe:00:00:00:01 10"]).unwrap_err();
    assert_eq!(reported, "there is no l2fib entry 10 02:fe:00:00:00:01");
}

#[test]
fn what_is_bound_to_an_interface_goes_with_it_and_follows_its_name() {
    let back = "set interface l2 xconnect pg1 pg0";
    let full = with(&[PORT, STATION, back]).unwrap();
    let (now, _) = after(&full, &["set interface name pg0 up0"]).unwrap();
    let named = [
        "set interface name pg0 up0",
        "set interface l2 bridge up0 10 shg 1",
        "l2fib add 02:fe:00:00:00:01 10 up0",
        "set interface l2 xconnect pg1 up0",
    ];
    assert_eq!(now, with(&named).unwrap());
    let (now, reported) = after(&full, &["delete interface pg0"]).unwrap();
    assert_eq!(now, with(&["delete interface pg0"]).unwrap());
    assert_eq!(reported, ["delete interface pg0"]);
    // A transaction removes the parts first.
    let (again, reported) =
        after(&full, &["delete interface pg0", "bridge-domain del 10"]).unwrap();
    assert_eq!(again.len(), now.len() - 1);
    assert_eq!(
        reported.last().map(String::as_str),
        Some("bridge-domain del 10")
    );
}
