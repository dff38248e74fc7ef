//! A serial link that is emulated: how long packets are on it.

use crate::cells::{Cells, LENGTH};
use crate::pace::Front;
use std::sync::Arc;

/// Cell: when the link can take the next packet, in nanoseconds, as the bits of a number with binary places.
const FREE: usize = 1;
/// Cell: times that the link was emptied.
pub(crate) const RESETS: usize = 2;
/// Cells of the handlers: latency in microseconds, bandwidth in bytes a second.
pub(crate) const LATENCY: usize = 3;
pub(crate) const BANDWIDTH: usize = 4;

/// Packets on a link at most.
const MOST: usize = 65_536;
/// The shortest packet, for the number of packets that a link can have.
const SHORTEST: f64 = 20.0;

/// What the queue in front of a link and the link share.
pub struct Link {
    latency_ns: u64,
    /// Nanoseconds of a byte.
    byte_ns: f64,
    most: usize,
    cells: Arc<Cells>,
}

impl Link {
    /// A link with a latency in seconds and a bandwidth in bytes a second, 0 for one that takes no time.
    pub(crate) fn new(latency: f64, bandwidth: f64, cells: Arc<Cells>) -> Link {
        let most = match bandwidth > 0.0 {
            true => ((latency * bandwidth / SHORTEST) as usize).saturating_add(2),
            false => MOST,
        };
        Link {
            latency_ns: (latency * 1e9) as u64,
            byte_ns: if bandwidth > 0.0 {
                1e9 / bandwidth
            } else {
                0.0
            },
            most: most.min(MOST),
            cells,
        }
    }

    /// Packets on the link at most.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Times that the link was emptied.
    pub(crate) fn resets(&self) -> u64 {
        self.cells.get(RESETS)
    }

    /// The number of packets on the link.
    pub(crate) fn holds(&self, packets: usize) {
        self.cells.set(LENGTH, packets as u64);
    }

    fn free(&self) -> f64 {
        f64::from_bits(self.cells.get(FREE))
    }

    /// The time of a packet between its first and its last bit.
    fn takes(&self, length: u32) -> f64 {
        f64::from(length) * self.byte_ns
    }

    /// When the link is free behind the first packets of a queue, each of which begins when it is there and the link is free.
    /// Ends with the time before the first packet that could not begin by `until`.
    fn behind(&self, front: &Front<'_>, until: f64) -> (usize, f64) {
        let mut free = self.free();
        let mut count = 0;
        for (length, arrived) in front.lengths.iter().zip(front.arrivals()) {
            if free > until {
                break;
            }
            free = free.max(arrived as f64) + self.takes(*length);
            count += 1;
        }
        (count, free)
    }

    /// The number of packets that can begin now.
    pub(crate) fn allows(&self, front: &Front<'_>, now_ns: u64) -> usize {
        let room = self.most.saturating_sub(self.cells.get(LENGTH) as usize);
        self.behind(front, now_ns as f64).0.min(room)
    }

    /// These packets begin.
    pub(crate) fn took(&self, front: &Front<'_>) {
        let (_, free) = self.behind(front, f64::INFINITY);
        self.cells.set(FREE, free.to_bits());
    }

    /// When the packets that the queue has released last arrive at the other end: the last one ends when the link is free.
    pub(crate) fn arrivals(&self, lengths: &[u32]) -> impl Iterator<Item = u64> {
        let all: f64 = lengths.iter().map(|it| self.takes(*it)).sum();
        let mut end = self.free() - all;
        lengths.iter().map(move |length| {
            end += self.takes(*length);
            (end.ceil() as u64).saturating_add(self.latency_ns)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets that are there from the start follow each other; a packet that comes later begins when it is there.
    #[test]
    fn a_packet_begins_when_it_is_there_and_the_link_is_free() {
        let cells = Arc::new(Cells::new(5));
        // A byte takes a microsecond.
        let link = Link::new(0.01, 1e6, cells.clone());
        let waiting = [(0, 3)];
        let mut front = Front::new(&[100, 200, 300], (&waiting, &[]));
        assert_eq!(link.allows(&front, 0), 1);
        assert_eq!(link.allows(&front, 99_999), 1);
        assert_eq!(link.allows(&front, 100_000), 2);
        assert_eq!(link.allows(&front, 300_000), 3);
        front.lengths = &front.lengths[..2];
        link.took(&front);
        let arrived: Vec<u64> = link.arrivals(&[100, 200]).collect();
        assert_eq!(arrived, [10_100_000, 10_300_000]);
        let later = [(5_000_000, 1)];
        let front = Front::new(&[50], (&later, &[]));
        link.took(&front);
        assert_eq!(link.arrivals(&[50]).collect::<Vec<u64>>(), [15_050_000]);
        // A full link takes no packet.
        link.holds(link.most());
        assert_eq!(link.allows(&front, u64::MAX), 0);
    }

    #[test]
    fn the_largest_times_and_bandwidths_do_not_overflow() {
        let cells = Arc::new(Cells::new(5));
        assert_eq!(Link::new(1e300, 1e300, cells.clone()).most(), MOST);
        let slow = Link::new(1e300, 1e-9, cells);
        let waiting = [(0, 1)];
        slow.took(&Front::new(&[100], (&waiting, &[])));
        assert_eq!(slow.arrivals(&[100]).collect::<Vec<u64>>(), [u64::MAX]);
    }
}
