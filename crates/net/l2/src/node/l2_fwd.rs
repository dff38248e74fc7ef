//! l2-fwd: looks up the port of a frame's destination (IEEE 802.1Q, 8.6.3; 8.8).
//!
//! On entry `DST_HIGH` and `DST_LOW` are the key of the destination, written by l2-learn.

use crate::columns::{DST_HIGH, DST_LOW, NEXT};
use crate::plane::{FILTER, FLOOD, FORWARD, GROUP, PORT, Plane, SLOT, UU_FLOOD, same_group, tag};
use volley_graph::{
    Col, Column, ColumnInfo, Consumed, Counters, Cx, Isa, Node, PacketTrace, Vector, all_equal,
    counters, mask, nexts, or_all,
};
use volley_tables::{MacSnap, MacView, Snap};

nexts! {
    /// Where l2-fwd sends packets.
    pub enum Next { Drop => "error-drop", Output => "interface-output", Flood => "l2-flood" }
}

counters! {
    /// What l2-fwd counts.
    pub enum Count {
        /// the destination is an address that bridges keep to themselves (IEEE 802.1Q, table 8-1)
        Reserved = "reserved-group" (Error),
        /// frames for this station are dropped, as configured
        Filter = "l2fib-filter" (Error),
        /// the destination is behind the port that the frame came from
        SamePort = "same-port" (Error),
        /// the destination is behind a port of the same split-horizon group
        SplitHorizon = "split-horizon" (Error),
        /// the destination's port left the bridge domain while the frame was in flight
        NotBridged = "not-bridged" (Error),
        /// the bridge domain does not forward
        NoForward = "no-forward" (Error),
        /// the bridge domain does not flood frames for groups
        NoFlood = "no-flood" (Error),
        /// the destination is unknown and the bridge domain does not flood such frames
        NoUuFlood = "no-uu-flood" (Error),
        /// frames for unknown stations, which are flooded
        Unknown = "unknown-unicast" (Info),
    }
}

/// State of l2-fwd.
pub struct L2Fwd {
    plane: Snap<Plane>,
    stations: MacSnap,
    worker: usize,
    answer: Column,
    tx: Column,
    verdict: Column,
    next: Column,
}

impl L2Fwd {
    /// State for vectors of up to `size` packets.
    pub(crate) fn new(
        (plane, stations): (Snap<Plane>, MacSnap),
        worker: usize,
        size: usize,
    ) -> Self {
        let column = || Column::new(size);
        L2Fwd {
            plane,
            stations,
            worker,
            answer: column(),
            tx: column(),
            verdict: column(),
            next: column(),
        }
    }

    /// Looks up all destinations.
    #[inline(always)]
    fn look<I: Isa>(&mut self, v: &Vector<'_, I, Next>, stations: MacView<'_>) {
        let n = v.len();
        let (high, low) = (v.column(DST_HIGH.col), v.column(DST_LOW.col));
        let answers = self.answer.words_mut(n);
        if all_equal(high) && all_equal(low) {
            let bucket = stations.bucket(high[0], low[0]);
            return answers.fill(stations.find_in(bucket, high[0], low[0]));
        }
        // The `next` column serves as scratch space for the buckets.
        let buckets = self.next.words_mut(n);
        for row in 0..n {
            buckets[row] = stations.bucket(high[row], low[row]);
        }
        for row in 0..n {
            answers[row] = stations.find_in(buckets[row], high[row], low[row]);
        }
    }

    /// Writes the ports of all packets; true if all packets may be sent there.
    #[inline(always)]
    fn ports<I: Isa>(&mut self, v: &Vector<'_, I, Next>, plane: &Plane) -> bool {
        let n = v.len();
        let answers = self.answer.words(n);
        let tx = self.tx.words_mut(n);
        let (rx, low) = (v.column(Col::RX), v.column(DST_LOW.col));
        let of_rx = all_equal(rx).then(|| plane.port(rx[0]));
        if let Some(from) = of_rx
            && all_equal(answers)
            && all_equal(low)
        {
            tx.fill(tag(answers[0]) & PORT);
            return may_leave(answers[0], rx[0], from, low[0], plane);
        }
        let Some(from) = of_rx else {
            let mut stays = false;
            for row in 0..n {
                let from = plane.port(rx[row]);
                tx[row] = tag(answers[row]) & PORT;
                stays |= !may_leave(answers[row], rx[row], from, low[row], plane);
            }
            return !stays;
        };
        // One pass looks the ports up, the others become vector code. The `verdict` column serves as scratch space.
        for (tx, answer) in tx.iter_mut().zip(answers) {
            *tx = tag(*answer) & PORT;
        }
        let to = self.verdict.words_mut(n);
        for (to, tx) in to.iter_mut().zip(&*tx) {
            *to = plane.port(*tx);
        }
        // Differences and masks in place of booleans: see `may_leave`.
        let grouped = mask(from & GROUP != 0);
        let mut stays = mask(from & FORWARD == 0);
        for row in 0..n {
            let unknown = mask(answers[row] == 0) | (tag(answers[row]) & FILTER);
            let elsewhere = ((to[row] ^ low[row]) & SLOT) | mask(tx[row] == rx[row]);
            let same_group = mask((from ^ to[row]) & GROUP == 0) & grouped;
            stays |= unknown | elsewhere | same_group;
        }
        stays == 0
    }

