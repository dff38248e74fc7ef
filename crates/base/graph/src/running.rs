//! Workers on threads of their own.

use crate::{GraphError, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Rounds without a packet after which a worker lets others have the core between rounds.
const PATIENCE: u32 = 2_000;
/// Rounds without a packet after which it sleeps between rounds.
const BOREDOM: u32 = 20_000;

/// Running workers. Dropping it stops them.
pub struct Running {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Worker>>,
}

impl Running {
    /// Start each worker on a thread; `cores` pins them in order (missing entries are not pinned).
    pub fn start(workers: Vec<Worker>, cores: &[usize]) -> Result<Self, GraphError> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut running = Running {
            stop: stop.clone(),
            threads: Vec::new(),
        };
        for (worker, body) in workers.into_iter().enumerate() {
            let (stop, core) = (stop.clone(), cores.get(worker).copied());
            let thread = std::thread::Builder::new()
                .name(format!("volley-w{worker}"))
                .spawn(move || run(body, core, &stop))
                .map_err(|e| GraphError::Thread {
                    worker,
                    why: e.to_string(),
                })?;
            running.threads.push(thread);
        }
        Ok(running)
    }

    /// Whether every worker is still alive.
    pub fn is_alive(&self) -> bool {
        self.threads.iter().all(|t| !t.is_finished())
    }

    /// Stop the workers between two rounds and take them back.
    pub fn stop(mut self) -> Vec<Worker> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads
            .drain(..)
            .filter_map(|t| t.join().ok())
            .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn run(mut worker: Worker, core: Option<usize>, stop: &AtomicBool) -> Worker {
    if let Some(id) = core {
        core_affinity::set_for_current(core_affinity::CoreId { id });
    }
    let mut idle = 0u32;
    while !stop.load(Ordering::Relaxed) {
        if worker.step() > 0 {
            idle = 0;
            continue;
        }
        idle = idle.saturating_add(1);
        match idle {
            BOREDOM.. => std::thread::sleep(Duration::from_micros(100)),
            PATIENCE.. => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
    worker
}
