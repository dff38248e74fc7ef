//! Synthetic tables with the prefix lengths of a real one, for machines without a real table.
//!
//! Lengths follow the full tables of RIPE RIS peer AS3333, 11 May 2026 (counts below). Addresses are random, but as in real
//! tables many of the longer prefixes are inside shorter ones, and next-hop ranks are skewed (top one 19 %, top ten 64 %) and
//! often the same for adjacent prefixes. The same count and seed give the same table on every machine.

use hashbrown::HashSet;

use crate::family::{Family, Prefix, V4, V6};

/// Distinct next hops of a synthetic table.
pub const NEXT_HOPS: u32 = 3362;

/// IPv4 prefix lengths and their numbers of prefixes.
pub const V4_LENGTHS: &[(u8, u32)] = &[
    (8, 16),
    (9, 14),
    (10, 39),
    (11, 95),
    (12, 297),
    (13, 584),
    (14, 1201),
    (15, 2129),
    (16, 13635),
    (17, 8347),
    (18, 13387),
    (19, 25516),
    (20, 45627),
    (21, 52463),
    (22, 113741),
    (23, 107869),
    (24, 657365),
];
/// Prefixes of the real IPv4 table.
pub const V4_PREFIXES: usize = total(V4_LENGTHS);

/// IPv6 prefix lengths and their numbers of prefixes.
pub const V6_LENGTHS: &[(u8, u32)] = &[
    (16, 1),
    (19, 1),
    (20, 14),
    (21, 3),
    (22, 6),
    (23, 6),
    (24, 42),
    (25, 12),
    (26, 17),
    (27, 18),
    (28, 161),
    (29, 5435),
    (30, 827),
    (31, 341),
    (32, 26740),
    (33, 5407),
    (34, 5197),
    (35, 1837),
    (36, 9424),
    (37, 1208),
    (38, 2677),
    (39, 1829),
    (40, 23096),
    (41, 1697),
    (42, 2924),
    (43, 1453),
    (44, 24860),
    (45, 4511),
    (46, 5640),
    (47, 8925),
    (48, 111866),
];
/// Prefixes of the real IPv6 table.
pub const V6_PREFIXES: usize = total(V6_LENGTHS);

const fn total(lengths: &[(u8, u32)]) -> usize {
    let (mut sum, mut at) = (0, 0);
    while at < lengths.len() {
        sum += lengths[at].1 as usize;
        at += 1;
    }
    sum
}

/// A synthetic IPv4 table of `count` prefixes, sorted, without duplicates: address, length, rank of the next hop.
pub fn synthetic4(count: usize, seed: u64) -> Vec<(u32, u8, u32)> {
    let draw = |r: &mut Random| loop {
        let addr = r.next() as u32;
        if is_public(addr) {
            return addr;
        }
    };
    generate::<V4>(count, seed, V4_LENGTHS, draw)
}

/// Unicast space without 0/8, 10/8 and 127/8.
fn is_public(addr: u32) -> bool {
    !matches!(addr >> 24, 0 | 10 | 127 | 224..)
}

/// A synthetic IPv4 table of `count` prefixes of one length, 1 to 32, sorted, without duplicates: address, length, rank of the next hop. The
/// prefixes are spread over the address space. Those outside of the unicast space are used when no other is left; there are at most
/// 2^length.
pub fn networks4(length: u8, count: usize, seed: u64) -> Vec<(u32, u8, u32)> {
    // An odd factor: each network has one place in the order.
    const SPREAD: u64 = 0x9e37_79b9;
    let all = 1u64 << length;
    let address = |at: u64| {
        let network = at.wrapping_add(seed).wrapping_mul(SPREAD) % all;
        (network << (32 - u32::from(length))) as u32
    };
    let of = |public: bool| {
        (0..all)
            .map(address)
            .filter(move |a| is_public(*a) == public)
    };
    let mut random = Random(seed);
    let rows = of(true).chain(of(false)).take(count);
    let mut rows: Vec<_> = rows.map(|a| (a, length, random.rank(None))).collect();
    rows.sort_unstable();
    rows
}

/// A synthetic IPv6 table of `count` prefixes, sorted, without duplicates: address, length, rank of the next hop.
pub fn synthetic6(count: usize, seed: u64) -> Vec<(u128, u8, u32)> {
    // Blocks from which registries allocate, with their approximate shares.
    let blocks = [
        0x2001u128, 0x2400, 0x2400, 0x2600, 0x2600, 0x2800, 0x2a00, 0x2a00, 0x2c00,
    ];
    let draw = |r: &mut Random| {
        let block = blocks[r.below(blocks.len() as u64) as usize];
        let spread = if block == 0x2001 {
            0
        } else {
            u128::from(r.below(16))
        };
        (block + spread) << 112 | u128::from(r.next()) << 48
    };
    generate::<V6>(count, seed, V6_LENGTHS, draw)
}

