//! Limits for clients.

use std::time::Duration;

/// Limits for clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum size of a body in bytes.
    pub body: usize,
    /// Maximum total size of the bodies in memory, in bytes.
    pub all_bodies: usize,
    /// Maximum number of connections on the unix socket, and of those over TCP; further ones get 503 and are closed.
    pub clients: usize,
    /// Maximum number of connections from one source over TCP (IPv6: one /64), handshakes included; further ones are closed.
    pub per_source: usize,
    /// Time within which a client must send the head of a request, idle time included.
    pub send_head: Duration,
    /// Time within which a client must send the body.
    pub finish_body: Duration,
    /// Maximum time in which the client reads no byte of the answer.
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
