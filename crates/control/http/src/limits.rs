//! Bounds that clients meet.

use std::time::Duration;

/// Bounds that clients meet.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest body in bytes.
    pub body: usize,
    /// Bytes of all bodies that are held at a time.
    pub all_bodies: usize,
    /// Connections at once on the unix socket, and as many over TCP; further ones get 503 and are closed.
    pub clients: usize,
    /// Connections at once from one source over TCP (IPv6: one /64), handshakes included; further ones are closed.
    pub per_source: usize,
    /// Time to send the head of a request, and to think before it.
    pub send_head: Duration,
    /// Time to send the body.
    pub finish_body: Duration,
    /// Longest time without a byte of the answer taken.
    pub take_answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body: 64 << 20,
            all_bodies: 256 << 20,
            clients: 256,
            per_source: 32,
            send_head: Duration::from_secs(30),
            finish_body: Duration::from_secs(30),
            take_answer: Duration::from_secs(10),
        }
    }
}
