//! The columns that IP nodes hand on: the destination address in words, in host order.

use volley_graph::Col;

/// An IPv4 destination, or bits 127..96 of an IPv6 destination.
pub(crate) const DST: Col = Col::Key0;
/// Bits 95..64 of an IPv6 destination.
pub(crate) const DST1: Col = Col::Key1;
/// Bits 63..32 of an IPv6 destination.
pub(crate) const DST2: Col = Col::Key2;
/// Bits 31..0 of an IPv6 destination.
pub(crate) const DST3: Col = Col::Key3;
