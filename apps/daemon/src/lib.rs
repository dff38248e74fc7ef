//! The daemon as a library: the assembled router ([`stack`]), the control thread that runs it ([`run`]), and what commands need
//! that work without a daemon ([`check`], [`objects`]).
//!
//! The program `volley` is a thin layer over it; benchmark, demo and tests drive [`stack::Stack`] in their own process.
#![forbid(unsafe_code)]

mod calls;
pub mod check;
mod features;
mod latency;
mod lcp;
pub mod limits;
mod notice;
pub mod objects;
mod observe;
pub mod perfmon;
pub mod run;
mod settings;
pub mod show;
pub mod stack;
mod verbs;
mod watch;
mod workers;

pub use settings::{Capabilities, EngineSettings, IsaChoice, ProcessSettings, Seccomp, Settings};
