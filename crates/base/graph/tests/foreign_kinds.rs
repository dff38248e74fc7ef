//! Sources and stages of plugins, nodes of the router that a plugin replaces, edges that lead to a plugin's node, arcs of plugins:
//! each comes and goes while packets flow, and no packet is lost or doubled.

use std::collections::VecDeque;
use std::sync::Arc;
use volley_buf::Pool;
use volley_graph::*;
use volley_perfmon::CounterError;

nexts! { enum ToMiddle { Middle => "middle" } }
nexts! { enum ToEnd { End => "end" } }
counters! {
    /// What the nodes count.
    pub enum Count {
        /// packets seen
        Seen = "seen" (Info),
    }
}

/// Makes ten packets a round; with `panics` it panics instead, with packets in its hands.
struct Ten {
    panics: bool,
}

impl Source for Ten {
    const NAME: &'static str = "ten";
    type Next = ToMiddle;
    type Count = Count;
    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, ToMiddle>) -> usize {
        let mut fresh = out.alloc(10, 1);
        fresh.fill(|_, _| 64);
        assert!(!self.panics, "no more packets");
        cx.count(Count::Seen, 10);
        fresh.send(ToMiddle::Middle)
    }
}

/// A node that counts and passes packets.
struct Pass;

impl Node for Pass {
    const NAME: &'static str = "middle";
    type Next = ToEnd;
    type Count = Count;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, ToEnd>) -> Consumed {
        cx.count(Count::Seen, v.len() as u64);
        v.send_all(ToEnd::End)
    }
}

/// A stage that holds the packets of three rounds, and then releases a vector a round.
struct Late {
    held: VecDeque<Batch>,
    codes: Column,
    panics: bool,
}

impl Late {
    fn new(panics: bool) -> Late {
        Late {
            held: VecDeque::new(),
            codes: Column::new(256),
            panics,
        }
    }
}

impl Node for Late {
    const NAME: &'static str = "middle";
    type Next = ToEnd;
    type Count = Count;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, ToEnd>) -> Consumed {
        cx.count(Count::Seen, v.len() as u64);
        self.codes.words_mut(v.len()).fill(0);
        let held = &mut self.held;
        v.classify(&self.codes, |_, _, batch| held.push_back(batch))
    }
}

impl Stage for Late {
    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }
    fn release<I: Isa>(&mut self, _: &Cx<'_, Count>, out: &mut Output<'_, I, ToEnd>) -> usize {
        assert!(!self.panics, "too late");
        match self.held.len() {
            0..=3 => 0,
            _ => self
                .held
                .pop_front()
                .map_or(0, |it| out.send_batch(it, ToEnd::End)),
        }
    }
    fn leave(&mut self, stage_cx: &mut StageCx<'_>, next: NodeId) {
        for batch in self.held.drain(..) {
            stage_cx.send_batch_to(batch, next);
        }
    }
}

/// As [`Pass`], with a value that is shared by all instances that are not dropped.
struct Tracked {
    _shared: Arc<()>,
}

impl Node for Tracked {
    const NAME: &'static str = "middle";
    type Next = ToEnd;
    type Count = NoCounters;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, ToEnd>) -> Consumed {
        v.send_all(ToEnd::End)
    }
}

struct End;

impl Node for End {
    const NAME: &'static str = "end";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        v.free()
    }
}

/// ten -> middle -> end
fn engine(is_source_foreign: bool) -> (Engine, Worker, Arc<Pool>) {
    let pool = Pool::new(1024).unwrap();
    let mut engine = Engine::new(Settings::default(), pool.clone(), Domain::new()).unwrap();
    engine.add("middle", |_| Pass).unwrap();
    engine.add("end", |_| End).unwrap();
    if !is_source_foreign {
        engine.add_source("ten", |_| Ten { panics: false }).unwrap();
    }
    let worker = engine.build().unwrap().pop().unwrap();
    (engine, worker, pool)
}

fn vectors(engine: &Engine, node: &str) -> u64 {
    let all = engine.runtime(0);
    all.iter()
        .find(|it| it.name == node)
        .map_or(0, |it| it.vectors)
}

fn counted(engine: &Engine, node: &str, name: &str) -> u64 {
    let all = engine.counters().into_iter();
    let ours = all.filter(|it| it.node == node && it.info.name == name);
    ours.map(|it| it.count).sum()
}

fn ten(panics: bool) -> ForeignNode {
    ForeignNode::source("ten", move |_| Ten { panics })
}

