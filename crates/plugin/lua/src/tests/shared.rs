//! What scripts share between threads, under stress: workers look up, learn and get new scripts, while the control thread loads, collects and
//! drops what comes back. The queues and snapshots themselves have loom models in their crates.

use super::*;
use crate::tables::{Change, Route, Run, Shared, Table};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use volley_sdk::tables::Reader;

const WORKERS: usize = 3;
/// Versions of what the control thread loads.
const VERSIONS: u32 = if cfg!(debug_assertions) { 60 } else { 600 };
/// Prefixes of a version's run.
const PREFIXES: u32 = 500;
/// The base of the run's prefixes, and of what workers learn.
const FIXED: u32 = 0x4000_0000;
const LEARNED: u32 = 0x5000_0000;

/// A route whose interface, MTU and MAC address belong together.
fn route(n: u32) -> Route {
    let [_, _, high, low] = n.to_be_bytes();
    Route {
        interface: n,
        mtu: n + 1,
        source: [2, 0, 0, 0, high, low],
        mac: Some([2, 1, 0, 0, high, low]),
        via: None,
    }
}

/// What a worker finds for an address is nothing, or all of one route.
fn check(shared: &Shared, reader: &mut Reader, address: u32) -> Option<u32> {
    shared.read(reader, |view, hops, routes| {
        let at = (view.lookup(address) as usize).checked_sub(1)?;
        let (hop, known) = (hops.get(at), routes.get(at));
        let (hop, known) = hop
            .zip(known)
            .expect("a leaf is published before its route");
        assert_eq!((hop.interface, hop.mtu), (known.interface, known.mtu));
        assert_eq!(*known, route(known.interface), "a torn route");
        let low = (known.interface as u16).to_be_bytes();
        assert_eq!(hop.ethernet[..6], [2, 1, 0, 0, low[0], low[1]]);
        Some(known.interface)
    })
}

