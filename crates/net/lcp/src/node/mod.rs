//! The nodes of the Linux control plane.

pub mod linux_cp_punt;
pub mod linux_cp_xc;
