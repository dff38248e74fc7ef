//! The second half of `pg-input`: writes packets into buffers, counts them, and sends them.

use crate::node::pg_input::{Count, Next, PgInput};
use crate::stream::Stream;
use volley_graph::{Col, Counters, Cx, Isa, NewVector};
use volley_iface::Direction;

/// The largest number of streams for which a pass over the vector is made for each stream.
const FEW: usize = 8;
/// The smallest number of packets for each such pass.
const PACKETS_A_PASS: usize = 8;

impl PgInput {
    /// Make the packets of the plan.
    #[inline(always)]
    pub(crate) fn fill<I: Isa>(&mut self, cx: &Cx<'_, Count>, fresh: &mut NewVector<'_, I, Next>) {
        let n = fresh.len();
        let (streams, plan) = (&mut self.streams, self.plan.words(n));
        let Some(&first) = plan.first() else { return };
        let only = &mut streams[first as usize];
        if let Some(len) = only.alike().filter(|_| volley_graph::all_equal(plan)) {
            fresh.fill_alike(len, |strip| only.make_alike(strip));
            only.packets += n as u64;
            only.bytes += (n * len) as u64;
            if let Some(rx) = only.rx() {
                fresh.set_rx_all(rx);
            }
            return;
        }
        if self.fill_each(fresh) {
            return;
        }
        let (streams, plan) = (&mut self.streams, self.plan.words(n));
        let mut big = false;
        fresh.fill(|row, packet| {
            let stream: &mut Stream = &mut streams[plan[row] as usize];
            if stream.is_big {
                big = true;
                return 0;
            }
            let len = stream.make(packet);
            stream.packets += 1;
            stream.bytes += len as u64;
            len
        });
        let rx = |stream: u32| streams[stream as usize].rx().unwrap_or(0);
        (0..n).for_each(|row| fresh.set_rx(row, rx(plan[row])));
        if big {
            self.fill_long(cx, fresh);
        }
    }

    /// Make the packets of few streams that are made in strips, stream by stream. False, and nothing happens, for other streams.
    #[inline(always)]
    fn fill_each<I: Isa>(&mut self, fresh: &mut NewVector<'_, I, Next>) -> bool {
        if !self.is_few(fresh.len(), |stream| stream.alike().is_some()) {
            return false;
        }
        let streams = self.streams.iter_mut().enumerate();
        for (which, stream) in streams.filter(|(_, stream)| stream.on) {
            let (len, rx) = (stream.alike().unwrap_or(0), stream.rx().unwrap_or(0));
            let sender = (&self.plan, which as u32);
            let make = |strip: &mut [&mut [u8; _]]| stream.make_alike(strip);
            let made = fresh.fill_part(sender, (len, rx), &mut self.buffers, make);
            stream.packets += made as u64;
            stream.bytes += (made * len) as u64;
        }
        true
    }

    /// Whether a pass over the vector for each enabled stream costs less than a decision for each packet, and all of them are `fit`.
    #[inline(always)]
    fn is_few(&self, packets: usize, fit: impl Fn(&Stream) -> bool) -> bool {
        let on = || self.streams.iter().filter(|stream| stream.on);
        let passes = on().count();
        passes <= FEW && passes * PACKETS_A_PASS <= packets && on().all(|stream| fit(stream))
    }

    /// Make packets that may be chains.
    #[cold]
    fn fill_long<I: Isa>(&mut self, cx: &Cx<'_, Count>, fresh: &mut NewVector<'_, I, Next>) {
        for row in 0..fresh.len() {
            let stream = &mut self.streams[self.plan.words(row + 1)[row] as usize];
            if !stream.is_big {
                continue;
            }
            let bytes = stream.make_long();
            let len = bytes.len();
            if fresh.write(row, bytes) {
                stream.packets += 1;
                stream.bytes += len as u64;
                continue;
            }
            stream.publish(1);
            cx.count(Count::NoBuffers, 1);
            if let Some(rx) = stream.rx() {
                let table = &self.table;
                table.count_errors(self.worker, rx, Direction::Rx, 1);
            }
            let reason = cx.node().reason(Count::NoBuffers.index());
            self.faulty.push((row as u32, reason));
        }
    }

