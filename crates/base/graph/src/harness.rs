//! A test bench for nodes: runs packets through a node at every vector length and instruction-set level.
//!
//! Collectors replace the targets of the node's edges. The bench requires that no packet is lost or duplicated, that
//! every level gives the same result, and that all buffers are freed.

use crate::data::clock::Clock;
use crate::data::col::Col;
use crate::data::counters::{Counters, NoCounters};
use crate::data::error::GraphError;
use crate::data::ids::NodeId;
use crate::data::offload::Offload;
use crate::engine::state::{Engine, Settings};
use crate::node_api::context::Cx;
use crate::node_api::drop_node::DROP_NODE;
use crate::node_api::edges::{Nexts, NoNext};
use crate::node_api::node::{Node, Source};
use crate::node_api::output::Output;
use crate::node_api::vector::{Consumed, Vector};
use crate::queues::trace::PacketTrace;
use crate::worker::round::Worker;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use volley_buf::Pool;
use volley_simd::{Isa, Level};
use volley_tables::qsbr::Domain;

/// Vector lengths for the test of every node.
pub const LENGTHS: [usize; 8] = [1, 2, 3, 5, 7, 64, 255, 256];

/// An input packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct In {
    /// The bytes of the packet.
    pub bytes: Vec<u8>,
    /// The receive interface.
    pub rx: u32,
    /// Columns that an earlier node fills.
    pub columns: Vec<(Col, u32)>,
    /// The offload requests of the packet.
    pub offload: Offload,
    /// The number of bytes to advance the position before the node runs.
    pub advance: usize,
}

impl In {
    /// A packet on interface 0.
    pub fn new(bytes: &[u8]) -> Self {
        In {
            bytes: bytes.to_vec(),
            rx: 0,
            columns: Vec::new(),
            offload: Offload::NONE,
            advance: 0,
        }
    }

    /// Set the receive interface.
    pub fn rx(mut self, rx: u32) -> Self {
        self.rx = rx;
        self
    }

    /// Fill a column.
    pub fn column(mut self, col: Col, word: u32) -> Self {
        self.columns.push((col, word));
        self
    }

    /// Set offload requests.
    pub fn offload(mut self, offload: Offload) -> Self {
        self.offload = offload;
        self
    }

    /// Advance the position.
    pub fn advance(mut self, bytes: usize) -> Self {
        self.advance = bytes;
        self
    }
}

/// An output packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out {
    /// The target of the edge.
    pub to: String,
    /// The bytes from the current position.
    pub bytes: Vec<u8>,
    /// The columns that were filled.
    pub columns: BTreeMap<Col, u32>,
    /// The offload requests of the packet.
    pub offload: Offload,
    /// The drop reason, if any: the counter's name.
    pub reason: Option<String>,
}

type Shared = Arc<Mutex<Vec<Out>>>;

/// Collects the packets of an edge.
struct Collector {
    to: &'static str,
    out: Shared,
}

impl Node for Collector {
    const NAME: &'static str = "collector";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _cx: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        let mut out = self.out.lock().unwrap_or_else(|e| e.into_inner());
        for row in 0..v.len() {
            let view = v.view(row);
            let mut bytes = Vec::new();
            view.segments(0, |s| bytes.extend_from_slice(s));
            let columns = Col::handed_on()
                .filter_map(|col| view.get(col).map(|word| (col, word)))
                .collect();
            out.push(Out {
                to: self.to.to_owned(),
                bytes,
                columns,
                offload: view.offload(),
                reason: None,
            });
        }
        drop(out);
        v.free()
    }
}

/// Sends the test's packets to the node, `size` at a time.
struct Feeder {
    packets: Arc<Mutex<Vec<In>>>,
    size: usize,
}

crate::nexts! {
    enum ToTest { Test => "node-under-test" }
}

impl Source for Feeder {
    const NAME: &'static str = "feeder";
    type Next = ToTest;
    type Count = NoCounters;

    fn poll<I: Isa>(&mut self, _cx: &Cx<'_, NoCounters>, out: &mut Output<'_, I, ToTest>) -> usize {
        let mut waiting = self.packets.lock().unwrap_or_else(|e| e.into_inner());
        let n = waiting.len().min(self.size);
        let batch: Vec<In> = waiting.drain(..n).collect();
        let mut fresh = out.alloc(n, 0);
        for (row, packet) in batch.iter().enumerate().take(fresh.len()) {
            fresh.write(row, &packet.bytes);
            fresh.set_rx(row, packet.rx);
            let fits = fresh.set_offload(row, &packet.offload);
            assert_eq!(fits, Ok(()), "the request fits the packet");
        }
        fresh.prepare(|row, packet| {
            batch[row]
                .columns
                .iter()
                .for_each(|&(col, word)| packet.set(col, word));
            packet.advance(batch[row].advance);
        });
        if fresh.is_empty() {
            0
        } else {
            fresh.send(ToTest::Test)
        }
    }
}

