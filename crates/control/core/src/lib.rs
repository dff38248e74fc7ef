//! The control core: every change of the configuration passes through it, whichever interface requested it.
//!
//! - [`State`] is the desired state: objects under typed keys whose order is the order of dependence.
//! - A [`Transaction`] is a group of requests, or a whole other state: checked against the state as a whole, planned as a
//!   difference, carried out through an [`Executor`] (the handlers), and rolled back when a step fails.
//! - [`Core`] combines state and transactions, and reports changes to [`Reader`]s.
//! - [`Journal`] stores commits on a disk atomically: a commit exists in full or not at all.
//!
//! Precondition: none; requests may have any content. Postcondition: the state is what the handlers carried out, and a refused
//! request has changed nothing. The crate does not panic, and depends on no feature and no driver.
#![forbid(unsafe_code)]

mod batch;
mod core;
mod edit;
mod events;
pub mod journal;
mod key;
mod make;
mod name;
mod plan;
mod secret;
mod state;
mod transaction;

pub use crate::core::Core;
pub use events::{HELD, Read, Reader, Report, created};
pub use journal::Journal;
pub use key::{Key, Set, Value};
pub use plan::{Probe, Step, requests};
pub use secret::without_secrets;
pub use state::{Changes, State};
pub use transaction::{Executor, Progress, Transaction, TransactionError};

#[cfg(test)]
mod batch_tests;
#[cfg(test)]
mod last_tests;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod together_tests;
