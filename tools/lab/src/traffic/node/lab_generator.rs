//! lab-generator: sends frames with probes at a rate.
//!
//! The frames enter the graph as if their interfaces had received them. A probe has the time at which its packet was due, not the time at
//! which it was made: the time that a late packet waited for the worker is a part of its latency.

use crate::traffic::bucket::Bucket;
use crate::traffic::frame::Frame;
use crate::traffic::probe::Probe;
use crate::traffic::record::{Orders, Sent, add};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volley_graph::{Column, Cx, Isa, Output, Source, counters, nexts};

nexts! {
    /// Where lab-generator sends packets, besides to the first node of their interface.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What lab-generator counts.
    pub enum Count {
        /// no packet buffer was free
        NoBuffers = "no-buffers" (Error),
    }
}

/// Frames of one kind, and the interface that receives them.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Index of the interface.
    pub rx: u32,
    /// The frames.
    pub frame: Frame,
}

/// State of lab-generator on one worker.
pub struct LabGenerator {
    orders: Arc<Orders>,
    sent: Arc<Sent>,
    /// The flows of each kind of frames.
    kinds: Arc<[Vec<Flow>]>,
    /// The flows of this trial.
    flows: Vec<Flow>,
    /// Whether this worker sends.
    is_sender: bool,
    state: u32,
    bucket: Option<Bucket>,
    sequence: u64,
    last_poll: u64,
    nodes: Column,
}

impl LabGenerator {
    /// The instance of `worker`, of which the first one sends. The flows of a kind take turns.
    pub fn new(
        worker: usize,
        (orders, sent): (Arc<Orders>, Arc<Sent>),
        kinds: Arc<[Vec<Flow>]>,
        size: usize,
    ) -> Self {
        LabGenerator {
            orders,
            sent,
            flows: kinds.first().cloned().unwrap_or_default(),
            kinds,
            is_sender: worker == 0,
            state: 0,
            bucket: None,
            sequence: 0,
            last_poll: 0,
            nodes: Column::new(size),
        }
    }

    #[cold]
    fn obey(&mut self, state: u32, now: u64) {
        let plan = self.orders.plan(state);
        if plan.is_some() {
            self.sent.clear();
            self.sequence = 0;
            if let Some(flows) = self.kinds.get(self.orders.kind()) {
                self.flows.clone_from(flows);
            }
        }
        self.bucket = plan.map(|plan| Bucket::new(plan, now));
        self.state = state;
        self.last_poll = now;
        self.sent.state.store(state, Ordering::Release);
    }

    /// Account for the packets of one vector.
    #[inline(always)]
    fn publish(&self, now: u64, packets: usize, missed: u64) {
        let (sent, relaxed) = (&self.sent, Ordering::Relaxed);
        if sent.packets.load(relaxed) == 0 {
            sent.first.store(now, relaxed);
        }
        sent.last.store(now, relaxed);
        add(&sent.packets, packets as u64);
        sent.missed.store(missed, relaxed);
        if packets as u64 > sent.largest.load(relaxed) {
            sent.largest.store(packets as u64, relaxed);
        }
    }
}

impl Source for LabGenerator {
    const NAME: &'static str = "lab-generator";
    type Next = Next;
    type Count = Count;

    #[inline(always)]
    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let state = self.orders.state();
        let now = volley_simd::cycles();
        if state != self.state && self.is_sender {
            self.obey(state, now);
        }
        let Some(bucket) = &mut self.bucket else {
            return 0;
        };
        self.sent.polls.record(now.wrapping_sub(self.last_poll));
        self.last_poll = now;
        let due = bucket.due(now, out.vector_size());
        if due == 0 {
            return 0;
        }
        let flows = &self.flows;
        let (first, count) = (self.sequence, flows.len() as u64);
        let nodes = self.nodes.words_mut(due);
        for (row, node) in nodes.iter_mut().enumerate() {
            let flow = &flows[((first + row as u64) % count) as usize];
            *node = u32::from(out.receiver(flow.rx).0);
        }
        let mut fresh = out.alloc(due, flows[0].rx);
        let got = fresh.len();
        let trial = (state / 2) as u8;
        fresh.fill(|row, data| {
            let sequence = first + row as u64;
            let probe = Probe {
                trial,
                sequence,
                due: bucket.due_at(row, now),
            };
            flows[(sequence % count) as usize].frame.write(data, &probe)
        });
        if count > 1 {
            for row in 0..got {
                fresh.set_rx(row, flows[((first + row as u64) % count) as usize].rx);
            }
        }
        if got < due {
            cx.count(Count::NoBuffers, (due - got) as u64);
            add(&self.sent.no_buffers, (due - got) as u64);
        }
        // A packet without a buffer stays due.
        bucket.sent(got);
        self.sequence += got as u64;
        let missed = bucket.missed();
        if got == 0 {
            return 0;
        }
        let is_over = bucket.is_over();
        self.publish(now, got, missed);
        if is_over {
            self.bucket = None;
        }
        fresh.send_each(&self.nodes)
    }

    fn is_vacant(&self) -> bool {
        !self.is_sender
    }
}
