//! Objects that come last, and changes of some of their fields.

use crate::tests::{Reported, all, message, request};
use volley_model::Request;
use volley_object::{Change, Object, Value};

/// Sends by an interface.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "test_sender", last, once)]
#[object(set = "test sender <name> <interface> {rate <rate> | on@enabled=on}")]
#[object(change = "test start@enabled=on [<name>]")]
#[object(change = "test stop@enabled=off [<name>]")]
#[object(unset = "test unsend <name>")]
struct Sender {
    /// Name.
    #[object(key)]
    name: String,
    /// Interface.
    #[object(needs = "interface")]
    interface: String,
    /// Packets per second.
    #[object(range = 1u64..=1_000_000, scaled)]
    rate: Option<u64>,
    /// Sends.
    #[object(default = false)]
    enabled: bool,
}

pub(crate) fn sender(name: &str, interface: &str) -> Request {
    let sender = Sender {
        name: name.to_owned(),
        interface: interface.to_owned(),
        rate: None,
        enabled: false,
    };
    Request::set(&sender).unwrap()
}

fn change(name: Option<&str>, on: bool) -> Vec<Request> {
    let mut fields = vec![("enabled", Value::Bool(on))];
    fields.extend(name.map(|name| ("name", name.into())));
    vec![Request::Change(
        Change::of_fields("test_sender", &fields).unwrap(),
    )]
}

#[test]
fn objects_come_behind_everything_else_and_go_first() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    let mut requests = vec![sender("s", "a")];
    requests.extend(all(&["create pg a", "up a", "route 10.0.0.0/8 a"]));
    core.run(&requests, &reported).unwrap();
    let made = message(&reported);
    assert_eq!(made.last().unwrap(), "test sender s a");
    assert_eq!(made.len(), 4, "{made:?}");
    let refused = core.run(&all(&["delete a"]), &reported).unwrap_err();
    let in_use = "interface a is in use by route 10.0.0.0/8: remove that first";
    assert_eq!(refused.to_string(), in_use);
    let nothing = core.begin_state(&crate::State::default()).unwrap();
    core.finish(nothing, &reported).unwrap();
    assert_eq!(message(&reported)[0], "test unsend s");
}

#[test]
fn a_change_is_of_one_object_or_of_all_and_told_though_nothing_differs() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    core.run(&all(&["create pg a"]), &reported).unwrap();
    for name in ["s", "t"] {
        core.run(&[sender(name, "a")], &reported).unwrap();
    }
    message(&reported);
    core.run(&change(Some("t"), true), &reported).unwrap();
    assert_eq!(message(&reported), ["test sender t a on"]);
    core.run(&change(None, true), &reported).unwrap();
    assert_eq!(
        message(&reported),
        ["test sender s a on", "test sender t a on"]
    );
    core.run(&change(None, false), &reported).unwrap();
    assert_eq!(message(&reported), ["test sender s a", "test sender t a"]);
    let none = core.run(&change(Some("u"), true), &reported).unwrap_err();
    let unknown = "there is no test sender u; there are: s, t";
    assert_eq!(none.to_string(), unknown);
    let again = core.run(&[sender("s", "a")], &reported).unwrap_err();
    assert!(again.to_string().contains("exists already"), "{again}");
}

#[test]
fn a_refused_change_is_taken_back() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    let first = [request("create pg a"), sender("s", "a"), sender("t", "a")];
    core.run(&first, &reported).unwrap();
    let before = core.state().clone();
    message(&reported);
    *reported.refuses.borrow_mut() = Some("test sender t a on".to_owned());
    core.run(&change(None, true), &reported).unwrap_err();
    assert_eq!(
        message(&reported),
        ["test sender s a on", "test sender s a"]
    );
    assert_eq!(*core.state(), before);
}

#[test]
fn an_interface_that_gets_another_name_keeps_its_senders() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    let first = [request("create pg a"), sender("s", "a")];
    core.run(&first, &reported).unwrap();
    message(&reported);
    core.run(&all(&["rename a b"]), &reported).unwrap();
    assert_eq!(message(&reported), ["set interface name a b"]);
    core.run(&change(None, true), &reported).unwrap();
    assert_eq!(message(&reported), ["test sender s b on"]);
}
