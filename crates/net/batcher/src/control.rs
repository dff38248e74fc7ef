//! Requests of the path batcher, `show path-batcher`, and the periodic task that drains and learns.

use crate::count::{Cells, Sums};
use crate::learn::Learner;
use crate::model::{
    BatcherSettings, InterfaceBatcher, PathBatcherClear, PathHeader, PathQueue, PathRule,
};
use crate::queues::MOST;
use crate::show::{
    PathBatcherReply, PathBatcherTotals, PathHeaderRow, PathLearnedRow, PathQueueRow, PathRuleRow,
    ShowPathBatcher,
};
use crate::table::{
    ClassLimits, LearnedPath, OWN_HEADERS, QUEUES, RULE_COUNTERS, RULES, Situation, Table,
    queue_named,
};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use volley_graph::{Clock, Engine, PeriodicRunner, PeriodicTask, ProcessInfo};
use volley_iface::{Change, IfIdx, Interfaces, ReceiveFeature, Registry};
use volley_model::{Applied, ModelError, ObjectKind, key_value};
use volley_tables::qsbr::Publisher;

/// Interval between checks whether the last packets of an interface have left.
const DRAIN: Duration = Duration::from_millis(1);

/// Interfaces with the batcher enabled, and those that are being disabled.
#[derive(Default)]
struct Gates {
    on: BTreeSet<u32>,
    leaving: BTreeSet<u32>,
}

struct Control {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
    feature: ReceiveFeature,
    publisher: Publisher<Table>,
    wishes: ClassLimits,
    now: Situation,
    gates: Rc<RefCell<Gates>>,
    cells: Vec<Arc<Cells>>,
    cleared: Sums,
    has_frames: bool,
    /// Epoch ticket of the last published table.
    ticket: u64,
    learner: Learner,
    decided_ns: u64,
    clock: Clock,
}

/// Handles requests of the path batcher.
#[derive(Clone)]
pub struct PathHandler {
    control: Rc<RefCell<PeriodicRunner<Control>>>,
}

pub(crate) fn first_table() -> Table {
    match Table::new(&ClassLimits::default(), &Situation::default()) {
        Ok(table) => table,
        Err(error) => unreachable!("a table without rules: {error}"),
    }
}

impl PathHandler {
    pub(crate) fn new(
        registry: &Registry,
        feature: ReceiveFeature,
        publisher: Publisher<Table>,
        cells: Vec<Arc<Cells>>,
    ) -> Self {
        let gates: Rc<RefCell<Gates>> = Rc::default();
        let (ours, entered) = (gates.clone(), feature.clone());
        registry.interfaces.borrow_mut().listen(move |change| {
            let Change::Deleted(gone) = change else {
                return;
            };
            // Packets of the deleted interface that still wait continue on the arc of its index, which has no features then.
            entered.clear(gone.index);
            let mut gates = ours.borrow_mut();
            gates.on.remove(&gone.index.0);
            gates.leaving.remove(&gone.index.0);
        });
        let clock = registry.engine.borrow().settings().clock.clone();
        let control = Control {
            engine: registry.engine.clone(),
            interfaces: registry.interfaces.clone(),
            feature,
            publisher,
            wishes: ClassLimits::default(),
            now: Situation::default(),
            gates,
            cells,
            cleared: Sums::default(),
            has_frames: false,
            ticket: 0,
            learner: Learner::default(),
            decided_ns: 0,
            clock,
        };
        let control = PeriodicRunner::new(&registry.processes, control);
        PathHandler {
            control: Rc::new(RefCell::new(control)),
        }
    }

    fn with<T>(&self, what: impl FnOnce(&mut Control) -> T) -> T {
        self.control.borrow_mut().with(what)
    }

