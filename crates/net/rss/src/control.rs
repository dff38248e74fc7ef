//! Requests and replies of software RSS, and the process that samples the load.

use crate::auto::Auto;
use crate::count::{Cells, RSS_INTERFACES};
use crate::model::{NodeWorker, Rss, RssMode};
use crate::node::worker_handoff::{Count, has_settled};
use crate::show::{HandoffRow, NodeWorkerRow, RssReply, RssRow, RssState, RssWorkerRow, ShowRss};
use crate::table::{ENTRIES, Spread, Table, balance, dealt};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;
use std::time::Duration;
use volley_graph::{
    Clock, Counters, Engine, HandoffReport, NodeId, PeriodicRunner, PeriodicTask, ProcessInfo,
    WorkerSet,
};
use volley_iface::{Change, IfIdx, Interfaces, ReceiveFeature, Registry};
use volley_model::{Applied, ModelError, ObjectKind, key_value};
use volley_object::Object;
use volley_tables::qsbr::Publisher;

/// Interval of the process while a change is being carried out.
const SOON: Duration = Duration::from_millis(1);
/// Interval of the load samples.
const LOOK: Duration = Duration::from_millis(100);
/// Samples between two runs of the balancing.
const BALANCE: u32 = 10;
/// Fewest packets that balancing is based on.
const ENOUGH: u64 = 1000;

/// State of an interface with software RSS, or one whose RSS is being disabled.
struct Port {
    settings: Rss,
    /// Index of its counters.
    place: usize,
    /// Values of the counters when they were assigned.
    base: [u64; ENTRIES],
    /// Values of the counters at the last balancing.
    before: [u64; ENTRIES],
    auto: Auto,
    /// The worker of each entry, while packets are spread.
    entries: Option<Box<[u8; ENTRIES]>>,
    /// Whether the feature is enabled on the interface.
    is_on_arc: bool,
    /// RSS is being disabled: removed when no other worker has packets of the interface.
    leaves: bool,
    rebalanced: u64,
}

struct Control {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
    node: NodeId,
    feature: ReceiveFeature,
    publisher: Publisher<Table>,
    cells: Vec<Arc<Cells>>,
    clock: Clock,
    worker_set: Arc<WorkerSet>,
    /// Workers in the set when handoff rings were last created.
    members: Vec<usize>,
    /// Workers with handoff rings: the members, and workers that are to end.
    with_rings: BTreeSet<usize>,
    ports: BTreeMap<u32, Port>,
    /// Interfaces that were deleted.
    gone: Rc<RefCell<BTreeSet<u32>>>,
    version: u64,
    /// Ticket of the published table, to wait until no worker uses older ones.
    ticket: u64,
    /// None without handoff rings; otherwise whether all workers have them.
    linked: Option<bool>,
    /// Handoff rings existed before: spreading continues while new workers get theirs.
    is_linked: bool,
    /// Nodes have moved, and some worker has not completed the move.
    placing: bool,
    looked_ns: u64,
    looks: u32,
    /// Busy seconds of each worker at the last sample.
    busy: Vec<f64>,
}

/// Carries out requests of software RSS.
#[derive(Clone)]
pub struct RssHandler {
    control: Rc<RefCell<PeriodicRunner<Control>>>,
}

impl RssHandler {
    pub(crate) fn new(
        registry: &Registry,
        (node, feature): (NodeId, ReceiveFeature),
        publisher: Publisher<Table>,
        cells: Vec<Arc<Cells>>,
    ) -> Self {
        let gone: Rc<RefCell<BTreeSet<u32>>> = Rc::default();
        let (ours, entered) = (gone.clone(), feature.clone());
        registry.interfaces.borrow_mut().listen(move |change| {
            if let Change::Deleted(it) = change {
                entered.clear(it.index);
                ours.borrow_mut().insert(it.index.0);
            }
        });
        let control = Control {
            engine: registry.engine.clone(),
            interfaces: registry.interfaces.clone(),
            node,
            feature,
            publisher,
            cells,
            clock: registry.engine.borrow().settings().clock.clone(),
            worker_set: registry.engine.borrow().worker_set().clone(),
            members: Vec::new(),
            with_rings: BTreeSet::new(),
            ports: BTreeMap::new(),
            gone,
            version: 0,
            ticket: 0,
            linked: None,
            is_linked: false,
            placing: false,
            looked_ns: 0,
            looks: 0,
            busy: Vec::new(),
        };
        let control = PeriodicRunner::new(&registry.processes, control);
        RssHandler {
            control: Rc::new(RefCell::new(control)),
        }
    }

