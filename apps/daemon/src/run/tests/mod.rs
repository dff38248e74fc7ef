//! Transactions against the real stack: the tests compare its replies, not the model's state.

mod generate;
mod observe;

use crate::settings::EngineSettings;
use crate::stack::Stack;
use generate::{changes, config};
use observe::{differences, seen};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use volley_control::{Core, Executor, Probe, State, requests};
use volley_graph::{Clock, Worker};
use volley_iface::ArcFeature;
use volley_model::{Applied, InterfaceSpec, ModelError, Request};
use volley_object::Instance;
use volley_pg::model::PgInterface;

/// A stack whose worker takes up changes on request.
struct Rig {
    stack: Stack,
    worker: RefCell<Vec<Worker>>,
    core: RefCell<Core>,
    /// The request, counted from now, that always fails.
    fails_at: Cell<Option<usize>>,
}

impl Probe for Rig {
    fn by_first_name(&self, interface: &str) -> Vec<Instance> {
        self.stack.by_first_name(interface)
    }
}

impl Executor for Rig {
    fn apply(&self, request: &Request) -> Result<Applied, ModelError> {
        match self.fails_at.get() {
            Some(0) => {
                self.fails_at.set(None);
                return Err(ModelError::invalid("this request", "the test refuses it"));
            }
            left => self.fails_at.set(left.map(|n| n - 1)),
        }
        let done = self.stack.apply(request);
        if done.is_err() {
            // From here on requests are rolled back, which must not fail here.
            self.fails_at.set(None);
        }
        self.worker
            .borrow_mut()
            .iter_mut()
            .for_each(|w| _ = w.step());
        self.stack.settled();
        done
    }
}

impl Rig {
    fn new() -> Rig {
        let settings = EngineSettings {
            buffers: 512,
            vector_size: 16,
            ..EngineSettings::default()
        };
        let (stack, workers) = Stack::new(&settings, Clock::manual()).unwrap();
        Rig {
            stack,
            worker: RefCell::new(workers),
            core: RefCell::default(),
            fails_at: Cell::new(None),
        }
    }

    fn become_state(&self, wanted: &State) -> Result<usize, String> {
        let mut core = self.core.borrow_mut();
        let transaction = core.begin_state(wanted).map_err(|e| e.to_string())?;
        let steps = transaction.steps().len();
        let done = core.finish(transaction, self).map_err(|e| {
            assert!(e.left.is_empty(), "{e}");
            e.to_string()
        });
        done.map(|_| steps)
    }

    fn run(&self, requests: &[Request]) -> Result<Applied, String> {
        let done = self.core.borrow_mut().run(requests, self);
        done.map_err(|e| {
            assert!(e.left.is_empty(), "{e}");
            e.to_string()
        })
    }
}

