//! Differences between IPv4 and IPv6 behind the input nodes.

use crate::hash::{hash4, hash6, whole4, whole6};
use crate::reassembly::Reassemble;
use volley_fib::columns::{DST, DST1, DST2, DST3, FLOW_HASH};
use volley_fib::dataplane::{DpoKind, View};
use volley_fib::{Family, V4, V6};
use volley_graph::{Col, Column, Isa, Nexts, PacketView, Vector, Words, all_equal};
use volley_wire::checksum;

/// Whether an address belongs to the router, for a packet received on `rx`.
pub(crate) fn is_local<F: Family>(view: &View<'_, F>, rx: u32, dst: F::Addr) -> bool {
    let found = view.follow(view.table_of(rx), dst);
    found.kind() == DpoKind::Local
}

/// The common table of all receiving interfaces of a vector; none if they differ.
#[inline(always)]
pub(crate) fn one_table<F: Family>(view: &View<'_, F>, rx: &[u32]) -> Option<u32> {
    let table = view.table_of(rx.first().map_or(0, |&rx| rx));
    (all_equal(rx) || all_look_in(view, rx, table)).then_some(table)
}

/// Whether all of several interfaces are bound to a table. Equal interfaces come in runs, one for each vector that was merged
/// into this one: one check per run.
#[inline(never)]
fn all_look_in<F: Family>(view: &View<'_, F>, rx: &[u32], table: u32) -> bool {
    let mut looked = None;
    rx.iter().all(|&rx| {
        let known = looked.replace(rx) == Some(rx);
        known || view.table_of(rx) == table
    })
}

/// Buffers of a lookup for one vector.
pub struct Step {
    high: Vec<u64>,
    word: Column,
}

