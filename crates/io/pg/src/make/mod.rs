//! From a stream's description to bytes: the part that is computed once on the control thread, and the part for workers.

pub(crate) mod bits;
pub(crate) mod pick;
pub(crate) mod program;
pub(crate) mod sums;
pub(crate) mod template;
pub(crate) mod unroll;
pub(crate) mod values;
