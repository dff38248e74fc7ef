//! ICMPPingSource: echo requests, and the replies to them.

use super::icmp::TTL;
use super::source::{ENDS, stops};
use crate::cells::Cells;
use crate::element::{Each, Element, Generate, Made, Verdict};
use crate::handlers::time;
use crate::packet::{ICMP, Ip, dst, is_first, protocol, src, u16_at};
use crate::spec::Need::{Keyword, Required};
use crate::spec::{Argument, Format, Handler, HandlerKind, Kind, Spec, argument, handler, reads};
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use volley_graph::{Guard, Packet};
use volley_wire::checksum::{Sum, is_valid};
use volley_wire::icmp4::Icmp4Type;
use volley_wire::ip4::Ip4Header;
use volley_wire::{Header, IntoBytes, IpProto, U16};

/// Cells: packets made, first replies, further replies; then times in microseconds.
const COUNT: usize = 0;
const RECEIVED: usize = 1;
const REPEATED: usize = 2;
const LEAST: usize = 3;
const MOST: usize = 4;
const AVERAGE: usize = 5;
const SUM: usize = 6;
/// Cell: the program is to end.
const STOP: usize = 7;
/// Cells: the arguments that handlers change.
const ACTIVE: usize = 8;
const LIMIT: usize = 9;
const INTERVAL: usize = 10;
const SRC: usize = 11;
const DST: usize = 12;

/// Bytes of the header of an echo message.
const ECHO: usize = 8;
/// Bytes of the data at most.
const LONGEST: usize = 2048 - Ip4Header::LEN - ECHO;

/// Sequence numbers whose times are allocated together.
const PART: usize = 4096;

/// When the request of each sequence number was sent, in nanoseconds from 1 on; 0 for one that was answered, or not sent. A part
/// is allocated when its first request is sent: most elements send few.
#[derive(Default)]
struct Times([OnceLock<Box<[AtomicU64]>>; (1 << 16) / PART]);

type Sent = Arc<Times>;

impl Times {
    fn set(&self, sequence: u16, time: u64) {
        let at = usize::from(sequence);
        let part = self.0.get(at / PART);
        let part = part.map(|it| it.get_or_init(|| (0..PART).map(|_| AtomicU64::new(0)).collect()));
        if let Some(sent) = part.and_then(|it| it.get(at % PART)) {
            sent.store(time, Relaxed);
        }
    }

    /// The time, which is 0 afterwards.
    fn take(&self, sequence: u16) -> u64 {
        let at = usize::from(sequence);
        let part = self.0.get(at / PART).and_then(OnceLock::get);
        let sent = part.and_then(|it| it.get(at % PART));
        sent.map_or(0, |it| it.swap(0, Relaxed))
    }
}

#[derive(Clone)]
struct Requests {
    data: Arc<[u8]>,
    identifier: u16,
    sequence: u16,
    sent: Sent,
    /// When the next request is due; none: at once.
    next_ns: Option<u64>,
    now_ns: u64,
    stop: bool,
    bytes: Vec<u8>,
    cells: Arc<Cells>,
}

impl Requests {
    fn is_at_limit(&self) -> bool {
        // A negative number is no limit.
        let limit = u64::try_from(self.cells.get(LIMIT) as i64);
        limit.is_ok_and(|limit| self.cells.get(COUNT) >= limit)
    }

    fn address(&self, cell: usize) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.cells.get(cell) as u32)
    }
}

impl Generate for Requests {
    fn due(&mut self, now_ns: u64, most: usize, _: Guard<'_>) -> usize {
        if self.cells.get(ACTIVE) == 0 {
            return 0;
        }
        if self.is_at_limit() {
            if self.stop {
                self.cells.set(STOP, 1);
            }
            return 0;
        }
        self.now_ns = now_ns;
        let is_due = self.next_ns.is_none_or(|at| at <= now_ns);
        usize::from(is_due).min(most)
    }

    fn destination(&self) -> Option<u32> {
        Some(self.cells.get(DST) as u32)
    }

