//! Streams that repeat after a few packets: these packets are made once, instead of for each transmission.
//!
//! Editing a packet and computing its checksums takes a worker longer than a node needs to
//! forward it; copying a prepared packet takes a fraction. The packets are the same, bit for bit and in the same order.

use super::pick::Pick;
use super::program::{BLOCK, Program};
use super::values::{Random, Values};
use rand_xoshiro::rand_core::SeedableRng;

/// The maximum number of prepared packets.
const PACKETS: usize = 1024;
/// The maximum number of their bytes: they should stay in a core's private cache.
const BYTES: usize = 128 * 1024;

/// The packets of one round, which are sent in order. They are contiguous, so that the processor prefetches
/// the next one.
pub(crate) struct Round {
    blocks: Box<[[u8; BLOCK]]>,
    /// The number of blocks of each packet.
    each: usize,
    lens: Box<[u32]>,
    at: usize,
}

impl Round {
    /// Start with the first packet.
    pub(crate) fn restart(&mut self) {
        self.at = 0;
    }

    /// The length of the packets, if all have the same.
    pub(crate) fn len(&self) -> Option<usize> {
        let first = *self.lens.first()?;
        let same = self.lens.iter().all(|len| *len == first);
        same.then_some(first as usize)
    }

    /// The next packet, padded to whole blocks, and its length.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> (&[[u8; BLOCK]], usize) {
        let at = self.at;
        self.at = if at + 1 < self.lens.len() { at + 1 } else { 0 };
        let blocks = &self.blocks[at * self.each..][..self.each];
        (blocks, self.lens[at] as usize)
    }
}

/// The packets of one round of a stream; none if the stream does not repeat, the round is too long, or nothing is edited.
pub(crate) fn unroll(programs: &[Program], pick: &Pick, values: &[Values]) -> Option<Round> {
    if programs.iter().all(|p| p.unchanged().is_some()) {
        return None;
    }
    let mut count = pick.period()?;
    for values in values {
        count = common_multiple(count, values.period()?)?;
    }
    let longest = programs.iter().map(Program::len).max().unwrap_or(0);
    let room = longest.next_multiple_of(BLOCK);
    if room == 0 || count.checked_mul(room)? > BYTES {
        return None;
    }
    let (mut pick, mut values) = (pick.clone(), values.to_vec());
    // Such a stream has no random values.
    let mut random = Random::seed_from_u64(0);
    let each = room / BLOCK;
    let (mut blocks, mut lens) = (vec![[0; BLOCK]; count * each], Vec::new());
    for packet in blocks.chunks_exact_mut(each) {
        let (which, len) = pick.next(&mut random);
        let packet = packet.as_flattened_mut();
        let len = programs[which].make(packet, len, &mut values, &mut random);
        // Bytes behind a truncated packet's end do not belong to it.
        packet[len..].fill(0);
        lens.push(len as u32);
    }
    Some(Round {
        blocks: blocks.into(),
        each,
        lens: lens.into(),
        at: 0,
    })
}

