//! The nodes of sub-interfaces.

pub mod vlan_input;
pub mod vlan_output;
