//! lua-input: gives whole vectors to Lua scripts, and sends packets where the scripts decide; lua-ip4 is the same on another arc.

use crate::batch::Batch;
use crate::link::{Config, Link, NONE};
use crate::masks;
use crate::state::ScriptState;
use crate::verdict::{Count, Verdict};
use std::marker::PhantomData;
use std::sync::Arc;
use volley_sdk::kernel::{Level, all_equal};
use volley_sdk::lend::LentPackets;
use volley_sdk::prelude::*;

nexts! {
    /// Where lua-input and lua-ip4 send packets, besides the next feature.
    pub enum Next { Drop => "error-drop", Output => "interface-output" }
}

/// The arc of a node.
pub(crate) trait OnArc: Send + 'static {
    /// Name of the node.
    const NAME: &'static str;
    /// Name of the arc.
    const ARC: &'static str;
    /// The position of packets is at their IP header.
    const IS_LAYER3: bool;
}

/// The arc of received frames.
pub(crate) struct DeviceInput;

impl OnArc for DeviceInput {
    const NAME: &'static str = "lua-input";
    const ARC: &'static str = "device-input";
    const IS_LAYER3: bool = false;
}

/// The arc of IPv4 packets.
pub(crate) struct Ip4Unicast;

impl OnArc for Ip4Unicast {
    const NAME: &'static str = "lua-ip4";
    const ARC: &'static str = "ip4-unicast";
    const IS_LAYER3: bool = true;
}

/// State of lua-input and lua-ip4.
pub(crate) struct LuaScripts<A> {
    link: Arc<Link>,
    config: Box<Config>,
    verdicts: Vec<Verdict>,
    outputs: Vec<u32>,
    /// The verdict on all packets is to send them; then `verdicts` are not set.
    is_sent: bool,
    present: Vec<u64>,
    marks: Column,
    arc: PhantomData<A>,
}

impl<A: OnArc> LuaScripts<A> {
    /// For vectors of up to `size` packets.
    pub(crate) fn new(link: Arc<Link>, size: usize) -> Self {
        let config = Config {
            scripts: Vec::new(),
            by_interface: Vec::new(),
            others: NONE,
        };
        LuaScripts {
            link,
            config: Box::new(config),
            verdicts: vec![Verdict::Next; size],
            outputs: vec![0; size],
            is_sent: false,
            present: vec![0; size.div_ceil(64).max(1)],
            marks: Column::new(size),
            arc: PhantomData,
        }
    }

    /// Take the scripts that the control thread gives. Scripts that stay keep their state.
    #[cold]
    fn configure(&mut self, mut new: Box<Config>) {
        let mut old = std::mem::take(&mut self.config.scripts);
        for (number, state) in &mut new.scripts {
            let same = old.iter_mut().find(|it| it.0 == *number);
            if let (None, Some((_, mine))) = (&state, same) {
                *state = mine.take();
            }
        }
        let left = old.into_iter().filter_map(|(_, state)| state);
        left.for_each(|state| self.link.give_back(state));
        self.config = new;
    }

    fn script_of(&self, interface: u32) -> u16 {
        let named = self.config.by_interface.get(interface as usize).copied();
        named.filter(|at| *at != NONE).unwrap_or(self.config.others)
    }

    /// Note the packets of the script at `at`; whether there is one. Most vectors are of one interface.
    fn choose(&mut self, at: usize, rx: &[u32]) -> bool {
        let is_ours = |this: &Self, interface| this.script_of(interface) == at as u16;
        self.present.fill(0);
        let Some(&first) = rx.first() else {
            return false;
        };
        if all_equal(rx) {
            if is_ours(self, first) {
                masks::fill(&mut self.present, rx.len());
                return true;
            }
            return false;
        }
        let mut any = false;
        for (row, &interface) in rx.iter().enumerate() {
            if is_ours(self, interface) {
                masks::insert(&mut self.present, row);
                any = true;
            }
        }
        any
    }

