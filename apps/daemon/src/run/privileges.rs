//! Capabilities: workers never have any; the control thread drops its own if the configuration requests it.
//!
//! Capabilities belong to threads, and a thread inherits those of its creator. A thread without capabilities therefore starts
//! the workers; the control thread has opened their descriptors. Helper threads for files end [`HELPERS`] after their last
//! work, so those with capabilities end soon after the control thread has dropped its own.

use super::seccomp::OfWorkers;
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};
use std::io;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use volley_graph::{GraphError, Worker, WorkerThread, WorkerThreads};

/// Capabilities cannot be dropped.
#[derive(Debug, thiserror::Error)]
#[error("capabilities cannot be given up: {0}; set capabilities = \"keep\" in [process]")]
pub struct CapabilitiesError(io::Error);

/// Why workers do not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The thread that starts them cannot drop its capabilities.
    #[error(transparent)]
    Capabilities(#[from] CapabilitiesError),
    /// The system cannot create a thread.
    #[error("the graph cannot be built: {0}")]
    Graph(#[from] GraphError),
}

/// How long an idle helper thread waits for more work.
pub const HELPERS: Duration = Duration::from_millis(100);
/// How long to wait for the end of helper threads with capabilities.
const PATIENCE: Duration = Duration::from_secs(5);

/// Drops the capabilities of this thread permanently: no program that it may start gets any.
fn shed() -> Result<(), Errno> {
    // Kernels before 4.3 have no ambient set.
    match clear_ambient_capability_set() {
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(error),
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )?;
    set_no_new_privs(true)
}

/// Runs `work` in a thread without capabilities; threads that it starts have none either.
pub fn without<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CapabilitiesError> {
    let failed = |error: Errno| CapabilitiesError(error.into());
    let thread = std::thread::Builder::new().name("volley-start".into());
    let thread = thread.spawn(move || shed().map(|()| work()));
    let done = thread.map_err(CapabilitiesError)?.join();
    let ended = || CapabilitiesError(io::Error::other("the thread has panicked"));
    done.map_err(|_| ended())?.map_err(failed)
}

/// Starts workers without capabilities, with a filter of system calls from their first round on.
pub fn start_workers(
    workers: Vec<Worker>,
    cores: Vec<usize>,
    filter: OfWorkers,
) -> Result<WorkerThreads, StartError> {
    let first = move || filter.put_on();
    let started = without(move || WorkerThreads::start_with(workers, &cores, first))?;
    Ok(started?)
}

/// The same for one worker.
pub fn start_worker(
    worker: Worker,
    core: Option<usize>,
    filter: OfWorkers,
) -> Result<WorkerThread, StartError> {
    let started = without(move || WorkerThread::start_with(worker, core, move || filter.put_on()))?;
    Ok(started?)
}

/// Drops the capabilities of the control thread; ends when no thread of the process has any.
pub async fn give_up() -> Result<(), CapabilitiesError> {
    shed().map_err(|error| CapabilitiesError(error.into()))?;
    let until = Instant::now() + PATIENCE;
    while let Some(thread) = privileged() {
        if Instant::now() > until {
            let why = format!("thread {thread} still has some");
            return Err(CapabilitiesError(io::Error::other(why)));
        }
        sleep(HELPERS / 4).await;
    }
    Ok(())
}

/// A thread of this process that has capabilities.
fn privileged() -> Option<String> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let has = |status: &str| {
        let set = status.lines().find_map(|l| l.strip_prefix("CapPrm:"));
        set.is_some_and(|hex| hex.trim().bytes().any(|b| b != b'0'))
    };
    threads.flatten().find_map(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        has(&status).then(|| thread.file_name().to_string_lossy().into_owned())
    })
}
