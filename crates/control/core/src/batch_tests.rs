//! Objects of a bulk class, with a plain map as their owner.

use crate::batch::MOST;
use crate::tests::{Route, Table};
use crate::{Core, Executor, Progress};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use volley_model::{Applied, ModelError, Prefix, Request};
use volley_object::{Bulk, Instance, Object};

/// An owner that is a plain map, and refuses the request that creates this route.
#[derive(Default)]
struct Plain {
    routes: RefCell<BTreeMap<(u32, Prefix), u32>>,
    refuses: Option<Prefix>,
    longest: RefCell<usize>,
}

impl crate::Probe for Plain {
    fn by_first_name(&self, _: &str) -> Vec<Instance> {
        Vec::new()
    }
}

/// Packed prefixes, as the owner of a class gets them.
fn unpacked(item: &volley_object::Packed) -> Prefix {
    volley_object::FieldType::unpack(item).unwrap()
}

impl Executor for Plain {
    fn apply(&self, request: &Request) -> Result<Applied, ModelError> {
        let bulk = match request {
            Request::Bulk(bulk) => *bulk.clone(),
            Request::Set(object) | Request::Add(object) => Bulk::with(object).unwrap(),
            Request::Unset(key) => Bulk::without(key).unwrap(),
            other => panic!("{other}"),
        };
        let mut longest = self.longest.borrow_mut();
        *longest = (*longest).max(bulk.len());
        let table = bulk.common(0).unwrap();
        let metrics: Vec<u32> = bulk.field("metric").unwrap();
        let put = bulk.puts().iter();
        let put = put.map(|(item, set)| ((table, unpacked(item)), metrics[*set as usize]));
        if put
            .clone()
            .any(|((_, prefix), _)| Some(prefix) == self.refuses)
        {
            return Err(ModelError::invalid("this", "it is refused"));
        }
        let mut routes = self.routes.borrow_mut();
        routes.extend(put);
        for item in bulk.removed() {
            routes.remove(&(table, unpacked(item)));
        }
        Ok(Applied::one())
    }
}

fn prefix(n: u32) -> Prefix {
    let addr = std::net::Ipv4Addr::from_bits(0x0a00_0000 + n * 256);
    Prefix::masked(addr.into(), 24).unwrap()
}

fn route(prefix: Prefix, metric: u32) -> Route {
    // The class to which others refer is registered first.
    Table::class().unwrap();
    Route::new(prefix, metric)
}