    /// Run the scripts on the packets, and note verdicts and outputs.
    #[inline(never)]
    fn run_scripts(
        &mut self,
        cx: &Cx<'_, Count>,
        level: Level,
        mut packets: LentPackets,
    ) -> LentPackets {
        let n = packets.len();
        self.verdicts[..n].fill(Verdict::Next);
        self.is_sent = false;
        let mut scripts = std::mem::take(&mut self.config.scripts);
        for (at, (_, state)) in scripts.iter_mut().enumerate() {
            let Some(state) = state else { continue };
            if self.choose(at, packets.column(Col::RX)) {
                packets = self.run_script(cx, state, (level, packets));
            }
        }
        self.config.scripts = scripts;
        packets
    }

    fn run_script(
        &mut self,
        cx: &Cx<'_, Count>,
        state: &mut ScriptState,
        (level, packets): (Level, LentPackets),
    ) -> LentPackets {
        let n = packets.len();
        let (verdicts, outputs, errors) =
            (&mut self.verdicts, &mut self.outputs, &self.link.errors);
        let (present, is_sent) = (&self.present, &mut self.is_sent);
        let note = |batch: &Batch| {
            let (new, sent) = (batch.verdicts(n), batch.outputs(n));
            if batch.is_sent {
                *is_sent = true;
                outputs[..n].copy_from_slice(sent);
                return;
            }
            let all: u32 = present.iter().map(|word| word.count_ones()).sum();
            if all as usize == n {
                verdicts[..n].copy_from_slice(new);
                outputs[..n].copy_from_slice(sent);
                return;
            }
            for row in masks::rows(present) {
                (verdicts[row], outputs[row]) = (new[row], sent[row]);
            }
        };
        let report = |error| {
            // A full queue: the control thread logs the errors in front of this one.
            let _ = errors.push(error);
        };
        let back = state.run((level, packets), present, note, report);
        cx.count(Count::Slow, state.slow_packets() as u64);
        back
    }
}

impl<A: OnArc> Node for LuaScripts<A> {
    const NAME: &'static str = A::NAME;
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        if let Some(new) = self.link.take() {
            self.configure(new);
        }
        let n = v.len();
        let (packets, empty) = v.lend();
        let mut v = empty.restore(self.run_scripts(cx, I::LEVEL, packets));
        let verdicts = &self.verdicts[..n];
        let sent = match self.is_sent {
            true => n,
            false => verdicts.iter().filter(|it| **it == Verdict::Send).count(),
        };
        cx.count(Count::Sent, sent as u64);
        if sent == n {
            v.column_mut(Col::TX).copy_from_slice(&self.outputs[..n]);
            return v.send_all(Next::Output);
        }
        self.drop_and_send(cx, &mut v);
        match A::IS_LAYER3 {
            _ if v.is_empty() => v.send_all(Next::Drop),
            true => v.next_feature(),
            false => v.send_on_receive(),
        }
    }
}

impl<A: OnArc> LuaScripts<A> {
    /// Drop and send packets of a vector in which not all packets are sent; the others stay.
    #[inline(always)]
    fn drop_and_send<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: &mut Vector<'_, I, Next>) {
        let n = v.len();
        let verdicts = &self.verdicts[..n];
        let marks = self.marks.words_mut(n);
        for (mark, verdict) in marks.iter_mut().zip(verdicts) {
            *mark = verdict.drop_code();
        }
        v.drop_out(cx, &self.marks, |_| Next::Drop);
        let left = verdicts.iter().zip(&self.outputs);
        let left = left.filter(|(verdict, _)| !matches!(verdict, Verdict::Drop(_)));
        let marks = self.marks.words_mut(v.len());
        v.require(Col::TX, 0);
        let outputs = v.column_mut(Col::TX).iter_mut();
        for ((mark, output), (verdict, interface)) in marks.iter_mut().zip(outputs).zip(left) {
            *mark = u32::from(*verdict == Verdict::Send);
            if *mark != 0 {
                *output = *interface;
            }
        }
        v.divert(&self.marks, Next::Output);
        v.forget(&[Col::TX]);
    }
}
