//! ARPResponder and ARPQuerier.

use crate::arguments::{Arguments, ethernet, mask, plain_words, prefix};
use crate::cells::Cells;
use crate::columns;
use crate::element::{Build, Each, Emit, Fast, Made, PacketAction, Reason, Verdict};
use crate::fast::ETHERNET;
use crate::packet::put;
use crate::spec::Need::{Keyword, Required, Rest};
use crate::spec::{Context, Handler, Kind, Spec, argument, reads};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use volley_graph::Packet;
use volley_wire::arp::{ArpPacket, REPLY, REQUEST};
use volley_wire::eth::EthHeader;
use volley_wire::{EtherType, Header, IntoBytes, MacAddr};

/// The ARP packet of this operation in a frame, for Ethernet and IPv4.
fn arp(bytes: &[u8], operation: u16) -> Option<&ArpPacket> {
    let (header, payload) = EthHeader::split(bytes).ok()?;
    let arp = ArpPacket::parse(payload).ok()?;
    (header.ether_type == EtherType::ARP && arp.operation.get() == operation).then_some(arp)
}

/// Writes a frame with an ARP packet.
fn put_arp(bytes: &mut [u8], to: MacAddr, arp: &ArpPacket) {
    put_header(bytes, to, arp.sender_mac, EtherType::ARP);
    put(bytes, ETHERNET, arp.as_bytes());
}

/// Writes an Ethernet header.
fn put_header(bytes: &mut [u8], dst: MacAddr, src: MacAddr, ether_type: EtherType) {
    let header = EthHeader {
        dst,
        src,
        ether_type,
    };
    put(bytes, 0, header.as_bytes());
}

/// Addresses for which a station answers.
#[derive(Clone)]
struct Responder {
    entries: Arc<[(u32, u32, MacAddr)]>,
}

impl Each for Responder {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let bytes = packet.bytes_mut();
        let Some(request) = arp(bytes, REQUEST) else {
            return Verdict::port_or(1, Reason::Unmatched);
        };
        let target = request.target_ip().to_bits();
        let mut entries = self.entries.iter();
        let found = entries.find(|(address, mask, _)| target & mask == *address);
        let Some((_, _, mac)) = found else {
            return Verdict::port_or(1, Reason::Unmatched);
        };
        let (asker, reply) = (request.sender_mac, request.reply(*mac));
        put_arp(bytes, asker, &reply);
        Verdict::port(0)
    }
}

fn responder(arguments: &Arguments) -> Result<Made, String> {
    let mut entries = Vec::new();
    for text in arguments.rest() {
        let words = plain_words(text);
        let wrong = || {
            format!(
                "'{text}' is no entry of ARPResponder: give addresses and a MAC address, such as 10.0.0.1 02:00:00:00:00:01"
            )
        };
        let (last, addresses) = words.split_last().ok_or_else(wrong)?;
        let mac = MacAddr(ethernet(last).ok_or_else(wrong)?);
        if addresses.is_empty() {
            return Err(wrong());
        }
        for address in addresses {
            let (address, len) = prefix(address).ok_or_else(wrong)?;
            entries.push((address & mask(len), mask(len), mac));
        }
    }
    match entries.is_empty() {
        true => Err("ARPResponder needs an entry: give an address and a MAC address".to_owned()),
        false => {
            // The longest prefix is found first.
            entries.sort_by_key(|(_, mask, _)| std::cmp::Reverse(*mask));
            Ok(Made::each(Responder {
                entries: entries.into(),
            }))
        }
    }
}

/// Packets that wait at most, and their length.
const MOST_WAITING: usize = 64;
const LONGEST: usize = 2048 - ETHERNET;
/// Addresses that are known at most.
const MOST_KNOWN: usize = 4096;
/// A query is repeated after this time.
const REPEAT_NS: u64 = 100_000_000;
/// A packet waits for this time at most.
const PATIENCE_NS: u64 = 3_000_000_000;

/// Cells: see the handlers.
const KNOWN: usize = 0;
const QUERIES: usize = 1;
const LOST: usize = 2;
const ANSWERS: usize = 3;

