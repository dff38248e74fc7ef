//! What lies between one worker and the control thread: messages that were found right, in a bounded queue without locks.

use crossbeam_queue::ArrayQueue;
use volley_model::Family;

/// Bytes of the longest message that is taken: what fits a usual link.
pub const LONGEST: usize = 1500;
/// Messages that the control thread has not looked at.
const HEARD: usize = 64;

/// A packet with a message: from the IP header on.
pub struct ReceivedMessage {
    /// The interface that it came by.
    pub rx: u32,
    /// Its IP version.
    pub family: Family,
    len: usize,
    bytes: [u8; LONGEST],
}

impl ReceivedMessage {
    /// A packet; none where it is too long.
    pub fn new(rx: u32, family: Family, packet: &[u8]) -> Option<Self> {
        let (mut bytes, len) = ([0; LONGEST], packet.len());
        bytes.get_mut(..len)?.copy_from_slice(packet);
        Some(ReceivedMessage {
            rx,
            family,
            len,
            bytes,
        })
    }

    /// The packet.
    pub fn packet(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}

/// The queue of one worker.
pub struct ControlQueue(pub ArrayQueue<ReceivedMessage>);

impl Default for ControlQueue {
    fn default() -> Self {
        ControlQueue(ArrayQueue::new(HEARD))
    }
}
