//! The shared free list under every interleaving of two threads.
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p volley-buf --release --test loom_ring`.
#![cfg(loom)]

use loom::thread;
use std::sync::Arc;
use volley_buf::BatchRing;

fn batch(tag: u32) -> [u32; 64] {
    [tag; 64]
}

fn pop(ring: &BatchRing) -> Option<u32> {
    let mut out = [0; 64];
    ring.pop(&mut out).then(|| {
        assert!(out.iter().all(|&x| x == out[0]), "a batch is read whole");
        out[0]
    })
}

#[test]
fn two_producers_one_consumer_lose_nothing() {
    loom::model(|| {
        let ring = Arc::new(BatchRing::new(2));
        let other = ring.clone();
        let producer = thread::spawn(move || assert!(other.push(&batch(1))));
        assert!(ring.push(&batch(2)));
        let early = pop(&ring);
        producer.join().unwrap();
        let mut all: Vec<_> = early
            .into_iter()
            .chain(std::iter::from_fn(|| pop(&ring)))
            .collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

#[test]
fn two_consumers_never_get_the_same_batch() {
    loom::model(|| {
        let ring = Arc::new(BatchRing::new(2));
        assert!(ring.push(&batch(1)) && ring.push(&batch(2)));
        let other = ring.clone();
        let consumer = thread::spawn(move || pop(&other));
        let mine = pop(&ring);
        let theirs = consumer.join().unwrap();
        let mut all: Vec<_> = mine
            .into_iter()
            .chain(theirs)
            .chain(std::iter::from_fn(|| pop(&ring)))
            .collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}
