//! The query `monitor`, its reply, and the text of it.

use crate::filter_text::{CAPTURED_BYTES, FilterText, TRACE_PACKETS};
use schemars::JsonSchema;
use serde::Serialize;
use volley_object::Query;

/// The directions in which packets are captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Directions {
    /// On receipt from an interface.
    pub rx: bool,
    /// On transmission to an interface.
    pub tx: bool,
    /// When dropped.
    pub drop: bool,
}

/// Show packets as they pass, one line each, until Ctrl-C; with pcapng: as a capture on standard output, for `wireshark -k -i -`.
#[derive(Clone, Debug, PartialEq, Eq, Query)]
#[query(name = "monitor", operate, reply = MonitorReply)]
#[query(
    show = "monitor (any | <interface>) {rx@rx=on | tx@tx=on | drop@drop=on | filter <filter> | count <count> | \
            max-bytes-per-packet <max_bytes_per_packet> | pcapng@pcapng=on}"
)]
#[query(example = "monitor lan0 filter \"udp and port 53\" count 10")]
#[query(stream(
    items = lines,
    line = line_of,
    end = summary,
    bytes = pcapng,
    reader = "wireshark -k -i -",
    live
))]
pub struct Monitor {
    /// Only packets of this interface; none = of all.
    #[query(needs = "interface")]
    pub interface: Option<String>,
    /// Packets on receipt; without rx, tx and drop: rx and tx.
    #[query(default = false)]
    pub rx: bool,
    /// Packets on transmission.
    #[query(default = false)]
    pub tx: bool,
    /// Packets that are dropped, with the reason.
    #[query(default = false)]
    pub drop: bool,
    /// Only packets that match this expression.
    pub filter: Option<FilterText>,
    /// End after this many packets.
    #[query(range = TRACE_PACKETS)]
    pub count: Option<u64>,
    /// Keep the first bytes of each packet only.
    #[query(range = CAPTURED_BYTES, unit = "bytes")]
    pub max_bytes_per_packet: Option<u32>,
    /// Write a capture to standard output, for `wireshark -k -i -` or `tcpdump -r -`.
    #[query(default = false)]
    pub pcapng: bool,
}

impl Monitor {
    /// The requested directions.
    pub(super) fn directions(&self) -> Directions {
        let Monitor { rx, tx, drop, .. } = *self;
        match rx || tx || drop {
            true => Directions { rx, tx, drop },
            false => Directions {
                rx: true,
                tx: true,
                drop: false,
            },
        }
    }
}

/// Packets that passed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MonitorReply {
    /// Packets shown.
    pub packets: u64,
    /// Packets that came faster than they could be shown.
    pub lost: u64,
    /// A line of each packet.
    pub lines: Vec<String>,
    /// The capture.
    #[serde(skip)]
    pub pcapng: Vec<u8>,
}

fn line_of(_: usize, line: &String) -> String {
    format!("{line}\n")
}

fn summary(reply: &MonitorReply) -> String {
    format!("{} packets, {} lost\n", reply.packets, reply.lost)
}
