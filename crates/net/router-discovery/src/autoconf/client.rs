//! State of an interface with SLAAC.

use super::state::State;
use std::collections::BTreeSet;
use volley_model::IfAddress;

/// An interface with SLAAC.
pub(crate) struct Client {
    pub default_route: bool,
    /// None while the interface is down, is unnumbered, or has a type without neighbours.
    pub state: Option<State>,
    /// Addresses that were added to the FIB.
    pub given: BTreeSet<IfAddress>,
    /// Addresses whose refusal by the FIB was reported to the operator.
    pub reported: BTreeSet<IfAddress>,
}

impl Client {
    /// The state, unless autoconfiguration is disabled on the interface.
    pub fn open(&mut self) -> Option<&mut State> {
        self.state.as_mut().filter(|state| !state.disabled)
    }
}
