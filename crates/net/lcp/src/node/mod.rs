//! The nodes of the Linux mirror.

pub mod linux_cp_punt;
pub mod linux_cp_xc;