fn late(panics: bool) -> ForeignNode {
    ForeignNode::stage("middle", 4, move |_| Late::new(panics))
}

#[test]
fn a_source_comes_is_replaced_panics_and_goes() {
    let (mut engine, mut worker, pool) = engine(true);
    assert_eq!(worker.step(), 0);
    engine.add_foreign(ten(false)).unwrap();
    for _ in 0..5 {
        assert_eq!(worker.step(), 10);
        engine.replace_foreign(ten(false)).unwrap();
    }
    assert_eq!(counted(&engine, "ten", "seen"), 50);
    let node = ten(true);
    let fault = node.fault().clone();
    engine.replace_foreign(node).unwrap();
    assert_eq!((worker.step(), worker.step()), (0, 0));
    assert_eq!(fault.text(), Some("no more packets"));
    assert_eq!(pool.report().in_use(), 0, "its packets were freed");
    engine.replace_foreign(ten(false)).unwrap();
    assert_eq!(worker.step(), 10);
    engine.remove("ten").unwrap();
    assert_eq!((worker.step(), worker.step()), (0, 0));
    assert_eq!(vectors(&engine, "end"), 60);
    assert!(engine.settled());
}

#[test]
fn packets_of_a_stage_go_to_the_next_version_and_leave_with_the_last_one() {
    let (mut engine, mut worker, pool) = engine(false);
    assert_eq!(late(false).frames(), 4);
    engine.override_node(late(false)).unwrap();
    for round in 1..=3 {
        assert_eq!(worker.step(), 10);
        assert_eq!(vectors(&engine, "end"), 0, "round {round}");
    }
    for _ in 0..50 {
        engine.replace_foreign(late(false)).unwrap();
        worker.step();
        assert!(engine.settled());
    }
    let (sent, arrived) = (530, vectors(&engine, "end"));
    assert_eq!(arrived + pool.report().in_use() as u64, sent);
    // A stage that panics keeps what it holds for the next version.
    engine.replace_foreign(late(true)).unwrap();
    worker.step();
    let lost = counted(&engine, "middle", "panicked");
    engine.replace_foreign(late(false)).unwrap();
    worker.step();
    assert_eq!(vectors(&engine, "error-drop"), lost);
    // The node of the router returns, and gets what the stage held.
    engine.restore("middle").unwrap();
    worker.step();
    assert_eq!(pool.report().in_use(), 0);
    assert_eq!(vectors(&engine, "end") + lost, 560);
    assert!(engine.settled());
}

#[test]
fn a_stage_that_is_removed_sends_its_packets_through_the_old_graph() {
    let (mut engine, mut worker, pool) = engine(false);
    engine
        .add_foreign(ForeignNode::stage("late", 4, |_| Late::new(false)))
        .unwrap();
    worker.step();
    engine.redirect("middle", "end", "late").unwrap();
    worker.step();
    assert_eq!(pool.report().in_use(), 10);
    let used = engine.remove("late").unwrap_err();
    assert!(matches!(used, GraphError::EdgeToNowhere { .. }), "{used}");
    engine.redirect_back("middle", "end", "late").unwrap();
    engine.remove("late").unwrap();
    worker.step();
    assert_eq!(pool.report().in_use(), 0);
    assert_eq!(vectors(&engine, "end"), 30);
    assert_eq!(vectors(&engine, "error-drop"), 0);
}

#[test]
fn a_node_of_the_router_is_replaced_and_returns() {
    let (mut engine, mut worker, _pool) = engine(false);
    worker.step();
    for round in 1..=20 {
        let node = ForeignNode::new("middle", |_| Pass);
        engine.override_node(node).unwrap();
        let twice = engine.override_node(ForeignNode::new("middle", |_| Pass));
        assert!(matches!(twice, Err(GraphError::NotReplaceable { .. })));
        worker.step();
        assert_eq!(counted(&engine, "middle", "seen"), 10, "it counts its own");
        engine.restore("middle").unwrap();
        worker.step();
        assert!(engine.settled());
        assert_eq!(counted(&engine, "middle", "seen"), 10 + 10 * round);
    }
    assert_eq!(vectors(&engine, "end"), 410);
    let drop = engine.override_node(ForeignNode::new(DROP_NODE, |_| Pass));
    assert!(matches!(drop, Err(GraphError::NotReplaceable { .. })));
    let unknown = engine.override_node(ForeignNode::new("no", |_| Pass));
    assert!(matches!(unknown, Err(GraphError::NoNode(_))));
    engine.restore("middle").unwrap();
}

