//! Readers on other threads while the writer changes the table: every answer must be valid at some moment of the read.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use support::batch6;
use volley_simd::Level;
use volley_tables::{Domain, Lpm4, Lpm6, Publisher, Reader};

/// The duration of a test; `VOLLEY_TEST_SCALE` (percent) changes it.
fn run_for() -> Duration {
    let percent = std::env::var("VOLLEY_TEST_SCALE")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(100);
    Duration::from_millis(8 * percent)
}

/// Runs `read` in two threads, and `write(round)` here until the time is over and every reader has read several vectors.
fn contend(domain: &Arc<Domain>, read: impl Fn(&Reader) + Sync, mut write: impl FnMut(u32)) {
    let stop = AtomicBool::new(false);
    let counts = [AtomicU64::new(0), AtomicU64::new(0)];
    std::thread::scope(|scope| {
        for (n, count) in counts.iter().enumerate() {
            let mut reader = domain.register();
            let (stop, read) = (&stop, &read);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    read(&reader);
                    reader.quiescent();
                    let i = count.fetch_add(1, Ordering::Relaxed);
                    if n == 1 && i % 64 == 0 {
                        reader.offline();
                        std::thread::yield_now();
                        reader.online();
                    }
                }
            });
        }
        let start = Instant::now();
        let mut round = 0;
        let enough = || counts.iter().all(|c| c.load(Ordering::Relaxed) > 20);
        while start.elapsed() < run_for() || !enough() {
            write(round);
            domain.reclaim();
            round += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    domain.reclaim();
    assert_eq!(domain.retired(), 0, "something is never freed");
}

/// Addresses are `region << shift | ...`; the leaf of region `r` is always `r * 8 + 1..=7` (7: its permanent cover),
/// so a leaf of another region, or "no route", is a wrong answer.
fn check(region: usize, leaf: u32) {
    let legal = region as u32 * 8 + 1..=region as u32 * 8 + 7;
    assert!(legal.contains(&leaf), "region {region} answered {leaf}");
}

const REGIONS: u32 = 48;

fn mixed(round: u32, i: u32) -> u32 {
    (round.wrapping_mul(31).wrapping_add(i)).wrapping_mul(2_654_435_761) >> 7
}

#[test]
fn v4_answers_stay_legal() {
    let domain = Domain::new();
    let mut table = Lpm4::new(&domain);
    for r in 0..REGIONS {
        table.insert(r << 16, 16, r * 8 + 7).unwrap();
    }
    let snap = table.snap();
    let dst: Vec<u32> = (0..1024)
        .map(|i| (i % REGIONS) << 16 | (i * 7919) & 0xffff)
        .collect();
    let read = |reader: &Reader| {
        let mut leaf = [0; 1024];
        let view = snap.read(reader.guard());
        view.lookup_batch(&dst, &mut leaf);
        for (d, l) in dst.iter().zip(leaf) {
            check((d >> 16) as usize, l);
            check((d >> 16) as usize, view.lookup(*d));
        }
    };
    contend(&domain, read, |round| {
        for i in 0..200 {
            let x = mixed(round, i);
            let (region, len) = (x % REGIONS, 17 + (x >> 8) % 16);
            let addr = region << 16 | mixed(i, round) & 0xffff;
            if x & 1 << 20 == 0 {
                table
                    .insert(addr, len as u8, region * 8 + 1 + x % 7)
                    .unwrap();
            } else {
                table.remove(addr, len as u8);
            }
        }
        if round % 50 == 7 {
            table.load_bulk([(5 << 16, 24, 5 * 8 + 3)]).unwrap();
        }
        if round == 60 {
            table.insert(200 << 16, 16, 1 << 20).unwrap();
        }
    });
}