    /// Registers the handler as owner of its classes, its query and its verb.
    pub(crate) fn own(&self, registry: &mut Registry) {
        let shared = self.clone();
        registry.own(move |key, now: Option<PathHeader>| {
            shared.with(|control| match &now {
                Some(header) => control.header_set(header),
                None => control.header_del(&key_value::<String>(key, 0)),
            })
        });
        let shared = self.clone();
        registry.own(move |_, now: Option<BatcherSettings>| {
            shared.with(|control| {
                let mut wishes = control.wishes.clone();
                wishes.defaults = now.unwrap_or_default();
                control.replace(wishes)
            })
        });
        let shared = self.clone();
        registry.own(move |key, now: Option<PathQueue>| {
            shared.with(|control| match &now {
                Some(queue) => control.queue_set(queue),
                None => control.queue_del(key_value(key, 0)),
            })
        });
        let shared = self.clone();
        registry.own(move |key, now: Option<PathRule>| {
            shared.with(|control| match &now {
                Some(rule) => control.rule_set(rule),
                None => control.rule_del(&key_value::<String>(key, 0)),
            })
        });
        let shared = self.clone();
        registry.own_setting(move |index, _, now: Option<InterfaceBatcher>| {
            let on = now.is_some_and(|it| it.enabled);
            shared.with(|control| control.switch(index, on))
        });
        let shared = self.clone();
        registry.perform(move |_: PathBatcherClear| {
            shared.with(Control::clear);
            Ok(Applied::one())
        });
        let shared = self.control.clone();
        registry.answer(move |_: ShowPathBatcher| {
            let runner = shared.borrow();
            let control = runner.task().borrow();
            Ok(control.reply())
        });
    }
}

impl PeriodicTask for Control {
    const PROCESS: ProcessInfo = ProcessInfo {
        name: "path-batcher-process",
        text: "lets the last packets of an interface leave the path batcher, and learns heavy paths",
    };

    fn next_run_in(&self) -> Option<Duration> {
        if !self.gates.borrow().leaving.is_empty() || self.now.pass {
            return Some(DRAIN);
        }
        let learn = self.wishes.defaults.learning()?;
        let span = (learn.learn_interval / 4).clamp(5, 50);
        Some(Duration::from_millis(span.into()))
    }

    fn run(&mut self) {
        self.drain();
        self.learn();
    }
}

impl Control {
    fn publish(&mut self, table: Table) {
        self.ticket = self.publisher.publish(table);
        self.engine.borrow().wake();
    }

    /// Builds the table for `wishes` and publishes it; an error changes nothing.
    fn replace(&mut self, wishes: ClassLimits) -> Result<Applied, ModelError> {
        if wishes == self.wishes {
            return Ok(Applied::nothing());
        }
        let mut now = self.now.clone();
        now.version += 1;
        if !wishes.defaults.learns_as(&self.wishes.defaults)
            || wishes.headers != self.wishes.headers
        {
            now.learned.clear();
            self.learner = Learner::default();
        }
        now.learned
            .retain(|(_, queue)| !wishes.queues.iter().any(|q| q.id == *queue));
        let table = Table::new(&wishes, &now)?;
        (self.wishes, self.now) = (wishes, now);
        self.publish(table);
        Ok(Applied::one())
    }

    /// Publishes the same rules with a changed situation.
    fn renew(&mut self) {
        self.now.version += 1;
        // The rules were accepted before, and learned paths refer to existing headers.
        if let Ok(table) = Table::new(&self.wishes, &self.now) {
            self.publish(table);
        }
    }

