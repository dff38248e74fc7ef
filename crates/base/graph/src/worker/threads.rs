//! Workers on their own threads.

use crate::data::error::GraphError;
use crate::data::numa;
use crate::queues::channel::Channel;
use crate::queues::wakeup::{WakeConditions, Wakeup};
use crate::worker::round::Worker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of rounds without a packet after which a worker that must poll yields its core between rounds.
const IDLE_ROUNDS_BEFORE_YIELD: u32 = 2_000;

/// The time limit for all workers together to stop. A round takes less than a millisecond; a round that does not end
/// (a debugger, a system call that hangs) must not keep the daemon from ending.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// The time limit for new workers to reach their first rounds. It takes microseconds unless their cores have other work.
const READY_LIMIT: Duration = Duration::from_secs(1);
/// The interval of the checks whether a thread has ended.
const LOOK: Duration = Duration::from_micros(200);

/// The return value of a thread; none when the thread panicked, or still runs at `until` and is detached.
fn join<T>(thread: JoinHandle<T>, until: Instant) -> Option<T> {
    while !thread.is_finished() {
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(LOOK);
    }
    thread.join().ok()
}

/// Flags by which the control thread stops a worker.
#[derive(Default)]
struct StopFlags {
    /// End after this round, even if packets are pending.
    stop: AtomicBool,
    /// End as soon as no work is pending.
    drain: AtomicBool,
}

/// A worker and its thread.
pub struct WorkerThread {
    id: usize,
    core: Option<usize>,
    numa_node: Option<u32>,
    channel: Arc<Channel>,
    stop_flags: Arc<StopFlags>,
    /// A message when the thread has a core and has called `first`.
    ready: mpsc::Receiver<()>,
    thread: JoinHandle<Worker>,
}

impl WorkerThread {
    /// Start a worker on a thread. It begins with the capabilities of the calling thread.
    pub fn start(worker: Worker, core: Option<usize>) -> Result<WorkerThread, GraphError> {
        Self::start_with(worker, core, || ())
    }

    /// As [`Self::start`]; the thread calls `first` before its first round, and this function waits until it has.
    pub fn start_with(
        worker: Worker,
        core: Option<usize>,
        first: impl FnOnce() + Send + 'static,
    ) -> Result<WorkerThread, GraphError> {
        let started = Self::spawn(worker, core, first)?;
        started.wait(Instant::now() + READY_LIMIT);
        Ok(started)
    }

    /// Wait until the thread begins its first round, or until a time: its core may be busy.
    fn wait(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        // A thread that ended before it was ready is found by [`WorkerThreads::is_alive`].
        let _ = self.ready.recv_timeout(left);
    }

    fn spawn(
        worker: Worker,
        core: Option<usize>,
        first: impl FnOnce() + Send + 'static,
    ) -> Result<WorkerThread, GraphError> {
        let (id, channel) = (worker.id, worker.channel.clone());
        let failed = |e: std::io::Error| GraphError::Thread {
            worker: id,
            why: e.to_string(),
        };
        if channel.wakeup.0.get().is_none() {
            let _ = channel.wakeup.0.set(Wakeup::new().map_err(failed)?);
        }
        let stop_flags = Arc::new(StopFlags::default());
        let reported = stop_flags.clone();
        let numa_node = core.and_then(numa::node_of);
        let (is_ready, ready) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(format!("volley-w{id}"))
            .spawn(move || {
                let worker = pinned(worker, core, numa_node, first);
                // The starting thread may have gone on after its limit.
                let _ = is_ready.try_send(());
                run(worker, &reported)
            })
            .map_err(failed)?;
        Ok(WorkerThread {
            id,
            core,
            numa_node,
            channel,
            stop_flags,
            ready,
            thread,
        })
    }
}

/// The running workers. Dropping this value stops them.
#[derive(Default)]
pub struct WorkerThreads {
    threads: Vec<WorkerThread>,
}

impl WorkerThreads {
    /// Start each worker on a thread. `cores` pins them in order; a worker without an entry is not pinned.
    pub fn start(workers: Vec<Worker>, cores: &[usize]) -> Result<Self, GraphError> {
        Self::start_with(workers, cores, || ())
    }

    /// As [`Self::start`]; each thread calls `first` before its first round, and this function waits until all have.
    pub fn start_with(
        workers: Vec<Worker>,
        cores: &[usize],
        first: impl FnOnce() + Clone + Send + 'static,
    ) -> Result<Self, GraphError> {
        let mut running = WorkerThreads::default();
        for (nth, worker) in workers.into_iter().enumerate() {
            let core = cores.get(nth).copied();
            let thread = WorkerThread::spawn(worker, core, first.clone())?;
            running.threads.push(thread);
        }
        let until = Instant::now() + READY_LIMIT;
        running.threads.iter().for_each(|it| it.wait(until));
        Ok(running)
    }

