//! The nodes of neighbours. `ip_glean` is one body for both families.

pub mod arp_input;
pub mod arp_reply;
pub mod ip_glean;
pub mod neighbor_output;