#[test]
fn an_edge_leads_to_another_node_and_back() {
    let (mut engine, mut worker, _pool) = engine(false);
    engine
        .add_foreign(ForeignNode::new("between", |_| Pass))
        .unwrap();
    for _ in 0..20 {
        engine.redirect("ten", "middle", "between").unwrap();
        worker.step();
        engine.redirect_back("ten", "middle", "between").unwrap();
        worker.step();
    }
    assert_eq!(counted(&engine, "between", "seen"), 200);
    assert_eq!(counted(&engine, "middle", "seen"), 200);
    assert_eq!(vectors(&engine, "end"), 400);
    let none = engine.redirect("ten", "between", "end").unwrap_err();
    assert!(matches!(none, GraphError::NoEdge { .. }), "{none}");
    let nowhere = engine.redirect("ten", "middle", "nowhere").unwrap_err();
    assert!(matches!(nowhere, GraphError::EdgeToNowhere { .. }));
    let none = engine.redirect_back("ten", "middle", "end").unwrap_err();
    assert!(matches!(none, GraphError::NoEdge { .. }), "{none}");
    worker.step();
    assert_eq!(counted(&engine, "middle", "seen"), 210);
}

/// A redirection belongs to the place of a node: of a node of the router also while a plugin's node is there, and of a plugin's
/// node to the version that brings it.
#[test]
fn redirections_survive_the_nodes_that_have_them() {
    let (mut engine, mut worker, _pool) = engine(false);
    let between = ForeignNode::new("between", |_| Pass);
    engine.add_foreign(between).unwrap();
    let targets = |engine: &Engine, node: &str| {
        let mut all = engine.edges();
        all.find(|(name, _)| *name == node).unwrap().1.to_vec()
    };
    let redirected = || {
        let mut node = ForeignNode::new("middle", |_| Pass);
        node.redirect("end", "between").unwrap();
        let none = node.redirect("end", "nowhere").unwrap_err();
        assert!(matches!(none, GraphError::NoEdge { .. }), "{none}");
        node
    };
    engine.override_node(redirected()).unwrap();
    worker.step();
    assert_eq!(counted(&engine, "between", "seen"), 10);
    engine.replace_foreign(redirected()).unwrap();
    worker.step();
    assert_eq!(counted(&engine, "between", "seen"), 20);
    // The node of the router has the redirection too, until it is withdrawn.
    engine.restore("middle").unwrap();
    worker.step();
    assert_eq!(counted(&engine, "between", "seen"), 30);
    // A plugin's node without a redirection comes and goes, and nothing of the old one is left.
    engine
        .override_node(ForeignNode::new("middle", |_| Pass))
        .unwrap();
    engine.restore("middle").unwrap();
    assert_eq!(targets(&engine, "middle"), ["end"]);
    engine.redirect("middle", "end", "between").unwrap();
    engine.redirect_back("middle", "end", "between").unwrap();
    worker.step();
    assert_eq!(counted(&engine, "between", "seen"), 30);
    assert_eq!(vectors(&engine, "end"), 40);
}

nexts! { enum ToRight { Right => "right", End => "end" } }
nexts! { enum ToLeft { Left => "left" } }

/// Sends every other vector to the right: those that come from there go to the end.
struct Left {
    is_back: bool,
}

impl Node for Left {
    const NAME: &'static str = "left";
    type Next = ToRight;
    type Count = NoCounters;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, ToRight>) -> Consumed {
        let next = match self.is_back {
            true => ToRight::End,
            false => ToRight::Right,
        };
        self.is_back = !self.is_back;
        v.send_all(next)
    }
}

struct Right;

impl Node for Right {
    const NAME: &'static str = "right";
    type Next = ToLeft;
    type Count = NoCounters;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, ToLeft>) -> Consumed {
        v.send_all(ToLeft::Left)
    }
}

