//! The watchdog of workers: their load, where they paused and what the control thread did then, and whether one is stalled.
//!
//! A process checks ten times a second. `show load` covers the last ten checks. A worker that neither finishes a round nor
//! sleeps between two checks is stalled; after [`STALL`] such checks this is logged, with the node that it ran last. Its calls
//! are logged later if a stack sample was requested ([`crate::calls`]).

use crate::show::{
    Pause, PausesReply, ShowPauses, ShowWorkers, WorkerPauses, WorkerRow, WorkersReply,
};
use crate::verbs::RuntimeClear;
use crate::workers::WorkerManager;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use tracing::{error, info};
use volley_graph::{Engine, GAP_US, ProcessInfo, RoundGap, WorkerThreads, cycles};
use volley_iface::{Interfaces, Registry};
use volley_model::{Applied, Request};

/// Pause between two checks.
const LOOK: Duration = Duration::from_millis(100);
/// Checks that `show load` covers.
const LOOKS: usize = 10;
/// Checks without a round after which a worker is reported as stalled.
const STALL: u32 = 10;
/// The most gaps that are kept for each worker.
const KEPT: usize = 8;
/// The most requests that are remembered, to compare long gaps with.
const REMEMBERED: usize = 1024;

/// The latest requests that the control thread has carried out.
#[derive(Default)]
pub struct Log {
    entries: VecDeque<Entry>,
}

struct Entry {
    from: u64,
    until: u64,
    text: String,
}

impl Log {
    /// Records the start of a request.
    pub fn begin(&mut self, request: &Request) {
        let mut text = match self.entries.len() {
            REMEMBERED => self.entries.pop_front().map(|e| e.text),
            _ => None,
        }
        .unwrap_or_default();
        text.clear();
        // Writing into a string does not fail.
        let _ = write!(text, "{request}");
        let from = cycles();
        self.entries.push_back(Entry {
            from,
            until: u64::MAX,
            text,
        });
    }

    /// Records the end of the request.
    pub fn end(&mut self) {
        if let Some(entry) = self.entries.back_mut() {
            entry.until = cycles();
        }
    }

    /// The request that took most of a span of time.
    fn during(&self, from: u64, until: u64) -> Option<&str> {
        let shared = |e: &&Entry| e.until.min(until).saturating_sub(e.from.max(from));
        let touches = |e: &&Entry| e.from < until && e.until > from;
        let found = self.entries.iter().filter(touches).max_by_key(shared);
        found.map(|e| e.text.as_str())
    }
}

/// A worker's figures at one check.
#[derive(Clone, Copy, Default)]
struct Look {
    at: Option<Instant>,
    busy_s: f64,
    rounds: u64,
    busy_rounds: u64,
    packets: u64,
}

struct Kept {
    gap: RoundGap,
    seen: Instant,
    during: Option<String>,
}

#[derive(Default)]
struct Watched {
    looks: VecDeque<Look>,
    /// Figures at the last clear.
    base: Look,
    base_gaps: u64,
    still: u32,
    stalls: u64,
    /// The channel for its calls, once they were requested.
    asked: Option<Receiver<Vec<String>>>,
    stalled_in: Vec<String>,
    gaps: Vec<Kept>,
    longest: u64,
}

/// The watchdog of all workers.
pub struct Watcher {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
    worker_set: Rc<RefCell<WorkerManager>>,
    log: Rc<RefCell<Log>>,
    workers: BTreeMap<usize, Watched>,
    started: Instant,
}

/// Starts the watchdog and registers its queries.
pub fn register(
    registry: &mut Registry,
    worker_set: &Rc<RefCell<WorkerManager>>,
) -> Rc<RefCell<Log>> {
    let log = Rc::new(RefCell::new(Log::default()));
    let watcher = Rc::new(RefCell::new(Watcher {
        engine: registry.engine.clone(),
        interfaces: registry.interfaces.clone(),
        worker_set: worker_set.clone(),
        log: log.clone(),
        workers: BTreeMap::new(),
        started: Instant::now(),
    }));
    let info = ProcessInfo {
        name: "worker-load",
        text: "Reads ten times a second what work workers have, and whether a worker has stopped.",
    };
    let kept = Rc::downgrade(&watcher);
    let watch = registry.processes.every(info, move || {
        kept.upgrade()?.borrow_mut().look();
        Some(LOOK)
    });
    let cleared = watcher.clone();
    registry.perform(move |_: RuntimeClear| {
        cleared.borrow_mut().clear();
        Ok(Applied::nothing())
    });
    let shared = watcher.clone();
    registry.answer(move |_: ShowWorkers| Ok(shared.borrow_mut().workers()));
    registry.answer(move |_: ShowPauses| {
        // The process runs for as long as the owner of the query exists.
        let _looks = &watch;
        Ok(watcher.borrow_mut().pauses())
    });
    log
}

impl Watcher {
    fn now(&self, worker: usize) -> Look {
        let engine = self.engine.borrow();
        let (rounds, busy_rounds, packets, _) = engine.load(worker).unwrap_or_default();
        Look {
            at: Some(Instant::now()),
            busy_s: engine.busy_seconds(worker),
            rounds,
            busy_rounds,
            packets,
        }
    }