/// The least common multiple, if it is not too large.
fn common_multiple(a: usize, b: usize) -> Option<usize> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    let all = (a / x.max(1)).checked_mul(b)?;
    (1..=PACKETS).contains(&all).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::make::template::build;
    use volley_graph::buf::DATA;

    fn stream(size: usize, edits: &[&str]) -> (Program, Vec<Values>) {
        let template = "eth / ip4 / udp / payload size 30".parse().unwrap();
        let built = build(&template, Some(size)).unwrap();
        let edits: Vec<crate::spec::Edit> = edits.iter().map(|e| e.parse().unwrap()).collect();
        let places: Vec<_> = edits
            .iter()
            .map(|edit| match &edit.target {
                crate::spec::EditTarget::Field(path) => built.place(path).unwrap(),
                crate::spec::EditTarget::Bytes { .. } => panic!("a field"),
            })
            .collect();
        let values = edits.iter().map(|e| Values::of(e).unwrap()).collect();
        (Program::of(&built, &places, false), values)
    }

    /// The packets that the stream itself makes are the reference, over several rounds.
    #[test]
    fn the_packets_are_those_that_would_be_made() {
        let (program, mut values) = stream(
            90,
            &[
                "ip4.dst increment 10.0.0.1 10.0.0.6",
                "udp.sport list 5 6 7 8",
                "ip4.ttl fixed 9",
            ],
        );
        let mut ready = unroll(std::slice::from_ref(&program), &Pick::Only, &values).unwrap();
        assert_eq!(ready.lens.len(), 12);
        let mut random = Random::seed_from_u64(3);
        let mut packet = [0; 128];
        for n in 0..40 {
            let len = program.make(&mut packet, usize::MAX, &mut values, &mut random);
            let (blocks, ready) = ready.next();
            assert_eq!(blocks.as_flattened()[..ready], packet[..len], "{n}");
        }
    }

    /// Packets made a strip at a time equal those made one by one, for all edits and strip lengths.
    #[test]
    fn strips_are_the_packets_one_by_one() {
        for edits in [
            &[][..],
            &["ip4.dst list 10.0.0.1 10.0.0.2 10.0.0.3"],
            &[
                "eth.src increment 02:00:00:00:00:00 02:00:00:00:00:05",
                "eth.dst list 02:00:00:00:01:01 02:00:00:00:01:02",
            ],
            &[
                "ip4.src random 10.0.0.0 10.255.255.255",
                "udp.sport increment 1 7",
                "ip4.dscp list 1 5 9",
            ],
            &["udp.dport fixed 9", "ip4.id random 0 65535"],
        ] {
            let (program, mut one) = stream(91, edits);
            let mut many = one.clone();
            assert!(program.goes_by_strips(&one));
            let (mut a, mut b) = (Random::seed_from_u64(3), Random::seed_from_u64(3));
            for rows in [1, 16, 5, 16, 2] {
                let mut buffers = vec![[7u8; DATA]; rows];
                let mut strip: Vec<&mut [u8; DATA]> = buffers.iter_mut().collect();
                program.make_strip(&mut strip, &mut many, &mut a);
                for made in &buffers {
                    let mut packet = [7u8; DATA];
                    let len = program.make(&mut packet, usize::MAX, &mut one, &mut b);
                    assert_eq!((len, &made[..]), (91, &packet[..]), "{edits:?}");
                }
            }
        }
    }

    #[test]
    fn two_random_edits_take_turns_at_the_generator() {
        let (program, values) = stream(64, &["udp.sport random 1 9", "udp.dport random 1 9"]);
        assert!(!program.goes_by_strips(&values));
    }

    #[test]
    fn a_range_that_its_step_does_not_divide_ends_where_it_did() {
        let (program, mut values) = stream(64, &["udp.dport increment 1 9 step 3"]);
        let mut ready = unroll(std::slice::from_ref(&program), &Pick::Only, &values).unwrap();
        assert_eq!(ready.lens.len(), 3);
        let mut random = Random::seed_from_u64(3);
        let mut packet = [0; 64];
        for n in 0..7 {
            let len = program.make(&mut packet, usize::MAX, &mut values, &mut random);
            let (blocks, ready) = ready.next();
            assert_eq!(blocks.as_flattened()[..ready], packet[..len], "{n}");
        }
    }

    #[test]
    fn long_random_and_plain_ones_stay_as_they_are() {
        let all = |size: usize, edit: &str| {
            let (program, values) = stream(size, &[edit]);
            unroll(&[program], &Pick::Only, &values).is_some()
        };
        assert!(all(64, "udp.dport increment 1 1024"));
        assert!(!all(64, "udp.dport increment 1 1025"));
        assert!(!all(65, "udp.dport increment 1 1025"));
        assert!(all(128, "udp.dport increment 1 1024"));
        assert!(!all(129, "udp.dport increment 1 1024"));
        assert!(!all(64, "udp.dport random 1 10"));
        let whole = "ip4.dst increment 0.0.0.0 255.255.255.255";
        assert!(!all(64, whole));
        let (program, _) = stream(64, &[]);
        assert!(unroll(&[program], &Pick::Only, &[]).is_none());
    }
}
