//! What the stages after the second share: a loop over rows in place of a loop over packets.

use crate::common::{Count, Next};
use crate::header::{FRONT, Inner, OFFSET, OUTER, write};
use volley_sdk::prelude::*;

/// What is known of the packets of a vector before they are divided.
pub struct Rows {
    /// Pair of each packet, 0 for none.
    pub pairs: Box<[u64]>,
    /// Destination of each packet.
    pub destinations: Box<[u32]>,
    /// 0 for a packet that is encapsulated, else the code of the counter that it is dropped for.
    pub verdicts: Column,
}

impl Rows {
    /// For vectors of up to `size` packets.
    pub fn new(size: usize) -> Self {
        Rows {
            pairs: vec![0; size].into(),
            destinations: vec![0; size].into(),
            verdicts: Column::new(size),
        }
    }

    /// Drop packets one after the other, each by a branch; the pairs of the others stay in order.
    // ANCHOR: sift
    pub fn sift<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: &mut Vector<'_, I, Next>) {
        let verdicts = self.verdicts.words(v.len());
        let (pairs, mut row, mut kept) = (&mut self.pairs, 0, 0);
        let stays = |packet: &mut Packet<'_>| {
            let (verdict, pair) = (verdicts[row], pairs[row]);
            row += 1;
            if verdict != 0 {
                return packet.fail(cx, Count::from_code(verdict));
            }
            pairs[kept] = pair;
            kept += 1;
            true
        };
        v.sift(stays, Next::Drop);
    }
    // ANCHOR_END: sift
}

/// Why a packet is dropped: 0 when it is not.
#[inline(always)]
pub fn verdict(is_ip4: bool, pair: u64) -> u32 {
    let not_found = u32::from(pair == 0) * Count::NotFound.code();
    let not_ip4 = Count::NotIp4.code();
    let mask = u32::from(is_ip4).wrapping_neg();
    not_found & mask | not_ip4 & !mask
}

/// Prefetch the two cache lines of a packet that a stage touches: its header, and the headroom, where the new header is written.
// ANCHOR: prefetch
#[inline(always)]
pub fn prefetch_packet<I: Isa>(v: &mut Vector<'_, I, Next>, row: usize) {
    let start: *const u8 = v.front::<1>(row).as_ptr();
    prefetch(start);
    prefetch_write(start.wrapping_sub(OUTER));
}
// ANCHOR_END: prefetch

/// The words of a packet's headers.
#[inline(always)]
pub fn inner<I: Isa>(v: &Vector<'_, I, Next>, row: usize) -> Inner {
    Inner(v.head(row, OFFSET))
}

/// Encapsulate all packets of a vector, whose pairs are in `pairs`, and send them back.
// ANCHOR: finish
#[inline(always)]
pub fn finish<I: Isa>(cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>, pairs: &[u64]) -> Consumed {
    cx.count(Count::Encapsulated, v.len() as u64);
    v.retreat(OUTER as u32);
    for row in 0..v.len() {
        let inner = Inner(v.head(row, OUTER + OFFSET));
        let pair = pairs[row];
        let outer = inner.outer((pair >> 32) as u32, pair as u32);
        write(v.front::<FRONT>(row), outer, pair);
    }
    send_back(v)
}
// ANCHOR_END: finish

/// Send each packet to the interface that received it.
#[inline(always)]
pub fn send_back<I: Isa>(mut v: Vector<'_, I, Next>) -> Consumed {
    match v.same(Col::RX) {
        Some(rx) => v.column_mut(Col::TX).fill(rx),
        None => {
            for row in 0..v.len() {
                let rx = v.column(Col::RX)[row];
                v.column_mut(Col::TX)[row] = rx;
            }
        }
    }
    v.send_all(Next::Output)
}
