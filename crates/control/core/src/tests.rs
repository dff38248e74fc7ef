//! Requests in a short form, for tests.

use volley_iface::Admin;
use volley_iface::AdminState;
use volley_model::*;
use volley_object::{Instance, Object};

mod kinds;
mod needs;
mod simulation;

pub(crate) use kinds::Route;
use kinds::{Pg, Sub};

/// Table.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "table", once)]
#[object(set = "(ip@family=ip4 | ip6@family=ip6) table add <id>")]
#[object(unset = "(ip@family=ip4 | ip6@family=ip6) table del <id>")]
pub(crate) struct Table {
    /// Number.
    #[object(key, built_in = 0)]
    pub(crate) id: u32,
    /// IP version.
    #[object(key)]
    pub(crate) family: Family,
}

/// The table of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "test_bound")]
#[object(formerly = "interface-test-bound name=interface")]
#[object(set = "set interface (ip@family=ip4 | ip6@family=ip6) table <interface> <table>")]
struct Bound {
    /// Interface.
    #[object(key, part_of = "interface")]
    interface: String,
    /// IP version.
    #[object(key)]
    family: Family,
    /// Table.
    #[object(default = 0, needs = "table")]
    table: u32,
}

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "test_address", after = "test_bound", once, ordered)]
#[object(interrupts = "the addresses of <interface> are removed and added again")]
#[object(set = "set interface ip address <interface> <address>")]
#[object(unset = "set interface ip address del <interface> <address>")]
struct Address {
    /// Interface.
    #[object(key, part_of = "interface")]
    interface: String,
    /// Address.
    #[object(key)]
    address: IfAddress,
}

/// Uses the addresses of another interface.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "test_lent", after = "test_bound", recreate)]
#[object(interrupts = "<interface> is cut off")]
#[object(
    set = "test lent <interface> <uses>",
    unset = "test unlent <interface>"
)]
struct Lent {
    /// Interface.
    #[object(key, part_of = "interface")]
    interface: String,
    /// The other one.
    #[object(needs = "interface")]
    uses: String,
}

/// Sends what one interface receives out of another one.
#[derive(Object)]
#[object(class = "test_binding", one_of = "test_l2")]
#[object(set = "test binding <rx> <tx>", unset = "test unbind <rx>")]
#[object(unset = "test binding <rx> <tx> del")]
#[object(unset_any = "test l3 <rx>")]
struct Binding {
    /// Receiving interface.
    #[object(key, part_of = "interface")]
    rx: String,
    /// Transmitting interface.
    #[object(part_of = "interface")]
    tx: String,
}

/// Sends what an interface receives back.
#[derive(Object)]
#[object(class = "test_loop", one_of = "test_l2", formerly = "loop-set")]
#[object(set = "test loop <rx>", unset = "test unloop <rx>")]
struct Loop {
    /// Interface.
    #[object(key, part_of = "interface")]
    rx: String,
}

/// `create pg NAME`, `delete NAME`, `up NAME`, `address NAME A/L`, `route PREFIX INTERFACE`, ...
pub(crate) fn request(line: &str) -> Request {
    volley_iface::classes().unwrap();
    // The class to which others refer is registered first.
    Table::class().unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let own = |i: usize| words[i].to_owned();
    match words[0] {
        "create" => {
            let name = own(words.len() - 1);
            Request::InterfaceCreate(InterfaceSpec::of(&Pg { name }).unwrap())
        }
        "delete" => Request::InterfaceDelete { name: own(1) },
        "rename" => Request::InterfaceRename {
            name: own(1),
            new_name: own(2),
        },
        "up" => Admin::request(own(1), AdminState::Up).unwrap(),
        "mtu" => {
            let mtu = volley_object::Value::Number(words[2].parse().unwrap());
            Request::Set(Instance::of_value("mtu", &own(1), mtu).unwrap())
        }
        "bind" => Request::set(&Bound {
            interface: own(1),
            family: Family::V4,
            table: words[2].parse().unwrap(),
        })
        .unwrap(),
        "lent" => {
            // The class that comes first is registered first.
            Bound::class().unwrap();
            let (interface, uses) = (own(1), own(2));
            Request::set(&Lent { interface, uses }).unwrap()
        }
        "address" => Request::set(&address(&own(1), words[2])).unwrap(),
        "noaddress" => Request::unset(&address(&own(1), words[2])).unwrap(),
        "table" => Request::set(&table(words[1].parse().unwrap())).unwrap(),
        "route" => Request::set(&Route {
            via: vec![own(2)],
            ..Route::new(words[1].parse().unwrap(), 0)
        })
        .unwrap(),
        "noroute" => Request::unset(&Route::new(words[1].parse().unwrap(), 0)).unwrap(),
        "xconnect" => Request::set(&Binding {
            rx: own(1),
            tx: own(2),
        })
        .unwrap(),
        "loop" => Request::set(&Loop { rx: own(1) }).unwrap(),
        "l3" => Request::UnsetAny(Loop { rx: own(1) }.instance().unwrap().key()),
        "unbind" => Request::UnsetExact(
            Binding {
                rx: own(1),
                tx: own(2),
            }
            .instance()
            .unwrap(),
        ),
        other => panic!("{other}"),
    }
}

