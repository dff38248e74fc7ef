//! The program of one packet of a stream: its bytes, and the writes that change them.

use super::bits::{Place, Write};
use super::sums::Update;
use super::template::{Built, Length};
use super::values::{Random, Values};
use volley_graph::buf::DATA;

/// The number of bytes that are copied at a time.
pub(crate) const BLOCK: usize = 64;

/// The data that a worker needs for one packet.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The packet, padded to whole blocks.
    bytes: Box<[u8]>,
    len: usize,
    /// The minimum length to which it may be truncated.
    headers: usize,
    /// One write for each edit of the stream.
    writes: Box<[Write]>,
    lengths: Box<[Length]>,
    sums: Box<[Update]>,
}

impl Program {
    /// A packet from a file, with the edits at `places` (those inside it).
    pub(crate) fn plain(bytes: &[u8], places: &[Place]) -> Program {
        let inside = |place: &Place| match place.bytes().end <= bytes.len() {
            true => place.write(),
            false => Write::Nowhere,
        };
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(BLOCK), 0);
        Program {
            bytes: padded.into(),
            len: bytes.len(),
            headers: 0,
            writes: places.iter().map(inside).collect(),
            lengths: Box::default(),
            sums: Box::default(),
        }
    }

    /// A template's packet; `any_length` if it is truncated to different lengths.
    pub(crate) fn of(built: &Built, places: &[Place], any_length: bool) -> Program {
        let len = built.bytes.len();
        let mut program = Program::plain(&built.bytes, places);
        program.headers = built.headers;
        let mut dirty = vec![false; len];
        let mut touch = |range: std::ops::Range<usize>| {
            let end = range.end.min(len);
            dirty[range.start.min(end)..end].fill(true);
        };
        places.iter().for_each(|place| touch(place.bytes()));
        if any_length {
            built.lengths.iter().for_each(|l| touch(l.at..l.at + 2));
            program.lengths = built.lengths.clone().into();
        }
        let edited = |at: usize| places.iter().any(|p| p.bytes().contains(&at));
        let mut sums = Vec::new();
        // Innermost first, because an outer checksum covers the inner ones.
        for sum in built
            .sums
            .iter()
            .filter(|s| !edited(s.at) && !edited(s.at + 1))
        {
            let update = match any_length && sum.end.is_none() {
                true => Some(Update::Whole(*sum)),
                false => sum.plan(&built.bytes, len, &dirty),
            };
            if let Some(update) = update {
                dirty[sum.at..sum.at + 2].fill(true);
                sums.push(update);
            }
        }
        program.sums = sums.into();
        program
    }

    /// The length before truncation.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes, if nothing changes them from packet to packet.
    pub(crate) fn unchanged(&self) -> Option<&[u8]> {
        let same = self.writes.is_empty() && self.lengths.is_empty() && self.sums.is_empty();
        same.then(|| &self.bytes[..self.len])
    }

    /// Whether packets may be made a strip at a time ([`Program::make_strip`]) with the same values. Two edits
    /// with random values share one generator, which they must use in turn for each packet.
    pub(crate) fn goes_by_strips(&self, values: &[Values]) -> bool {
        let random = values.iter().filter(|v| matches!(v, Values::Random { .. }));
        let whole = |sum: &Update| matches!(sum, Update::Whole(_));
        self.lengths.is_empty() && !self.sums.iter().any(whole) && random.count() <= 1
    }

    /// Make several packets, each as long as the program's, edit by edit: the code for each edit and checksum is selected once
    /// for all packets of the strip. The result is that of [`Program::make`].
    #[inline(always)]
    pub(crate) fn make_strip(
        &self,
        strip: &mut [&mut [u8; DATA]],
        values: &mut [Values],
        random: &mut Random,
    ) {
        for (at, block) in self.bytes.as_chunks::<BLOCK>().0.iter().enumerate() {
            for packet in strip.iter_mut() {
                if let Some(to) = packet.as_chunks_mut::<BLOCK>().0.get_mut(at) {
                    *to = *block;
                }
            }
        }
        for (write, values) in self.writes.iter().zip(values) {
            match (write, values) {
                (Write::Four(at), Values::List32(list, next)) => {
                    for packet in strip.iter_mut() {
                        let value = super::values::in_turn(list, next);
                        packet[*at..at + 4].copy_from_slice(&value.to_be_bytes());
                    }
                }
                (write, values) => {
                    for packet in strip.iter_mut() {
                        write.put(&mut packet[..], values.next(random));
                    }
                }
            }
        }
        for sum in &self.sums {
            sum.run_strip(strip, self.len);
        }
    }

    /// Make the packet, `len` bytes long, in `packet`, which has space for whole blocks; returns its length.
    #[inline(always)]
    pub(crate) fn make(
        &self,
        packet: &mut [u8],
        len: usize,
        values: &mut [Values],
        random: &mut Random,
    ) -> usize {
        let len = len.clamp(self.headers, self.len);
        let blocks = packet.as_chunks_mut::<BLOCK>().0.iter_mut();
        // Edits may be behind the truncated end: the copied blocks contain their bytes.
        for (to, from) in blocks.zip(self.bytes.as_chunks::<BLOCK>().0) {
            *to = *from;
        }
        for length in &self.lengths {
            let value = (len - length.less).min(0xffff) as u16;
            packet[length.at..length.at + 2].copy_from_slice(&value.to_be_bytes());
        }
        for (write, values) in self.writes.iter().zip(values) {
            write.put(packet, values.next(random));
        }
        for sum in &self.sums {
            sum.run(packet, len);
        }
        len
    }
}