    /// Checks every worker once.
    fn look(&mut self) {
        let worker_set = self.engine.borrow().worker_set().clone();
        self.workers.retain(|worker, _| worker_set.has(*worker));
        for worker in worker_set.iter() {
            let now = self.now(worker);
            self.gather(worker);
            self.check(worker, now);
            self.hear(worker);
            let watched = self.workers.entry(worker).or_default();
            watched.looks.push_back(now);
            while watched.looks.len() > LOOKS + 1 {
                watched.looks.pop_front();
            }
        }
    }

    /// Reads the long gaps that a worker has recorded, and adds what the control thread did meanwhile.
    fn gather(&mut self, worker: usize) {
        let gaps = self.engine.borrow().take_gaps(worker);
        let (log, watched) = (self.log.borrow(), self.workers.entry(worker).or_default());
        for gap in gaps {
            watched.longest = watched.longest.max(gap.duration_cycles);
            let during = log.during(gap.from, gap.from + gap.duration_cycles);
            watched.gaps.push(Kept {
                gap,
                seen: Instant::now(),
                during: during.map(str::to_owned),
            });
        }
        watched
            .gaps
            .sort_by_key(|kept| std::cmp::Reverse(kept.gap.duration_cycles));
        watched.gaps.truncate(KEPT);
    }

    /// Logs when a worker is stalled, and when it continues.
    fn check(&mut self, worker: usize, now: Look) {
        let (engine, on_thread) = (
            self.engine.borrow(),
            self.worker_set.borrow().running().is_some(),
        );
        let watched = self.workers.entry(worker).or_default();
        let before = watched.looks.back().map(|look| look.rounds);
        if !on_thread || engine.is_asleep(worker) || before != Some(now.rounds) {
            if watched.still >= STALL {
                info!(target: "worker", worker, "worker {worker} goes round again");
            }
            watched.still = 0;
            return;
        }
        watched.still += 1;
        if watched.still == STALL {
            watched.stalls += 1;
            let node = engine.name(engine.last_node(worker)).to_owned();
            let state = thread_state(worker).unwrap_or_default();
            let span = LOOK.as_millis() * u128::from(STALL);
            error!(target: "worker", worker, "worker {worker} has not gone round for {span} ms: it is in node {node}{state}");
            watched.asked = engine.stack_sampler(worker).map(crate::calls::ask);
        }
    }

    /// Logs the calls of a stalled worker once they are known.
    fn hear(&mut self, worker: usize) {
        let watched = self.workers.entry(worker).or_default();
        let reported = watched.asked.as_ref().map(Receiver::try_recv);
        match reported {
            None | Some(Err(TryRecvError::Empty)) => return,
            Some(Err(TryRecvError::Disconnected)) => {}
            Some(Ok(calls)) => {
                let list = calls.join(" < ");
                error!(target: "worker", worker, "worker {worker} stood still in {list}");
                watched.stalled_in = calls;
            }
        }
        watched.asked = None;
    }

    fn queues(&self, worker: usize) -> Vec<String> {
        let interfaces = self.interfaces.borrow();
        let of = |i: &volley_iface::Interface| {
            let all = i.rx_queues.iter().enumerate();
            let mine = all.filter(|(_, w)| **w == worker);
            mine.map(|(queue, _)| format!("{} queue {queue}", i.name))
                .collect::<Vec<_>>()
        };
        interfaces.iter().flat_map(of).collect()
    }

