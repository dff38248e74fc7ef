//! Ethernet headers, VLAN tags, and bytes at a place.

use crate::columns::{self, BROADCAST, MULTICAST, OTHER, TYPE};
use crate::element::{Each, Fast, Made, Reason, Verdict};
use crate::fast::ETHERNET;
use crate::packet::{put, strip, u16_at};
use crate::spec::Need::{Keyword, Optional, Required};
use crate::spec::{Argument, Kind, Spec, argument};
use std::sync::Arc;
use volley_graph::Packet;
use volley_wire::ethertype;

#[derive(Clone)]
struct Strip(usize);

impl Each for Strip {
    fn fast(&self) -> Fast {
        Fast::Strip(self.0 as u32)
    }

    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        match strip(packet, self.0) {
            true => Verdict::port(0),
            false => Verdict::drop(Reason::TooShort),
        }
    }
}

#[derive(Clone)]
struct Unstrip(usize);

impl Each for Unstrip {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        match packet.retreat(self.0) {
            true => Verdict::port(0),
            false => Verdict::drop(Reason::NoRoom),
        }
    }
}

/// Puts bytes in front of packets.
#[derive(Clone)]
struct Encap(Arc<[u8]>);

impl Each for Encap {
    fn fast(&self) -> Fast {
        let header = <[u8; ETHERNET]>::try_from(&self.0[..]);
        header.map_or(Fast::None, Fast::Prepend)
    }

    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        if !packet.retreat(self.0.len()) {
            return Verdict::drop(Reason::NoRoom);
        }
        put(packet.bytes_mut(), 0, &self.0);
        Verdict::port(0)
    }
}

#[derive(Clone)]
struct Mirror;

impl Each for Mirror {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let Some(both) = packet.bytes_mut().first_chunk_mut::<12>() else {
            return Verdict::drop(Reason::TooShort);
        };
        both.rotate_left(6);
        Verdict::port(0)
    }
}

/// Writes bytes at a place; a mask selects bits.
#[derive(Clone)]
struct Store {
    at: usize,
    data: Arc<[u8]>,
    mask: Arc<[u8]>,
}

impl Each for Store {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let Some(place) = packet
            .bytes_mut()
            .get_mut(self.at..self.at + self.data.len())
        else {
            return Verdict::drop(Reason::TooShort);
        };
        for (i, (byte, new)) in place.iter_mut().zip(self.data.iter()).enumerate() {
            let mask = self.mask.get(i).copied().unwrap_or(0xff);
            *byte = *byte & !mask | new & mask;
        }
        Verdict::port(0)
    }
}

/// Inserts a tag behind the addresses.
#[derive(Clone)]
struct VlanEncap {
    ethertype: u16,
    tci: u16,
}

impl Each for VlanEncap {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let Some(addresses) = packet.bytes().first_chunk::<12>().copied() else {
            return Verdict::drop(Reason::TooShort);
        };
        if !packet.retreat(4) {
            return Verdict::drop(Reason::NoRoom);
        }
        let bytes = packet.bytes_mut();
        put(bytes, 0, &addresses);
        put(bytes, 12, &self.ethertype.to_be_bytes());
        put(bytes, 14, &self.tci.to_be_bytes());
        Verdict::port(0)
    }
}

/// Removes a tag if there is one.
#[derive(Clone)]
struct VlanDecap;

impl Each for VlanDecap {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let bytes = packet.bytes();
        if bytes.len() < 18 || u16_at(bytes, 12) != ethertype::VLAN {
            return Verdict::port(0);
        }
        let mut addresses = [0; 12];
        addresses.copy_from_slice(&bytes[..12]);
        packet.advance(4);
        put(packet.bytes_mut(), 0, &addresses);
        Verdict::port(0)
    }
}

/// Passes frames for a station or a group.
#[derive(Clone)]
struct HostFilter {
    mac: [u8; 6],
    drop_own: bool,
    drop_other: bool,
}

impl Each for HostFilter {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let Some(head) = packet.bytes().first_chunk::<12>().copied() else {
            return Verdict::drop(Reason::TooShort);
        };
        let (dst, src) = (&head[..6], &head[6..]);
        let kind = match dst {
            [255, 255, 255, 255, 255, 255] => BROADCAST,
            [first, ..] if first & 1 == 1 => MULTICAST,
            _ if dst == self.mac => 0,
            _ => OTHER,
        };
        columns::set_note(packet, TYPE, kind);
        let refuse = (self.drop_own && src == self.mac) || (self.drop_other && kind == OTHER);
        match refuse {
            true => Verdict::port_or(1, Reason::Refused),
            false => Verdict::port(0),
        }
    }
}

#[derive(Clone)]
struct DropBroadcasts;

impl Each for DropBroadcasts {
    fn fast(&self) -> Fast {
        Fast::NoBits(TYPE)
    }

    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        match columns::note(packet) & TYPE {
            BROADCAST | MULTICAST => Verdict::drop(Reason::Refused),
            _ => Verdict::port(0),
        }
    }
}

const BYTES: &[Argument] = &[argument(
    Required,
    "LENGTH",
    Kind::Number(0, 2048),
    "number of bytes",
)];

const ETHER_ENCAP: &[Argument] = &[
    argument(
        Required,
        "ETHERTYPE",
        Kind::Number(0, 0xffff),
        "type of the payload, such as 0x0800",
    ),
    argument(Required, "SRC", Kind::Ethernet, "source address"),
    argument(Required, "DST", Kind::Ethernet, "destination address"),
];

