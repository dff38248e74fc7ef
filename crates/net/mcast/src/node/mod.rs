//! Multicast nodes, one body for both families: `ip4-replicate` and `ip6-replicate` are `ip_replicate`.

pub mod igmp_input;
pub mod ip_mfib_forward_lookup;
pub mod ip_mfib_forward_rpf;
pub mod ip_replicate;
pub mod ip_rewrite_mcast;