    fn state(&self, worker: usize) -> &'static str {
        let engine = self.engine.borrow();
        let still = self.workers.get(&worker).map_or(0, |w| w.still);
        match () {
            () if engine.worker_set().is_draining(worker) => "leaving",
            () if still >= STALL => "stalled",
            () if engine.is_asleep(worker) => "sleeping",
            () => "polling",
        }
    }

    fn row(&mut self, worker: usize) -> WorkerRow {
        let (now, queues, state) = (self.now(worker), self.queues(worker), self.state(worker));
        let running = self.worker_set.borrow().running();
        let of = |read: fn(&WorkerThreads, usize) -> Option<u32>| {
            read(&running.as_ref()?.borrow(), worker)
        };
        let core = of(|r, w| r.core(w).map(|core| core as u32));
        let numa = of(WorkerThreads::numa);
        let started = self.started;
        let watched = self.workers.entry(worker).or_default();
        let first = watched.looks.front().copied().unwrap_or(watched.base);
        let (lately, all) = (
            Span::of(first, now, started),
            Span::of(watched.base, now, started),
        );
        let engine = self.engine.borrow();
        let size = engine.vector_size() as f64;
        WorkerRow {
            worker: worker as u32,
            core,
            numa,
            state: state.to_owned(),
            queues,
            load_percent: lately.busy_percent,
            load_since_clear_percent: all.busy_percent,
            rounds: all.rounds,
            busy_rounds: all.busy_rounds,
            empty_rounds_percent: percent((all.rounds - all.busy_rounds) as f64, all.rounds as f64),
            rx_packets: all.packets,
            packets_per_second: lately.packets as f64 / lately.seconds.max(1e-6),
            packets_per_round: all.packets as f64 / all.busy_rounds.max(1) as f64,
            vector_fill_percent: percent(all.packets as f64, all.busy_rounds as f64 * size),
            sleeps: engine.sleeps(worker),
            longest_round_us: engine.longest_round_us(worker),
            stalls: watched.stalls,
            node: engine.name(engine.last_node(worker)).to_owned(),
            stalled_in: watched.stalled_in.clone(),
        }
    }

    fn workers(&mut self) -> WorkersReply {
        let worker_set = self.engine.borrow().worker_set().clone();
        let workers: Vec<WorkerRow> = worker_set.iter().map(|w| self.row(w)).collect();
        let loads = || workers.iter().map(|w| w.load_percent);
        let most = loads().fold(0.0, f64::max);
        WorkersReply {
            places: self.engine.borrow().settings().workers as u32,
            imbalance: most - loads().fold(most, f64::min),
            workers,
        }
    }

    fn pauses(&mut self) -> PausesReply {
        let worker_set = self.engine.borrow().worker_set().clone();
        let us = |took: u64| took as f64 * 1e6 / volley_simd::cycles_per_second();
        let of = |worker: usize| {
            self.gather(worker);
            let (engine, watched) = (self.engine.borrow(), self.workers.get(&worker)?);
            let pause = |kept: &Kept| Pause {
                gap_us: us(kept.gap.duration_cycles),
                ago_s: kept.seen.elapsed().as_secs_f64(),
                node: engine.name(kept.gap.node).to_owned(),
                during: kept.during.clone(),
            };
            Some(WorkerPauses {
                worker: worker as u32,
                longest_us: us(watched.longest),
                over: engine.long_gaps(worker) - watched.base_gaps,
                gaps: watched.gaps.iter().map(pause).collect(),
            })
        };
        PausesReply {
            threshold_us: GAP_US,
            workers: worker_set.iter().filter_map(of).collect(),
        }
    }

    fn clear(&mut self) {
        let worker_set = self.engine.borrow().worker_set().clone();
        for worker in worker_set.iter() {
            // Discards gaps from before the clear.
            self.gather(worker);
            let (now, gaps) = (self.now(worker), self.engine.borrow().long_gaps(worker));
            let watched = self.workers.entry(worker).or_default();
            (watched.base, watched.base_gaps, watched.longest) = (now, gaps, 0);
            watched.gaps.clear();
        }
    }
}

/// The change between two checks.
struct Span {
    seconds: f64,
    busy_percent: f64,
    rounds: u64,
    busy_rounds: u64,
    packets: u64,
}

impl Span {
    fn of(from: Look, to: Look, started: Instant) -> Span {
        let at = |look: Look| look.at.unwrap_or(started);
        let seconds = at(to).saturating_duration_since(at(from)).as_secs_f64();
        Span {
            seconds,
            busy_percent: percent(to.busy_s - from.busy_s, seconds),
            rounds: to.rounds - from.rounds,
            busy_rounds: to.busy_rounds - from.busy_rounds,
            packets: to.packets - from.packets,
        }
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (100.0 * part / whole).clamp(0.0, 100.0)
    } else {
        0.0
    }
}

/// The state of a worker's thread in the kernel, and where it waits.
fn thread_state(worker: usize) -> Option<String> {
    let name = format!("volley-w{worker}");
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let named = |path: &std::path::PathBuf| {
        let comm = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        comm.trim_end() == name
    };
    let task = tasks.flatten().map(|t| t.path()).find(named)?;
    let status = std::fs::read_to_string(task.join("status")).ok()?;
    let state = status
        .lines()
        .find_map(|l| l.strip_prefix("State:"))?
        .trim();
    let wchan = std::fs::read_to_string(task.join("wchan")).unwrap_or_default();
    Some(match wchan.as_str() {
        "" | "0" => format!(", thread {state}"),
        place => format!(", thread {state} in {place}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_told_with_the_request_that_took_the_most_of_it() {
        let entry = |from, until, text: &str| Entry {
            from,
            until,
            text: text.to_owned(),
        };
        let log = Log {
            entries: [entry(10, 20, "a"), entry(30, 90, "b"), entry(90, 100, "c")].into(),
        };
        assert_eq!(log.during(0, 25), Some("a"));
        assert_eq!(log.during(15, 95), Some("b"));
        assert_eq!((log.during(21, 29), log.during(100, 200)), (None, None));
        let mut log = Log::default();
        for n in 0..REMEMBERED as u32 + 5 {
            let delete = volley_iface::WorkerDelete { worker: n % 64 };
            log.begin(&Request::of(&delete).unwrap());
            log.end();
        }
        assert_eq!(log.entries.len(), REMEMBERED);
        assert!(log.during(0, u64::MAX).unwrap().starts_with("workers del "));
    }
}
