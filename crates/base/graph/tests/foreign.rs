//! Nodes of plugins: a panic takes out the node and loses no buffer, and a node is replaced while packets flow.

use std::sync::Arc;
use volley_buf::Pool;
use volley_graph::*;

nexts! { enum FromSource { First => "first" } }

/// Makes ten packets a round.
struct Numbers;

impl Source for Numbers {
    const NAME: &'static str = "numbers";
    type Next = FromSource;
    type Count = NoCounters;
    fn poll<I: Isa>(
        &mut self,
        _: &Cx<'_, NoCounters>,
        out: &mut Output<'_, I, FromSource>,
    ) -> usize {
        let mut fresh = out.alloc(10, 1);
        fresh.fill(|_, data| {
            data[..64].fill(0);
            64
        });
        fresh.send(FromSource::First)
    }
}

nexts! { enum FromFirst { Plugin => "plugin" } }

struct First;

impl Node for First {
    const NAME: &'static str = "first";
    type Next = FromFirst;
    type Count = NoCounters;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, FromFirst>) -> Consumed {
        v.send_all(FromFirst::Plugin)
    }
}

nexts! { enum FromPlugin { End => "end" } }
counters! {
    /// What the plugin's node counts.
    pub enum Count {
        /// packets seen
        Seen = "seen" (Info),
    }
}

/// Panics at a packet of a vector, which it looks at one by one or whole.
#[derive(Clone, Copy)]
enum Fault {
    Never,
    Whole,
    AtPacket(usize),
}

struct Fragile(Fault);

impl Node for Fragile {
    const NAME: &'static str = "plugin";
    type Next = FromPlugin;
    type Count = Count;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, FromPlugin>) -> Consumed {
        cx.count(Count::Seen, v.len() as u64);
        match self.0 {
            Fault::Never => v.send_all(FromPlugin::End),
            Fault::Whole => panic!("whole vector"),
            Fault::AtPacket(at) => {
                let mut row = 0;
                v.each(|_| {
                    assert!(row < at, "packet {at}");
                    row += 1;
                    FromPlugin::End
                })
            }
        }
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

struct Graph {
    engine: Engine,
    worker: Worker,
    pool: Arc<Pool>,
    fault: Arc<NodeFault>,
}

fn graph(fault: Fault) -> Graph {
    let pool = Pool::new(1024).unwrap();
    let mut engine = Engine::new(Settings::default(), pool.clone(), Domain::new()).unwrap();
    engine.add_source("numbers", |_| Numbers).unwrap();
    engine.add("first", |_| First).unwrap();
    engine.add("end", |_| End).unwrap();
    let node = ForeignNode::new("plugin", move |_| Fragile(fault));
    let fault = node.fault().clone();
    engine.add_foreign(node).unwrap();
    let worker = engine.build().unwrap().pop().unwrap();
    Graph {
        engine,
        worker,
        pool,
        fault,
    }
}

fn counted(engine: &Engine, name: &str) -> u64 {
    let all = engine.counters().into_iter();
    let named = all.filter(|it| it.info.name == name);
    named.map(|it| it.count).sum()
}

fn vectors(engine: &Engine, node: &str) -> u64 {
    let all = engine.runtime(0);
    all.iter()
        .find(|it| it.name == node)
        .map_or(0, |it| it.vectors)
}

#[test]
fn a_panic_takes_the_node_out_and_its_packets_are_dropped_by_name() {
    for fault in [Fault::Whole, Fault::AtPacket(0), Fault::AtPacket(7)] {
        let mut graph = graph(fault);
        for _ in 0..5 {
            assert_eq!(graph.worker.step(), 10);
        }
        let text = graph.fault.text().unwrap();
        assert!(
            text == "whole vector" || text.starts_with("packet "),
            "{text}"
        );
        assert_eq!(counted(&graph.engine, "seen"), 10, "it ran once");
        assert_eq!(counted(&graph.engine, "panicked"), 50);
        assert_eq!(vectors(&graph.engine, "error-drop"), 50);
        assert_eq!(vectors(&graph.engine, "end"), 0);
        assert_eq!(graph.pool.report().in_use(), 0);
        assert!(graph.worker.is_idle());
    }
}

#[test]
fn a_node_is_replaced_while_packets_flow_and_goes_on_counting() {
    let mut graph = graph(Fault::Never);
    for _ in 0..100 {
        let node = ForeignNode::new("plugin", |_| Fragile(Fault::Never));
        graph.engine.replace_foreign(node).unwrap();
        assert_eq!(graph.worker.step(), 10);
        assert!(graph.engine.settled());
    }
    assert_eq!(counted(&graph.engine, "seen"), 1000);
    assert_eq!(vectors(&graph.engine, "end"), 1000);
    assert_eq!(vectors(&graph.engine, "error-drop"), 0);
    assert_eq!(graph.pool.report().in_use(), 0);
}

#[test]
fn a_node_that_is_out_is_restored_by_its_replacement() {
    let mut graph = graph(Fault::Whole);
    graph.worker.step();
    let node = ForeignNode::new("plugin", |_| Fragile(Fault::Never));
    graph.engine.replace_foreign(node).unwrap();
    graph.worker.step();
    assert_eq!(vectors(&graph.engine, "end"), 10);
    assert_eq!(counted(&graph.engine, "panicked"), 10);
}

#[test]
fn an_instance_that_cannot_be_made_is_a_node_that_is_out() {
    let mut graph = graph(Fault::Never);
    let node = ForeignNode::new("plugin", |_| -> Fragile { panic!("no instance") });
    let fault = node.fault().clone();
    graph.engine.replace_foreign(node).unwrap();
    graph.worker.step();
    assert_eq!(fault.text(), Some("no instance"));
    assert_eq!(counted(&graph.engine, "panicked"), 10);
    assert_eq!(graph.pool.report().in_use(), 0);
}

#[test]
fn an_unknown_node_is_not_replaced() {
    let mut graph = graph(Fault::Never);
    let node = ForeignNode::new("other", |_| Fragile(Fault::Never));
    let refused = graph.engine.replace_foreign(node).err();
    assert_eq!(refused, Some(GraphError::NoNode("other".into())));
}

#[test]
fn a_feature_is_removed_only_where_it_is_disabled() {
    let mut graph = graph(Fault::Never);
    let engine = &mut graph.engine;
    engine.arc("arc", "first", "end");
    let feature = Feature {
        name: "plugin",
        before: &[],
        after: &[],
    };
    engine.add_foreign_feature("arc", &feature, false).unwrap();
    engine.set_feature("arc", "plugin", 3, true).unwrap();
    let refused = engine.remove_feature("arc", "plugin").unwrap_err();
    assert!(matches!(refused, GraphError::FeatureEnabled { .. }));
    engine.set_feature("arc", "plugin", 3, false).unwrap();
    engine.remove_feature("arc", "plugin").unwrap();
    let on = |engine: &Engine| engine.arcs().into_iter().any(|a| !a.features.is_empty());
    assert!(!on(engine));
}
