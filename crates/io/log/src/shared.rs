//! What the threads that log, the writer and those who read share. Nothing here waits for a destination.

// tidy: allow(Mutex) control threads, helpers and the writer hold it; no worker logs
// tidy: allow(RwLock) the same threads read the levels
use crate::job::Job;
use crate::limit::{Draft, Limiter, Verdict};
use crate::memory::Memory;
use crate::model::LogReply;
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

/// Records that wait for the slowest reader; older ones are lost to it, and counted.
const HELD: usize = 1024;
/// Records that are shown unless somebody says how many.
const SHOWN: u64 = 100;

pub(crate) struct Shared {
    levels: RwLock<Levels>,
    state: Mutex<State>,
    readers: broadcast::Sender<Arc<LogRecord>>,
    /// The writer has no room for these.
    pub dropped: AtomicU64,
    /// The destination did not take these.
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

/// A thread that panicked while it logged left a whole state behind: every change of it is one step.
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

    /// Set a level; true when that changes something.
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

    /// Take a record, unless too many of its class came before.
    pub fn take(&self, site: Identifier, draft: Draft) {
        let mut state = held(&self.state);
        let waiting = state.limiter.is_waiting();
        match state.limiter.judge(site, &draft, Instant::now()) {
            Verdict::Pass => self.keep(&mut state, draft),
            Verdict::Suppress => {
                state.suppressed += 1;
                // The writer looks once a second while something waits to be reported. A full queue wakes it as well.
                if !waiting {
                    let _ = state.queue.as_ref().map(|queue| queue.try_send(Job::Wake));
                }
            }
        }
    }

    /// A record gets its number, and goes wherever records go.
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
            // A reader that went away meanwhile needs nothing.
            let _ = self.readers.send(record.clone());
        }
        let queue = state.queue.as_ref();
        if queue.is_some_and(|queue| queue.try_send(Job::Record(record)).is_err()) {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Log what was suppressed, where its time has come; true while something waits.
    pub fn report(&self, now: Instant) -> bool {
        let mut state = held(&self.state);
        for draft in state.limiter.due(now) {
            self.keep(&mut state, draft);
        }
        state.limiter.is_waiting()
    }

    /// Hand the writer something that is no record; false when the queue is full.
    pub fn send(&self, job: Job) -> bool {
        let queue = held(&self.state).queue.clone();
        queue.is_none_or(|queue| queue.try_send(job).is_ok())
    }

    /// The destination took a record, or did not.
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
