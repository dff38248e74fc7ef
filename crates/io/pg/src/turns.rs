//! The first part of `pg-input`: assigns the rows of a vector to streams, in turn.

use crate::node::pg_input::PgInput;

/// The largest number of streams for which a pass over the vector is made for each stream.
const FEW: usize = 8;

/// The smallest number of packets for each such pass.
const PACKETS_A_PASS: usize = 8;

/// Whether a pass over `packets` packets for each of the streams costs less than a decision for each packet.
#[inline(always)]
pub(crate) fn are_few(streams: usize, packets: usize) -> bool {
    streams <= FEW && streams * PACKETS_A_PASS <= packets
}

impl PgInput {
    /// Assign a stream to each of at most `most` rows, round robin. Returns the number of rows.
    #[inline(always)]
    pub(crate) fn interleave(&mut self, most: usize) -> usize {
        let mut waiting = self.streams.iter().filter(|s| s.quota > 0).count();
        let n = self
            .streams
            .iter()
            .map(|s| s.quota)
            .sum::<usize>()
            .min(most);
        let done = self.whole_turns(n);
        if done > 0 {
            waiting = self.streams.iter().filter(|s| s.quota > 0).count();
        }
        let rows = self.plan.words_mut(n);
        let mut at = self.turn;
        for row in done..n {
            // Most rows may belong to one stream: when no other stream has packets left, the rest is filled at once.
            if waiting == 1
                && let Some(only) = self.streams.iter().position(|s| s.quota > 0)
            {
                rows[row..].fill(only as u32);
                self.streams[only].quota -= n - row;
                // If only one stream had packets from the start, the round robin position stays.
                at = if row > 0 { only + 1 } else { at };
                break;
            }
            if at >= self.streams.len() {
                at = 0;
            }
            // Some stream has a packet left, because `n` is at most their sum.
            while self.streams[at].quota == 0 {
                at = if at + 1 < self.streams.len() {
                    at + 1
                } else {
                    0
                };
            }
            self.streams[at].quota -= 1;
            waiting -= usize::from(self.streams[at].quota == 0);
            rows[row] = at as u32;
            at += 1;
        }
        self.turn = at;
        n
    }

    /// Assign rows in turns in which every stream that waits has one, if few streams wait. Returns the number of rows.
    #[inline(always)]
    fn whole_turns(&mut self, n: usize) -> usize {
        let (mut order, mut found, mut least) = ([0u32; FEW], 0, n);
        let (first, last) = (self.turn.min(self.streams.len()), self.streams.len());
        for at in (first..last).chain(0..first) {
            let quota = self.streams[at].quota;
            if quota == 0 {
                continue;
            }
            if found == FEW {
                return 0;
            }
            order[found] = at as u32;
            (found, least) = (found + 1, least.min(quota));
        }
        if found < 2 || !are_few(found, n) {
            return 0;
        }
        let order = &order[..found];
        let turns = least.min(n / found);
        let mut next = 0;
        for row in self.plan.words_mut(turns * found) {
            *row = order[next];
            next = if next + 1 < order.len() { next + 1 } else { 0 };
        }
        for &at in order {
            self.streams[at as usize].quota -= turns;
        }
        if let (1.., Some(&at)) = (turns, order.last()) {
            self.turn = at as usize + 1;
        }
        turns * found
    }
}
