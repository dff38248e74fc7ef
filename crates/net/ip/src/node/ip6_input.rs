//! ip6-input: validates received IPv6 packets (RFC 8200, 3; RFC 4291, 2) and drops addresses that are never forwarded.
//!
//! Section 10 of `docs/forwarding-rules.md` has the order of the checks. On entry and exit the position is at the IP header; on
//! exit the length is the packet's own length.

use crate::IpTrace;
use crate::family::is_local;
use std::sync::Arc;
use volley_fib::V6;
use volley_fib::columns::{DST, DST1, DST2, DST3, TOTAL_LENGTH};
use volley_fib::dataplane::{DataPlane, View};
use volley_graph::{
    ArcId, Col, Column, ColumnInfo, Consumed, Counters, Cx, Isa, Node, Vector, Words, counters,
    mask, nexts, or_all, strip_rows,
};
use volley_iface::{Flag, IfTable};

nexts! {
    /// Where ip6-input sends packets.
    pub enum Next {
        Drop => "error-drop", Lookup => "ip6-lookup", HopByHop => "ip6-hop-by-hop", Error => "ip6-icmp-error",
        Nd => "nd-input",
        Punt => "linux-cp-punt", Mfib => "ip6-mfib-forward-lookup", Local => "ip6-local"
    }
}

counters! {
    /// What ip6-input counts.
    pub enum Count {
        /// the frame ends inside the IPv6 header
        TooShort = "too-short" (Error),
        /// the version is not 6
        BadVersion = "bad-version" (Error),
        /// the packet says it is longer than the frame
        Truncated = "truncated" (Error),
        /// the destination is multicast, which is not routed here
        Multicast = "multicast-destination" (Error),
        /// the destination is unspecified or loopback
        MartianDestination = "martian-destination" (Error),
        /// an address is link-local (RFC 4291, 2.5.6)
        LinkLocal = "link-local" (Error),
        /// the hop limit is used up
        HopLimit = "hop-limit-exceeded" (Error),
        /// the source is an address that no host may use
        MartianSource = "martian-source" (Error),
        /// packets with a hop-by-hop header, handed to ip6-hop-by-hop
        HopByHop = "hop-by-hop" (Info),
        /// neighbour discovery between link-local addresses, handed to nd-input
        Nd = "neighbour-discovery" (Info),
        /// link-local packets, handed to the kernel, which has an LCP tap for the interface
        ForKernel = "for-kernel" (Info),
        /// packets to groups that may be routed, handed to ip6-mfib-forward-lookup
        ForGroup = "for-group" (Info),
        /// packets to link-scope groups on an interface where a feature listens for them, handed to ip6-local
        ForListener = "for-listener" (Info),
    }
}

/// State of ip6-input.
pub struct Ip6Input {
    fib: DataPlane<V6>,
    table: Arc<IfTable>,
    arc: ArcId,
    /// Version, lengths, hop limit, and the first half of the source.
    start: Words<4>,
    /// The destination.
    end: Words<4>,
    dst: [Column; 4],
    verdict: Column,
    length: Column,
}

impl Ip6Input {
    /// For vectors of up to `size` packets; `arc` is `ip6-unicast`.
    pub fn new(fib: DataPlane<V6>, table: Arc<IfTable>, arc: ArcId, size: usize) -> Self {
        Ip6Input {
            fib,
            table,
            arc,
            start: Words::new(size),
            end: Words::new(size),
            dst: std::array::from_fn(|_| Column::new(size)),
            verdict: Column::new(size),
            length: Column::new(size),
        }
    }

    /// Sets the length of every packet, and `verdict` nonzero for packets that need an exact check.
    #[inline(always)]
    fn glance<I: Isa>(&mut self, lens: &[[u32; 16]], n: usize) {
        // All slices have one length, so the loop has no bounds checks.
        let strips = n.div_ceil(16);
        let (start, end) = (
            &self.start.strips(n)[..strips],
            &self.end.strips(n)[..strips],
        );
        let (odd, length) = (
            &mut self.verdict.strips_mut(n)[..strips],
            &mut self.length.strips_mut(n)[..strips],
        );
        let mut dst = self
            .dst
            .each_mut()
            .map(|column| &mut column.strips_mut(n)[..strips]);
        let lens = &lens[..strips];
        for strip in 0..strips {
            let ([w0, w1, src0, src1], [dst0, dst1, ..]) = (&start[strip], &end[strip]);
            for row in 0..strip_rows::<I>(n, strip) {
                odd[strip][row] = suspicious(
                    lens[strip][row],
                    [w0[row], w1[row]],
                    [src0[row], src1[row]],
                    [dst0[row], dst1[row]],
                );
                length[strip][row] = 40 + (w1[row] >> 16);
            }
            for (to, from) in dst.iter_mut().zip(&end[strip]) {
                to[strip] = *from;
            }
        }
    }
}

