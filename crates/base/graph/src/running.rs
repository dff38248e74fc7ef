//! Workers on threads of their own.

use crate::rest::{Bell, Rest};
use crate::worker::Channel;
use crate::{GraphError, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Rounds without a packet after which a worker that must poll lets others have the core between rounds.
const PATIENCE: u32 = 2_000;

/// Running workers. Dropping it stops them.
pub struct Running {
    stop: Arc<AtomicBool>,
    channels: Vec<Arc<Channel>>,
    threads: Vec<JoinHandle<Worker>>,
}

impl Running {
    /// Start each worker on a thread; `cores` pins them in order (missing entries are not pinned).
    pub fn start(workers: Vec<Worker>, cores: &[usize]) -> Result<Self, GraphError> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut running = Running {
            stop: stop.clone(),
            channels: Vec::new(),
            threads: Vec::new(),
        };
        for (worker, body) in workers.into_iter().enumerate() {
            let (stop, core) = (stop.clone(), cores.get(worker).copied());
            let failed = |e: std::io::Error| GraphError::Thread {
                worker,
                why: e.to_string(),
            };
            if body.channel.bell.get().is_none() {
                let _ = body.channel.bell.set(Bell::new().map_err(failed)?);
            }
            running.channels.push(body.channel.clone());
            let thread = std::thread::Builder::new()
                .name(format!("volley-w{worker}"))
                .spawn(move || run(body, core, &stop))
                .map_err(failed)?;
            running.threads.push(thread);
        }
        Ok(running)
    }

    /// Whether every worker is still alive.
    pub fn is_alive(&self) -> bool {
        self.threads.iter().all(|t| !t.is_finished())
    }

    fn end(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.channels.iter().for_each(|c| c.ring());
    }

    /// Stop the workers between two rounds and take them back.
    pub fn stop(mut self) -> Vec<Worker> {
        self.end();
        self.threads
            .drain(..)
            .filter_map(|t| t.join().ok())
            .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn run(mut worker: Worker, core: Option<usize>, stop: &AtomicBool) -> Worker {
    if let Some(id) = core {
        core_affinity::set_for_current(core_affinity::CoreId { id });
    }
    let channel = worker.channel.clone();
    let mut rest = Rest::new();
    let (mut idle, mut since_ns) = (0u32, 0);
    while !stop.load(Ordering::Relaxed) {
        if worker.step() > 0 {
            idle = 0;
            continue;
        }
        let now_ns = worker.clock.now_ns();
        if idle == 0 {
            since_ns = now_ns;
        }
        idle = idle.saturating_add(1);
        match channel.bell.get() {
            Some(bell) if worker.may_rest(now_ns - since_ns.min(now_ns)) => {
                worker.sleep(&mut rest, bell, stop);
            }
            _ if idle > PATIENCE => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
    worker
}