    fn with<T>(&self, what: impl FnOnce(&mut Control) -> T) -> T {
        self.control.borrow_mut().with(what)
    }

    /// Registers the handler as the owner of its classes.
    pub(crate) fn own(&self, registry: &mut Registry) {
        let shared = self.clone();
        registry.own_setting(move |index, _, now: Option<Rss>| {
            shared.with(|control| control.set(index.0, now.as_ref()))
        });
        let shared = self.clone();
        registry.own(move |key, now: Option<NodeWorker>| {
            let node: String = key_value(key, 0);
            shared.with(|control| control.place(&node, now.map(|it| it.worker)))
        });
        let shared = self.control.clone();
        registry.answer(move |_: ShowRss| {
            let runner = shared.borrow();
            let mut control = runner.task().borrow_mut();
            control.forget();
            Ok(control.reply())
        });
    }
}

impl PeriodicTask for Control {
    const PROCESS: ProcessInfo = ProcessInfo {
        name: "rss-process",
        text: "watches the load of workers and spreads packets of interfaces over them",
    };

    fn next_run_in(&self) -> Option<Duration> {
        if self.placing {
            return Some(SOON);
        }
        if self.ports.is_empty() && !self.is_parting() {
            return self.linked.map(|_| LOOK);
        }
        let busy = |port: &Port| port.is_on_arc && port.entries.is_none();
        let soon = self.linked != Some(true) || self.is_parting() || self.ports.values().any(busy);
        Some(if soon { SOON } else { LOOK })
    }

    fn run(&mut self) {
        self.forget();
        self.link();
        self.straighten();
        self.look();
        self.enter();
        self.settle();
    }
}

impl Control {
    /// Removes the state of deleted interfaces.
    fn forget(&mut self) {
        let gone = std::mem::take(&mut *self.gone.borrow_mut());
        let known = self.ports.len();
        self.ports.retain(|index, _| !gone.contains(index));
        if self.ports.len() != known {
            self.publish();
        }
    }

    /// Creates handoff rings after a change of the worker set; packets may be spread once all workers have theirs.
    fn link(&mut self) {
        let members: Vec<usize> = self.worker_set.accepting().collect();
        if members != self.members && self.linked.is_some() {
            // The worker set has changed: a table without the leaving workers is built once all have rings.
            if self.engine.borrow_mut().add_handoff_rings().is_ok() {
                self.with_rings.extend(&members);
                (self.members, self.linked) = (members, Some(false));
                self.place_again();
            }
        }
        if self.linked == Some(false) && self.engine.borrow().settled() {
            (self.linked, self.is_linked) = (Some(true), true);
            self.renew();
        }
    }

    /// Places nodes again after a change of the worker set: new workers hand off to the worker of a placed node; a node whose
    /// worker leaves runs where its packets arrive.
    fn place_again(&mut self) {
        let full = (self.node, Count::Congestion.index());
        let mut engine = self.engine.borrow_mut();
        for (node, worker) in engine.placed_nodes() {
            let worker = Some(worker).filter(|worker| self.members.contains(worker));
            // If the queue of changes is full, the next change of the worker set repeats this.
            let _ = engine.place_node(&node, worker, full);
            self.placing = true;
        }
    }

    /// Completes moves: nodes that run where their packets arrive are restored.
    fn straighten(&mut self) {
        if self.placing {
            self.placing = !self.engine.borrow_mut().restore_nodes();
        }
    }

