//! The columns that `l2-learn` hands on to `l2-fwd`: the destination's MAC address.

use volley_graph::Col;

/// The first four bytes.
pub(crate) const DST_HIGH: Col = Col::Key0;
/// The last two bytes in the upper half; the lower half is the number of the bridge domain.
pub(crate) const DST_LOW: Col = Col::Key1;