/// Whether an address is :: or ::1.
#[inline(always)]
fn none_or_self(a: [u32; 4]) -> bool {
    a[0] | a[1] | a[2] | (a[3] & !1) == 0
}

/// Whether an address is in fe80::/10.
#[inline(always)]
fn link_local(a: [u32; 4]) -> bool {
    a[0] >> 22 == 0x3fa
}

/// The verdict on one packet. Later lines take precedence, so they are in reverse order.
#[inline(always)]
fn judge(len: u32, first: [u32; 2], src: [u32; 4], dst: [u32; 4]) -> u32 {
    let (payload, proto, hops) = (first[1] >> 16, first[1] >> 8 & 0xff, first[1] & 0xff);
    let mapped = src[0] | src[1] | (src[2] ^ 0xffff) == 0;
    let mut v = if proto == 0 {
        Count::HopByHop.code()
    } else {
        0
    };
    v = if none_or_self(src) || src[0] >> 24 == 0xff || mapped {
        Count::MartianSource.code()
    } else {
        v
    };
    v = if hops <= 1 { Count::HopLimit.code() } else { v };
    v = if link_local(src) || link_local(dst) {
        Count::LinkLocal.code()
    } else {
        v
    };
    v = if none_or_self(dst) {
        Count::MartianDestination.code()
    } else {
        v
    };
    v = if dst[0] >> 24 == 0xff {
        Count::Multicast.code()
    } else {
        v
    };
    v = if 40 + payload > len {
        Count::Truncated.code()
    } else {
        v
    };
    v = if first[0] >> 28 != 6 {
        Count::BadVersion.code()
    } else {
        v
    };
    if len < 40 { Count::TooShort.code() } else { v }
}

/// Whether a group has link or interface scope, or none: routers never forward to it (RFC 4291, 2.7).
fn is_of_link(group: [u32; 4]) -> bool {
    group[0] >> 16 & 15 <= 2
}

/// A valid unicast address, used in place of the destination.
const ONE_HOST: [u32; 4] = [0x2000_0000, 0, 0, 1];

/// The verdict on a packet to a link-scope group for which a feature listens: as for unicast; a link-local source is allowed.
fn judge_for_listener(len: u32, first: [u32; 2], src: [u32; 4]) -> u32 {
    let src = if link_local(src) { ONE_HOST } else { src };
    match judge(len, [first[0], first[1] | 64], src, ONE_HOST) {
        0 => Count::ForListener.code(),
        other => other,
    }
}

/// The verdict on a packet to a routable group: as for unicast. The hop limit is checked after the route is known.
fn judge_for_group(len: u32, first: [u32; 2], src: [u32; 4]) -> u32 {
    match judge(len, [first[0], first[1] | 64], src, ONE_HOST) {
        0 => Count::ForGroup.code(),
        other => other,
    }
}

/// Whether a packet is a neighbour solicitation, a neighbour advertisement or a router advertisement.
fn is_nd(packet: &[u8]) -> bool {
    packet.get(6) == Some(&58) && matches!(packet.get(40), Some(134..=136))
}

/// Nonzero for a packet that [`judge`] would drop or divert, in as few operations as all its checks together allow.
#[inline(always)]
fn suspicious(len: u32, first: [u32; 2], src: [u32; 2], dst: [u32; 2]) -> u32 {
    let [w0, w1] = first;
    // This also covers a frame shorter than 40 bytes: it is shorter than header and payload.
    let lengths = mask(40 + (w1 >> 16) as i32 > len as i32);
    // Multicast, link-local, or two leading zero words (unspecified, loopback and mapped addresses).
    let odd =
        |a: [u32; 2]| mask(a[0] >> 24 == 0xff) | mask(a[0] >> 22 == 0x3fa) | mask(a[0] | a[1] == 0);
    // Hop limit of at most 1, or a hop-by-hop header.
    let tail = mask(w1 & 0xfe == 0) | mask(w1 & 0xff00 == 0);
    (w0 >> 28 ^ 6) | lengths | odd(src) | odd(dst) | tail
}

impl Ip6Input {
    /// Sends link-local packets to the kernel if the interface has an LCP tap, because the kernel has the link-local addresses.
    #[cold]
    fn spare_for_kernel(&mut self, rx: &[u32]) {
        let verdicts = self.verdict.words_mut(rx.len()).iter_mut();
        for (code, &rx) in verdicts.zip(rx) {
            if *code == Count::LinkLocal.code() && self.table.has(rx, Flag::HasLcpTap) {
                *code = Count::ForKernel.code();
            }
        }
    }
}