#[test]
fn nodes_that_lead_to_each_other_come_and_go_together() {
    let (mut engine, mut worker, pool) = engine(false);
    let left = || ForeignNode::new("left", |_| Left { is_back: false });
    let right = || ForeignNode::new("right", |_| Right);
    let alone = engine.add_foreign(left()).unwrap_err();
    assert!(matches!(alone, GraphError::EdgeToNowhere { .. }), "{alone}");
    let alone = engine.add_foreign_nodes(vec![right()]).unwrap_err();
    assert!(matches!(alone, GraphError::EdgeToNowhere { .. }), "{alone}");
    let twice = engine.add_foreign_nodes(vec![left(), right(), left()]);
    assert_eq!(twice, Err(GraphError::NodeExists("left".to_owned())));
    for round in 1..=10 {
        engine.add_foreign_nodes(vec![left(), right()]).unwrap();
        engine.redirect("middle", "end", "left").unwrap();
        assert_eq!(worker.step(), 10);
        assert_eq!(vectors(&engine, "end"), 10 * round);
        assert_eq!(
            (vectors(&engine, "left"), vectors(&engine, "right")),
            (20, 10)
        );
        let used = engine.remove_nodes(vec!["left".to_owned(), "right".to_owned()]);
        assert!(matches!(used, Err(GraphError::EdgeToNowhere { .. })));
        engine.redirect_back("middle", "end", "left").unwrap();
        let used = engine.remove_nodes(vec!["left".to_owned()]);
        assert!(matches!(used, Err(GraphError::EdgeToNowhere { .. })));
        engine
            .remove_nodes(vec!["left".to_owned(), "right".to_owned()])
            .unwrap();
        assert!(engine.node("left").is_err() && engine.node("right").is_err());
    }
    assert_eq!(worker.step(), 10);
    assert!(engine.settled());
    assert_eq!(pool.report().in_use(), 0);
    assert_eq!(vectors(&engine, "error-drop"), 0);
}

/// Holds packets, and panics when it leaves: before it has sent anything, or behind the first batch.
struct Clinging {
    held: VecDeque<Batch>,
    codes: Column,
    sends: usize,
}

impl Node for Clinging {
    const NAME: &'static str = "middle";
    type Next = ToEnd;
    type Count = Count;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, ToEnd>) -> Consumed {
        cx.count(Count::Seen, v.len() as u64);
        self.codes.words_mut(v.len()).fill(0);
        let held = &mut self.held;
        v.classify(&self.codes, |_, _, batch| held.push_back(batch))
    }
}

impl Stage for Clinging {
    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }
    /// Sends four packets of the first batch once.
    fn release<I: Isa>(&mut self, _: &Cx<'_, Count>, out: &mut Output<'_, I, ToEnd>) -> usize {
        let Some(first) = self.held.front_mut().filter(|it| it.len() == 10) else {
            return 0;
        };
        let mut stage_cx = out.stage_cx();
        let mut part = stage_cx.empty_batch();
        stage_cx.move_packets(&mut part, first, 4);
        out.send_batch(part, ToEnd::End)
    }
    fn leave(&mut self, stage_cx: &mut StageCx<'_>, next: NodeId) {
        for batch in self.held.drain(..self.sends) {
            stage_cx.send_batch_to(batch, next);
        }
        panic!("it stays");
    }
}

