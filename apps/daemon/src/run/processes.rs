//! Process nodes: the periodic tasks of the control thread.

use super::backend::Daemon;
use super::commits::watch_confirmations;
use super::notify::{Manager, Watchdog};
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use volley_graph::{ProcessInfo, WorkerThreads};

/// Pause between two checks for captured packets: a capture must not overflow in between.
const WRITE: Duration = Duration::from_millis(1);
/// Pause between two checks whether a graph asks the daemon to end.
const END: Duration = Duration::from_millis(10);
/// The same while no element can ask that.
const NO_END: Duration = Duration::from_secs(5);
/// The same while nothing is captured.
const QUIET: Duration = Duration::from_millis(50);
/// Pause between two checks for memory that no worker uses any more.
const RECLAIM: Duration = Duration::from_millis(50);
/// Pause between two checks whether workers are alive.
const WATCH: Duration = Duration::from_millis(100);

/// Pause between two readings of the interfaces' counters.
const RATES: Duration = Duration::from_secs(1);

/// Starts all process nodes. The handle ends when a worker has died.
pub fn start(daemon: &Rc<Daemon>, running: &Rc<RefCell<WorkerThreads>>) -> JoinHandle<()> {
    let processes = daemon.stack.processes.clone();
    let info = |name, text| ProcessInfo { name, text };
    let writer = info("capture-writer", "Writes captured packets to their files.");
    processes.spawn(writer, write_captures(Rc::downgrade(daemon)));
    let reclaim = info(
        "fib-reclaim",
        "Frees what changes have replaced, once no worker uses it.",
    );
    processes.spawn(reclaim, free_replaced(Rc::downgrade(daemon)));
    let confirm = info(
        "config-confirm",
        "Rolls back a commit that was not confirmed in time.",
    );
    processes.spawn(confirm, watch_confirmations(Rc::downgrade(daemon)));
    let rates = info(
        "interface-rates",
        "Reads counters of interfaces for their rates.",
    );
    processes.spawn(rates, look_at_interfaces(Rc::downgrade(daemon)));
    super::mirror::start(daemon);
    let watch = info("worker-watch", "Notices a worker that has died.");
    processes.spawn(watch, watch_workers(Rc::downgrade(running)))
}

/// Waits until an element of a graph asks the daemon to end, and the packets before that are written.
pub async fn graph_ended(daemon: Weak<Daemon>) {
    while let Some(daemon) = daemon.upgrade() {
        if daemon.stack.click.wants_end() && daemon.stack.drain() == 0 {
            return;
        }
        let span = if daemon.stack.click.may_end() {
            END
        } else {
            NO_END
        };
        drop(daemon);
        sleep(span).await;
    }
    std::future::pending().await
}

async fn write_captures(daemon: Weak<Daemon>) {
    while let Some(daemon) = daemon.upgrade() {
        let (written, changed) = (daemon.stack.drain(), daemon.changed.clone());
        let span = if daemon.stack.is_capturing() {
            WRITE
        } else {
            QUIET
        };
        drop(daemon);
        if written > 0 {
            // After a burst other tasks run once, and then this one continues without a pause.
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            () = sleep(span) => {}
            () = changed.notified() => {}
        }
    }
}

async fn look_at_interfaces(daemon: Weak<Daemon>) {
    let mut due = tokio::time::interval(RATES);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while let Some(daemon) = daemon.upgrade() {
        daemon.stack.interfaces.borrow_mut().look(Instant::now());
        drop(daemon);
        due.tick().await;
    }
}

async fn free_replaced(daemon: Weak<Daemon>) {
    while let Some(daemon) = daemon.upgrade() {
        daemon.stack.settled();
        drop(daemon);
        sleep(RECLAIM).await;
    }
}

/// Reports to the service manager that the daemon is alive, as often as the manager expects it, while every worker does rounds
/// or sleeps. That this task runs shows that the control thread is alive.
pub fn watch_for(manager: &Rc<Manager>, daemon: &Rc<Daemon>, running: &Rc<RefCell<WorkerThreads>>) {
    let Some(span) = manager.watchdog() else {
        return;
    };
    let processes = daemon.stack.processes.clone();
    let (manager, running) = (manager.clone(), Rc::downgrade(running));
    let daemon = Rc::downgrade(daemon);
    let beat = async move {
        let mut pulse = Watchdog::default();
        while let (Some(daemon), Some(_)) = (daemon.upgrade(), running.upgrade()) {
            let engine = daemon.stack.engine.clone();
            drop(daemon);
            let look = |w| {
                (
                    w,
                    engine.borrow().load(w).map_or(0, |l| l.0),
                    engine.borrow().is_asleep(w),
                )
            };
            let worker_set = engine.borrow().worker_set().clone();
            if pulse.beats(worker_set.iter().map(look)) {
                manager.tell("WATCHDOG=1");
            }
            sleep(span / 3).await;
        }
    };
    let info = ProcessInfo {
        name: "service-watchdog",
        text: "Tells the service manager that every worker goes round.",
    };
    processes.spawn(info, beat);
}

async fn watch_workers(running: Weak<RefCell<WorkerThreads>>) {
    while running.upgrade().is_some_and(|r| r.borrow().is_alive()) {
        sleep(WATCH).await;
    }
}
