//! The nodes of IP. `ip_*` files contain one body for both families: `ip_lookup` is `ip4-lookup` and `ip6-lookup`.

pub mod ip4_input;
pub mod ip4_options;
pub mod ip6_hop_by_hop;
pub mod ip6_input;
pub mod ip_frag;
pub mod ip_full_reassembly;
pub mod ip_full_reassembly_handoff;
pub mod ip_icmp_echo_request;
pub mod ip_icmp_error;
pub mod ip_icmp_input;
pub mod ip_load_balance;
pub mod ip_local;
pub mod ip_lookup;
pub mod ip_not_enabled;
pub mod ip_redirect;
pub mod ip_rewrite;
pub mod ip_rx_urpf_strict;
pub mod ip_sv_reassembly;
pub mod ip_sv_reassembly_feature;
