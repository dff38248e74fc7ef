//! The contract for drivers: all-or-nothing changes, refusals, link, names, queues, and `show`.

use std::cell::RefCell;
use std::rc::Rc;
use volley_graph::buf::Pool;
use volley_graph::{
    Consumed, Cx, Domain, Engine, GraphError, Isa, NoCounters, NoNext, Node, PacketTrace, Settings,
    Vector,
};
use volley_iface::Admin;
use volley_iface::driver::{Caps, Port, PortRefusal};
use volley_iface::{AdminState, RxMode, Switch};
use volley_iface::{
    Change, Direction, Flag, InterfacesClear, Link, MacAddress, Mtu, NewInterface, Promiscuous,
    ReceiveMode, Registry,
};
use volley_iface::{HardwareReply, ShowHardware, ShowRxPlacement};
use volley_model::{Applied, Mac, ModelError, Request};

struct Tx;

impl Node for Tx {
    const NAME: &'static str = "test-tx";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        v.free()
    }
}

/// Records the calls; refuses an MTU above 1500, and everything while `sulks`.
#[derive(Default)]
struct Asked {
    log: Vec<String>,
    sulks: bool,
}

struct TestPort(Rc<RefCell<Asked>>);

impl TestPort {
    fn ask(&self, what: String) -> Result<(), PortRefusal> {
        let mut asked = self.0.borrow_mut();
        asked.log.push(what);
        match asked.sulks {
            true => Err(PortRefusal::new("the peer does not answer; restart it")),
            false => Ok(()),
        }
    }
}

impl Port for TestPort {
    fn set_admin(&mut self, state: AdminState) -> Result<(), PortRefusal> {
        self.ask(format!("state {state}"))
    }
    fn set_mac(&mut self, mac: [u8; 6]) -> Result<(), PortRefusal> {
        self.ask(format!("mac {}", Mac(mac)))
    }
    fn set_mtu(&mut self, mtu: u32) -> Result<(), PortRefusal> {
        if mtu > 1500 {
            return Err(PortRefusal::new("the card takes 1500 at most"));
        }
        self.ask(format!("mtu {mtu}"))
    }
    fn set_promiscuous(&mut self, on: Switch) -> Result<(), PortRefusal> {
        self.ask(format!("promiscuous {on}"))
    }
    fn set_rx_mode(&mut self, mode: RxMode) -> Result<(), PortRefusal> {
        self.ask(format!("rx-mode {mode}"))
    }
    fn details(&self) -> Vec<String> {
        vec![format!("asked {} times", self.0.borrow().log.len())]
    }
}

fn registry() -> Registry {
    let pool = Pool::new(64).unwrap();
    let engine = Engine::new(Settings::default(), pool, Domain::new()).unwrap();
    let mut registry = Registry::new(engine);
    volley_iface::register(&mut registry).unwrap();
    registry
}

fn apply(registry: &mut Registry, request: Request) -> Result<Applied, ModelError> {
    let owned = registry.owners.apply(&request);
    owned.unwrap_or_else(|| registry.handlers[0].apply(&request).unwrap())
}

fn hardware(registry: &mut Registry) -> HardwareReply {
    registry.owners.ask(&ShowHardware { name: None }).unwrap()
}

#[test]
fn an_interface_comes_with_its_node_or_not_at_all() {
    let registry = registry();
    let host = registry.host();
    let attach = |name: &str| host.attach(NewInterface::new(name, "test"), |_, _| Tx);
    let index = attach("t0").unwrap();
    assert!(
        attach("t0")
            .unwrap_err()
            .to_string()
            .contains("exists already")
    );
    assert!(host.check_free("t0").is_err() && host.check_free("t1").is_ok());
    // Another node already has the name of the interface's node.
    host.engine.borrow_mut().add("t1-tx", |_| Tx).unwrap();
    assert!(attach("t1").is_err());
    assert!(host.interfaces.borrow().by_name("t1").is_none());
    host.detach(index).unwrap();
    let gone = host.engine.borrow().node("t0-tx");
    assert_eq!(gone, Err(GraphError::NoNode("t0-tx".into())));
    assert!(host.index("t0").is_err());
    assert_eq!(attach("t0"), Ok(index), "the number is used again");
}

fn set_mtu(interface: &str, mtu: u32) -> Request {
    let interface = interface.to_owned();
    Request::set(&Mtu { interface, mtu }).unwrap()
}

/// One change of each setting that is passed to a driver.
fn changes_of(name: &str) -> [Request; 5] {
    let name = || name.to_owned();
    let (mac, state, mode) = (Mac([2, 0, 0, 0, 0, 9]), AdminState::Up, RxMode::Polling);
    [
        Admin::request(name(), state).unwrap(),
        Request::set(&MacAddress {
            interface: name(),
            mac,
        })
        .unwrap(),
        set_mtu(&name(), 1400),
        Request::set(&ReceiveMode {
            interface: name(),
            mode,
        })
        .unwrap(),
        Request::set(&Promiscuous {
            interface: name(),
            enabled: true,
        })
        .unwrap(),
    ]
}

