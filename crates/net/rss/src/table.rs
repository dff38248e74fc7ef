//! State that workers read: for each interface with spreading, the hash and the worker of each entry.

use crate::flow::flow;
use crate::hash::Hash;
use crate::model::Rss;

/// Entries of an indirection table.
pub(crate) const ENTRIES: usize = 128;

/// Spreading of one interface.
#[derive(Clone)]
pub(crate) struct Spread {
    pub(crate) hash: Hash,
    pub(crate) symmetric: bool,
    pub(crate) inner: bool,
    /// Index of its counters.
    pub(crate) place: usize,
    /// The worker of each entry; none: packets stay on the receiving worker.
    pub(crate) workers: Option<Box<[u8; ENTRIES]>>,
}

impl Spread {
    pub(crate) fn new(settings: &Rss, place: usize) -> Self {
        Spread {
            hash: Hash::new(settings.hash),
            symmetric: settings.symmetric,
            inner: settings.inner,
            place,
            workers: None,
        }
    }

    /// The entry of a frame; none if the frame has no flow.
    #[inline]
    pub(crate) fn entry(&self, frame: &[u8]) -> Option<usize> {
        let flow = flow(frame, self.inner)?;
        let flow = if self.symmetric {
            flow.symmetric()
        } else {
            flow
        };
        Some(self.hash.of(&flow) as usize % ENTRIES)
    }
}

/// All interfaces.
#[derive(Clone, Default)]
pub(crate) struct Table {
    pub(crate) version: u64,
    /// By interface: 1 + index in `spreads`, 0 for none.
    by_interface: Vec<u16>,
    spreads: Vec<Spread>,
}

impl Table {
    pub(crate) fn new(version: u64, all: impl Iterator<Item = (u32, Spread)>) -> Self {
        let mut table = Table {
            version,
            ..Table::default()
        };
        for (interface, spread) in all {
            let at = interface as usize;
            table
                .by_interface
                .resize(table.by_interface.len().max(at + 1), 0);
            table.spreads.push(spread);
            table.by_interface[at] = table.spreads.len() as u16;
        }
        table
    }

    /// Spreading of an interface; none: its packets stay on the receiving worker.
    #[inline(always)]
    pub(crate) fn spread(&self, interface: u32) -> Option<(&Spread, &[u8; ENTRIES])> {
        let at = usize::from(*self.by_interface.get(interface as usize)?);
        let spread = self.spreads.get(at.checked_sub(1)?)?;
        Some((spread, spread.workers.as_deref()?))
    }
}

/// Entries assigned to workers round-robin.
pub(crate) fn dealt(workers: &[usize]) -> Box<[u8; ENTRIES]> {
    let count = workers.len().max(1);
    let worker = |entry: usize| workers.get(entry % count).copied().unwrap_or(0) as u8;
    Box::new(std::array::from_fn(worker))
}

/// Moves entries from workers with more packets than others to those. `packets` has the recent packets of each entry. True if
/// anything has changed.
pub(crate) fn balance(
    entries: &mut [u8; ENTRIES],
    packets: &[u64; ENTRIES],
    workers: &[usize],
) -> bool {
    let mut load = vec![0; workers.len()];
    let place = |worker: u8| workers.iter().position(|w| *w == usize::from(worker));
    for (worker, packets) in entries.iter().zip(packets) {
        if let Some(at) = place(*worker) {
            load[at] += packets;
        }
    }
    let mut changed = false;
    for _ in 0..ENTRIES {
        let Some((most, least)) = ends(&load) else {
            break;
        };
        let gap = load[most] - load[least];
        if gap * workers.len() as u64 * SLACK < load.iter().sum::<u64>() {
            break;
        }
        // The largest entry that does not make the other worker the busier one.
        let fits = |entry: &usize| {
            place(entries[*entry]) == Some(most) && packets[*entry] > 0 && packets[*entry] < gap
        };
        let best = (0..ENTRIES).filter(fits).max_by_key(|entry| {
            let moved = packets[*entry];
            moved.min(gap - moved)
        });
        let Some(entry) = best else { break };
        load[most] -= packets[entry];
        load[least] += packets[entry];
        entries[entry] = workers[least] as u8;
        changed = true;
    }
    changed
}

/// A difference of at most this fraction (1/4) of a worker's share is tolerated.
const SLACK: u64 = 4;

/// Indexes of the largest and the smallest number.
fn ends(load: &[u64]) -> Option<(usize, usize)> {
    let places = 0..load.len();
    let most = places.clone().max_by_key(|at| load[*at])?;
    let least = places.min_by_key(|at| load[*at])?;
    (most != least).then_some((most, least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn loads(entries: &[u8; ENTRIES], packets: &[u64; ENTRIES], workers: &[usize]) -> Vec<u64> {
        let of = |w: &usize| {
            let mine = entries.iter().zip(packets);
            mine.filter(|(e, _)| usize::from(**e) == *w)
                .map(|(_, p)| p)
                .sum()
        };
        workers.iter().map(of).collect()
    }

    #[test]
    fn entries_are_dealt_evenly() {
        let entries = dealt(&[0, 2, 5]);
        let ones = [1; ENTRIES];
        let loads = loads(&entries, &ones, &[0, 2, 5]);
        assert_eq!(loads, [43, 43, 42]);
    }

    #[test]
    fn two_heavy_entries_of_one_worker_part() {
        let workers = [0, 1];
        let mut entries = dealt(&workers);
        let mut packets = [1; ENTRIES];
        (packets[0], packets[2]) = (1000, 900);
        assert!(balance(&mut entries, &packets, &workers));
        assert_ne!(entries[0], entries[2]);
        let mut same = entries.clone();
        assert!(!balance(&mut same, &packets, &workers), "and stay so");
        assert_eq!(same, entries);
    }

    #[test]
    fn one_heavy_flow_is_not_carried_about() {
        let workers = [0, 1];
        let mut entries = dealt(&workers);
        let mut packets = [0; ENTRIES];
        packets[5] = 1_000_000;
        assert!(!balance(&mut entries, &packets, &workers));
    }

    proptest! {
        /// The busiest worker never gets busier, only the given workers get entries, and the balancing converges.
        #[test]
        fn balance_only_helps(
            weights in prop::collection::vec(0u64..5000, ENTRIES),
            workers in prop::sample::subsequence(vec![0usize, 1, 2, 3, 4], 1..=5),
        ) {
            let packets: [u64; ENTRIES] = weights.try_into().unwrap();
            let mut entries = dealt(&workers);
            let before = loads(&entries, &packets, &workers);
            for _ in 0..3 {
                balance(&mut entries, &packets, &workers);
            }
            let after = loads(&entries, &packets, &workers);
            prop_assert!(after.iter().max() <= before.iter().max());
            prop_assert_eq!(after.iter().sum::<u64>(), packets.iter().sum::<u64>());
            prop_assert!(!balance(&mut entries.clone(), &packets, &workers));
        }
    }
}