    fn switch(&mut self, index: IfIdx, on: bool) -> Result<Applied, ModelError> {
        let is_on = self.gates.borrow().on.contains(&index.0);
        if is_on == on {
            return Ok(Applied::nothing());
        }
        if !on {
            let mut gates = self.gates.borrow_mut();
            gates.on.remove(&index.0);
            gates.leaving.insert(index.0);
            drop(gates);
            self.now.pass = true;
            self.renew();
            self.drain();
            return Ok(Applied::one());
        }
        if !self.has_frames {
            let given = self.engine.borrow_mut().reserve_frames(MOST + QUEUES + 2);
            let name = || self.interfaces.borrow().name(index.0);
            given.map_err(|e| ModelError::invalid(format!("path batcher on {}", name()), e))?;
            self.has_frames = true;
        }
        self.feature.enable(&self.interfaces.borrow(), index)?;
        let mut gates = self.gates.borrow_mut();
        gates.leaving.remove(&index.0);
        gates.on.insert(index.0);
        drop(gates);
        self.drain();
        Ok(Applied::one())
    }

    /// When every worker passes packets directly and holds none, removes interfaces that are being disabled from the arc: their
    /// packets can no longer overtake others.
    fn drain(&mut self) {
        if !self.now.pass {
            return;
        }
        let holds = |c: &Arc<Cells>| c.held.load(Ordering::Acquire) > 0;
        let passed = self.publisher.domain().passed(self.ticket);
        if !passed || self.cells.iter().any(holds) {
            self.engine.borrow().wake();
            return;
        }
        let leaving = std::mem::take(&mut self.gates.borrow_mut().leaving);
        leaving.iter().for_each(|i| self.feature.clear(IfIdx(*i)));
        self.now.pass = false;
        self.renew();
    }

    /// Weighs the samples; decides when the interval is over.
    fn learn(&mut self) {
        let Some(learn) = self.wishes.defaults.learning().cloned() else {
            return;
        };
        for cells in &self.cells {
            while let Some(path) = cells.samples.pop() {
                self.learner.sample(path);
            }
        }
        let (now_ns, span) = (
            self.clock.now_ns(),
            u64::from(learn.learn_interval) * 1_000_000,
        );
        if now_ns < self.decided_ns + span {
            return;
        }
        self.decided_ns = now_ns;
        let taken = |id: &u32| self.wishes.queues.iter().any(|q| q.id == *id);
        let free = (1..QUEUES as u32).rev().filter(|id| !taken(id));
        let queues: Vec<u32> = free.take(learn.learn as usize).collect();
        let mut learned = std::mem::take(&mut self.now.learned);
        let changed = self
            .learner
            .decide(&mut learned, &queues, learn.learn_margin);
        self.now.learned = learned;
        if changed {
            self.renew();
        }
    }

    fn header_set(&mut self, header: &PathHeader) -> Result<Applied, ModelError> {
        let mut wishes = self.wishes.clone();
        let (full, own) = (
            wishes.headers.len() == OWN_HEADERS,
            wishes.headers.iter_mut().find(|h| h.name == header.name),
        );
        if own.is_none() && self.publisher.program.number(&header.name).is_some() {
            let name = format!("path header {}", header.name);
            return Err(ModelError::exists(ObjectKind::Object, name));
        }
        match own {
            Some(own) => *own = header.clone(),
            None if full => {
                let why = format!("there may be {OWN_HEADERS} headers of your own: delete one");
                let what = format!("path-batcher header {}", header.name);
                return Err(ModelError::invalid(what, why));
            }
            None => {
                wishes.headers.push(header.clone());
                wishes.headers.sort_by(|a, b| a.name.cmp(&b.name));
            }
        }
        self.replace(wishes)
    }

    fn header_del(&mut self, name: &str) -> Result<Applied, ModelError> {
        let mut wishes = self.wishes.clone();
        let known = wishes.headers.len();
        wishes.headers.retain(|h| h.name != name);
        if wishes.headers.len() == known {
            let names = wishes.headers.iter().map(|h| h.name.clone());
            let names = names.collect::<Vec<_>>();
            let name = format!("path header {name}");
            return Err(ModelError::not_found(ObjectKind::Object, name, names));
        }
        self.replace(wishes)
    }

