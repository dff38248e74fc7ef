//! Queues, their readers, and elements between them that limit the rate.

use super::{delay, red};
use crate::arguments::{Arguments, number};
use crate::cells::Cells;
use crate::element::{Each, Element, Made, Pass, Verdict};
use crate::node::queue::CAPACITY;
use crate::pace::{Bucket, Pace, from_fixed, to_fixed};
use crate::spec::Need::{Keyword, Optional, Required, Rest};
use crate::spec::{
    Argument, Context, Format, Handler, HandlerKind, Kind, Spec, argument, handler, reads,
};
use crate::turn::TurnKind;
use std::sync::Arc;
use volley_graph::{Guard, Packet, Rows};

/// Packets of a queue without an argument.
const USUAL: u64 = 1000;

const QUEUE_HANDLERS: &[Handler] = &[
    reads("length", 0, "packets in the queue"),
    reads(
        "highwater_length",
        1,
        "the most packets that were in the queue",
    ),
    reads("drops", 2, "packets for which there was no room"),
    reads("capacity", 3, "packets for which there is room"),
    handler(
        "reset_counts",
        HandlerKind::Reset(1, 3),
        "sets the numbers to 0",
    ),
];

const RATE_HANDLER: &[Handler] = &[handler(
    "rate",
    HandlerKind::ReadWrite(0, Format::Fraction),
    "the rate, in packets or bytes a second",
)];

const QUEUE: Spec = Spec {
    name: "Queue",
    ports: "1/1",
    modes: "h/l",
    arguments: &[argument(
        Optional,
        "CAPACITY",
        Kind::Number(1, 1 << 20),
        "packets for which there is room, 1000 by default",
    )],
    handlers: QUEUE_HANDLERS,
    text: "Holds packets until its reader takes them; drops packets for which there is no room.",
    make: |arguments, context| {
        let capacity = arguments.number("CAPACITY").unwrap_or(USUAL);
        context.cells.set(CAPACITY, capacity);
        Ok(Made::new(Element::Queue(capacity as usize)))
    },
};

/// A limit in cell 0 of the element.
fn limited(context: &Context<'_>, rate: Option<f64>, pace: fn(Arc<Cells>) -> Pace) -> Made {
    context.cells.set(0, to_fixed(rate.unwrap_or(0.0)));
    Made {
        pace: Some(pace(context.cells.clone())),
        ..Made::each(Pass)
    }
}

fn packets(arguments: &Arguments, context: &Context<'_>) -> Result<Made, String> {
    Ok(limited(context, arguments.fraction("RATE"), Pace::Packets))
}

fn bytes(arguments: &Arguments, context: &Context<'_>) -> Result<Made, String> {
    Ok(limited(
        context,
        arguments.fraction("BANDWIDTH"),
        Pace::Bytes,
    ))
}

const RATE: &[Argument] = &[
    argument(Required, "RATE", Kind::Rate, "packets a second"),
    argument(
        Keyword,
        "BURST",
        Kind::Number(1, 1 << 20),
        "accepted and ignored",
    ),
];
const BANDWIDTH: &[Argument] = &[argument(
    Required,
    "BANDWIDTH",
    Kind::Bandwidth,
    "bytes a second, or bits with a unit such as Mbps",
)];

const UNQUEUE: Spec = Spec {
    name: "Unqueue",
    ports: "1/1",
    modes: "l/h",
    arguments: &[
        argument(
            Optional,
            "BURST",
            Kind::Number(1, 1 << 20),
            "accepted and ignored: a round takes all packets",
        ),
        argument(
            Keyword,
            "ACTIVE",
            Kind::Bool,
            "whether packets are taken, true by default",
        ),
    ],
    handlers: &[handler(
        "active",
        HandlerKind::ReadWrite(0, Format::Bool),
        "whether packets are taken",
    )],
    text: "Takes packets from a queue and pushes them.",
    make: |arguments, context| {
        context
            .cells
            .set(0, u64::from(arguments.flag("ACTIVE").unwrap_or(true)));
        Ok(Made {
            pace: Some(Pace::Active(context.cells.clone(), 0)),
            ..Made::each(Pass)
        })
    },
};

const SHAPER: Spec = Spec {
    name: "Shaper",
    modes: "l/l",
    arguments: RATE,
    handlers: RATE_HANDLER,
    text: "Lets a reader take this number of packets a second at most.",
    make: packets,
    ..UNQUEUE
};

