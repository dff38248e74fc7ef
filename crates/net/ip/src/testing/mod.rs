//! What tests of several nodes stand on.

pub(crate) mod fib;
pub(crate) mod fragments;
pub(crate) mod line;
