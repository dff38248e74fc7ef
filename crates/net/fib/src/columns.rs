//! The columns that nodes of IP hand on.

use volley_graph::{Col, ColumnInfo, ColumnKind, Life};

/// The layer whose nodes handle packets by their IP header.
const IP: Life = Life::Layer("ip");

/// An IPv4 destination, or bits 127..96 of an IPv6 destination, in host order.
pub const DST: ColumnInfo = ColumnInfo::new("ip-dst", ColumnKind::Value, 0, IP);
/// Bits 95..64 of an IPv6 destination.
pub const DST1: ColumnInfo = ColumnInfo::new("ip-dst-1", ColumnKind::Value, 1, IP);
/// Bits 63..32 of an IPv6 destination.
pub const DST2: ColumnInfo = ColumnInfo::new("ip-dst-2", ColumnKind::Value, 2, IP);
/// Bits 31..0 of an IPv6 destination.
pub const DST3: ColumnInfo = ColumnInfo::new("ip-dst-3", ColumnKind::Value, 3, IP);
/// What a lookup found: the FIB's forwarding object.
pub const DPO: ColumnInfo = ColumnInfo::new("dpo", ColumnKind::Value, 4, IP);
/// The flow's hash, where the packet by itself does not tell it: a fragment without ports. 0 for none.
pub const FLOW_HASH: ColumnInfo = ColumnInfo::new("flow-hash", ColumnKind::Mark, 0, IP);

/// The total length that the IP header states.
pub const TOTAL_LENGTH: ColumnInfo =
    ColumnInfo::new("ip-total-length", ColumnKind::Value, 5, Life::Hop);
/// Bytes between the IP header's first byte and the header behind the IP header and its extensions: from the local node to the nodes
/// of upper protocols.
pub const UPPER_OFFSET: ColumnInfo =
    ColumnInfo::new("ip-upper-offset", ColumnKind::Value, 5, Life::Hop);
/// The MTU that a packet for a group is too long for: to the nodes of ICMP errors.
pub const GROUP_MTU: ColumnInfo = ColumnInfo::new("ip-group-mtu", ColumnKind::Value, 5, Life::Hop);

/// The columns that follow from where a packet is to go: nodes that make others from packets forget them.
pub const DESTINATION: [Col; 5] = [DST.col, DST1.col, DST2.col, DST3.col, DPO.col];

/// The columns that say where a packet goes: nodes that end or turn it round forget them.
pub const FORWARDING: [Col; 6] = [
    DST.col,
    DST1.col,
    DST2.col,
    DST3.col,
    FLOW_HASH.col,
    DPO.col,
];
