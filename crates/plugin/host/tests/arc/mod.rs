//! An engine with a feature arc between a source and the end of the graph, for the tests and for `native_cost`.

use std::sync::Arc;
use volley_graph::buf::Pool;
use volley_graph::*;

/// Length of the packets in bytes.
const LENGTH: usize = 64;

nexts! { enum FromSource { Gate => "gate" } }

/// Makes a vector of packets a round, of interface 1. All bytes, and so the TTL, are 64.
struct Packets;

impl Source for Packets {
    const NAME: &'static str = "packets";
    type Next = FromSource;
    type Count = NoCounters;
    fn poll<I: Isa>(
        &mut self,
        _: &Cx<'_, NoCounters>,
        out: &mut Output<'_, I, FromSource>,
    ) -> usize {
        let mut fresh = out.alloc(out.vector_size(), 1);
        fresh.fill(|_, data| {
            data[..LENGTH].fill(64);
            LENGTH
        });
        fresh.send(FromSource::Gate)
    }
}

nexts! { enum FromGate { End => "end" } }

/// The start of the arc.
struct Gate(ArcId);

impl Node for Gate {
    const NAME: &'static str = "gate";
    type Next = FromGate;
    type Count = NoCounters;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, FromGate>) -> Consumed {
        v.send_arc(self.0, Col::RX, FromGate::End)
    }
}

/// The end of the arc.
struct End;

impl Node for End {
    const NAME: &'static str = "end";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        v.free()
    }
}

/// An engine whose arc is `test-arc`, without features.
pub fn engine(settings: Settings, pool: Arc<Pool>) -> Result<Engine, GraphError> {
    let mut engine = Engine::new(settings, pool, Domain::new())?;
    let arc = engine.arc("test-arc", "gate", "end");
    engine.add_source("packets", |_| Packets)?;
    engine.add("gate", move |_| Gate(arc))?;
    engine.add("end", |_| End)?;
    Ok(engine)
}
