//! Quiescent-state based reclamation: snapshots for readers that must never wait.
//!
//! # Contract
//! - A worker registers a [`Reader`], reads published values under a [`Guard`] and calls
//!   [`Reader::quiescent`] once per loop, when it holds no guard (the borrow checker sees to that).
//!   This costs one load and one store; there are no other writes to shared memory.
//! - A writer publishes a new value and goes on at once. The old value is *retired*: it is dropped by
//!   [`Domain::reclaim`] on the control thread after every online reader has been quiescent. While no reader is
//!   registered it is dropped at once, by whoever retires it or was the last to leave.
//! - Every change has a *ticket* ([`Publisher::publish`], [`Domain::epoch`]). [`Domain::passed`] says whether
//!   all readers use the change, which is when its caller may be told that it is done.
//! - A worker that is going to sleep goes [`Reader::offline`]; nobody waits for it then.
//!
//! # Why it is sound
//! A ticket is the epoch after the change. A reader that has loaded epoch `e` (acquire) sees every change with a
//! ticket up to `e`, because the epoch is advanced (release) after the change was stored; it then publishes `e` in
//! its slot (release), after its last use of older values. A writer that finds `e >= ticket` in every slot (acquire)
//! therefore knows that nobody holds, or can still find, the value that the change replaced.
//! Coming online is the one place with a store followed by a load of something else (slot, then pointer), against the
//! writer's pointer, then slot: both sides have a sequentially consistent fence there.

mod domain;
mod snap;

pub use domain::{Domain, Guard, Reader};
pub use snap::{Publisher, Snap};
