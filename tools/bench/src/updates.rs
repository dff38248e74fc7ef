//! `volley bench updates`: a full table, a stream at a fraction of the worker's capacity, and updates of a routing
//! protocol, applied as fast as the control thread can. The stream has only destinations in prefixes that no update names
//! or covers ("stable"); those lead to one interface, all updated prefixes to another one. Every packet must leave by the
//! right interface.
//!
//! Updates have no next hop: each announcement moves its prefix to the next one of many, the worst case. Files are read
//! before.

use super::BenchError;
use super::args::UpdateArgs;
use super::pauses::{change, dropped, left};
use super::report::print_json;
use super::tables::{Random, rows4, rows6};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use volley_daemon::EngineSettings;
use volley_daemon::stack::Stack;
use volley_fib::Route;
use volley_fib::RouteBatch;
use volley_fib::load::{UpdateKind, read_updates};
use volley_fib::path::RouteSource;
use volley_fib::{V4, V6};
use volley_graph::Clock;
use volley_model::{Family, Prefix};
use volley_object::Object;

/// pg0 receives; stable prefixes lead to pg1, the others to pg2.
const ROUTER: &str = "\
create packet-generator interface pg0 mac 02:00:00:00:00:01
create packet-generator interface pg1 mac 02:00:00:00:00:02
create packet-generator interface pg2 mac 02:00:00:00:00:03
set interface state pg0 up
set interface state pg1 up
set interface state pg2 up
set interface ip address pg1 198.18.0.1/24
set interface ip address pg2 198.18.1.1/24
set interface ip address pg1 2001:2::1/64
set interface ip address pg2 2001:2:0:1::1/64";
/// Number of next hops on each interface.
const HOPS: u32 = 32;
/// Number of destinations of each family.
const DESTINATIONS: usize = 1024;
/// Number of synthetic updates of each family, if no file is given; one prefix in this number is then updated.
const MADE: usize = 50_000;
const ONE_IN: usize = 20;
/// Maximum time that the worker's thread may wait for a processor before a measurement continues without it.
const STARVED: Duration = Duration::from_secs(10);
/// Number of routes loaded at once.
const LOAD: usize = 20_000;

/// A prefix of either family: the first address, left-aligned.
type Key = (Family, u128, u8);
/// Updates: announced (true) or withdrawn.
type Updates = Vec<(bool, Key)>;

#[derive(Serialize)]
struct Report {
    prefixes: usize,
    updates: usize,
    from: &'static str,
    updates_per_second: f64,
    seconds: f64,
    /// The worker's maximum rate, the offered rate, and the transmitted rate during updates, in packets per second.
    capacity: f64,
    offered: f64,
    forwarded: f64,
    sent: u64,
    received: u64,
    dropped: u64,
    /// Packets that left by the interface of updated prefixes.
    astray: u64,
}

/// Run the benchmark of the command line.
pub fn run(args: &UpdateArgs) -> Result<(), BenchError> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let (rows, updates) = (rows(args)?, updates(args)?);
    let (updates, from) = match updates {
        Some(updates) => (updates, "files"),
        None => (made_up(&rows), "made up"),
    };
    let moved: HashSet<Key> = updates.iter().map(|(_, key)| *key).collect();
    let (stack, mut workers) = Stack::new(&EngineSettings::default(), Clock::system())?;
    let mut worker = workers
        .pop()
        .ok_or_else(|| BenchError::Args("no worker".into()))?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, worker) = (&stop, &mut worker);
        scope.spawn(move || {
            if let Some(core) = cores.last() {
                core_affinity::set_for_current(*core);
            }
            while !stop.load(Ordering::Acquire) {
                worker.step();
            }
        });
        let done = measure(&stack, args, (&rows, &moved), &updates);
        stop.store(true, Ordering::Release);
        print(args, &Report { from, ..done? })
    })
}

fn measure(
    stack: &Stack,
    args: &UpdateArgs,
    (rows, moved): (&[Key], &HashSet<Key>),
    updates: &Updates,
) -> Result<Report, BenchError> {
    for line in router() {
        change(stack, &line, std::hint::spin_loop)?;
    }
    load(stack, rows, moved)?;
    let lists = destinations(rows, moved)?;
    streams(stack, &lists, None)?;
    let capacity = forwarded(stack, || wait(args.seconds))?.0;
    streams(stack, &lists, Some(capacity * args.load / 100.0))?;
    let (mut seconds, mut done) = (0.0, Ok(()));
    let before = [left(stack, "pg1"), left(stack, "pg2"), dropped(stack)];
    let (rate, sent) = forwarded(stack, || {
        let start = Instant::now();
        done = replay(stack, updates);
        seconds = start.elapsed().as_secs_f64();
    })?;
    done?;
    let after = [left(stack, "pg1"), left(stack, "pg2"), dropped(stack)];
    let [received, astray, dropped] = [0, 1, 2].map(|n| after[n] - before[n]);
    Ok(Report {
        prefixes: rows.len(),
        updates: updates.len(),
        from: "",
        updates_per_second: updates.len() as f64 / seconds,
        seconds,
        capacity,
        offered: capacity * args.load / 100.0,
        forwarded: rate,
        sent,
        received,
        dropped,
        astray,
    })
}

