//! l2-learn: checks source MAC addresses of bridged interfaces, and reports new and moved ones to the control thread (IEEE
//! 802.1Q, 8.7). The order of the checks is that of `docs/bridge.md`.
//!
//! On entry and on exit the position is at the Ethernet header. On exit `DST_HIGH` and `DST_LOW` are the key of the
//! destination: its address, and the slot of the bridge domain in the low 16 bits.

use crate::columns::{DST_HIGH, DST_LOW};
use crate::lane::{LearnQueue, LearnedMac, ReportedMacs};
use crate::plane::{FILTER, LEARN, Plane, SLOT, STATIC, tag};
use std::sync::Arc;
use volley_graph::{
    Col, Column, ColumnInfo, Consumed, Counters, Cx, Isa, Node, PacketTrace, PacketView, Trace,
    TraceNames, Vector, Words, all_equal, counters, mask, nexts, or_all, strip_rows,
};
use volley_tables::{MacSnap, MacView, Snap};
use volley_wire::dissect;

/// Length of an Ethernet header.
const HEADER: u32 = 14;

nexts! {
    /// Where l2-learn sends packets.
    pub enum Next { Drop => "error-drop", Forward => "l2-fwd" }
}

counters! {
    /// What l2-learn counts.
    pub enum Count {
        /// the frame is shorter than an Ethernet header
        TooShort = "too-short" (Error),
        /// the interface left its bridge domain while the frame was in flight
        NotBridged = "not-bridged" (Error),
        /// the source is a group address or all zeros (IEEE 802.3, 3.2.3)
        BadSource = "bad-source" (Error),
        /// the destination is the source itself, which is behind the port that the frame came from
        ToItself = "to-itself" (Error),
        /// frames from this station are dropped, as configured
        Filter = "l2fib-filter" (Error),
        /// the station is configured behind another port
        StaticMove = "static-move" (Error),
        /// stations that were reported to the control thread
        Reported = "told" (Info),
        /// stations that could not be reported to the control thread because the queue was full
        QueueFull = "queue-full" (Warn),
    }
}

/// State of l2-learn.
pub struct L2Learn {
    plane: Snap<Plane>,
    stations: MacSnap,
    worker: usize,
    lane: Arc<LearnQueue>,
    reported: ReportedMacs,
    header: Words<3>,
    port: Column,
    src_high: Column,
    src_low: Column,
    src_bucket: Column,
    dst_high: Column,
    dst_low: Column,
    dst_bucket: Column,
    answer: Column,
    verdict: Column,
}

impl L2Learn {
    /// State for vectors of up to `size` packets on the worker that owns `lane`.
    pub(crate) fn new(
        (plane, stations): (Snap<Plane>, MacSnap),
        worker: usize,
        lane: Arc<LearnQueue>,
        size: usize,
    ) -> Self {
        let column = || Column::new(size);
        L2Learn {
            plane,
            stations,
            worker,
            lane,
            reported: ReportedMacs::new(),
            header: Words::new(size),
            port: column(),
            src_high: column(),
            src_low: column(),
            src_bucket: column(),
            dst_high: column(),
            dst_low: column(),
            dst_bucket: column(),
            answer: column(),
            verdict: column(),
        }
    }

    /// Computes the keys of all packets and their first buckets; `verdict` is nonzero for packets that need the slow path.
    #[inline(always)]
    fn glance<I: Isa>(
        &mut self,
        lens: &[[u32; 16]],
        n: usize,
        stations: MacView<'_>,
        ports: impl Fn(&Column, usize) -> [u32; 16],
    ) {
        for (strip, (lens, [h0, h1, h2])) in lens.iter().zip(self.header.strips(n)).enumerate() {
            let ports = ports(&self.port, strip);
            let (mut odd, mut dst_low, mut dst_bucket) = ([0; 16], [0; 16], [0; 16]);
            let (mut high, mut low, mut bucket) = ([0; 16], [0; 16], [0; 16]);
            for row in 0..strip_rows::<I>(n, strip) {
                let slot = ports[row] & SLOT;
                high[row] = h1[row] << 16 | h2[row] >> 16;
                low[row] = h2[row] << 16 | slot;
                bucket[row] = stations.bucket(high[row], low[row]);
                dst_low[row] = (h1[row] & 0xffff_0000) | slot;
                dst_bucket[row] = stations.bucket(h0[row], dst_low[row]);
                let fine = mask(lens[row] >= HEADER) & mask(slot != 0);
                let source = mask(high[row] & 1 << 24 == 0) & mask(high[row] | low[row] >> 16 != 0);
                odd[row] = !(fine & source);
            }
            self.src_high.strips_mut(n)[strip] = high;
            self.src_low.strips_mut(n)[strip] = low;
            self.src_bucket.strips_mut(n)[strip] = bucket;
            self.dst_high.strips_mut(n)[strip] = *h0;
            self.dst_low.strips_mut(n)[strip] = dst_low;
            self.dst_bucket.strips_mut(n)[strip] = dst_bucket;
            self.verdict.strips_mut(n)[strip] = odd;
        }
    }