fn address(interface: &str, address: &str) -> Address {
    // The class that comes first is registered first.
    Bound::class().unwrap();
    Address {
        interface: interface.into(),
        address: address.parse().unwrap(),
    }
}

/// A table of IPv4.
fn table(id: u32) -> Table {
    let family = Family::V4;
    Table { id, family }
}

pub(crate) fn all(lines: &[&str]) -> Vec<Request> {
    lines.iter().map(|l| request(l)).collect()
}

/// Handlers that record their requests, and refuse one request on demand.
#[derive(Default)]
pub(crate) struct Reported {
    done: std::cell::RefCell<Vec<String>>,
    pub(crate) refuses: std::cell::RefCell<Option<String>>,
}

impl crate::Probe for Reported {
    fn by_first_name(&self, interface: &str) -> Vec<Instance> {
        let mac = volley_object::Value::text("02:00:00:00:00:01");
        vec![Instance::of_value("mac", interface, mac).unwrap()]
    }
}

impl crate::Executor for Reported {
    fn apply(&self, request: &Request) -> Result<Applied, ModelError> {
        let line = request.to_string();
        if self
            .refuses
            .borrow()
            .as_deref()
            .is_some_and(|r| line.starts_with(r))
        {
            return Err(ModelError::invalid("this", "it is refused"));
        }
        self.done.borrow_mut().push(line);
        Ok(Applied::one())
    }
}

pub(crate) fn message(reported: &Reported) -> Vec<String> {
    std::mem::take(&mut reported.done.borrow_mut())
}

#[test]
fn what_comes_after_a_setting_is_created_again_with_it() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    let first = [
        "create pg a",
        "create pg b",
        "create pg c",
        "table 7",
        "lent b a",
    ];
    core.run(&all(&first), &reported).unwrap();
    core.run(&all(&["address a 192.0.2.1/24"]), &reported)
        .unwrap();
    message(&reported);
    let done = core
        .run(&all(&["bind a 7", "bind c 7"]), &reported)
        .unwrap();
    assert_eq!(
        message(&reported),
        [
            "test unlent b",
            "set interface ip address del a 192.0.2.1/24",
            "set interface ip table a 7",
            "set interface ip table c 7",
            "set interface ip address a 192.0.2.1/24",
            "test lent b a",
        ]
    );
    assert!(done.notes.contains(&"b is cut off".to_owned()), "{done:?}");
}

#[test]
fn one_command_moves_the_addresses_to_the_table_and_says_so() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    let first = ["create pg a", "table 7", "address a 192.0.2.1/24"];
    core.run(&all(&first), &reported).unwrap();
    message(&reported);
    let done = core.run(&all(&["bind a 7"]), &reported).unwrap();
    let moved = [
        "set interface ip address del a 192.0.2.1/24",
        "set interface ip table a 7",
        "set interface ip address a 192.0.2.1/24",
    ];
    assert_eq!(message(&reported), moved);
    assert_eq!(
        done.notes,
        ["the addresses of a are removed and added again"]
    );
}

fn addresses(core: &crate::Core) -> Vec<String> {
    let all = core.state().objects_of("test_address");
    all.map(|object| object.key().values()[1].to_string())
        .collect()
}

/// Four addresses of interface a.
fn four(reported: &Reported) -> crate::Core {
    let mut core = crate::Core::default();
    let lines = [
        "create pg a",
        "address a 192.0.2.4/24",
        "address a 192.0.2.2/24",
        "address a 192.0.2.3/24",
        "address a 192.0.2.1/24",
    ];
    core.run(&all(&lines), reported).unwrap();
    core
}

