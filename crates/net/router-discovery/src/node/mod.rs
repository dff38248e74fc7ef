//! The node of MLD listeners.

pub mod mld_input;
