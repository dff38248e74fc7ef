//! The nodes of interfaces.

pub mod interface_output;
pub mod interface_tx;
