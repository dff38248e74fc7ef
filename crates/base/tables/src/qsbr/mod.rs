//! Quiescent-state-based reclamation (QSBR): snapshots for readers that must never wait.
//!
//! # Contract
//! - A worker registers a [`Reader`], reads published values under a [`Guard`] and calls
//!   [`Reader::quiescent`] once per loop, when it has no guard (the borrow checker ensures this).
//!   This costs one load and one store; there are no other writes to shared memory.
//! - A writer publishes a new value and continues at once. The old value is *retired*: [`Domain::reclaim`] drops it on
//!   the control thread after every online reader has been quiescent. While no reader is registered, the thread that retires
//!   the value, or that removes the last reader, drops it at once.
//! - Every change has a *ticket* ([`Publisher::publish`], [`Domain::epoch`]). [`Domain::passed`] returns whether
//!   all readers use the change; the change can then be reported as complete.
//! - A worker goes [`Reader::offline`] before it sleeps; no grace period waits for it then.
//!
//! # Why it is sound
//! A ticket is the epoch after the change. A reader that has loaded epoch `e` (acquire) sees every change with a
//! ticket up to `e`, because the epoch is advanced (release) after the change was stored; it then publishes `e` in
//! its slot (release), after its last use of older values. A writer that finds `e >= ticket` in every slot (acquire)
//! therefore knows that no reader has, or can still find, the value that the change replaced.
//! Going online is the only operation with a store followed by a load of another location (slot, then pointer), against the
//! writer's pointer, then slot: both sides have a sequentially consistent fence there.

mod domain;
mod grace;
mod snap;

pub use domain::{Domain, Guard, Reader};
pub use grace::GracePeriod;
pub use snap::{Publisher, Snap};
