//! Adjacency slots: rewrite and transmit interface of a neighbour, one cache line each.
//!
//! A published slot never changes. A neighbour with a new MAC address gets a new slot, the load balances move to it by one
//! store each, and the old slot is reused after the grace period: no reader ever sees half a rewrite. Words 0..5 are the
//! rewrite bytes in memory order (after an Ethernet header, from byte 24 on, the next hop's address), word 5 is the last eight
//! of them again, word 6 the facts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use volley_tables::{Domain, Guard};

use super::deferred::Slots;
use super::dpo::Dpo;
use super::grow::{Cell, Grow, GrowSnap, GrowView};

/// Longest rewrite that fits a slot.
pub const MAX_REWRITE: usize = 40;
/// Offset of the next hop's address after a short rewrite.
const NEXT_HOP: usize = 24;
/// Flag: the neighbour's MAC is known, the rewrite is valid.
pub const ADJ_COMPLETE: u8 = 1;
/// Flag: the rewrite is exactly one Ethernet header (14 bytes).
pub const ADJ_ETHERNET: u8 = 2;

/// One adjacency as the control plane writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdjData {
    /// Bytes in front of the IP header; at most [`MAX_REWRITE`]. For an incomplete adjacency the next hop's address (16 bytes,
    /// IPv4 mapped).
    pub rewrite: Vec<u8>,
    /// The next hop's address (IPv4 mapped), for ICMP redirects; stored only if the rewrite has at most 24 bytes.
    pub next_hop: [u8; 16],
    /// Interface to send on.
    pub tx_if: u32,
    /// Largest IP packet that may be sent on the interface.
    pub mtu: u16,
    /// `ADJ_*` bits.
    pub flags: u8,
}

#[repr(C, align(64))]
pub(crate) struct Slot([AtomicU64; 8]);

impl Cell for Slot {
    fn empty() -> Self {
        Slot(std::array::from_fn(|_| AtomicU64::new(0)))
    }
    fn copied(&self) -> Self {
        Slot(std::array::from_fn(|i| {
            AtomicU64::new(self.0[i].load(Ordering::Relaxed))
        }))
    }
}

/// Writer's side. Slot 0 stays empty (incomplete, interface 0); an invalid index reads it.
pub(crate) struct Adjacencies {
    slots: Grow<Slot>,
    ids: Slots,
}

impl Adjacencies {
    pub fn new(domain: &Arc<Domain>) -> Self {
        Self {
            slots: Grow::new(domain, 256),
            ids: Slots::new(domain, 1),
        }
    }

    /// Writes a new slot and returns its index.
    pub fn publish(&mut self, data: &AdjData) -> u32 {
        let id = self.ids.take();
        let len = data.rewrite.len().min(MAX_REWRITE);
        let mut bytes = [0u8; MAX_REWRITE];
        bytes[..len].copy_from_slice(&data.rewrite[..len]);
        if len <= NEXT_HOP {
            bytes[NEXT_HOP..].copy_from_slice(&data.next_hop);
        }
        let word = |at: usize| {
            let mut w = [0u8; 8];
            w.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(w)
        };
        let info = u64::from(data.tx_if)
            | u64::from(data.mtu) << 32
            | (len as u64) << 48
            | u64::from(data.flags) << 56;
        let slot = self.slots.cell(id as usize);
        for i in 0..5 {
            slot.0[i].store(word(i * 8), Ordering::Relaxed);
        }
        slot.0[5].store(word(len.saturating_sub(8)), Ordering::Relaxed);
        slot.0[6].store(info, Ordering::Release);
        id
    }

    /// Frees a slot that no load balance names any more.
    pub fn free(&mut self, id: u32) {
        self.ids.give_back(id);
    }

    pub fn reclaim(&mut self) {
        self.ids.reclaim();
    }

    pub fn waiting(&self) -> usize {
        self.ids.waiting()
    }

    pub fn bytes(&self) -> usize {
        self.slots.bytes()
    }

