//! The nodes of scripts, and nodes that only benchmarks use.

pub(crate) mod lua_input;
pub(crate) mod scatter;