    /// Count packets that were preloaded.
    #[inline(always)]
    pub(crate) fn weigh<I: Isa>(&mut self, cx: &Cx<'_, Count>, fresh: &NewVector<'_, I, Next>) {
        for stream in &mut self.streams {
            (stream.packets, stream.bytes) = (0, 0);
        }
        let plan = self.plan.words(fresh.len());
        if let Some(&first) = plan.first()
            && let only = &mut self.streams[first as usize]
            && !only.is_down
            && volley_graph::all_equal(plan)
        {
            (only.packets, only.bytes) = (plan.len() as u64, fresh.bytes());
            return;
        }
        if self.is_few(fresh.len(), |stream| !stream.is_down) {
            let streams = self.streams.iter_mut().enumerate();
            for (which, stream) in streams.filter(|(_, stream)| stream.on) {
                (stream.packets, stream.bytes) =
                    fresh.weigh_part(self.plan.words(fresh.len()), which as u32);
            }
            return;
        }
        for (row, &which) in self.plan.words(fresh.len()).iter().enumerate() {
            let stream = &mut self.streams[which as usize];
            if stream.is_down {
                stream.publish(1);
                cx.count(Count::AdminDown, 1);
                let reason = cx.node().reason(Count::AdminDown.index());
                self.faulty.push((row as u32, reason));
            } else {
                stream.packets += 1;
                stream.bytes += fresh.view(row).len() as u64;
            }
        }
    }

    /// Count the packets as received, pass them to a capture, and send each to the first node of its stream.
    #[inline(always)]
    pub(crate) fn dispatch<I: Isa>(&mut self, cx: &Cx<'_, Count>, fresh: NewVector<'_, I, Next>) {
        let n = fresh.len();
        let (mut target, mut one) = (None, true);
        for stream in self.streams.iter().filter(|s| s.packets > 0) {
            one &= target.is_none_or(|t| t == stream.target);
            target = Some(stream.target);
            stream.publish(stream.packets);
            if let Some(rx) = stream.rx() {
                let (packets, bytes) = (stream.packets, stream.bytes);
                let table = &self.table;
                table.count(self.worker, rx, Direction::Rx, packets, bytes);
            }
        }
        self.show(cx, &fresh);
        if let (true, true, Some(target)) = (one, self.faulty.is_empty(), target) {
            fresh.send_to(target);
            return;
        }
        let nodes = self.nodes.words_mut(n);
        for (node, &stream) in nodes.iter_mut().zip(self.plan.words(n)) {
            *node = u32::from(self.streams[stream as usize].target.0);
        }
        self.send_faulty(fresh);
    }

    /// Send rows to their nodes, and faulty ones to the drop node.
    fn send_faulty<I: Isa>(&mut self, mut fresh: NewVector<'_, I, Next>) {
        let nodes = self.nodes.words_mut(fresh.len());
        let mut faulty = self.faulty.iter().peekable();
        if !self.faulty.is_empty() {
            fresh.prepare(|row, packet| {
                if let Some((_, reason)) = faulty.next_if(|(at, _)| *at as usize == row) {
                    packet.set(Col::ERR, *reason);
                    nodes[row] = u32::from(self.drop_node.0);
                }
            });
            self.faulty.clear();
        }
        fresh.send_each(&self.nodes);
    }

    #[inline(always)]
    fn show<I: Isa>(&self, cx: &Cx<'_, Count>, fresh: &NewVector<'_, I, Next>) {
        let Some(tap) = self.table.tap(Direction::Rx) else {
            return;
        };
        for (row, &stream) in self.plan.words(fresh.len()).iter().enumerate() {
            let faulty = self.faulty.iter().any(|(at, _)| *at as usize == row);
            if let (Some(rx), false) = (self.streams[stream as usize].rx(), faulty) {
                tap.packet_passed(Direction::Rx, rx, &fresh.view(row), cx.now_ns());
            }
        }
    }
}
