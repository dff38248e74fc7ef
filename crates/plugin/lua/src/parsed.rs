//! What operations on whole vectors need of each packet's headers. One pass reads the headers of the packets of a set; the
//! operations then work on the results, so that a chain of operations reads each packet once.

use crate::batch::start_of_ip;
use crate::fields::{self, ETHERNET};
use crate::ip4::{self, Valid4};
use crate::masks;
use crate::sets::{Bits, NO_BITS};
use volley_sdk::kernel::{self, Kernel, all_equal, any_bit};
use volley_sdk::lend::{LentPackets, Offsets};
use volley_sdk::prelude::*;
use volley_sdk::wire::MacAddr;
use volley_sdk::wire::ip4::suspicious;

/// The EtherType of a packet that has none.
const NO_TYPE: u32 = u32::MAX;
/// Vectors of fewer packets are read packet by packet.
const WHOLE: usize = 8;
/// Bytes of a MAC address.
const MAC: u32 = size_of::<MacAddr>() as u32;

/// The headers of a vector's packets.
pub(crate) struct Parsed {
    /// Packets whose headers were not read, or have changed.
    stale: Bits,
    /// No header was read.
    is_new: bool,
    /// There are no packets in `stale`.
    is_read: bool,
    /// The frame is for its receive interface, or the packet is from an arc of packets for the router.
    mine: Bits,
    /// IPv4 packets that may be forwarded.
    good: Bits,
    /// IPv4 packets that must not be forwarded (RFC 1812).
    bad: Bits,
    /// Packets with bytes behind the IPv4 packet.
    padded: Bits,
    /// The EtherType of all packets, if they are plain: then `ether_types` and `ends` are not set.
    one_type: Option<u32>,
    ether_types: Column,
    destinations: Column,
    /// Where the IPv4 packet ends, from the position of the packet.
    ends: Column,
    frame: Words<4>,
    header: Words<5>,
    /// Marks of packets, one word each.
    marks: [Column; 3],
    room: Offsets,
}

/// What is known of a vector besides its packets.
#[derive(Clone, Copy)]
pub(crate) struct VectorInfo<'a> {
    /// The instruction-set level of the node.
    pub(crate) level: kernel::Level,
    /// Packets without an Ethernet header start at their IP header.
    pub(crate) is_layer3: bool,
    /// Packets that have got an Ethernet header.
    pub(crate) framed: &'a [bool],
    /// MAC addresses of interfaces, by index.
    pub(crate) macs: &'a [[u8; 6]],
}

impl Parsed {
    /// For vectors of up to `size` packets.
    pub(crate) fn new(size: usize) -> Self {
        let column = || Column::new(size);
        Parsed {
            stale: NO_BITS,
            is_new: true,
            is_read: false,
            mine: NO_BITS,
            good: NO_BITS,
            bad: NO_BITS,
            padded: NO_BITS,
            one_type: None,
            ether_types: column(),
            destinations: column(),
            ends: column(),
            frame: Words::new(size),
            header: Words::new(size),
            marks: std::array::from_fn(|_| column()),
            room: Offsets::new(size),
        }
    }

    /// Begin a vector: no header was read.
    pub(crate) fn begin(&mut self, present: &[u64]) {
        self.stale = NO_BITS;
        self.stale[..present.len()].copy_from_slice(present);
        (self.is_new, self.is_read) = (true, false);
        self.one_type = None;
    }

    /// The headers of packets have changed.
    pub(crate) fn forget(&mut self, rows: &Bits) {
        (self.is_new, self.is_read) = (false, false);
        self.stale = masks::or(&self.stale, rows);
    }

    /// The header of a packet has changed.
    pub(crate) fn forget_row(&mut self, row: usize) {
        (self.is_new, self.is_read) = (false, false);
        masks::insert(&mut self.stale, row);
    }

