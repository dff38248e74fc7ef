//! How fast packets leave a queue.

use crate::cells::Cells;
use crate::link::Link;
use crate::turn::Turn;
use std::sync::Arc;

/// Times in nanoseconds, each with the number of packets that arrived then.
pub type Arrivals<'a> = &'a [(u64, usize)];

/// The packets at the front of a queue.
#[derive(Clone, Copy)]
pub struct Front<'a> {
    /// Lengths of the packets.
    pub lengths: &'a [u32],
    /// Times, each with the number of packets that arrived then, in two parts.
    arrivals: (Arrivals<'a>, Arrivals<'a>),
}

impl<'a> Front<'a> {
    /// Packets of these lengths. There may be more times than packets.
    pub fn new(lengths: &'a [u32], arrivals: (Arrivals<'a>, Arrivals<'a>)) -> Front<'a> {
        Front { lengths, arrivals }
    }

    /// When each packet arrived.
    pub fn arrivals(&self) -> impl Iterator<Item = u64> + 'a {
        let all = self.arrivals.0.iter().chain(self.arrivals.1);
        let each = all.flat_map(|(at, count)| std::iter::repeat_n(*at, *count));
        each.take(self.lengths.len())
    }
}

/// A limit of an element between a queue and its reader, or of the reader.
#[derive(Clone)]
pub enum Pace {
    /// Packets while a cell is not 0.
    Active(Arc<Cells>, usize),
    /// Packets a second: the rate is in cell 0.
    Packets(Arc<Cells>),
    /// Bytes a second: the rate is in cell 0.
    Bytes(Arc<Cells>),
    /// The turn of an input of a scheduler.
    Turn(Arc<Turn>, usize),
    /// Packets that have waited: cell 0 has the microseconds.
    Delay(Arc<Cells>),
    /// A link takes a packet when it is free.
    Link(Arc<Link>),
}

/// Cells of an element that limits a queue: the state of its token bucket, so that the queue may change and the limit goes on.
const CREDIT: usize = 1;
const LAST: usize = 2;

/// The longest time for which credit is saved, in seconds.
const SAVED: f64 = 0.01;

/// A token bucket.
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

    /// The bucket that the cells of an element have.
    fn of(cells: &Cells) -> Bucket {
        Bucket {
            credit: f64::from_bits(cells.get(CREDIT)),
            last_ns: cells.get(LAST).checked_sub(1),
        }
    }

    fn keep(&self, cells: &Cells) {
        cells.set(CREDIT, self.credit.to_bits());
        cells.set(LAST, self.last_ns.map_or(0, |it| it.saturating_add(1)));
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

/// The credit of the bucket in these cells at a time.
fn credit(cells: &Cells, now_ns: u64) -> f64 {
    let mut bucket = Bucket::of(cells);
    let credit = bucket.at(from_fixed(cells.get(0)), 1.0, now_ns);
    bucket.keep(cells);
    credit
}

fn take(cells: &Cells, by: f64) {
    let mut bucket = Bucket::of(cells);
    bucket.take(by);
    bucket.keep(cells);
}

impl Pace {
    /// The number of packets that may leave now.
    pub fn allows(&self, front: &Front<'_>, now_ns: u64) -> usize {
        let lengths = front.lengths;
        match self {
            Pace::Link(link) => link.allows(front, now_ns),
            Pace::Delay(cells) => {
                let delay_ns = cells.get(0).saturating_mul(1000);
                let has_waited = |at: &u64| now_ns.saturating_sub(*at) >= delay_ns;
                front.arrivals().take_while(has_waited).count()
            }
            Pace::Active(cells, cell) => match cells.get(*cell) {
                0 => 0,
                _ => lengths.len(),
            },
            Pace::Turn(turn, input) => turn.allows(*input, lengths, now_ns),
            Pace::Packets(cells) => (credit(cells, now_ns).max(0.0) as usize).min(lengths.len()),
            Pace::Bytes(cells) => {
                let mut credit = credit(cells, now_ns);
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

    /// Packets leave.
    pub fn took(&self, front: &Front<'_>) {
        let lengths = front.lengths;
        match self {
            Pace::Active(..) | Pace::Delay(_) => {}
            Pace::Link(link) => link.took(front),
            Pace::Turn(turn, input) => turn.took(*input, lengths),
            Pace::Packets(cells) => take(cells, lengths.len() as f64),
            Pace::Bytes(cells) => {
                let bytes: u64 = lengths.iter().map(|it| u64::from(*it)).sum();
                take(cells, bytes as f64);
            }
        }
    }
}