#[test]
fn addresses_keep_the_order_in_which_they_were_created() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    let mut made = four(&reported);
    let order = [
        "192.0.2.4/24",
        "192.0.2.2/24",
        "192.0.2.3/24",
        "192.0.2.1/24",
    ];
    let add = order.map(|it| format!("set interface ip address a {it}"));
    assert_eq!(message(&reported)[1..], add);
    assert_eq!(addresses(&made), order);
    // Another name, and a state that is kept.
    made.run(&all(&["rename a b"]), &reported).unwrap();
    assert_eq!(addresses(&made), order);
    message(&reported);
    let transaction = core.begin_state(made.state()).unwrap();
    core.finish(transaction, &reported).unwrap();
    assert_eq!(
        message(&reported)[1..],
        add.map(|it| it.replace(" a ", " b "))
    );
    assert_eq!(core.state(), made.state());
    assert_eq!(&core.state().lasting(), core.state());
    // An object that is removed and created again moves behind all others, and exists once.
    let last = ["noaddress b 192.0.2.2/24", "address b 192.0.2.2/24"];
    core.run(&all(&last), &reported).unwrap();
    let order = [
        "192.0.2.4/24",
        "192.0.2.3/24",
        "192.0.2.1/24",
        "192.0.2.2/24",
    ];
    assert_eq!(addresses(&core), order);
    assert_ne!(core.state(), made.state());
    let wanted = [
        "set interface ip address del b 192.0.2.2/24",
        "set interface ip address b 192.0.2.2/24",
    ];
    assert_eq!(message(&reported), wanted);
    let lines = crate::Core::difference(made.state(), core.state());
    let wanted = [
        "- set interface ip address b 192.0.2.2/24",
        "+ set interface ip address b 192.0.2.2/24",
    ];
    assert_eq!(lines, wanted);
    let again = core.run(&all(&["address b 192.0.2.2/24"]), &reported);
    let again = again.unwrap_err().to_string();
    assert!(again.contains("exists already"), "{again}");
    let none = core.run(&all(&["noaddress b 192.0.2.9/24"]), &reported);
    assert!(none.is_err());
}

#[test]
fn a_failure_leaves_the_order_of_addresses() {
    let reported = Reported::default();
    let mut core = four(&reported);
    let before = core.state().clone();
    // 2 is removed, 4 moves behind, 9 is refused.
    let lines = [
        "noaddress a 192.0.2.2/24",
        "noaddress a 192.0.2.4/24",
        "address a 192.0.2.4/24",
        "address a 192.0.2.9/24",
    ];
    message(&reported);
    *reported.refuses.borrow_mut() = Some("set interface ip address a 192.0.2.9/24".into());
    core.run(&all(&lines), &reported).unwrap_err();
    assert_eq!(core.state(), &before);
    // The requests to the handler left the addresses as they were.
    let mut held: Vec<String> = ["4", "2", "3", "1"]
        .map(|n| format!("192.0.2.{n}/24"))
        .into();
    for line in message(&reported) {
        let address = line.rsplit(' ').next().unwrap().to_owned();
        match line.contains(" del ") {
            true => held.retain(|it| *it != address),
            false => held.push(address),
        }
    }
    assert_eq!(held, addresses(&core), "as the handler has them");
    // The whole state at once, in another order.
    let mut wanted = four(&reported);
    *reported.refuses.borrow_mut() = None;
    wanted.run(&all(&lines), &reported).unwrap();
    message(&reported);
    let transaction = core.begin_state(wanted.state()).unwrap();
    core.finish(transaction, &reported).unwrap();
    let steps = [
        "set interface ip address del a 192.0.2.2/24",
        "set interface ip address del a 192.0.2.4/24",
        "set interface ip address a 192.0.2.4/24",
        "set interface ip address a 192.0.2.9/24",
    ];
    assert_eq!(message(&reported), steps);
    assert_eq!(core.state(), wanted.state());
}