    fn queue_set(&mut self, queue: &PathQueue) -> Result<Applied, ModelError> {
        let mut wishes = self.wishes.clone();
        wishes.queues.retain(|q| q.id != queue.id);
        wishes.queues.push(queue.clone());
        wishes.queues.sort_by_key(|q| q.id);
        self.replace(wishes)
    }

    fn queue_del(&mut self, id: u32) -> Result<Applied, ModelError> {
        let mut wishes = self.wishes.clone();
        let known = wishes.queues.len();
        wishes.queues.retain(|q| q.id != id);
        if wishes.queues.len() == known {
            let ids = wishes.queues.iter().map(|q| q.id.to_string());
            let ids = ids.collect::<Vec<_>>();
            return Err(ModelError::not_found(
                ObjectKind::Object,
                queue_named(id),
                ids,
            ));
        }
        if let Some((rule, _)) = wishes.rules.iter().find(|(r, _)| r.queue == id) {
            let by = format!("path-batcher rule {}", rule.name);
            return Err(ModelError::in_use(ObjectKind::Object, queue_named(id), by));
        }
        self.replace(wishes)
    }

    fn rule_set(&mut self, rule: &PathRule) -> Result<Applied, ModelError> {
        let mut wishes = self.wishes.clone();
        match wishes.rules.iter_mut().find(|(r, _)| r.name == rule.name) {
            Some((own, _)) => *own = rule.clone(),
            None => {
                let taken: BTreeSet<u32> = wishes.rules.iter().map(|(_, c)| *c).collect();
                let free = (0..RULES as u32).find(|c| !taken.contains(c));
                let counter = free.ok_or_else(|| {
                    let why = format!("there may be {RULES} rules: delete one");
                    ModelError::invalid(format!("path-batcher rule {}", rule.name), why)
                })?;
                wishes.rules.push((rule.clone(), counter));
                wishes.rules.sort_by(|a, b| a.0.name.cmp(&b.0.name));
            }
        }
        let fresh = wishes.rules.len() > self.wishes.rules.len();
        let done = self.replace(wishes)?;
        if let (true, Some((_, at))) = (
            fresh,
            self.wishes.rules.iter().find(|(r, _)| r.name == rule.name),
        ) {
            // An earlier rule may have used this counter.
            let now = Sums::of(&self.cells);
            self.cleared.rules.resize(RULE_COUNTERS, 0);
            self.cleared.rules[*at as usize] = now.rules[*at as usize];
        }
        Ok(done)
    }

    fn rule_del(&mut self, name: &str) -> Result<Applied, ModelError> {
        let mut wishes = self.wishes.clone();
        let known = wishes.rules.len();
        wishes.rules.retain(|(r, _)| r.name != name);
        if wishes.rules.len() == known {
            let names = wishes.rules.iter().map(|(r, _)| r.name.clone());
            let names = names.collect::<Vec<_>>();
            let rule = format!("path-batcher rule {name}");
            return Err(ModelError::not_found(ObjectKind::Object, rule, names));
        }
        self.replace(wishes)
    }

    fn clear(&mut self) {
        self.cleared = Sums::of(&self.cells);
        for cells in &self.cells {
            cells.longest_ns.store(0, Ordering::Relaxed);
            cells
                .queues
                .iter()
                .for_each(|q| q.most.store(0, Ordering::Relaxed));
        }
    }

