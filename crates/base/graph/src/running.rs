//! Workers on threads of their own.

use crate::channel::Channel;
use crate::rest::{Bell, Rest};
use crate::{GraphError, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Rounds without a packet after which a worker that must poll lets others have the core between rounds.
const PATIENCE: u32 = 2_000;

/// How long workers that were told to stop may take, all together. A round takes less than a millisecond; one that does not end
/// (a debugger, a system call that hangs) must not keep the daemon from its end.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks whether a thread has ended.
const LOOK: Duration = Duration::from_micros(200);

/// What a thread returns; none when it panicked, or goes on after `until`: then it is left to itself.
fn join<T>(thread: JoinHandle<T>, until: Instant) -> Option<T> {
    while !thread.is_finished() {
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(LOOK);
    }
    thread.join().ok()
}

/// What a worker is told from outside.
#[derive(Default)]
struct Orders {
    /// End after this round, whatever there is.
    stop: AtomicBool,
    /// End as soon as nothing is left to do.
    leave: AtomicBool,
}

/// The numbers of the processor cores that workers can be pinned to; none where the system does not tell.
pub fn cores() -> Vec<usize> {
    let all = core_affinity::get_core_ids().unwrap_or_default();
    all.into_iter().map(|core| core.id).collect()
}

/// A worker on its thread.
pub struct Seat {
    place: usize,
    core: Option<usize>,
    near: Option<u32>,
    channel: Arc<Channel>,
    orders: Arc<Orders>,
    thread: JoinHandle<Worker>,
}

impl Seat {
    /// Start a worker on a thread; it begins with the capabilities of the thread that calls this.
    pub fn start(worker: Worker, core: Option<usize>) -> Result<Seat, GraphError> {
        let (place, channel) = (worker.place, worker.channel.clone());
        let failed = |e: std::io::Error| GraphError::Thread {
            worker: place,
            why: e.to_string(),
        };
        if channel.bell.0.get().is_none() {
            let _ = channel.bell.0.set(Bell::new().map_err(failed)?);
        }
        let orders = Arc::new(Orders::default());
        let told = orders.clone();
        let near = core.and_then(crate::node_of);
        let thread = std::thread::Builder::new()
            .name(format!("volley-w{place}"))
            .spawn(move || run(worker, core, near, &told))
            .map_err(failed)?;
        Ok(Seat {
            place,
            core,
            near,
            channel,
            orders,
            thread,
        })
    }
}

/// Running workers. Dropping it stops them.
#[derive(Default)]
pub struct Running {
    seats: Vec<Seat>,
}

impl Running {
    /// Start each worker on a thread; `cores` pins them in order (missing entries are not pinned).
    pub fn start(workers: Vec<Worker>, cores: &[usize]) -> Result<Self, GraphError> {
        let mut running = Running::default();
        for (nth, worker) in workers.into_iter().enumerate() {
            let seat = Seat::start(worker, cores.get(nth).copied())?;
            running.seats.push(seat);
        }
        Ok(running)
    }

    /// One more.
    pub fn add(&mut self, seat: Seat) {
        self.seats.push(seat);
    }

    /// Whether every worker is still alive; one that was told to leave may have ended.
    pub fn is_alive(&self) -> bool {
        let told = |s: &Seat| s.orders.leave.load(Ordering::Relaxed);
        self.seats
            .iter()
            .all(|s| told(s) || !s.thread.is_finished())
    }

    /// The core that a worker is pinned to.
    pub fn core(&self, worker: usize) -> Option<usize> {
        let seat = self.seats.iter().find(|s| s.place == worker);
        seat.and_then(|s| s.core)
    }

    /// The memory node of the core that a worker is pinned to.
    pub fn numa(&self, worker: usize) -> Option<u32> {
        let seat = self.seats.iter().find(|s| s.place == worker);
        seat.and_then(|s| s.near)
    }

    /// Let a worker end as soon as nothing is left for it to do. Its queues were taken away before.
    pub fn dismiss(&self, worker: usize) {
        for seat in self.seats.iter().filter(|s| s.place == worker) {
            seat.orders.leave.store(true, Ordering::SeqCst);
            seat.channel.ring();
        }
    }

    /// The next worker that was told to leave and has ended: its number, and the worker unless it died.
    pub fn ended(&mut self) -> Option<(usize, Option<Worker>)> {
        let told = |s: &Seat| s.orders.leave.load(Ordering::Relaxed);
        let mut seats = self.seats.iter();
        let at = seats.position(|s| told(s) && s.thread.is_finished())?;
        let seat = self.seats.swap_remove(at);
        Some((seat.place, seat.thread.join().ok()))
    }

    fn end(&self) {
        for seat in &self.seats {
            seat.orders.stop.store(true, Ordering::SeqCst);
            seat.channel.ring();
        }
    }

    /// Stop the workers between two rounds and take them back. A worker that does not stop within ten seconds is left out.
    pub fn stop(mut self) -> Vec<Worker> {
        self.stop_all()
    }

    fn stop_all(&mut self) -> Vec<Worker> {
        self.end();
        let until = Instant::now() + STOP_LIMIT;
        let seats = self.seats.drain(..);
        seats.filter_map(|s| join(s.thread, until)).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop_all();
    }
}

fn run(mut worker: Worker, core: Option<usize>, near: Option<u32>, orders: &Orders) -> Worker {
    if let Some(id) = core {
        core_affinity::set_for_current(core_affinity::CoreId { id });
    }
    if let Some(node) = near {
        worker.lanes.bufs.move_to(node);
    }
    let channel = worker.channel.clone();
    let first = 0u64;
    channel.standing.enter(&first);
    let mut rest = Rest::new();
    let (mut idle, mut since_ns) = (0u32, 0);
    while !orders.stop.load(Ordering::Relaxed) {
        if worker.round() > 0 {
            idle = 0;
            continue;
        }
        if orders.leave.load(Ordering::Relaxed) && worker.may_leave() {
            break;
        }
        // What comes now is not part of any round.
        worker.began = 0;
        let now_ns = worker.clock.at(worker.ended);
        if idle == 0 {
            since_ns = now_ns;
        }
        idle = idle.saturating_add(1);
        match channel.bell.0.get() {
            Some(bell) if worker.may_rest(now_ns - since_ns.min(now_ns)) => {
                worker.sleep(&mut rest, bell, &orders.stop);
            }
            _ if idle > PATIENCE => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
    channel.standing.leave();
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