    fn next(&mut self) -> &[u8] {
        let len = ECHO + self.data.len();
        let (from, to) = (self.address(SRC), self.address(DST));
        let mut header = Ip4Header::new(from, to, IpProto(ICMP), TTL, len);
        header.id = U16::new(self.sequence);
        header.fill_checksum(&[]);
        let [id_high, id_low] = self.identifier.to_be_bytes();
        let [high, low] = self.sequence.to_be_bytes();
        let mut echo = [
            Icmp4Type::ECHO_REQUEST.0,
            0,
            0,
            0,
            id_high,
            id_low,
            high,
            low,
        ];
        let sum = Sum::new().bytes(&echo).bytes(&self.data).checksum();
        echo[2..4].copy_from_slice(&sum.to_be_bytes());
        self.bytes.clear();
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(&echo);
        self.bytes.extend_from_slice(&self.data);
        &self.bytes
    }

    fn made(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.sent.set(self.sequence, self.now_ns.saturating_add(1));
        self.sequence = self.sequence.wrapping_add(1);
        self.cells.add(COUNT, 1);
        let interval = self.cells.get(INTERVAL).saturating_mul(1000);
        let due = self.next_ns.unwrap_or(self.now_ns);
        self.next_ns = Some(due.saturating_add(interval).max(self.now_ns));
    }

    fn is_idle(&self) -> bool {
        // With STOP, the poll behind the last packet asks the program to end.
        self.cells.get(ACTIVE) == 0 || (self.is_at_limit() && !self.stop)
    }
}

/// Notes the replies; all packets end here.
#[derive(Clone)]
struct Replies {
    identifier: u16,
    sent: Sent,
    cells: Arc<Cells>,
}

impl Replies {
    /// The sequence number of a packet that is a reply to a request of this element.
    fn sequence(&self, packet: &Packet<'_>) -> Option<u16> {
        let ip = Ip::of(&packet.view())?;
        let header = ip.bytes(packet.bytes());
        let from_to = [src(header), dst(header)].map(u64::from);
        let is_ours = protocol(header) == ICMP
            && is_first(header)
            && from_to == [self.cells.get(DST), self.cells.get(SRC)];
        let end = ip.at + ip.total;
        let echo = packet.bytes().get(ip.at + ip.header..end)?;
        let is_reply = echo.len() >= ECHO
            && echo[..2] == [Icmp4Type::ECHO_REPLY.0, 0]
            && u16_at(echo, 4) == self.identifier
            && is_valid(echo);
        (is_ours && is_reply).then(|| u16_at(echo, 6))
    }

    fn note(&self, rtt: u64) {
        let cells = &self.cells;
        let received = cells.get(RECEIVED) + 1;
        let sum = cells.get(SUM).saturating_add(rtt);
        let least = match received {
            1 => rtt,
            _ => rtt.min(cells.get(LEAST)),
        };
        cells.set(RECEIVED, received);
        cells.set(LEAST, least);
        cells.set(MOST, rtt.max(cells.get(MOST)));
        cells.set(SUM, sum);
        cells.set(AVERAGE, sum / received);
    }
}

impl Each for Replies {
    fn packet(&mut self, packet: &mut Packet<'_>, now_ns: u64) -> Verdict {
        if let Some(sequence) = self.sequence(packet) {
            match self.sent.take(sequence) {
                0 => self.cells.add(REPEATED, 1),
                at => self.note(now_ns.saturating_sub(at - 1) / 1000),
            }
        }
        Verdict::port(0)
    }
}

/// The report of the element of these cells.
fn summary(cells: &Cells) -> String {
    let (sent, received) = (cells.get(COUNT), cells.get(RECEIVED));
    let lost = sent.saturating_sub(received);
    let share = match sent {
        0 => 0.0,
        _ => lost as f64 * 100.0 / sent as f64,
    };
    let mut text = format!(
        "{sent} requests sent, {received} answered, {} repeated answers, {share:.1} % lost\n",
        cells.get(REPEATED)
    );
    if received > 0 {
        let [least, average, most] = [LEAST, AVERAGE, MOST].map(|cell| time(cells.get(cell)));
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "round-trip time {least} s minimum, {average} s average, {most} s maximum"
        );
    }
    text
}

