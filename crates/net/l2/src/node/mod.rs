//! The nodes of layer 2.

pub mod l2_flood;
pub mod l2_fwd;
pub mod l2_learn;
pub mod l2_patch;
pub mod l2_xconnect;

use volley_graph::{Col, Isa, Nexts, Vector, all_equal};
use volley_iface::IfTable;

/// Writes the peer of each packet's receiving interface into the `TX` column.
#[inline(always)]
pub(crate) fn to_peers<I: Isa, X: Nexts>(table: &IfTable, v: &mut Vector<'_, I, X>) {
    let rx = v.column(Col::RX);
    if all_equal(rx) {
        let peer = rx.first().map_or(0, |&rx| table.patch_peer(rx));
        return v.column_mut(Col::TX).fill(peer);
    }
    for row in 0..v.len() {
        let peer = table.patch_peer(v.column(Col::RX)[row]);
        v.column_mut(Col::TX)[row] = peer;
    }
}
