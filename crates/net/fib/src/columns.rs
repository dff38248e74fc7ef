//! Columns that IP nodes pass to the next node.

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
/// Result of the lookup: the FIB's forwarding object.
pub const DPO: ColumnInfo = ColumnInfo::new("dpo", ColumnKind::Value, 4, IP);
/// Flow hash of a packet that does not contain its ports (a fragment); 0 for none.
pub const FLOW_HASH: ColumnInfo = ColumnInfo::new("flow-hash", ColumnKind::Mark, 0, IP);

/// Total length field of the IP header.
pub const TOTAL_LENGTH: ColumnInfo =
    ColumnInfo::new("ip-total-length", ColumnKind::Value, 5, Life::Hop);
/// Bytes between the first byte of the IP header and the header after the IP header and its extensions: from the local node to
/// the nodes of upper protocols.
pub const UPPER_OFFSET: ColumnInfo =
    ColumnInfo::new("ip-upper-offset", ColumnKind::Value, 5, Life::Hop);
/// The MTU that a multicast packet exceeds: to the nodes of ICMP errors.
pub const GROUP_MTU: ColumnInfo = ColumnInfo::new("ip-group-mtu", ColumnKind::Value, 5, Life::Hop);

/// Columns that depend on the destination: nodes that derive packets from others clear them.
pub const DESTINATION: [Col; 5] = [DST.col, DST1.col, DST2.col, DST3.col, DPO.col];

/// Columns of the forwarding decision: nodes that terminate or return packets clear them.
pub const FORWARDING: [Col; 6] = [
    DST.col,
    DST1.col,
    DST2.col,
    DST3.col,
    FLOW_HASH.col,
    DPO.col,
];
