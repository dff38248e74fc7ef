//! Functions for the fuzz targets in `fuzz/`.

use crate::packet;

/// Identifier and sequence number of the echo request that a packet answers.
pub fn answer(packet: &[u8]) -> Option<(u16, u16)> {
    packet::read(packet).map(|answer| (answer.id, answer.number))
}

/// Whether a packet is an echo reply.
pub fn is_reply(packet: &[u8]) -> bool {
    packet::is_reply(packet)
}
