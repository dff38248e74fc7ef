//! Elements that choose an output.

use crate::cells::Cells;
use crate::columns::{self, PAINT};
use crate::element::{Build, Each, Emit, Fast, Made, PacketAction, Reason, Verdict};
use crate::spec::Need::{Optional, Required};
use crate::spec::{Argument, Format, HandlerKind, Kind, Spec, argument, handler};
use std::sync::Arc;
use volley_graph::Packet;

/// All packets to the output that a cell names; its value is one more, and 0 drops.
#[derive(Clone)]
struct Switch(Arc<Cells>);

impl Each for Switch {
    fn packet(&mut self, _: &mut Packet<'_>, _: u64) -> Verdict {
        match usize::try_from(self.0.get(0) as i64) {
            Ok(port) => Verdict::port(port),
            Err(_) => Verdict::drop(Reason::Refused),
        }
    }
}

/// One output after the other.
#[derive(Clone)]
struct RoundRobin {
    next: usize,
    outputs: usize,
}

impl Each for RoundRobin {
    fn packet(&mut self, _: &mut Packet<'_>, _: u64) -> Verdict {
        let port = self.next;
        self.next = (port + 1) % self.outputs;
        Verdict::port(port)
    }
}

/// The output by the sum of some bytes.
#[derive(Clone)]
struct Hash {
    offset: usize,
    length: usize,
    outputs: usize,
}

impl Each for Hash {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let all = packet.bytes().get(self.offset..self.offset + self.length);
        match all {
            Some(bytes) => {
                let sum: usize = bytes.iter().map(|byte| usize::from(*byte)).sum();
                Verdict::port((sum + (sum >> 4)) % self.outputs)
            }
            // Packets that are too short are kept together.
            None => Verdict::port(0),
        }
    }
}

#[derive(Clone)]
struct Paint(u32);

impl Each for Paint {
    fn fast(&self) -> Fast {
        Fast::Paint(PAINT, self.0)
    }

    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        columns::set_note(packet, PAINT, self.0);
        Verdict::port(0)
    }
}

#[derive(Clone)]
struct CheckPaint(u32);

impl Each for CheckPaint {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        match columns::note(packet) & PAINT == self.0 {
            true => Verdict::port(0),
            false => Verdict::port_or(1, Reason::Refused),
        }
    }
}

/// Packets of a colour go to both outputs.
#[derive(Clone)]
struct PaintTee(u32);

impl Build for PaintTee {
    fn fast(&self) -> Fast {
        Fast::NotValue(PAINT, self.0)
    }

    fn packet(&mut self, packet: &mut Packet<'_>, to: &mut dyn Emit, _: u64) -> PacketAction {
        if columns::note(packet) & PAINT == self.0 {
            to.copy(packet, 1);
        }
        PacketAction::Go(Verdict::port(0))
    }
}

#[derive(Clone)]
struct PaintSwitch;

impl Each for PaintSwitch {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        Verdict::port((columns::note(packet) & PAINT) as usize)
    }
}

const COLOUR: &[Argument] = &[argument(
    Required,
    "COLOR",
    Kind::Number(0, 255),
    "the colour",
)];

const SWITCH: Spec = Spec {
    name: "Switch",
    ports: "1/-",
    modes: "h/h",
    arguments: &[argument(
        Optional,
        "OUTPUT",
        Kind::Integer,
        "the output, 0 by default; a negative one drops",
    )],
    handlers: &[handler(
        "switch",
        HandlerKind::ReadWrite(0, Format::Integer),
        "the output; a negative one drops",
    )],
    text: "Sends all packets to one output, which a handler changes.",
    make: |arguments, context| {
        context
            .cells
            .set(0, arguments.integer("OUTPUT").unwrap_or(0) as u64);
        Ok(Made::each(Switch(context.cells.clone())))
    },
};

const PAINT_ONE: Spec = Spec {
    name: "Paint",
    ports: "1/1",
    modes: "a/a",
    arguments: COLOUR,
    handlers: &[],
    text: "Gives packets a colour.",
    make: |arguments, _| Ok(Made::each(Paint(colour(arguments)))),
};

fn colour(arguments: &crate::arguments::Arguments) -> u32 {
    arguments.number("COLOR").unwrap_or(0) as u32
}

pub(super) const SPECS: &[Spec] = &[
    SWITCH,
    Spec {
        name: "StaticSwitch",
        handlers: &[],
        arguments: &[argument(
            Required,
            "OUTPUT",
            Kind::Integer,
            "the output; a negative one drops",
        )],
        text: "Sends all packets to one output.",
        ..SWITCH
    },
    Spec {
        name: "RoundRobinSwitch",
        ports: "1/1-",
        arguments: &[],
        handlers: &[],
        text: "Sends packets to one output after the other.",
        make: |_, context| {
            Ok(Made::each(RoundRobin {
                next: 0,
                outputs: context.ports.1.max(1),
            }))
        },
        ..SWITCH
    },
    Spec {
        name: "HashSwitch",
        ports: "1/1-",
        arguments: &[
            argument(Required, "OFFSET", Kind::Number(0, 2047), "the first byte"),
            argument(Required, "LENGTH", Kind::Number(1, 2048), "number of bytes"),
        ],
        handlers: &[],
        text: "Sends packets with equal bytes at a place to the same output.",
        make: |arguments, context| {
            Ok(Made::each(Hash {
                offset: arguments.number("OFFSET").unwrap_or(0) as usize,
                length: arguments.number("LENGTH").unwrap_or(1) as usize,
                outputs: context.ports.1.max(1),
            }))
        },
        ..SWITCH
    },
    PAINT_ONE,
    Spec {
        name: "CheckPaint",
        ports: "1/1-2",
        modes: "a/ah",
        text: "Sends packets of other colours to output 1.",
        make: |arguments, _| Ok(Made::each(CheckPaint(colour(arguments)))),
        ..PAINT_ONE
    },
    Spec {
        name: "PaintTee",
        ports: "1/1-2",
        modes: "h/h",
        text: "Sends a copy of packets of the colour to output 1.",
        make: |arguments, _| Ok(Made::build(PaintTee(colour(arguments)))),
        ..PAINT_ONE
    },
    Spec {
        name: "PaintSwitch",
        ports: "1/1-",
        modes: "h/h",
        arguments: &[],
        text: "Sends packets to the output of their colour.",
        make: |_, _| Ok(Made::each(PaintSwitch)),
        ..PAINT_ONE
    },
];
