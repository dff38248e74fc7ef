//! The rings between workers, and the epochs that keep order across them, under every interleaving up to a bound.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p volley-tables --release --test loom_exchange`
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;
use volley_tables::exchange::{Consumer, Epochs, swap_ring};

fn bounded(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

#[test]
fn what_is_given_arrives_once_in_order_and_empties_come_back() {
    bounded(|| {
        let (mut producer, mut consumer) = swap_ring(vec![Box::new(0), Box::new(0)]);
        let other = thread::spawn(move || {
            let mut item = Box::new(0);
            let mut given = vec![];
            for n in 1..=3 {
                *item = n;
                if producer.enqueue(&mut item, 0) {
                    given.push(n);
                    assert_eq!(*item, 0, "an empty one comes back");
                }
            }
            given
        });
        let mut taken = vec![];
        let mut item = Box::new(0);
        for _ in 0..2 {
            if consumer.dequeue(&mut item) {
                taken.push(*item);
                *item = 0;
            }
            thread::yield_now();
        }
        let given = other.join().unwrap();
        while consumer.dequeue(&mut item) {
            taken.push(*item);
            *item = 0;
        }
        assert!(given.len() >= 2, "there are two places");
        assert_eq!(given, taken);
    });
}

/// An item and its type: a packet (0), or the marker of an epoch.
type Thing = (u64, u32);

/// The state of a flow, which two workers change: loom finds a race if they are not in order.
struct Flow(UnsafeCell<u32>);
// SAFETY: loom checks.
unsafe impl Sync for Flow {}

fn used(flow: &Flow, number: u32) {
    flow.0.with_mut(|p| {
        // SAFETY: loom checks that no other thread accesses the cell.
        let last = unsafe { std::mem::replace(&mut *p, number) };
        assert_eq!(last + 1, number, "order is kept");
    });
}

fn take(consumer: &mut Consumer<Thing>) -> Thing {
    let mut thing = (0, 0);
    while !consumer.dequeue(&mut thing) {
        thread::yield_now();
    }
    thing
}

#[test]
fn a_flow_that_moves_to_another_worker_keeps_its_order() {
    bounded(|| {
        let turns = Epochs::new(2);
        turns.join(0, 0);
        turns.join(1, 0);
        let flow = Arc::new(Flow(UnsafeCell::new(0)));
        let (mut to_old, mut old) = swap_ring(vec![(0, 0); 2]);
        let (mut to_new, mut new) = swap_ring(vec![(0, 0); 2]);
        let (seen, arrived) = (flow.clone(), turns.clone());
        let worker = thread::spawn(move || {
            used(&seen, take(&mut old).1);
            let (turn, _) = take(&mut old);
            arrived.complete(0, turn);
        });
        assert!(to_old.enqueue(&mut (0, 1), 1));
        assert!(to_old.enqueue(&mut (1, 0), 0) && to_new.enqueue(&mut (1, 0), 0));
        assert!(to_new.enqueue(&mut (0, 2), 0));
        let (turn, _) = take(&mut new);
        turns.complete(1, turn);
        while !turns.is_complete(turn) {
            thread::yield_now();
        }
        used(&flow, take(&mut new).1);
        worker.join().unwrap();
    });
}
