//! Sets of packets of a vector, which a script names by numbers, in the three forms in which a batch can be scattered: bit masks,
//! arrays of row numbers, and the batch itself, from which packets drop out.

use crate::masks::{self, ALL, Masks, rows};

/// The number of the batch: all packets of the script but those that have dropped out.
pub(crate) const BATCH: u32 = 0;
/// The number of the first array.
const FIRST_ARRAY: u32 = 1000;
/// The maximum number of arrays of a vector.
const MOST_ARRAYS: usize = 32;
/// Words of a mask of the longest vector.
const WORDS: usize = 16;

/// A mask that is being made: it becomes a set of the form of the set that it was made from.
pub(crate) type Bits = [u64; WORDS];

/// A mask of no packet.
pub(crate) const NO_BITS: Bits = [0; WORDS];

/// The packets of a set, to be visited in order.
#[derive(Clone, Copy)]
pub(crate) enum Selected<'a> {
    /// One bit for each packet of the vector.
    Mask(&'a [u64]),
    /// Row numbers, without gaps.
    Array(&'a [u32]),
    /// One flag for each packet of the vector: those that have dropped out are holes.
    Holes(&'a [bool]),
}

impl Selected<'_> {
    /// Visit the rows. The first error ends the visit. The form is matched once: each form has its own loop.
    #[inline(always)]
    pub(crate) fn each<E>(self, mut visit: impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        match self {
            Selected::Mask(words) => {
                for (at, &word) in words.iter().enumerate() {
                    let mut left = word;
                    while left != 0 {
                        visit(at * 64 + left.trailing_zeros() as usize)?;
                        left &= left - 1;
                    }
                }
            }
            Selected::Array(rows) => {
                for &row in rows {
                    visit(row as usize)?;
                }
            }
            Selected::Holes(flags) => {
                for (row, &is_in) in flags.iter().enumerate() {
                    if is_in {
                        visit(row)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Visit the rows.
    #[inline(always)]
    pub(crate) fn for_each(self, mut visit: impl FnMut(usize)) {
        let Ok(()) = self.each(|row| {
            visit(row);
            Ok::<(), std::convert::Infallible>(())
        });
    }
}

/// The sets of one vector.
pub(crate) struct Sets {
    pub(crate) masks: Masks,
    arrays: Vec<Vec<u32>>,
    used: usize,
    /// Packets that are in the batch: a flag for each packet of the vector.
    is_in: Vec<bool>,
    /// The number of packets of the vector.
    n: usize,
    /// The rows of the batch without its holes, if it is packed.
    packed: Vec<u32>,
    is_packed: bool,
    /// Packets have dropped out.
    has_holes: bool,
}

impl Sets {
    /// Sets of vectors of up to `size` packets.
    pub(crate) fn new(size: usize) -> Self {
        Sets {
            masks: Masks::new(size),
            arrays: Vec::new(),
            used: 0,
            is_in: vec![false; size],
            n: 0,
            packed: Vec::with_capacity(size),
            is_packed: false,
            has_holes: false,
        }
    }

    /// Forget all sets.
    pub(crate) fn clear(&mut self) {
        self.masks.clear();
        self.used = 0;
        self.n = 0;
        self.is_packed = false;
        self.has_holes = false;
    }

    /// Begin a vector of `n` packets: the script gets those of `present`.
    pub(crate) fn begin(&mut self, present: &[u64], n: usize) {
        self.clear();
        self.n = n;
        // The first mask of a vector always has room.
        let _ = self.masks.put(present);
        let all: u32 = present.iter().map(|word| word.count_ones()).sum();
        let is_whole = all as usize == n;
        self.is_in[..n].fill(is_whole);
        if !is_whole {
            rows(present).for_each(|row| self.is_in[row] = true);
        }
    }

    /// Let the script see one packet only.
    pub(crate) fn focus(&mut self, row: usize) {
        self.clear();
        let mut one = NO_BITS;
        masks::insert(&mut one, row);
        // The first mask always has room.
        let _ = self.masks.put_bits(&one);
        self.packed.clear();
        self.packed.push(row as u32);
        self.is_packed = true;
    }

    /// The packets of a set.
    pub(crate) fn get(&self, set: u32) -> Result<Selected<'_>, String> {
        if set == BATCH {
            return Ok(match self.is_packed {
                true => Selected::Array(&self.packed),
                false => Selected::Holes(&self.is_in[..self.n]),
            });
        }
        let Some(array) = set.checked_sub(FIRST_ARRAY) else {
            return Ok(Selected::Mask(self.masks.get(set)?));
        };
        match self.arrays[..self.used].get(array as usize) {
            Some(rows) => Ok(Selected::Array(rows)),
            None => Err(format!(
                "{set} is no array of this vector: an array is valid until the function returns"
            )),
        }
    }

    /// Keep `bits`, which were made from the packets of `like`: as an array if that is one, otherwise as a mask. Its number.
    pub(crate) fn put(&mut self, like: u32, bits: &Bits) -> Result<u32, String> {
        let Some(array) = like.checked_sub(FIRST_ARRAY) else {
            return self.masks.put_bits(bits);
        };
        let new = self.new_array()?;
        let (olds, news) = self.arrays.split_at_mut(new);
        if let (Some(old), Some(rows)) = (olds.get(array as usize), news.first_mut()) {
            let chosen = old.iter().copied();
            rows.extend(chosen.filter(|&row| masks::contains(bits, row as usize)));
        }
        Ok(FIRST_ARRAY + new as u32)
    }

    /// The place of a new array without rows.
    fn new_array(&mut self) -> Result<usize, String> {
        if self.used == MOST_ARRAYS {
            return Err(format!(
                "a vector has at most {MOST_ARRAYS} arrays: use fewer operations that return one"
            ));
        }
        if self.used == self.arrays.len() {
            self.arrays.push(Vec::with_capacity(self.is_in.len()));
        }
        let new = self.used;
        self.arrays[new].clear();
        self.used += 1;
        Ok(new)
    }

    /// Scatter the batch: an array of its packets that are in `set`, and one of the others.
    pub(crate) fn split(&mut self, set: u32) -> Result<(u32, u32), String> {
        let mut chosen = NO_BITS;
        self.get(set)?
            .for_each(|row| masks::insert(&mut chosen, row));
        let (inside, others) = (self.new_array()?, self.new_array()?);
        let mut taken = std::mem::take(&mut self.arrays[inside]);
        let mut left = std::mem::take(&mut self.arrays[others]);
        self.get(BATCH)?
            .for_each(|row| match masks::contains(&chosen, row) {
                true => taken.push(row as u32),
                false => left.push(row as u32),
            });
        self.arrays[inside] = taken;
        self.arrays[others] = left;
        let number = |at: usize| FIRST_ARRAY + at as u32;
        Ok((number(inside), number(others)))
    }

    /// Let packets drop out of the batch: they leave holes, or close up if the batch is packed.
    pub(crate) fn drop_out(&mut self, set: u32) -> Result<(), String> {
        self.has_holes = true;
        if set == BATCH || self.is_packed {
            let mut out = NO_BITS;
            self.get(set)?.for_each(|row| masks::insert(&mut out, row));
            rows(&out).for_each(|row| {
                if let Some(is_in) = self.is_in.get_mut(row) {
                    *is_in = false;
                }
            });
            self.packed
                .retain(|&row| !masks::contains(&out, row as usize));
            return Ok(());
        }
        let mut is_in = std::mem::take(&mut self.is_in);
        let done = self.get(set).map(|selected| {
            selected.for_each(|row| is_in[row] = false);
        });
        self.is_in = is_in;
        done
    }

    /// Close the holes of the batch.
    pub(crate) fn compact(&mut self) {
        if self.is_packed {
            return;
        }
        self.packed.clear();
        let rows = self.is_in[..self.n].iter().enumerate();
        let rows = rows.filter(|(_, is_in)| **is_in);
        self.packed.extend(rows.map(|(row, _)| row as u32));
        self.is_packed = true;
    }

    /// The packets of a set as a mask.
    pub(crate) fn bits(&self, set: u32) -> Result<Bits, String> {
        let mut bits = NO_BITS;
        let selected = match self.is_whole(set) {
            true => Selected::Mask(self.masks.get(ALL)?),
            false => self.get(set)?,
        };
        match selected {
            Selected::Mask(words) => bits[..words.len()].copy_from_slice(words),
            other => other.for_each(|row| masks::insert(&mut bits, row)),
        }
        Ok(bits)
    }

    /// A new set of those packets of a set that are in a mask.
    pub(crate) fn select(&mut self, set: u32, mask: &Bits) -> Result<u32, String> {
        let bits = masks::and(&self.bits(set)?, mask);
        self.put(set, &bits)
    }

    /// Whether the set is the batch from which no packet has dropped out: it has the packets of [`ALL`].
    fn is_whole(&self, set: u32) -> bool {
        set == BATCH && !self.is_packed && !self.has_holes
    }

    /// The number of packets of a set.
    pub(crate) fn count(&self, set: u32) -> Result<u32, String> {
        Ok(match self.get(set)? {
            Selected::Mask(words) => words.iter().map(|word| word.count_ones()).sum(),
            Selected::Array(rows) => rows.len() as u32,
            Selected::Holes(flags) => flags.iter().map(|&is_in| u32::from(is_in)).sum(),
        })
    }

    /// The row that a script names, from 1; without a name the only packet of the vector, or the first one.
    pub(crate) fn row(&self, name: Option<u32>) -> Result<usize, String> {
        let all = self.masks.get(ALL)?;
        let Some(name) = name else {
            let first = rows(all).next();
            return first.ok_or_else(|| "the vector has no packet".to_owned());
        };
        let row = (name as usize).wrapping_sub(1);
        match masks::contains(all, row) {
            true => Ok(row),
            false => Err(format!("the script has no packet {name} in this vector")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(sets: &Sets, set: u32) -> Vec<usize> {
        let mut all = Vec::new();
        sets.get(set).unwrap().for_each(|row| all.push(row));
        all
    }

    /// Sets of a vector of 100 packets, and a mask of every third one.
    fn thirds() -> (Sets, u32) {
        let mut sets = Sets::new(256);
        let mut present = NO_BITS;
        (0..100).for_each(|row| masks::insert(&mut present, row));
        sets.begin(&present[..4], 100);
        let mut some = NO_BITS;
        (0..100)
            .step_by(3)
            .for_each(|row| masks::insert(&mut some, row));
        let mask = sets.put(ALL, &some).unwrap();
        (sets, mask)
    }

    #[test]
    fn three_forms_have_the_same_packets_in_the_same_order() {
        let (mut sets, mask) = thirds();
        let expected = all(&sets, mask);
        assert_eq!(expected.len(), 34);
        let (inside, others) = sets.split(mask).unwrap();
        assert_eq!(all(&sets, inside), expected);
        let rest = all(&sets, others);
        sets.drop_out(mask).unwrap();
        assert_eq!(all(&sets, BATCH), rest);
        sets.compact();
        assert_eq!(all(&sets, BATCH), rest);
        for set in [inside, others, BATCH, mask] {
            assert_eq!(sets.count(set).unwrap() as usize, all(&sets, set).len());
        }
    }

    #[test]
    fn packets_drop_out_of_a_packed_batch_and_of_a_subset_of_the_vector() {
        let (mut sets, mask) = thirds();
        sets.compact();
        sets.drop_out(mask).unwrap();
        assert!(all(&sets, BATCH).iter().all(|row| row % 3 > 0));
        sets.drop_out(BATCH).unwrap();
        assert!(all(&sets, BATCH).is_empty());
        let mut present = NO_BITS;
        [3, 64, 99]
            .into_iter()
            .for_each(|row| masks::insert(&mut present, row));
        sets.begin(&present[..4], 100);
        assert_eq!(all(&sets, BATCH), [3, 64, 99]);
        sets.focus(64);
        assert_eq!((all(&sets, BATCH), sets.row(None)), (vec![64], Ok(64)));
    }

    #[test]
    fn what_is_made_from_an_array_is_an_array() {
        let (mut sets, mask) = thirds();
        let (_, others) = sets.split(mask).unwrap();
        let mut even = NO_BITS;
        (0..100)
            .step_by(2)
            .for_each(|row| masks::insert(&mut even, row));
        let new = sets.put(others, &even).unwrap();
        assert!(matches!(sets.get(new), Ok(Selected::Array(_))));
        assert!(
            all(&sets, new)
                .iter()
                .all(|row| row % 2 == 0 && row % 3 > 0)
        );
        assert!(sets.get(new + 1).is_err() && sets.masks.get(new).is_err());
        let errors = (0..MOST_ARRAYS).map(|_| sets.split(mask)).last();
        assert!(errors.unwrap().unwrap_err().contains("at most 32 arrays"));
    }
}
