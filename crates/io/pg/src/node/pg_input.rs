//! pg-input: makes the packets of enabled streams, interleaved packet by packet within one vector.

use crate::stream::{GONE, Inbox, Lap, MAX_STREAMS, ON, Stream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volley_graph::{Column, Cx, Isa, NodeId, Output, Source, WakeConditions, counters, nexts};
use volley_iface::{Direction, Flag, IfTable};

nexts! {
    /// Where pg-input sends packets, besides to where each stream enters.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What pg-input counts.
    pub enum Count {
        /// no packet buffer was free
        NoBuffers = "no-buffers" (Error),
        /// the interface that the packet would have been received on is administratively down
        AdminDown = "admin-down" (Error),
    }
}

/// State of pg-input on one worker.
pub struct PgInput {
    pub(crate) worker: usize,
    pub(crate) table: Arc<IfTable>,
    inboxes: Vec<Arc<Inbox>>,
    /// Boxes, because streams come as boxes and are returned as such, for the control thread to free.
    #[allow(clippy::vec_box)]
    pub(crate) streams: Vec<Box<Stream>>,
    /// The stream of the next packet.
    pub(crate) turn: usize,
    /// The streams of a turn.
    pub(crate) order: Vec<u32>,
    /// The stream of each row of the current vector.
    pub(crate) plan: Column,
    pub(crate) nodes: Column,
    /// The buffers of one stream's packets.
    pub(crate) buffers: Column,
    /// Rows that cannot be sent to their node, with the reason, in order.
    pub(crate) faulty: Vec<(u32, u32)>,
    pub(crate) drop_node: NodeId,
}

impl PgInput {
    /// The instance of `worker`, for vectors of up to `size` packets.
    pub(crate) fn new(
        worker: usize,
        table: Arc<IfTable>,
        inboxes: Vec<Arc<Inbox>>,
        drop_node: NodeId,
        size: usize,
    ) -> Self {
        PgInput {
            worker,
            table,
            inboxes,
            streams: Vec::with_capacity(MAX_STREAMS),
            turn: 0,
            order: Vec::with_capacity(MAX_STREAMS),
            plan: Column::new(size),
            nodes: Column::new(size),
            buffers: Column::new(size),
            faulty: Vec::with_capacity(size),
            drop_node,
        }
    }

    /// Carry out the commands of the control thread, and end streams whose last packet was processed.
    #[inline(always)]
    fn change<I: Isa>(&mut self, out: &mut Output<'_, I, Next>) {
        let moves = |s: &Stream| s.shared.worker() != self.worker && out.is_drained();
        let wanted = |s: &Stream| s.shared.command.load(Ordering::Acquire) != s.seen || moves(s);
        if !self.inboxes[self.worker].new.is_empty() || self.streams.iter().any(|s| wanted(s)) {
            self.obey(out);
        }
        if self.streams.iter().any(|s| s.on && s.is_over()) {
            self.end_some();
        }
    }

    /// End streams that have made all their packets, once preloaded packets have been sent.
    #[cold]
    fn end_some(&mut self) {
        if self.streams.iter().any(|s| lap_left(s) > 0) {
            return;
        }
        for stream in self.streams.iter_mut().filter(|s| s.on && s.is_over()) {
            stream.on = false;
            stream.shared.done.store(stream.seen, Ordering::Release);
        }
    }

    #[cold]
    fn obey<I: Isa>(&mut self, out: &mut Output<'_, I, Next>) {
        // Preloaded packets may belong to a stream that is removed.
        for lap in self.streams.iter_mut().filter_map(|s| s.lap.as_mut()) {
            out.release(&mut lap.aside);
            (lap.at, _) = (0, lap.rows.clear());
        }
        while self.streams.len() < MAX_STREAMS {
            let Some(stream) = self.inboxes[self.worker].new.pop() else {
                break;
            };
            self.inboxes[self.worker].arrived(&stream.shared, Some(self.worker));
            self.streams.push(stream);
        }
        for stream in &mut self.streams {
            let command = stream.shared.command.load(Ordering::Acquire);
            if command == stream.seen {
                continue;
            }
            stream.seen = command;
            if command & 3 == ON {
                stream.restart();
            } else {
                stream.on = false;
                stream.shared.done.store(command, Ordering::Release);
            }
        }
        while let Some(at) = self.streams.iter().position(|s| s.seen & 3 == GONE) {
            let stream = self.streams.remove(at);
            self.inboxes[self.worker].arrived(&stream.shared, None);
            // The queue has a slot for the maximum number of streams.
            let _ = self.inboxes[self.worker].gone.push(stream);
        }
        if out.is_drained() {
            self.hand_on();
        }
        self.turn = 0;
    }

    /// Move streams to the workers that they are assigned to.
    fn hand_on(&mut self) {
        let (here, inboxes) = (self.worker, &self.inboxes);
        let away = |s: &Stream| s.shared.worker() != here;
        while let Some(at) = self.streams.iter().position(|s| away(s)) {
            let stream = self.streams.remove(at);
            let to = stream.shared.worker() % inboxes.len();
            if let Err(stream) = inboxes[to].new.push(stream) {
                // The queue is full: the next call tries again.
                self.streams.insert(at, stream);
                return;
            }
        }
    }

    /// Determine the number of due packets of each stream.
    #[inline(always)]
    fn survey<I: Isa>(&mut self, now_ns: u64, out: &Output<'_, I, Next>) {
        for stream in &mut self.streams {
            (stream.packets, stream.bytes, stream.quota) = (0, 0, 0);
            if !stream.on || stream.shared.worker() != self.worker {
                continue;
            }
            stream.quota = stream.due(now_ns, out.vector_size());
            stream.is_down = stream.rx().is_some_and(|rx| !self.table.has(rx, Flag::Up));
        }
    }

    /// Determine the first node of the packets of each stream.
    #[inline(always)]
    fn find_targets<I: Isa>(&mut self, out: &Output<'_, I, Next>) {
        for stream in self.streams.iter_mut().filter(|s| s.on) {
            let receiver = || stream.rx().map(|rx| out.receiver(rx));
            stream.target = stream.node().or_else(receiver).unwrap_or(self.drop_node);
        }
    }

    /// Drop packets whose interface is down before they are made.
    fn drop_down(&mut self, cx: &Cx<'_, Count>) -> usize {
        let mut dropped = 0;
        for stream in self.streams.iter_mut().filter(|s| s.is_down) {
            let n = std::mem::take(&mut stream.quota);
            for _ in 0..n {
                stream.skip();
                self.table.count_drop(self.worker, stream.rx().unwrap_or(0));
            }
            stream.publish(n as u64);
            dropped += n;
        }
        if dropped > 0 {
            cx.count(Count::AdminDown, dropped as u64);
        }
        dropped
    }

    /// Make one vector and send it.
    #[inline(always)]
    fn live<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let dropped = self.drop_down(cx);
        let n = self.interleave(out.vector_size());
        if n == 0 {
            return dropped;
        }
        let mut fresh = out.alloc(n, 0);
        let got = fresh.len();
        self.fill(cx, &mut fresh);
        self.lose(cx, got, n);
        self.dispatch(cx, fresh);
        dropped + n
    }

    /// Account for rows without a buffer.
    fn lose(&mut self, cx: &Cx<'_, Count>, got: usize, n: usize) {
        if got == n {
            return;
        }
        cx.count(Count::NoBuffers, (n - got) as u64);
        for row in got..n {
            let stream = &mut self.streams[self.plan.words(n)[row] as usize];
            stream.skip();
            stream.publish(1);
            if let Some(rx) = stream.rx() {
                self.table.count_drop(self.worker, rx);
                self.table.count_errors(self.worker, rx, Direction::Rx, 1);
            }
        }
    }

    /// The stream whose lap is in use: the longest lap of the enabled streams.
    #[inline(always)]
    fn lap(&self) -> Option<usize> {
        let laps = self.streams.iter().enumerate().filter(|(_, s)| s.on);
        laps.filter_map(|(at, s)| Some((s.lap.as_ref()?.packets, at)))
            .max()
            .map(|(_, at)| at)
    }

    /// Send a vector of preloaded packets; make the next lap when there are none. None if no lap is in use, no packet is due, or no
    /// buffer is free: [`Self::live`] counts the latter.
    #[inline(always)]
    fn preloaded<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        out: &mut Output<'_, I, Next>,
    ) -> Option<usize> {
        let owner = self.lap()?;
        let mut lap = self.streams[owner].lap.take()?;
        if lap.aside.is_empty() {
            self.fill_lap(cx, out, &mut lap);
        }
        if lap.aside.is_empty() {
            self.streams[owner].lap = Some(lap);
            return None;
        }
        let most = self.streams.iter().filter(|s| s.on);
        let most = most.map(|s| s.max_frame()).sum::<usize>();
        let fresh = out.resume(&mut lap.aside, most);
        let n = fresh.len();
        for (row, &stream) in self.plan.words_mut(n).iter_mut().zip(&lap.rows[lap.at..]) {
            *row = u32::from(stream);
        }
        lap.at += n;
        self.streams[owner].lap = Some(lap);
        self.weigh(cx, &fresh);
        self.dispatch(cx, fresh);
        Some(n)
    }

    #[inline(always)]
    fn fill_lap<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        out: &mut Output<'_, I, Next>,
        lap: &mut Lap,
    ) {
        lap.rows.clear();
        lap.at = 0;
        while lap.rows.len() < lap.packets {
            let left = lap.packets - lap.rows.len();
            self.survey(cx.now_ns(), out);
            let wanted = self.streams.iter().map(|s| s.quota).sum();
            let mut fresh = out.alloc(left.min(wanted), 0);
            let n = self.interleave(fresh.len());
            fresh.truncate(n);
            if n == 0 {
                break;
            }
            self.fill(cx, &mut fresh);
            lap.rows.extend(self.plan.words(n).iter().map(|s| *s as u8));
            fresh.defer(&mut lap.aside);
        }
        self.survey(cx.now_ns(), out);
    }
}

