//! The order of a stream's packets, and their lengths.

use super::values::{Random, below};
use crate::spec::ImixPart;

/// The order of a stream's packets.
#[derive(Clone, Debug)]
pub(crate) enum Pick {
    /// A single packet.
    Only,
    /// Several packets, round robin.
    InTurn { count: usize, at: usize },
    /// Several packets by weight, each distributed as evenly as possible.
    Mix { order: Box<[u8]>, at: usize },
    /// A single packet, with ascending lengths, repeatedly.
    Step { min: usize, max: usize, next: usize },
    /// A single packet, with random lengths in the range.
    Random { min: usize, max: usize },
}

/// The whole length of the packet.
const WHOLE: usize = usize::MAX;

impl Pick {
    /// The order of a mix: the next part is the one that is furthest behind its share (the first of them).
    pub(crate) fn mix(parts: &[ImixPart]) -> Pick {
        let total: i64 = parts.iter().map(|p| i64::from(p.weight)).sum();
        let mut credit = vec![0i64; parts.len()];
        let next = |_| {
            for (credit, part) in credit.iter_mut().zip(parts) {
                *credit += i64::from(part.weight);
            }
            let most = credit.iter().copied().max().unwrap_or(0);
            let chosen = credit.iter().position(|c| *c == most).unwrap_or(0);
            credit[chosen] -= total;
            chosen as u8
        };
        let order = (0..total).map(next).collect();
        Pick::Mix { order, at: 0 }
    }

    /// Start again.
    pub(crate) fn reset(&mut self) {
        match self {
            Pick::InTurn { at, .. } | Pick::Mix { at, .. } => *at = 0,
            Pick::Step { min, next, .. } => *next = *min,
            Pick::Only | Pick::Random { .. } => {}
        }
    }

    /// The number of packets after which the order repeats; none when it does not, or is unknown.
    pub(crate) fn period(&self) -> Option<usize> {
        match self {
            Pick::Only => Some(1),
            Pick::InTurn { count, .. } => Some(*count),
            Pick::Mix { order, .. } => Some(order.len()),
            Pick::Step { min, max, .. } => Some(max - min + 1),
            Pick::Random { .. } => None,
        }
    }

    /// The number of the next packet, and the length to which it is truncated.
    #[inline(always)]
    pub(crate) fn next(&mut self, random: &mut Random) -> (usize, usize) {
        match self {
            Pick::Only => (0, WHOLE),
            Pick::InTurn { count, at } => {
                let this = *at;
                *at = if this + 1 < *count { this + 1 } else { 0 };
                (this, WHOLE)
            }
            Pick::Mix { order, at } => {
                let this = order[*at];
                *at = if *at + 1 < order.len() { *at + 1 } else { 0 };
                (this.into(), WHOLE)
            }
            Pick::Step { min, max, next } => {
                let this = *next;
                *next = if this < *max { this + 1 } else { *min };
                (0, this)
            }
            Pick::Random { min, max } => {
                (0, *min + below(random, (*max - *min + 1) as u128) as usize)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Sizes;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn the_classic_mix_is_spread_out() {
        let Sizes::Imix(parts) = Sizes::simple_imix() else {
            panic!("a mix")
        };
        let mut pick = Pick::mix(&parts);
        let mut random = Random::seed_from_u64(1);
        let order: Vec<usize> = (0..24).map(|_| pick.next(&mut random).0).collect();
        assert_eq!(order[..12], [0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 1, 0]);
        assert_eq!(order[..12], order[12..]);
        let share = |part| order.iter().filter(|p| **p == part).count();
        assert_eq!([share(0), share(1), share(2)], [14, 8, 2]);
    }

    #[test]
    fn lengths_in_turn_and_at_random() {
        let mut random = Random::seed_from_u64(1);
        let mut pick = Pick::Step {
            min: 64,
            max: 66,
            next: 64,
        };
        let lengths: Vec<usize> = (0..4).map(|_| pick.next(&mut random).1).collect();
        assert_eq!(lengths, [64, 65, 66, 64]);
        let mut pick = Pick::Random { min: 64, max: 66 };
        let seen: std::collections::BTreeSet<usize> =
            (0..100).map(|_| pick.next(&mut random).1).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [64, 65, 66]);
    }
}