const ARGUMENTS: &[Argument] = &[
    argument(Required, "SRC", Kind::Address, "source address"),
    argument(Required, "DST", Kind::Address, "destination address"),
    argument(
        Keyword,
        "INTERVAL",
        Kind::Time,
        "time between two requests, 1 s by default",
    ),
    argument(
        Keyword,
        "IDENTIFIER",
        Kind::Number(0, 0xffff),
        "identifier of the requests, 0 by default",
    ),
    argument(
        Keyword,
        "LIMIT",
        Kind::Integer,
        "number of requests; none or a negative number for no limit",
    ),
    argument(
        Keyword,
        "DATA",
        Kind::Bytes,
        "data of each request, none by default",
    ),
    argument(
        Keyword,
        "ACTIVE",
        Kind::Bool,
        "whether requests are sent, true by default",
    ),
    argument(
        Keyword,
        "VERBOSE",
        Kind::Bool,
        "accepted and ignored: handlers have the figures of the replies",
    ),
    ENDS,
];

const HANDLERS: &[Handler] = &[
    reads("count", COUNT as u8, "requests sent"),
    handler(
        "summary",
        HandlerKind::Report(SUM as u8 + 1, summary),
        "a report of requests, replies and round-trip times",
    ),
    rtt("rtt_min", LEAST, "shortest round-trip time"),
    rtt("rtt_avg", AVERAGE, "average round-trip time"),
    rtt("rtt_max", MOST, "longest round-trip time"),
    change("active", ACTIVE, Format::Bool, "whether requests are sent"),
    change("limit", LIMIT, Format::Integer, "number of requests"),
    change("interval", INTERVAL, Format::Seconds, "time between two"),
    change("src", SRC, Format::Address, "source address"),
    change("dst", DST, Format::Address, "destination address"),
    handler(
        "reset_counts",
        HandlerKind::Reset(0, SUM as u8 + 1),
        "sets the numbers and times to 0",
    ),
];

const fn rtt(name: &'static str, cell: usize, text: &'static str) -> Handler {
    handler(name, HandlerKind::Read(cell as u8, Format::Seconds), text)
}

const fn change(name: &'static str, cell: usize, format: Format, text: &'static str) -> Handler {
    handler(name, HandlerKind::ReadWrite(cell as u8, format), text)
}

pub(super) const SOURCE: Spec = Spec {
    name: "ICMPPingSource",
    ports: "0-1/1",
    modes: "h/h",
    arguments: ARGUMENTS,
    handlers: HANDLERS,
    text: "Sends ICMP echo requests, the first one at once, with the destination noted. Replies that arrive at the input are counted and timed, and all packets end there.",
    make: |arguments, context| {
        let cells = context.cells.clone();
        let data: Arc<[u8]> = arguments.bytes("DATA").unwrap_or_default().into();
        if data.len() > LONGEST {
            return Err(format!(
                "DATA of ICMPPingSource has {} bytes: give at most {LONGEST}",
                data.len()
            ));
        }
        let interval = arguments.fraction("INTERVAL").unwrap_or(1.0);
        cells.set(INTERVAL, (interval * 1e6).round() as u64);
        let active = arguments.flag("ACTIVE").unwrap_or(true);
        cells.set(ACTIVE, u64::from(active));
        cells.set(LIMIT, arguments.integer("LIMIT").unwrap_or(-1) as u64);
        for (name, cell) in [("SRC", SRC), ("DST", DST)] {
            cells.set(cell, arguments.address(name).unwrap_or(0).into());
        }
        let identifier = arguments.number("IDENTIFIER").unwrap_or(0) as u16;
        let sent = Sent::default();
        let stop = stops(arguments);
        let replies = Replies {
            identifier,
            sent: sent.clone(),
            cells: cells.clone(),
        };
        let requests = Requests {
            bytes: Vec::with_capacity(Ip4Header::LEN + ECHO + data.len()),
            data,
            identifier,
            sequence: 0,
            sent,
            next_ns: None,
            now_ns: 0,
            stop,
            cells,
        };
        Ok(Made {
            stop_cell: stop.then_some(STOP),
            ..Made::new(Element::Echo {
                source: Box::new(move || Box::new(requests.clone())),
                replies: Box::new(move || Box::new(replies.clone())),
            })
        })
    },
};