/// Run `packets` through one node, `size` in a vector, at one level. Returns the packets, grouped by edge, in the order in
/// which the edges' nodes received them.
pub fn run_once<N: Node>(
    level: Level,
    size: usize,
    packets: &[In],
    domain: &Arc<Domain>,
    make: impl FnMut(usize) -> N + 'static,
) -> Result<Vec<Out>, GraphError> {
    let pool = Pool::new(4096).map_err(|_| GraphError::Workers(0))?;
    let vector_size = size.max(4);
    let settings = Settings {
        vector_size,
        buffers: 4096,
        level,
        workers: 1,
        clock: Clock::manual(),
    };
    let mut engine = Engine::new(settings, pool.clone(), domain.clone())?;
    let (out, waiting) = (Shared::default(), Arc::new(Mutex::new(packets.to_vec())));
    let mut edges: Vec<&'static str> = N::Next::EDGES.to_vec();
    edges.sort_unstable();
    edges.dedup();
    let drops = edges.contains(&DROP_NODE);
    if drops {
        engine.remove(DROP_NODE)?;
    }
    for to in edges {
        let out = out.clone();
        engine.add(to, move |_| Collector {
            to,
            out: out.clone(),
        })?;
    }
    let feed = waiting.clone();
    engine.add_source("feeder", move |_| Feeder {
        packets: feed.clone(),
        size,
    })?;
    let under_test = engine.add("node-under-test", make)?;
    let mut workers = engine.build()?;
    let worker: &mut Worker = &mut workers[0];
    while worker.step() > 0 {}
    assert_eq!(pool.report().in_use(), 0, "every buffer came back");
    let mut out = std::mem::take(&mut *out.lock().unwrap_or_else(|e| e.into_inner()));
    // A packet without a reason was sent to a node chosen at run time, which the bench does not have.
    for packet in &mut out {
        packet
            .columns
            .retain(|col, word| ![Col::ERR, Col::MARK].contains(col) || *word != 0);
    }
    let dropped = |p: &&mut Out| p.to == DROP_NODE && p.columns.get(&Col::ERR) > Some(&0);
    for packet in out.iter_mut().filter(dropped) {
        // Only the reason of a dropped packet is compared: other columns may contain words from behind its end.
        packet.offload = Offload::NONE;
        let word = std::mem::take(&mut packet.columns).remove(&Col::ERR);
        packet.reason = word.and_then(|word| {
            let (node, counter) = NodeId::of_reason(word);
            (node == under_test).then(|| N::Count::INFO.get(counter).map(|i| i.name.to_owned()))?
        });
    }
    out.sort_by(|a, b| (&a.to, a.reason.is_some()).cmp(&(&b.to, b.reason.is_some())));
    Ok(out)
}

/// Run `packets` through one node at every vector length and level. All results must be equal, and no packet may be lost.
/// Returns the packets, grouped by edge, in order within an edge.
pub fn run<N: Node>(
    packets: &[In],
    domain: &Arc<Domain>,
    make: impl Fn(usize) -> N + Clone + 'static,
) -> Vec<Out> {
    let mut reference: Option<Vec<Out>> = None;
    for level in Level::available() {
        for size in LENGTHS {
            // Repeat the packets so that long vectors are full.
            let copies = size.div_ceil(packets.len().max(1));
            let many: Vec<In> = (0..copies).flat_map(|_| packets.iter().cloned()).collect();
            let got = match run_once(level, size, &many, domain, make.clone()) {
                Ok(got) => got,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(
                got.len(),
                many.len(),
                "packets lost or doubled at {level}, vectors of {size}"
            );
            let once = collapse(&got, copies);
            match &reference {
                None => reference = Some(once),
                Some(first) => assert_eq!(*first, once, "{level}, vectors of {size}"),
            }
        }
    }
    reference.unwrap_or_default()
}

/// Undo the repetition: of each edge's packets, the first of `copies` equal parts, which must all be equal.
fn collapse(out: &[Out], copies: usize) -> Vec<Out> {
    let mut once = Vec::new();
    let alike = |a: &Out, b: &Out| a.to == b.to && a.reason.is_some() == b.reason.is_some();
    for edge in out.chunk_by(alike) {
        let part = edge.len() / copies;
        assert_eq!(part * copies, edge.len());
        for other in edge.chunks(part.max(1)) {
            assert_eq!(
                &edge[..part],
                other,
                "equal packets were treated differently"
            );
        }
        once.extend_from_slice(&edge[..part]);
    }
    once
}
