//! Adds the generator and the sink to an assembled router, and reads what a trial gave.

use super::bucket::Plan;
use super::frame::Frame;
use super::node::lab_delay::{self, LabDelay};
use super::node::lab_generator::{Flow, LabGenerator};
use super::node::lab_sink::LabSink;
use super::outcome::{Latency, Outcome, Polls, Return};
use super::record::{Orders, Received, Sent};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use volley_daemon::stack::Stack;
use volley_graph::{Feature, GraphError, RECEIVE_ARC};
use volley_iface::{IfIdx, ReceiveFeature};

/// The arc of transmitted packets.
const OUTPUT_ARC: &str = "interface-output";

/// Where the sink gets packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkAt {
    /// All packets that an interface receives.
    Reception(IfIdx),
    /// All packets that an interface would transmit.
    Transmission(IfIdx),
}

/// Frames by the interface that receives them.
pub type Frames = Vec<(IfIdx, Frame)>;

/// Rate and length of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// Packets per second; none for as many as possible.
    pub rate: Option<f64>,
    /// Packets that are due at the same time.
    pub burst: u64,
    /// Number of packets; none for no limit.
    pub packets: Option<u64>,
}

impl Offer {
    /// A rate without bursts and without a limit.
    pub fn of(rate: f64) -> Offer {
        Offer {
            rate: Some(rate),
            burst: 1,
            packets: None,
        }
    }

    /// As many packets as possible.
    pub fn most() -> Offer {
        Offer {
            rate: None,
            burst: 1,
            packets: None,
        }
    }

    /// Longest time by which the generator may be late.
    const DEPTH: f64 = 0.001;

    fn plan(&self) -> Plan {
        let rate = self.rate.unwrap_or(0.0);
        let period = match self.rate {
            Some(rate) => volley_simd::cycles_per_second() / rate,
            None => 0.0,
        };
        Plan {
            period,
            burst: self.burst.max(1),
            depth: self.burst.max((rate * Offer::DEPTH) as u64).max(1),
            limit: self.packets,
        }
    }
}

/// The generator and the sink in a router.
pub struct Instruments {
    orders: Arc<Orders>,
    sent: Arc<Sent>,
    received: Arc<Received>,
    has_sink: bool,
}

impl Instruments {
    /// Add the nodes. Each of `kinds` is what a trial can send ([`Instruments::choose`]). The caller steps the workers until the router is settled.
    ///
    /// # Errors
    /// If the graph refuses a node.
    pub fn install(
        stack: &Stack,
        kinds: Vec<Frames>,
        sinks: &[SinkAt],
        delay: Option<Duration>,
    ) -> Result<Instruments, GraphError> {
        let made = Instruments {
            orders: Arc::default(),
            sent: Arc::default(),
            received: Arc::default(),
            has_sink: !sinks.is_empty(),
        };
        let engine = &stack.engine;
        let size = engine.borrow().settings().vector_size;
        let flow = |(rx, frame): (IfIdx, Frame)| Flow { rx: rx.0, frame };
        let flows = |frames: Frames| frames.into_iter().map(flow).collect();
        let kinds: Arc<[Vec<Flow>]> = kinds.into_iter().map(flows).collect();
        if kinds.first().is_some_and(|flows| !flows.is_empty()) {
            let (orders, sent) = (made.orders.clone(), made.sent.clone());
            engine
                .borrow_mut()
                .add_source("lab-generator", move |worker| {
                    let shared = (orders.clone(), sent.clone());
                    LabGenerator::new(worker, shared, kinds.clone(), size)
                })?;
        }
        if made.has_sink {
            let received = made.received.clone();
            let make = move |_| LabSink::new(received.clone(), size);
            engine.borrow_mut().add("lab-sink", make)?;
            // One node on two arcs: which of them it is used on is decided below.
            let is_at = |at: &SinkAt| matches!(at, SinkAt::Reception(_));
            if sinks.iter().any(is_at) {
                ReceiveFeature::consumer(engine, "lab-sink")?;
            }
            if !sinks.iter().all(is_at) {
                let feature = Feature {
                    name: "lab-sink",
                    before: &[],
                    after: &[],
                };
                engine.borrow_mut().add_feature(OUTPUT_ARC, feature)?;
            }
        }
        for sink in sinks {
            place(stack, *sink, delay)?;
        }
        Ok(made)
    }

    /// Begin a trial: packets are sent from now on.
    pub fn begin(&self, offer: &Offer) -> u32 {
        self.orders.begin(&offer.plan())
    }

    /// Send frames of this kind from the next trial on.
    pub fn choose(&self, kind: u32) {
        self.orders.choose(kind);
    }

    /// Stop sending. The packets on their way still count.
    pub fn end(&self) {
        self.orders.end();
    }

    /// Whether the generator has obeyed the last order.
    pub fn has_obeyed(&self) -> bool {
        self.sent.state.load(Ordering::Acquire) == self.orders.state()
    }

    /// Number of packets of the trial that were sent, and that the sink has received.
    pub fn progress(&self) -> (u64, u64) {
        let packets = self.received.packets.load(Ordering::Relaxed);
        let trial = self.orders.trial();
        let is_sent = self.sent.state.load(Ordering::Acquire) / 2 == trial;
        let is_received = self.received.trial.load(Ordering::Acquire) == trial & 0xff;
        (
            if is_sent {
                self.sent.packets.load(Ordering::Relaxed)
            } else {
                0
            },
            if is_received { packets } else { 0 },
        )
    }

