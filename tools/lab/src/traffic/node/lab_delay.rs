//! lab-delay: a delay line: holds every packet for a fixed time. The clock of the sink is tested with it.

use std::collections::VecDeque;
use volley_graph::{
    Batch, Column, Consumed, Cx, Isa, Node, Output, PacketTrace, Stage, Vector, counters, nexts,
};

nexts! {
    /// Where lab-delay sends packets: to the next node on the arc of their interface.
    pub enum Next { Ethernet => "ethernet-input" }
}

counters! {
    /// What lab-delay counts.
    pub enum Count {
        /// packets that were sent on early because too many vectors are held
        Early = "early" (Info),
    }
}

/// Most vectors that are held.
pub const MOST: usize = 512;

/// State of lab-delay on one worker.
pub struct LabDelay {
    /// Cycles of the time stamp counter.
    delay: u64,
    /// Held vectors with the time at which each is due.
    held: VecDeque<(u64, Batch)>,
    codes: Column,
}

impl LabDelay {
    /// For vectors of up to `size` packets.
    pub fn new(delay: u64, size: usize) -> Self {
        LabDelay {
            delay,
            held: VecDeque::with_capacity(MOST),
            codes: Column::new(size),
        }
    }
}

impl Node for LabDelay {
    const NAME: &'static str = "lab-delay";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let due = volley_simd::cycles() + self.delay;
        let isa = v.isa();
        if self.held.len() == MOST
            && let Some((_, batch)) = self.held.pop_front()
        {
            cx.count(Count::Early, batch.len() as u64);
            v.stage_cx().send_on_receive(isa, batch);
        }
        // One code for all: the vector is moved.
        self.codes.words_mut(v.len()).fill(0);
        let held = &mut self.held;
        v.classify(&self.codes, |_, _, batch| held.push_back((due, batch)))
    }
}

impl Stage for LabDelay {
    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    #[inline(always)]
    fn release<I: Isa>(&mut self, _cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let now = volley_simd::cycles();
        match self.held.front() {
            Some((due, _)) if *due <= now => {}
            _ => return 0,
        }
        let due = self.held.pop_front();
        due.map_or(0, |(_, batch)| out.send_batch_on_receive(batch))
    }

    fn may_sleep(&self, _now_ns: u64) -> bool {
        false
    }
}
