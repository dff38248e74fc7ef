//! ICMP errors: conditions, contents and rate limits. `docs/icmp.md` is the operator's page.
//!
//! A node that drops a packet counts it under its reason and sends it to the error node instead of `error-drop`. The error node
//! derives the message from the reason, creates the error as a second packet, and forwards the first to `error-drop`.

mod control;
mod limits;
mod message;
mod protocol;
mod reason;
mod v4;
mod v6;
mod way;

pub use control::IcmpSwitches;
pub(crate) use control::own;
pub(crate) use limits::Limits;
pub use message::ErrorReason;
pub(crate) use message::{Class, LONGEST, Suppressed, be16};
pub use protocol::Icmp;
pub(crate) use reason::Reasons;
pub(crate) use way::{ends, leaves_from, mtu};
