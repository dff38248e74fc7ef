//! Columns that bridge nodes pass to the next node.

use volley_graph::{ColumnInfo, ColumnKind, Life};

/// The layer whose nodes handle frames by their MAC addresses.
const BRIDGE: Life = Life::Layer("bridge");

/// Bytes 0 to 3 of the destination MAC address.
pub(crate) const DST_HIGH: ColumnInfo =
    ColumnInfo::new("bridge-dst-high", ColumnKind::Value, 0, BRIDGE);
/// Bytes 4 and 5 of the destination MAC address in the upper half; the lower half is the slot of the bridge domain.
pub(crate) const DST_LOW: ColumnInfo =
    ColumnInfo::new("bridge-dst-low", ColumnKind::Value, 1, BRIDGE);
/// The edge that l2-fwd has selected.
pub(crate) const NEXT: ColumnInfo = ColumnInfo::new("l2-fwd-next", ColumnKind::Value, 5, Life::Hop);
