//! What elements do to all packets of a vector at once. A vector with a packet that needs more is handled packet by packet.

use crate::columns::{DST, NET, NOTE, PORT};
use crate::element::{Reason, Verdict};
use crate::node::Port;
use std::sync::Arc;
use volley_graph::buf::META;
use volley_graph::{Col, Column, Guard, Isa, Vector, Words, all_equal, any_bit, mask, or_all};
use volley_tables::Lpm4Snap;
use volley_wire::Header;
use volley_wire::checksum;
use volley_wire::eth::EthHeader;

/// Length of an Ethernet header.
pub(crate) const ETHERNET: usize = EthHeader::LEN;
/// Wrong source addresses for which a vector is checked at once.
pub(crate) const BAD: usize = 8;
/// The first byte of a header of IPv4 without options.
const PLAIN: u32 = 0x45;

/// The way of an element with a whole vector.
#[derive(Clone, Default)]
pub enum Fast {
    /// Each packet is handled alone.
    #[default]
    None,
    /// All packets go to output 0.
    Pass,
    /// Bytes are removed from the front.
    Strip(u32),
    /// An Ethernet header is put in front.
    Prepend([u8; ETHERNET]),
    /// Bits of the note are set: mask and bits.
    Paint(u32, u32),
    /// Packets go to output 0 if none has one of these bits in its note.
    NoBits(u32),
    /// Packets go to output 0 if none has this value in the bits of the note: mask and value.
    NotValue(u32, u32),
    /// Packets of one EtherType go to one output: those of which no other byte decides.
    EtherTypes(Arc<[(u16, usize)]>),
    /// IP headers without options are right and marked, none has one of these sources.
    CheckIp([u32; BAD]),
    /// Headers have no options, and packets are whole.
    Plain,
    /// TTLs are decremented.
    Ttl,
    /// Packets are whole, and have this length at most.
    AtMost(u32),
    /// An Ethernet header for the next hop is put in front: [`crate::Build::header`].
    Resolve,
    /// Packets go to the outputs of their routes.
    Route(Routes),
}

/// Routes by destination: leaf `n + 1` of the table means hop `n`.
#[derive(Clone)]
pub struct Routes {
    /// Prefixes.
    pub(crate) table: Lpm4Snap,
    /// Next hops, 0 for none, and outputs.
    pub(crate) hops: Arc<[(u32, usize)]>,
}

impl Routes {
    /// The next hop, 0 for none, and the verdict of a leaf.
    #[inline(always)]
    fn of(&self, leaf: u32) -> (u32, u32) {
        let at = (leaf as usize).checked_sub(1);
        match at.and_then(|at| self.hops.get(at)) {
            Some((gateway, port)) => (*gateway, Verdict::port_or(*port, Reason::NoRoute).0),
            None => (0, Verdict::drop(Reason::NoRoute).0),
        }
    }

    /// Look up destinations, replace them by next hops, and judge the packets. `leaves` is memory for as many words.
    #[inline(always)]
    pub(crate) fn judge(
        &self,
        addresses: &mut [u32],
        leaves: &mut [u32],
        verdicts: &mut [u32],
        guard: Guard<'_>,
    ) {
        self.table.read(guard).lookup_batch(addresses, leaves);
        if let Some(first) = leaves.first()
            && all_equal(leaves)
        {
            let (gateway, verdict) = self.of(*first);
            if gateway != 0 {
                addresses.fill(gateway);
            }
            verdicts.fill(verdict);
            return;
        }
        let rows = addresses.iter_mut().zip(leaves).zip(verdicts);
        for ((address, leaf), verdict) in rows {
            let (gateway, word) = self.of(*leaf);
            if gateway != 0 {
                *address = gateway;
            }
            *verdict = word;
        }
    }
}

/// Memory for the headers of a vector.
pub(crate) struct Scratch {
    header: Words<5>,
    word: Words<1>,
    length: Column,
    dst: Column,
    leaves: Column,
}

impl Scratch {
    /// For vectors of up to `size` packets; without memory where the element needs none.
    pub(crate) fn new(fast: &Fast, size: usize) -> Scratch {
        let (header, word, leaves) = match fast {
            Fast::CheckIp(_) | Fast::Ttl => (size, 0, 0),
            Fast::Plain | Fast::AtMost(_) | Fast::EtherTypes(_) => (0, size, 0),
            Fast::Route(_) => (0, 0, size),
            _ => (0, 0, 0),
        };
        Scratch {
            header: Words::new(header),
            word: Words::new(word),
            length: Column::new(header),
            dst: Column::new(header),
            leaves: Column::new(leaves),
        }
    }
}

