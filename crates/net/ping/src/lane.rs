//! What lies between the worker and the control thread: bounded queues without locks.

use crossbeam_queue::ArrayQueue;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Runs at once.
pub const RUNS: usize = 16;
/// Bytes of the longest request, with its IP header.
pub const LONGEST: usize = 1480;

/// A packet to be sent, without Ethernet header.
pub struct Request {
    /// The interface it is looked up for: its table is the one asked.
    pub rx: u32,
    /// The run it belongs to.
    pub id: u16,
    /// Its number in the run.
    pub number: u16,
    /// How many bytes count.
    pub len: usize,
    /// The packet.
    pub bytes: [u8; LONGEST],
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was sent.
    Sent,
    /// Somebody answered.
    Answered {
        /// Who.
        from: IpAddr,
        /// Type of the message.
        kind: u8,
        /// Its code.
        code: u8,
        /// What was left of its hops.
        hops: u8,
    },
}

/// One word to the control thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeReply {
    /// The run.
    pub id: u16,
    /// The request.
    pub number: u16,
    /// When, in nanoseconds.
    pub at: u64,
    /// What.
    pub event: Event,
}

/// The queues of one worker.
pub struct PingQueues {
    /// To the worker.
    pub requests: ArrayQueue<Request>,
    /// To the control thread.
    pub heard: ArrayQueue<ProbeReply>,
    /// Identifiers of runs, one more than each; 0 = none.
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
    /// Worker: whether somebody waits for answers to this identifier.
    pub fn expects(&self, id: u16) -> bool {
        let word = u32::from(id) + 1;
        self.ids.iter().any(|slot| slot.load(Relaxed) == word)
    }

    /// Control thread: who waits.
    pub fn set_expected(&self, ids: impl Iterator<Item = u16>) {
        let words = ids.map(|id| u32::from(id) + 1).chain(std::iter::repeat(0));
        for (slot, word) in self.ids.iter().zip(words) {
            slot.store(word, Relaxed);
        }
    }
}
