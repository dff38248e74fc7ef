//! A plugin's code between workers and the control thread, under every interleaving up to a bound: a change takes the node out of the
//! worker's graph, and the code is unmapped when the grace period is over. Unmapping while a worker can still run the code, or while
//! an instance is not dropped, is a race that loom sees.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p volley-tables --release --test loom_unload`
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};
use loom::sync::{Arc, Mutex};
use loom::thread;
use volley_tables::{Domain, GracePeriod, Reader};

/// The code of a plugin: running it reads the cell, unmapping it writes.
struct Code(UnsafeCell<bool>);

// SAFETY: loom checks each access.
unsafe impl Sync for Code {}
// SAFETY: as above.
unsafe impl Send for Code {}

impl Code {
    fn run(&self) {
        // SAFETY: loom checks that no write is concurrent.
        let is_mapped = self.0.with(|it| unsafe { *it });
        assert!(is_mapped, "code runs that is unmapped");
    }

    fn unmap(&self) {
        // SAFETY: as above.
        self.0.with_mut(|it| unsafe { *it = false });
    }
}

/// An instance of the plugin's node: its drop is the plugin's code.
struct Instance(std::sync::Arc<Code>);

impl Drop for Instance {
    fn drop(&mut self) {
        self.0.run();
    }
}

/// The queues between the control thread and a worker, and the number of changes that the worker has applied, with the memory orders
/// of the engine's channel.
struct Channel {
    pending: Mutex<Vec<Option<Instance>>>,
    done: Mutex<Vec<Option<Instance>>>,
    changes: AtomicU64,
}

impl Channel {
    fn new() -> Arc<Channel> {
        Arc::new(Channel {
            pending: Mutex::new(Vec::new()),
            done: Mutex::new(Vec::new()),
            changes: AtomicU64::new(0),
        })
    }

    /// The control thread: drops what the worker has returned.
    fn drop_returned(&self) {
        let returned = std::mem::take(&mut *self.done.lock().unwrap());
        drop(returned);
    }

    /// The control thread: whether the worker has applied this many changes. Drops what they replaced.
    fn is_settled(&self, sent: u64) -> bool {
        self.drop_returned();
        self.changes.load(Relaxed) == sent
    }

    /// The worker: applies changes, in the order of the engine's rounds.
    fn apply(&self, node: &mut Option<Instance>) {
        while let Some(new) = self.pending.lock().unwrap().pop() {
            let old = std::mem::replace(node, new);
            self.changes.fetch_add(1, Release);
            self.done.lock().unwrap().push(old);
        }
    }
}

/// Rounds of a worker: changes, packets through the node, a quiescent point.
fn rounds(channel: &Channel, mut reader: Reader, mut node: Option<Instance>, rounds: usize) {
    for _ in 0..rounds {
        channel.apply(&mut node);
        if let Some(node) = &node {
            node.0.run();
        }
        reader.quiescent();
    }
    // The worker ends: the control thread drops its node with it.
    channel.done.lock().unwrap().push(node);
}

/// The control thread, as it looks for versions to unmap.
fn reap(channel: &Channel, domain: &Domain, grace: &mut GracePeriod, code: &Code) -> bool {
    if !grace.is_over(domain, || channel.is_settled(1)) {
        return false;
    }
    // The instances that were returned are dropped before their code goes.
    assert!(channel.is_settled(1));
    code.unmap();
    true
}

fn bounded(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

fn code() -> std::sync::Arc<Code> {
    std::sync::Arc::new(Code(UnsafeCell::new(true)))
}

#[test]
fn code_is_unmapped_when_the_worker_has_left_it() {
    bounded(|| {
        let (domain, channel, old) = (Domain::new(), Channel::new(), code());
        let reader = domain.register();
        let node = Instance(old.clone());
        let of_worker = channel.clone();
        let worker = thread::spawn(move || rounds(&of_worker, reader, Some(node), 2));
        channel.pending.lock().unwrap().push(None);
        let mut grace = GracePeriod::default();
        let early = reap(&channel, &domain, &mut grace, &old);
        worker.join().unwrap();
        // Without workers the period ends as soon as the change is applied.
        if !early && channel.changes.load(Relaxed) == 1 {
            assert!(reap(&channel, &domain, &mut grace, &old));
        }
        drop(channel.pending.lock().unwrap().drain(..));
        channel.drop_returned();
    });
}

#[test]
fn a_replaced_version_is_unmapped_while_the_new_one_runs() {
    bounded(|| {
        let (domain, channel) = (Domain::new(), Channel::new());
        let (old, new) = (code(), code());
        let reader = domain.register();
        let node = Instance(old.clone());
        let of_worker = channel.clone();
        let worker = thread::spawn(move || rounds(&of_worker, reader, Some(node), 2));
        channel
            .pending
            .lock()
            .unwrap()
            .push(Some(Instance(new.clone())));
        let mut grace = GracePeriod::default();
        let early = reap(&channel, &domain, &mut grace, &old);
        new.run();
        worker.join().unwrap();
        if !early && channel.changes.load(Relaxed) == 1 {
            assert!(reap(&channel, &domain, &mut grace, &old));
        }
        drop(channel.pending.lock().unwrap().drain(..));
        channel.drop_returned();
    });
}
