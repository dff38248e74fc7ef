//! The state shared by the threads that log, the writer and the readers. No function here waits for a destination.

// tidy: allow(Mutex) control threads, helpers and the writer hold it; no worker logs
// tidy: allow(RwLock) the same threads read the levels
use crate::job::Job;
use crate::limit::{Draft, Limiter, Verdict};
use crate::memory::Memory;
use crate::model::{LogModule, LogReply};
use crate::record::{LogLevel, LogRecord};
use crate::select::Select;
use crate::settings::LogLevels;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;
use tokio::sync::broadcast;
use tracing_core::callsite::Identifier;
use volley_model::Timestamp;

/// The number of records that are kept for the slowest reader; it loses older ones, and they are counted.
const HELD: usize = 1024;
/// The number of records that are shown by default.
const SHOWN: u64 = 100;

pub(crate) struct Shared {
    levels: RwLock<Levels>,
    state: Mutex<State>,
    readers: broadcast::Sender<Arc<LogRecord>>,
    /// The number of records that found the writer's queue full.
    pub dropped: AtomicU64,
    /// The number of records that the destination refused.
    pub failed: AtomicU64,
    fault: Mutex<Option<String>>,
}

#[derive(Default)]
struct Levels {
    configured: LogLevels,
    now: LogLevels,
}

#[derive(Default)]
struct State {
    memory: Memory,
    newest: u64,
    limiter: Limiter,
    suppressed: u64,
    queue: Option<SyncSender<Job>>,
    destination: String,
}

/// Locks also after a panic of a thread that logged: every change of the state is one step, so the state is valid.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            levels: RwLock::default(),
            state: Mutex::default(),
            readers: broadcast::Sender::new(HELD),
            dropped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            fault: Mutex::default(),
        }
    }
}

impl Shared {
    pub fn connect(&self, queue: SyncSender<Job>, destination: String) {
        let mut state = held(&self.state);
        state.queue = Some(queue);
        state.destination = destination;
    }

    pub fn configure(&self, levels: &LogLevels) {
        self.change_levels(|all| {
            all.configured.clone_from(levels);
            all.now.clone_from(levels);
        });
    }

    fn change_levels(&self, change: impl FnOnce(&mut Levels)) -> bool {
        let differs = {
            let mut levels = self.levels.write().unwrap_or_else(PoisonError::into_inner);
            let before = levels.now.clone();
            change(&mut levels);
            before != levels.now
        };
        tracing_core::callsite::rebuild_interest_cache();
        differs
    }

    /// Set a level; returns whether this changes something.
    pub fn set_level(&self, module: Option<&'static str>, level: Option<LogLevel>) -> bool {
        self.change_levels(|Levels { configured, now }| match (module, level) {
            (None, level) => now.level = level.unwrap_or(configured.level),
            (Some(module), level) => now
                .modules
                .set(module, level.or(configured.modules.get(module))),
        })
    }

    pub fn levels(&self) -> LogLevels {
        let levels = self.levels.read().unwrap_or_else(PoisonError::into_inner);
        levels.now.clone()
    }

    pub fn level_of(&self, module: &str) -> LogLevel {
        let levels = self.levels.read().unwrap_or_else(PoisonError::into_inner);
        levels.now.of(module)
    }

    pub fn most(&self) -> LogLevel {
        let levels = self.levels.read().unwrap_or_else(PoisonError::into_inner);
        levels.now.most()
    }

    /// Log a record, unless its class is over the limit.
    pub fn take(&self, site: Identifier, draft: Draft) {
        let mut state = held(&self.state);
        // By an element of a graph an operator wants each line.
        if draft.module == LogModule::Click.name() && draft.level == LogLevel::Info {
            return self.keep(&mut state, draft);
        }
        let waiting = state.limiter.is_waiting();
        match state.limiter.judge(site, &draft, Instant::now()) {
            Verdict::Pass => self.keep(&mut state, draft),
            Verdict::Suppress => {
                state.suppressed += 1;
                // The writer checks once a second while a report is pending. A full queue wakes it as well.
                if !waiting {
                    let _ = state.queue.as_ref().map(|queue| queue.try_send(Job::Wake));
                }
            }
        }
    }

    /// Assign a number to a record, and pass it to memory, readers and writer.
    fn keep(&self, state: &mut State, draft: Draft) {
        state.newest += 1;
        let record = Arc::new(LogRecord {
            sequence: state.newest,
            time: Timestamp::now(),
            level: draft.level,
            module: draft.module.to_owned(),
            message: draft.message,
            fields: draft.fields,
        });
        state.memory.push(record.clone());
        if self.readers.receiver_count() > 0 {
            // An error means that the reader has ended meanwhile.
            let _ = self.readers.send(record.clone());
        }
        let queue = state.queue.as_ref();
        if queue.is_some_and(|queue| queue.try_send(Job::Record(record)).is_err()) {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Report suppressed records that are due; returns whether a report is pending.
    pub fn report(&self, now: Instant) -> bool {
        let mut state = held(&self.state);
        for draft in state.limiter.due(now) {
            self.keep(&mut state, draft);
        }
        state.limiter.is_waiting()
    }

    /// Send a job that is not a record to the writer; false when the queue is full.
    pub fn send(&self, job: Job) -> bool {
        let queue = held(&self.state).queue.clone();
        queue.is_none_or(|queue| queue.try_send(job).is_ok())
    }

    /// Count whether the destination accepted a record.
    pub fn written(&self, done: std::io::Result<()>) {
        let mut fault = held(&self.fault);
        match done {
            Ok(()) => *fault = None,
            Err(error) => {
                self.failed.fetch_add(1, Relaxed);
                *fault = Some(error.to_string());
            }
        }
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Arc<LogRecord>> {
        self.readers.subscribe()
    }

    pub fn show(&self, select: Select<'_>) -> LogReply {
        let levels = self.levels().to_string();
        let state = held(&self.state);
        let wanted = |record: &&Arc<LogRecord>| {
            select.level.is_none_or(|level| record.level <= level)
                && select.module.is_none_or(|module| record.module == module)
        };
        let all = state.memory.newest_first();
        let behind = all.take_while(|r| select.after.is_none_or(|after| r.sequence > after));
        let most = usize::try_from(select.max.unwrap_or(SHOWN)).unwrap_or(usize::MAX);
        let mut records: Vec<LogRecord> = behind
            .filter(wanted)
            .take(most)
            .map(|r| (**r).clone())
            .collect();
        records.reverse();
        LogReply {
            records,
            levels,
            destination: state.destination.clone(),
            oldest: state.memory.oldest().map_or(0, |r| r.sequence),
            newest: state.newest,
            suppressed: state.suppressed,
            dropped: self.dropped.load(Relaxed),
            failed: self.failed.load(Relaxed),
            fault: held(&self.fault).clone(),
        }
    }
}
