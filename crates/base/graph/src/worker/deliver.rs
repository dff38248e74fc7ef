//! The consumer's side of handoff: a worker dequeues the packets that other workers handed off, and runs them.

use crate::data::frame::Frame;
use crate::node_api::context::RawCx;
use crate::queues::handoff::HandoffEntry;
use crate::worker::round::Worker;

/// Frames that a worker dequeues from one other worker in one round.
const ENTRIES_PER_ROUND: usize = 16;

impl Worker {
    /// Dequeue the packets that other workers handed off, and run them. Returns the number of packets.
    #[inline(always)]
    pub(crate) fn poll_handoff(&mut self, now_ns: u64) -> usize {
        if self.dispatch.handoff.consumers.is_empty() || self.dispatch.handoff.is_empty() {
            return 0;
        }
        self.run_entries(now_ns)
    }

    #[inline(never)]
    fn run_entries(&mut self, now_ns: u64) -> usize {
        let mut rows = 0;
        for at in 0..self.dispatch.handoff.consumers.len() {
            for _ in 0..ENTRIES_PER_ROUND {
                let frame = self.dispatch.frame();
                let Some(entry) = self.next_entry(at, frame) else {
                    break;
                };
                if entry.epoch != 0 {
                    self.dispatch.recycle(entry.frame);
                    break;
                }
                rows += entry.frame.n;
                self.deliver(entry, now_ns);
            }
        }
        self.run_pending(now_ns, None);
        let me = self.dispatch.handoff.worker_id;
        for consumer in &mut self.dispatch.handoff.consumers {
            if consumer.epoch != 0 && !consumer.arrived {
                consumer.arrived = true;
                consumer.epochs.complete(me, consumer.epoch);
            }
        }
        rows
    }

    /// The next entry of a consumer's ring, in exchange for an empty frame. The marker of an epoch is recorded.
    #[inline(always)]
    fn next_entry(&mut self, consumer: usize, frame: Box<Frame>) -> Option<HandoffEntry> {
        let mut entry = HandoffEntry::empty(frame);
        let from = &mut self.dispatch.handoff.consumers[consumer];
        if !from.is_epoch_complete() || !from.ring.dequeue(&mut entry) {
            self.dispatch.recycle(entry.frame);
            return None;
        }
        if entry.epoch != 0 {
            (from.epoch, from.arrived) = (entry.epoch, false);
        }
        Some(entry)
    }

    /// Deliver a frame that was handed off to its node.
    #[inline(always)]
    fn deliver(&mut self, entry: HandoffEntry, now_ns: u64) {
        let HandoffEntry {
            node,
            frame,
            placed,
            ..
        } = entry;
        let Some(slot) = self.slots.get_mut(node.index()) else {
            let drop = self.dispatch.drop_node;
            return self.dispatch.push_frame(drop, frame);
        };
        if !placed {
            return self.dispatch.push_frame(node, frame);
        }
        let cx = RawCx {
            own: &slot.own,
            guard: self.reader.guard(),
            now_ns,
        };
        if let Err(frame) = slot.body.arrive(self.level, &cx, &mut self.dispatch, frame) {
            self.dispatch.push_frame(node, frame);
        }
    }
}

impl Drop for Worker {
    /// Free the packets that were handed off to a worker that ends, and the worker's pending changes. A ring in such a change
    /// would keep the channel of the worker at its other end alive, whose changes may keep this worker's channel alive.
    fn drop(&mut self) {
        while self.change_queues.pending.pop().is_some() {}
        let dispatch = &mut self.dispatch;
        for mut consumer in std::mem::take(&mut dispatch.handoff.consumers) {
            let mut entry = HandoffEntry::empty(Frame::new(0));
            while consumer.ring.dequeue(&mut entry) {
                let frame = std::mem::replace(&mut entry.frame, Frame::new(0));
                if entry.epoch == 0 {
                    dispatch.free(frame);
                }
            }
            consumer.epochs.leave(dispatch.handoff.worker_id);
        }
    }
}