/// The router, with its neighbours.
fn router() -> Vec<String> {
    let mut lines: Vec<String> = ROUTER.lines().map(str::to_owned).collect();
    for (n, interface) in ["pg1", "pg2"].iter().enumerate() {
        for host in 0..HOPS {
            for hop in [hop4(n, host), hop6(n, host)] {
                let words = if hop.contains(':') { "ip6" } else { "ip" };
                lines.push(format!(
                    "set {words} neighbor {interface} {hop} 02:aa:00:00:{n:02x}:{host:02x}"
                ));
            }
        }
    }
    lines
}

fn hop4(interface: usize, host: u32) -> String {
    format!("198.18.{interface}.{}", 10 + host)
}

fn hop6(interface: usize, host: u32) -> String {
    format!("2001:2:0:{interface}::{:x}", 10 + host)
}

fn four((addr, len): (u32, u8)) -> Key {
    (Family::V4, u128::from(addr) << 96, len)
}

/// The tables, without the router's own networks.
fn rows(args: &UpdateArgs) -> Result<Vec<Key>, BenchError> {
    let count = args.prefixes;
    let v4 = rows4(args.table.as_deref(), Some(count.v4), None, 1)?;
    // The real IPv6 table has slightly less than a quarter.
    let v6 = rows6(args.table6.as_deref(), Some(count.v6.min(count.v4 / 4)), 1)?;
    let mut all: Vec<Key> = v4.iter().map(|r| four((r.0, r.1))).collect();
    all.extend(v6.iter().map(|r| (Family::V6, r.0, r.1)));
    all.retain(usable);
    Ok(all)
}

/// Whether a prefix is forwarded by a router and is not one of the benchmark's.
fn usable((family, addr, len): &Key) -> bool {
    match (family, addr >> 96) {
        (Family::V4, top) => {
            let first = top >> 24;
            *len > 7
                && (1..224).contains(&first)
                && first != 127
                && top >> 16 != 0xa9fe
                && top >> 17 != 0xc612 >> 1
        }
        (Family::V6, top) => *len > 15 && top >> 29 == 1 && top != 0x2001_0002,
    }
}

fn updates(args: &UpdateArgs) -> Result<Option<Updates>, BenchError> {
    let mut all = Updates::new();
    if let Some(path) = &args.updates {
        let read = read_updates::<V4>(path)?;
        let key = |u: &volley_fib::load::Update<V4>| four((u.addr, u.len));
        all.extend(
            read.iter()
                .map(|u| (u.kind == UpdateKind::Announce, key(u))),
        );
    }
    if let Some(path) = &args.updates6 {
        let read = read_updates::<V6>(path)?;
        let key = |u: &volley_fib::load::Update<V6>| (Family::V6, u.addr, u.len);
        all.extend(
            read.iter()
                .map(|u| (u.kind == UpdateKind::Announce, key(u))),
        );
    }
    all.retain(|(_, key)| usable(key));
    Ok((!all.is_empty()).then_some(all))
}

/// Synthetic updates, distributed like those of a day: mostly announcements, of a few prefixes.
fn made_up(rows: &[Key]) -> Updates {
    let some: Vec<Key> = rows.iter().step_by(ONE_IN).copied().collect();
    let mut random = Random(7);
    (0..2 * MADE)
        .map(|_| (random.below(30) > 0, some[random.below(some.len())]))
        .collect()
}

fn prefix(&(family, addr, len): &Key) -> Result<Prefix, BenchError> {
    let addr = match family {
        Family::V4 => IpAddr::V4(((addr >> 96) as u32).into()),
        Family::V6 => IpAddr::V6(addr.into()),
    };
    Prefix::new(addr, len).map_err(|e| BenchError::Wrong(e.to_string()))
}

