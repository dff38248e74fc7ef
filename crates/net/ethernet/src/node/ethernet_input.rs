//! ethernet-input: classifies received frames by destination address and EtherType (IEEE 802.3; RFC 894, RFC 2464). The order
//! of the checks is section 3 of `docs/forwarding-rules.md`.
//!
//! On entry the position is at the Ethernet header; on exit 14 bytes after it, on every edge but the drop.

use crate::link::{is_for_group, is_for_listener, membership};
use std::sync::Arc;
use volley_graph::{
    Col, Column, ColumnInfo, ColumnKind, Consumed, Counters, Cx, Isa, Life, Node, PacketTrace,
    PacketView, Trace, TraceNames, Vector, Words, counters, mask, nexts, node_code, or_all,
    strip_rows,
};
use volley_iface::{Flag, IfTable};
use volley_wire::{dissect, ethertype};

/// Length of an Ethernet header.
const HEADER: u32 = 14;

/// EtherTypes of the tags of sub-interfaces (IEEE 802.1Q, table 9-1).
const DOT1Q: u32 = ethertype::VLAN as u32;
const DOT1AD: u32 = ethertype::QINQ as u32;
const OLD_TAG: u32 = ethertype::QINQ_OLD as u32;
const IP4: u32 = ethertype::IP4 as u32;
const IP6: u32 = ethertype::IP6 as u32;

nexts! {
    /// Where ethernet-input sends packets.
    pub enum Next { Drop => "error-drop", Ip4 => "ip4-input", Ip6 => "ip6-input",
        Nd => "nd-input", Punt => "linux-cp-punt", Vlan => "vlan-input",
        Igmp => "igmp-input", Mld => "mld-router-input" }
}

counters! {
    /// What ethernet-input counts.
    pub enum Count {
        /// the frame is shorter than an Ethernet header
        TooShort = "too-short" (Error),
        /// the destination MAC address is another station's
        NotMyMac = "not-my-mac" (Error),
        /// the frame is tagged and no sub-interface takes the tag
        UnknownVlan = "unknown-vlan" (Error),
        /// no feature receives frames of the type
        UnknownType = "unknown-ethertype" (Error),
        /// the frame is for a group address, which is not forwarded (RFC 1812, 5.3.4)
        GroupMac = "group-mac" (Info),
    }
}

/// The selected edge, while packets are dropped.
const NEXT: ColumnInfo = ColumnInfo::new("ethernet-input-next", ColumnKind::Value, 5, Life::Hop);

/// State of ethernet-input.
pub struct EthernetInput {
    table: Arc<IfTable>,
    header: Words<4>,
    flags: Column,
    mac_high: Column,
    mac_low: Column,
    verdict: Column,
    next: Column,
}

impl EthernetInput {
    /// State for vectors of up to `size` packets.
    pub fn new(table: Arc<IfTable>, size: usize) -> Self {
        let column = || Column::new(size);
        EthernetInput {
            table,
            header: Words::new(size),
            flags: column(),
            mac_high: column(),
            mac_low: column(),
            verdict: column(),
            next: column(),
        }
    }

    /// Flags of an interface, and its MAC address as words in header layout.
    #[inline(always)]
    fn interface(&self, rx: u32) -> (u32, (u32, u32)) {
        let mac = self.table.mac(rx);
        (
            self.table.flags(rx),
            ((mac >> 16) as u32, mac as u32 & 0xffff),
        )
    }

    /// Writes flags and MAC address of each packet's interface into columns.
    #[inline(always)]
    fn interfaces(&mut self, rx: &[u32]) {
        let mut done = 0;
        // Packets of an interface are consecutive, one run for each vector that was merged into this one.
        for run in rx.chunk_by(|a, b| a == b) {
            let (flags, (high, low)) = self.interface(run[0]);
            let n = done + run.len();
            self.flags.words_mut(n)[done..].fill(flags);
            self.mac_high.words_mut(n)[done..].fill(high);
            self.mac_low.words_mut(n)[done..].fill(low);
            done = n;
        }
    }

    /// Selects the edge of every packet; `verdict` is nonzero for packets that need the slow path.
    #[inline(always)]
    fn glance<I: Isa>(
        &mut self,
        lens: &[[u32; 16]],
        n: usize,
        facts: impl Fn(usize, usize) -> (u32, (u32, u32)),
    ) {
        // Slices of equal length, so that the loop needs no bounds checks.
        let strips = n.div_ceil(16);
        let header = &self.header.strips(n)[..strips];
        let (odd, next) = (
            &mut self.verdict.strips_mut(n)[..strips],
            &mut self.next.strips_mut(n)[..strips],
        );
        let lens = &lens[..strips];
        for strip in 0..strips {
            let [h0, h1, _, h3] = &header[strip];
            for row in 0..strip_rows::<I>(n, strip) {
                let (flags, mac) = facts(strip, row);
                let (o, e) = glance(lens[strip][row], flags, mac, (h0[row], h1[row], h3[row]));
                (odd[strip][row], next[strip][row]) = (o, e);
            }
        }
    }

