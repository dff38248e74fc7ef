//! Elements that count, copy, pass or end packets.

use crate::cells::Cells;
use crate::element::{Build, Each, Element, Emit, Fast, Made, PacketAction, Reason, Verdict};
use crate::names;
use crate::spec::Need::{Keyword, Optional, Required, Rest};
use crate::spec::{Argument, Format, Handler, HandlerKind, Kind, Spec, argument, handler, reads};
use std::sync::Arc;
use volley_graph::{Guard, Packet, Rows};

const COUNT: usize = 0;
const BYTES: usize = 1;
const FIRST: usize = 2;
const LAST: usize = 3;

const COUNTED: &[Handler] = &[
    reads("count", 0, "packets"),
    reads("byte_count", 1, "bytes"),
    handler(
        "rate",
        HandlerKind::AverageRate,
        "packets a second between the first and the last packet",
    ),
    handler("reset", HandlerKind::Reset(0, 4), "sets all numbers to 0"),
    handler(
        "reset_counts",
        HandlerKind::Reset(0, 4),
        "sets all numbers to 0",
    ),
];

const COUNT_ONLY: &[Handler] = &[
    reads("count", 0, "packets"),
    handler(
        "reset_counts",
        HandlerKind::Reset(0, 1),
        "sets the number to 0",
    ),
];

/// Counts packets; `then` is the verdict for all.
#[derive(Clone)]
struct Counter {
    cells: Arc<Cells>,
    then: Verdict,
}

impl Each for Counter {
    fn packet(&mut self, _: &mut Packet<'_>, _: u64) -> Verdict {
        self.then
    }

    fn run(&mut self, rows: &mut Rows<'_>, verdicts: &mut [u32], now_ns: u64, _: Guard<'_>) {
        let bytes: u64 = (0..rows.len()).map(|row| rows.view(row).len() as u64).sum();
        if self.cells.get(COUNT) == 0 {
            self.cells.set(FIRST, now_ns);
        }
        self.cells.set(LAST, now_ns);
        self.cells.add(COUNT, rows.len() as u64);
        self.cells.add(BYTES, bytes);
        verdicts.fill(self.then.0);
    }
}

/// Passes all packets.
#[derive(Clone)]
struct Null;

impl Each for Null {
    fn fast(&self) -> Fast {
        Fast::Pass
    }

    fn packet(&mut self, _: &mut Packet<'_>, _: u64) -> Verdict {
        Verdict::port(0)
    }
}

/// A copy for each output.
#[derive(Clone)]
struct Tee {
    outputs: usize,
}

impl Build for Tee {
    fn packet(&mut self, packet: &mut Packet<'_>, to: &mut dyn Emit, _: u64) -> PacketAction {
        // The outputs get their packets in order; the last one gets the packet itself.
        for port in 0..self.outputs - 1 {
            to.copy(packet, port);
        }
        PacketAction::Go(Verdict::port(self.outputs - 1))
    }
}

/// Sends packets with a probability to output 0.
#[derive(Clone)]
struct Sample {
    cells: Arc<Cells>,
    random: fastrand::Rng,
}

impl Each for Sample {
    fn packet(&mut self, _: &mut Packet<'_>, _: u64) -> Verdict {
        let drawn = u64::from(self.random.u16(..));
        match drawn < self.cells.get(COUNT) {
            true => Verdict::port(0),
            false => Verdict::port_or(1, Reason::Refused),
        }
    }
}

/// Passes packets from input `n` to output `n` while that is on.
#[derive(Clone)]
struct Suppressor {
    cells: Arc<Cells>,
}

impl Each for Suppressor {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let port = crate::columns::take_port(packet);
        match self.cells.get(port.min(31)) {
            0 => Verdict::drop(Reason::Refused),
            _ => Verdict::port(port),
        }
    }
}

fn counter(cells: &Arc<Cells>) -> Made {
    Made::each(Counter {
        cells: cells.clone(),
        then: Verdict::port(0),
    })
}

const SUPPRESSOR: &[Handler] = &[
    active("active0", 0),
    active("active1", 1),
    active("active2", 2),
    active("active3", 3),
    active("active4", 4),
    active("active5", 5),
    active("active6", 6),
    active("active7", 7),
];