#[test]
fn a_group_is_done_in_order_of_dependence() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    let group = all(&[
        "route 10.0.1.0/24 pg0",
        "up pg0",
        "route 10.0.0.0/24 pg0",
        "address pg0 192.0.2.1/24",
        "bind pg0 7",
        "create pg0",
        "table 7",
    ]);
    // Settings need their interface at once; other requests may come in any order.
    let mut group = group;
    group.swap(1, 5);
    group.swap(0, 1);
    core.run(&group, &reported).unwrap();
    let wanted = [
        "ip table add 7",
        "create packet-generator interface pg0",
        "set interface ip table pg0 7",
        "set interface ip address pg0 192.0.2.1/24",
        "set 2 and remove 0 objects of class route, table 0, by static",
        "set interface state pg0 up",
    ];
    assert_eq!(message(&reported), wanted);
}

#[test]
fn a_failure_in_the_middle_is_taken_back() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    core.run(
        &all(&["create pg0", "address pg0 192.0.2.1/24", "mtu pg0 1500"]),
        &reported,
    )
    .unwrap();
    let before = core.state().clone();
    message(&reported);
    *reported.refuses.borrow_mut() = Some("set interface state pg1 up".into());
    let group = all(&["delete pg0", "create pg1", "route 10.0.0.0/8 pg1", "up pg1"]);
    let error = core.run(&group, &reported).unwrap_err().to_string();
    assert_eq!(
        error,
        "`set interface state pg1 up`: this is not valid: it is refused"
    );
    assert_eq!(core.state(), &before);
    let wanted = [
        "set interface ip address del pg0 192.0.2.1/24",
        "delete interface pg0",
        "create packet-generator interface pg1",
        "ip route add 10.0.0.0/8 via pg1",
        "ip route del 10.0.0.0/8",
        "delete interface pg1",
        "create packet-generator interface pg0 mtu 1500",
        "set interface ip address pg0 192.0.2.1/24",
    ];
    assert_eq!(message(&reported), wanted);
}

/// A rollback undoes as many steps per call as the transaction carried out per call.
#[test]
fn a_failure_is_taken_back_in_slices() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    let before = core.state().clone();
    *reported.refuses.borrow_mut() = Some("create packet-generator interface pg999".into());
    let lines: Vec<String> = (0..1000).map(|n| format!("create pg{n:03}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut transaction = core.begin(&all(&lines), &reported).unwrap();
    let (mut slices, mut done) = (0, 0);
    let error = loop {
        let progress = transaction.advance(&reported, 10);
        let now = message(&reported).len();
        assert!(now <= 10, "{now} requests in a slice");
        (slices, done) = (slices + 1, done + now);
        match progress {
            crate::Progress::More => {}
            crate::Progress::Failed(error) => break error.to_string(),
            crate::Progress::Done(_) => panic!("it was to fail"),
        }
    };
    assert!(
        error.starts_with("`create packet-generator interface pg999`"),
        "{error}"
    );
    assert_eq!(done, 2 * 999);
    assert!(slices >= 199, "{slices}");
    core.end(transaction, None, &reported);
    assert_eq!(core.state(), &before);
}

#[test]
fn a_parent_goes_with_its_sub_interfaces_and_keeps_its_name() {
    let sub = |parent: &str, id: u32| {
        let sub = Sub {
            name: format!("{parent}.{id}"),
            parent: parent.into(),
            inner: id as u16,
        };
        Request::InterfaceCreate(InterfaceSpec::of(&sub).unwrap())
    };
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    // A name that only looks like that of a sub-interface.
    let mut group = all(&["create pg0", "create pg0.7", "address pg0.1 192.0.2.1/24"]);
    group.extend([sub("pg0", 2), sub("pg0", 1)]);
    core.run(&group, &reported).unwrap();
    core.run(&all(&["up pg0.1"]), &reported).unwrap();
    core.run(&all(&["route 10.0.0.0/8 pg0.2"]), &reported)
        .unwrap();
    message(&reported);
    let refused = |core: &mut crate::Core, line: &str| {
        let error = core.run(&all(&[line]), &reported).unwrap_err();
        error.to_string()
    };
    let error = refused(&mut core, "delete pg0");
    assert!(
        error.starts_with("interface pg0.2 is in use by route"),
        "{error}"
    );
    let error = refused(&mut core, "rename pg0 pg1");
    assert!(
        error.contains("such as pg0.1, are called after it"),
        "{error}"
    );
    let error = refused(&mut core, "rename pg0.1 pg1");
    assert!(error.contains("called after its parent"), "{error}");
    core.run(&all(&["noroute 10.0.0.0/8"]), &reported).unwrap();
    message(&reported);
    core.run(&all(&["delete pg0"]), &reported).unwrap();
    let wanted = [
        "set interface ip address del pg0.1 192.0.2.1/24",
        "delete interface pg0.2",
        "delete interface pg0.1",
        "delete interface pg0",
    ];
    assert_eq!(message(&reported), wanted);
    assert_eq!(core.state().len(), 1, "{:?}", core.state());
    let error = core
        .run(&[sub("pg9", 1)], &reported)
        .unwrap_err()
        .to_string();
    assert!(error.contains("no interface pg9"), "{error}");
}

#[test]
fn a_group_with_a_fault_does_nothing() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    for (group, why) in [
        (
            &["create pg0", "route 10.0.0.0/8 pg7"][..],
            "no interface pg7",
        ),
        (&["create pg0", "create pg0"], "request 2: `create packet"),
        (&["create pg0", "noroute 10.0.0.0/8"], "no route 10.0.0.0/8"),
        (
            &["create pg0", "route 10.0.0.0/8 pg0", "delete pg0"],
            "in use by route",
        ),
    ] {
        let error = core.run(&all(group), &reported).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(core.state().is_empty() && message(&reported).is_empty());
    }
}