    /// Read the headers of `wanted` that were not read.
    pub(crate) fn read(&mut self, wanted: &Bits, packets: &LentPackets, info: VectorInfo<'_>) {
        if self.is_read {
            return;
        }
        let mut unread = masks::and(wanted, &self.stale);
        self.stale = masks::minus(&self.stale, &unread);
        // Most scripts begin with a look at all packets.
        if self.is_new && self.stale == NO_BITS && packets.len() >= WHOLE && !packets.has_chains() {
            let all = ReadAll {
                parsed: self,
                packets,
                info,
            };
            unread = masks::and(&unread, &kernel::call(info.level, all));
            self.is_read = true;
        }
        self.is_new = false;
        if unread != NO_BITS
            && let Some(one) = self.one_type.take()
        {
            self.ether_types.words_mut(packets.len()).fill(one);
        }
        for row in masks::rows(&unread) {
            self.read_row(packets, info, row);
        }
    }

    #[inline(always)]
    fn read_row(&mut self, packets: &LentPackets, info: VectorInfo<'_>, row: usize) {
        let (packet, n) = (packets.view(row), packets.len());
        let net = start_of_ip(info.is_layer3, info.framed, row);
        let (bytes, whole) = (packet.bytes(), packet.len());
        let to = bytes.first_chunk::<6>();
        let is_mine = net == 0 || to.is_some() && info.macs.get(packet.rx() as usize) == to;
        masks::put(&mut self.mine, row, is_mine);
        let found = fields::ether_type(bytes);
        self.ether_types.words_mut(n)[row] = found.map_or(NO_TYPE, |it| u32::from(it.value()));
        let header = ip4::header(bytes, net);
        self.destinations.words_mut(n)[row] = header.map_or(0, |it| it.dst().to_bits());
        let valid = ip4::valid(header, bytes, net, whole);
        masks::put(&mut self.bad, row, matches!(valid, Valid4::Bad));
        let end = match valid {
            Valid4::Good(end) => Some(end),
            Valid4::Bad | Valid4::Slow => None,
        };
        masks::put(&mut self.good, row, end.is_some());
        masks::put(&mut self.padded, row, end.is_some_and(|end| end < whole));
        self.ends.words_mut(n)[row] = end.unwrap_or(whole) as u32;
    }

    /// The packets that are for their receive interface; also some that were not read.
    pub(crate) fn mine(&self) -> &Bits {
        &self.mine
    }

    /// The IPv4 packets that may be forwarded; also some that were not read.
    pub(crate) fn good(&self) -> &Bits {
        &self.good
    }

    /// The IPv4 packets that must not be forwarded; also some that were not read.
    pub(crate) fn bad(&self) -> &Bits {
        &self.bad
    }

    /// The packets with padding behind the IPv4 packet; also some that were not read.
    pub(crate) fn padded(&self) -> &Bits {
        &self.padded
    }

    /// The packets with an EtherType, of the first `n`; also some that were not read.
    pub(crate) fn with_type(&self, level: kernel::Level, n: usize, wanted: u16) -> Bits {
        let wanted = u32::from(wanted);
        match self.one_type {
            Some(one) if one == wanted => masks::first(n),
            Some(_) => NO_BITS,
            None => kernel::call(level, RowsEqual(self.ether_types.words(n), wanted)),
        }
    }

    /// The IPv4 destinations of the first `n` packets; anything for those that were not read.
    pub(crate) fn destinations(&self, n: usize) -> &[u32] {
        self.destinations.words(n)
    }

    /// Where the IPv4 packet of a row in [`Parsed::padded`] ends, from the position of the packet; `n` is the number of packets.
    pub(crate) fn end(&self, row: usize, n: usize) -> usize {
        self.ends.words(n)[row] as usize
    }
}

/// The rows of a column with this word.
struct RowsEqual<'a>(&'a [u32], u32);

impl Kernel for RowsEqual<'_> {
    type Out = Bits;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Bits {
        *isa.rows_equal(self.0, self.1).words()
    }
}

/// Read the headers of all packets, none of which is a chain. Returns the packets that must be read one by one.
struct ReadAll<'a> {
    parsed: &'a mut Parsed,
    packets: &'a LentPackets,
    info: VectorInfo<'a>,
}