    fn workers(&self, settings: &Rss) -> Vec<usize> {
        let open = self.worker_set.accepting();
        let some = &settings.workers;
        let takes_part = |w: &usize| some.is_empty() || some.contains(&(*w as u32));
        open.filter(takes_part).collect()
    }

    /// Whether an interface's packets must be spread now.
    fn wants(&self, index: u32, port: &Port) -> bool {
        let asked = match port.settings.mode {
            RssMode::On => true,
            RssMode::Auto => port.auto.spread && self.queues(index).len() <= 1,
        };
        let somebody = !self.workers(&port.settings).is_empty();
        asked && somebody && !port.leaves && self.is_linked
    }

    /// The worker of each receive queue.
    fn queues(&self, index: u32) -> Vec<usize> {
        let all = self.interfaces.borrow();
        all.get(IfIdx(index))
            .map_or(Vec::new(), |i| i.rx_queues.clone())
    }

    /// Assigns entries to all interfaces, and publishes the table.
    fn renew(&mut self) {
        let wanted: Vec<(u32, bool, Vec<usize>)> = self
            .ports
            .iter()
            .map(|(&i, port)| (i, self.wants(i, port), self.workers(&port.settings)))
            .collect();
        for (index, wants, workers) in wanted {
            let Some(port) = self.ports.get_mut(&index) else {
                continue;
            };
            if !wants {
                port.entries = None;
                continue;
            }
            let fits = |entries: &[u8; ENTRIES]| {
                let used: BTreeSet<usize> = entries.iter().map(|w| usize::from(*w)).collect();
                used.iter().eq(&workers)
            };
            if !port.entries.as_deref().is_some_and(fits) {
                port.entries = Some(dealt(&workers));
            }
        }
        self.publish();
        self.enter();
    }

    /// Enables the feature on interfaces with spreading. If a queue of changes is full, the next run of the process repeats
    /// this.
    fn enter(&mut self) {
        for (&index, port) in &mut self.ports {
            if port.entries.is_some() && !port.is_on_arc {
                port.is_on_arc = self.feature.set(IfIdx(index), true).is_ok();
            }
        }
    }

    fn publish(&mut self) {
        self.version += 1;
        let spread = |(&index, port): (&u32, &Port)| {
            let mut spread = Spread::new(&port.settings, port.place);
            spread.workers = port.entries.clone();
            (index, spread)
        };
        let table = Table::new(self.version, self.ports.iter().map(spread));
        self.ticket = self.publisher.publish(table);
        if let Some(cells) = self.cells.first() {
            cells.wanted.store(self.version, Release);
        }
        self.engine.borrow().wake();
    }

    /// Disables the feature on interfaces without spreading, once no worker has packets of theirs left.
    fn settle(&mut self) {
        let busy = |port: &Port| port.is_on_arc && port.entries.is_none();
        if !self.ports.values().any(busy) && !self.is_parting() {
            self.ports.retain(|_, port| !port.leaves);
            return;
        }
        let mut all = self.worker_set.iter().filter_map(|w| self.cells.get(w));
        let all = all.all(|c| has_settled(c, self.version));
        if !all || !self.publisher.domain().passed(self.ticket) {
            self.engine.borrow().wake();
            return;
        }
        for (&index, port) in &mut self.ports {
            if port.entries.is_none() && port.is_on_arc {
                self.feature.clear(IfIdx(index));
                port.is_on_arc = false;
            }
        }
        self.ports.retain(|_, port| !port.leaves);
        self.part();
    }

    /// Whether workers with rings are to end.
    fn is_parting(&self) -> bool {
        let stays = |worker| self.members.contains(worker);
        !self.with_rings.iter().all(stays)
    }

    /// Releases workers that are to end, once no worker hands off packets to them.
    fn part(&mut self) {
        if self.linked != Some(true) || self.placing {
            return;
        }
        let stays: BTreeSet<usize> = self.members.iter().copied().collect();
        for worker in self.with_rings.difference(&stays) {
            self.engine.borrow_mut().unlink(*worker);
        }
        self.with_rings = stays;
    }