#[test]
fn renames_go_in_order_and_keep_the_address() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    core.run(&all(&["create pg0", "route 10.0.0.0/8 pg0"]), &reported)
        .unwrap();
    message(&reported);
    core.run(
        &all(&["rename pg0 wan0", "create pg0", "xconnect pg0 wan0"]),
        &reported,
    )
    .unwrap();
    assert_eq!(message(&reported)[0], "set interface name pg0 wan0");
    let requests: Vec<String> = crate::requests(core.state())
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        requests.contains(&"ip route add 10.0.0.0/8 via wan0".to_owned())
            || requests.contains(&"ip route add 10.0.0.0/8 via \"wan0\"".to_owned()),
        "{requests:?}"
    );
    assert!(
        requests
            .iter()
            .any(|r| r.contains("wan0 mac 02:00:00:00:00:01")),
        "{requests:?}"
    );
}

#[test]
fn a_new_interface_takes_what_leans_on_it_along() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    core.run(
        &all(&[
            "create pg0",
            "create pg1",
            "route 10.0.0.0/8 pg0",
            "xconnect pg1 pg0",
            "up pg0",
        ]),
        &reported,
    )
    .unwrap();
    let mut wanted = core.state().clone();
    let lamp = Lamp { name: "pg0".into() };
    let kind = crate::Value::Object(std::sync::Arc::new(lamp.instance().unwrap()));
    wanted.swap(&crate::Key::Interface("pg0".into()), Some(kind));
    message(&reported);
    let transaction = core.begin_state(&wanted).unwrap();
    core.finish(transaction, &reported).unwrap();
    let wanted = [
        "ip route del 10.0.0.0/8",
        "test unbind pg1",
        "delete interface pg0",
        "create lamp pg0",
        "test binding pg1 pg0",
        "ip route add 10.0.0.0/8 via pg0",
        "set interface state pg0 up",
    ];
    assert_eq!(message(&reported), wanted);
}

/// Lamp: a kind of interfaces.
#[derive(Object)]
#[object(
    class = "test_lamp_interface",
    interface = "test-lamp-interface",
    set = "create lamp <name>"
)]
struct Lamp {
    /// Name.
    #[object(key)]
    name: String,
}

/// A core with two interfaces.
fn two(reported: &Reported) -> crate::Core {
    let mut core = crate::Core::default();
    core.run(&all(&["create pg0", "create pg1"]), reported)
        .unwrap();
    message(reported);
    core
}

fn refused(core: &mut crate::Core, reported: &Reported, lines: &[&str]) -> String {
    let before = core.state().clone();
    let error = core.run(&all(lines), reported).unwrap_err().to_string();
    assert_eq!(core.state(), &before);
    assert!(message(reported).is_empty());
    error
}

