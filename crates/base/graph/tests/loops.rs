//! Edges that lead packets back to the same nodes: the round ends.

use volley_graph::buf::Pool;
use volley_graph::*;

nexts! { enum Start { Left => "left", Late => "late" } }
nexts! { enum FromLeft { Right => "right" } }
nexts! { enum FromRight { Left => "left" } }
nexts! { enum FromLate { Drop => "error-drop" } }

/// Sends 300 packets into the loop and 20 past it, once.
struct Sender(bool);

impl Source for Sender {
    const NAME: &'static str = "sender";
    type Next = Start;
    type Count = NoCounters;

    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, Start>) -> usize {
        if std::mem::take(&mut self.0) {
            let packets = [(200, Start::Left), (20, Start::Late), (100, Start::Left)];
            return packets
                .map(|(n, next)| out.alloc(n, 0).send(next))
                .iter()
                .sum();
        }
        0
    }

    fn may_sleep(&self, _: u64, _: u64) -> bool {
        true
    }

    fn arm(&mut self, _: &mut WakeConditions) -> bool {
        true
    }
}

macro_rules! passes {
    ($type:ident, $name:literal, $next:ident, $to:ident) => {
        struct $type;

        impl Node for $type {
            const NAME: &'static str = $name;
            type Next = $next;
            type Count = NoCounters;
            type Trace = PacketTrace;

            #[inline(always)]
            fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, $next>) -> Consumed {
                v.send_all($next::$to)
            }
        }
    };
}
passes!(Left, "left", FromLeft, Right);
passes!(Right, "right", FromRight, Left);

counters! {
    /// What late counts.
    enum Passed {
        /// packets that are in no loop
        Seen = "seen" (Error),
    }
}

/// Drops packets.
struct Late;

impl Node for Late {
    const NAME: &'static str = "late";
    type Next = FromLate;
    type Count = Passed;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Passed>, v: Vector<'_, I, FromLate>) -> Consumed {
        cx.count(Passed::Seen, v.len() as u64);
        v.send_all(FromLate::Drop)
    }
}

#[test]
fn packets_in_a_loop_are_dropped_and_the_round_ends() {
    for vector_size in [4, 256] {
        let settings = Settings {
            vector_size,
            ..Settings::default()
        };
        let pool = Pool::new(1024).unwrap();
        let mut engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
        engine.add_source(Sender::NAME, |_| Sender(true)).unwrap();
        engine.add(Left::NAME, |_| Left).unwrap();
        engine.add(Right::NAME, |_| Right).unwrap();
        engine.add(Late::NAME, |_| Late).unwrap();
        let mut workers = engine.build().unwrap();
        let sent = workers[0].step() as u64;
        let counters = engine.counters();
        let count = |node: &str, name: &str| {
            let mut all = counters.iter().filter(|it| it.node == node);
            all.find(|it| it.info.name == name).map_or(0, |it| it.count)
        };
        let (in_loop, others) = (count(DROP_NODE, "loop"), count("late", "seen"));
        assert!(in_loop > 0 && others > 0, "{in_loop} {others}");
        assert_eq!(in_loop + others, sent);
        let dropped: u64 = engine.drops().iter().map(|it| it.count).sum();
        assert_eq!(dropped, sent);
        assert!(workers[0].is_idle());
        assert_eq!(pool.report().in_use(), 0, "buffers are lost");
        assert_eq!(workers[0].step(), 0);
    }
}

nexts! { enum ToHeld { Held => "held" } }
nexts! { enum FromHeld { Back => "back" } }
nexts! { enum FromBack { Held => "held" } }

/// Sends 64 packets to the stage, once.
struct Once(bool);

impl Source for Once {
    const NAME: &'static str = "once";
    type Next = ToHeld;
    type Count = NoCounters;

    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, ToHeld>) -> usize {
        match std::mem::take(&mut self.0) {
            true => out.alloc(64, 0).send(ToHeld::Held),
            false => 0,
        }
    }

    fn may_sleep(&self, _: u64, _: u64) -> bool {
        true
    }

    fn arm(&mut self, _: &mut WakeConditions) -> bool {
        true
    }
}

/// Holds every vector and releases it at once.
struct Held {
    batches: std::collections::VecDeque<Batch>,
    codes: Column,
}

impl Node for Held {
    const NAME: &'static str = "held";
    type Next = FromHeld;
    type Count = NoCounters;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, FromHeld>) -> Consumed {
        let (batches, codes) = (&mut self.batches, &mut self.codes);
        codes.words_mut(v.len()).fill(0);
        v.classify(codes, |_, _, batch| batches.push_back(batch))
    }
}

impl Stage for Held {
    fn is_holding(&self) -> bool {
        !self.batches.is_empty()
    }

    fn release<I: Isa>(
        &mut self,
        _: &Cx<'_, NoCounters>,
        out: &mut Output<'_, I, FromHeld>,
    ) -> usize {
        let batch = self.batches.pop_front();
        batch.map_or(0, |batch| out.send_batch(batch, FromHeld::Back))
    }
}

passes!(Back, "back", FromBack, Held);

#[test]
fn a_stage_in_a_loop_gets_its_own_packets_back_in_the_next_round_too() {
    let vector_size = 64;
    let settings = Settings {
        vector_size,
        ..Settings::default()
    };
    let pool = Pool::new(1024).unwrap();
    let mut engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
    engine.add_source(Once::NAME, |_| Once(true)).unwrap();
    let held = move |_: usize| Held {
        batches: Default::default(),
        codes: Column::new(vector_size),
    };
    engine.add_stage(Held::NAME, held).unwrap();
    engine.add(Back::NAME, |_| Back).unwrap();
    let mut workers = engine.build().unwrap();
    for _ in 0..3 {
        let moved = workers[0].step();
        assert!((64..=64 + 256 * vector_size).contains(&moved), "{moved}");
        assert_eq!(pool.report().in_use(), 64, "each packet is there once");
    }
    assert!(engine.drops().iter().all(|it| it.count == 0));
}
