//! The stages.

pub mod ip_in_ip_columns;
pub mod ip_in_ip_one;
pub mod ip_in_ip_prefetch;
pub mod ip_in_ip_split;
pub mod ip_in_ip_unroll;
pub mod ip_in_ip_vector;