#[test]
fn an_interface_has_one_object_of_a_group() {
    let reported = Reported::default();
    let mut core = two(&reported);
    core.run(&all(&["xconnect pg0 pg1"]), &reported).unwrap();
    assert_eq!(message(&reported), ["test binding pg0 pg1"]);
    assert_eq!(
        refused(&mut core, &reported, &["loop pg0"]),
        "interface pg0 is in use by test binding pg0 (tx pg1): remove that first"
    );
    // Another object of the same class replaces it.
    core.run(&all(&["xconnect pg0 pg0"]), &reported).unwrap();
    core.run(&all(&["loop pg1", "l3 pg0", "loop pg0"]), &reported)
        .unwrap();
    let wanted = [
        "test binding pg0 pg0",
        "test unbind pg0",
        "test loop pg0",
        "test loop pg1",
    ];
    assert_eq!(message(&reported), wanted);
}

#[test]
fn what_is_removed_of_a_group_is_what_is_there() {
    let reported = Reported::default();
    let mut core = two(&reported);
    assert_eq!(
        refused(&mut core, &reported, &["l3 pg0"]),
        "interface pg0 is not valid: it has none of: test binding, test loop"
    );
    assert!(refused(&mut core, &reported, &["l3 pg7"]).contains("no interface pg7"));
    for made in ["xconnect pg0 pg1", "loop pg0"] {
        core.run(&all(&[made]), &reported).unwrap();
        let before = core.state().clone();
        *reported.refuses.borrow_mut() = Some("test un".to_owned());
        core.run(&all(&["l3 pg0"]), &reported).unwrap_err();
        assert_eq!(core.state(), &before);
        *reported.refuses.borrow_mut() = None;
        core.run(&all(&["l3 pg0"]), &reported).unwrap();
    }
    let wanted = [
        "test binding pg0 pg1",
        "test unbind pg0",
        "test loop pg0",
        "test unloop pg0",
    ];
    assert_eq!(message(&reported), wanted);
}

#[test]
fn an_object_with_other_values_is_not_removed() {
    let reported = Reported::default();
    let mut core = two(&reported);
    core.run(&all(&["xconnect pg0 pg1"]), &reported).unwrap();
    message(&reported);
    assert_eq!(
        refused(&mut core, &reported, &["unbind pg0 pg0"]),
        "test binding pg0 is not valid: it has tx pg1, not tx pg0"
    );
    // Requests that depend on the state keep their position among renames.
    let lines = ["rename pg1 up1", "unbind pg0 up1", "rename up1 pg1"];
    core.run(&all(&lines), &reported).unwrap();
    let wanted = [
        "set interface name pg1 up1",
        "test unbind pg0",
        "set interface name up1 pg1",
    ];
    assert_eq!(message(&reported), wanted);
    let absent = refused(&mut core, &reported, &["unbind pg0 pg1"]);
    assert!(absent.contains("there is no test binding pg0"), "{absent}");
}

#[test]
fn parts_by_any_field_go_with_their_interface() {
    let reported = Reported::default();
    let mut core = two(&reported);
    core.run(&all(&["xconnect pg0 pg1", "loop pg1"]), &reported)
        .unwrap();
    core.run(&all(&["rename pg1 up1"]), &reported).unwrap();
    let requests = crate::requests(core.state());
    let text: Vec<String> = requests.iter().map(ToString::to_string).collect();
    assert!(
        text.contains(&"test binding pg0 up1".to_owned()),
        "{text:?}"
    );
    core.run(&all(&["delete up1"]), &reported).unwrap();
    assert_eq!(core.state().len(), 1, "{:?}", core.state());
}

#[test]
fn readers_hear_of_changes_and_slow_ones_of_gaps() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    let mut reader = core.events();
    core.run(&all(&["create pg0"]), &reported).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let crate::Read::Next(event) = runtime.block_on(reader.next()) else {
        panic!("no event");
    };
    assert_eq!(
        (event.sequence, event.transaction, event.kind),
        (1, 1, ChangeKind::Created)
    );
    assert_eq!(event.after, ["create packet-generator interface pg0"]);
    let route = |i: u32| {
        let prefix = Prefix::masked(std::net::Ipv4Addr::from_bits(i << 8).into(), 24).unwrap();
        Request::add(&Route::new(prefix, 1)).unwrap()
    };
    let many: Vec<Request> = (0..crate::HELD as u32 + 10)
        .map(|i| route((i * 7) % 65_521))
        .collect();
    core.run(&many, &reported).unwrap();
    assert!(matches!(runtime.block_on(reader.next()), crate::Read::Lost(n) if n >= 1));
    let crate::Read::Next(event) = runtime.block_on(reader.next()) else {
        panic!("no event");
    };
    assert!(event.sequence > 2);
}
