//! What lies between one worker and the control thread: a bounded queue without locks. A full one loses what is new; the
//! station sends again, and is learned then.

use crossbeam_queue::ArrayQueue;

/// Stations that the control thread has not looked at.
const HEARD: usize = 4096;
/// Stations that a worker remembers having told of.
const TOLD: usize = 1024;
/// How long it does not tell the same again.
const DAMPED_NS: u64 = 100_000_000;

/// A station that was not known, or behind another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedMac {
    /// Its address, and the slot of its domain.
    pub key: u64,
    /// The port that it was heard on.
    pub rx: u32,
}

/// The queue of one worker.
pub struct LearnQueue {
    pub(crate) new_macs: ArrayQueue<LearnedMac>,
}

impl Default for LearnQueue {
    fn default() -> Self {
        LearnQueue {
            new_macs: ArrayQueue::new(HEARD),
        }
    }
}

/// What a worker told a short while ago: a frame for each packet that a new station sends until it is learned would fill
/// the queue. Of two stations in one place the later one is remembered.
pub(crate) struct ReportedMacs {
    places: Box<[(LearnedMac, u64)]>,
}

impl ReportedMacs {
    pub(crate) fn new() -> Self {
        let nothing = LearnedMac { key: 0, rx: 0 };
        ReportedMacs {
            places: vec![(nothing, 0); TOLD].into(),
        }
    }

    /// Whether this was told a short while ago.
    pub(crate) fn has(&self, heard: LearnedMac, now_ns: u64) -> bool {
        let (last, at) = self.places[place(heard.key)];
        last == heard && now_ns.wrapping_sub(at) < DAMPED_NS
    }

    pub(crate) fn note(&mut self, heard: LearnedMac, now_ns: u64) {
        self.places[place(heard.key)] = (heard, now_ns);
    }
}

fn place(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % TOLD
}
