//! Faults of a peer by name, as `show vhost-user` and `show hardware-interfaces` print them.

use rustix::io::Errno;
use std::fmt;

macro_rules! faults {
    ($($(#[doc = $text:literal])+ $variant:ident = $name:literal;)*) => {
        /// A fault of a ring, found by workers while packets pass.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        pub enum RingFault { $($(#[doc = $text])+ $variant),* }

        impl RingFault {
            const ALL: &[RingFault] = &[$(RingFault::$variant),*];

            /// Public name of the fault.
            pub fn name(self) -> &'static str {
                match self { $(RingFault::$variant => $name),* }
            }

            /// Description of the fault in one sentence.
            pub fn text(self) -> &'static str {
                match self { $(RingFault::$variant => concat!($($text),+).trim_ascii()),* }
            }
        }
    };
}

faults! {
    /// the available index is further ahead than the ring is long
    IndexJump = "index-jump";
    /// a descriptor index is not below the ring size
    IndexRange = "index-out-of-range";
    /// a descriptor chain is longer than its table, or has no end
    ChainLoop = "descriptor-loop";
    /// a descriptor chain has more parts than any packet needs
    ChainLong = "descriptor-chain-too-long";
    /// a buffer does not lie in the shared memory
    Address = "address-outside-memory";
    /// a buffer to be read is marked for writing, or vice versa
    Direction = "descriptor-wrong-direction";
    /// an indirect table lies outside the memory, is empty, nested, chained on, or no multiple of 16 bytes
    Indirect = "bad-indirect-table";
    /// indirect descriptors were not negotiated
    NotNegotiated = "indirect-not-negotiated";
    /// the peer gave a buffer back that it did not have
    NotLent = "buffer-not-lent";
    /// the peer wrote more into a buffer than it holds
    Length = "length-beyond-buffer";
    /// the number of merged buffers is wrong
    Merged = "bad-buffer-count";
    /// the peer has shrunk the memory that it shares
    Shrunk = "memory-shrunk";
    /// pages that the peer shares, and never wrote, would cost this process more than peer_charge_mb permits
    Charge = "memory-charge-limit";
}

impl RingFault {
    /// The fault with this number.
    pub fn of(number: u32) -> Option<RingFault> {
        RingFault::ALL.get(number as usize).copied()
    }
}

/// Reason why the interface went down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Public name of the fault.
    pub name: &'static str,
    /// Description in one sentence, with numbers.
    pub text: String,
}

impl Fault {
    /// A fault with the given name and description.
    pub fn new(name: &'static str, text: impl Into<String>) -> Fault {
        Fault {
            name,
            text: text.into(),
        }
    }
}

impl Fault {
    /// The fault of a peer to which a message cannot be sent, or from which none can be received.
    pub fn of_socket(error: Errno) -> Fault {
        match error {
            Errno::AGAIN => Fault::new("peer-does-not-read", "the peer's socket is full"),
            Errno::PIPE | Errno::CONNRESET => {
                Fault::new("peer-closed", "the peer has closed the connection")
            }
            other => Fault::new("socket-error", other.to_string()),
        }
    }
}

impl From<RingFault> for Fault {
    fn from(ring: RingFault) -> Fault {
        Fault::new(ring.name(), ring.text())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.text)
    }
}
