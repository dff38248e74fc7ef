//! vlan-output: adds the tags of the sub-interface to frames, and sends them to the parent's transmit node.
//!
//! On entry the position is at the Ethernet header, and `TX` is the sub-interface; on exit `TX` is its parent. All producers of
//! frames (forwarding, ARP, ND, ICMP, the router's own packets, cross-connects) write untagged frames: only this node adds
//! tags. Checksum and segmentation offloads were resolved before.

use std::sync::Arc;
use volley_graph::{
    Col, Column, ColumnInfo, ColumnKind, Consumed, Counters, Cx, Isa, Life, Node, Packet,
    PacketTrace, Vector, counters, nexts,
};
use volley_iface::{Direction, IfTable, Sub};

nexts! {
    /// Where vlan-output sends packets, besides to transmit nodes.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What vlan-output counts.
    pub enum Count {
        /// the sub-interface was deleted while the frame was in flight
        NoSubInterface = "no-sub-interface" (Error),
        /// the buffer has no room for tags in front of the frame
        NoRoom = "no-room" (Error),
    }
}

/// Lower half of the word of the sub-interface ([`Sub`]), while packets without a sub-interface are dropped.
const SUB_LOW: ColumnInfo = ColumnInfo::new("vlan-output-low", ColumnKind::Value, 5, Life::Hop);
/// Upper half of that word.
const SUB_HIGH: ColumnInfo = ColumnInfo::new("vlan-output-high", ColumnKind::Value, 6, Life::Hop);

/// State of vlan-output.
pub struct VlanOutput {
    table: Arc<IfTable>,
    worker: usize,
    verdict: Column,
    low: Column,
    high: Column,
    nodes: Column,
}

/// The sub-interface in two columns.
#[inline(always)]
fn sub(low: u32, high: u32) -> Option<Sub> {
    Sub::from_word(u64::from(high) << 32 | u64::from(low))
}

/// Moves the MAC addresses `N` bytes to the front, and writes `N` bytes of tags after them.
#[inline(always)]
fn push<const N: usize>(frame: &mut [u8; 24], tags: [u8; 8]) {
    let mut macs = [0; 12];
    macs.copy_from_slice(&frame[N..N + 12]);
    frame[..12].copy_from_slice(&macs);
    frame[12..12 + N].copy_from_slice(&tags[..N]);
}

impl VlanOutput {
    /// State for vectors of up to `size` packets on a worker.
    pub fn new(table: Arc<IfTable>, worker: usize, size: usize) -> Self {
        let column = || Column::new(size);
        VlanOutput {
            table,
            worker,
            verdict: column(),
            low: column(),
            high: column(),
            nodes: column(),
        }
    }

    /// Adds tags of one length to all packets, by sub-interface.
    #[inline(always)]
    fn push_all<const N: usize, I: Isa>(&self, v: &mut Vector<'_, I, Next>, one: Option<Sub>) {
        v.retreat(N as u32);
        if let Some(sub) = one {
            let tags = sub.tags.bytes();
            return v.apply::<24>(|_, frame| push::<N>(frame, tags));
        }
        let (low, high) = (self.low.words(v.len()), self.high.words(v.len()));
        v.apply::<24>(|row, frame| {
            let tags = sub(low[row], high[row]).map_or([0; 8], |sub| sub.tags.bytes());
            push::<N>(frame, tags);
        });
    }