/// Counts the events of the worker, which this thread runs. Returns false, and says so, where the kernel refuses.
fn count_events(engine: &mut Engine) -> bool {
    let bundle = volley_perfmon::bundle("page-faults").unwrap();
    match volley_perfmon::Group::open(bundle, volley_perfmon::this_thread()) {
        Ok(group) => {
            engine.count_events(vec![(0, Box::new(group))]).unwrap();
            true
        }
        Err(error @ (CounterError::Refused { .. } | CounterError::NoKernelSupport)) => {
            println!("SKIP: the rounds with events: {error}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// Packets that were dropped for the reason `panicked`, of all nodes.
fn dropped_as_panicked(engine: &Engine) -> u64 {
    let drops = engine.drops();
    let name = |it: &&DropReport| engine.counter_info(it.node, it.counter).unwrap().name;
    let named = drops.iter().filter(|it| name(it) == "panicked");
    named.map(|it| it.count).sum()
}

#[test]
fn packets_of_a_stage_that_is_out_and_removed_are_dropped_by_name() {
    for is_counted in [false, true] {
        let (mut engine, mut worker, pool) = engine(false);
        if is_counted && !count_events(&mut engine) {
            continue;
        }
        let node = ForeignNode::stage("other", 4, |_| Late::new(true));
        let fault = node.fault().clone();
        engine.add_foreign(node).unwrap();
        engine.redirect("ten", "middle", "other").unwrap();
        for _ in 0..3 {
            worker.step();
        }
        assert_eq!(fault.text(), Some("too late"));
        // It keeps what it had for a replacement.
        let held = pool.report().in_use() as u64;
        assert!(held > 0);
        assert_eq!(dropped_as_panicked(&engine), 30 - held);
        engine.redirect_back("ten", "middle", "other").unwrap();
        engine.remove("other").unwrap();
        worker.step();
        assert_eq!(pool.report().in_use(), 0, "{is_counted}");
        assert_eq!(vectors(&engine, "error-drop"), 30, "{is_counted}");
        assert_eq!(dropped_as_panicked(&engine), 30, "{is_counted}");
        assert_eq!(vectors(&engine, "end"), 10);
    }
}

#[test]
fn packets_of_a_stage_that_panics_when_it_leaves_are_dropped_by_name() {
    let rounds = [(0, false), (1, false), (0, true), (1, true)];
    let rounds = rounds.map(|round| [(round, false), (round, true)]);
    for ((sends, is_removed), is_counted) in rounds.into_iter().flatten() {
        let (mut engine, mut worker, pool) = engine(false);
        if is_counted && !count_events(&mut engine) {
            continue;
        }
        let clinging = move |_| Clinging {
            held: VecDeque::new(),
            codes: Column::new(256),
            sends,
        };
        let name = if is_removed { "other" } else { "middle" };
        let node = ForeignNode::stage(name, 4, clinging);
        let fault = node.fault().clone();
        match is_removed {
            true => {
                engine.add_foreign(node).unwrap();
                engine.redirect("ten", "middle", "other").unwrap();
            }
            false => engine.override_node(node).unwrap(),
        }
        for _ in 0..3 {
            worker.step();
        }
        // Four of the first ten are through.
        assert_eq!((pool.report().in_use(), vectors(&engine, "end")), (26, 4));
        match is_removed {
            true => {
                engine.redirect_back("ten", "middle", "other").unwrap();
                engine.remove("other").unwrap();
            }
            false => engine.replace_foreign(late(false)).unwrap(),
        }
        worker.step();
        let sent = if sends == 1 { 6 } else { 0 };
        assert_eq!(fault.text(), Some("it stays"));
        assert_eq!(vectors(&engine, "error-drop"), 26 - sent);
        assert_eq!(
            counted(&engine, "middle", "panicked"),
            if is_removed { 0 } else { 26 - sent }
        );
        assert_eq!(
            dropped_as_panicked(&engine),
            26 - sent,
            "{sends} {is_removed} {is_counted}"
        );
        for _ in 0..3 {
            worker.step();
        }
        // Its successor holds three vectors.
        let held = if is_removed { 0 } else { 30 };
        assert_eq!(pool.report().in_use(), held, "{sends} {is_removed}");
    }
}

#[test]
fn an_arc_of_a_plugin_comes_and_goes() {
    let (mut engine, mut worker, _pool) = engine(false);
    let arc = engine.add_foreign_arc("own", "middle", "end").unwrap();
    engine
        .add_foreign(ForeignNode::new("feature", |_| Pass))
        .unwrap();
    let feature = Feature::after("feature", &[]);
    engine.add_foreign_feature("own", &feature, false).unwrap();
    engine.set_feature("own", "feature", 1, true).unwrap();
    worker.step();
    let used = engine.remove_foreign_arc("own").unwrap_err();
    assert!(matches!(used, GraphError::ArcInUse { .. }), "{used}");
    engine.set_feature("own", "feature", 1, false).unwrap();
    engine.remove_feature("own", "feature").unwrap();
    engine.remove_foreign_arc("own").unwrap();
    assert!(engine.arcs().iter().all(|it| it.name != "own"));
    assert_eq!(engine.add_foreign_arc("own", "middle", "end"), Ok(arc));
}

#[test]
fn instances_of_a_worker_are_dropped_while_another_worker_is_behind() {
    let settings = Settings {
        workers: 2,
        ..Settings::default()
    };
    let pool = Pool::new(1024).unwrap();
    let mut engine = Engine::new(settings, pool, Domain::new()).unwrap();
    engine.add("end", |_| End).unwrap();
    let shared = Arc::new(());
    let of_node = shared.clone();
    let tracked = ForeignNode::new("middle", move |_| Tracked {
        _shared: of_node.clone(),
    });
    engine.add_foreign(tracked).unwrap();
    let mut workers = engine.build().unwrap();
    engine
        .replace_foreign(ForeignNode::new("middle", |_| Pass))
        .unwrap();
    let before = Arc::strong_count(&shared);
    workers[1].step();
    assert!(!engine.settled());
    assert_eq!(Arc::strong_count(&shared), before - 1);
    workers[0].step();
    assert!(engine.settled());
    assert_eq!(Arc::strong_count(&shared), before - 2);
}