/// An IP version, as forwarding nodes see it.
pub trait Ip: Family + Reassemble {
    /// Length of the fixed header.
    const HEADER: usize;
    /// Name of the lookup node.
    const LOOKUP: &'static str;
    /// Name of the node that selects one of several paths.
    const LOAD_BALANCE: &'static str;
    /// Name of the rewrite node.
    const REWRITE: &'static str;
    /// Name of the rewrite node for multicast.
    const REWRITE_MCAST: &'static str;
    /// Name of the local delivery node.
    const LOCAL: &'static str;
    /// Name of the glean node, for unresolved neighbours.
    const GLEAN: &'static str;
    /// Name of the feature that disables the family.
    const NOT_ENABLED: &'static str;
    /// Features before all others on the arc.
    const BEHIND_NOT_ENABLED: &'static [&'static str] = &[Self::NOT_ENABLED];
    /// Features before those that send replies.
    const BEHIND_URPF: &'static [&'static str] =
        &[Self::NOT_ENABLED, Self::URPF_STRICT, Self::URPF_LOOSE];
    /// What comes earlier than features that ask for a packet's flow.
    const BEHIND_FLOWS: &'static [&'static str] = &[
        Self::NOT_ENABLED,
        Self::URPF_STRICT,
        Self::URPF_LOOSE,
        Self::SV_FEATURE,
    ];
    /// Name of the node that checks that sources are behind the receiving interface.
    const URPF_STRICT: &'static str;
    /// Name of the loose uRPF node: any route to the source suffices.
    const URPF_LOOSE: &'static str;
    /// Offset of the source address in the header.
    const SOURCE_AT: usize;

    /// Fills the destination columns from the packets if no input node did.
    fn require_dst<I: Isa, X: Nexts>(v: &mut Vector<'_, I, X>);
    /// Destination of one packet, from the columns.
    fn dst<I: Isa, X: Nexts>(v: &Vector<'_, I, X>, row: usize) -> Self::Addr;
    /// Looks up all destinations in one table.
    fn lookup_all<I: Isa, X: Nexts>(
        v: &Vector<'_, I, X>,
        table: &Self::LpmView,
        step: &mut Step,
        leaf: &mut [u32],
    );
    /// The source address, from the four words at [`Ip::SOURCE_AT`].
    fn source(words: [u32; 4]) -> Self::Addr;
    /// Whether a source is exempt from the reverse-path check (same words): no route leads to it, and that is valid.
    fn has_no_way_back(words: [u32; 4]) -> bool;
    /// Looks up the sources of packets in one table, as many as `leaf` has entries.
    fn lookup_sources<I: Isa>(
        isa: I,
        table: &Self::LpmView,
        words: &Words<4>,
        step: &mut Step,
        leaf: &mut [u32],
    );
    /// Flow hash of one packet, whose position is at the IP header.
    fn hash(packet: &PacketView<'_>) -> u32;
    /// Flow hash that a first fragment's datagram would have unfragmented; `bytes` begin with the IP header.
    fn hash_of_whole(bytes: &[u8]) -> u32;
    /// Decrements TTL or hop limit; `header` is the IP header.
    fn decrement(header: &mut [u8]);
    /// Whether the destination is multicast; `header` is the IP header.
    fn is_for_group(header: &[u8]) -> bool;
    /// Whether a packet that exceeds the MTU may be fragmented here; `is_own` reports whether an address belongs to the router.
    fn may_fragment(header: &[u8], is_own: impl Fn(Self::Addr) -> bool) -> bool;
}

/// Flow hash of one packet for path selection. The hash from virtual reassembly takes precedence over a fragment's own.
#[inline(always)]
pub(crate) fn flow_hash<F: Ip>(packet: &PacketView<'_>) -> u32 {
    match packet.get(FLOW_HASH.col) {
        None | Some(0) => <F as Ip>::hash(packet),
        Some(known) => known,
    }
}

/// One word of a packet's column.
#[inline(always)]
fn word<I: Isa, X: Nexts>(v: &Vector<'_, I, X>, col: Col, row: usize) -> u32 {
    if I::FEW {
        v.few_of(col)[row % 16]
    } else {
        v.column(col)[row]
    }
}

impl Ip for V4 {
    const HEADER: usize = 20;
    const LOOKUP: &'static str = "ip4-lookup";
    const LOAD_BALANCE: &'static str = "ip4-load-balance";
    const REWRITE: &'static str = "ip4-rewrite";
    const REWRITE_MCAST: &'static str = "ip4-rewrite-mcast";
    const LOCAL: &'static str = "ip4-local";
    const GLEAN: &'static str = "ip4-glean";
    const NOT_ENABLED: &'static str = "ip4-not-enabled";
    const URPF_STRICT: &'static str = "ip4-rx-urpf-strict";
    const URPF_LOOSE: &'static str = "ip4-rx-urpf-loose";
    const SOURCE_AT: usize = 12;

    #[inline(always)]
    fn require_dst<I: Isa, X: Nexts>(v: &mut Vector<'_, I, X>) {
        if !v.has(DST.col) {
            fill_from_packets(v, 16, [DST.col]);
        }
    }

    #[inline(always)]
    fn dst<I: Isa, X: Nexts>(v: &Vector<'_, I, X>, row: usize) -> u32 {
        word(v, DST.col, row)
    }

    #[inline(always)]
    fn lookup_all<I: Isa, X: Nexts>(
        v: &Vector<'_, I, X>,
        table: &Self::LpmView,
        _step: &mut Step,
        leaf: &mut [u32],
    ) {
        table.lookup_batch(v.column(DST.col), leaf);
    }

    #[inline(always)]
    fn source([source, ..]: [u32; 4]) -> u32 {
        source
    }

    /// A DHCP client without an address sends from 0.0.0.0 to the broadcast address (RFC 2131, 4.1).
    fn has_no_way_back([source, destination, ..]: [u32; 4]) -> bool {
        source == 0 && destination == u32::MAX
    }

    #[inline(always)]
    fn lookup_sources<I: Isa>(
        _isa: I,
        table: &Self::LpmView,
        words: &Words<4>,
        step: &mut Step,
        leaf: &mut [u32],
    ) {
        let n = leaf.len();
        for (to, [source, ..]) in step.word.strips_mut(n).iter_mut().zip(words.strips(n)) {
            *to = *source;
        }
        table.lookup_batch(step.word.words(n), leaf);
    }

    fn hash(packet: &PacketView<'_>) -> u32 {
        hash4(&packet.bytes()[..packet.len().min(packet.bytes().len())], 0)
    }

    fn hash_of_whole(bytes: &[u8]) -> u32 {
        whole4(bytes, 0)
    }

    #[inline(always)]
    fn decrement(header: &mut [u8]) {
        header[8] = header[8].wrapping_sub(1);
        let sum = checksum::after_ttl_decrement(u16::from_be_bytes([header[10], header[11]]));
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    fn is_for_group(header: &[u8]) -> bool {
        header.get(16).is_some_and(|first| first >> 4 == 14)
    }

    fn may_fragment(header: &[u8], _: impl Fn(u32) -> bool) -> bool {
        header.get(6).is_some_and(|flags| flags & 0x40 == 0)
    }
}

impl Ip for V6 {
    const HEADER: usize = 40;
    const LOOKUP: &'static str = "ip6-lookup";
    const LOAD_BALANCE: &'static str = "ip6-load-balance";
    const REWRITE: &'static str = "ip6-rewrite";
    const REWRITE_MCAST: &'static str = "ip6-rewrite-mcast";
    const LOCAL: &'static str = "ip6-local";
    const GLEAN: &'static str = "ip6-glean";
    const NOT_ENABLED: &'static str = "ip6-not-enabled";
    const URPF_STRICT: &'static str = "ip6-rx-urpf-strict";
    const URPF_LOOSE: &'static str = "ip6-rx-urpf-loose";
    const SOURCE_AT: usize = 8;

    #[inline(always)]
    fn require_dst<I: Isa, X: Nexts>(v: &mut Vector<'_, I, X>) {
        if !(v.has(DST.col) && v.has(DST1.col) && v.has(DST2.col) && v.has(DST3.col)) {
            fill_from_packets(v, 24, [DST.col, DST1.col, DST2.col, DST3.col]);
        }
    }

    #[inline(always)]
    fn dst<I: Isa, X: Nexts>(v: &Vector<'_, I, X>, row: usize) -> u128 {
        let word = |col| u128::from(word(v, col, row));
        word(DST.col) << 96 | word(DST1.col) << 64 | word(DST2.col) << 32 | word(DST3.col)
    }

    #[inline(always)]
    fn lookup_all<I: Isa, X: Nexts>(
        v: &Vector<'_, I, X>,
        table: &Self::LpmView,
        step: &mut Step,
        leaf: &mut [u32],
    ) {
        let n = v.len();
        let high = &mut step.high[..n];
        join(v.column(DST.col), v.column(DST1.col), high);
        let low =
            |row| u64::from(v.column(DST2.col)[row]) << 32 | u64::from(v.column(DST3.col)[row]);
        table.lookup_batch(v.isa(), high, low, leaf);
    }

    #[inline(always)]
    fn source(words: [u32; 4]) -> u128 {
        words.iter().fold(0, |a, word| a << 32 | u128::from(*word))
    }

    /// Link-local addresses have no route, and a host without an address sends from :: (RFC 4862, 5.4.2).
    fn has_no_way_back(words: [u32; 4]) -> bool {
        words == [0; 4] || words[0] >> 22 == 0x3fa
    }

    #[inline(always)]
    fn lookup_sources<I: Isa>(
        isa: I,
        table: &Self::LpmView,
        words: &Words<4>,
        step: &mut Step,
        leaf: &mut [u32],
    ) {
        let n = leaf.len();
        let high = &mut step.high[..n];
        for (to, [first, second, ..]) in high.chunks_mut(16).zip(words.strips(n)) {
            join(&first[..to.len()], &second[..to.len()], to);
        }
        let low = |row| {
            let [.., third, fourth] = words.row(row);
            u64::from(third) << 32 | u64::from(fourth)
        };
        table.lookup_batch(isa, high, low, leaf);
    }

    fn hash(packet: &PacketView<'_>) -> u32 {
        hash6(&packet.bytes()[..packet.len().min(packet.bytes().len())], 0)
    }

    fn hash_of_whole(bytes: &[u8]) -> u32 {
        whole6(bytes, 0)
    }

    #[inline(always)]
    fn decrement(header: &mut [u8]) {
        header[7] = header[7].wrapping_sub(1);
    }

    fn is_for_group(header: &[u8]) -> bool {
        header.get(24) == Some(&0xff)
    }

    /// Only sources fragment (RFC 8200, 4.5).
    fn may_fragment(header: &[u8], is_own: impl Fn(u128) -> bool) -> bool {
        let source = header.get(8..24).and_then(|octets| octets.try_into().ok());
        source.is_some_and(|octets| is_own(u128::from_be_bytes(octets)))
    }
}

impl Step {
    /// Buffers for vectors of up to `rows` packets.
    pub fn new(rows: usize) -> Self {
        Step {
            high: vec![0; rows],
            word: Column::new(rows),
        }
    }
}

#[inline(always)]
fn join(high: &[u32], low: &[u32], out: &mut [u64]) {
    for ((out, &high), &low) in out.iter_mut().zip(high).zip(low) {
        *out = u64::from(high) << 32 | u64::from(low);
    }
}

/// Reads the columns from the headers of packets that entered the graph behind the input node, without columns.
#[cold]
fn fill_from_packets<I: Isa, X: Nexts, const K: usize>(
    v: &mut Vector<'_, I, X>,
    offset: usize,
    cols: [Col; K],
) {
    for row in 0..v.len() {
        for (k, &col) in cols.iter().enumerate() {
            let at = offset + 4 * k;
            let word = v
                .view(row)
                .bytes()
                .get(at..at + 4)
                .map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
            v.column_mut(col)[row] = word;
        }
    }
}