/// Passes packets of all inputs.
#[derive(Clone)]
struct Merge;

impl Each for Merge {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        crate::columns::take_port(packet);
        Verdict::port(0)
    }
}

fn scheduler(kind: TurnKind) -> Made {
    Made {
        turn: Some(kind),
        ..Made::each(Merge)
    }
}

const PRIORITY: Spec = Spec {
    name: "PrioSched",
    ports: "-/1",
    modes: "l/l",
    arguments: &[],
    handlers: &[],
    text: "Lets one reader take packets of several queues: of an input only while no input of lower number has one.",
    make: |_, _| Ok(scheduler(TurnKind::Priority)),
};

/// Sends packets to the output of the first rate that the average rate does not exceed.
#[derive(Clone)]
struct Meter {
    limits: Vec<f64>,
    by_bytes: bool,
    cells: Arc<Cells>,
    /// Packets or bytes in the current interval, and its end.
    now: f64,
    until_ns: u64,
    average: f64,
}

/// The average is computed once in this time.
const INTERVAL_NS: u64 = 10_000_000;
/// Intervals in which an old rate loses most of its weight.
const WEIGHT: f64 = 0.125;

impl Meter {
    fn turn(&mut self, now_ns: u64) {
        if self.until_ns == 0 {
            self.until_ns = now_ns + INTERVAL_NS;
        }
        let mut late = 0;
        while now_ns >= self.until_ns && late < 100 {
            let rate = std::mem::take(&mut self.now) * 1e9 / INTERVAL_NS as f64;
            self.average += (rate - self.average) * WEIGHT;
            self.until_ns += INTERVAL_NS;
            late += 1;
        }
        if now_ns >= self.until_ns {
            self.average = 0.0;
            self.until_ns = now_ns + INTERVAL_NS;
        }
    }
}

impl Each for Meter {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        self.now += if self.by_bytes {
            packet.len() as f64
        } else {
            1.0
        };
        let over = self.limits.iter().filter(|limit| self.average > **limit);
        Verdict::port(over.count())
    }

    fn run(&mut self, rows: &mut Rows<'_>, verdicts: &mut [u32], now_ns: u64, _: Guard<'_>) {
        self.turn(now_ns);
        for (row, verdict) in verdicts.iter_mut().enumerate() {
            *verdict = self.packet(&mut rows.packet(row), now_ns).0;
        }
        self.cells.set(0, to_fixed(self.average));
    }
}

fn meter(arguments: &Arguments, context: &Context<'_>, by_bytes: bool) -> Result<Made, String> {
    let kind = if by_bytes {
        Kind::Bandwidth
    } else {
        Kind::Rate
    };
    let limits = crate::arguments::rates(kind, arguments.rest())?;
    let outputs = limits.len() + 1;
    let meter = Meter {
        limits,
        by_bytes,
        cells: context.cells.clone(),
        now: 0.0,
        until_ns: 0,
        average: 0.0,
    };
    Ok(Made::each(meter).outputs(outputs))
}

const METER: Spec = Spec {
    name: "Meter",
    ports: "1/2-",
    modes: "h/h",
    arguments: &[argument(
        Rest,
        "RATES",
        Kind::Words,
        "packets a second, in rising order",
    )],
    handlers: &[handler(
        "rate",
        HandlerKind::Read(0, Format::Fraction),
        "the average rate",
    )],
    text: "Sends packets to output 0 while the average rate is not above the first rate, to output 1 up to the second one, and so on.",
    make: |arguments, context| meter(arguments, context, false),
};

/// Sends packets above a rate to output 1.
#[derive(Clone)]
struct Splitter {
    cells: Arc<Cells>,
    bucket: Bucket,
}

impl Each for Splitter {
    fn packet(&mut self, _: &mut Packet<'_>, now_ns: u64) -> Verdict {
        let rate = from_fixed(self.cells.get(0));
        if self.bucket.at(rate, 1.0, now_ns) < 1.0 {
            return Verdict::port_or(1, crate::element::Reason::Refused);
        }
        self.bucket.take(1.0);
        Verdict::port(0)
    }
}

/// Tickets of an input of StrideSched at most.
const MOST_TICKETS: u64 = u16::MAX as u64;