impl Kernel for ReadAll<'_> {
    type Out = Bits;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Bits {
        let ReadAll {
            parsed,
            packets,
            info,
        } = self;
        let n = packets.len();
        let lens = packets.strips(Col::LEN);
        let net = if info.is_layer3 { 0 } else { ETHERNET };
        let (header, frame) = (&mut parsed.header, &mut parsed.frame);
        if info.is_layer3 {
            packets.first_words(isa, (net, header), &mut parsed.room);
        } else {
            packets.first_words_of_two(isa, (net, header), (0, frame), &mut parsed.room);
        }
        if let Some(one) = plain(parsed, packets, info) {
            for (to, [.., dst]) in parsed
                .destinations
                .strips_mut(n)
                .iter_mut()
                .zip(parsed.header.strips(n))
            {
                *to = *dst;
            }
            parsed.one_type = Some(one);
            parsed.good = masks::first(n);
            parsed.mine = parsed.good;
            (parsed.padded, parsed.bad) = (NO_BITS, NO_BITS);
            return NO_BITS;
        }
        let [odd, padded, foreign] = &mut parsed.marks;
        glance(
            (parsed.header.strips(n), lens),
            net as u32,
            [
                odd.strips_mut(n),
                padded.strips_mut(n),
                parsed.ends.strips_mut(n),
                parsed.destinations.strips_mut(n),
            ],
        );
        if info.is_layer3 {
            parsed.ether_types.words_mut(n).fill(NO_TYPE);
            foreign.words_mut(n).fill(0);
        } else {
            let types = parsed.ether_types.strips_mut(n);
            types_of((parsed.frame.strips(n), lens), types);
            let rx = packets.column(Col::RX);
            match rx.first() {
                Some(&first) if all_equal(rx) => {
                    let mac = halves(info.macs, first);
                    let marks = foreign.strips_mut(n);
                    mark_foreign((parsed.frame.strips(n), lens), mac, marks);
                }
                _ => {
                    for (row, (mark, &rx)) in foreign.words_mut(n).iter_mut().zip(rx).enumerate() {
                        let [first, second, ..] = parsed.frame.row(row);
                        let is_short = packets.column(Col::LEN)[row] < MAC;
                        let is_mine = halves(info.macs, rx) == Some((first, second >> 16));
                        *mark = u32::from(is_short || !is_mine);
                    }
                }
            }
        }
        parsed.good = *isa.rows_equal(odd.words(n), 0).words();
        parsed.mine = *isa.rows_equal(foreign.words(n), 0).words();
        parsed.padded = *isa.rows_equal(padded.words(n), 1).words();
        parsed.bad = NO_BITS;
        masks::minus(&masks::first(n), &parsed.good)
    }
}

/// Whether all packets are plain: of one receive interface and for its MAC address, of one EtherType, and as IPv4 packets without
/// padding that need no exact check. Returns their EtherType; [`NO_TYPE`] if they are at their IP header. Most vectors are plain, and
/// their packets need no marks.
#[inline(always)]
fn plain(parsed: &Parsed, packets: &LentPackets, info: VectorInfo<'_>) -> Option<u32> {
    let n = packets.len();
    let (headers, lens) = (parsed.header.strips(n), packets.strips(Col::LEN));
    let net = if info.is_layer3 { 0 } else { ETHERNET };
    if has_odd_header((headers, lens), net as u32, n) {
        return None;
    }
    if info.is_layer3 {
        return Some(NO_TYPE);
    }
    let rx = packets.column(Col::RX);
    let &interface = rx.first()?;
    let mac = halves(info.macs, interface).filter(|_| all_equal(rx))?;
    let [.., kind] = parsed.frame.row(0);
    let differ = do_frames_differ(parsed.frame.strips(n), mac, kind, n);
    (!differ).then_some(kind >> 16)
}

