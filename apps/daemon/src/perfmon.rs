//! `perfmon start`, `perfmon stop`, `perfmon reset`: events that the processor or the kernel counts while nodes run.
//!
//! The control thread opens the counters of each worker's thread, and sends them to the worker. Only while a bundle runs does a
//! worker read counters, before and after each run of a node.

use crate::show::{
    PerfmonBundleRow, PerfmonBundlesReply, PerfmonEvent, PerfmonNode, PerfmonReply, PerfmonWorker,
    ShowPerfmon, ShowPerfmonBundles,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use volley_graph::{CounterGroup, Engine, EventReport, MAX_EVENTS};
use volley_iface::Registry;
use volley_model::{Applied, ModelError};
use volley_object::{Choice, DefinitionError, Verb, choice_name};
use volley_perfmon::{Bundle, Figures, Group, How};

/// A bundle of events that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum PerfmonBundle {
    /// Instructions, core cycles, and instructions per cycle (IPC).
    InstAndClock,
    /// Loads that miss the data caches of level 1 and 2 and the last level, and fetches that miss the level 1 instruction cache.
    CacheHierarchy,
    /// Branches, and those that were mispredicted.
    BranchMispred,
    /// Context switches of the worker's thread, and its moves to another core.
    ContextSwitches,
    /// Page faults without and with reading from a disk, and the time of the thread on a core.
    PageFaults,
}

impl PerfmonBundle {
    /// The events. The bundles of [`volley_perfmon`] have the names of the variants.
    fn events(self) -> Result<&'static Bundle, ModelError> {
        let name = choice_name(&self);
        let known = volley_perfmon::bundle(name);
        known.ok_or_else(|| ModelError::invalid(name, "the bundle has no events"))
    }
}

/// Count the events of a bundle for each node of all workers. Reading the counters takes time of the workers.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(
    name = "perfmon-start",
    machine,
    command = "perfmon start bundle <bundle>"
)]
#[verb(example = "perfmon start bundle inst-and-clock")]
pub struct PerfmonStart {
    /// Events to count.
    pub bundle: PerfmonBundle,
}

/// Stop counting events, and keep what was counted.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "perfmon-stop", machine, command = "perfmon stop")]
#[verb(example = "perfmon stop")]
pub struct PerfmonStop;

/// Stop counting events, and forget what was counted.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "perfmon-reset", machine, command = "perfmon reset")]
#[verb(example = "perfmon reset")]
pub struct PerfmonReset;

/// Registers the verbs.
pub(crate) fn classes() -> Result<(), DefinitionError> {
    PerfmonStart::verb()?;
    PerfmonStop::verb()?;
    PerfmonReset::verb()?;
    Ok(())
}

/// A bundle that runs, or that ran last.
struct Run {
    bundle: &'static Bundle,
    started: Instant,
    /// How long it ran; none while it runs.
    lasted: Option<Duration>,
    workers: Vec<CountedWorker>,
}

/// A worker whose events are counted.
struct CountedWorker {
    worker: usize,
    how: Box<dyn Fn() -> How>,
    /// Which events of the bundle the processor counts.
    has: [bool; MAX_EVENTS],
}

/// The owner of the verbs and queries.
struct Perfmon {
    engine: Rc<RefCell<Engine>>,
    run: Option<Run>,
}

/// Registers the owner.
pub(crate) fn register(registry: &mut Registry) {
    let perfmon = Perfmon {
        engine: registry.engine.clone(),
        run: None,
    };
    let perfmon = Rc::new(RefCell::new(perfmon));
    let shared = perfmon.clone();
    registry.perform(move |it: PerfmonStart| shared.borrow_mut().start(it.bundle));
    let shared = perfmon.clone();
    registry.perform(move |_: PerfmonStop| shared.borrow_mut().stop());
    let shared = perfmon.clone();
    registry.perform(move |_: PerfmonReset| shared.borrow_mut().reset());
    registry.answer(move |_: ShowPerfmon| Ok(perfmon.borrow().report()));
    registry.answer(|asked: ShowPerfmonBundles| bundles(asked.bundle));
}

impl Perfmon {
    fn start(&mut self, bundle: PerfmonBundle) -> Result<Applied, ModelError> {
        let what = format!("perfmon start bundle {}", choice_name(&bundle));
        let refused = |why: &dyn std::fmt::Display| ModelError::invalid(&what, why);
        if let Some(run) = self.run.as_ref().filter(|run| run.lasted.is_none()) {
            let why = format!("{} runs: `perfmon stop` stops it", run.bundle.name);
            return Err(refused(&why));
        }
        let bundle = bundle.events()?;
        let mut engine = self.engine.borrow_mut();
        let mut groups: Vec<(usize, Box<dyn CounterGroup>)> = Vec::new();
        let mut workers = Vec::new();
        let all: Vec<usize> = engine.worker_set().accepting().collect();
        for worker in all {
            let thread = engine.thread(worker);
            let thread = thread
                .ok_or_else(|| refused(&format!("worker {worker} has no thread yet: try again")))?;
            let group = Group::open(bundle, thread).map_err(|error| refused(&error))?;
            workers.push(CountedWorker {
                worker,
                how: Box::new(group.how()),
                has: group.events(),
            });
            groups.push((worker, Box::new(group)));
        }
        if let Err(error) = engine.count_events(groups) {
            // No worker goes on counting alone.
            let _ = engine.stop_events();
            return Err(refused(&error));
        }
        self.run = Some(Run {
            bundle,
            started: Instant::now(),
            lasted: None,
            workers,
        });
        Ok(Applied::one())
    }