#[test]
fn workers_see_whole_routes_while_the_table_changes() {
    let domain = Domain::new();
    let mut table = Table::new(&domain);
    let (done, accepted) = (AtomicBool::new(false), AtomicU64::new(0));
    let run = |version: u32| {
        let routes = (0..3).map(|n| route(version * 3 + n)).collect();
        Change::Run(Run::new((FIXED, 24), PREFIXES, routes).unwrap())
    };
    table.load(&[run(0)]).unwrap();
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for worker in 0..WORKERS as u32 {
            let (shared, mut reader) = (table.shared(), domain.register());
            let (done, accepted) = (&done, &accepted);
            workers.push(scope.spawn(move || {
                let mut n = 0u32;
                while !done.load(Ordering::Relaxed) {
                    n = n.wrapping_add(1);
                    let address = FIXED + (n % PREFIXES) * 256 + worker;
                    // A version replaces the last one prefix by prefix: no prefix is ever without a route.
                    assert!(check(&shared, &mut reader, address).is_some());
                    check(&shared, &mut reader, LEARNED + n % 512);
                    if n.is_multiple_of(64) {
                        let learned =
                            Change::Add(LEARNED + n / 64 % 512, 32, route(60_000 + worker));
                        accepted.fetch_add(u64::from(shared.ask(learned)), Ordering::Relaxed);
                    }
                }
            }));
        }
        for version in 1..VERSIONS {
            table.load(&[run(version)]).unwrap();
            table.collect().unwrap();
            domain.reclaim();
        }
        // The workers have requested some changes by then, however the threads were scheduled.
        let has_failed = || workers.iter().any(|worker| worker.is_finished());
        while accepted.load(Ordering::Relaxed) < WORKERS as u64 && !has_failed() {
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    table.collect().unwrap();
    let (shared, mut reader) = (table.shared(), domain.register());
    for n in 0..PREFIXES {
        let last = (VERSIONS - 1) * 3 + n % 3;
        assert_eq!(check(&shared, &mut reader, FIXED + n * 256), Some(last));
    }
    let learned = (0..512).filter(|n| check(&shared, &mut reader, LEARNED + n).is_some());
    assert!(learned.count() > 0);
}

/// The runs of two versions have no prefix in common: in each moment all prefixes of one of them are there.
#[test]
fn workers_see_the_whole_run_of_one_version() {
    let domain = Domain::new();
    let mut table = Table::new(&domain);
    let done = AtomicBool::new(false);
    let run = |version: u32| {
        let first = FIXED + (version % 2) * PREFIXES * 256;
        Change::Run(Run::new((first, 24), PREFIXES, vec![route(version % 2)]).unwrap())
    };
    table.load(&[run(0)]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            let (shared, mut reader, done) = (table.shared(), domain.register(), &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let there = shared.read(&mut reader, |view, _, _| {
                        let is_there = |n: u32| view.lookup(FIXED + n * 256) != 0;
                        (0..2 * PREFIXES).map(is_there).collect::<Vec<bool>>()
                    });
                    let (first, second) = there.split_at(PREFIXES as usize);
                    let is_first = first[0];
                    assert!(first.iter().all(|it| *it == is_first), "a part of a run");
                    assert!(
                        second.iter().all(|it| *it != is_first),
                        "both runs, or none"
                    );
                }
            });
        }
        for version in 1..VERSIONS {
            table.load(&[run(version)]).unwrap();
            domain.reclaim();
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// A script has several tables: one of them refuses, and all stay as they were. Tables of a script that is not loaded are removed.
#[test]
fn a_refused_script_changes_none_of_its_tables() {
    let first = Bench::new(
        "local a, b = volley.lpm('a'), volley.lpm('b')
         a:add('10.0.1.0/24', { interface = 'pg1', mac = '02:00:00:00:00:aa' })
         function vector(v) local hit = v:lookup(a) v:apply(hit) v:send(hit) end",
    );
    let link = first.link();
    let mut second = first.clone();
    second.source = {
        let mut source = (*first.source).clone();
        source.text = "local a, b, c = volley.lpm('a'), volley.lpm('b'), volley.lpm('c')
            local to = { interface = 'pg0', mac = '02:00:00:00:00:bb' }
            a:add('10.0.1.0/24', to)
            b:add_many('0.0.0.0/24', 16777216, { to }) b:add_many('0.0.0.0/25', 1, { to })
            function vector(v) end"
            .to_owned();
        Arc::new(source)
    };
    let why = second.load().err().unwrap();
    assert!(why.starts_with("table b: 16777217 prefixes"), "{why}");
    assert_eq!(lock(&first.tables).names(), ["a", "b", "c"]);
    lock(&first.tables).forget_new();
    assert_eq!(lock(&first.tables).names(), ["a", "b"]);
    let make = move |_| LuaScripts::<DeviceInput>::new(link.clone(), 256);
    let packets = [frame(1, [10, 0, 1, 2], 64)];
    let out = volley_sdk::harness::run_once(level(), 1, &packets, &Domain::new(), make).unwrap();
    assert_eq!((out[0].columns[&Col::TX], out[0].bytes[5]), (2, 0xaa));
}

/// A state waits for the worker, is on it, or waits for the control thread: each is dropped once, and the newest one arrives.
#[test]
fn scripts_that_change_hands_are_neither_lost_nor_doubled() {
    let bench = Bench::new("function vector(v) v:send('pg1') end");
    let link = Link::new(bench.errors.clone());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (worker, done) = (link.clone(), &done);
        let taken = scope.spawn(move || {
            let mut held: Vec<(u64, Option<Box<ScriptState>>)> = Vec::new();
            let mut newest = 0;
            loop {
                let is_last = done.load(Ordering::Acquire);
                if let Some(mut new) = worker.take() {
                    let (number, state) = &mut new.scripts[0];
                    assert!(*number >= newest, "an older version after a newer one");
                    let mut old = std::mem::take(&mut held);
                    if let (None, Some((_, mine))) =
                        (&state, old.iter_mut().find(|it| it.0 == *number))
                    {
                        *state = mine.take();
                    }
                    assert!(state.is_some(), "version {number} has no state");
                    newest = *number;
                    held = new.scripts;
                    old.into_iter()
                        .filter_map(|(_, state)| state)
                        .for_each(|state| worker.give_back(state));
                } else if is_last {
                    return newest;
                }
            }
        });
        for number in 1..=u64::from(VERSIONS) {
            link.give(config(number, Some(bench.load().unwrap().0)));
            if number % 3 == 0 {
                // The same version once more: its state is on the worker, or waits and is passed on.
                link.give(config(number, None));
            }
            link.drop_returned();
        }
        done.store(true, Ordering::Release);
        assert_eq!(taken.join().unwrap(), u64::from(VERSIONS));
    });
}