fn generate<F: Family>(
    count: usize,
    seed: u64,
    lengths: &[(u8, u32)],
    draw: impl Fn(&mut Random) -> F::Addr,
) -> Vec<(F::Addr, u8, u32)> {
    let mut random = Random(seed);
    let mut out: Vec<(F::Addr, u8, u32)> = Vec::with_capacity(count);
    let mut seen: HashSet<Prefix<F>> = HashSet::with_capacity(count);
    for (len, n) in plan::<F>(count, lengths) {
        let shorter = out.len() as u64;
        let mut tries = 0;
        let target = out.len() + n;
        // The number of tries for a length is limited: the table may be a little smaller than requested.
        while out.len() < target && tries < 20 * n + 1000 {
            tries += 1;
            let inside = shorter > 0 && random.below(100) < 55;
            let parent = inside.then(|| out[random.below(shorter) as usize]);
            let addr = match parent {
                Some((addr, plen, _)) => mix::<F>(addr, plen, draw(&mut random)),
                None => draw(&mut random),
            };
            let prefix = Prefix::<F>::around(addr, len);
            if seen.insert(prefix) {
                out.push((prefix.addr(), len, random.rank(parent.map(|p| p.2))));
            }
        }
    }
    out.sort_unstable_by_key(|r| (r.0, r.1));
    out
}

/// The first `len` bits of `parent`, then those of `addr`.
fn mix<F: Family>(parent: F::Addr, len: u8, addr: F::Addr) -> F::Addr {
    let host = F::wide(F::last(F::from_wide(0), len));
    F::from_wide(F::wide(parent) | F::wide(addr) & host)
}

/// Number of prefixes of each length: in proportion, at most half of all prefixes of the length, the rest moved to longer
/// lengths.
fn plan<F: Family>(count: usize, lengths: &[(u8, u32)]) -> Vec<(u8, usize)> {
    let all: u64 = lengths.iter().map(|l| u64::from(l.1)).sum();
    let (mut given, mut so_far) = (0usize, 0u64);
    let longest = lengths.last().map_or(F::BITS, |l| l.0);
    let longer = (longest + 1..=F::BITS).map(|len| (len, 0));
    lengths
        .iter()
        .copied()
        .chain(longer)
        .map(|(len, n)| {
            so_far += u64::from(n);
            let due = (count as u128 * u128::from(so_far) / u128::from(all)) as usize - given;
            let n = due.min(1usize << (len - 1).min(40));
            given += n;
            (len, n)
        })
        .collect()
}

/// SplitMix64: small, fast, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// A next-hop rank: usually the parent's, else from the skewed distribution.
    fn rank(&mut self, parent: Option<u32>) -> u32 {
        match parent {
            Some(rank) if self.below(1000) < 658 => rank,
            _ => match self.below(1000) {
                0..186 => 0,
                186..636 => 1 + (self.below(9).min(self.below(9))) as u32,
                _ => {
                    // Log-uniform between 10 and the last rank.
                    let octaves = f64::from(NEXT_HOPS / 10).log2();
                    let at = self.below(1 << 20) as f64 / f64::from(1 << 20) * octaves;
                    (10.0 * at.exp2()) as u32
                }
            }
            .min(NEXT_HOPS - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_sorted_table_and_another_one_does_not() {
        let a = synthetic4(20_000, 1);
        assert_eq!(a, synthetic4(20_000, 1));
        assert_ne!(a, synthetic4(20_000, 2));
        assert_eq!(a.len(), 20_000);
        assert!(a.is_sorted_by(|x, y| (x.0, x.1) < (y.0, y.1)));
        assert!(
            a.iter()
                .all(|r| Prefix::<V4>::exact(r.0, r.1).is_some() && r.2 < NEXT_HOPS)
        );
    }

    #[test]
    fn networks_of_one_length_are_spread_and_complete() {
        let some = networks4(24, 1000, 3);
        assert!(some.is_sorted_by(|x, y| x.0 < y.0));
        assert!(
            some.iter()
                .all(|r| r.1 == 24 && r.0 & 0xff == 0 && is_public(r.0))
        );
        let first: std::collections::HashSet<u32> = some.iter().map(|r| r.0 >> 24).collect();
        assert!(first.len() > 200, "{}", first.len());
        let all = networks4(12, usize::MAX, 3);
        let addresses: Vec<u32> = all.iter().map(|r| r.0 >> 20).collect();
        assert_eq!(addresses, (0..1 << 12).collect::<Vec<u32>>());
        assert_eq!(networks4(32, 2, 1).len(), 2);
    }

    #[test]
    fn lengths_have_the_real_shares() {
        // The counts of the README of the data.
        assert_eq!((V4_PREFIXES, V6_PREFIXES), (1_042_325, 246_175));
        let table = synthetic6(50_000, 7);
        assert_eq!(table.len(), 50_000);
        for &(len, n) in V6_LENGTHS {
            let got = table.iter().filter(|r| r.1 == len).count();
            let want = n as usize * 50_000 / V6_PREFIXES;
            assert!(got.abs_diff(want) <= 1, "/{len}: {got}, {want}");
        }
        let top = table.iter().filter(|r| r.2 == 0).count();
        assert!((6_000..13_000).contains(&top), "{top}");
    }

    #[test]
    fn more_than_the_lengths_have_room_for_spills_into_longer_ones() {
        let plan = plan::<V4>(40_000_000, V4_LENGTHS);
        assert_eq!(plan.iter().map(|p| p.1).sum::<usize>(), 40_000_000);
        assert_eq!(plan[0], (8, 128));
        assert!(plan.iter().any(|p| p.0 > 24 && p.1 > 0));
        assert_eq!(synthetic4(0, 0), []);
    }
}
