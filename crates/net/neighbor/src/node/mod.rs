//! Nodes of the neighbour protocols. `ip_glean` is one body for both IP versions.

pub mod arp_input;
pub mod arp_reply;
pub mod ip_glean;
pub mod nd_input;
pub mod nd_reply;
pub mod neighbor_output;
