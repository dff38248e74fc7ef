//! The nodes of the DHCP relay.

pub mod dhcp4_relay;
pub mod dhcp6_relay;
