//! Everything that a plugin may bring besides features and objects: a source, a stage on an edge of the router, an arc with a feature,
//! receivers of protocols, a consumer, a node in the place of one of the router, a verb, a task, metrics and a page.

use crate::counting::{Passed, counting};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use volley_sdk::prelude::*;

/// Packets of a round of the source.
const MOST: u64 = 32;

nexts! { pub enum ToSink { Sink => "guest-sink" } }
nexts! { pub enum ToOutput { Output => "interface-output" } }
nexts! { pub enum ToDrop { Drop => "error-drop" } }

/// What the control thread and the workers share.
#[derive(Default)]
struct Shared {
    /// Packets that the source has to make.
    due: AtomicU64,
    /// The interface on which they are received.
    rx: AtomicU64,
    /// Runs of the task.
    runs: AtomicU64,
}

/// The end of the plugin's packets.
struct Sink;
counting!(Sink, "guest-sink", NoNext, |self, v| v.free());

/// Receives a protocol, and is the start of the arc.
struct Gate(ArcId);
counting!(Gate, "guest-gate", ToSink, |self, v| {
    v.send_arc(self.0, Col::RX, ToSink::Sink)
});

/// A feature of the arc.
struct Mark;
counting!(Mark, "guest-mark", NoNext, |self, v| v.next_feature());

/// Consumes what an interface transmits, as the transmit side of a driver.
struct Transmit;
counting!(Transmit, "guest-tx", NoNext, |self, v| v.free());

/// Answers no pings, in the place of the router's node.
struct NoEcho;
counting!(NoEcho, "ip4-icmp-echo-request", ToDrop, |self, v| v
    .send_all(ToDrop::Drop));

/// Makes frames of EtherType 0x88b5, as the receive side of a driver.
struct Receive(Arc<Shared>);

impl Source for Receive {
    const NAME: &'static str = "guest-input";
    type Next = NoNext;
    type Count = Passed;

    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Passed>, out: &mut Output<'_, I, NoNext>) -> usize {
        let due = self.0.due.load(Relaxed).min(MOST);
        if due == 0 {
            return 0;
        }
        let rx = self.0.rx.load(Relaxed) as u32;
        let mut fresh = out.alloc(due as usize, rx);
        let mut frame = [0; 60];
        frame[..14].copy_from_slice(&[255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
        let made = fresh.len();
        for row in 0..made {
            fresh.write(row, &frame);
        }
        self.0.due.fetch_sub(made as u64, Relaxed);
        cx.count(Passed::Seen, made as u64);
        match made {
            0 => 0,
            _ => fresh.send_received(rx),
        }
    }
}

/// Holds vectors until the next round.
struct Late {
    held: VecDeque<Batch>,
    codes: Column,
}

impl Node for Late {
    const NAME: &'static str = "guest-late";
    type Next = ToOutput;
    type Count = Passed;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Passed>, v: Vector<'_, I, ToOutput>) -> Consumed {
        cx.count(Passed::Seen, v.len() as u64);
        self.codes.words_mut(v.len()).fill(0);
        let held = &mut self.held;
        v.classify(&self.codes, |_, _, batch| held.push_back(batch))
    }
}

impl Stage for Late {
    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    fn release<I: Isa>(&mut self, _: &Cx<'_, Passed>, out: &mut Output<'_, I, ToOutput>) -> usize {
        let first = self.held.pop_front();
        first.map_or(0, |batch| out.send_batch(batch, ToOutput::Output))
    }

    fn leave(&mut self, stage_cx: &mut StageCx<'_>, next: NodeId) {
        for batch in self.held.drain(..) {
            stage_cx.send_batch_to(batch, next);
        }
    }
}

/// Receive frames on an interface.
#[derive(Clone, Debug, PartialEq, Verb)]
#[verb(name = "guest-receive", command = "guest receive <times> <interface>")]
#[verb(example = "guest receive 100 pg0")]
struct ReceiveFrames {
    /// Number of frames.
    #[verb(range = 1..=1_000_000)]
    times: u64,
    /// Interface that receives them.
    #[verb(needs = "interface")]
    interface: String,
}

pub(crate) fn register(plugin: &mut Plugin) -> Result<(), RegisterError> {
    let shared = Arc::new(Shared::default());
    let (of_source, size) = (shared.clone(), plugin.host().vector_size);
    let arc = plugin.arc("guest-arc", "guest-gate", "guest-sink");
    plugin
        .source(move |_| Receive(of_source.clone()))
        .stage(4, move |_| Late {
            held: VecDeque::with_capacity(4),
            codes: Column::new(size),
        })
        .edge("ip4-rewrite", "interface-output", "guest-late")
        .override_node(|_| NoEcho)
        .node(move |_| Gate(arc.id()))
        .node(|_| Sink)
        .feature("guest-arc", |_| Mark)
        .consumer("interface-output", |_| Transmit)
        .listen(PluginProtocol::EtherType(0x88b5), "guest-gate")
        .listen(PluginProtocol::Ip4(253), "guest-sink")
        .listen(PluginProtocol::Udp4(9999), "guest-sink");
    let (of_verb, host) = (shared.clone(), plugin.host().clone());
    plugin.verb(move |it: ReceiveFrames| {
        let all = host.interfaces();
        let found = all.iter().find(|known| known.name == it.interface);
        let index = found.ok_or("no such interface")?.index;
        if it.times == 13 {
            return Err("13 frames are too many");
        }
        of_verb.rx.store(u64::from(index), Relaxed);
        of_verb.due.fetch_add(it.times, Relaxed);
        Ok(())
    })?;
    let of_task = shared.clone();
    plugin.every(Duration::from_millis(5), move || {
        of_task.runs.fetch_add(1, Relaxed);
    });
    plugin
        .every(Duration::from_millis(5), || panic!("a tired task"))
        .metric("runs", "Runs of the task.", move || {
            shared.runs.load(Relaxed) as f64
        })
        .metric("broken", "A figure that cannot be read.", || {
            panic!("no figure")
        })
        .page("# Guest\n\nA plugin with one of everything.\n");
    Ok(())
}