    /// Computes the keys of a vector, from one port or several.
    #[inline(always)]
    fn keys<I: Isa>(&mut self, v: &mut Vector<'_, I, Next>, plane: &Plane, stations: MacView<'_>) {
        let n = v.len();
        v.first_words(0, &mut self.header);
        if let Some(rx) = v.same(Col::RX) {
            let port = plane.port(rx);
            return self.glance::<I>(v.strips(Col::LEN), n, stations, |_, _| [port; 16]);
        }
        for (port, &rx) in self.port.words_mut(n).iter_mut().zip(v.column(Col::RX)) {
            *port = plane.port(rx);
        }
        self.glance::<I>(v.strips(Col::LEN), n, stations, |port, strip| {
            port.strips(n)[strip]
        });
    }

    /// Drops invalid packets, and recomputes the keys of the others.
    #[inline(never)]
    fn judge_all<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        v: &mut Vector<'_, I, Next>,
        (plane, stations): (&Plane, MacView<'_>),
    ) {
        let n = v.len();
        for row in 0..n {
            let (len, port) = (v.column(Col::LEN)[row], plane.port(v.column(Col::RX)[row]));
            self.verdict.words_mut(n)[row] = judge(len, port, self.header.row(row));
        }
        v.drop_out(cx, &self.verdict, |_| Next::Drop);
        if !v.is_empty() {
            self.keys(v, plane, stations);
        }
    }

    /// Looks up the sources and marks their entries as used; true if all sources are known on their ports and no packet is
    /// addressed to its source.
    #[inline(always)]
    fn look<I: Isa>(&mut self, v: &Vector<'_, I, Next>, stations: MacView<'_>) -> bool {
        let n = v.len();
        let (high, low) = (self.src_high.words(n), self.src_low.words(n));
        let answers = self.answer.words_mut(n);
        if all_equal(high) && all_equal(low) {
            let bucket = self.src_bucket.words(n)[0];
            let answer = stations.find_in(bucket, high[0], low[0]);
            stations.mark(answer);
            answers.fill(answer);
        } else {
            let buckets = self.src_bucket.words(n);
            for &bucket in buckets {
                stations.ask(bucket);
            }
            for row in 0..n {
                answers[row] = stations.find_in(buckets[row], high[row], low[row]);
            }
            for &answer in &*answers {
                stations.mark(answer);
            }
        }
        self.compare(v);
        or_all(self.verdict.words(n)) == 0
    }

    /// Sets `verdict` to nonzero for packets whose source is not known on its port, or equals the destination.
    #[inline(always)]
    fn compare<I: Isa>(&mut self, v: &Vector<'_, I, Next>) {
        let n = v.len();
        let (dst_high, dst_low) = (v.strips(DST_HIGH.col), v.strips(DST_LOW.col));
        for (strip, rx) in v.strips(Col::RX).iter().enumerate() {
            let (high, low) = (
                &self.src_high.strips(n)[strip],
                &self.src_low.strips(n)[strip],
            );
            let answers = &self.answer.strips(n)[strip];
            let mut odd = [0; 16];
            for row in 0..strip_rows::<I>(n, strip) {
                let differ = (high[row] ^ dst_high[strip][row]) | (low[row] ^ dst_low[strip][row]);
                odd[row] = mask(!is_there(answers[row], rx[row])) | mask(differ == 0);
            }
            self.verdict.strips_mut(n)[strip] = odd;
        }
    }