    pub fn snap(&self) -> AdjSnap {
        AdjSnap(self.slots.snap())
    }
}

/// Reader handle of the adjacencies.
#[derive(Clone)]
pub struct AdjSnap(GrowSnap<Slot>);

impl AdjSnap {
    /// The adjacencies for one frame.
    #[inline(always)]
    pub fn read<'g>(&'g self, guard: Guard<'g>) -> AdjTable<'g> {
        AdjTable {
            slots: self.0.read(guard),
        }
    }
}

/// The adjacencies as one worker reads them during one frame.
#[derive(Copy, Clone)]
pub struct AdjTable<'g> {
    slots: GrowView<'g, Slot>,
}

/// What a plain Ethernet rewrite needs, in registers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct AdjWords {
    /// Rewrite bytes 0..8 in memory order (store with `to_ne_bytes`).
    pub head: u64,
    /// The last eight rewrite bytes (6..14 of an Ethernet header) in memory order.
    pub tail: u64,
    /// Interface to send on.
    pub tx_if: u32,
    /// MTU, length and flags.
    pub facts: AdjFacts,
}

/// Facts to check before the rewrite: MTU, length and flags, from the lowest bits on.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct AdjFacts(u32);

#[expect(clippy::len_without_is_empty, reason = "an adjacency is no collection")]
impl AdjFacts {
    /// Largest IP packet.
    #[inline(always)]
    pub fn mtu(self) -> u16 {
        self.0 as u16
    }

    /// Rewrite bytes.
    #[inline(always)]
    pub fn len(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// `ADJ_*` bits.
    #[inline(always)]
    pub fn flags(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// Whether the rewrite is one Ethernet header.
    #[inline(always)]
    pub fn is_ethernet(self) -> bool {
        self.flags() & ADJ_ETHERNET != 0
    }
}

/// A whole adjacency, by value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct AdjView {
    /// Rewrite bytes; the first `rewrite_len` are valid.
    pub rewrite: [u8; MAX_REWRITE],
    /// Number of valid rewrite bytes.
    pub rewrite_len: u8,
    /// Interface to send on.
    pub tx_if: u32,
    /// Largest IP packet.
    pub mtu: u16,
    /// `ADJ_*` bits.
    pub flags: u8,
}

impl Slot {
    #[inline(always)]
    fn word(&self, i: usize) -> u64 {
        self.0[i].load(Ordering::Relaxed)
    }
}

impl AdjWords {
    /// Contents of a slot; all zero if there is none.
    #[inline(always)]
    fn of(slot: Option<&Slot>) -> Self {
        let (head, tail, info) = match slot {
            Some(s) => (s.word(0), s.word(5), s.word(6)),
            None => (0, 0, 0),
        };
        AdjWords {
            head,
            tail,
            tx_if: info as u32,
            facts: AdjFacts((info >> 32) as u32),
        }
    }
}

impl AdjTable<'_> {
    /// Head, tail and facts: all that a 14-byte rewrite needs, from one cache line. An invalid index reads as all zero.
    #[inline(always)]
    pub fn words(&self, i: u32) -> AdjWords {
        AdjWords::of(self.slots.get(i as usize))
    }

    /// Head and tail of [`Self::words`].
    #[inline(always)]
    pub fn header(&self, i: u32) -> [u64; 2] {
        let slot = self.slots.get(i as usize);
        slot.map_or([0; 2], |slot| [slot.word(0), slot.word(5)])
    }

    /// Prefetches an adjacency for the node after the lookup.
    #[inline(always)]
    pub fn prefetch(&self, i: u32) {
        self.slots.prefetch(i);
    }

    /// Transmit interfaces and facts for a column of adjacencies, in strips.
    #[inline(always)]
    pub fn facts_of(&self, dpo: &[[u32; 16]], tx: &mut [[u32; 16]], facts: &mut [[AdjFacts; 16]]) {
        // A local copy: otherwise the compiler reloads the array's address after every store.
        let slots = self.slots;
        for ((dpo, tx), facts) in dpo.iter().zip(tx).zip(facts) {
            for k in 0..16 {
                let slot = slots.get(Dpo(dpo[k]).index() as usize);
                let info = slot.map_or(0, |slot| slot.word(6));
                tx[k] = info as u32;
                facts[k] = AdjFacts((info >> 32) as u32);
            }
        }
    }