    /// Samples the load, if the interval has passed.
    fn look(&mut self) {
        let now_ns = self.clock.now_ns();
        let took_ns = now_ns.saturating_sub(self.looked_ns);
        if took_ns < LOOK.as_nanos() as u64 {
            return;
        }
        self.looked_ns = now_ns;
        let workers = self.engine.borrow().settings().workers;
        let seconds = |w| self.engine.borrow().busy_seconds(w);
        let busy: Vec<f64> = (0..workers).map(seconds).collect();
        let share = |w: usize| {
            let before = self.busy.get(w).copied().unwrap_or(busy[w]);
            (busy[w] - before) * 1e9 / took_ns as f64
        };
        let shares: Vec<f64> = (0..workers).map(share).collect();
        self.busy = busy;
        let mut changed = self.decide(&shares);
        self.looks += 1;
        if self.looks.is_multiple_of(BALANCE) {
            changed |= self.balance();
        }
        if changed {
            self.renew();
        }
    }

    /// Decides for the interfaces in mode `auto` whether they are spread.
    fn decide(&mut self, shares: &[f64]) -> bool {
        let autos: Vec<(u32, Vec<usize>, Vec<usize>)> = self
            .ports
            .iter()
            .filter(|(_, port)| port.settings.mode == RssMode::Auto)
            .map(|(&i, port)| (i, self.workers(&port.settings), self.queues(i)))
            .collect();
        let mut changed = false;
        for (index, takes_part, receives) in autos {
            if let Some(port) = self.ports.get_mut(&index) {
                changed |= port.auto.look(shares, &takes_part, &receives);
            }
        }
        changed
    }

    /// Moves entries from busy workers to others.
    fn balance(&mut self) -> bool {
        let indexes: Vec<u32> = self.ports.keys().copied().collect();
        let mut changed = false;
        for index in indexes {
            let Some(port) = self.ports.get(&index) else {
                continue;
            };
            let (now, workers) = (self.packets(port.place), self.workers(&port.settings));
            let Some(port) = self.ports.get_mut(&index) else {
                continue;
            };
            let lately = std::array::from_fn(|e| now[e] - port.before[e]);
            port.before = now;
            let Some(entries) = &mut port.entries else {
                continue;
            };
            if lately.iter().sum::<u64>() < ENOUGH || !balance(entries, &lately, &workers) {
                continue;
            }
            port.rebalanced += 1;
            changed = true;
        }
        changed
    }

    /// Packets of each entry, summed over all workers.
    fn packets(&self, place: usize) -> [u64; ENTRIES] {
        let of = |entry| self.cells.iter().map(|c| c.packets(place, entry)).sum();
        std::array::from_fn(of)
    }

    fn set(&mut self, index: u32, rss: Option<&Rss>) -> Result<Applied, ModelError> {
        self.forget();
        let now = self.ports.get(&index).filter(|port| !port.leaves);
        if now.map(|port| &port.settings) == rss {
            return Ok(Applied::nothing());
        }
        let Some(rss) = rss else {
            if let Some(port) = self.ports.get_mut(&index) {
                port.leaves = true;
            }
            self.renew();
            self.settle();
            return Ok(Applied::one());
        };
        self.check(rss)?;
        match self.ports.get_mut(&index) {
            Some(port) => {
                (port.settings, port.leaves) = (rss.clone(), false);
                port.auto = Auto::default();
            }
            None => {
                let port = self.port(rss)?;
                self.ports.insert(index, port);
            }
        }
        self.renew();
        Ok(Applied::one())
    }

    /// Places a node on one worker.
    fn place(&mut self, node: &str, worker: Option<u32>) -> Result<Applied, ModelError> {
        let worker = worker.map(|w| w as usize);
        let now = self.engine.borrow().placed_nodes().into_iter();
        let now = now.filter(|(name, _)| name == node).map(|(_, w)| w).next();
        let mut engine = self.engine.borrow_mut();
        if engine.node(node).is_err() {
            let known: Vec<String> = engine.edges().map(|(name, _)| name.to_owned()).collect();
            return Err(ModelError::not_found(
                ObjectKind::Object,
                format!("node {node}"),
                known,
            ));
        }
        if now == worker {
            return Ok(Applied::nothing());
        }
        let full = (self.node, Count::Congestion.index());
        let placed = engine.place_node(node, worker, full);
        placed.map_err(|e| ModelError::invalid(format!("worker of {node}"), e))?;
        drop(engine);
        self.placing = true;
        if self.linked.is_none() {
            self.linked = Some(false);
            self.members = self.worker_set.accepting().collect();
            self.with_rings.extend(&self.members);
        }
        Ok(Applied::one())
    }

