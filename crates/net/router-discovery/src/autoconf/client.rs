//! An interface that configures itself.

use super::state::State;
use std::collections::BTreeSet;
use volley_model::IfAddress;

/// An interface that configures itself.
pub(crate) struct Client {
    pub default_route: bool,
    /// None while the interface is down, uses another interface's addresses, or has no neighbours by its kind.
    pub state: Option<State>,
    /// Addresses that the FIB got.
    pub given: BTreeSet<IfAddress>,
    /// Addresses of which the operator was told that the FIB refused them.
    pub told: BTreeSet<IfAddress>,
}

impl Client {
    /// The state, where it may hear something.
    pub fn open(&mut self) -> Option<&mut State> {
        self.state.as_mut().filter(|state| !state.disabled)
    }
}