/// Whether all packets have at least this length, each in one buffer.
#[inline(always)]
fn are_long<I: Isa>(v: &Vector<'_, I, Port>, least: u32) -> bool {
    let short = v.column(Col::LEN).iter();
    let short = short.fold(0, |any, len| any | mask(*len < least));
    short == 0 && !v.has_chains()
}

/// Whether the network header of all packets is at their position.
#[inline(always)]
fn is_at_header<I: Isa>(v: &mut Vector<'_, I, Port>) -> bool {
    v.require(NET.col, 0);
    let at = v.same_position().map(|at| at as u32);
    at.is_some() && v.same(NET.col) == at
}

/// Puts 14 bytes in front of all packets; false, without a change, where there is no room.
#[inline(always)]
pub(crate) fn prepend<'h, I: Isa>(
    v: &mut Vector<'_, I, Port>,
    header: impl Fn(usize) -> &'h [u8; ETHERNET],
) -> bool {
    if v.same_position().is_none_or(|at| at < META + ETHERNET) {
        return false;
    }
    v.retreat(ETHERNET as u32);
    v.apply::<ETHERNET>(|row, bytes| *bytes = *header(row));
    true
}

/// Whether all packets arrived at input 0.
#[inline(always)]
pub(crate) fn is_at_first_input<I: Isa>(v: &mut Vector<'_, I, Port>) -> bool {
    v.require(NOTE.col, 0);
    or_all(v.column(NOTE.col)) & PORT == 0
}

/// Nonzero for a header with options, and for a packet that is shorter than its header says: an element behind `CheckIPHeader` may
/// have shortened it. Gets the length of the packet and the first word of the header.
#[inline(always)]
fn unusual(len: u32, w0: u32) -> u32 {
    let total = w0 & 0xffff;
    (w0 >> 24 ^ PLAIN) | mask(total < 20) | mask(total > len)
}

/// Nonzero for a header that needs an exact check: the length of the packet, and the words of the header.
#[inline(always)]
fn suspicious(len: u32, [w0, w1, w2, src, dst]: [u32; 5], bad: &[u32; BAD]) -> u32 {
    let half = |word: u32| (word >> 16) + (word & 0xffff);
    let sum = half(w0) + half(w1) + half(w2) + half(src) + half(dst);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let from_bad = bad.iter().fold(0, |any, it| any | mask(src == *it));
    unusual(len, w0) | (sum ^ 0xffff) | from_bad
}

/// Checks headers, and notes where they are, the destination and the length.
#[inline(always)]
fn check_ip<I: Isa>(
    v: &mut Vector<'_, I, Port>,
    scratch: &mut Scratch,
    bad: &[u32; BAD],
) -> Option<usize> {
    let n = v.len();
    let at = v.same_position()?;
    v.words(0, &mut scratch.header);
    let strips = n.div_ceil(16);
    let header = &scratch.header.strips(n)[..strips];
    let lens = &v.strips(Col::LEN)[..strips];
    let (length, to) = (
        &mut scratch.length.strips_mut(n)[..strips],
        &mut scratch.dst.strips_mut(n)[..strips],
    );
    for strip in 0..strips {
        let [w0, w1, w2, src, dst] = &header[strip];
        let mut odd = [0; 16];
        for row in 0..16 {
            let words = [w0[row], w1[row], w2[row], src[row], dst[row]];
            odd[row] = suspicious(lens[strip][row], words, bad);
        }
        if any_bit(&odd, n - 16 * strip) {
            return None;
        }
        length[strip] = w0.map(|word| word & 0xffff);
        to[strip] = *dst;
    }
    v.put(Col::LEN, &mut scratch.length);
    v.put(DST.col, &mut scratch.dst);
    v.column_mut(NET.col).fill(at as u32);
    Some(0)
}

/// The EtherType that all frames have.
#[inline(always)]
fn same_type<I: Isa>(v: &mut Vector<'_, I, Port>, scratch: &mut Scratch) -> Option<u16> {
    let (n, under) = (v.len(), 0xffff_0000);
    v.words(12, &mut scratch.word);
    let first = *scratch.word.strips(n).first()?.first()?.first()?;
    for (strip, [words]) in scratch.word.strips(n).iter().enumerate() {
        let mut odd = [0; 16];
        for row in 0..16 {
            odd[row] = (words[row] ^ first) & under;
        }
        if any_bit(&odd, n - 16 * strip) {
            return None;
        }
    }
    Some((first >> 16) as u16)
}