    /// Packets that the sink has received in any trial, with and without probes.
    pub fn arrivals(&self) -> u64 {
        let received = &self.received;
        received.packets.load(Ordering::Relaxed) + received.others.load(Ordering::Relaxed)
    }

    /// What the trial gave. The trial has ended, and its packets have arrived.
    pub fn outcome(&self, offer: &Offer) -> Outcome {
        let hertz = volley_simd::cycles_per_second();
        let us = 1e6 / hertz;
        let sent = &self.sent;
        let packets = sent.packets.load(Ordering::Relaxed);
        let span = |first: u64, last: u64| last.saturating_sub(first) as f64 / hertz;
        let seconds = span(
            sent.first.load(Ordering::Relaxed),
            sent.last.load(Ordering::Relaxed),
        );
        let polls = sent.polls.read(us).map(|p| Polls {
            median_us: p.quantile(0.5),
            p99_us: p.quantile(0.99),
            max_us: p.max,
        });
        Outcome {
            asked_pps: offer.rate,
            burst: offer.burst,
            seconds,
            sent: packets,
            sent_pps: per_second(packets, seconds),
            missed: sent.missed.load(Ordering::Relaxed),
            no_buffers: sent.no_buffers.load(Ordering::Relaxed),
            largest_vector: sent.largest.load(Ordering::Relaxed),
            polls,
            returned: self.has_sink.then(|| self.returned(packets, seconds, us)),
        }
    }

    /// What has come back of `sent` packets, which took `seconds` to send.
    fn returned(&self, sent: u64, seconds: f64, us: f64) -> Return {
        let received = &self.received;
        let own = self.progress().1;
        let is_ours = own > 0 || sent == 0;
        let of = |cell: &std::sync::atomic::AtomicU64| match is_ours {
            true => cell.load(Ordering::Relaxed),
            false => 0,
        };
        let packets = of(&received.packets);
        // Without a generator in this process, the sequence numbers say how many packets were sent.
        let sent = match sent {
            0 => of(&received.end),
            sent => sent,
        };
        let span = of(&received.last).saturating_sub(of(&received.first));
        let latency = received.latency.read(us).filter(|_| is_ours);
        Return {
            packets,
            bytes: of(&received.bytes),
            lost: sent.saturating_sub(packets),
            loss: sent.saturating_sub(packets) as f64 / sent.max(1) as f64,
            duplicates: of(&received.duplicates),
            reordered: of(&received.reordered),
            others: received.others.load(Ordering::Relaxed),
            pps: rate(packets, seconds, span as f64 * us / 1e6),
            latency: latency.map(|l| Latency::of(&l)),
        }
    }
}

/// The rate of packets that came back, by the seconds in which packets were sent and received. When a switch stops within a trial, the
/// time after its last packet counts too.
fn rate(packets: u64, sent: f64, received: f64) -> f64 {
    per_second(packets, sent.max(received))
}

fn per_second(packets: u64, seconds: f64) -> f64 {
    match packets > 1 && seconds > 0.0 {
        true => (packets - 1) as f64 / seconds,
        false => 0.0,
    }
}

/// Give the sink the packets of an interface.
fn place(stack: &Stack, sink: SinkAt, delay: Option<Duration>) -> Result<(), GraphError> {
    let (arc, interface) = match sink {
        SinkAt::Reception(interface) => (RECEIVE_ARC, interface),
        SinkAt::Transmission(interface) => (OUTPUT_ARC, interface),
    };
    if let (Some(delay), RECEIVE_ARC) = (delay, arc) {
        delay_line(stack, delay, interface)?;
    }
    let mut engine = stack.engine.borrow_mut();
    engine.set_feature(arc, "lab-sink", interface.0, true)
}

fn delay_line(stack: &Stack, delay: Duration, interface: IfIdx) -> Result<(), GraphError> {
    let cycles = (delay.as_secs_f64() * volley_simd::cycles_per_second()) as u64;
    let engine = &stack.engine;
    let size = engine.borrow().settings().vector_size;
    let make = move |_| LabDelay::new(cycles, size);
    engine.borrow_mut().add_stage("lab-delay", make)?;
    engine.borrow_mut().reserve_frames(lab_delay::MOST + 2)?;
    ReceiveFeature::new(engine, "lab-delay", &["lab-sink"])?.set(interface, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_that_stops_has_the_rate_of_the_whole_trial() {
        let full = rate(1_000_001, 1.0, 1.001);
        assert!((full / 1e6 - 0.999).abs() < 1e-3, "{full}");
        // A burst of 33 packets in 2 us, and nothing more in the trial of 0.5 s.
        assert!((rate(33, 0.5, 2e-6) - 64.0).abs() < 1e-9);
        // A sink without a generator knows the time of its packets only.
        assert!((rate(101, 0.0, 2.0) - 50.0).abs() < 1e-9);
        assert_eq!((rate(1, 1.0, 0.0), rate(0, 0.0, 0.0)), (0.0, 0.0));
    }
}
