//! All prefixes of a table with their active path list, stored densely: 8 bytes per IPv4 route, 20 per IPv6 route.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable, hash_table::Entry};

use crate::family::{Family, Prefix};

/// Limit of path list numbers.
pub(crate) const MAX_LISTS: u32 = 1 << 24;

/// Address, list number (24 bits) and prefix length (8 bits).
#[derive(Copy, Clone)]
struct Row<F: Family> {
    addr: F::Packed,
    word: u32,
}

impl<F: Family> Row<F> {
    fn new(prefix: Prefix<F>, list: u32) -> Self {
        let word = u32::from(prefix.len()) << 24 | list & (MAX_LISTS - 1);
        Row {
            addr: F::pack(prefix.addr()),
            word,
        }
    }
    fn len(&self) -> u8 {
        (self.word >> 24) as u8
    }
    fn list(&self) -> u32 {
        self.word & (MAX_LISTS - 1)
    }
    fn prefix(&self) -> Prefix<F> {
        Prefix::around(F::unpack(self.addr), self.len())
    }
    fn is(&self, prefix: &Prefix<F>) -> bool {
        self.addr == F::pack(prefix.addr()) && self.len() == prefix.len()
    }
}

/// Hash maps by length; foldhash (hashbrown's default) is fast and seeded per process, so a peer that chooses prefixes cannot
/// provoke collisions.
pub(crate) struct Routes<F: Family> {
    rows: HashTable<Row<F>>,
    hasher: DefaultHashBuilder,
    by_len: [u32; 129],
}

impl<F: Family> Routes<F> {
    pub fn new() -> Self {
        Self {
            rows: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            by_len: [0; 129],
        }
    }

    fn hash(hasher: &DefaultHashBuilder, prefix: &Prefix<F>) -> u64 {
        hasher.hash_one((prefix.addr(), prefix.len()))
    }

    pub fn reserve(&mut self, more: usize) {
        let hasher = &self.hasher;
        self.rows
            .reserve(more, |row| Self::hash(hasher, &row.prefix()));
    }

    pub fn get(&self, prefix: Prefix<F>) -> Option<u32> {
        let hash = Self::hash(&self.hasher, &prefix);
        self.rows.find(hash, |row| row.is(&prefix)).map(Row::list)
    }

    /// Sets the list of a prefix and returns the one it had.
    pub fn set(&mut self, prefix: Prefix<F>, list: u32) -> Option<u32> {
        let hasher = &self.hasher;
        let hash = Self::hash(hasher, &prefix);
        let entry = self.rows.entry(
            hash,
            |row| row.is(&prefix),
            |row| Self::hash(hasher, &row.prefix()),
        );
        let row = Row::new(prefix, list);
        match entry {
            Entry::Occupied(mut o) => Some(std::mem::replace(o.get_mut(), row).list()),
            Entry::Vacant(v) => {
                v.insert(row);
                self.by_len[usize::from(prefix.len())] += 1;
                None
            }
        }
    }

    pub fn remove(&mut self, prefix: Prefix<F>) -> Option<u32> {
        let hash = Self::hash(&self.hasher, &prefix);
        let (row, _) = self
            .rows
            .find_entry(hash, |row| row.is(&prefix))
            .ok()?
            .remove();
        self.by_len[usize::from(prefix.len())] -= 1;
        Some(row.list())
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Number of prefixes of each length in use.
    pub fn lengths(&self) -> impl Iterator<Item = (u8, u32)> {
        (0u8..=128).zip(self.by_len).filter(|(_, n)| *n > 0)
    }

    /// The longest prefix shorter than `below` bits that contains the address.
    pub fn cover(&self, addr: F::Addr, below: u8) -> Option<(Prefix<F>, u32)> {
        (0..below)
            .rev()
            .filter(|&len| self.by_len[usize::from(len)] > 0)
            .find_map(|len| {
                let prefix = Prefix::around(addr, len);
                self.get(prefix).map(|list| (prefix, list))
            })
    }

    /// All routes in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<F>, u32)> {
        self.rows.iter().map(|row| (row.prefix(), row.list()))
    }

    /// All routes in order of address, then length.
    pub fn sorted(&self) -> Vec<(Prefix<F>, u32)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable();
        all
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.rows.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{V4, V6};

    #[test]
    fn rows_are_dense() {
        assert_eq!(std::mem::size_of::<Row<V4>>(), 8);
        assert_eq!(std::mem::size_of::<Row<V6>>(), 20);
    }

    #[test]
    fn set_get_remove_and_the_covering_prefix() {
        let mut r = Routes::<V4>::new();
        let p = |a, l| Prefix::<V4>::around(a, l);
        assert_eq!(r.set(p(0x0a000000, 8), 1), None);
        assert_eq!(r.set(p(0x0a000000, 16), MAX_LISTS - 1), None);
        assert_eq!(r.set(p(0x0a000000, 8), 3), Some(1));
        assert_eq!(
            r.cover(0x0a000001, 32),
            Some((p(0x0a000000, 16), MAX_LISTS - 1))
        );
        assert_eq!(r.cover(0x0a000001, 16), Some((p(0x0a000000, 8), 3)));
        assert_eq!(r.cover(0x0b000001, 33), None);
        assert_eq!(r.lengths().collect::<Vec<_>>(), [(8, 1), (16, 1)]);
        assert_eq!(r.remove(p(0x0a000000, 16)), Some(MAX_LISTS - 1));
        assert_eq!((r.remove(p(0x0a000000, 16)), r.len()), (None, 1));
    }
}
