//! Masks: sets of packets of a vector, which a script names by numbers.

use crate::sets::{Bits, NO_BITS};

/// The maximum number of masks of a vector.
pub(crate) const MOST: usize = 64;
/// The mask of all packets of the script.
pub(crate) const ALL: u32 = 1;

/// The masks of one vector. They are numbered from 1; the first one has all packets of the script.
pub(crate) struct Masks {
    /// Words of a mask.
    words: usize,
    data: Vec<u64>,
    used: usize,
}

impl Masks {
    /// Masks of vectors of up to `rows` packets.
    pub(crate) fn new(rows: usize) -> Self {
        let words = rows.div_ceil(64).max(1);
        Masks {
            words,
            data: vec![0; words * MOST],
            used: 0,
        }
    }

    /// Forget all masks.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// A new mask of no packet; its number.
    pub(crate) fn add(&mut self) -> Result<u32, String> {
        if self.used == MOST {
            return Err(format!(
                "a vector has at most {MOST} masks: use fewer operations that return one"
            ));
        }
        let at = self.used * self.words;
        self.data[at..at + self.words].fill(0);
        self.used += 1;
        Ok(self.used as u32)
    }

    fn place(&self, mask: u32) -> Result<usize, String> {
        let number = mask as usize;
        match (1..=self.used).contains(&number) {
            true => Ok((number - 1) * self.words),
            false => Err(format!(
                "{mask} is no mask of this vector: a mask is valid until the function returns, and an array is no mask"
            )),
        }
    }

    /// The words of a mask.
    pub(crate) fn get(&self, mask: u32) -> Result<&[u64], String> {
        let at = self.place(mask)?;
        Ok(&self.data[at..at + self.words])
    }

    /// The words of a mask, to be written.
    #[cfg(test)]
    pub(crate) fn get_mut(&mut self, mask: u32) -> Result<&mut [u64], String> {
        let at = self.place(mask)?;
        Ok(&mut self.data[at..at + self.words])
    }

    /// A new mask of these words.
    pub(crate) fn put(&mut self, words: &[u64]) -> Result<u32, String> {
        let mask = self.add()?;
        let at = self.place(mask)?;
        self.data[at..at + words.len()].copy_from_slice(words);
        Ok(mask)
    }

    /// A new mask of the first words of a longer one.
    pub(crate) fn put_bits(&mut self, bits: &[u64]) -> Result<u32, String> {
        let words = self.words.min(bits.len());
        self.put(&bits[..words])
    }

    /// A new mask, word by word from two others.
    pub(crate) fn both(
        &mut self,
        a: u32,
        b: u32,
        of: impl Fn(u64, u64) -> u64,
    ) -> Result<u32, String> {
        let (a, b) = (self.place(a)?, self.place(b)?);
        let new = self.add()?;
        let at = self.place(new)?;
        for word in 0..self.words {
            self.data[at + word] = of(self.data[a + word], self.data[b + word]);
        }
        Ok(new)
    }
}

/// The rows of a mask, in order.
pub(crate) fn rows(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(at, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(at * 64 + bit)
        })
    })
}

/// The rows that are in both masks.
#[inline(always)]
pub(crate) fn and(a: &Bits, b: &Bits) -> Bits {
    std::array::from_fn(|at| a[at] & b[at])
}

/// The rows that are in one of two masks, or in both.
#[inline(always)]
pub(crate) fn or(a: &Bits, b: &Bits) -> Bits {
    std::array::from_fn(|at| a[at] | b[at])
}

/// The rows of `a` that are not in `b`.
#[inline(always)]
pub(crate) fn minus(a: &Bits, b: &Bits) -> Bits {
    std::array::from_fn(|at| a[at] & !b[at])
}

/// The first `n` rows.
pub(crate) fn first(n: usize) -> Bits {
    let mut first = NO_BITS;
    fill(&mut first, n);
    first
}

/// Whether a mask has the first `n` rows, and no others.
pub(crate) fn is_first(words: &Bits, n: usize) -> bool {
    *words == first(n)
}

/// Put a row into a mask, or take it out.
pub(crate) fn put(words: &mut [u64], row: usize, is_in: bool) {
    words[row / 64] = words[row / 64] & !(1 << (row % 64)) | u64::from(is_in) << (row % 64);
}

/// Put the first `n` rows into a mask, and no others.
pub(crate) fn fill(words: &mut [u64], n: usize) {
    for (at, word) in words.iter_mut().enumerate() {
        *word = match n.saturating_sub(at * 64) {
            0 => 0,
            left @ 1..64 => (1 << left) - 1,
            _ => u64::MAX,
        };
    }
}

/// Put a row into a mask.
#[inline(always)]
pub(crate) fn insert(words: &mut [u64], row: usize) {
    words[row / 64] |= 1 << (row % 64);
}

/// Whether a row is in a mask.
pub(crate) fn contains(words: &[u64], row: usize) -> bool {
    words
        .get(row / 64)
        .is_some_and(|word| word >> (row % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_sets_of_rows() {
        let mut masks = Masks::new(100);
        let (a, b) = (masks.add().unwrap(), masks.add().unwrap());
        [0, 63, 64, 99]
            .into_iter()
            .for_each(|row| insert(masks.get_mut(a).unwrap(), row));
        insert(masks.get_mut(b).unwrap(), 64);
        let rest = masks.both(a, b, |a, b| a & !b).unwrap();
        assert_eq!(
            rows(masks.get(rest).unwrap()).collect::<Vec<_>>(),
            [0, 63, 99]
        );
        assert!(contains(masks.get(b).unwrap(), 64) && !contains(masks.get(b).unwrap(), 65));
    }

    #[test]
    fn the_first_rows_fill_a_mask() {
        for n in [0, 1, 63, 64, 65, 128, 200] {
            let mut words = [7; 4];
            fill(&mut words, n);
            assert!(rows(&words).eq(0..n), "{n}");
        }
    }

    #[test]
    fn a_number_that_is_no_mask_is_refused() {
        let mut masks = Masks::new(256);
        assert!(masks.get(0).is_err() && masks.get(1).is_err());
        for _ in 0..MOST {
            masks.add().unwrap();
        }
        assert!(masks.add().unwrap_err().contains("at most 64 masks"));
        masks.clear();
        assert!(masks.get(1).is_err());
    }
}
