//! How fast packets leave a queue.

use crate::cells::Cells;
use std::sync::Arc;

/// A limit of an element between a queue and its reader, or of the reader.
#[derive(Clone)]
pub enum Pace {
    /// Packets while a cell is not 0.
    Active(Arc<Cells>, usize),
    /// Packets a second.
    Packets(Arc<Cells>, Bucket),
    /// Bytes a second.
    Bytes(Arc<Cells>, Bucket),
}

/// The longest time for which credit is saved, in seconds.
const SAVED: f64 = 0.01;

/// A token bucket. Its rate is in cell 0 of the element, with 16 binary places.
#[derive(Clone, Default)]
pub struct Bucket {
    credit: f64,
    last_ns: Option<u64>,
}

impl Bucket {
    /// The credit at a time.
    pub fn at(&mut self, rate: f64, least: f64, now_ns: u64) -> f64 {
        let last = self.last_ns.replace(now_ns);
        match last {
            // The first packet leaves at once.
            None => self.credit = least,
            Some(last) => {
                let passed = now_ns.saturating_sub(last) as f64 / 1e9;
                let most = (rate * SAVED).max(least);
                self.credit = (self.credit + rate * passed).min(most);
            }
        }
        self.credit
    }

    /// Use credit.
    pub fn take(&mut self, by: f64) {
        self.credit -= by;
    }
}

/// A number with 16 binary places.
pub(crate) fn to_fixed(rate: f64) -> u64 {
    (rate * 65_536.0) as u64
}

/// The value of a number with 16 binary places.
pub(crate) fn from_fixed(word: u64) -> f64 {
    word as f64 / 65_536.0
}

impl Pace {
    /// The number of packets of these lengths that may leave now.
    pub fn allows(&mut self, lengths: &[u32], now_ns: u64) -> usize {
        match self {
            Pace::Active(cells, cell) => match cells.get(*cell) {
                0 => 0,
                _ => lengths.len(),
            },
            Pace::Packets(cells, bucket) => {
                let credit = bucket.at(from_fixed(cells.get(0)), 1.0, now_ns);
                (credit.max(0.0) as usize).min(lengths.len())
            }
            Pace::Bytes(cells, bucket) => {
                let mut credit = bucket.at(from_fixed(cells.get(0)), 1.0, now_ns);
                let mut count = 0;
                // A packet may leave on any credit; what it is too long for is a debt.
                while count < lengths.len() && credit > 0.0 {
                    credit -= f64::from(lengths[count]);
                    count += 1;
                }
                count
            }
        }
    }

    /// Packets of these lengths leave.
    pub fn took(&mut self, lengths: &[u32]) {
        match self {
            Pace::Active(..) => {}
            Pace::Packets(_, bucket) => bucket.take(lengths.len() as f64),
            Pace::Bytes(_, bucket) => {
                let bytes: u64 = lengths.iter().map(|it| u64::from(*it)).sum();
                bucket.take(bytes as f64);
            }
        }
    }
}