#[test]
fn a_driver_is_asked_first_and_its_no_is_final() {
    let mut registry = registry();
    let asked = Rc::new(RefCell::new(Asked::default()));
    let new = NewInterface {
        port: Box::new(TestPort(asked.clone())),
        details: vec!["made for a test".into()],
        ..NewInterface::new("t0", "test")
    };
    let index = registry.host().attach(new, |_, _| Tx).unwrap();
    let name = || "t0".to_owned();
    let changes = changes_of("t0");
    asked.borrow_mut().sulks = true;
    let facts = |r: &Registry| format!("{:?}", r.interfaces.borrow().get(index));
    let before = facts(&registry);
    for change in &changes {
        let why = apply(&mut registry, change.clone())
            .unwrap_err()
            .to_string();
        assert!(why.contains("t0") && why.ends_with("restart it"), "{why}");
    }
    assert_eq!(facts(&registry), before, "nothing has changed");
    asked.borrow_mut().sulks = false;
    asked.borrow_mut().log.clear();
    for change in changes {
        apply(&mut registry, change).unwrap();
    }
    let log = [
        "state up",
        "mac 02:00:00:00:00:09",
        "mtu 1400",
        "rx-mode polling",
        "promiscuous on",
    ];
    assert_eq!(asked.borrow().log, log);
    let table = registry.table();
    assert!(table.has(index.0, Flag::Up) && table.has(index.0, Flag::Promiscuous));
    assert!(!table.may_sleep(index.0, u64::MAX));
    let why = apply(&mut registry, set_mtu(&name(), 9000))
        .unwrap_err()
        .to_string();
    assert!(why.contains("1500 at most"), "{why}");
    let shown = hardware(&mut registry);
    let row = &shown.hardware[0];
    assert_eq!(row.details, ["made for a test", "asked 5 times"]);
    assert!(row.promiscuous && row.rx_mode == RxMode::Polling && row.max_frame == 1414);
}

#[test]
fn link_and_names_are_told_and_shown() {
    let mut registry = registry();
    let host = registry.host();
    let reported = Rc::new(RefCell::new(Vec::new()));
    let log = reported.clone();
    registry.interfaces.borrow_mut().listen(move |change| {
        if let Change::Updated(i) = change {
            log.borrow_mut().push((i.name.clone(), i.is_up()));
        }
    });
    let new = NewInterface {
        link: Link::down("nobody has connected yet"),
        ..NewInterface::new("t0", "test")
    };
    let index = host.attach(new, |_, _| Tx).unwrap();
    let state = AdminState::Up;
    apply(&mut registry, Admin::request("t0", state).unwrap()).unwrap();
    host.set_link(index, Link::Up);
    let rename = |name: &str, new_name: &str| Request::InterfaceRename {
        name: name.into(),
        new_name: new_name.into(),
    };
    host.attach(NewInterface::new("t1", "test"), |_, _| Tx)
        .unwrap();
    assert!(apply(&mut registry, rename("t0", "t1")).is_err());
    apply(&mut registry, rename("t0", "uplink")).unwrap();
    assert!(host.engine.borrow().node("uplink-tx").is_ok());
    host.set_link(index, Link::down("the peer is gone"));
    let reported: Vec<_> = reported
        .borrow()
        .iter()
        .map(|(n, up)| format!("{n} {up}"))
        .collect();
    assert_eq!(
        reported,
        ["t0 false", "t0 true", "uplink true", "uplink false"]
    );
    let shown = hardware(&mut registry);
    let why = shown.hardware[0].link_reason.as_deref();
    assert_eq!(why, Some("the peer is gone"));
    host.detach(index).unwrap();
    assert!(host.engine.borrow().node("uplink-tx").is_err());
}

#[test]
fn queues_and_capabilities_are_shown() {
    let mut registry = registry();
    let host = registry.host();
    let new = NewInterface {
        rx_node: "test-input",
        rx_queues: vec![0, 0],
        ..NewInterface::new("uplink", "test")
    };
    let index = host.attach(new, |_, _| Tx).unwrap();
    let table = registry.table();
    table.count_queue(index.0, Direction::Rx, 1, 5, 300);
    let clear = Request::of(&InterfacesClear).unwrap();
    registry.owners.apply(&clear).unwrap().unwrap();
    table.count_queue(index.0, Direction::Rx, 1, 2, 120);
    host.set_caps(
        index,
        Caps {
            checksum: true,
            ..Caps::NONE
        },
    );
    let shown = hardware(&mut registry);
    let row = &shown.hardware[0];
    assert_eq!(
        (row.rx_queues, &row.offloads[..]),
        (2, &["checksum".to_owned()][..])
    );
    let q = &row.queues[0];
    assert_eq!((q.queue, q.passed.packets, q.passed.bytes), (1, 2, 120));
    let only = Some("uplink".to_owned());
    let place = registry.owners.ask(&ShowRxPlacement { interface: only });
    let place = place.unwrap();
    let rows: Vec<_> = place
        .placement
        .iter()
        .map(|r| (r.worker, r.queue))
        .collect();
    assert_eq!(rows, [(0, 0), (0, 1)]);
}
