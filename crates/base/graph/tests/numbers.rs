//! Ids of removed nodes are reused, and nothing of the old node is reported for the new one.

use volley_graph::buf::Pool;
use volley_graph::*;

nexts! { enum ToJudge { Judge => "judge" } }
nexts! { enum ToDrop { Drop => "error-drop" } }
counters! {
    /// What a judge counts.
    enum Count {
        /// odd packets
        Odd = "odd" (Error),
    }
}

/// A source that sends two packets, once.
struct Two(usize);

impl Source for Two {
    const NAME: &'static str = "two";
    type Next = ToJudge;
    type Count = NoCounters;
    fn poll<I: Isa>(
        &mut self,
        _cx: &Cx<'_, NoCounters>,
        out: &mut Output<'_, I, ToJudge>,
    ) -> usize {
        let n = std::mem::take(&mut self.0);
        if n == 0 {
            return 0;
        }
        let mut fresh = out.alloc(n, 1);
        fresh.fill(|_, _| 64);
        fresh.send(ToJudge::Judge)
    }
}

/// Drops all packets.
struct Judge(Column);

impl Node for Judge {
    const NAME: &'static str = "judge";
    type Next = ToDrop;
    type Count = Count;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, ToDrop>) -> Consumed {
        let n = v.len();
        self.0.words_mut(n).fill(Count::Odd.code());
        v.drop_out(cx, &self.0, |_| ToDrop::Drop);
        v.free()
    }
}

fn engine(workers: usize) -> Engine {
    let settings = Settings {
        workers,
        ..Settings::default()
    };
    Engine::new(settings, Pool::new(4096).unwrap(), Domain::new()).unwrap()
}

fn judge(engine: &mut Engine) -> NodeId {
    let id = engine.add("judge", |_| Judge(Column::new(1024))).unwrap();
    engine.add_source("two", |_| Two(2)).unwrap();
    id
}

#[test]
fn a_number_comes_back_when_every_worker_has_let_go_of_it() {
    let mut engine = engine(2);
    let mut workers = engine.build().unwrap();
    assert_eq!(engine.node("error-drop").unwrap(), NodeId::DROP);
    let first = engine.add("a", |_| Judge(Column::new(1024))).unwrap();
    workers.iter_mut().for_each(|w| _ = w.step());
    engine.remove("a").unwrap();
    workers[0].step();
    let second = engine.add("b", |_| Judge(Column::new(1024))).unwrap();
    assert_ne!(first, second, "worker 1 may still have packets for it");
    workers.iter_mut().for_each(|w| _ = w.step());
    let third = engine.add("c", |_| Judge(Column::new(1024))).unwrap();
    assert_eq!((first, engine.name(first)), (third, "c"));
    assert_eq!(
        engine.node("a").unwrap_err(),
        GraphError::NoNode("a".into())
    );
}

#[test]
fn thousands_come_and_go_and_each_begins_from_nothing() {
    let mut engine = engine(1);
    let mut worker = engine.build().unwrap().pop().unwrap();
    for _ in 0..1500 {
        let id = judge(&mut engine);
        engine.trace("judge", 1, None).unwrap();
        worker.step();
        let drops = engine.drops();
        assert_eq!((drops.len(), drops[0].node, drops[0].count), (1, id, 2));
        let odd = engine.counters().into_iter().find(|c| c.node == "judge");
        assert_eq!(odd.unwrap().count, 2);
        engine.remove("two").unwrap();
        engine.remove("judge").unwrap();
        worker.step();
        assert!(engine.settled() && id.index() < 8, "{id:?}");
    }
    // Records and trace requests of a removed node are deleted with it.
    let judged = |engine: &mut Engine| {
        let traces = engine.traces(&|_| String::new());
        let steps = traces.iter().flat_map(|t| &t.steps);
        steps.filter(|s| s.node == "judge").count()
    };
    assert!(judged(&mut engine) <= 1);
    engine.clear_traces().unwrap();
    worker.step();
    engine.add("judge", |_| Judge(Column::new(1024))).unwrap();
    engine.trace("judge", 5, None).unwrap();
    worker.step();
    engine.remove("judge").unwrap();
    worker.step();
    judge(&mut engine);
    engine.clear_counters();
    worker.step();
    assert_eq!(judged(&mut engine), 0, "nobody asked for traces here");
}

#[test]
fn nodes_from_the_start_keep_their_numbers() {
    let mut engine = engine(1);
    let id = judge(&mut engine);
    let mut worker = engine.build().unwrap().pop().unwrap();
    engine.remove("two").unwrap();
    engine.remove("judge").unwrap();
    worker.step();
    assert!(engine.settled());
    let next = judge(&mut engine);
    assert_ne!(id, next, "rings between workers may carry the old number");
}