    /// Handles vectors of several interfaces, whose flags and MAC addresses are in columns.
    #[inline(always)]
    fn glance_each<I: Isa>(&mut self, v: &Vector<'_, I, Next>) {
        self.interfaces(v.column(Col::RX));
        let (flags, high, low) = (
            std::mem::take(&mut self.flags),
            std::mem::take(&mut self.mac_high),
            std::mem::take(&mut self.mac_low),
        );
        let n = v.len();
        let (f, h, l) = (flags.strips(n), high.strips(n), low.strips(n));
        self.glance::<I>(v.strips(Col::LEN), n, |strip, row| {
            (f[strip][row], (h[strip][row], l[strip][row]))
        });
        (self.flags, self.mac_high, self.mac_low) = (flags, high, low);
    }

    /// Whether all packets of a parent interface are tagged and addressed to it.
    #[inline(never)]
    fn all_tagged<I: Isa>(&self, v: &Vector<'_, I, Next>, flags: u32, mac: (u32, u32)) -> bool {
        let promiscuous = mask(flags & Flag::Promiscuous as u32 != 0);
        let n = v.len();
        let mut odd = 0;
        for (strip, [h0, h1, _, h3]) in self.header.strips(n).iter().enumerate() {
            for row in 0..(n - 16 * strip).min(16) {
                let kind = h3[row] >> 16;
                let tag = mask(kind == DOT1Q) | mask(kind == DOT1AD);
                let mine = mask((h0[row] ^ mac.0) | ((h1[row] >> 16) ^ mac.1) == 0);
                let group = mask(h0[row] & 1 << 24 != 0);
                odd |= !(tag & (mine | group | promiscuous));
            }
        }
        let long = |len: &u32| *len >= HEADER;
        odd == 0 && flags & PARENT != 0 && v.column(Col::LEN).iter().all(long)
    }

    /// Classifies the packets of a vector that need the slow path.
    #[inline(never)]
    fn judge_all<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: &mut Vector<'_, I, Next>) {
        let n = v.len();
        self.interfaces(v.column(Col::RX));
        let (flags, high, low) = (
            self.flags.words(n),
            self.mac_high.words(n),
            self.mac_low.words(n),
        );
        // For packets with verdict 0 the edge of the fast path is final.
        for (row, verdict) in self
            .verdict
            .words_mut(n)
            .iter_mut()
            .enumerate()
            .filter(|(_, verdict)| **verdict != 0)
        {
            let len = v.column(Col::LEN)[row];
            let header = self.header.row(row);
            *verdict = judge(len, flags[row], (high[row], low[row]), header);
            if *verdict == Count::UnknownVlan.code() && is_taken(len, flags[row], header) {
                (*verdict, self.next.words_mut(n)[row]) = (0, Next::Vlan as u32);
                continue;
            }
            if let Some(next) = membership(flags[row], *verdict, v.view(row).bytes()) {
                (*verdict, self.next.words_mut(n)[row]) = (0, next as u32);
                continue;
            }
            let routed = flags[row] & Flag::Multicast as u32 != 0;
            let heard = flags[row] & Flag::LinkUdp as u32 != 0;
            let (kind, frame) = (header[3] >> 16, v.view(row).bytes());
            if *verdict == Count::UnknownType.code()
                && let Some(listener) = self.table.ethertype_listener(kind as u16)
            {
                (*verdict, self.next.words_mut(n)[row]) = (0, node_code(listener));
                continue;
            }
            if routed && is_for_group(*verdict, kind, frame)
                || heard
                    && is_for_listener(*verdict, kind, frame, |family, port| {
                        let rx = v.column(Col::RX)[row];
                        self.table.hears_link(rx, family, port)
                    })
            {
                // The edge by EtherType is already set.
                *verdict = 0;
                continue;
            }
            if flags[row] & Flag::HasLcpTap as u32 != 0 && for_kernel(*verdict) {
                (*verdict, self.next.words_mut(n)[row]) = (0, Next::Punt as u32);
                continue;
            }
            let is_group = header[0] >> 24 & 1 != 0;
            if *verdict == 0 && kind == IP6 && is_group {
                self.next.words_mut(n)[row] = Next::Nd as u32;
            }
        }
        v.put(NEXT.col, &mut self.next);
        v.drop_out(cx, &self.verdict, |_| Next::Drop);
        v.take(NEXT.col, &mut self.next);
    }
}

/// Handles a few packets of one interface, one by one: returns their edge if it is the same for all and none needs the slow
/// path.
#[inline(always)]
fn few<I: Isa>(v: &mut Vector<'_, I, Next>, flags: u32, mac: (u32, u32)) -> Option<Next> {
    let mut all = 0;
    let fine = v.few_frames::<16, 1>([Col::LEN], |header, [len]| {
        let (words, _) = header.as_chunks::<4>();
        let [high, low, kind] = [0, 1, 3].map(|k| u32::from_be_bytes(words[k]));
        let (odd, edge) = glance(*len, flags, mac, (high, low, kind));
        // No edge is 0 here.
        let differs = all != 0 && edge != all;
        all = edge;
        odd == 0 && !differs
    });
    let mut edges = [Next::Ip4, Next::Ip6].into_iter();
    edges.find(|next| fine && *next as u32 == all)
}

