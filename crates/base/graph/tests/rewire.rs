//! Nodes that are wired at run time: changes as a whole, between two vectors.

use volley_graph::buf::Pool;
use volley_graph::*;

/// The only edge of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Next;

impl Nexts for Next {
    const EDGES: &'static [&'static str] = &[];
    fn index(self) -> usize {
        0
    }
}

/// Makes a vector of four packets in each round.
struct Four;

impl Source for Four {
    const NAME: &'static str = "four";
    type Next = Next;
    type Count = NoCounters;
    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, Next>) -> usize {
        let mut fresh = out.alloc(4, 0);
        fresh.fill(|_, _| 64);
        fresh.send(Next)
    }
}

counters! {
    /// What a node counts.
    pub enum Count {
        /// packets that passed
        Seen = "seen" (Info),
    }
}

struct Pass;

impl Node for Pass {
    const NAME: &'static str = "pass";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        cx.count(Count::Seen, v.len() as u64);
        v.send_all(Next)
    }
}

struct Sink;

impl Node for Sink {
    const NAME: &'static str = "sink";
    type Next = NoNext;
    type Count = Count;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, NoNext>) -> Consumed {
        cx.count(Count::Seen, v.len() as u64);
        v.free()
    }
}

fn targets(names: &[&str]) -> Vec<String> {
    names.iter().map(|it| (*it).to_owned()).collect()
}

fn pass(name: &str, target: &str) -> WiredNode {
    WiredNode::node(name, targets(&[target]), |_| Pass)
}

fn keep(name: &str, to: &str, target: &[&str]) -> KeptNode {
    KeptNode {
        name: name.to_owned(),
        to: to.to_owned(),
        targets: targets(target),
    }
}

/// source -> a -> b -> sink
fn engine() -> (Engine, Worker) {
    let pool = Pool::new(1024).unwrap();
    let mut engine = Engine::new(Settings::default(), pool, Domain::new()).unwrap();
    let add = vec![
        WiredNode::source("source", targets(&["a"]), |_| Four),
        pass("a", "b"),
        pass("b", "sink"),
        WiredNode::node("sink", Vec::new(), |_| Sink),
    ];
    let first = Rewiring {
        add,
        ..Rewiring::default()
    };
    engine.rewire(first).unwrap();
    let worker = engine.build().unwrap().pop().unwrap();
    (engine, worker)
}

fn seen(engine: &Engine, node: &str) -> u64 {
    let all = engine.counters().into_iter();
    all.filter(|it| it.node == node).map(|it| it.count).sum()
}

#[test]
fn two_nodes_that_change_places_make_no_circle() {
    let (mut engine, mut worker) = engine();
    for n in 0..20 {
        let order = if n % 2 == 0 { ["b", "a"] } else { ["a", "b"] };
        let [first, second] = order;
        let rewiring = Rewiring {
            keep: vec![
                keep("source", "source", &[first]),
                keep(first, first, &[second]),
                keep(second, second, &["sink"]),
            ],
            ..Rewiring::default()
        };
        engine.rewire(rewiring).unwrap();
        worker.step();
    }
    let counts = ["a", "b", "sink"].map(|node| seen(&engine, node));
    assert_eq!(counts, [80; 3]);
}

#[test]
fn a_node_goes_on_under_another_name() {
    let (mut engine, mut worker) = engine();
    worker.step();
    let rewiring = Rewiring {
        remove: vec!["a".to_owned()],
        keep: vec![keep("source", "source", &["b"]), keep("b", "a", &["new"])],
        add: vec![pass("new", "sink"), pass("b", "a")],
    };
    engine.rewire(rewiring).unwrap();
    worker.step();
    // The node that was called b is a now, with what it had counted; the new b passes to it.
    let counts = ["a", "b", "new", "sink"].map(|node| seen(&engine, node));
    assert_eq!(counts, [8, 4, 4, 8]);
}

#[test]
fn a_rewiring_with_an_error_changes_nothing() {
    let (mut engine, mut worker) = engine();
    let before: Vec<(String, Vec<&str>)> = shown(&engine);
    let nowhere = Rewiring {
        remove: vec!["b".to_owned()],
        keep: vec![keep("a", "c", &["new"])],
        add: vec![pass("new", "sink")],
    };
    let error = engine.rewire(nowhere).unwrap_err();
    assert!(matches!(error, GraphError::EdgeToNowhere { .. }), "{error}");
    let twice = Rewiring {
        keep: vec![keep("a", "sink", &["b"])],
        ..Rewiring::default()
    };
    assert!(matches!(
        engine.rewire(twice),
        Err(GraphError::NodeExists(_))
    ));
    let unknown = Rewiring {
        remove: vec!["x".to_owned()],
        ..Rewiring::default()
    };
    assert!(matches!(engine.rewire(unknown), Err(GraphError::NoNode(_))));
    assert_eq!(shown(&engine), before);
    worker.step();
    assert_eq!(seen(&engine, "sink"), 4);
}

fn shown(engine: &Engine) -> Vec<(String, Vec<&'static str>)> {
    let mut all: Vec<_> = engine
        .edges()
        .map(|(name, edges)| (name.to_owned(), edges.to_vec()))
        .collect();
    all.sort();
    all
}

#[test]
fn numbers_of_removed_nodes_are_used_again() {
    let (mut engine, mut worker) = engine();
    for _ in 0..3000 {
        let add = Rewiring {
            keep: vec![keep("a", "a", &["x"])],
            add: vec![pass("x", "b")],
            ..Rewiring::default()
        };
        engine.rewire(add).unwrap();
        worker.step();
        let remove = Rewiring {
            keep: vec![keep("a", "a", &["b"])],
            remove: vec!["x".to_owned()],
            ..Rewiring::default()
        };
        engine.rewire(remove).unwrap();
        worker.step();
        assert!(engine.settled());
    }
    assert_eq!(seen(&engine, "sink"), 24_000);
}
