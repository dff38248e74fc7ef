//! Capture files.

use crate::cells::Cells;
use crate::element::{ControlOutput, Each, Generate, Made, Verdict};
use crate::spec::Need::{Keyword, Optional, Required};
use crate::spec::{Argument, Context, Format, HandlerKind, Kind, Spec, argument, handler, reads};
use std::path::PathBuf;
use std::sync::Arc;
use volley_graph::{Guard, Packet};
use volley_pcap::spool::{CaptureWriter, Note, WHOLE};

/// Cell: packets.
const COUNT: usize = 0;
/// Cell: whether packets are read.
const ACTIVE: usize = 1;
/// Cell: the program is to end.
const STOP: usize = 2;
/// Records of a file that is written.
const RECORDS: usize = 2048;

/// The packets of a file.
#[derive(Clone)]
struct FromDump {
    packets: Arc<[(u64, Box<[u8]>)]>,
    next: usize,
    /// The time of the round in which the first packet was sent, with TIMING.
    started_ns: Option<u64>,
    timing: bool,
    stop: bool,
    cells: Arc<Cells>,
    /// Files that are written: packets are read while these have room.
    written: crate::element::Room,
}

impl Generate for FromDump {
    fn due(&mut self, now_ns: u64, most: usize, guard: Guard<'_>) -> usize {
        if self.cells.get(ACTIVE) == 0 {
            return 0;
        }
        if self.next >= self.packets.len() {
            if self.stop {
                self.cells.set(STOP, 1);
            }
            return 0;
        }
        if !self.written.is_free(guard) {
            return 0;
        }
        let mut due = most.min(self.packets.len() - self.next);
        if self.timing {
            let first = self.packets[0].0;
            let passed = now_ns - *self.started_ns.get_or_insert(now_ns);
            let ready = self.packets[self.next..][..due].iter();
            due = ready
                .take_while(|(at, _)| at.saturating_sub(first) <= passed)
                .count();
        }
        due
    }

    fn next(&mut self) -> &[u8] {
        let at = self.next;
        self.next += 1;
        self.packets.get(at).map_or(&[], |(_, bytes)| bytes)
    }

    fn made(&mut self, count: usize) {
        self.cells.add(COUNT, count as u64);
    }

    fn is_idle(&self) -> bool {
        self.cells.get(ACTIVE) == 0 || (self.next >= self.packets.len() && !self.stop)
    }
}

/// Puts packets into the queue to a file.
#[derive(Clone)]
struct ToDump {
    spool: Arc<CaptureWriter>,
    cells: Arc<Cells>,
}

impl Each for ToDump {
    fn packet(&mut self, packet: &mut Packet<'_>, now_ns: u64) -> Verdict {
        let note = Note {
            at_ns: now_ns,
            ..Note::default()
        };
        self.spool.give(note, &packet.view(), 0);
        self.cells.add(COUNT, 1);
        Verdict::port(0)
    }
}

fn path(context: &Context<'_>, name: &str) -> PathBuf {
    context.folder.join(name)
}

const IGNORED: &str = "accepted and ignored";

const FROM: &[Argument] = &[
    argument(
        Required,
        "FILENAME",
        Kind::Text,
        "the file: pcap or pcapng, compressed or not",
    ),
    argument(
        Optional,
        "TIMING",
        Kind::Bool,
        "keep the times between packets, false by default",
    ),
    argument(
        Keyword,
        "STOP",
        Kind::Bool,
        "end the program after the last packet, false by default",
    ),
    argument(
        Keyword,
        "ACTIVE",
        Kind::Bool,
        "whether packets are read, true by default",
    ),
    argument(Keyword, "FORCE_IP", Kind::Bool, IGNORED),
    argument(Keyword, "MMAP", Kind::Bool, IGNORED),
];

const TO: &[Argument] = &[
    argument(
        Required,
        "FILENAME",
        Kind::Text,
        "the file; one whose name ends in .pcapng has that format",
    ),
    argument(
        Optional,
        "SNAPLEN",
        Kind::Number(0, u64::MAX),
        "bytes of each packet, all by default",
    ),
    argument(Optional, "ENCAP", Kind::Text, IGNORED),
    argument(Keyword, "USE_ENCAP_FROM", Kind::Text, IGNORED),
    argument(Keyword, "UNBUFFERED", Kind::Bool, IGNORED),
];

pub(super) const SPECS: &[Spec] = &[
    Spec {
        name: "FromDump",
        ports: "0/1",
        modes: "h/h",
        arguments: FROM,
        handlers: &[
            reads("count", 0, "packets read"),
            handler(
                "active",
                HandlerKind::ReadWrite(1, Format::Bool),
                "whether packets are read",
            ),
        ],
        text: "Packets of a capture file, which is read when the graph is made.",
        make: |arguments, context| {
            let name = arguments.text("FILENAME").unwrap_or_default();
            let capture = volley_pcap::read_packets(path(context, name))
                .map_err(|error| error.to_string())?;
            let packets = capture.packets.into_iter();
            let packets = packets
                .map(|it| (it.timestamp_ns, it.data.into_boxed_slice()))
                .collect();
            context
                .cells
                .set(ACTIVE, u64::from(arguments.flag("ACTIVE").unwrap_or(true)));
            let stop = arguments.flag("STOP").unwrap_or(false);
            Ok(Made {
                stop_cell: stop.then_some(STOP),
                ..Made::source(FromDump {
                    packets,
                    next: 0,
                    started_ns: None,
                    timing: arguments.flag("TIMING").unwrap_or(false),
                    stop,
                    cells: context.cells.clone(),
                    written: context.written.clone(),
                })
            })
        },
    },
    Spec {
        name: "ToDump",
        ports: "1/0",
        modes: "a/a",
        arguments: TO,
        handlers: &[
            reads("count", 0, "packets written"),
            handler(
                "reset_counts",
                HandlerKind::Reset(0, 1),
                "sets the number to 0",
            ),
        ],
        text: "Writes packets to a capture file of Ethernet frames.",
        make: |arguments, context| {
            let name = arguments.text("FILENAME").unwrap_or_default();
            let snap = match arguments.number("SNAPLEN").unwrap_or(0) {
                0 => WHOLE,
                bytes => bytes.min(WHOLE as u64) as usize,
            };
            let spool = CaptureWriter::new(RECORDS, snap, u64::MAX);
            Ok(Made {
                to_control: Some(ControlOutput::Dump(spool.clone(), path(context, name))),
                ..Made::end(ToDump {
                    spool,
                    cells: context.cells.clone(),
                })
            })
        },
    },
];
