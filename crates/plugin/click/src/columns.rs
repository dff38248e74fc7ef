//! The columns of the layer: what elements note about a packet (Click's annotations).

use volley_graph::{ColumnInfo, ColumnKind, Life, Packet, PacketView};

const CLICK: Life = Life::Layer("click");

/// Destination address of IPv4, 0 for none.
pub(crate) const DST: ColumnInfo = ColumnInfo::new("click-dst", ColumnKind::Value, 0, CLICK);
/// Colour, flags, packet type, input port, pointer of a parameter problem: see the constants.
pub(crate) const NOTE: ColumnInfo = ColumnInfo::new("click-note", ColumnKind::Value, 1, CLICK);
/// Place of the network header in the buffer, 0 for none.
pub(crate) const NET: ColumnInfo = ColumnInfo::new("click-net", ColumnKind::Value, 2, CLICK);

/// The columns of every node of the layer.
pub(crate) const ALL: &[ColumnInfo] = &[DST, NOTE, NET];

/// Colour of a packet.
pub(crate) const PAINT: u32 = 0xff;
/// Flag: `FixIPSrc` sets the source address.
pub(crate) const FIX_SRC: u32 = 1 << 8;
/// Packet type: 0 for this host, else one of the following.
pub(crate) const TYPE: u32 = 3 << 9;
/// The frame was for all stations.
pub(crate) const BROADCAST: u32 = 1 << 9;
/// The frame was for a group.
pub(crate) const MULTICAST: u32 = 2 << 9;
/// The frame was for another station.
pub(crate) const OTHER: u32 = 3 << 9;
/// Shift of the input port at which the packet arrives.
pub(crate) const PORT_SHIFT: u32 = 12;
/// Mask of the input port.
pub(crate) const PORT: u32 = 0x3ff << PORT_SHIFT;
/// Shift of the pointer of a parameter problem.
pub(crate) const POINTER_SHIFT: u32 = 24;

/// The word of [`NOTE`].
pub(crate) fn note(packet: &Packet<'_>) -> u32 {
    packet.get(NOTE.col).unwrap_or(0)
}

/// Replace the bits `mask` of [`NOTE`].
pub(crate) fn set_note(packet: &mut Packet<'_>, mask: u32, bits: u32) {
    let word = note(packet) & !mask | bits & mask;
    packet.set(NOTE.col, word);
}

/// The destination address.
pub(crate) fn dst(packet: &Packet<'_>) -> u32 {
    packet.get(DST.col).unwrap_or(0)
}

/// Set the destination address.
pub(crate) fn set_dst(packet: &mut Packet<'_>, address: u32) {
    packet.set(DST.col, address);
}

/// The network header, as an offset from the position; none without a header behind the position.
pub(crate) fn net(packet: &PacketView<'_>) -> Option<usize> {
    let at = packet.get(NET.col)? as usize;
    at.checked_sub(packet.position()).filter(|_| at != 0)
}

/// Set the network header to `offset` bytes behind the position.
pub(crate) fn set_net(packet: &mut Packet<'_>, offset: usize) {
    let at = packet.view().position() + offset;
    packet.set(NET.col, at as u32);
}

/// The input port at which the packet arrived; it is reset.
pub(crate) fn take_port(packet: &mut Packet<'_>) -> usize {
    let word = note(packet);
    if word & PORT != 0 {
        packet.set(NOTE.col, word & !PORT);
    }
    ((word & PORT) >> PORT_SHIFT) as usize
}