    /// Adds tags to packets with different lengths of tags.
    #[inline(never)]
    fn push_each<I: Isa>(&self, cx: &Cx<'_, Count>, v: &mut Vector<'_, I, Next>) {
        let one = |packet: &mut Packet<'_>| {
            let word = |col| packet.get(col).unwrap_or(0);
            let Some(sub) = sub(word(SUB_LOW.col), word(SUB_HIGH.col)) else {
                return packet.fail(cx, Count::NoSubInterface);
            };
            let len = sub.tags.len() as usize;
            if !packet.retreat(len) {
                return packet.fail(cx, Count::NoRoom);
            }
            if let Some(head) = packet.bytes_mut().get_mut(..12 + len) {
                head.copy_within(len.., 0);
                head[12..].copy_from_slice(&sub.tags.bytes()[..len]);
            }
            true
        };
        v.sift(one, Next::Drop);
    }

    /// Handles packets of several sub-interfaces: drops those of deleted ones, and writes the sub-interfaces of the others into
    /// two columns, so that they stay fixed during the frame. Returns the length of the tags if it is the same for all.
    #[inline(always)]
    fn sort<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: &mut Vector<'_, I, Next>) -> Option<u32> {
        let n = v.len();
        let (mut any, mut all) = (0, u32::MAX);
        let (verdict, low, high) = (
            self.verdict.words_mut(n),
            self.low.words_mut(n),
            self.high.words_mut(n),
        );
        for (row, &tx) in v.column(Col::TX).iter().enumerate() {
            let word = self.table.sub_word(tx);
            let len = Sub::from_word(word).map(|sub| sub.tags.len());
            verdict[row] = len.map_or(Count::NoSubInterface.code(), |_| 0);
            (low[row], high[row]) = (word as u32, (word >> 32) as u32);
            (any, all) = (any | len.unwrap_or(0), all & len.unwrap_or(u32::MAX));
        }
        v.put(SUB_LOW.col, &mut self.low);
        v.put(SUB_HIGH.col, &mut self.high);
        v.drop_out(cx, &self.verdict, |_| Next::Drop);
        (any == all).then_some(any)
    }

    /// Counts packets of several sub-interfaces by their untagged length.
    #[inline(always)]
    fn count<I: Isa>(&self, v: &Vector<'_, I, Next>) {
        let (low, high) = (self.low.words(v.len()), self.high.words(v.len()));
        let rows = v.column(Col::TX).iter().zip(v.column(Col::LEN));
        for (row, (&tx, &len)) in rows.enumerate() {
            let tags = sub(low[row], high[row]).map_or(0, |sub| sub.tags.len());
            let bytes = u64::from(len.saturating_sub(tags));
            self.table.count(self.worker, tx, Direction::Tx, 1, bytes);
        }
    }

    /// Passes packets to captures in the form in which the parent sends them.
    #[inline(always)]
    fn show<I: Isa>(&self, cx: &Cx<'_, Count>, v: &Vector<'_, I, Next>) {
        if let Some(tap) = self.table.tap(Direction::Tx) {
            for row in 0..v.len() {
                let parent = v.column(Col::TX)[row];
                tap.packet_passed(Direction::Tx, parent, &v.view(row), cx.now_ns());
            }
        }
    }

    /// Handles packets of one sub-interface.
    #[inline(always)]
    fn run_one<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        mut v: Vector<'_, I, Next>,
        tx: u32,
    ) -> Consumed {
        let Some(sub) = self.table.sub(tx) else {
            return v.fail_all(cx, Count::NoSubInterface, Next::Drop);
        };
        let bytes = v.column(Col::LEN).iter().map(|&len| u64::from(len)).sum();
        let packets = v.len() as u64;
        let table = &self.table;
        table.count(self.worker, tx, Direction::Tx, packets, bytes);
        match sub.tags.len() {
            4 => self.push_all::<4, I>(&mut v, Some(sub)),
            _ => self.push_all::<8, I>(&mut v, Some(sub)),
        }
        v.column_mut(Col::TX).fill(sub.parent.0);
        self.show(cx, &v);
        v.send_all_to(self.table.tx_node(sub.parent.0))
    }
}

impl Node for VlanOutput {
    const NAME: &'static str = "vlan-output";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;
    const COLUMNS: &'static [ColumnInfo] = &[SUB_LOW, SUB_HIGH];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        v.require(Col::TX, 0);
        v.forget(&[Col::START]);
        if let Some(tx) = v.same(Col::TX) {
            return self.run_one(cx, v, tx);
        }
        let len = self.sort(cx, &mut v);
        if len.is_none() {
            self.push_each(cx, &mut v);
        }
        v.take(SUB_LOW.col, &mut self.low);
        v.take(SUB_HIGH.col, &mut self.high);
        let n = v.len();
        match len {
            Some(4) => self.push_all::<4, I>(&mut v, None),
            Some(8) => self.push_all::<8, I>(&mut v, None),
            _ => {}
        }
        self.count(&v);
        let (low, high) = (self.low.words(n), self.high.words(n));
        let nodes = self.nodes.words_mut(n).iter_mut();
        for (row, (node, tx)) in nodes.zip(v.column_mut(Col::TX)).enumerate() {
            *tx = sub(low[row], high[row]).map_or(*tx, |sub| sub.parent.0);
            *node = u32::from(self.table.tx_node(*tx).0);
        }
        self.show(cx, &v);
        v.send_to(&self.nodes)
    }
}

#[cfg(test)]
mod tests;