/// A packet that waits for an answer. Its buffer is used again.
struct Waiting {
    next_hop: u32,
    since_ns: u64,
    columns: [u32; 2],
    net: usize,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Station {
    Known(MacAddr, u64),
    Asked(u64),
}

struct Querier {
    address: Ipv4Addr,
    mac: MacAddr,
    timeout_ns: u64,
    stations: HashMap<u32, Station>,
    waiting: Vec<Waiting>,
    spare: Vec<Vec<u8>>,
    cells: Arc<Cells>,
}

impl Querier {
    fn new(address: Ipv4Addr, mac: MacAddr, timeout_ns: u64, cells: Arc<Cells>) -> Querier {
        Querier {
            address,
            mac,
            timeout_ns,
            // Neither grows while packets flow.
            stations: HashMap::with_capacity(MOST_KNOWN + 1),
            waiting: Vec::with_capacity(MOST_WAITING),
            spare: (0..MOST_WAITING)
                .map(|_| Vec::with_capacity(LONGEST))
                .collect(),
            cells,
        }
    }

    /// The address of the station, if it is known.
    fn known(&self, next_hop: u32, now_ns: u64) -> Option<MacAddr> {
        match self.stations.get(&next_hop)? {
            Station::Known(mac, since) if now_ns.saturating_sub(*since) < self.timeout_ns => {
                Some(*mac)
            }
            _ => None,
        }
    }

    /// The address for packets to a next hop, if it is known.
    fn station(&self, next_hop: u32, now_ns: u64) -> Option<MacAddr> {
        match next_hop {
            0 => None,
            u32::MAX => Some(MacAddr::BROADCAST),
            group if group >> 28 == 14 => Some(MacAddr::for_ip4_multicast(group.into())),
            host => self.known(host, now_ns),
        }
    }

    fn note(&mut self, address: u32, station: Station) {
        if self.stations.len() >= MOST_KNOWN && !self.stations.contains_key(&address) {
            // Stations that never answered make room first.
            let asked = self
                .stations
                .iter()
                .find(|(_, it)| matches!(it, Station::Asked(_)));
            let gone = asked
                .or(self.stations.iter().next())
                .map(|(address, _)| *address);
            if let Some(gone) = gone {
                self.stations.remove(&gone);
            }
        }
        self.stations.insert(address, station);
        self.cells.set(KNOWN, self.stations.len() as u64);
    }

    fn forget(&mut self, at: usize) -> Waiting {
        self.waiting.remove(at)
    }

    /// Drop a packet that waits.
    fn give_up(&mut self, at: usize, to: &mut dyn Emit) {
        let gone = self.forget(at);
        self.spare.push(gone.bytes);
        self.cells.add(LOST, 1);
        to.lose(Reason::Unresolved, 1);
    }

    /// Keep a copy of a packet until the answer comes.
    fn hold(&mut self, packet: &Packet<'_>, next_hop: u32, to: &mut dyn Emit, now_ns: u64) -> bool {
        while let Some(at) = self
            .waiting
            .iter()
            .position(|it| now_ns.saturating_sub(it.since_ns) > PATIENCE_NS)
        {
            self.give_up(at, to);
        }
        if packet.len() > LONGEST || packet.view().is_chain() {
            return false;
        }
        if self.spare.is_empty() {
            self.give_up(0, to);
        }
        let Some(mut bytes) = self.spare.pop() else {
            return false;
        };
        bytes.clear();
        bytes.extend_from_slice(packet.bytes());
        self.waiting.push(Waiting {
            next_hop,
            since_ns: now_ns,
            columns: [columns::dst(packet), columns::note(packet)],
            net: columns::net(&packet.view()).unwrap_or(0),
            bytes,
        });
        true
    }

    fn ask(&mut self, packet: &mut Packet<'_>, next_hop: u32, to: &mut dyn Emit, now_ns: u64) {
        if let Some(Station::Asked(since)) = self.stations.get(&next_hop)
            && now_ns.saturating_sub(*since) < REPEAT_NS
        {
            return;
        }
        self.note(next_hop, Station::Asked(now_ns));
        self.cells.add(QUERIES, 1);
        let query = ArpPacket::request(self.mac, self.address, next_hop.into());
        let mut fill = |bytes: &mut [u8]| put_arp(bytes, MacAddr::BROADCAST, &query);
        let shape = (ETHERNET + ArpPacket::LEN, ETHERNET);
        if !to.build(packet, 1, shape, &mut fill) {
            to.build(packet, 0, shape, &mut fill);
        }
    }

