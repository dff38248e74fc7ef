//! The first part of `pg-input`: assigns the rows of a vector to streams, in turn.

use crate::node::pg_input::PgInput;

impl PgInput {
    /// Assign a stream to each of at most `most` rows, round robin. Returns the number of rows.
    #[inline(always)]
    pub(crate) fn interleave(&mut self, most: usize) -> usize {
        let quotas = self.streams.iter().map(|s| s.quota);
        let n = quotas.sum::<usize>().min(most);
        let mut row = 0;
        while row < n {
            row += self.turns(row, n);
        }
        n
    }

    /// Assign rows from `row` on, before `end`, in turns in which each stream that has packets left has one row: as many turns as the
    /// stream with the fewest packets permits, or a part of the last turn. Returns the number of rows.
    #[inline(always)]
    fn turns(&mut self, row: usize, end: usize) -> usize {
        let (left, count) = (end - row, self.streams.len());
        let (mut turns, first) = (left, self.turn.min(count));
        self.order.clear();
        for at in (first..count).chain(0..first) {
            let quota = self.streams[at].quota;
            if quota > 0 {
                self.order.push(at as u32);
                turns = turns.min(quota);
            }
        }
        let rows = &mut self.plan.words_mut(end)[row..];
        if let [only] = self.order[..] {
            // `end` is at most the sum of what the streams have left.
            rows.fill(only);
            self.streams[only as usize].quota -= left;
            // If only one stream had packets from the start, the round robin position stays.
            self.turn = if row > 0 {
                only as usize + 1
            } else {
                self.turn
            };
            return left;
        }
        self.order.truncate(left);
        turns = turns.min(left / self.order.len());
        // Row by row: turns are short, and a call for each would cost more.
        let mut next = 0;
        for row in &mut rows[..turns * self.order.len()] {
            *row = self.order[next];
            next = if next + 1 < self.order.len() {
                next + 1
            } else {
                0
            };
        }
        for &at in &self.order {
            self.streams[at as usize].quota -= turns;
            self.turn = at as usize + 1;
        }
        turns * self.order.len()
    }
}
