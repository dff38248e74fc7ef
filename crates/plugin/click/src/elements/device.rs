//! Interfaces of the router.

use crate::element::{Element, Made};
use crate::spec::Need::{Keyword, Optional, Required};
use crate::spec::{Argument, Kind, Spec, argument};

const IGNORED: &str = "accepted and ignored: the interface's own settings hold";

const DEVICE: Argument = argument(
    Required,
    "DEVNAME",
    Kind::Device,
    "name of the interface, or its MAC address",
);

const FROM: &[Argument] = &[
    DEVICE,
    argument(Optional, "PROMISC", Kind::Bool, IGNORED),
    argument(Optional, "SNAPLEN", Kind::Number(0, u64::MAX), IGNORED),
    argument(Keyword, "SNIFFER", Kind::Bool, IGNORED),
    argument(Keyword, "METHOD", Kind::Text, IGNORED),
    argument(Keyword, "BURST", Kind::Number(1, u64::MAX), IGNORED),
    argument(Keyword, "QUEUE", Kind::Number(0, 63), IGNORED),
];

const TO: &[Argument] = &[
    DEVICE,
    argument(Keyword, "BURST", Kind::Number(1, u64::MAX), IGNORED),
    argument(Keyword, "METHOD", Kind::Text, IGNORED),
    argument(Keyword, "QUEUE", Kind::Number(0, 63), IGNORED),
];

const FROM_DEVICE: Spec = Spec {
    name: "FromDevice",
    ports: "0/1",
    modes: "h/h",
    arguments: FROM,
    handlers: &[],
    text: "Frames that an interface receives. The interface then passes no frames to the rest of the router.",
    make: |arguments, context| {
        let name = arguments.text("DEVNAME").unwrap_or_default();
        Ok(Made::new(Element::FromDevice((context.interface)(name)?)))
    },
};

pub(super) const SPECS: &[Spec] = &[
    FROM_DEVICE,
    Spec {
        name: "PollDevice",
        text: "As FromDevice.",
        ..FROM_DEVICE
    },
    Spec {
        name: "ToHost",
        ports: "1/0",
        modes: "h/h",
        arguments: &[
            argument(Optional, "DEVNAME", Kind::Device, IGNORED),
            argument(Keyword, "SNIFFERS", Kind::Bool, "accepted and ignored"),
            argument(Keyword, "TYPE", Kind::Text, "accepted and ignored"),
        ],
        text: "Gives frames of IPv4, IPv6 and ARP to the router, as if their interface had received them without this graph.",
        make: |_, _| Ok(Made::new(Element::ToHost)),
        ..FROM_DEVICE
    },
    Spec {
        name: "ToDevice",
        ports: "1/0",
        modes: "a/a",
        arguments: TO,
        handlers: &[],
        text: "Transmits frames on an interface.",
        make: |arguments, context| {
            let name = arguments.text("DEVNAME").unwrap_or_default();
            Ok(Made::new(Element::ToDevice((context.interface)(name)?)))
        },
    },
];
