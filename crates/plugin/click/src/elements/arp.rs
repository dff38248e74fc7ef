//! ARPResponder and ARPQuerier.

use super::ethernet::ETHERNET;
use crate::arguments::{Arguments, ethernet, mask, plain_words, prefix};
use crate::cells::Cells;
use crate::columns;
use crate::element::{Build, Each, Emit, Made, PacketAction, Reason, Verdict};
use crate::packet::{put, u16_at, u32_at};
use crate::spec::Need::{Keyword, Required, Rest};
use crate::spec::{Context, Handler, Kind, Spec, argument, reads};
use std::collections::HashMap;
use std::sync::Arc;
use volley_graph::Packet;
use volley_wire::{MacAddr, ethertype};

/// Length of an ARP packet for Ethernet and IPv4.
const ARP: usize = 28;
/// Ethernet, IPv4, and the lengths of their addresses.
const FORMAT: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: u16 = 1;
const REPLY: u16 = 2;
/// The shortest frame without its check sequence.
const SHORTEST: usize = 60;

/// Whether bytes are a frame with an ARP packet for Ethernet and IPv4.
fn is_arp(bytes: &[u8]) -> bool {
    bytes.len() >= ETHERNET + ARP && u16_at(bytes, 12) == ethertype::ARP && bytes[14..20] == FORMAT
}

/// Addresses for which a station answers.
#[derive(Clone)]
struct Responder {
    entries: Arc<[(u32, u32, [u8; 6])]>,
}

impl Each for Responder {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let bytes = packet.bytes_mut();
        if !is_arp(bytes) || u16_at(bytes, 20) != REQUEST {
            return Verdict::port_or(1, Reason::Unmatched);
        }
        let target = u32_at(bytes, 38);
        let found = self
            .entries
            .iter()
            .find(|(address, mask, _)| target & mask == *address);
        let Some((_, _, mac)) = found else {
            return Verdict::port_or(1, Reason::Unmatched);
        };
        let mut asker = [0; 10];
        asker.copy_from_slice(&bytes[22..32]);
        put(bytes, 0, &asker[..6]);
        put(bytes, 6, mac);
        put(bytes, 20, &REPLY.to_be_bytes());
        put(bytes, 22, mac);
        put(bytes, 28, &target.to_be_bytes());
        put(bytes, 32, &asker);
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
        let mac = ethernet(last).ok_or_else(wrong)?;
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
    Known([u8; 6], u64),
    Asked(u64),
}

struct Querier {
    address: u32,
    mac: [u8; 6],
    timeout_ns: u64,
    stations: HashMap<u32, Station>,
    waiting: Vec<Waiting>,
    spare: Vec<Vec<u8>>,
    cells: Arc<Cells>,
}

impl Querier {
    fn new(address: u32, mac: [u8; 6], timeout_ns: u64, cells: Arc<Cells>) -> Querier {
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
    fn known(&self, next_hop: u32, now_ns: u64) -> Option<[u8; 6]> {
        match self.stations.get(&next_hop)? {
            Station::Known(mac, since) if now_ns.saturating_sub(*since) < self.timeout_ns => {
                Some(*mac)
            }
            _ => None,
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

    /// Keep a copy of a packet until the answer comes.
    fn hold(&mut self, packet: &Packet<'_>, next_hop: u32, now_ns: u64) -> bool {
        while let Some(at) = self
            .waiting
            .iter()
            .position(|it| now_ns.saturating_sub(it.since_ns) > PATIENCE_NS)
        {
            let gone = self.forget(at);
            self.spare.push(gone.bytes);
            self.cells.add(LOST, 1);
        }
        if packet.len() > LONGEST || packet.view().is_chain() {
            return false;
        }
        if self.spare.is_empty() {
            let gone = self.forget(0);
            self.spare.push(gone.bytes);
            self.cells.add(LOST, 1);
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
        let (mac, address) = (self.mac, self.address);
        let mut fill = |bytes: &mut [u8]| {
            bytes.fill(0);
            put(bytes, 0, &[255; 6]);
            put(bytes, 6, &mac);
            put(bytes, 12, &[8, 6]);
            put(bytes, 14, &FORMAT);
            put(bytes, 20, &REQUEST.to_be_bytes());
            put(bytes, 22, &mac);
            put(bytes, 28, &address.to_be_bytes());
            put(bytes, 38, &next_hop.to_be_bytes());
        };
        let shape = (SHORTEST.min(ETHERNET + ARP), ETHERNET);
        if !to.build(packet, 1, shape, &mut fill) {
            to.build(packet, 0, shape, &mut fill);
        }
    }

    /// An answer: the packets that wait for it leave.
    fn answer(&mut self, packet: &mut Packet<'_>, to: &mut dyn Emit, now_ns: u64) -> PacketAction {
        let bytes = packet.bytes();
        if !is_arp(bytes) || u16_at(bytes, 20) != REPLY {
            return PacketAction::Go(Verdict::drop(Reason::Unmatched));
        }
        let sender = u32_at(bytes, 28);
        let mut mac = [0; 6];
        mac.copy_from_slice(&bytes[22..28]);
        if mac[0] & 1 == 1 || mac == [0; 6] {
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
                header(bytes, mac, own);
                put(bytes, ETHERNET, &held.bytes);
            });
            self.spare.push(held.bytes);
        }
        packet.set(columns::DST.col, before[0]);
        packet.set(columns::NOTE.col, before[1]);
        PacketAction::Replaced
    }
}

/// Write an Ethernet header for IPv4.
fn header(bytes: &mut [u8], dst: [u8; 6], src: [u8; 6]) {
    put(bytes, 0, &dst);
    put(bytes, 6, &src);
    put(bytes, 12, &[8, 0]);
}

impl Build for Querier {
    fn packet(&mut self, packet: &mut Packet<'_>, to: &mut dyn Emit, now_ns: u64) -> PacketAction {
        if columns::take_port(packet) == 1 {
            return self.answer(packet, to, now_ns);
        }
        let next_hop = columns::dst(packet);
        let mac = match next_hop {
            0 => return PacketAction::Go(Verdict::drop(Reason::NoRoute)),
            u32::MAX => Some([255; 6]),
            group if group >> 28 == 14 => Some(MacAddr::for_ip4_multicast(group.into()).0),
            host => self.known(host, now_ns),
        };
        let Some(mac) = mac else {
            self.ask(packet, next_hop, to, now_ns);
            return match self.hold(packet, next_hop, now_ns) {
                true => PacketAction::Replaced,
                false => PacketAction::Go(Verdict::drop(Reason::Unresolved)),
            };
        };
        if !packet.retreat(ETHERNET) {
            return PacketAction::Go(Verdict::drop(Reason::NoRoom));
        }
        header(packet.bytes_mut(), mac, self.mac);
        PacketAction::Go(Verdict::port(0))
    }
}

fn querier(arguments: &Arguments, context: &Context<'_>) -> Result<Made, String> {
    let address = arguments.address("IP").unwrap_or(0);
    let mac = arguments.ethernet("ETHER").unwrap_or_default();
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
        Kind::Words,
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
