//! The cost of a notification by each method: `cargo test --release -p volley-shm --test speed -- --ignored --nocapture`.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use volley_shm::Event;

/// Each method to signal, by name, with the descriptors of this process and of the peer for one file.
fn ways() -> Vec<(&'static str, Event, OwnedFd)> {
    let shared = |event: Event| {
        let peer = event.as_fd().try_clone_to_owned().unwrap();
        (event, peer)
    };
    let file = || rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
    let ways = [
        ("write", shared(Event::private().unwrap())),
        ("completion", shared(Event::of_peer(file()).unwrap())),
        ("notifier", shared(Event::deferred(file()).unwrap())),
    ];
    ways.map(|(name, (event, peer))| (name, event, peer)).into()
}

/// Nanoseconds of a signal without a waiting thread, the best of several rounds.
fn cost(event: &Event) -> f64 {
    const SIGNALS: u32 = 20_000;
    let round = || {
        let start = Instant::now();
        (0..SIGNALS).for_each(|_| event.signal());
        event.clear();
        start.elapsed().as_nanos() as f64 / f64::from(SIGNALS)
    };
    (0..20).map(|_| round()).fold(f64::MAX, f64::min)
}

/// Microseconds from a signal until a sleeping peer runs: median and 99th percentile.
fn latency(event: &Event, peer: &OwnedFd) -> (f64, f64) {
    const SIGNALS: usize = 2000;
    let (sent, ready) = (Arc::new(AtomicU64::new(0)), Arc::new(Barrier::new(2)));
    let start = Instant::now();
    let now = move || start.elapsed().as_nanos() as u64;
    let peer = peer.try_clone().unwrap();
    let (its_sent, its_ready) = (sent.clone(), ready.clone());
    let waiter = std::thread::spawn(move || {
        let one = || {
            its_ready.wait();
            let mut poll = [rustix::event::PollFd::new(
                &peer,
                rustix::event::PollFlags::IN,
            )];
            rustix::event::poll(&mut poll, None).unwrap();
            let woken = now();
            rustix::io::read(&peer, &mut [0; 8]).unwrap();
            (woken - its_sent.load(Ordering::SeqCst)) as f64 / 1000.0
        };
        (0..SIGNALS).map(|_| one()).collect::<Vec<_>>()
    });
    for _ in 0..SIGNALS {
        ready.wait();
        // Wait until the peer sleeps.
        std::thread::sleep(Duration::from_micros(200));
        sent.store(now(), Ordering::SeqCst);
        event.signal();
    }
    let mut all = waiter.join().unwrap();
    all.sort_by(f64::total_cmp);
    (all[SIGNALS / 2], all[SIGNALS * 99 / 100])
}

#[test]
#[ignore = "a measurement"]
fn what_a_notification_costs() {
    for (name, event, peer) in ways() {
        let cost = cost(&event);
        // Wait for signals that the notifier has not written yet.
        std::thread::sleep(Duration::from_millis(50));
        event.clear();
        let (median, late) = latency(&event, &peer);
        println!(
            "{name}: {cost:.0} ns for the worker; the peer wakes after {median:.1} us (median), {late:.1} us (99 %)"
        );
    }
}