/// Exact verdicts on suspicious packets; some are valid. For a packet to the router the hop limit is not checked.
#[cold]
fn judge_suspicious<I: Isa>(
    (view, table): (&View<'_, V6>, &IfTable),
    v: &Vector<'_, I, Next>,
    (start, end): (&Words<4>, &Words<4>),
    verdict: &mut Column,
) {
    let n = v.len();
    for (row, code) in verdict
        .words_mut(n)
        .iter_mut()
        .enumerate()
        .filter(|(_, code)| **code != 0)
    {
        let [w0, w1, src0, src1] = start.row(row);
        let packet = v.view(row);
        let word = |at: usize| {
            let bytes = packet.bytes().get(at..at + 4).unwrap_or(&[0; 4]);
            bytes.iter().fold(0, |word, &b| word << 8 | u32::from(b))
        };
        let src = [src0, src1, word(16), word(20)];
        let (len, dst) = (v.column(Col::LEN)[row], end.row(row));
        *code = judge(len, [w0, w1], src, dst);
        let whole = |a: [u32; 4]| a.iter().fold(0, |n, w| n << 32 | u128::from(*w));
        if *code == Count::HopLimit.code() && is_local(view, v.column(Col::RX)[row], whole(dst)) {
            *code = judge(len, [w0, w1 | 64], src, dst);
        }
        let takes = || table.has(v.column(Col::RX)[row], Flag::Multicast);
        if *code == Count::Multicast.code() && !is_of_link(dst) && takes() {
            *code = judge_for_group(len, [w0, w1], src);
        }
        let hears = || table.has(v.column(Col::RX)[row], Flag::LinkUdp);
        if *code == Count::Multicast.code() && dst[0] >> 16 & 15 == 2 && hears() {
            *code = judge_for_listener(len, [w0, w1], src);
        }
        if *code == Count::LinkLocal.code() && is_nd(packet.bytes()) {
            *code = Count::Nd.code();
        }
    }
}

/// Handles a small vector packet by packet; false if a packet needs an exact check.
#[inline(always)]
fn few<I: Isa>(v: &mut Vector<'_, I, Next>) -> bool {
    let cols = [Col::LEN, DST.col, DST1.col, DST2.col, DST3.col];
    v.few_frames::<40, 5>(cols, |header, [len, to @ ..]| {
        let (words, _) = header.as_chunks::<4>();
        let [w0, w1, src0, src1] = [0, 1, 2, 3].map(|k| u32::from_be_bytes(words[k]));
        let dst = [6, 7, 8, 9].map(|k| u32::from_be_bytes(words[k]));
        if suspicious(*len, [w0, w1], [src0, src1], [dst[0], dst[1]]) != 0 {
            return false;
        }
        for (to, word) in to.into_iter().zip(dst) {
            *to = word;
        }
        // If a later packet is suspicious, all packets are judged again: lengths that are already set stay the same.
        *len = 40 + (w1 >> 16);
        true
    })
}

impl Node for Ip6Input {
    const NAME: &'static str = "ip6-input";
    type Next = Next;
    type Count = Count;
    type Trace = IpTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DST, DST1, DST2, DST3, TOTAL_LENGTH];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let n = v.len();
        if I::FEW && few(&mut v) {
            return v.send_arc(self.arc, Col::RX, Next::Lookup);
        }
        v.words_of_two((0, &mut self.start), (24, &mut self.end));
        self.glance::<I>(v.strips(Col::LEN), n);
        let odd = or_all(self.verdict.words(n));
        if odd != 0 {
            let view = self.fib.read(cx.guard());
            let known = (&view, &*self.table);
            judge_suspicious(known, &v, (&self.start, &self.end), &mut self.verdict);
            self.spare_for_kernel(v.column(Col::RX));
        }
        for (col, word) in [DST.col, DST1.col, DST2.col, DST3.col]
            .into_iter()
            .zip(&mut self.dst)
        {
            v.put(col, word);
        }
        v.put(TOTAL_LENGTH.col, &mut self.length);
        if odd != 0 {
            v.drop_out(cx, &self.verdict, |c| match c {
                Count::HopByHop => Next::HopByHop,
                Count::HopLimit => Next::Error,
                Count::Nd => Next::Nd,
                Count::ForKernel => Next::Punt,
                Count::ForGroup => Next::Mfib,
                Count::ForListener => Next::Local,
                _ => Next::Drop,
            });
        }
        v.take(TOTAL_LENGTH.col, &mut self.length);
        v.put(Col::LEN, &mut self.length);
        v.send_arc(self.arc, Col::RX, Next::Lookup)
    }
}

#[cfg(test)]
mod tests;
