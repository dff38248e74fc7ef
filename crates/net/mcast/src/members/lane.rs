//! Bounded lock-free queue from one worker to the control thread, for valid IGMP and MLD messages.

use crossbeam_queue::ArrayQueue;
use volley_model::Family;

/// Longest accepted packet: the usual MTU.
pub const LONGEST: usize = 1500;
/// Capacity of the queue.
const HEARD: usize = 64;

/// A packet with a message, from the IP header on.
pub struct ReceivedMessage {
    /// The receiving interface.
    pub rx: u32,
    /// IP version of the packet.
    pub family: Family,
    len: usize,
    bytes: [u8; LONGEST],
}

impl ReceivedMessage {
    /// Copies a packet; none if it is too long.
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

    /// The packet's bytes.
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
