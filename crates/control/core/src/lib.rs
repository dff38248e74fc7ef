//! The control core: every change of the configuration passes through it, whatever face it came by.
//!
//! - [`State`] is the desired state: objects under typed keys whose order is the order of dependence.
//! - A [`Transaction`] is a group of requests, or a whole other state: checked against the state as a whole, planned as a
//!   difference, carried out through an [`Executor`] (the handlers), and taken back when a step fails.
//! - [`Core`] puts them together and tells [`Reader`]s what changed.
//! - [`Journal`] keeps commits on a disk so that one is there in full or not at all.
//!
//! True on entry: nothing; requests may ask for anything. True on exit: the state says what the handlers were told to do,
//! and what was refused has changed nothing. Nothing here panics, and nothing here knows a feature or a driver.
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
pub use events::{EventRead, HELD, Reader, Report, spelled};
pub use journal::Journal;
pub use key::{Key, Set, Value};
pub use plan::{NoProbe, Probe, Step, requests};
pub use secret::{hidden, without_secrets};
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
