//! lab-sink: reads the probes of packets, and frees the packets.

use crate::traffic::probe::{FRONT, Probe};
use crate::traffic::record::{Received, add};
use crate::traffic::window::{Arrival, Window};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volley_graph::{Col, Column, Consumed, Cx, Isa, NoCounters, Node, PacketTrace, Vector, nexts};

nexts! {
    /// Where lab-sink sends packets: nowhere.
    pub enum Next { Drop => "error-drop" }
}

/// State of lab-sink on one worker.
pub struct LabSink {
    received: Arc<Received>,
    window: Window,
    /// Last eight bits of the trial's number.
    trial: Option<u8>,
    lens: Column,
}

impl LabSink {
    /// For vectors of up to `size` packets.
    pub fn new(received: Arc<Received>, size: usize) -> Self {
        LabSink {
            received,
            window: Window::default(),
            trial: None,
            lens: Column::new(size),
        }
    }

    /// The first packet of a trial arrived. Packets of an older trial are none of this one.
    #[cold]
    fn begin(&mut self, trial: u8) -> bool {
        let is_old = |old: u8| trial.wrapping_sub(old) > 128;
        if self.trial.is_some_and(is_old) {
            return false;
        }
        self.window.clear();
        self.received.clear();
        self.trial = Some(trial);
        self.received
            .trial
            .store(u32::from(trial), Ordering::Release);
        true
    }

    #[inline(always)]
    fn note(&mut self, probe: &Probe, length: u32, now: u64) {
        if self.trial != Some(probe.trial) && !self.begin(probe.trial) {
            add(&self.received.others, 1);
            return;
        }
        let received = &self.received;
        match self.window.note(probe.sequence) {
            Arrival::InOrder => {}
            Arrival::Late => add(&received.reordered, 1),
            Arrival::Duplicate => {
                add(&received.duplicates, 1);
                return;
            }
        }
        add(&received.packets, 1);
        add(&received.bytes, u64::from(length));
        received.latency.record(now.saturating_sub(probe.due));
    }
}

impl Node for LabSink {
    const NAME: &'static str = "lab-sink";
    type Next = Next;
    type Count = NoCounters;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _cx: &Cx<'_, NoCounters>, mut v: Vector<'_, I, Next>) -> Consumed {
        let (n, now) = (v.len(), volley_simd::cycles());
        self.lens.words_mut(n).copy_from_slice(v.column(Col::LEN));
        for row in 0..n {
            let length = self.lens.words(n)[row];
            match Probe::find(v.front::<FRONT>(row), length as usize) {
                Some(probe) => self.note(&probe, length, now),
                None => add(&self.received.others, 1),
            }
        }
        let (received, relaxed) = (&self.received, Ordering::Relaxed);
        received.end.store(self.window.end(), relaxed);
        if received.first.load(relaxed) == 0 {
            received.first.store(now, relaxed);
        }
        received.last.store(now, relaxed);
        v.free()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_duplicates_and_order_are_counted() {
        let received = Arc::new(Received::default());
        let mut sink = LabSink::new(received.clone(), 4);
        for sequence in [0, 1, 5, 3, 5, 6] {
            let probe = Probe {
                trial: 1,
                sequence,
                due: 90,
            };
            sink.note(&probe, 60, 100);
        }
        let of = |cell: &std::sync::atomic::AtomicU64| cell.load(Ordering::Relaxed);
        assert_eq!(sink.window.end(), 7);
        assert_eq!((of(&received.packets), of(&received.bytes)), (5, 300));
        assert_eq!((of(&received.duplicates), of(&received.reordered)), (1, 1));
        let latency = received.latency.read(1.0).unwrap();
        assert_eq!((latency.count, latency.min, latency.max), (5, 10.0, 10.0));
    }

    #[test]
    fn a_new_trial_begins_afresh_and_an_old_packet_does_not_count() {
        let received = Arc::new(Received::default());
        let mut sink = LabSink::new(received.clone(), 4);
        let note = |sink: &mut LabSink, trial, sequence| {
            let probe = Probe {
                trial,
                sequence,
                due: 0,
            };
            sink.note(&probe, 60, 10);
        };
        note(&mut sink, 255, 9);
        note(&mut sink, 0, 2);
        note(&mut sink, 255, 10);
        assert_eq!(received.packets.load(Ordering::Relaxed), 1);
        assert_eq!(received.others.load(Ordering::Relaxed), 1);
        assert_eq!(received.trial.load(Ordering::Relaxed), 0);
    }
}
