//! Bounded lock-free queue from one worker to the control thread. If it is full, the report is lost; the address is learned
//! from a later frame of the host.

use crossbeam_queue::ArrayQueue;

/// Capacity of the queue.
const HEARD: usize = 4096;
/// Most recent reports that a worker remembers.
const REPORTED: usize = 1024;
/// A worker does not repeat a report within this time.
const DAMPED_NS: u64 = 100_000_000;

/// A source MAC address that is new or has moved to another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedMac {
    /// MAC address and slot of the bridge domain.
    pub key: u64,
    /// The receiving port.
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

/// Recent reports of a worker: one report for each packet that a new host sends until it is learned would fill the queue. Of
/// two addresses in one slot the later one is remembered.
pub(crate) struct ReportedMacs {
    places: Box<[(LearnedMac, u64)]>,
}

impl ReportedMacs {
    pub(crate) fn new() -> Self {
        let nothing = LearnedMac { key: 0, rx: 0 };
        ReportedMacs {
            places: vec![(nothing, 0); REPORTED].into(),
        }
    }

    /// Whether the address was reported recently.
    pub(crate) fn has(&self, heard: LearnedMac, now_ns: u64) -> bool {
        let (last, at) = self.places[place(heard.key)];
        last == heard && now_ns.wrapping_sub(at) < DAMPED_NS
    }

    pub(crate) fn note(&mut self, heard: LearnedMac, now_ns: u64) {
        self.places[place(heard.key)] = (heard, now_ns);
    }
}

fn place(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % REPORTED
}
