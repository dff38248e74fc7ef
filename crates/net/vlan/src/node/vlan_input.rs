//! vlan-input: finds the sub-interface of tagged frames, removes the tags, and passes them to the receive arc of that interface
//! (IEEE 802.1Q, 6.9 and 9.6). The order of the checks is that of `docs/sub-interfaces.md`.
//!
//! On entry the position is 14 bytes after the Ethernet header; on exit at the Ethernet header of an untagged frame, with the
//! sub-interface in `RX`. No frame passes this node twice.

use crate::table::{TagSnap, TagView, Unknown};
use std::sync::Arc;
use volley_graph::{
    Col, Column, Consumed, Counters, Cx, Isa, Node, NodeId, PacketTrace, PacketView, Trace,
    TraceNames, Vector, Words, counters, nexts,
};
use volley_iface::{Direction, Flag, IfTable, TagKind, Tags};
use volley_wire::ethertype::{self, is_tag};

/// Length of an Ethernet header.
const HEADER: u32 = 14;
/// Length of a tag.
const TAG: u32 = 4;

nexts! {
    /// Where vlan-input sends packets, besides the arc of received packets.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What vlan-input counts.
    pub enum Count {
        /// the frame ends inside a tag
        TruncatedTag = "truncated-tag" (Error),
        /// no sub-interface has the frame's outer VLAN
        UnknownVlan = "unknown-vlan" (Error),
        /// sub-interfaces have the outer VLAN, but with another tag behind it, or none
        UnknownInnerVlan = "unknown-inner-vlan" (Error),
        /// the frame has more than two tags
        TooManyTags = "too-many-tags" (Error),
        /// the sub-interface is down, or its parent is
        SubInterfaceDown = "sub-interface-down" (Error),
        /// frames with a priority and no VLAN: they are the parent's
        Priority = "priority-tagged" (Info),
    }
}

/// State of vlan-input.
pub struct VlanInput {
    table: Arc<IfTable>,
    tags: TagSnap,
    worker: usize,
    header: Words<3>,
    verdict: Column,
    rx: Column,
    lead: Column,
    nodes: Column,
}

/// Result for a frame: interface, and bytes of tags.
struct Found {
    rx: u32,
    tags: u32,
}

/// EtherType of customer tags.
const VLAN: u32 = ethertype::VLAN as u32;

/// Parses the tags of a frame; none for a priority-tagged frame. `words` are bytes 12 to 24 of the frame.
#[inline(always)]
fn parse(len: u32, words: [u32; 3]) -> Result<Option<Tags>, Count> {
    let [outer, inner, third] = words;
    if len < HEADER + TAG {
        return Err(Count::TruncatedTag);
    }
    let kind = if outer >> 16 == VLAN {
        TagKind::Dot1q
    } else {
        TagKind::Dot1ad
    };
    let (vlan, double) = (outer as u16 & 0xfff, is_tag((inner >> 16) as u16));
    if double && len < HEADER + 2 * TAG {
        return Err(Count::TruncatedTag);
    }
    if double && is_tag((third >> 16) as u16) {
        return Err(Count::TooManyTags);
    }
    match (double, vlan) {
        (false, 0) => Ok(None),
        (false, _) => Ok(Some(Tags {
            kind,
            vlan,
            inner: None,
        })),
        // An inner tag of another type belongs to no sub-interface: 4095 is no valid VLAN.
        (true, _) => {
            let other = if inner >> 16 == VLAN { 0 } else { 0xfff };
            let inner = Some(inner as u16 & 0xfff | other);
            Ok(Some(Tags { kind, vlan, inner }))
        }
    }
}

/// Finds the interface of a frame and the length of its tags.
#[inline(always)]
fn find(
    table: &IfTable,
    view: TagView<'_>,
    rx: u32,
    len: u32,
    words: [u32; 3],
) -> Result<Found, Count> {
    let Some(tags) = parse(len, words)? else {
        return Ok(Found { rx, tags: TAG });
    };
    let sub = view.find(rx, tags).map_err(|unknown| match unknown {
        Unknown::Vlan => Count::UnknownVlan,
        Unknown::Inner => Count::UnknownInnerVlan,
    })?;
    if !table.has(sub, Flag::Up) {
        return Err(Count::SubInterfaceDown);
    }
    let tags = tags.len();
    Ok(Found { rx: sub, tags })
}

/// Removes `N` bytes of tags from the start of a frame.
#[inline(always)]
fn strip<const N: usize>(frame: &mut [u8; 24]) {
    let mut macs = [0; 12];
    macs.copy_from_slice(&frame[..12]);
    frame[N..N + 12].copy_from_slice(&macs);
}

impl VlanInput {
    /// State for vectors of up to `size` packets on a worker.
    pub fn new(table: Arc<IfTable>, tags: TagSnap, worker: usize, size: usize) -> Self {
        let column = || Column::new(size);
        VlanInput {
            table,
            tags,
            worker,
            header: Words::new(size),
            verdict: column(),
            rx: column(),
            lead: column(),
            nodes: column(),
        }
    }

