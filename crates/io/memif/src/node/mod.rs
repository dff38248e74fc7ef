//! Nodes of memif interfaces.

pub mod memif_input;
pub mod memif_tx;
