//! Common test beds.

pub(crate) mod fib;
pub(crate) mod fragments;
pub(crate) mod line;