    /// Computes the columns of all packets: verdict, interface, bytes of tags.
    #[inline(always)]
    fn find_all<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: &Vector<'_, I, Next>) {
        let n = v.len();
        let view = self.tags.read(cx.guard());
        let (verdict, to, lead) = (
            self.verdict.words_mut(n),
            self.rx.words_mut(n),
            self.lead.words_mut(n),
        );
        let (from, lens) = (v.column(Col::RX), v.column(Col::LEN));
        let mut priority = 0;
        for row in 0..n {
            let rx = from[row];
            let found = find(&self.table, view, rx, lens[row], self.header.row(row));
            let (code, found) = match found {
                Ok(found) => (0, found),
                Err(why) => (why.code(), Found { rx, tags: 0 }),
            };
            priority += u64::from(code == 0 && found.rx == rx);
            (verdict[row], to[row], lead[row]) = (code, found.rx, found.tags);
        }
        cx.count(Count::Priority, priority);
    }

    /// Removes the tags.
    #[inline(always)]
    fn strip_all<I: Isa>(&self, v: &mut Vector<'_, I, Next>) {
        match v.same(Col::START) {
            Some(4) => {
                v.apply::<24>(|_, frame| strip::<4>(frame));
                v.advance(4);
            }
            Some(8) => {
                v.apply::<24>(|_, frame| strip::<8>(frame));
                v.advance(8);
            }
            _ => v.sift(
                |packet| {
                    let tags = packet.get(Col::START).unwrap_or(0) as usize;
                    if let Some(head) = packet.bytes_mut().get_mut(..12 + tags) {
                        head.copy_within(..12, tags);
                    }
                    packet.advance(tags);
                    true
                },
                Next::Drop,
            ),
        }
    }

    /// Counts packets of sub-interfaces, and passes them to captures.
    #[inline(always)]
    fn note<I: Isa>(&self, cx: &Cx<'_, Count>, v: &Vector<'_, I, Next>) {
        let (rx, lens) = (v.column(Col::RX), v.column(Col::LEN));
        let count = |rx: u32, packets: u64, bytes: u64| {
            if self.table.sub(rx).is_some() {
                let table = &self.table;
                table.count(self.worker, rx, Direction::Rx, packets, bytes);
            }
        };
        if let Some(rx) = v.same(Col::RX) {
            let bytes = lens.iter().map(|&len| u64::from(len)).sum();
            count(rx, v.len() as u64, bytes);
        } else {
            let rows = rx.iter().zip(lens);
            rows.for_each(|(&rx, &len)| count(rx, 1, u64::from(len)));
        }
        if let Some(tap) = self.table.tap(Direction::Rx) {
            for row in (0..v.len()).filter(|&row| self.table.sub(rx[row]).is_some()) {
                tap.packet_passed(Direction::Rx, rx[row], &v.view(row), cx.now_ns());
            }
        }
    }

    /// The next node for packets of an interface: packets of the parent itself have already passed the receive arc.
    #[inline(always)]
    fn node<I: Isa>(&self, v: &Vector<'_, I, Next>, rx: u32) -> NodeId {
        match self.table.sub(rx) {
            Some(_) => v.receiver(rx),
            None => v.receive_end(),
        }
    }
}

impl Node for VlanInput {
    const NAME: &'static str = "vlan-input";
    type Next = Next;
    type Count = Count;
    type Trace = TagTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        v.retreat(HEADER);
        v.words(12, &mut self.header);
        self.find_all(cx, &v);
        v.put(Col::RX, &mut self.rx);
        v.put(Col::START, &mut self.lead);
        v.drop_out(cx, &self.verdict, |_| Next::Drop);
        if v.is_empty() {
            return v.send_all(Next::Drop);
        }
        self.strip_all(&mut v);
        self.note(cx, &v);
        if let Some(rx) = v.same(Col::RX) {
            let node = self.node(&v, rx);
            return v.send_all_to(node);
        }
        let mut nodes = std::mem::take(&mut self.nodes);
        let words = nodes.words_mut(v.len()).iter_mut();
        for (node, &rx) in words.zip(v.column(Col::RX)) {
            *node = u32::from(self.node(&v, rx).0);
        }
        self.nodes = nodes;
        v.send_to(&self.nodes)
    }
}

/// The words of a frame from its outer EtherType on.
#[derive(Clone, Copy)]
pub struct TagTrace(PacketTrace);

impl Trace for TagTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        TagTrace(PacketTrace::note(packet))
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let word = |at: usize| match self.0.bytes().get(at..at + 2) {
            Some(&[a, b]) => Some(u16::from_be_bytes([a, b])),
            _ => None,
        };
        let tag = |at| {
            let tci = word(at)?;
            Some(format!("vlan {} priority {}", tci & 0xfff, tci >> 13))
        };
        let outer = tag(0).unwrap_or_else(|| "cut short".to_owned());
        let kind = word(2).unwrap_or(0);
        let inner = tag(4).filter(|_| is_tag(kind));
        let inner = inner.map_or(String::new(), |inner| format!(" {inner}"));
        let (len, rx) = (self.0.len(), names.interface(self.0.rx()));
        format!("{outer} type 0x{kind:04x}{inner}, {len} bytes, rx {rx}")
    }
}

#[cfg(test)]
mod tests;