pub(super) const SPECS: &[Spec] = &[
    red::SPEC,
    QUEUE,
    Spec {
        name: "SimpleQueue",
        ..QUEUE
    },
    Spec {
        name: "ThreadSafeQueue",
        ..QUEUE
    },
    UNQUEUE,
    Spec {
        name: "RatedUnqueue",
        arguments: RATE,
        handlers: RATE_HANDLER,
        text: "Takes this number of packets a second from a queue and pushes them.",
        make: packets,
        ..UNQUEUE
    },
    Spec {
        name: "BandwidthRatedUnqueue",
        arguments: BANDWIDTH,
        handlers: RATE_HANDLER,
        text: "Takes this number of bytes a second from a queue and pushes the packets.",
        make: bytes,
        ..UNQUEUE
    },
    delay::DELAY,
    delay::LINK,
    Spec {
        name: "RoundRobinSched",
        ports: "-/1",
        modes: "l/l",
        arguments: &[],
        handlers: &[],
        text: "Lets one reader take packets of several queues, a vector of each in turn.",
        make: |_, _| Ok(Made::each(Merge)),
    },
    PRIORITY,
    Spec {
        name: "SimplePrioSched",
        ..PRIORITY
    },
    Spec {
        name: "StrideSched",
        arguments: &[argument(
            Rest,
            "TICKETS",
            Kind::Words,
            "tickets of each input, from 1; numbers of more than 16 bits count as the largest of 16 bits",
        )],
        text: "Lets one reader take packets of several queues, in proportion to their tickets.",
        make: |arguments, context| {
            let ticket = |text: &String| {
                let ticket = number(text).filter(|it| *it > 0);
                let ticket = ticket.map(|it| it.min(MOST_TICKETS));
                ticket.ok_or_else(|| {
                    format!("'{text}' is no number of tickets: give 1 to {MOST_TICKETS}")
                })
            };
            let tickets: Result<Vec<u64>, String> = arguments.rest().iter().map(ticket).collect();
            let tickets = tickets?;
            if tickets.len() < context.ports.0 {
                return Err(format!(
                    "StrideSched needs tickets for each of its {} inputs: give more numbers",
                    context.ports.0
                ));
            }
            Ok(scheduler(TurnKind::Tickets(tickets)))
        },
        ..PRIORITY
    },
    Spec {
        name: "DRRSched",
        arguments: &[argument(
            Optional,
            "QUANTUM",
            Kind::Number(1, 1 << 20),
            "accepted and ignored: inputs share by single packets",
        )],
        text: "Lets one reader take packets of several queues, equal numbers of bytes.",
        make: |_, _| Ok(scheduler(TurnKind::Bytes)),
        ..PRIORITY
    },
    SHAPER,
    Spec {
        name: "TimedSink",
        ports: "1/0",
        modes: "l/l",
        arguments: &[argument(
            Optional,
            "INTERVAL",
            Kind::Time,
            "time between packets, 0.5 s by default",
        )],
        handlers: &[],
        text: "Takes a packet in each interval, and ends it.",
        make: |arguments, context| {
            let interval = arguments.fraction("INTERVAL").unwrap_or(0.5).max(1e-6);
            let limited = limited(context, Some(interval.recip()), Pace::Packets);
            Ok(Made {
                element: Made::end(Pass).element,
                ..limited
            })
        },
    },
    Spec {
        name: "BandwidthShaper",
        arguments: BANDWIDTH,
        text: "Lets a reader take this number of bytes a second at most.",
        make: bytes,
        ..SHAPER
    },
    METER,
    Spec {
        name: "BandwidthMeter",
        arguments: &[argument(
            Rest,
            "RATES",
            Kind::Words,
            "bytes a second, in rising order",
        )],
        make: |arguments, context| meter(arguments, context, true),
        ..METER
    },
    Spec {
        name: "RatedSplitter",
        ports: "1/2",
        modes: "h/h",
        arguments: RATE,
        handlers: RATE_HANDLER,
        text: "Sends this number of packets a second to output 0, and the others to output 1.",
        make: |arguments, context| {
            context
                .cells
                .set(0, to_fixed(arguments.fraction("RATE").unwrap_or(0.0)));
            Ok(Made::each(Splitter {
                cells: context.cells.clone(),
                bucket: Bucket::default(),
            }))
        },
    },
];