    fn reply(&self) -> PathBatcherReply {
        let sums = Sums::of(&self.cells).since(&self.cleared);
        let (gates, all) = (self.gates.borrow(), self.interfaces.borrow());
        let names = |set: &BTreeSet<u32>| {
            let mut names: Vec<String> = set.iter().map(|i| all.name(*i)).collect();
            names.sort();
            names
        };
        let longest = self
            .cells
            .iter()
            .map(|c| c.longest_ns.load(Ordering::Relaxed));
        let held = self.cells.iter().map(|c| c.held.load(Ordering::Relaxed));
        let used = sums
            .sizes
            .iter()
            .rposition(|n| *n > 0)
            .map_or(0, |at| at + 1);
        PathBatcherReply {
            interfaces: names(&gates.on),
            draining: names(&gates.leaving),
            batch: self.wishes.defaults.batch,
            timeout_us: self.wishes.defaults.timeout,
            gather: self.wishes.defaults.gather,
            totals: PathBatcherTotals {
                packets: sums.packets.iter().sum(),
                held: held.sum(),
                flushed: sums.flushed,
                sizes: sums.sizes[..used].to_vec(),
                delays: sums.delays_us(),
                delay_p50_us: sums.delay_us(0.5),
                delay_p99_us: sums.delay_us(0.99),
                delay_max_us: longest.max().unwrap_or(0) as f64 / 1000.0,
            },
            queues: self.queue_rows(&sums),
            rules: self.rule_rows(&sums),
            headers: self.header_rows(),
            learning: self.wishes.defaults.learning().is_some(),
            learned: self
                .now
                .learned
                .iter()
                .map(|l| self.learned_row(l))
                .collect(),
        }
    }

    fn queue_rows(&self, sums: &Sums) -> Vec<PathQueueRow> {
        let learned = |id: u32| self.now.learned.iter().any(|(_, q)| *q == id);
        let row = |id: u32| {
            let own = self.wishes.queues.iter().find(|q| q.id == id).cloned();
            let (shown, at) = (id == 0 || own.is_some() || learned(id), id as usize);
            let sum = |of: &dyn Fn(&Cells) -> u64| self.cells.iter().map(|c| of(c)).sum();
            let of = |value: fn(&PathQueue) -> Option<u32>| own.as_ref().and_then(value);
            shown.then(|| PathQueueRow {
                id,
                batch: of(|q| q.batch),
                timeout_us: of(|q| q.timeout),
                gather: of(|q| q.gather),
                weight: of(|q| q.weight),
                strict: of(|q| q.strict),
                learned: learned(id),
                packets: sums.packets[at],
                held: sum(&|c| c.queues[at].held.load(Ordering::Relaxed)),
                most_held: sum(&|c| c.queues[at].most.load(Ordering::Relaxed)),
                full: sums.full[at],
                timeouts: sums.timeouts[at],
                late: sums.late[at],
                held_up: sums.held_up[at],
            })
        };
        (0..QUEUES as u32).filter_map(row).collect()
    }

    fn rule_rows(&self, sums: &Sums) -> Vec<PathRuleRow> {
        let row = |(rule, counter): &(PathRule, u32)| PathRuleRow {
            name: rule.name.clone(),
            queue: rule.queue,
            priority: rule.priority,
            matches: rule.r#match.iter().map(ToString::to_string).collect(),
            packets: sums.rules[*counter as usize],
        };
        let mut rows: Vec<PathRuleRow> = self.wishes.rules.iter().map(row).collect();
        rows.sort_by(|a, b| (b.priority, &a.name).cmp(&(a.priority, &b.name)));
        rows
    }

    fn header_rows(&self) -> Vec<PathHeaderRow> {
        let row = |header: &PathHeader| PathHeaderRow {
            name: header.name.clone(),
            length: header.length,
            missing: self.publisher.program.missing(header),
        };
        self.wishes.headers.iter().map(row).collect()
    }

    fn learned_row(&self, (path, queue): &(LearnedPath, u32)) -> PathLearnedRow {
        let mut text = self.publisher.program.path_text(path.path);
        let fields = self
            .wishes
            .defaults
            .learning()
            .into_iter()
            .flat_map(|l| &l.learn_field);
        for ((field, wanted), value) in fields.zip(&self.publisher.learn).zip(path.values) {
            if path.seen & wanted.bit != 0 {
                text += &format!(" {field}={value}");
            }
        }
        PathLearnedRow {
            path: text,
            queue: *queue,
            percent: self.learner.percent(path),
        }
    }
}
