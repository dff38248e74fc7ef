//! How far the detection of duplicates is with the addresses of an interface.

use crate::entry::Mac;
use std::collections::BTreeMap;
use volley_model::IfAddress;

/// How far an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// So many probes are still to be sent; the next thing happens then.
    Tentative { left: u32, at: u64 },
    /// Another station has it.
    Duplicate(Mac),
    /// No other host has answered.
    Good,
}

/// Addresses of one interface that duplicate address detection tests.
#[derive(Debug)]
pub(crate) struct Probing {
    pub probes: u32,
    pub states: BTreeMap<IfAddress, State>,
}

impl Probing {
    pub fn is_tentative(&self) -> bool {
        let mut states = self.states.values();
        states.any(|s| matches!(s, State::Tentative { .. }))
    }
}
