//! Elements that make packets.

use super::ip::{CHECKSUM, DPORT, SPORT};
use crate::arguments::Arguments;
use crate::cells::Cells;
use crate::element::{Generate, Made};
use crate::pace::{Bucket, from_fixed, to_fixed};
use crate::packet::UDP;
use crate::spec::Need::{Keyword, Optional, Required};
use crate::spec::{
    Argument, Context, Format, Handler, HandlerKind, Kind, Spec, argument, handler, reads,
};
use std::net::Ipv4Addr;
use std::sync::Arc;
use volley_graph::Guard;
use volley_wire::checksum::Sum;
use volley_wire::eth::EthHeader;
use volley_wire::ip4::Ip4Header;
use volley_wire::udp::UdpHeader;
use volley_wire::{EtherType, Header, IntoBytes, IpProto, MacAddr};

/// Cell: packets made.
const COUNT: usize = 1;
/// Cell: the rate, in packets a second.
const RATE: usize = 0;
/// Cell: whether packets are made.
const ACTIVE: usize = 2;
/// Cell: the program is to end.
const STOP: usize = 3;

/// The bytes of a packet without an argument.
const USUAL: &[u8] = b"A packet of a source without data: these are its sixty-four bytes.";

/// When packets are made.
#[derive(Clone)]
enum Timing {
    /// As many as possible.
    Always(usize),
    /// The rate in the cell.
    Rate(Bucket),
    /// One in each interval of this many nanoseconds; when the next one is due.
    Interval(u64, Option<u64>),
}

#[derive(Clone)]
struct Source {
    data: Arc<[u8]>,
    timing: Timing,
    limit: Option<u64>,
    stop: bool,
    cells: Arc<Cells>,
}

impl Source {
    fn left(&self) -> u64 {
        let made = self.cells.get(COUNT);
        self.limit
            .map_or(u64::MAX, |limit| limit.saturating_sub(made))
    }
}