    /// Add a worker.
    pub fn add(&mut self, thread: WorkerThread) {
        self.threads.push(thread);
    }

    /// Whether every worker is alive. A worker that was stopped by [`Self::drain_worker`] may have ended.
    pub fn is_alive(&self) -> bool {
        let reported = |s: &WorkerThread| s.stop_flags.drain.load(Ordering::Relaxed);
        self.threads
            .iter()
            .all(|s| reported(s) || !s.thread.is_finished())
    }

    /// The core that a worker is pinned to.
    pub fn core(&self, worker: usize) -> Option<usize> {
        let thread = self.threads.iter().find(|s| s.id == worker);
        thread.and_then(|s| s.core)
    }

    /// The memory node of the core that a worker is pinned to.
    pub fn numa(&self, worker: usize) -> Option<u32> {
        let thread = self.threads.iter().find(|s| s.id == worker);
        thread.and_then(|s| s.numa_node)
    }

    /// Let a worker end as soon as no work is pending. Its queues must be assigned to other workers before.
    pub fn drain_worker(&self, worker: usize) {
        for thread in self.threads.iter().filter(|s| s.id == worker) {
            thread.stop_flags.drain.store(true, Ordering::SeqCst);
            thread.channel.wake();
        }
    }

    /// The next worker that has ended after [`Self::drain_worker`]: its id, and the worker itself unless its thread
    /// panicked.
    pub fn take_exited(&mut self) -> Option<(usize, Option<Worker>)> {
        let reported = |s: &WorkerThread| s.stop_flags.drain.load(Ordering::Relaxed);
        let mut threads = self.threads.iter();
        let at = threads.position(|s| reported(s) && s.thread.is_finished())?;
        let thread = self.threads.swap_remove(at);
        Some((thread.id, thread.thread.join().ok()))
    }

    fn end(&self) {
        for thread in &self.threads {
            thread.stop_flags.stop.store(true, Ordering::SeqCst);
            thread.channel.wake();
        }
    }

    /// Stop the workers between two rounds and return them. A worker that does not stop within ten seconds is left
    /// out.
    pub fn stop(mut self) -> Vec<Worker> {
        self.stop_all()
    }

    fn stop_all(&mut self) -> Vec<Worker> {
        self.end();
        let until = Instant::now() + STOP_LIMIT;
        let threads = self.threads.drain(..);
        threads.filter_map(|s| join(s.thread, until)).collect()
    }
}

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        self.stop_all();
    }
}

/// Run a worker on its core, with its memory on the core's memory node.
fn pinned(
    mut worker: Worker,
    core: Option<usize>,
    near: Option<u32>,
    first: impl FnOnce(),
) -> Worker {
    if let Some(id) = core {
        core_affinity::set_for_current(core_affinity::CoreId { id });
    }
    if let Some(node) = near {
        worker.dispatch.bufs.move_to(node);
    }
    first();
    worker
}

fn run(mut worker: Worker, orders: &StopFlags) -> Worker {
    let channel = worker.channel.clone();
    let first = 0u64;
    channel.thread_stack.set_current(&first);
    let mut rest = WakeConditions::new();
    let (mut idle, mut since_ns) = (0u32, 0);
    while !orders.stop.load(Ordering::Relaxed) {
        if worker.round() > 0 {
            idle = 0;
            continue;
        }
        if orders.drain.load(Ordering::Relaxed) && worker.can_exit() {
            break;
        }
        // Changes from here on belong to no round.
        worker.began = 0;
        let now_ns = worker.clock.at(worker.ended);
        if idle == 0 {
            since_ns = now_ns;
        }
        idle = idle.saturating_add(1);
        match channel.wakeup.0.get() {
            Some(wakeup) if worker.may_sleep(now_ns - since_ns.min(now_ns)) => {
                worker.sleep(&mut rest, wakeup, &orders.stop);
            }
            _ if idle > IDLE_ROUNDS_BEFORE_YIELD => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
    channel.thread_stack.clear();
    worker
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_goes_on_is_left_to_itself() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let hangs = std::thread::spawn(move || ended.recv().is_ok());
        assert_eq!(
            join(hangs, Instant::now() + Duration::from_millis(20)),
            None
        );
        drop(end);
        let soon = Instant::now() + Duration::from_secs(60);
        assert_eq!(join(std::thread::spawn(|| 7), soon), Some(7));
    }
}