    /// Checks that the configured workers exist, and creates handoff rings if there are none.
    fn check(&mut self, rss: &Rss) -> Result<(), ModelError> {
        let what = || format!("rss on {}", rss.interface);
        let mut named = rss.workers.iter();
        if let Some(missing) = named.find(|w| !self.worker_set.has(**w as usize)) {
            let why = format!("there is no worker {missing}: `show workers` lists them");
            return Err(ModelError::invalid(what(), why));
        }
        if self.linked.is_none() {
            let linked = self.engine.borrow_mut().add_handoff_rings();
            linked.map_err(|e| ModelError::invalid(what(), e))?;
            self.linked = Some(false);
            self.members = self.worker_set.accepting().collect();
            self.with_rings.extend(&self.members);
        }
        Ok(())
    }

    fn port(&self, rss: &Rss) -> Result<Port, ModelError> {
        let taken: BTreeSet<usize> = self.ports.values().map(|p| p.place).collect();
        let Some(place) = (0..RSS_INTERFACES).find(|place| !taken.contains(place)) else {
            let why = format!(
                "{RSS_INTERFACES} interfaces are spread already, which is the limit: \
                 switch it off on one"
            );
            return Err(ModelError::invalid(
                format!("rss on {}", rss.interface),
                why,
            ));
        };
        let now = self.packets(place);
        Ok(Port {
            settings: rss.clone(),
            place,
            base: now,
            before: now,
            auto: Auto::default(),
            entries: None,
            is_on_arc: false,
            leaves: false,
            rebalanced: 0,
        })
    }

    fn reply(&self) -> RssReply {
        let engine = self.engine.borrow();
        RssReply {
            interfaces: self
                .ports
                .iter()
                .map(|(&i, port)| self.row(i, port))
                .collect(),
            nodes: placed(&engine),
            handoffs: engine.handoffs().iter().map(handoff).collect(),
        }
    }

    fn row(&self, index: u32, port: &Port) -> RssRow {
        let several = self.queues(index).len() > 1;
        let state = match &port.entries {
            _ if port.leaves => RssState::Leaves,
            Some(_) => RssState::Spread,
            None if several && port.settings.mode == RssMode::Auto => RssState::Queues,
            None => RssState::Waits,
        };
        let now = self.packets(port.place);
        let entries = port.entries.as_deref();
        let worker = |w: usize| {
            let mine = |e: &usize| entries.is_some_and(|all| usize::from(all[*e]) == w);
            let mine: Vec<usize> = (0..ENTRIES).filter(mine).collect();
            RssWorkerRow {
                worker: w as u32,
                entries: mine.len() as u32,
                packets: mine.iter().map(|e| now[*e] - port.base[*e]).sum(),
            }
        };
        let workers = self.workers(&port.settings).into_iter();
        RssRow {
            interface: self.interfaces.borrow().name(index),
            settings: port.settings.instance().ok(),
            state,
            rebalanced: port.rebalanced,
            workers: workers.map(worker).collect(),
        }
    }
}

fn placed(engine: &Engine) -> Vec<NodeWorkerRow> {
    let row = |(node, worker): (String, usize)| NodeWorkerRow {
        node,
        worker: worker as u32,
    };
    engine.placed_nodes().into_iter().map(row).collect()
}

fn handoff(report: &HandoffReport) -> HandoffRow {
    HandoffRow {
        from: report.from as u32,
        to: report.to as u32,
        vectors: report.frames,
        packets: report.packets,
        drops: report.refused,
    }
}