    /// An answer: the packets that wait for it leave.
    fn answer(&mut self, packet: &mut Packet<'_>, to: &mut dyn Emit, now_ns: u64) -> PacketAction {
        let Some(reply) = arp(packet.bytes(), REPLY) else {
            return PacketAction::Go(Verdict::drop(Reason::Unmatched));
        };
        let (sender, mac) = (reply.sender_ip().to_bits(), reply.sender_mac);
        if !mac.is_unicast() {
            return PacketAction::Go(Verdict::drop(Reason::Refused));
        }
        self.cells.add(ANSWERS, 1);
        self.note(sender, Station::Known(mac, now_ns));
        let own = self.mac;
        let before = [columns::dst(packet), columns::note(packet)];
        while let Some(at) = self.waiting.iter().position(|it| it.next_hop == sender) {
            let held = self.forget(at);
            packet.set(columns::DST.col, held.columns[0]);
            packet.set(columns::NOTE.col, held.columns[1]);
            let shape = (ETHERNET + held.bytes.len(), ETHERNET + held.net);
            to.build(packet, 0, shape, &mut |bytes| {
                put_header(bytes, mac, own, EtherType::IP4);
                put(bytes, ETHERNET, &held.bytes);
            });
            self.spare.push(held.bytes);
        }
        packet.set(columns::DST.col, before[0]);
        packet.set(columns::NOTE.col, before[1]);
        PacketAction::Replaced
    }
}

impl Build for Querier {
    fn fast(&self) -> Fast {
        Fast::Resolve
    }

    fn header(&self, next_hop: u32, now_ns: u64) -> Option<[u8; ETHERNET]> {
        let mut header = [0; ETHERNET];
        let mac = self.station(next_hop, now_ns)?;
        put_header(&mut header, mac, self.mac, EtherType::IP4);
        Some(header)
    }

    fn packet(&mut self, packet: &mut Packet<'_>, to: &mut dyn Emit, now_ns: u64) -> PacketAction {
        if columns::take_port(packet) == 1 {
            return self.answer(packet, to, now_ns);
        }
        let next_hop = columns::dst(packet);
        if next_hop == 0 {
            return PacketAction::Go(Verdict::drop(Reason::NoRoute));
        }
        let Some(mac) = self.station(next_hop, now_ns) else {
            self.ask(packet, next_hop, to, now_ns);
            return match self.hold(packet, next_hop, to, now_ns) {
                true => PacketAction::Replaced,
                false => PacketAction::Go(Verdict::drop(Reason::Unresolved)),
            };
        };
        if !packet.retreat(ETHERNET) {
            return PacketAction::Go(Verdict::drop(Reason::NoRoom));
        }
        put_header(packet.bytes_mut(), mac, self.mac, EtherType::IP4);
        PacketAction::Go(Verdict::port(0))
    }
}

fn querier(arguments: &Arguments, context: &Context<'_>) -> Result<Made, String> {
    let address = Ipv4Addr::from_bits(arguments.address("IP").unwrap_or(0));
    let mac = MacAddr(arguments.ethernet("ETHER").unwrap_or_default());
    let timeout_ns = (arguments.fraction("TIMEOUT").unwrap_or(300.0) * 1e9) as u64;
    let cells = context.cells.clone();
    let element = move || {
        let querier = Querier::new(address, mac, timeout_ns, cells.clone());
        Box::new(querier) as Box<dyn Build>
    };
    Ok(Made::new(crate::element::Element::Build(Box::new(element))))
}

const QUERIER_HANDLERS: &[Handler] = &[
    reads("stations", 0, "addresses that are known or requested"),
    reads("queries", 1, "queries that were sent"),
    reads("drops", 2, "packets that waited without result"),
    reads("responses", 3, "answers that came"),
];

pub(super) const RESPONDER: Spec = Spec {
    name: "ARPResponder",
    ports: "1/1-2",
    modes: "a/ah",
    arguments: &[argument(
        Rest,
        "ENTRIES",
        Kind::Stations,
        "addresses or prefixes, and the MAC address with which they are answered",
    )],
    handlers: &[],
    text: "Answers ARP requests for its addresses; other packets go to output 1.",
    make: |arguments, _| responder(arguments),
};

pub(super) const QUERIER: Spec = Spec {
    name: "ARPQuerier",
    ports: "2/1-2",
    modes: "h/h",
    arguments: &[
        argument(Required, "IP", Kind::Address, "own address"),
        argument(Required, "ETHER", Kind::Ethernet, "own MAC address"),
        argument(
            Keyword,
            "TIMEOUT",
            Kind::Time,
            "time for which an answer holds, 300 s by default",
        ),
    ],
    handlers: QUERIER_HANDLERS,
    text: "Puts an Ethernet header in front of packets of IP (input 0) for the next hop, which ARP finds: answers arrive at input 1, queries leave by output 1 or else by output 0.",
    make: querier,
};
