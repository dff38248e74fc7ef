//! The nodes of Ethernet.

pub mod ethernet_input;