/// The change of route `n`: metric 0 to 2, or its removal.
fn change(n: u32, metric: u32, there: bool) -> Option<Request> {
    let route = route(prefix(n), metric);
    match metric {
        0 => Some(Request::set(&route).unwrap()),
        1 | 2 => Some(Request::add(&route).unwrap()),
        3 if there => Some(Request::take(&route).unwrap()),
        _ => there.then(|| Request::unset(&route).unwrap()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Transactions lead to the same map as single requests; a failed transaction changes nothing.
    #[test]
    fn transactions_do_what_single_requests_do(
        rounds in prop::collection::vec(prop::collection::vec((0u32..40, 0u32..5), 2..60), 1..5),
        refused in prop::option::of(0u32..40),
    ) {
        let (mut core, mut owner) = (Core::default(), Plain::default());
        let mut want = BTreeMap::new();
        for round in rounds {
            let mut then = want.clone();
            let mut requests = Vec::new();
            for (n, metric) in round {
                let key = (0, prefix(n));
                requests.extend(change(n, metric, then.contains_key(&key)));
                match metric {
                    0..=2 => _ = then.insert(key, metric),
                    _ => _ = then.remove(&key),
                }
            }
            owner.refuses = refused.map(prefix);
            match core.run(&requests, &owner) {
                Ok(_) => want = then,
                Err(_) => prop_assert!(refused.is_some()),
            }
            prop_assert_eq!(&*owner.routes.borrow(), &want);
            prop_assert_eq!(core.state().len(), want.len());
        }
    }
}

/// A request for many routes: set 0 has metric 1.
fn bulk(put: impl Iterator<Item = Prefix>, gone: impl Iterator<Item = Prefix>) -> Request {
    Route::class_here();
    let texts = |all: Vec<Prefix>| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    let put: Vec<_> = texts(put.collect()).into_iter().map(|it| (it, 0)).collect();
    let json = serde_json::json!({ "bulk": {
        "class": "route", "sets": [{"metric": 1}], "put": put, "gone": texts(gone.collect()),
    }});
    serde_json::from_value(json).unwrap()
}

impl Route {
    fn class_here() {
        Table::class().unwrap();
        Route::class().unwrap();
    }
}

#[test]
fn many_routes_are_several_steps_and_taken_back_as_several() {
    let many = 3 * MOST as u32 - 5;
    let (mut core, mut owner) = (Core::default(), Plain::default());
    owner.refuses = Some(prefix(many - 1));
    let before = core.state().clone();
    let requests = [bulk((0..many).map(prefix), std::iter::empty())];
    let mut transaction = core.begin(&requests, &owner).unwrap();
    assert_eq!(transaction.steps().len(), 3);
    let mut slices = 0;
    let error = loop {
        match transaction.advance(&owner, 1) {
            Progress::More => slices += 1,
            Progress::Failed(error) => break error.to_string(),
            Progress::Done(_) => panic!("it was to fail"),
        }
    };
    assert!(error.contains("it is refused"), "{error}");
    core.end(transaction, None, &owner);
    assert_eq!((slices, core.state()), (4, &before));
    assert!(owner.routes.borrow().is_empty());

    owner.refuses = None;
    core.run(&requests, &owner).unwrap();
    assert_eq!(owner.routes.borrow().len(), many as usize);
    assert_eq!(*owner.longest.borrow(), MOST);
    let gone = bulk(std::iter::empty(), (0..many).map(prefix));
    core.run(&[gone], &owner).unwrap();
    assert!(owner.routes.borrow().is_empty() && core.state().is_empty());
}

#[test]
fn many_routes_are_refused_as_a_whole() {
    Route::class_here();
    let refused = |text: &str| {
        let request = serde_json::from_str::<Request>(text);
        let request = match request {
            Ok(request) => [request],
            Err(error) => return error.to_string(),
        };
        let mut core = Core::default();
        let error = core.run(&request, &Plain::default()).unwrap_err();
        assert!(core.state().is_empty());
        error.to_string()
    };
    for (body, why) in [
        (
            r#""sets":[{}],"put":[["10.0.1.0/24",0],["10.0.2.0/24",1]]"#,
            "there is no set 1 for 10.0.2.0/24: `sets` has 1",
        ),
        (
            r#""sets":[{}],"put":[["10.0.1.0/24",0]],"gone":["10.0.2.0/24"]"#,
            "there is no route 10.0.2.0/24",
        ),
        (
            r#""sets":[{"via":["pg7"]}],"put":[["10.0.1.0/24",0]]"#,
            "no interface pg7",
        ),
        (r#""put":[["10.0.1.1/24",0]]"#, "has host bits set"),
        (r#""table":"x""#, "table must be a number"),
        (r#""sets":[{"color":1}]"#, "unknown field `color`"),
        (
            r#""table":7,"sets":[{}],"put":[["10.0.1.0/24",0]]"#,
            "there is no table 7 ip4",
        ),
    ] {
        // The class may be named at any position.
        for text in [
            format!(r#"{{"bulk":{{"class":"route",{body}}}}}"#),
            format!(r#"{{"bulk":{{{body},"class":"route"}}}}"#),
        ] {
            let reported = refused(&text);
            assert!(reported.contains(why), "{text}: {reported}");
        }
    }
    let other = refused(r#"{"bulk":{"class":"table"}}"#);
    assert!(other.contains("use `set`"), "{other}");
}

#[test]
fn items_join_and_leave_and_keys_are_counted() {
    Route::class_here();
    let owner = crate::tests::Reported::default();
    let mut core = Core::default();
    let first = ["create pg1", "create pg2", "table 7"];
    core.run(&crate::tests::all(&first), &owner).unwrap();
    let via = |names: &[&str], count| Route {
        via: names.iter().map(|it| (*it).to_owned()).collect(),
        count,
        ..route(prefix(0), 0)
    };
    let message = |core: &Core| -> Vec<String> {
        let all = crate::requests(core.state()).into_iter();
        let all = all.map(|request| request.to_string());
        all.filter(|line| line.contains("route")).collect()
    };
    core.run(&[Request::add(&via(&["pg2"], 3)).unwrap()], &owner)
        .unwrap();
    assert_eq!(message(&core), ["ip route add 10.0.0.0/24 count 3 via pg2"]);
    core.run(&[Request::add(&via(&["pg1"], 1)).unwrap()], &owner)
        .unwrap();
    let two = [
        "ip route add 10.0.0.0/24 via pg1 via pg2",
        "ip route add 10.0.1.0/24 count 2 via pg2",
    ];
    assert_eq!(message(&core), two);
    let missing = core.run(&[Request::take(&via(&["pg1"], 2)).unwrap()], &owner);
    let missing = missing.unwrap_err().to_string();
    assert!(
        missing.contains("no via 'pg1' of route 10.0.1.0/24"),
        "{missing}"
    );
    let over = core.run(&[Request::take(&via(&[], 4)).unwrap()], &owner);
    let over = over.unwrap_err().to_string();
    assert!(over.contains("there is no route 10.0.3.0/24"), "{over}");
    assert_eq!(message(&core), two);
    core.run(&crate::tests::all(&["rename pg2 pg9"]), &owner)
        .unwrap();
    assert_eq!(
        message(&core)[1],
        "ip route add 10.0.1.0/24 count 2 via pg9"
    );
    let used = core.run(&crate::tests::all(&["delete pg9"]), &owner);
    assert!(
        used.unwrap_err()
            .to_string()
            .contains("in use by route 10.0.0.0/24")
    );
    core.run(&[Request::take(&via(&["pg9"], 3)).unwrap()], &owner)
        .unwrap();
    assert_eq!(message(&core), ["ip route add 10.0.0.0/24 via pg1"]);
    let dynamic = Route {
        by: "dynamic".to_owned(),
        ..via(&["pg1"], 2)
    };
    core.run(&[Request::set(&dynamic).unwrap()], &owner)
        .unwrap();
    let mut wanted = Core::state_of(&crate::tests::all(&first)).unwrap();
    assert_eq!((core.state().len(), core.state().lasting().len()), (7, 5));
    wanted = wanted.lasting();
    let transaction = core.begin_state(&wanted).unwrap();
    core.finish(transaction, &owner).unwrap();
    assert_eq!(
        message(&core),
        ["ip route add 10.0.0.0/24 by dynamic count 2 via pg1"]
    );
}