    /// Handles packets whose source is new, moved, filtered, or the destination.
    #[inline(never)]
    fn hear_all<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: &mut Vector<'_, I, Next>, plane: &Plane) {
        let n = v.len();
        for row in 0..n {
            let (answer, rx) = (self.answer.words(n)[row], v.column(Col::RX)[row]);
            let (high, low) = (self.src_high.words(n)[row], self.src_low.words(n)[row]);
            let itself = high == v.column(DST_HIGH.col)[row] && low == v.column(DST_LOW.col)[row];
            let learns = plane.port(rx) & LEARN != 0;
            let there = is_there(answer, rx);
            let verdict = match tag(answer) {
                tag if !there && tag & FILTER != 0 => Count::Filter.code(),
                tag if !there && tag & STATIC != 0 => Count::StaticMove.code(),
                _ => {
                    if !there && learns {
                        let key = u64::from(high) << 32 | u64::from(low);
                        self.tell(cx, LearnedMac { key, rx });
                    }
                    // The packet is treated as if the address were learned at once; learning takes a moment.
                    u32::from(itself && learns) * Count::ToItself.code()
                }
            };
            self.verdict.words_mut(n)[row] = verdict;
        }
        v.drop_out(cx, &self.verdict, |_| Next::Drop);
    }

    fn tell(&mut self, cx: &Cx<'_, Count>, heard: LearnedMac) {
        if self.reported.has(heard, cx.now_ns()) {
            return;
        }
        if self.lane.new_macs.push(heard).is_ok() {
            self.reported.note(heard, cx.now_ns());
            cx.count(Count::Reported, 1);
        } else {
            cx.count(Count::QueueFull, 1);
        }
    }
}

/// Whether the entry of a source has the receiving port.
#[inline(always)]
fn is_there(answer: u32, rx: u32) -> bool {
    (answer != 0) & (tag(answer) & !STATIC == rx)
}

/// The verdict on one frame, in the order of the rules.
fn judge(len: u32, port: u32, [_, h1, h2]: [u32; 3]) -> u32 {
    let (high, low) = (h1 << 16 | h2 >> 16, h2 << 16);
    if len < HEADER {
        return Count::TooShort.code();
    }
    if port & SLOT == 0 {
        return Count::NotBridged.code();
    }
    if high & 1 << 24 != 0 || high | low == 0 {
        return Count::BadSource.code();
    }
    0
}

impl Node for L2Learn {
    const NAME: &'static str = "l2-learn";
    type Next = Next;
    type Count = Count;
    type Trace = BridgeTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DST_HIGH, DST_LOW];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let plane = self.plane.read(cx.guard());
        let stations = self.stations.read(cx.guard(), self.worker);
        self.keys(&mut v, plane, stations);
        if or_all(self.verdict.words(v.len())) != 0 {
            self.judge_all(cx, &mut v, (plane, stations));
        }
        let n = v.len();
        if n == 0 {
            return v.send_all(Next::Forward);
        }
        let (high, low) = (self.dst_high.words(n), self.dst_low.words(n));
        if !(all_equal(high) && all_equal(low)) {
            // l2-fwd looks these buckets up.
            for &bucket in self.dst_bucket.words(n) {
                stations.ask(bucket);
            }
        }
        v.put(DST_HIGH.col, &mut self.dst_high);
        v.put(DST_LOW.col, &mut self.dst_low);
        if !self.look(&v, stations) {
            self.hear_all(cx, &mut v, plane);
        }
        v.send_all(Next::Forward)
    }
}

/// Headers of a frame.
#[derive(Clone, Copy)]
pub struct BridgeTrace(PacketTrace);

impl Trace for BridgeTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        BridgeTrace(PacketTrace::note(packet))
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let rx = names.interface(self.0.rx());
        let what = dissect::frame(self.0.bytes())
            .of(self.0.len())
            .offloaded(self.0.unfinished_checksum());
        format!("{} bytes, rx {rx}\n{what}", self.0.len())
    }
}

#[cfg(test)]
mod tests;