/// Whether an IPv4 packet needs an exact check or has padding. `net` is where their headers begin.
#[inline(always)]
fn has_odd_header((headers, lens): (&[[[u32; 16]; 5]], &[[u32; 16]]), net: u32, n: usize) -> bool {
    for (strip, (header, lens)) in headers.iter().zip(lens).enumerate() {
        let [w0, w1, w2, src, dst] = header;
        let mut odd = [0; 16];
        for row in 0..16 {
            let len = lens[row].saturating_sub(net);
            let words = [w0[row], w1[row], w2[row], src[row], dst[row]];
            odd[row] = suspicious(len, words) | (w0[row] & 0xffff ^ len);
        }
        if any_bit(&odd, n - 16 * strip) {
            return true;
        }
    }
    false
}

/// Whether a frame is not for this MAC address, or has another EtherType than the upper half of `kind`.
#[inline(always)]
fn do_frames_differ(
    frames: &[[[u32; 16]; 4]],
    (high, low): (u32, u32),
    kind: u32,
    n: usize,
) -> bool {
    for (strip, [first, second, _, last]) in frames.iter().enumerate() {
        let mut odd = [0; 16];
        for row in 0..16 {
            let is_foreign = (first[row] ^ high) | (second[row] >> 16 ^ low);
            odd[row] = is_foreign | ((last[row] ^ kind) >> 16);
        }
        if any_bit(&odd, n - 16 * strip) {
            return true;
        }
    }
    false
}

/// Judge IPv4 headers. Sets for each packet whether an exact check is needed, whether it has padding, where the IPv4 packet ends, and
/// its destination.
#[inline(always)]
fn glance(
    (headers, lens): (&[[[u32; 16]; 5]], &[[u32; 16]]),
    net: u32,
    [odd, padded, ends, to]: [&mut [[u32; 16]]; 4],
) {
    // All slices have one length, so the loop has no bounds checks.
    let strips = headers.len();
    let lens = &lens[..strips];
    let (odd, padded) = (&mut odd[..strips], &mut padded[..strips]);
    let (ends, to) = (&mut ends[..strips], &mut to[..strips]);
    for strip in 0..strips {
        let [w0, w1, w2, src, dst] = &headers[strip];
        for row in 0..16 {
            let len = lens[strip][row].saturating_sub(net);
            let words = [w0[row], w1[row], w2[row], src[row], dst[row]];
            odd[strip][row] = suspicious(len, words);
            let total = w0[row] & 0xffff;
            padded[strip][row] = u32::from((total as i32) < len as i32);
            ends[strip][row] = net + total;
        }
        to[strip] = *dst;
    }
}

/// Set the EtherTypes of frames.
#[inline(always)]
fn types_of((frames, lens): (&[[[u32; 16]; 4]], &[[u32; 16]]), types: &mut [[u32; 16]]) {
    for ((frame, lens), types) in frames.iter().zip(lens).zip(types) {
        let [.., kind] = frame;
        // A strip at once: compilers make vectors of one row of many strips from the same loop over rows.
        *types = std::array::from_fn(|row| {
            let is_short = u32::from((lens[row] as i32) < ETHERNET as i32);
            kind[row] >> 16 | is_short.wrapping_neg()
        });
    }
}

/// The first four and the last two bytes of the MAC address of an interface.
#[inline(always)]
fn halves(macs: &[[u8; 6]], interface: u32) -> Option<(u32, u32)> {
    let [a, b, c, d, e, f] = *macs.get(interface as usize)?;
    Some((
        u32::from_be_bytes([a, b, c, d]),
        u32::from_be_bytes([0, 0, e, f]),
    ))
}

/// Set 0 for frames to this MAC address.
#[inline(always)]
fn mark_foreign(
    (frames, lens): (&[[[u32; 16]; 4]], &[[u32; 16]]),
    mac: Option<(u32, u32)>,
    marks: &mut [[u32; 16]],
) {
    let Some((high, low)) = mac else {
        marks.fill([1; 16]);
        return;
    };
    for ((frame, lens), marks) in frames.iter().zip(lens).zip(marks) {
        let [first, second, ..] = frame;
        // A strip at once: see `types_of`.
        *marks = std::array::from_fn(|row| {
            // The words of frames that are shorter than a MAC address are undefined.
            let is_short = u32::from((lens[row] as i32) < MAC as i32);
            (first[row] ^ high) | (second[row] >> 16 ^ low) | is_short
        });
    }
}