impl Generate for Source {
    fn due(&mut self, now_ns: u64, most: usize, _: Guard<'_>) -> usize {
        if self.cells.get(ACTIVE) == 0 {
            return 0;
        }
        let left = self.left();
        if left == 0 {
            if self.stop {
                self.cells.set(STOP, 1);
            }
            return 0;
        }
        let now = match &mut self.timing {
            Timing::Always(burst) => *burst,
            Timing::Rate(bucket) => {
                let credit = bucket
                    .at(from_fixed(self.cells.get(RATE)), 1.0, now_ns)
                    .max(0.0);
                let whole = (credit as usize).min(most).min(left as usize);
                bucket.take(whole as f64);
                whole
            }
            Timing::Interval(interval, next) => match *next {
                Some(at) if now_ns < at => 0,
                Some(at) => {
                    *next = Some(at.saturating_add(*interval).max(now_ns));
                    1
                }
                None => {
                    *next = Some(now_ns.saturating_add(*interval));
                    0
                }
            },
        };
        now.min(most)
            .min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    fn alike(&self) -> Option<&[u8]> {
        Some(&self.data)
    }

    fn next(&mut self) -> &[u8] {
        &self.data
    }

    fn made(&mut self, count: usize) {
        self.cells.add(COUNT, count as u64);
    }

    fn is_idle(&self) -> bool {
        // With STOP, the poll behind the last packet asks the program to end.
        self.cells.get(ACTIVE) == 0 || (self.left() == 0 && !self.stop)
    }
}

const DATA: Argument = argument(Optional, "DATA", Kind::Bytes, "the bytes of each packet");
const LENGTH: Argument = argument(
    Keyword,
    "LENGTH",
    Kind::Number(0, 9000),
    "length of each packet; the bytes are repeated or cut",
);
const LIMIT: Argument = argument(
    Optional,
    "LIMIT",
    Kind::Integer,
    "number of packets; none or -1 for no limit",
);
const IS_ACTIVE: Argument = argument(
    Optional,
    "ACTIVE",
    Kind::Bool,
    "whether packets are made, true by default",
);
pub(super) const ENDS: Argument = argument(
    Keyword,
    "STOP",
    Kind::Bool,
    "end the program after the last packet, false by default",
);

const HANDLERS: &[Handler] = &[
    reads("count", 1, "packets made"),
    handler(
        "active",
        HandlerKind::ReadWrite(2, Format::Bool),
        "whether packets are made",
    ),
    handler("reset_counts", HandlerKind::Reset(0, 0), "accepted"),
];

const RATED: &[Handler] = &[
    reads("count", 1, "packets made"),
    handler(
        "active",
        HandlerKind::ReadWrite(2, Format::Bool),
        "whether packets are made",
    ),
    handler(
        "rate",
        HandlerKind::ReadWrite(0, Format::Fraction),
        "packets a second",
    ),
];

const FAST_UDP: &[Argument] = &[
    argument(Required, "RATE", Kind::Rate, "packets a second"),
    argument(
        Required,
        "LIMIT",
        Kind::Integer,
        "number of packets; -1 for no limit",
    ),
    argument(
        Required,
        "LENGTH",
        Kind::Number(60, 1514),
        "length of a frame",
    ),
    argument(Required, "SRCETH", Kind::Ethernet, "source MAC address"),
    argument(Required, "SRCIP", Kind::Address, "source address"),
    SPORT,
    argument(
        Required,
        "DSTETH",
        Kind::Ethernet,
        "destination MAC address",
    ),
    argument(Required, "DSTIP", Kind::Address, "destination address"),
    DPORT,
    CHECKSUM,
    argument(
        Optional,
        "INTERVAL",
        Kind::Number(0, u64::MAX),
        "accepted and ignored: rates hold over any time",
    ),
    IS_ACTIVE,
    ENDS,
];

/// The frame of FastUDPSource.
fn udp_frame(arguments: &Arguments) -> Vec<u8> {
    let address = |name| Ipv4Addr::from_bits(arguments.address(name).unwrap_or(0));
    let mac = |name| MacAddr(arguments.ethernet(name).unwrap_or_default());
    let port = |name| arguments.number(name).unwrap_or(0) as u16;
    let length = arguments.number("LENGTH").unwrap_or(60) as usize;
    let total = length - EthHeader::LEN;
    let (payload, data) = (
        total - Ip4Header::LEN,
        total - Ip4Header::LEN - UdpHeader::LEN,
    );
    let ethernet = EthHeader {
        dst: mac("DSTETH"),
        src: mac("SRCETH"),
        ether_type: EtherType::IP4,
    };
    let (src, dst) = (address("SRCIP"), address("DSTIP"));
    let mut ip = Ip4Header::new(src, dst, IpProto(UDP), 250, payload);
    ip.fill_checksum(&[]);
    let mut udp = UdpHeader::new(port("SPORT"), port("DPORT"), data);
    if arguments.flag("CHECKSUM").unwrap_or(true) {
        // The data are zeros.
        let sum = Sum::pseudo4(src, dst, IpProto(UDP), payload as u16);
        let sum = sum.bytes(udp.as_bytes());
        udp.checksum = volley_wire::U16::new(sum.checksum_udp());
    }
    let mut frame = [ethernet.as_bytes(), ip.as_bytes(), udp.as_bytes()].concat();
    frame.resize(length, 0);
    frame
}

/// The value of [`ENDS`].
pub(super) fn stops(arguments: &Arguments) -> bool {
    arguments.flag("STOP").unwrap_or(false)
}

fn limit(arguments: &Arguments) -> Option<u64> {
    let limit = arguments.integer("LIMIT");
    limit.and_then(|it| u64::try_from(it).ok())
}

fn source(arguments: &Arguments, context: &Context<'_>, timing: Timing) -> Made {
    let given = arguments.bytes("DATA").unwrap_or(USUAL);
    let length = arguments.number("LENGTH").map(|it| it as usize);
    let data: Arc<[u8]> = match length {
        Some(length) if !given.is_empty() => given.iter().copied().cycle().take(length).collect(),
        _ => given.into(),
    };
    let active = arguments.flag("ACTIVE").unwrap_or(true);
    context.cells.set(ACTIVE, u64::from(active));
    let stop = stops(arguments);
    Made {
        stop_cell: stop.then_some(STOP),
        ..Made::source(Source {
            data,
            timing,
            limit: limit(arguments),
            stop,
            cells: context.cells.clone(),
        })
    }
}

const INFINITE: Spec = Spec {
    name: "InfiniteSource",
    ports: "0/1",
    modes: "h/h",
    arguments: &[
        DATA,
        LIMIT,
        argument(
            Optional,
            "BURST",
            Kind::Number(1, 256),
            "packets of a round, 32 by default",
        ),
        IS_ACTIVE,
        LENGTH,
        ENDS,
    ],
    handlers: HANDLERS,
    text: "Makes equal packets as fast as it can.",
    make: |arguments, context| {
        let burst = arguments.number("BURST").unwrap_or(32) as usize;
        Ok(source(arguments, context, Timing::Always(burst)))
    },
};

pub(super) const SPECS: &[Spec] = &[
    INFINITE,
    Spec {
        name: "RatedSource",
        arguments: &[
            DATA,
            argument(
                Optional,
                "RATE",
                Kind::Rate,
                "packets a second, 10 by default",
            ),
            LIMIT,
            IS_ACTIVE,
            LENGTH,
            ENDS,
        ],
        handlers: RATED,
        text: "Makes this number of equal packets a second.",
        make: |arguments, context| {
            context
                .cells
                .set(RATE, to_fixed(arguments.fraction("RATE").unwrap_or(10.0)));
            Ok(source(arguments, context, Timing::Rate(Bucket::default())))
        },
        ..INFINITE
    },
    Spec {
        name: "FastUDPSource",
        arguments: FAST_UDP,
        handlers: RATED,
        text: "Makes this number of equal UDP datagrams a second, with Ethernet and IP headers.",
        make: |arguments, context| {
            context
                .cells
                .set(RATE, to_fixed(arguments.fraction("RATE").unwrap_or(0.0)));
            let made = Source {
                data: udp_frame(arguments).into(),
                timing: Timing::Rate(Bucket::default()),
                limit: limit(arguments),
                stop: stops(arguments),
                cells: context.cells.clone(),
            };
            let active = arguments.flag("ACTIVE").unwrap_or(true);
            context.cells.set(ACTIVE, u64::from(active));
            Ok(Made {
                stop_cell: made.stop.then_some(STOP),
                ..Made::source(made)
            })
        },
        ..INFINITE
    },
    Spec {
        name: "TimedSource",
        arguments: &[
            argument(
                Optional,
                "INTERVAL",
                Kind::Time,
                "time between packets, 0.5 s by default",
            ),
            DATA,
            argument(
                Keyword,
                "LIMIT",
                Kind::Integer,
                "number of packets; none or -1 for no limit",
            ),
            argument(
                Keyword,
                "ACTIVE",
                Kind::Bool,
                "whether packets are made, true by default",
            ),
            LENGTH,
            ENDS,
        ],
        handlers: RATED,
        text: "Makes a packet in each interval.",
        make: |arguments, context| {
            let interval = arguments.fraction("INTERVAL").unwrap_or(0.5).max(1e-6);
            let timing = Timing::Interval((interval * 1e9) as u64, None);
            Ok(source(arguments, context, timing))
        },
        ..INFINITE
    },
];