const fn active(name: &'static str, cell: u8) -> Handler {
    handler(
        name,
        HandlerKind::ReadWrite(cell, Format::Bool),
        "whether packets of this input pass",
    )
}

const SAMPLE: &[Argument] = &[
    argument(
        Optional,
        "P",
        Kind::Fraction,
        "probability that a packet passes to output 0",
    ),
    argument(Keyword, "SAMPLE", Kind::Fraction, "the same"),
    argument(
        Keyword,
        "DROP",
        Kind::Fraction,
        "probability that a packet does not pass",
    ),
];

const LENGTH: &[Argument] = &[argument(
    Required,
    "LENGTH",
    Kind::Number(0, 65_535),
    "the longest packet, in bytes",
)];

/// Longer packets go to output 1.
#[derive(Clone)]
struct CheckLength(usize);

impl Each for CheckLength {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        match packet.len() <= self.0 {
            true => Verdict::port(0),
            false => Verdict::port_or(1, Reason::Refused),
        }
    }
}

/// Shortens packets.
#[derive(Clone)]
struct Truncate(usize);

impl Each for Truncate {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        packet.truncate(self.0);
        Verdict::port(0)
    }
}

const PLAIN: Spec = Spec {
    name: "Null",
    ports: "1/1",
    modes: "a/a",
    arguments: &[],
    handlers: &[],
    text: "Passes all packets.",
    make: |_, _| Ok(Made::each(Null)),
};

const COUNTER: Spec = Spec {
    name: "Counter",
    handlers: COUNTED,
    text: "Counts packets and bytes.",
    make: |_, context| Ok(counter(&context.cells)),
    ..PLAIN
};

const TEE: Spec = Spec {
    name: "Tee",
    ports: "1/1-",
    modes: "h/h",
    arguments: &[argument(
        Optional,
        "N",
        Kind::Number(1, 1024),
        "number of outputs; those that are connected without it",
    )],
    text: "Sends a copy of each packet to every output.",
    make: |arguments, context| {
        let outputs = arguments
            .number("N")
            .map_or(context.ports.1.max(1), |n| n as usize);
        Ok(Made::build(Tee { outputs }).outputs(outputs))
    },
    ..PLAIN
};

/// Elements without packets.
const INFORMATION: Spec = Spec {
    name: "ScheduleInfo",
    ports: "0/0",
    modes: "h/h",
    arguments: &[argument(
        Rest,
        "SETTINGS",
        Kind::Words,
        "accepted and ignored",
    )],
    handlers: &[],
    text: "Accepted and ignored: each element runs when it has packets.",
    make: |_, _| Ok(Made::new(Element::Nothing)),
};

