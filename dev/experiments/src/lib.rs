//! Experiments that write a page: cache lines that workers contend for, estimates for more cores, the path batcher's
//! curves.
//! `cargo xtask contended`, `cargo xtask scaling` and `cargo xtask path-curves` run them.
#![forbid(unsafe_code)]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod contended;
pub mod paths;
pub mod scaling;
