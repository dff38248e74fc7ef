//! Development tools: the commands of `cargo xtask`, and the helpers of `dev/show` and `dev/experiments`.
#![forbid(unsafe_code)]

pub mod ahead;
pub mod arm;
pub mod bench;
pub mod budget;
pub mod cargo_test;
pub mod chart;
pub mod ci;
pub mod command;
pub mod deb;
pub mod disk;
pub mod docs;
pub mod error;
pub mod fresh;
pub mod guest;
pub mod home;
pub mod install;
pub mod measure;
pub mod new_node;
pub mod new_object;
pub mod readme;
pub mod report;
pub mod run;
pub mod sanitize;
mod sdk;
pub mod suite;
pub mod tidy;
pub mod tutorial;
pub mod x86_v2;