fn cases() -> ProptestConfig {
    let small = std::env::var_os("VOLLEY_SMALL").is_some();
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(if small { 4 } else { 48 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The state after these commands.
fn state(commands: &[&str]) -> State {
    let request = |line: &&str| match volley_cli::parse_line(line).map(|it| it.action) {
        Ok(volley_cli::Action::Request(request)) => *request,
        other => panic!("{line}: {other:?}"),
    };
    let requests: Vec<Request> = commands.iter().map(request).collect();
    Core::state_of(&requests).unwrap()
}

#[test]
fn what_no_longer_needs_an_object_changes_before_the_object_goes() {
    let port = [
        "create packet-generator interface pg0",
        "set interface state pg0 up",
        "set interface ip address pg0 10.0.0.2/24",
    ];
    let route = |more: &[&'static str]| [&port[..], more].concat();
    let old = [
        "ip table add 2",
        "ip route add 20.0.112.0/24 via lookup-in-table 2",
        "set interface ip6 table pg0 3",
        "ip6 table add 3",
    ];
    let (old, none) = (state(&route(&old)), state(&port));
    for new in [
        &["ip route add 20.0.112.0/24 via 10.0.0.1 pg0"][..],
        &[
            "ip table add 7",
            "ip route add 20.0.112.0/24 via lookup-in-table 7",
        ],
        &["ip6 table add 4", "set interface ip6 table pg0 4"],
    ] {
        let new = state(&route(new));
        let (rig, fresh) = (Rig::new(), Rig::new());
        for wanted in [&old, &new, &old, &none] {
            rig.become_state(wanted).unwrap();
        }
        rig.become_state(&new).unwrap();
        fresh.become_state(&new).unwrap();
        assert_eq!(differences(&seen(&rig.stack), &seen(&fresh.stack)), [""; 0]);
    }
}

proptest! {
    #![proptest_config(cases())]

    /// Invariant 8 of the model.
    #[test]
    fn a_then_b_is_a_fresh_start_with_b(a in config(), b in config()) {
        let (one, fresh) = (Rig::new(), Rig::new());
        let (a, b) = (Core::state_of(&a), Core::state_of(&b));
        let (Ok(a), Ok(b)) = (a, b) else { return Ok(()); };
        let nothing = seen(&one.stack);
        let first = one.become_state(&a);
        if first.is_err() {
            prop_assert_eq!(differences(&nothing, &seen(&one.stack)), [""; 0], "refused, but not as before");
        }
        let after_a = seen(&one.stack);
        let (late, early) = (one.become_state(&b), fresh.become_state(&b));
        prop_assert_eq!(late.is_ok(), early.is_ok(), "{:?} {:?}", late, early);
        if late.is_err() {
            prop_assert_eq!(differences(&after_a, &seen(&one.stack)), [""; 0], "refused, but not as before");
            return Ok(());
        }
        prop_assert_eq!(differences(&seen(&one.stack), &seen(&fresh.stack)), [""; 0]);
        // A second time there is nothing to change, and no step.
        prop_assert_eq!(one.become_state(&b), Ok(0));
        prop_assert_eq!(differences(&seen(&one.stack), &seen(&fresh.stack)), [""; 0]);
    }

    /// A step that fails rolls everything back.
    #[test]
    fn a_failure_anywhere_leaves_what_was(a in config(), b in config(), at in 0usize..40) {
        let rig = Rig::new();
        let (Ok(a), Ok(b)) = (Core::state_of(&a), Core::state_of(&b)) else { return Ok(()); };
        if rig.become_state(&a).is_err() { return Ok(()); }
        let before = seen(&rig.stack);
        rig.fails_at.set(Some(at));
        let done = rig.become_state(&b);
        let failed = rig.fails_at.replace(None).is_none();
        if done.is_err() {
            prop_assert_eq!(differences(&before, &seen(&rig.stack)), [""; 0]);
            let core = rig.core.borrow();
            prop_assert_eq!(core.state(), &a);
        } else {
            prop_assert!(!failed);
        }
    }

    /// Single commands and groups, refused or not: the running state equals that of a new router with the written file.
    #[test]
    fn what_is_written_out_makes_the_same_router(groups in changes()) {
        let rig = Rig::new();
        for group in &groups {
            let before = seen(&rig.stack);
            if rig.run(group).is_err() {
                prop_assert_eq!(differences(&before, &seen(&rig.stack)), [""; 0], "{:?}", group);
            }
        }
        let all = requests(rig.core.borrow().state());
        let text = volley_config::write(&all);
        let read = volley_config::parse(&text);
        let read = read.map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        let state = Core::state_of(&read.requests).unwrap();
        prop_assert_eq!(requests(&state), all);
        let fresh = Rig::new();
        fresh.become_state(&state).unwrap();
        prop_assert_eq!(differences(&seen(&fresh.stack), &seen(&rig.stack)), [""; 0], "{}", text);
    }
}

fn pg(name: &str) -> Request {
    let name = name.into();
    Request::InterfaceCreate(InterfaceSpec::of(&PgInterface { name }).unwrap())
}

#[test]
fn made_and_renamed_at_once_keeps_its_address_in_the_file_too() {
    let (rig, fresh) = (Rig::new(), Rig::new());
    let rename = |name: &str, new_name: &str| Request::InterfaceRename {
        name: name.into(),
        new_name: new_name.into(),
    };
    rig.run(&[pg("pg3"), rename("pg3", "a"), rename("a", "wan0")])
        .unwrap();
    let mac = rig.by_first_name("wan0");
    assert_eq!(mac.len(), 1);
    let state = rig.core.borrow().state().clone();
    fresh.become_state(&state).unwrap();
    assert_eq!(fresh.by_first_name("wan0"), mac);
    // A failed transaction leaves nothing behind.
    rig.fails_at.set(Some(2));
    rig.run(&[pg("pg4"), rename("pg4", "b"), pg("pg5")])
        .unwrap_err();
    assert_eq!(rig.core.borrow().state(), &state);
}

#[test]
fn a_feature_goes_with_its_interface() {
    let (rig, fresh) = (Rig::new(), Rig::new());
    let feature = ArcFeature {
        interface: "pg3".into(),
        arc: "ip4-unicast".into(),
        feature: "ip4-not-enabled".into(),
    };
    let delete = Request::InterfaceDelete { name: "pg3".into() };
    for request in [pg("pg3"), Request::set(&feature).unwrap(), delete] {
        rig.run(&[request]).unwrap();
    }
    let (left, never) = (seen(&rig.stack), seen(&fresh.stack));
    assert_eq!(differences(&left, &never), [""; 0]);
}

fn time<T>(what: &str, bar_s: f64, work: impl FnOnce() -> T) -> T {
    let start = std::time::Instant::now();
    let done = work();
    let took = start.elapsed().as_secs_f64();
    println!("{what}: {took:.3} s, bar {bar_s} s");
    if !cfg!(debug_assertions) {
        assert!(took < bar_s, "{what}: {took} s");
    }
    done
}

#[test]
fn a_hundred_thousand_routes_are_one_transaction() {
    let rig = Rig::new();
    rig.run(&generate::uplink()).unwrap();
    let before = seen_summary(&rig);
    let routes = generate::routes(100_000);
    time("100000 routes in", 3.0, || rig.run(&routes)).unwrap();
    assert_eq!(rig.core.borrow().state().len(), 100_000 + 4);
    let after = seen_summary(&rig);
    assert_ne!(before, after);
    // A failure of the last step restores everything.
    let mut more = generate::routes(200_000).split_off(100_000);
    more.truncate(20_000);
    // A step has 4,096 routes: the last of five steps fails.
    rig.fails_at.set(Some(4));
    time("20000 routes in and out again", 3.0, || rig.run(&more)).unwrap_err();
    assert_eq!(seen_summary(&rig), after);
    let nothing = Core::state_of(&generate::uplink()).unwrap();
    time("100000 routes out", 3.0, || rig.become_state(&nothing)).unwrap();
    assert_eq!(seen_summary(&rig), before);
}

fn seen_summary(rig: &Rig) -> String {
    let asked = volley_fib::ShowFib {
        family: volley_model::Family::V4,
        table: None,
        prefix: None,
        address: None,
        summary: true,
        limit: None,
    };
    format!("{:?}", rig.stack.ask(&asked).unwrap().tables[0].lengths)
}
