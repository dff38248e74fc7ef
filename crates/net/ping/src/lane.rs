//! Bounded lock-free queues between the worker and the control thread.

use crossbeam_queue::ArrayQueue;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Most concurrent runs.
pub const RUNS: usize = 16;
/// Bytes of the longest request, including its IP header.
pub const LONGEST: usize = 1480;

/// A packet to send, without Ethernet header.
pub struct Request {
    /// The interface whose table is used for the lookup.
    pub rx: u32,
    /// The run of the request.
    pub id: u16,
    /// The number of the request in the run.
    pub number: u16,
    /// Number of valid bytes.
    pub len: usize,
    /// The packet.
    pub bytes: [u8; LONGEST],
}

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The request was sent.
    Sent,
    /// An answer was received.
    Answered {
        /// Source of the answer.
        from: IpAddr,
        /// ICMP type.
        kind: u8,
        /// ICMP code.
        code: u8,
        /// TTL or hop limit of the answer.
        hops: u8,
    },
}

/// A report to the control thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeReply {
    /// The run.
    pub id: u16,
    /// The request.
    pub number: u16,
    /// Time in nanoseconds.
    pub at: u64,
    /// The event.
    pub event: Event,
}

/// The queues of one worker.
pub struct PingQueues {
    /// To the worker.
    pub requests: ArrayQueue<Request>,
    /// To the control thread.
    pub heard: ArrayQueue<ProbeReply>,
    /// Identifiers of runs plus one; 0 for none.
    ids: [AtomicU32; RUNS],
}

impl Default for PingQueues {
    fn default() -> Self {
        PingQueues {
            requests: ArrayQueue::new(64),
            heard: ArrayQueue::new(512),
            ids: Default::default(),
        }
    }
}

impl PingQueues {
    /// Worker: whether a run waits for answers to this identifier.
    pub fn expects(&self, id: u16) -> bool {
        let word = u32::from(id) + 1;
        self.ids.iter().any(|slot| slot.load(Relaxed) == word)
    }

    /// Control thread: sets the identifiers of the runs that wait for answers.
    pub fn set_expected(&self, ids: impl Iterator<Item = u16>) {
        let words = ids.map(|id| u32::from(id) + 1).chain(std::iter::repeat(0));
        for (slot, word) in self.ids.iter().zip(words) {
            slot.store(word, Relaxed);
        }
    }
}