    /// Separates packets that are flooded or dropped from the others.
    #[inline(never)]
    fn sort_out<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        mut v: Vector<'_, I, Next>,
        plane: &Plane,
    ) -> Consumed {
        let n = v.len();
        for row in 0..n {
            let answer = self.answer.words(n)[row];
            let (rx, low) = (v.column(Col::RX)[row], v.column(DST_LOW.col)[row]);
            let high = v.column(DST_HIGH.col)[row];
            let group = is_group(high);
            let (verdict, next) = match judge(answer, rx, (high, low), plane) {
                Ok(next) => (0, next),
                Err(why) => (why.code(), Next::Drop),
            };
            if next == Next::Flood && !group {
                cx.count(Count::Unknown, 1);
            }
            self.verdict.words_mut(n)[row] = verdict;
            self.next.words_mut(n)[row] = next as u32;
        }
        v.put(Col::TX, &mut self.tx);
        if or_all(self.verdict.words(n)) != 0 {
            v.put(NEXT.col, &mut self.next);
            v.drop_out(cx, &self.verdict, |_| Next::Drop);
            v.take(NEXT.col, &mut self.next);
        }
        v.forget(&[DST_HIGH.col, DST_LOW.col]);
        v.send_by(&self.next)
    }
}

/// Whether a packet may be sent to the port of its destination.
#[inline(always)]
fn may_leave(answer: u32, rx: u32, from: u32, low: u32, plane: &Plane) -> bool {
    let tx = tag(answer) & PORT;
    let to = plane.port(tx);
    let known = (answer != 0) & (tag(answer) & FILTER == 0) & ((to ^ low) & SLOT == 0);
    known & (tx != rx) & (from & FORWARD != 0) & !same_group(from, to)
}

/// Whether the first half of a MAC address is that of a group.
fn is_group(high: u32) -> bool {
    high & 1 << 24 != 0
}

/// The edge of one packet or its drop reason, in the order of the rules.
fn judge(answer: u32, rx: u32, (high, low): (u32, u32), plane: &Plane) -> Result<Next, Count> {
    let (tx, from) = (tag(answer) & PORT, plane.port(rx));
    let to = plane.port(tx);
    if high == 0x0180_c200 && low >> 16 <= 0xf {
        let flooded = plane.domain(from).map_or(0, |d| d.group_fwd_mask);
        if flooded >> (low >> 16) & 1 == 0 {
            return Err(Count::Reserved);
        }
    }
    if answer == 0 {
        let (flag, why) = match is_group(high) {
            true => (FLOOD, Count::NoFlood),
            false => (UU_FLOOD, Count::NoUuFlood),
        };
        return (from & flag != 0).then_some(Next::Flood).ok_or(why);
    }
    if tag(answer) & FILTER != 0 {
        return Err(Count::Filter);
    }
    if (to ^ low) & SLOT != 0 {
        return Err(Count::NotBridged);
    }
    if from & FORWARD == 0 {
        return Err(Count::NoForward);
    }
    if tx == rx {
        return Err(Count::SamePort);
    }
    if same_group(from, to) {
        return Err(Count::SplitHorizon);
    }
    Ok(Next::Output)
}

impl Node for L2Fwd {
    const NAME: &'static str = "l2-fwd";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DST_HIGH, DST_LOW, NEXT];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        if v.is_empty() {
            return v.send_all(Next::Output);
        }
        let plane = self.plane.read(cx.guard());
        let stations = self.stations.read(cx.guard(), self.worker);
        self.look(&v, stations);
        if !self.ports(&v, plane) {
            return self.sort_out(cx, v, plane);
        }
        v.put(Col::TX, &mut self.tx);
        v.forget(&[DST_HIGH.col, DST_LOW.col]);
        v.send_all(Next::Output)
    }
}

#[cfg(test)]
mod tests;