/// The batches of the two families: sets of paths by interface and host.
fn batches() -> Result<[RouteBatch; 2], BenchError> {
    let empty = |family, hop: fn(usize, u32) -> String| {
        let path = |n: usize, host| {
            let line = format!("ip route add ::/0 via {} pg{}", hop(n, host), n + 1);
            paths(&line.replace(
                "::/0",
                if hop(n, host).contains(':') {
                    "::/0"
                } else {
                    "0.0.0.0/0"
                },
            ))
        };
        let sets = (0..2).flat_map(|n| (0..HOPS).map(move |host| (n, host)));
        Ok::<_, BenchError>(RouteBatch {
            family,
            table: 0,
            source: RouteSource::Dynamic,
            sets: sets
                .map(|(n, host)| path(n, host))
                .collect::<Result<_, _>>()?,
            put: Vec::new(),
            gone: Vec::new(),
        })
    };
    Ok([empty(Family::V4, hop4)?, empty(Family::V6, hop6)?])
}

/// The paths of a command.
fn paths(line: &str) -> Result<Vec<volley_fib::path::Path>, BenchError> {
    let line = line.replace("ip route add ::", "ip6 route add ::");
    let command = volley_cli::parse_line(&line).map_err(|e| BenchError::Args(e.to_string()))?;
    match command.action {
        volley_cli::Action::Request(request) => match *request {
            volley_model::Request::Add(object) if let Some(route) = Route::of(&object) => {
                Ok(route.paths)
            }
            other => Err(BenchError::Args(format!("{other:?} is no route"))),
        },
        _ => Err(BenchError::Args(format!("`{line}` is no route"))),
    }
}

fn load(stack: &Stack, rows: &[Key], moved: &HashSet<Key>) -> Result<(), BenchError> {
    let mut batches = batches()?;
    for (n, key) in rows.iter().enumerate() {
        let batch = &mut batches[usize::from(key.0 == Family::V6)];
        let set = n as u32 % HOPS + if moved.contains(key) { HOPS } else { 0 };
        batch.put.push((prefix(key)?, set));
        if batch.put.len() == LOAD {
            carry_out(stack, batch)?;
        }
    }
    batches.iter_mut().try_for_each(|b| carry_out(stack, b))?;
    while !stack.settled() {
        std::hint::spin_loop();
    }
    Ok(())
}

/// Apply a batch like the Linux control plane does, and empty it.
fn carry_out(stack: &Stack, batch: &mut RouteBatch) -> Result<(), BenchError> {
    if !batch.put.is_empty() || !batch.gone.is_empty() {
        let done = stack.fib.borrow_mut().route_batch(batch);
        done.map_err(|e| BenchError::Wrong(e.to_string()))?;
        stack.settled();
    }
    batch.put.clear();
    batch.gone.clear();
    Ok(())
}

/// Apply updates in order, in small groups, as a routing daemon sends them: the last update of a prefix in a group
/// counts.
fn replay(stack: &Stack, updates: &Updates) -> Result<(), BenchError> {
    const TOGETHER: usize = 16;
    let mut batches = batches()?;
    let mut next = 0;
    for part in updates.chunks(TOGETHER) {
        let last: HashMap<Key, bool> = part.iter().map(|(on, key)| (*key, *on)).collect();
        for (key, on) in last {
            let batch = &mut batches[usize::from(key.0 == Family::V6)];
            next = (next + 1) % HOPS;
            if on {
                batch.put.push((prefix(&key)?, HOPS + next));
            } else {
                batch.gone.push(prefix(&key)?);
            }
        }
        batches.iter_mut().try_for_each(|b| carry_out(stack, b))?;
        stack.processes.run_manual();
    }
    while !stack.settled() {
        std::hint::spin_loop();
    }
    Ok(())
}

/// Addresses in stable prefixes, in a file for each family.
fn destinations(rows: &[Key], moved: &HashSet<Key>) -> Result<[String; 2], BenchError> {
    let mut found = [Vec::new(), Vec::new()];
    let mut random = Random(3);
    for _ in 0..rows.len() * 4 {
        let (family, addr, len) = rows[random.below(rows.len())];
        let bits = family.bits();
        let inside = addr | 1 << (128 - u32::from(bits)) & !mask(len);
        let covered = |l: u8| moved.contains(&(family, inside & mask(l), l));
        let list: &mut Vec<u128> = &mut found[usize::from(family == Family::V6)];
        if list.len() < DESTINATIONS && !(len..=bits).any(covered) {
            list.push(inside);
        }
        if found.iter().all(|list| list.len() == DESTINATIONS) {
            break;
        }
    }
    if found.iter().any(Vec::is_empty) {
        return Err(BenchError::Args(
            "no prefix is stable: take another table".into(),
        ));
    }
    let mut text = found.iter().map(|list| {
        list.iter().fold(String::new(), |mut text, addr| {
            let six = std::net::Ipv6Addr::from(*addr);
            let four = std::net::Ipv4Addr::from((addr >> 96) as u32);
            let _ = match std::ptr::eq(list, &raw const found[0]) {
                true => write!(text, " {four}"),
                false => write!(text, " {six}"),
            };
            text
        })
    });
    Ok([
        text.next().unwrap_or_default(),
        text.next().unwrap_or_default(),
    ])
}

fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
}

/// Create a stream of each family, without a rate or with half of it.
fn streams(stack: &Stack, lists: &[String; 2], rate: Option<f64>) -> Result<(), BenchError> {
    let rate = rate.map_or(String::new(), |r| format!("rate {} ", (r / 2.0) as u64));
    for (family, list) in ["ip4", "ip6"].iter().zip(lists) {
        let first = list.split(' ').nth(1).unwrap_or_default();
        let (source, hops) = match *family {
            "ip4" => ("192.0.2.1", "ttl"),
            _ => ("2001:db8::1", "hops"),
        };
        if !sent(stack)?.is_empty() && !rate.is_empty() {
            change(
                stack,
                &format!("packet-generator delete {family}"),
                std::hint::spin_loop,
            )?;
        }
        let line = format!(
            "packet-generator new name {family} interface pg0 {rate}size 64 edit {family}.dst list{list} \
             template {{ eth src 02:00:00:00:00:99 dst 02:00:00:00:00:01 / {family} src {source} dst {first} {hops} 64 / udp sport 1 dport 2 }}"
        );
        change(stack, &line, std::hint::spin_loop)?;
    }
    Ok(())
}

/// Start the streams, run `work`, and stop the streams; returns the forwarded packets per second meanwhile, and the total
/// sent.
fn forwarded(stack: &Stack, work: impl FnOnce()) -> Result<(f64, u64), BenchError> {
    switch(stack, true)?;
    let (before, start) = (left(stack, "pg1"), Instant::now());
    work();
    // A busy machine may not have run the worker's thread yet.
    while left(stack, "pg1") == before && start.elapsed() < STARVED {
        wait(0.001);
    }
    let rate = (left(stack, "pg1") - before) as f64 / start.elapsed().as_secs_f64();
    switch(stack, false)?;
    wait(0.1);
    Ok((rate, sent(stack)?.iter().sum()))
}

/// Start or stop all streams.
fn switch(stack: &Stack, on: bool) -> Result<(), BenchError> {
    stack.pg.switch(None, on)?;
    while !stack.settled() {
        std::hint::spin_loop();
    }
    Ok(())
}

/// Spin: the other core is busy later, so this one must be busy now.
fn wait(seconds: f64) {
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

fn sent(stack: &Stack) -> Result<Vec<u64>, BenchError> {
    let reply = stack.ask(&volley_pg::ShowPacketGenerator)?;
    Ok(reply.streams.iter().map(|s| s.sent).collect())
}

fn print(args: &UpdateArgs, report: &Report) -> Result<(), BenchError> {
    if args.json {
        print_json(report);
        return Ok(());
    }
    println!(
        "{} prefixes, {} updates ({}) in {:.2} s: {:.0} a second",
        report.prefixes, report.updates, report.from, report.seconds, report.updates_per_second
    );
    println!(
        "{:.2} Mpps at most, {:.2} offered, {:.2} forwarded beside the updates; {} sent, {} received, {} dropped, {} astray",
        report.capacity / 1e6,
        report.offered / 1e6,
        report.forwarded / 1e6,
        report.sent,
        report.received,
        report.dropped,
        report.astray
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Prefixes;

    #[test]
    fn made_up_updates_lose_no_packet_of_what_is_stable() {
        let args = UpdateArgs {
            table: None,
            table6: None,
            updates: None,
            updates6: None,
            prefixes: Prefixes::both(4000),
            load: 50.0,
            seconds: 0.05,
            json: true,
        };
        let all = rows(&args).unwrap();
        let updates: Updates = made_up(&all).into_iter().take(4000).collect();
        let moved: HashSet<Key> = updates.iter().map(|(_, key)| *key).collect();
        let (stack, mut workers) = Stack::new(&EngineSettings::default(), Clock::system()).unwrap();
        let (mut worker, stop) = (workers.pop().unwrap(), AtomicBool::new(false));
        let report = std::thread::scope(|scope| {
            let (stop, worker) = (&stop, &mut worker);
            scope.spawn(move || {
                while !stop.load(Ordering::Acquire) {
                    worker.step();
                }
            });
            let report = measure(&stack, &args, (&all, &moved), &updates);
            stop.store(true, Ordering::Release);
            report.unwrap()
        });
        assert!(report.sent > 0 && report.updates == 4000);
        assert_eq!(
            (report.received, report.dropped, report.astray),
            (report.sent, 0, 0)
        );
    }
}