/// A verdict that is nonzero for a frame that [`judge`] must check, and the edge of all others.
#[inline(always)]
fn glance(len: u32, flags: u32, mac: (u32, u32), header: (u32, u32, u32)) -> (u32, u32) {
    let (dst_high, dst_low_src, type_word) = header;
    // Masks instead of booleans: with booleans the compiler packs and unpacks vectors in the loops.
    let ip6 = mask(type_word >> 16 == IP6);
    let ip = ip6 | mask(type_word >> 16 == IP4);
    let mine = mask((dst_high ^ mac.0) | ((dst_low_src >> 16) ^ mac.1) == 0);
    let promiscuous = mask(flags & Flag::Promiscuous as u32 != 0) & mask(dst_high & 1 << 24 == 0);
    let goes = ip & (mine | promiscuous) & mask(len >= HEADER);
    // The edge of IPv6 follows that of IPv4.
    let edge = (Next::Ip4 as u32).wrapping_sub(ip6);
    (!goes, edge)
}

const PARENT: u32 = Flag::HasSubInterfaces as u32;
/// Flags of interfaces that receive neighbour discovery: those with an IPv6 address, and those with SLAAC.
const ND: u32 = Flag::Ip6 as u32 | Flag::Slaac as u32;

const _: () = assert!(Next::Ip6 as u32 == Next::Ip4 as u32 + 1 && Next::Ip4 as u32 != 0);

/// The verdict on one frame, in the order of the rules.
fn judge(len: u32, flags: u32, mac: (u32, u32), header: [u32; 4]) -> u32 {
    let [dst_high, dst_low_src, _, type_word] = header;
    let kind = type_word >> 16;
    let group = dst_high >> 24 & 1 != 0;
    let mine = (dst_high ^ mac.0) | ((dst_low_src >> 16) ^ mac.1) == 0;
    let foreign = !group && !mine && flags & Flag::Promiscuous as u32 == 0;
    if len < HEADER {
        return Count::TooShort.code();
    }
    if foreign {
        return Count::NotMyMac.code();
    }
    match kind {
        DOT1Q | DOT1AD | OLD_TAG => Count::UnknownVlan.code(),
        // Solicitations are sent to a group address (RFC 4861, 7.2.2; RFC 2464, 7).
        IP6 if dst_high >> 16 == 0x3333 && flags & ND != 0 => 0,
        IP4 | IP6 if group => Count::GroupMac.code(),
        IP4 | IP6 => 0,
        _ => Count::UnknownType.code(),
    }
}

/// Whether `vlan-input` handles a tagged frame: on a parent of sub-interfaces, or priority-tagged (IEEE 802.1Q, 9.6).
fn is_taken(len: u32, flags: u32, [.., type_word]: [u32; 4]) -> bool {
    let priority = len >= HEADER + 4 && type_word & 0xfff == 0;
    matches!(type_word >> 16, DOT1Q | DOT1AD) && (flags & PARENT != 0 || priority)
}

/// Whether the kernel receives a frame that Volley drops: multicast, or a protocol other than IP.
fn for_kernel(verdict: u32) -> bool {
    verdict == Count::GroupMac.code() || verdict == Count::UnknownType.code()
}

impl Node for EthernetInput {
    const NAME: &'static str = "ethernet-input";
    type Next = Next;
    type Count = Count;
    type Trace = FrameTrace;
    const COLUMNS: &'static [ColumnInfo] = &[NEXT];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let n = v.len();
        let same = v.same(Col::RX);
        let (one, (flags, mac)) = (same.is_some(), self.interface(same.unwrap_or(0)));
        if I::FEW
            && one
            && let Some(next) = few(&mut v, flags, mac)
        {
            v.advance(HEADER);
            return v.send_all(next);
        }
        v.first_words(0, &mut self.header);
        if one {
            self.glance::<I>(v.strips(Col::LEN), n, |_, _| (flags, mac));
        } else {
            self.glance_each(&v);
        }
        if or_all(self.verdict.words(n)) != 0 {
            if one && self.all_tagged(&v, flags, mac) {
                v.advance(HEADER);
                return v.send_all(Next::Vlan);
            }
            self.judge_all(cx, &mut v);
        }
        v.advance(HEADER);
        v.send_by_or_to(&self.next)
    }
}

/// Headers of a frame.
#[derive(Clone, Copy)]
pub struct FrameTrace(PacketTrace);

impl Trace for FrameTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        FrameTrace(PacketTrace::note(packet))
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let (rx, len) = (names.interface(self.0.rx()), self.0.len());
        let sum = self.0.unfinished_checksum();
        let frame = dissect::frame(self.0.bytes()).of(len).offloaded(sum);
        format!("{len} bytes, rx {rx}\n{frame}")
    }
}

#[cfg(test)]
mod tests;
