//! A node as a plugin, the same node built in, or none: `native_cost FILE|built-in|none LEVEL VECTOR-SIZE ROUNDS`. It prints the
//! packets that passed. `cargo xtask show nodes --only native-cost` counts its instructions with callgrind.
#![forbid(unsafe_code)]

#[path = "../tests/sample/src/ttl.rs"]
mod ttl;

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;
use ttl::TtlCheck;
use volley_graph::buf::Pool;
use volley_graph::*;
use volley_plugin_host::Plugins;

/// Length of the packets in bytes.
const LENGTH: usize = 64;

nexts! { enum FromSource { Gate => "gate" } }

/// Makes a vector of packets a round, of interface 1, with a TTL of 64.
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

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [node, level, size, rounds] = &args[..] else {
        return Err("four arguments: FILE|built-in|none LEVEL VECTOR-SIZE ROUNDS".into());
    };
    let settings = Settings {
        vector_size: size.parse()?,
        level: level.parse()?,
        workers: 1,
        ..Settings::default()
    };
    let mut engine = Engine::new(settings, Pool::new(4096)?, Domain::new())?;
    let arc = engine.arc("test-arc", "gate", "end");
    engine.add_source("packets", |_| Packets)?;
    engine.add("gate", move |_| Gate(arc))?;
    engine.add("end", |_| End)?;
    if node == "built-in" {
        engine.add(TtlCheck::NAME, |_| TtlCheck)?;
        engine.add_feature("test-arc", Feature::after(TtlCheck::NAME, &[]))?;
    }
    let mut workers = engine.build()?;
    let engine = Rc::new(RefCell::new(engine));
    let plugins = Plugins::new(engine.clone(), &Processes::default(), |i| format!("if{i}"));
    if node != "built-in" && node != "none" {
        plugins.load("ttl-check", Path::new(node))?;
    }
    if node != "none" {
        let mut engine = engine.borrow_mut();
        engine.set_feature("test-arc", TtlCheck::NAME, 1, true)?;
    }
    let mut passed = 0;
    for _ in 0..rounds.parse::<u64>()? {
        passed += workers.iter_mut().map(Worker::step).sum::<usize>();
    }
    println!("{passed}");
    Ok(())
}
