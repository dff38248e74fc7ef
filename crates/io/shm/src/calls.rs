//! System calls of the control thread about a peer that can fail or have nothing yet, and the time of the control thread.
//!
//! A driver asks [`Calls::before`] before each of these calls. [`Kernel`] lets all of them happen; a simulation makes them
//! fail by seed (`tests/support/simulation.rs`). Workers make none of these calls.

use rustix::io::Errno;
use std::time::Instant;

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Connect to a server.
    Connect,
    /// Accept the next connection.
    Accept,
    /// Send a message.
    Send,
    /// Receive a message.
    Receive,
    /// Receive the files of a message, which need descriptors.
    ReceiveFile,
    /// Report when a socket is readable.
    Watch,
    /// Map a region of the peer.
    PeerMemory,
    /// Create and map memory for a peer.
    OwnMemory,
    /// Use an event counter of the peer.
    PeerEvent,
    /// Create an event counter.
    OwnEvent,
}

/// Decides whether calls happen.
pub trait Calls {
    /// Called before each call; after an error the call does not happen and has this error.
    fn before(&self, _: Call) -> Result<(), Errno> {
        Ok(())
    }

    /// As `before(Call::Receive)`; false: no message has arrived yet.
    fn before_receive(&self) -> Result<bool, Errno> {
        match self.before(Call::Receive) {
            Ok(()) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The time.
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// All calls happen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel;

impl Calls for Kernel {}
