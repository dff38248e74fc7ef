//! What operations on whole vectors need of each packet's headers. One pass reads the headers of the packets of a set; the
//! operations then work on the results, so that a chain of operations reads each packet once.

use crate::batch::start_of_ip;
use crate::fields;
use crate::ip4::{self, Valid4};
use crate::masks;
use crate::sets::{Bits, NO_BITS};
use volley_sdk::lend::LentPackets;

/// The frame is for its receive interface, or the packet is from an arc of packets for the router.
pub(crate) const MINE: u8 = 1;
/// An IPv4 packet that may be forwarded.
pub(crate) const GOOD: u8 = 2;
/// An IPv4 packet that must not be forwarded (RFC 1812).
pub(crate) const BAD: u8 = 4;
/// The packet has bytes behind the IPv4 packet.
const PADDED: u8 = 8;

/// The EtherType of a packet that has none.
const NO_TYPE: u32 = u32::MAX;

/// The headers of a vector's packets.
pub(crate) struct Parsed {
    /// Packets whose headers were not read, or have changed.
    stale: Bits,
    flags: Vec<u8>,
    ether_types: Vec<u32>,
    destinations: Vec<u32>,
    /// Where the IPv4 packet ends, from the position of the packet.
    ends: Vec<u32>,
}

impl Parsed {
    /// For vectors of up to `size` packets.
    pub(crate) fn new(size: usize) -> Self {
        // Flags are read eight at a time.
        let room = size.next_multiple_of(64);
        Parsed {
            stale: NO_BITS,
            flags: vec![0; room],
            ether_types: vec![NO_TYPE; room],
            destinations: vec![0; room],
            ends: vec![0; room],
        }
    }

    /// Begin a vector: no header was read.
    pub(crate) fn begin(&mut self, present: &[u64]) {
        self.stale = NO_BITS;
        self.stale[..present.len()].copy_from_slice(present);
    }

    /// The headers of packets have changed.
    pub(crate) fn forget(&mut self, rows: &Bits) {
        self.stale
            .iter_mut()
            .zip(rows)
            .for_each(|(to, of)| *to |= of);
    }

    /// The header of a packet has changed.
    pub(crate) fn forget_row(&mut self, row: usize) {
        masks::insert(&mut self.stale, row);
    }

    /// Read the headers of `wanted` that were not read.
    pub(crate) fn read(
        &mut self,
        wanted: &Bits,
        packets: &LentPackets,
        macs: &[[u8; 6]],
        (is_layer3, framed): (bool, &[bool]),
    ) {
        for at in 0..wanted.len() {
            let mut left = wanted[at] & self.stale[at];
            self.stale[at] &= !left;
            while left != 0 {
                let row = at * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let net = start_of_ip(is_layer3, framed, row);
                self.read_row(packets, macs, row, net);
            }
        }
    }

    #[inline(always)]
    fn read_row(&mut self, packets: &LentPackets, macs: &[[u8; 6]], row: usize, net: usize) {
        let packet = packets.view(row);
        let (bytes, whole) = (packet.bytes(), packet.len());
        let to = bytes.first_chunk::<6>();
        let is_mine = net == 0 || to.is_some() && macs.get(packet.rx() as usize) == to;
        let mut flags = if is_mine { MINE } else { 0 };
        let found = fields::ether_type(bytes);
        self.ether_types[row] = found.map_or(NO_TYPE, |it| u32::from(it.value()));
        let header = ip4::header(bytes, net);
        self.destinations[row] = header.map_or(0, |it| it.dst().to_bits());
        match ip4::valid(header, bytes, net, whole) {
            Valid4::Good(end) => {
                flags |= GOOD | if end < whole { PADDED } else { 0 };
                self.ends[row] = end as u32;
            }
            Valid4::Bad => flags |= BAD,
            Valid4::Slow => {}
        }
        self.flags[row] = flags;
    }

    /// The packets with a flag; also some that were not read.
    #[inline(always)]
    pub(crate) fn with(&self, flag: u8) -> Bits {
        let bit = flag.trailing_zeros();
        let mut bits = NO_BITS;
        for (word, flags) in bits.iter_mut().zip(self.flags.as_chunks::<64>().0) {
            for (at, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
                // The lowest bit of each byte moves to the highest byte.
                let low = (u64::from_le_bytes(*eight) >> bit) & 0x0101_0101_0101_0101;
                *word |= (low.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
            }
        }
        bits
    }

    /// The packets with padding behind the IPv4 packet; also some that were not read.
    pub(crate) fn padded(&self) -> Bits {
        self.with(PADDED)
    }

    /// The packets with an EtherType; also some that were not read.
    pub(crate) fn with_type(&self, wanted: u16) -> Bits {
        let wanted = u32::from(wanted);
        let mut bits = NO_BITS;
        for (word, all) in bits.iter_mut().zip(self.ether_types.as_chunks::<64>().0) {
            for (at, it) in all.iter().enumerate() {
                *word |= u64::from(*it == wanted) << at;
            }
        }
        bits
    }

    /// The IPv4 destinations of the first `n` packets; anything for those that were not read.
    pub(crate) fn destinations(&self, n: usize) -> &[u32] {
        &self.destinations[..n]
    }

    /// Where the IPv4 packet of a row ends, from the position of the packet.
    pub(crate) fn end(&self, row: usize) -> usize {
        self.ends[row] as usize
    }
}