    fn stop(&mut self) -> Result<Applied, ModelError> {
        let refused = |why: &dyn std::fmt::Display| ModelError::invalid("perfmon stop", why);
        let Some(run) = self.run.as_mut().filter(|run| run.lasted.is_none()) else {
            return Err(refused(
                &"no bundle runs: `perfmon start bundle NAME` starts one",
            ));
        };
        let stopped = self.engine.borrow_mut().stop_events();
        stopped.map_err(|error| refused(&error))?;
        run.lasted = Some(run.started.elapsed());
        Ok(Applied::one())
    }

    fn reset(&mut self) -> Result<Applied, ModelError> {
        if self.run.is_none() {
            return Ok(Applied::nothing());
        }
        let stopped = self.engine.borrow_mut().stop_events();
        stopped.map_err(|error| ModelError::invalid("perfmon reset", error))?;
        self.run = None;
        Ok(Applied::one())
    }

    fn report(&self) -> PerfmonReply {
        let Some(run) = &self.run else {
            return PerfmonReply::default();
        };
        let reports = self.engine.borrow().event_reports();
        let lasted = run.lasted.unwrap_or_else(|| run.started.elapsed());
        let events = run.bundle.events.iter();
        PerfmonReply {
            bundle: Some(run.bundle.name.to_owned()),
            source: Some(run.bundle.source.name().to_owned()),
            is_running: run.lasted.is_none(),
            seconds: lasted.as_secs_f64(),
            events: events.map(|it| it.name.to_owned()).collect(),
            ratio: run.bundle.ratio.map(|it| it.name.to_owned()),
            workers: run
                .workers
                .iter()
                .map(|it| it.report(run.bundle, &reports))
                .collect(),
        }
    }
}

impl CountedWorker {
    fn report(&self, bundle: &'static Bundle, reports: &[EventReport]) -> PerfmonWorker {
        let ours = reports.iter().filter(|it| it.worker == self.worker);
        let mut nodes: Vec<_> = ours.map(|it| node(bundle, it, self.has)).collect();
        nodes.sort_by(|a, b| a.node.cmp(&b.node));
        PerfmonWorker {
            worker: self.worker as u32,
            read_by: (self.how)().name().to_owned(),
            nodes,
        }
    }
}

fn node(bundle: &'static Bundle, report: &EventReport, has: [bool; MAX_EVENTS]) -> PerfmonNode {
    let figures = Figures::of(bundle, report, has);
    let event = |(at, event): (usize, &volley_perfmon::Event)| PerfmonEvent {
        event: event.name.to_owned(),
        counted: has[at].then_some(report.values[at]),
        total: figures.total[at],
        per_packet: figures.per_packet[at],
        per_call: figures.per_call[at],
    };
    PerfmonNode {
        node: report.node.clone(),
        calls: report.calls,
        packets: report.vectors,
        uncounted_calls: report.uncounted,
        events: bundle.events.iter().enumerate().map(event).collect(),
        ratio: figures.ratio,
    }
}

/// The bundles, or one of them, and whether the kernel counts their events for the control thread.
fn bundles(wanted: Option<PerfmonBundle>) -> Result<PerfmonBundlesReply, ModelError> {
    let all = PerfmonBundle::ALL.iter();
    let all = all.filter(|it| wanted.is_none_or(|wanted| wanted == it.2));
    let row = |(name, text, it): &(&'static str, &'static str, PerfmonBundle)| {
        let bundle = it.events()?;
        let available = volley_perfmon::availability(bundle);
        Ok(PerfmonBundleRow {
            bundle: (*name).to_owned(),
            text: (*text).to_owned(),
            source: bundle.source.name().to_owned(),
            events: bundle.events.iter().map(|it| it.name.to_owned()).collect(),
            missing: match &available {
                Ok(missing) => missing.iter().map(|it| (*it).to_owned()).collect(),
                Err(_) => Vec::new(),
            },
            why_not: available.err().map(|error| error.to_string()),
        })
    };
    Ok(PerfmonBundlesReply {
        bundles: all.map(row).collect::<Result<_, ModelError>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_commands_are_those_of_the_bundles() {
        let commands: Vec<&str> = PerfmonBundle::ALL.iter().map(|it| it.0).collect();
        let bundles: Vec<&str> = volley_perfmon::BUNDLES.iter().map(|it| it.name).collect();
        assert_eq!(commands, bundles);
    }
}