#[test]
fn v6_answers_stay_legal() {
    let domain = Domain::new();
    let mut table = Lpm6::new(&domain);
    for r in 0..u64::from(REGIONS) {
        table.insert(r << 56, 0, 8, r as u32 * 8 + 7).unwrap();
    }
    let snap = table.snap();
    let nets = |i: u64| (i % u64::from(REGIONS)) << 56 | ((i * 7919) & 0xff) << 24;
    let hi: Vec<u64> = (0..1024).map(nets).collect();
    let lo: Vec<u64> = (0..1024).map(|i| ((i * 31) & 15) << 60).collect();
    let read = |reader: &Reader| {
        let mut leaf = [0; 1024];
        let view = snap.read(reader.guard());
        batch6(Level::detect(), view, &hi, &lo, &mut leaf);
        for ((h, l), leaf) in hi.iter().zip(&lo).zip(leaf) {
            check((h >> 56) as usize, leaf);
            check((h >> 56) as usize, view.lookup(*h, *l));
        }
    };
    contend(&domain, read, |round| {
        for i in 0..200 {
            let x = mixed(round, i);
            let region = x % REGIONS;
            let len = [12, 20, 36, 40, 48, 56, 64, 66, 68][(x >> 8) as usize % 9];
            let hi = u64::from(region) << 56 | u64::from(mixed(i, round) & 0xff) << 24;
            let lo = u64::from((x >> 4) & 15) << 60;
            if x & 1 << 20 == 0 {
                table.insert(hi, lo, len, region * 8 + 1 + x % 7).unwrap();
            } else {
                table.remove(hi, lo, len);
            }
        }
        if round % 50 == 7 {
            table.load_bulk([(5 << 56, 0, 24, 5 * 8 + 3)]).unwrap();
        }
    });
}

#[test]
fn snapshots_are_whole_and_do_not_go_back() {
    let domain = Domain::new();
    let mut publisher = Publisher::new(&domain, vec![0u64; 64]);
    let snap = publisher.snap();
    let newest = AtomicU64::new(0);
    let read = |reader: &Reader| {
        let at_least = newest.load(Ordering::Acquire);
        let value = snap.read(reader.guard());
        assert!(value[0] >= at_least);
        assert!(value.iter().all(|v| *v == value[0]));
    };
    contend(&domain, read, |round| {
        let v = u64::from(round) + 1;
        publisher.publish(vec![v; 64]);
        newest.store(v, Ordering::Release);
    });
}

#[test]
fn tickets_pass_when_every_reader_has_been_quiescent() {
    let domain = Domain::new();
    let (mut a, mut b) = (domain.register(), domain.register());
    let ticket = domain.epoch();
    assert!(!domain.passed(ticket));
    a.quiescent();
    assert!(!domain.passed(ticket));
    b.offline();
    assert!(domain.passed(ticket));
    b.online();
    let ticket = domain.epoch();
    a.quiescent();
    assert!(!domain.passed(ticket));
    drop(b);
    assert!(domain.passed(ticket));
    // A guard without a read brings an offline reader online again.
    a.offline();
    let _ = a.guard();
    assert!(!domain.passed(domain.epoch()));
}

#[test]
fn deferred_work_runs_after_the_grace_period() {
    let domain = Domain::new();
    let mut reader = domain.register();
    let ran = Arc::new(AtomicBool::new(false));
    let flag = ran.clone();
    domain.defer(move || flag.store(true, Ordering::Relaxed));
    assert_eq!(domain.reclaim(), 0);
    assert!(!ran.load(Ordering::Relaxed));
    reader.quiescent();
    assert_eq!(domain.reclaim(), 1);
    assert!(ran.load(Ordering::Relaxed));
}

#[test]
fn values_that_hold_their_domain_do_not_keep_it_for_ever() {
    for readers in 0..3 {
        let domain = Domain::new();
        let mut readers: Vec<Reader> = (0..readers).map(|_| domain.register()).collect();
        let inner = Publisher::new(&domain, vec![1; 100]);
        let mut outer = Publisher::new(&domain, Some(inner.snap()));
        let snaps = (inner.snap(), outer.snap());
        outer.publish(None);
        outer.publish(Some(inner.snap()));
        let gone = Arc::downgrade(&domain);
        drop((inner, outer, domain));
        readers.pop();
        drop(snaps);
        drop(readers);
        assert!(gone.upgrade().is_none());
    }
}

#[test]
#[should_panic(expected = "another")]
fn a_guard_of_another_domain_is_refused() {
    let (ours, other) = (Domain::new(), Domain::new());
    let publisher = Publisher::new(&ours, 1);
    let reader = other.register();
    publisher.snap().read(reader.guard());
}