pub(super) const SPECS: &[Spec] = &[
    PLAIN,
    Spec {
        name: "ClickyInfo",
        text: "Accepted and ignored: how a display draws the graph.",
        ..INFORMATION
    },
    Spec {
        name: "AlignmentInfo",
        text: "Accepted and ignored: elements read headers at any place.",
        ..INFORMATION
    },
    Spec {
        name: "PushNull",
        modes: "h/h",
        text: "Passes all packets, by push.",
        ..PLAIN
    },
    Spec {
        name: "PullNull",
        modes: "l/l",
        text: "Passes all packets, by pull.",
        ..PLAIN
    },
    Spec {
        name: "Align",
        arguments: &[
            argument(
                Optional,
                "MODULUS",
                Kind::Number(1, 64),
                "accepted and ignored",
            ),
            argument(
                Optional,
                "OFFSET",
                Kind::Number(0, 63),
                "accepted and ignored",
            ),
        ],
        text: "Passes all packets: elements read headers at any place in memory.",
        ..PLAIN
    },
    Spec {
        name: "Idle",
        ports: "-/-",
        text: "Sends no packets, and drops those that it gets.",
        make: |_, context| {
            Ok(match context.ports.0 {
                0 => Made::new(Element::Nothing),
                _ => Made::end(Null),
            })
        },
        ..PLAIN
    },
    Spec {
        name: "Discard",
        ports: "1/0",
        handlers: COUNT_ONLY,
        text: "Ends packets, and counts them.",
        make: |_, context| {
            Ok(Made::end(Counter {
                cells: context.cells.clone(),
                then: Verdict::port(0),
            }))
        },
        ..PLAIN
    },
    Spec {
        name: "ToHostSniffers",
        ports: "1/0",
        arguments: &[
            argument(Optional, "DEVNAME", Kind::Device, "accepted and ignored"),
            argument(Keyword, "TYPE", Kind::Text, "accepted and ignored"),
        ],
        text: "Ends packets: `pcap trace` captures what an interface receives.",
        make: |_, _| Ok(Made::end(Null)),
        ..PLAIN
    },
    Spec {
        name: "SetTimestamp",
        arguments: &[argument(
            Optional,
            "TIMESTAMP",
            Kind::Text,
            "accepted and ignored",
        )],
        text: "Passes all packets: dumps have the time of the round.",
        ..PLAIN
    },
    INFORMATION,
    Spec {
        name: names::ADDRESSES,
        arguments: &[argument(
            Rest,
            "NAMES",
            Kind::Words,
            "a name, and its IPv4 address, prefix and MAC address in any order",
        )],
        text: "Names addresses: other elements use a name in place of an address, or `NAME:ip`, `NAME:net`, `NAME:eth`.",
        ..INFORMATION
    },
    Spec {
        name: names::PATTERNS,
        arguments: &[argument(
            Rest,
            "NAMES",
            Kind::Words,
            "a name, and a pattern SADDR SPORT DADDR DPORT",
        )],
        text: "Names patterns: rewriters use them as `pattern NAME OUTPUT REPLY`.",
        ..INFORMATION
    },
    COUNTER,
    Spec {
        name: "PullTee",
        modes: "l/lh",
        ..TEE
    },
    Spec {
        name: "AverageCounter",
        text: "Counts packets and bytes, and their average rate.",
        ..COUNTER
    },
    TEE,
    Spec {
        name: "RandomSample",
        ports: "1/1-2",
        modes: "a/ah",
        arguments: SAMPLE,
        handlers: &[handler(
            "sampling_prob",
            HandlerKind::ReadWrite(0, Format::Fraction),
            "probability that a packet passes",
        )],
        text: "Passes packets with a probability; the others go to output 1.",
        make: |arguments, context| {
            let given = arguments.fraction("P").or(arguments.fraction("SAMPLE"));
            let given = given.or(arguments.fraction("DROP").map(|drop| 1.0 - drop));
            let share =
                given.ok_or("RandomSample needs the argument P: give a number from 0 to 1")?;
            context.cells.set(COUNT, (share * 65_536.0).round() as u64);
            Ok(Made::each(Sample {
                cells: context.cells.clone(),
                // A run is repeatable.
                random: fastrand::Rng::with_seed(1),
            }))
        },
    },
    Spec {
        name: "Suppressor",
        ports: "-/=",
        handlers: SUPPRESSOR,
        text: "Passes packets from each input to the output of the same number, which handlers switch off.",
        make: |_, context| {
            if context.ports.0 > SUPPRESSOR.len() {
                return Err(format!(
                    "Suppressor has at most {} inputs: use two elements",
                    SUPPRESSOR.len()
                ));
            }
            (0..SUPPRESSOR.len()).for_each(|cell| context.cells.set(cell, 1));
            Ok(Made::each(Suppressor {
                cells: context.cells.clone(),
            }))
        },
        ..PLAIN
    },
    Spec {
        name: "CheckLength",
        ports: "1/1-2",
        modes: "a/ah",
        arguments: LENGTH,
        text: "Sends longer packets to output 1.",
        make: |arguments, _| {
            Ok(Made::each(CheckLength(
                arguments.number("LENGTH").unwrap_or(0) as usize,
            )))
        },
        ..PLAIN
    },
    Spec {
        name: "Truncate",
        arguments: LENGTH,
        text: "Shortens longer packets.",
        make: |arguments, _| {
            Ok(Made::each(Truncate(
                arguments.number("LENGTH").unwrap_or(0) as usize,
            )))
        },
        ..PLAIN
    },
];
