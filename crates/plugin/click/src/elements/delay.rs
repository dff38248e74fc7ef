//! Readers of queues that delay packets: DelayUnqueue and LinkUnqueue.

use crate::element::{Element, Made, Pass};
use crate::link::{BANDWIDTH, LATENCY, Link, RESETS};
use crate::pace::Pace;
use crate::spec::Need::Required;
use crate::spec::{Format, HandlerKind, Kind, Spec, argument, handler, reads};
use std::sync::Arc;

pub(super) const DELAY: Spec = Spec {
    name: "DelayUnqueue",
    ports: "1/1",
    modes: "l/h",
    arguments: &[argument(
        Required,
        "DELAY",
        Kind::Time,
        "time between the arrival at the queue and the departure",
    )],
    handlers: &[handler(
        "delay",
        HandlerKind::ReadWrite(0, Format::Seconds),
        "the time",
    )],
    text: "Takes each packet from a queue when it has waited for this time at least, and pushes it.",
    make: |arguments, context| {
        let delay = arguments.fraction("DELAY").unwrap_or(0.0);
        context.cells.set(0, (delay * 1e6).round() as u64);
        Ok(Made {
            pace: Some(Pace::Delay(context.cells.clone())),
            ..Made::each(Pass)
        })
    },
};

pub(super) const LINK: Spec = Spec {
    name: "LinkUnqueue",
    ports: "1/1",
    modes: "l/h",
    arguments: &[
        argument(Required, "LATENCY", Kind::Time, "latency of the link"),
        argument(
            Required,
            "BANDWIDTH",
            Kind::Bandwidth,
            "bytes a second, or bits with a unit such as kbps; 0 for no limit",
        ),
    ],
    handlers: &[
        reads("size", 0, "packets on the link"),
        handler(
            "latency",
            HandlerKind::Read(LATENCY as u8, Format::Seconds),
            "latency of the link",
        ),
        reads("bandwidth", BANDWIDTH as u8, "bytes a second"),
        handler(
            "reset",
            HandlerKind::Trigger(RESETS as u8),
            "drops the packets on the link",
        ),
    ],
    text: "Takes packets from a queue as a serial link does, and pushes each when its last bit has arrived at the other end. At most 65,536 packets are on the link.",
    make: |arguments, context| {
        let latency = arguments.fraction("LATENCY").unwrap_or(0.0);
        let bandwidth = arguments.fraction("BANDWIDTH").unwrap_or(0.0);
        context.cells.set(LATENCY, (latency * 1e6).round() as u64);
        context.cells.set(BANDWIDTH, bandwidth as u64);
        let link = Arc::new(Link::new(latency, bandwidth, context.cells.clone()));
        Ok(Made {
            pace: Some(Pace::Link(link.clone())),
            ..Made::new(Element::Link(link))
        })
    },
};