    /// The whole adjacency, for rewrites longer than 14 bytes, traces and queries.
    #[inline]
    pub fn view(&self, i: u32) -> AdjView {
        let w = self.words(i);
        let mut rewrite = [0u8; MAX_REWRITE];
        if let Some(slot) = self.slots.get(i as usize) {
            for (k, chunk) in rewrite.chunks_exact_mut(8).enumerate() {
                chunk.copy_from_slice(&slot.word(k).to_ne_bytes());
            }
        }
        AdjView {
            rewrite,
            rewrite_len: w.facts.len(),
            tx_if: w.tx_if,
            mtu: w.facts.mtu(),
            flags: w.facts.flags(),
        }
    }
}

impl AdjView {
    /// The next hop's address (IPv4 mapped); none if the rewrite is too long for it.
    pub fn next_hop(&self) -> Option<[u8; 16]> {
        let short = usize::from(self.rewrite_len) <= NEXT_HOP;
        let octets = self.rewrite[NEXT_HOP..].try_into().ok()?;
        short.then_some(octets)
    }

    /// The valid rewrite bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.rewrite[..usize::from(self.rewrite_len).min(MAX_REWRITE)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::dpo::DpoKind;
    use super::*;

    fn data(len: u8) -> AdjData {
        AdjData {
            rewrite: (1..=len).collect(),
            next_hop: [len; 16],
            tx_if: 0x1234_5678,
            mtu: 9000,
            flags: ADJ_COMPLETE,
        }
    }

    #[test]
    fn an_ethernet_rewrite_is_two_overlapping_words_and_the_facts() {
        let domain = Domain::new();
        let mut adjs = Adjacencies::new(&domain);
        let id = adjs.publish(&data(14));
        let reader = domain.register();
        let snap = adjs.snap();
        let w = snap.read(reader.guard()).words(id);
        let mut out = [0u8; 14];
        out[..8].copy_from_slice(&w.head.to_ne_bytes());
        out[6..].copy_from_slice(&w.tail.to_ne_bytes());
        assert_eq!(out.to_vec(), data(14).rewrite);
        assert_eq!(
            (w.tx_if, w.facts.mtu(), w.facts.len(), w.facts.flags()),
            (0x1234_5678, 9000, 14, ADJ_COMPLETE)
        );
    }

    #[test]
    fn all_lengths_read_back_and_stray_indexes_are_empty() {
        let domain = Domain::new();
        let mut adjs = Adjacencies::new(&domain);
        let reader = domain.register();
        let snap = adjs.snap();
        let ids: Vec<u32> = (0..=40).map(|n| adjs.publish(&data(n))).collect();
        let table = snap.read(reader.guard());
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(table.view(*id).bytes(), data(n as u8).rewrite);
            let next_hop = (n <= 24).then_some([n as u8; 16]);
            assert_eq!(table.view(*id).next_hop(), next_hop);
        }
        assert_eq!(table.words(1 << 27).facts, AdjFacts::default());
        let dpos = std::array::from_fn(|k| {
            Dpo::new(DpoKind::Adj, ids.get(5 * k).copied().unwrap_or(1 << 27)).0
        });
        let (mut tx, mut facts) = ([[7; 16]], [[AdjFacts(7); 16]]);
        table.facts_of(&[dpos], &mut tx, &mut facts);
        for (k, dpo) in dpos.into_iter().enumerate() {
            let one = table.words(Dpo(dpo).index());
            assert_eq!((tx[0][k], facts[0][k]), (one.tx_if, one.facts));
        }
        assert_eq!(std::mem::size_of::<Slot>(), 64);
    }
}
