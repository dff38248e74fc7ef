//! The values of one edit for consecutive packets.

use crate::spec::{Edit, EditKind, EditTarget};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use std::path::Path;
use volley_model::ModelError;

/// The maximum number of values of a file.
const FILE_VALUES: usize = 1 << 24;

/// The random generator of streams. Its output is part of the crate's contract (SplitMix64 seeding and
/// xoshiro256++ are specified to the bit), so a seed gives the same packets in every version.
pub(crate) type Random = Xoshiro256PlusPlus;

/// A number below `span` (0 means 2^128), with a bias below `span` / 2^64.
#[inline(always)]
pub(crate) fn below(random: &mut Random, span: u128) -> u128 {
    let low = random.next_u64();
    if span != 0 && span <= 1 << 64 {
        return (u128::from(low) * span) >> 64;
    }
    let wide = u128::from(random.next_u64()) << 64 | u128::from(low);
    if span == 0 { wide } else { wide % span }
}

/// A sequence of values.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Fixed(u128),
    Step {
        min: u128,
        max: u128,
        step: u128,
        next: u128,
    },
    Random {
        min: u128,
        span: u128,
    },
    /// Lists of 32-bit values, the usual case, need less cache.
    List32(Box<[u32]>, usize),
    List128(Box<[u128]>, usize),
}

impl Values {
    /// The values of an edit; a file is read at once.
    pub(crate) fn of(edit: &Edit) -> Result<Values, ModelError> {
        Ok(match &edit.how {
            EditKind::Fixed(value) => Values::Fixed(value.to_u128()),
            EditKind::Increment { min, max, step } => Values::Step {
                min: min.to_u128(),
                max: max.to_u128(),
                step: u128::from(*step),
                next: min.to_u128(),
            },
            EditKind::Random { min, max } => Values::Random {
                min: min.to_u128(),
                span: (max.to_u128() - min.to_u128()).wrapping_add(1),
            },
            EditKind::List(values) => {
                Values::list(edit, values.iter().map(|v| v.to_u128()).collect())
            }
            EditKind::File(path) => Values::list(edit, read(path, &edit.target)?),
        })
    }

    fn list(edit: &Edit, values: Vec<u128>) -> Values {
        if edit.target.bits() <= 32 {
            Values::List32(values.iter().map(|v| *v as u32).collect(), 0)
        } else {
            Values::List128(values.into(), 0)
        }
    }

    /// Start again.
    pub(crate) fn reset(&mut self) {
        match self {
            Values::Step { min, next, .. } => *next = *min,
            Values::List32(_, at) | Values::List128(_, at) => *at = 0,
            Values::Fixed(_) | Values::Random { .. } => {}
        }
    }

    /// The number of values after which they repeat; none when they do not, or it is unknown.
    pub(crate) fn period(&self) -> Option<usize> {
        match self {
            Values::Fixed(_) => Some(1),
            Values::Step { min, max, step, .. } => {
                let steps = usize::try_from((max - min).checked_div(*step)?).ok()?;
                steps.checked_add(1)
            }
            Values::Random { .. } => None,
            Values::List32(values, _) => Some(values.len()),
            Values::List128(values, _) => Some(values.len()),
        }
    }

    /// The next value.
    #[inline(always)]
    pub(crate) fn next(&mut self, random: &mut Random) -> u128 {
        match self {
            Values::Fixed(value) => *value,
            Values::Random { min, span } => min.wrapping_add(below(random, *span)),
            Values::Step {
                min,
                max,
                step,
                next,
            } => {
                let value = *next;
                // `value` is at most `max`, so the difference is not negative.
                *next = if *max - value >= *step {
                    value + *step
                } else {
                    *min
                };
                value
            }
            Values::List32(values, at) => u128::from(in_turn(values, at)),
            Values::List128(values, at) => in_turn(values, at),
        }
    }
}

/// The next value of a list that repeats.
#[inline(always)]
pub(super) fn in_turn<T: Copy + Default>(values: &[T], at: &mut usize) -> T {
    let value = values.get(*at).copied().unwrap_or_default();
    *at = if *at + 1 < values.len() { *at + 1 } else { 0 };
    value
}

/// The maximum length of a file of values, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// Reads one value per line; blank lines, and text after a `#`, are skipped.
fn read(path: &Path, target: &EditTarget) -> Result<Vec<u128>, ModelError> {
    let text = volley_file::read_text(path, MAX_FILE).map_err(|e| ModelError::file(path, e))?;
    let mut values = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let fault = |why: String| ModelError::File {
            path: path.display().to_string(),
            place: Some(format!("line {}", number + 1)),
            why,
        };
        let text = line.split('#').next().unwrap_or("").trim();
        if text.is_empty() {
            continue;
        }
        if values.len() == FILE_VALUES {
            return Err(fault(format!("more than {FILE_VALUES} values")));
        }
        values.push(target.value(text).map_err(fault)?.to_u128());
    }
    if values.is_empty() {
        return Err(ModelError::file(path, "it has no values: write one a line"));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    fn take(edit: &str, n: usize) -> Vec<u128> {
        let mut values = Values::of(&edit.parse().unwrap()).unwrap();
        let mut random = Random::seed_from_u64(1);
        (0..n).map(|_| values.next(&mut random)).collect()
    }

    #[test]
    fn each_kind_gives_its_values() {
        assert_eq!(take("udp.sport fixed 7", 3), [7, 7, 7]);
        assert_eq!(take("udp.sport increment 1 6 step 2", 5), [1, 3, 5, 1, 3]);
        assert_eq!(
            take("udp.sport increment 65534 65535", 3),
            [65534, 65535, 65534]
        );
        assert_eq!(take("udp.sport list 9 4", 3), [9, 4, 9]);
        let all = "ip6.dst increment :: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff step 18446744073709551615";
        assert_eq!(take(all, 3)[2], 2 * u128::from(u64::MAX));
        assert_eq!(take("ip6.dst list ::5 ::6", 3), [5, 6, 5]);
    }

    #[test]
    fn random_values_fill_their_range_and_stay_in_it() {
        let values = take("udp.sport random 10 13", 400);
        assert!((10..=13).all(|v| values.iter().filter(|x| **x == v).count() > 50));
        assert!(values.iter().all(|v| (10..=13).contains(v)));
        let wide = take(
            "ip6.dst random :: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            64,
        );
        assert!(wide.iter().any(|v| v >> 127 == 1) && wide.iter().any(|v| v >> 127 == 0));
    }

    /// The numbers are part of the contract: they change only with a new version of the format.
    #[test]
    fn random_numbers_are_stable() {
        let mut random = Random::seed_from_u64(0);
        // xoshiro256++ seeded with SplitMix64(0), from the reference implementations.
        assert_eq!(random.next_u64(), 0x53175d61490b23df);
    }

    #[test]
    fn files_are_read_line_by_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dst.txt");
        std::fs::write(&path, "# next hops\n10.0.0.1\n\n10.0.0.2 # two\n").unwrap();
        let edit = format!("ip4.dst file {}", path.display());
        assert_eq!(take(&edit, 3), [0x0a00_0001, 0x0a00_0002, 0x0a00_0001]);
        std::fs::write(&path, "10.0.0.1\n10.0.0.999\n").unwrap();
        let error = Values::of(&edit.parse().unwrap()).unwrap_err().to_string();
        assert!(
            error.contains("dst.txt, line 2: '10.0.0.999' is not"),
            "{error}"
        );
        std::fs::write(&path, "\n").unwrap();
        assert!(Values::of(&edit.parse().unwrap()).is_err());
    }
}