const VLAN: &[Argument] = &[
    argument(
        Optional,
        "VLAN_TCI",
        Kind::Number(0, 0xffff),
        "the tag: priority and VLAN",
    ),
    argument(Optional, "VLAN_PCP", Kind::Number(0, 7), "priority"),
    argument(
        Keyword,
        "VLAN_ID",
        Kind::Number(0, 4095),
        "the VLAN, in place of the tag",
    ),
    argument(
        Keyword,
        "ETHERTYPE",
        Kind::Number(0, 0xffff),
        "type of the tag, 0x8100 by default",
    ),
];

const STRIP: Spec = Spec {
    name: "Strip",
    ports: "1/1",
    modes: "a/a",
    arguments: BYTES,
    handlers: &[],
    text: "Removes bytes from the front of packets.",
    make: |arguments, _| {
        Ok(Made::each(Strip(
            arguments.number("LENGTH").unwrap_or(0) as usize
        )))
    },
};

pub(super) const SPECS: &[Spec] = &[
    STRIP,
    Spec {
        name: "Unstrip",
        text: "Adds bytes in front of packets: those that Strip removed.",
        make: |arguments, _| {
            Ok(Made::each(Unstrip(
                arguments.number("LENGTH").unwrap_or(0) as usize
            )))
        },
        ..STRIP
    },
    Spec {
        name: "EtherEncap",
        arguments: ETHER_ENCAP,
        text: "Puts an Ethernet header in front of packets.",
        make: |arguments, _| {
            let ethertype = arguments.number("ETHERTYPE").unwrap_or(0) as u16;
            let (src, dst) = (arguments.ethernet("SRC"), arguments.ethernet("DST"));
            let (src, dst) = (src.unwrap_or_default(), dst.unwrap_or_default());
            let header = [&dst[..], &src[..], &ethertype.to_be_bytes()].concat();
            Ok(Made::each(Encap(header.into())))
        },
        ..STRIP
    },
    Spec {
        name: "EtherMirror",
        arguments: &[],
        text: "Exchanges the addresses of the Ethernet header.",
        make: |_, _| Ok(Made::each(Mirror)),
        ..STRIP
    },
    Spec {
        name: "EtherRewrite",
        arguments: &[
            argument(Required, "SRC", Kind::Ethernet, "source address"),
            argument(Required, "DST", Kind::Ethernet, "destination address"),
        ],
        text: "Sets the addresses of the Ethernet header.",
        make: |arguments, _| {
            let (src, dst) = (arguments.ethernet("SRC"), arguments.ethernet("DST"));
            let data = [dst.unwrap_or_default(), src.unwrap_or_default()].concat();
            Ok(Made::each(Store {
                at: 0,
                data: data.into(),
                mask: Arc::default(),
            }))
        },
        ..STRIP
    },
    Spec {
        name: "StoreData",
        arguments: &[
            argument(
                Required,
                "OFFSET",
                Kind::Number(0, 2047),
                "place of the first byte",
            ),
            argument(Required, "DATA", Kind::Bytes, "the bytes"),
            argument(
                Optional,
                "MASK",
                Kind::Bytes,
                "the bits of the bytes that are set, all by default",
            ),
        ],
        text: "Writes bytes at a place of packets.",
        make: |arguments, _| {
            Ok(Made::each(Store {
                at: arguments.number("OFFSET").unwrap_or(0) as usize,
                data: arguments.bytes("DATA").unwrap_or_default().into(),
                mask: arguments.bytes("MASK").unwrap_or_default().into(),
            }))
        },
        ..STRIP
    },
    Spec {
        name: "VLANEncap",
        arguments: VLAN,
        text: "Inserts a VLAN tag behind the Ethernet addresses.",
        make: |arguments, _| {
            let tci = arguments.number("VLAN_TCI").or(arguments.number("VLAN_ID"));
            let tci =
                tci.ok_or("VLANEncap needs the argument VLAN_TCI or VLAN_ID: give a number")?;
            let pcp = arguments.number("VLAN_PCP").unwrap_or(0);
            Ok(Made::each(VlanEncap {
                ethertype: arguments
                    .number("ETHERTYPE")
                    .unwrap_or(u64::from(ethertype::VLAN)) as u16,
                tci: (tci | pcp << 13) as u16,
            }))
        },
        ..STRIP
    },
    Spec {
        name: "VLANDecap",
        arguments: &[argument(
            Optional,
            "ANNO",
            Kind::Bool,
            "accepted and ignored",
        )],
        text: "Removes a VLAN tag; passes other frames.",
        make: |_, _| Ok(Made::each(VlanDecap)),
        ..STRIP
    },
    Spec {
        name: "HostEtherFilter",
        ports: "1/1-2",
        modes: "a/ah",
        arguments: &[
            argument(Required, "ETHER", Kind::Ethernet, "address of this station"),
            argument(
                Optional,
                "DROP_OWN",
                Kind::Bool,
                "whether frames from this station are refused, false by default",
            ),
            argument(
                Optional,
                "DROP_OTHER",
                Kind::Bool,
                "whether frames for others are refused, true by default",
            ),
            argument(Keyword, "OFFSET", Kind::Number(0, 0), "must be 0"),
        ],
        text: "Notes for whom a frame is, and sends frames for other stations to output 1.",
        make: |arguments, _| {
            Ok(Made::each(HostFilter {
                mac: arguments.ethernet("ETHER").unwrap_or_default(),
                drop_own: arguments.flag("DROP_OWN").unwrap_or(false),
                drop_other: arguments.flag("DROP_OTHER").unwrap_or(true),
            }))
        },
        ..STRIP
    },
    Spec {
        name: "DropBroadcasts",
        arguments: &[],
        text: "Drops packets whose frame was for all stations or for a group.",
        make: |_, _| Ok(Made::each(DropBroadcasts)),
        ..STRIP
    },
    super::arp::RESPONDER,
    super::arp::QUERIER,
];
