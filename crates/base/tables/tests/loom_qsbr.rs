//! Readers and the writer of one published value, under every interleaving up to a bound.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p volley-tables --release --test loom_qsbr`
#![cfg(loom)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use volley_tables::{Domain, Publisher, Reader, Snap};

/// A value whose drop is a write that loom sees: with a reader that can still access the value it is a race, and fails.
struct Watched(UnsafeCell<u32>);

impl Watched {
    fn new(v: u32) -> Self {
        Self(UnsafeCell::new(v))
    }
    fn get(&self) -> u32 {
        // SAFETY: loom checks that no write is concurrent.
        self.0.with(|p| unsafe { *p })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: as above.
        self.0.with_mut(|p| unsafe { *p = u32::MAX });
    }
}

// SAFETY: the cell is written in `drop` only.
unsafe impl Sync for Watched {}

fn bounded(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

fn start() -> (Arc<Domain>, Publisher<Watched>) {
    let domain = Domain::new();
    let publisher = Publisher::new(&domain, Watched::new(0));
    (domain, publisher)
}

fn look(snap: &Snap<Watched>, reader: &Reader, at_least: u32) -> u32 {
    let value = snap.read(reader.guard());
    let seen = value.get();
    assert!(seen >= at_least && seen < 10);
    // The same value for as long as the guard lives.
    assert_eq!(value.get(), seen);
    seen
}

#[test]
fn a_reader_never_sees_a_freed_value() {
    bounded(|| {
        let (domain, mut publisher) = start();
        let mut reader = domain.register();
        let snap = publisher.snap();
        let worker = thread::spawn(move || {
            let first = look(&snap, &reader, 0);
            reader.quiescent();
            look(&snap, &reader, first);
            reader.quiescent();
        });
        let ticket = publisher.publish(Watched::new(1));
        domain.reclaim();
        if domain.passed(ticket) {
            assert!(domain.reclaim() <= 1);
            assert_eq!(domain.retired(), 0);
        }
        worker.join().unwrap();
        domain.reclaim();
        assert_eq!(domain.retired(), 0);
    });
}

#[test]
fn passed_means_in_use_by_the_reader() {
    bounded(|| {
        let (domain, mut publisher) = start();
        let mut reader = domain.register();
        let snap = publisher.snap();
        let reported = Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let heard = reported.clone();
        let worker = thread::spawn(move || {
            reader.quiescent();
            let reported = heard.load(loom::sync::atomic::Ordering::Acquire);
            look(&snap, &reader, u32::from(reported));
        });
        let ticket = publisher.publish(Watched::new(1));
        if domain.passed(ticket) {
            reported.store(true, loom::sync::atomic::Ordering::Release);
        }
        worker.join().unwrap();
    });
}

#[test]
fn readers_come_and_go() {
    bounded(|| {
        let (domain, mut publisher) = start();
        let snap = publisher.snap();
        let joining = domain.clone();
        let worker = thread::spawn(move || {
            let reader = joining.register();
            look(&snap, &reader, 0);
            drop(reader);
        });
        publisher.publish(Watched::new(1));
        domain.reclaim();
        worker.join().unwrap();
        domain.reclaim();
        assert_eq!(domain.retired(), 0);
    });
}

#[test]
fn an_offline_reader_is_not_waited_for_and_comes_back_safely() {
    bounded(|| {
        let (domain, mut publisher) = start();
        let mut reader = domain.register();
        let snap = publisher.snap();
        reader.offline();
        let worker = thread::spawn(move || {
            reader.online();
            look(&snap, &reader, 0);
            reader.offline();
        });
        publisher.publish(Watched::new(1));
        domain.reclaim();
        worker.join().unwrap();
        domain.reclaim();
        assert_eq!(domain.retired(), 0);
    });
}

#[test]
fn two_readers_and_the_end_of_the_publisher() {
    bounded(|| {
        let (domain, publisher) = start();
        let (a, b) = (domain.register(), domain.register());
        let (snap_a, snap_b) = (publisher.snap(), publisher.snap());
        let first = thread::spawn(move || {
            let value = snap_a.read(a.guard());
            // The reference outlives the handle.
            drop(snap_a);
            assert_eq!(value.get(), 0);
        });
        let second = thread::spawn(move || {
            look(&snap_b, &b, 0);
        });
        drop(publisher);
        domain.reclaim();
        first.join().unwrap();
        second.join().unwrap();
        domain.reclaim();
        assert_eq!(domain.retired(), 0);
    });
}
