//! Finds duplicates and reordered packets by sequence numbers.

/// Sequence numbers below the largest one that are remembered.
pub const MEMORY: u64 = 1 << 16;

/// What a sequence number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Larger than all before.
    InOrder,
    /// Behind a larger one.
    Late,
    /// Received before.
    Duplicate,
}

/// The last [`MEMORY`] sequence numbers. One that is older counts as late, whether it was received before or not.
pub struct Window {
    seen: Box<[u64]>,
    /// Largest sequence number, plus one.
    end: u64,
}

impl Default for Window {
    fn default() -> Self {
        Window {
            seen: vec![0; (MEMORY / 64) as usize].into_boxed_slice(),
            end: 0,
        }
    }
}

impl Window {
    /// Forget everything.
    pub fn clear(&mut self) {
        self.seen.fill(0);
        self.end = 0;
    }

    /// Largest sequence number, plus one.
    pub fn end(&self) -> u64 {
        self.end
    }

    #[inline(always)]
    fn place(sequence: u64) -> (usize, u64) {
        let at = sequence % MEMORY;
        ((at / 64) as usize, 1 << (at % 64))
    }

    /// Note the arrival of a sequence number.
    #[inline(always)]
    pub fn note(&mut self, sequence: u64) -> Arrival {
        let (word, bit) = Window::place(sequence);
        if sequence >= self.end {
            self.forget(sequence);
            self.seen[word] |= bit;
            self.end = sequence.saturating_add(1);
            return Arrival::InOrder;
        }
        if self.end - sequence > MEMORY {
            return Arrival::Late;
        }
        let before = self.seen[word] & bit != 0;
        self.seen[word] |= bit;
        match before {
            true => Arrival::Duplicate,
            false => Arrival::Late,
        }
    }

    /// Clear the places of the sequence numbers that were skipped.
    #[inline(always)]
    fn forget(&mut self, sequence: u64) {
        if sequence - self.end >= MEMORY {
            self.seen.fill(0);
            return;
        }
        for skipped in self.end..=sequence {
            let (word, bit) = Window::place(skipped);
            self.seen[word] &= !bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn arrivals_are_those_of_a_plain_set() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut window = Window::default();
        let (mut known, mut end) = (BTreeSet::new(), 0u64);
        let mut next = 0u64;
        for _ in 0..300_000 {
            let sequence = match random.u8(..) {
                0..=9 => next.saturating_sub(random.u64(..200)),
                10 => next.saturating_sub(random.u64(..2 * MEMORY)),
                11 => {
                    next += random.u64(..3 * MEMORY);
                    next
                }
                _ => {
                    next += 1;
                    next
                }
            };
            let wanted = match sequence {
                s if s >= end => Arrival::InOrder,
                s if end - s > MEMORY => Arrival::Late,
                s if known.contains(&s) => Arrival::Duplicate,
                _ => Arrival::Late,
            };
            assert_eq!(window.note(sequence), wanted, "{sequence} of {end}");
            known.insert(sequence);
            end = end.max(sequence + 1);
            assert_eq!(window.end(), end);
        }
        window.clear();
        assert_eq!(window.note(u64::MAX), Arrival::InOrder);
    }
}