fn lap_left(stream: &Stream) -> usize {
    stream.lap.as_ref().map_or(0, |lap| lap.aside.len())
}

impl Source for PgInput {
    const NAME: &'static str = "pg-input";
    type Next = Next;
    type Count = Count;

    fn can_exit(&self) -> bool {
        self.streams.is_empty() && self.inboxes[self.worker].new.is_empty()
    }

    fn is_vacant(&self) -> bool {
        let done = |s: &Stream| !s.on && s.shared.is_at_rest(self.worker, s.seen);
        !self.inboxes[self.worker].is_waiting() && self.streams.iter().all(|s| done(s))
    }

    fn may_sleep(&self, _now_ns: u64, idle_ns: u64) -> bool {
        let mut on = self.streams.iter().filter(|s| s.on);
        on.all(|s| self.table.may_sleep(s.rx().unwrap_or(u32::MAX), idle_ns))
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        let on = self.streams.iter().filter(|s| s.on);
        on.for_each(|s| rest.wake_at(s.next_due()));
        let rests = |s: &Stream| s.shared.is_at_rest(self.worker, s.seen);
        !self.inboxes[self.worker].is_waiting() && self.streams.iter().all(|s| rests(s))
    }

    #[inline(always)]
    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        self.change(out);
        if self.streams.is_empty() {
            return 0;
        }
        self.survey(cx.now_ns(), out);
        self.find_targets(out);
        match self.preloaded(cx, out) {
            Some(packets) => packets,
            None => self.live(cx, out),
        }
    }
}
