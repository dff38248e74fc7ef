//! Elements that print packets.

use crate::cells::Cells;
use crate::columns;
use crate::element::{ControlOutput, Each, Made, Verdict};
use crate::print::Style;
use crate::spec::Need::{Keyword, Optional};
use crate::spec::{Argument, Context, Format, Handler, HandlerKind, Kind, Spec, argument, handler};
use std::sync::Arc;
use volley_graph::Packet;
use volley_pcap::spool::{CaptureWriter, Note};

/// Packets that wait to be printed.
const RECORDS: usize = 2048;
/// Bytes of a packet that an IP line reads.
const HEADERS: usize = 128;
/// Bytes that are shown without an argument.
const USUAL: u64 = 24;

/// Passes packets, and queues a copy of their first bytes.
#[derive(Clone)]
struct Print {
    spool: Arc<CaptureWriter>,
    cells: Arc<Cells>,
    is_ip: bool,
}

impl Each for Print {
    fn packet(&mut self, packet: &mut Packet<'_>, now_ns: u64) -> Verdict {
        if self.cells.get(0) != 0 {
            let note = Note {
                at_ns: now_ns,
                ..Note::default()
            };
            let net = columns::net(&packet.view()).filter(|_| self.is_ip);
            match net.filter(|net| *net < packet.bytes().len()) {
                Some(net) => {
                    packet.advance(net);
                    self.spool.give(note, &packet.view(), 0);
                    packet.retreat(net);
                }
                None => {
                    self.spool.give(note, &packet.view(), 0);
                }
            }
        }
        Verdict::port(0)
    }
}

fn print(context: &Context<'_>, style: Style, active: bool) -> Made {
    let bytes = if style.is_ip { HEADERS } else { style.bytes };
    let spool = CaptureWriter::new(RECORDS, bytes, u64::MAX);
    context.cells.set(0, u64::from(active));
    let is_ip = style.is_ip;
    Made {
        to_control: Some(ControlOutput::Print(spool.clone(), style)),
        ..Made::each(Print {
            spool,
            cells: context.cells.clone(),
            is_ip,
        })
    }
}

const LABEL: Argument = argument(Optional, "LABEL", Kind::Text, "in front of each line");
const IS_ACTIVE: Argument = argument(
    Keyword,
    "ACTIVE",
    Kind::Bool,
    "whether lines are printed, true by default",
);
const CONTENTS: Argument = argument(Keyword, "CONTENTS", Kind::Text, "accepted and ignored");
const TIMESTAMP: Argument = argument(
    Keyword,
    "TIMESTAMP",
    Kind::Bool,
    "accepted and ignored: the log has times",
);
const HANDLERS: &[Handler] = &[handler(
    "active",
    HandlerKind::ReadWrite(0, Format::Bool),
    "whether lines are printed",
)];

const PRINT: Spec = Spec {
    name: "Print",
    ports: "1/1",
    modes: "a/a",
    arguments: &[
        LABEL,
        argument(
            Optional,
            "MAXLENGTH",
            Kind::Integer,
            "bytes that are shown, 24 by default, -1 for all",
        ),
        IS_ACTIVE,
        CONTENTS,
        TIMESTAMP,
    ],
    handlers: HANDLERS,
    text: "Logs length and first bytes of each packet.",
    make: |arguments, context| {
        let bytes = arguments.integer("MAXLENGTH").unwrap_or(USUAL as i64);
        let style = Style {
            label: arguments.text("LABEL").unwrap_or_default().to_owned(),
            bytes: usize::try_from(bytes).unwrap_or(2048).min(2048),
            is_ip: false,
        };
        Ok(print(
            context,
            style,
            arguments.flag("ACTIVE").unwrap_or(true),
        ))
    },
};

pub(super) const SPECS: &[Spec] = &[
    PRINT,
    Spec {
        name: "IPPrint",
        arguments: &[
            LABEL,
            IS_ACTIVE,
            CONTENTS,
            TIMESTAMP,
            argument(Keyword, "LENGTH", Kind::Bool, "accepted and ignored"),
        ],
        text: "Logs addresses, ports and length of each packet of IP.",
        make: |arguments, context| {
            let style = Style {
                label: arguments.text("LABEL").unwrap_or_default().to_owned(),
                bytes: 0,
                is_ip: true,
            };
            Ok(print(
                context,
                style,
                arguments.flag("ACTIVE").unwrap_or(true),
            ))
        },
        ..PRINT
    },
];