/// Whether all packets begin with a header without options and are as long as it says, in one buffer each.
#[inline(always)]
fn are_whole<I: Isa>(v: &mut Vector<'_, I, Port>, scratch: &mut Scratch) -> bool {
    if !is_at_header(v) {
        return false;
    }
    let n = v.len();
    v.words(0, &mut scratch.word);
    let strips = scratch.word.strips(n).iter().zip(v.strips(Col::LEN));
    for (strip, ([w0], len)) in strips.enumerate() {
        let mut odd = [0; 16];
        for row in 0..16 {
            odd[row] = unusual(len[row], w0[row]);
        }
        if any_bit(&odd, n - 16 * strip) {
            return false;
        }
    }
    true
}

/// Decrements all TTLs, if each is above 1 (RFC 1624 for the checksum).
#[inline(always)]
fn decrement<I: Isa>(v: &mut Vector<'_, I, Port>, scratch: &mut Scratch) -> Option<usize> {
    if !is_at_header(v) {
        return None;
    }
    let n = v.len();
    v.words(0, &mut scratch.header);
    let strips = scratch.header.strips(n).iter().zip(v.strips(Col::LEN));
    for (strip, ([w0, _, w2, ..], len)) in strips.enumerate() {
        let mut odd = [0; 16];
        for row in 0..16 {
            odd[row] = mask(w2[row] >> 24 < 2) | unusual(len[row], w0[row]);
        }
        if any_bit(&odd, n - 16 * strip) {
            return None;
        }
    }
    v.apply::<12>(|_, header| {
        let [.., ttl, protocol, high, low] = *header;
        let sum = checksum::after_ttl_decrement(u16::from_be_bytes([high, low]));
        let [high, low] = sum.to_be_bytes();
        header[8..].copy_from_slice(&[ttl - 1, protocol, high, low]);
    });
    Some(0)
}

impl Fast {
    /// Judge each packet of a vector; false if the element does so.
    #[inline(always)]
    pub(crate) fn judge<I: Isa>(
        &self,
        v: &mut Vector<'_, I, Port>,
        scratch: &mut Scratch,
        verdicts: &mut [u32],
        guard: Guard<'_>,
    ) -> bool {
        let Fast::Route(routes) = self else {
            return false;
        };
        v.require(DST.col, 0);
        let leaves = scratch.leaves.words_mut(v.len());
        routes.judge(v.column_mut(DST.col), leaves, verdicts, guard);
        true
    }

    /// Handle all packets: the output to which all of them go. Without one nothing was changed.
    #[inline(always)]
    pub(crate) fn run<I: Isa>(
        &self,
        v: &mut Vector<'_, I, Port>,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        match self {
            Fast::None | Fast::Resolve | Fast::Route(_) => None,
            Fast::Pass => Some(0),
            Fast::Strip(bytes) => are_long(v, *bytes).then(|| {
                v.advance(*bytes);
                0
            }),
            Fast::Prepend(header) => prepend(v, |_| header).then_some(0),
            Fast::Paint(under, bits) => {
                v.require(NOTE.col, 0);
                for word in v.column_mut(NOTE.col) {
                    *word = *word & !under | bits;
                }
                Some(0)
            }
            Fast::NoBits(bits) => {
                v.require(NOTE.col, 0);
                (or_all(v.column(NOTE.col)) & bits == 0).then_some(0)
            }
            Fast::NotValue(under, value) => {
                v.require(NOTE.col, 0);
                let words = v.column(NOTE.col).iter();
                let any = words.fold(0, |any, word| any | mask(word & under == *value));
                (any == 0).then_some(0)
            }
            Fast::EtherTypes(types) => {
                if !are_long(v, ETHERNET as u32) {
                    return None;
                }
                let kind = same_type(v, scratch)?;
                let found = types.iter().find(|(it, _)| *it == kind);
                found.map(|(_, port)| *port)
            }
            Fast::CheckIp(bad) => check_ip(v, scratch, bad),
            Fast::Plain => are_whole(v, scratch).then_some(0),
            Fast::Ttl => decrement(v, scratch),
            Fast::AtMost(most) => {
                let lens = v.column(Col::LEN).iter();
                let any = lens.fold(0, |any, len| any | mask(*len > *most));
                (any == 0 && are_whole(v, scratch)).then_some(0)
            }
        }
    }
}
