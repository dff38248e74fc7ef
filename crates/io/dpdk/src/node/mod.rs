//! Nodes.

pub mod dpdk_input;
pub mod dpdk_tx;
