//! Elements that let one reader take packets of several queues: whose turn it is.

use crate::cells::{Cells, LENGTH, OLDEST};
use crate::pace::{Front, Pace};
use std::sync::Arc;

/// How the queues take turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnKind {
    /// An input waits for all inputs of lower number.
    Priority,
    /// Inputs share by their tickets, in packets.
    Tickets(Vec<u64>),
    /// Inputs share equally, in bytes.
    Bytes,
}

/// A queue in front of an input, with the limits between both.
pub(crate) struct Feeder {
    pub(crate) cells: Arc<Cells>,
    pub(crate) paces: Vec<Pace>,
}

impl Feeder {
    /// Whether a packet could leave it now.
    fn is_ready(&self, now_ns: u64) -> bool {
        let oldest = [(self.cells.get(OLDEST), 1)];
        let front = Front::new(&[1], (&oldest, &[]));
        let may = |pace: &Pace| pace.allows(&front, now_ns) > 0;
        self.cells.get(LENGTH) > 0 && self.paces.iter().all(may)
    }
}

/// The scheduler of an element.
pub struct Turn {
    kind: TurnKind,
    /// The queues of each input.
    inputs: Vec<Vec<Feeder>>,
    /// The cost that each input has had, and the cost of the input that was served last.
    served: Cells,
}

/// Cost of a packet of an input with one ticket.
const STRIDE: u64 = 1 << 20;
/// Costs above this are made smaller: 10 million packets a second with one ticket would overflow after three weeks.
const FAR: u64 = u64::MAX / 2;

impl Turn {
    pub(crate) fn new(kind: TurnKind, inputs: Vec<Vec<Feeder>>) -> Turn {
        let served = Cells::new(inputs.len() + 1);
        Turn {
            kind,
            inputs,
            served,
        }
    }

    fn last(&self) -> usize {
        self.inputs.len()
    }

    fn is_ready(&self, input: usize, now_ns: u64) -> bool {
        let feeders = self.inputs.get(input).map_or(&[][..], Vec::as_slice);
        feeders.iter().any(|it| it.is_ready(now_ns))
    }

    /// The cost of a packet.
    fn cost(&self, input: usize, length: u32) -> u64 {
        match &self.kind {
            TurnKind::Priority => 0,
            TurnKind::Tickets(all) => {
                STRIDE / all.get(input).copied().unwrap_or(1).clamp(1, STRIDE)
            }
            TurnKind::Bytes => u64::from(length.max(1)),
        }
    }

    /// The cost that an input has had; one that was idle has saved nothing.
    fn so_far(&self, input: usize) -> u64 {
        self.served.get(input).max(self.served.get(self.last()))
    }

    /// The number of packets of these lengths that may leave a queue of an input now.
    pub(crate) fn allows(&self, input: usize, lengths: &[u32], now_ns: u64) -> usize {
        let ready = |other: &usize| *other != input && self.is_ready(*other, now_ns);
        if self.kind == TurnKind::Priority {
            return match (0..input).any(|other| ready(&other)) {
                true => 0,
                false => lengths.len(),
            };
        }
        let others = (0..self.inputs.len()).filter(ready);
        let Some(least) = others.map(|other| self.so_far(other)).min() else {
            return lengths.len();
        };
        let mut cost = self.so_far(input);
        let mut count = 0;
        while count < lengths.len() && cost <= least {
            cost += self.cost(input, lengths[count]);
            count += 1;
        }
        count
    }

    /// Packets of these lengths leave a queue of an input.
    pub(crate) fn took(&self, input: usize, lengths: &[u32]) {
        if lengths.is_empty() || self.kind == TurnKind::Priority {
            return;
        }
        let mut before = self.so_far(input);
        if before > FAR {
            // Only differences count.
            for cell in 0..=self.last() {
                let cost = self.served.get(cell).saturating_sub(before);
                self.served.set(cell, cost);
            }
            before = 0;
        }
        let cost: u64 = lengths.iter().map(|it| self.cost(input, *it)).sum();
        self.served.set(self.last(), before);
        self.served.set(input, before + cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(kind: TurnKind, lengths: &[u64]) -> Turn {
        let feeder = |length: &u64| {
            let cells = Arc::new(Cells::new(OLDEST + 1));
            cells.set(LENGTH, *length);
            let paces = Vec::new();
            vec![Feeder { cells, paces }]
        };
        Turn::new(kind, lengths.iter().map(feeder).collect())
    }

    #[test]
    fn a_lower_input_goes_first() {
        let turn = turn(TurnKind::Priority, &[0, 3, 5]);
        let allowed = [0, 1, 2].map(|input| turn.allows(input, &[64; 5], 0));
        assert_eq!(allowed, [5, 5, 0]);
        turn.inputs[1][0].cells.set(LENGTH, 0);
        assert_eq!(turn.allows(2, &[64; 5], 0), 5);
    }

    /// Packets or bytes of two inputs that always have packets.
    fn shares(turn: &Turn, length: [u32; 2]) -> [u64; 2] {
        let mut sums = [0; 2];
        for _ in 0..1000 {
            for (input, sum) in sums.iter_mut().enumerate() {
                let lengths = [length[input]; 8];
                let count = turn.allows(input, &lengths, 0).min(2);
                turn.took(input, &lengths[..count]);
                *sum += count as u64 * u64::from(length[input]);
            }
        }
        sums
    }

    #[test]
    fn inputs_share_by_tickets_and_by_bytes() {
        let [few, many] = shares(&turn(TurnKind::Tickets(vec![1, 3]), &[9, 9]), [1, 1]);
        assert!((few * 3).abs_diff(many) < 20, "{few} and {many}");
        let [short, long] = shares(&turn(TurnKind::Bytes, &[9, 9]), [100, 1000]);
        assert!(short.abs_diff(long) < 4000, "{short} and {long}");
        // An input alone takes what it wants.
        let alone = turn(TurnKind::Bytes, &[9, 0]);
        assert_eq!(alone.allows(0, &[100; 7], 0), 7);
    }

    #[test]
    fn costs_do_not_overflow() {
        let turn = turn(TurnKind::Bytes, &[9, 9]);
        for cell in 0..=turn.last() {
            turn.served.set(cell, FAR);
        }
        let [a, b] = shares(&turn, [100, 100]);
        assert!(a.abs_diff(b) < 1000, "{a} and {b}");
        assert!(turn.served.get(turn.last()) < FAR);
    }
}
