//! From a stream's description to bytes: what is worked out once on the control thread, and what is left for workers.

pub(crate) mod bits;
pub(crate) mod pick;
pub(crate) mod program;
pub(crate) mod sums;
pub(crate) mod template;
pub(crate) mod unroll;
pub(crate) mod values;
