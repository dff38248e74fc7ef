//! A plain model of Volley's treatment of a packet, written to `docs/forwarding-rules.md`; it shares no code with the
//! nodes.
//!
//! - True on entry: nothing; a frame may be any bytes.
//! - True on exit: the frame that must leave and its egress interface, or the node and reason that must drop it.
//! - One next hop per route (no load balancing), one receiving interface in L3 mode. Packets that the router itself sends
//!   are not covered; `tests/oracle` models them.
//!
//! The model is slow on purpose: one hash table per prefix length, one packet at a time, checksums computed in full.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::hash::Hash;

/// A next hop: the data that the rewrite needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Destination MAC address.
    pub mac: [u8; 6],
    /// Source MAC address: that of the egress interface.
    pub source: [u8; 6],
    /// Egress interface.
    pub tx: String,
    /// L3 MTU of the egress interface, in bytes.
    pub mtu: usize,
    /// IPv4 address of the egress interface, which the record route option gets.
    pub address: Option<u32>,
}

/// Action of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Forward to the next hop of this rank (modulo the number of next hops).
    Hop(u32),
    /// Drop, for this reason.
    Drop(&'static str),
}

/// Expected treatment of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is sent.
    Sent {
        /// Egress interface.
        tx: String,
        /// The frames: several if the packet is fragmented.
        frames: Vec<Vec<u8>>,
    },
    /// The packet is dropped: `node: reason`.
    Dropped(&'static str),
}

/// An address with prefixes.
pub trait Address: Copy + Eq + Hash {
    /// Number of bits.
    const BITS: u8;
    /// The first `len` bits, the others zero.
    fn masked(self, len: u8) -> Self;
}

impl Address for u32 {
    const BITS: u8 = 32;
    fn masked(self, len: u8) -> u32 {
        self & u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)
    }
}

impl Address for u128 {
    const BITS: u8 = 128;
    fn masked(self, len: u8) -> u128 {
        self & u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
    }
}

/// Routes of one IP version.
#[derive(Debug)]
pub struct Table<A> {
    by_length: Vec<HashMap<A, To>>,
    hops: Vec<Hop>,
}

impl<A: Address> Table<A> {
    /// A table of routes: address, length and rank of the next hop.
    pub fn new(routes: &[(A, u8, u32)], hops: Vec<Hop>) -> Self {
        let by_length = (0..=A::BITS).map(|_| HashMap::new()).collect();
        let mut table = Table { by_length, hops };
        for &(address, length, rank) in routes {
            table.set(address, length, To::Hop(rank));
        }
        table
    }

    /// Add a route, or change it.
    pub fn set(&mut self, address: A, length: u8, to: To) {
        let length = length.min(A::BITS);
        self.by_length[usize::from(length)].insert(address.masked(length), to);
    }

    fn find(&self, address: A) -> Option<To> {
        let longest_first = (0..=A::BITS).rev().zip(self.by_length.iter().rev());
        let mut there = longest_first.filter(|(_, routes)| !routes.is_empty());
        there.find_map(|(length, routes)| routes.get(&address.masked(length)).copied())
    }

    fn hop(&self, address: A, no_route: &'static str) -> Result<&Hop, &'static str> {
        match self.find(address).ok_or(no_route)? {
            To::Drop(reason) => Err(reason),
            To::Hop(rank) => self
                .hops
                .get(rank as usize % self.hops.len().max(1))
                .ok_or(no_route),
        }
    }
}

/// The model.
#[derive(Debug)]
pub struct Reference {
    mac: [u8; 6],
    own: Option<(u32, u8)>,
    own6: Option<(u128, u8)>,
    v4: Table<u32>,
    v6: Table<u128>,
}

impl Reference {
    /// A model whose receiving interface has this MAC address.
    pub fn new(mac: [u8; 6], v4: Table<u32>, v6: Table<u128>) -> Self {
        Reference {
            mac,
            own: None,
            own6: None,
            v4,
            v6,
        }
    }

    /// Give the receiving interface this address and prefix length; it learns no neighbours.
    pub fn with_address(mut self, address: u32, length: u8) -> Self {
        self.own = Some((address, length));
        self
    }

    /// Give the receiving interface this IPv6 address and prefix length.
    pub fn with_address6(mut self, address: u128, length: u8) -> Self {
        self.own6 = Some((address, length));
        self
    }

    /// The frames that must leave, and their interface; `None` if the packet must be dropped.
    pub fn expect(&self, frame: &[u8]) -> Option<(String, Vec<Vec<u8>>)> {
        match self.judge(frame) {
            Verdict::Sent { tx, frames } => Some((tx, frames)),
            Verdict::Dropped(_) => None,
        }
    }

    /// Expected treatment of a frame, drops with their reasons.
    pub fn judge(&self, frame: &[u8]) -> Verdict {
        match self.forward(frame) {
            Ok((hop, frames)) => Verdict::Sent {
                tx: hop.tx.clone(),
                frames,
            },
            Err(reason) => Verdict::Dropped(reason),
        }
    }

    /// Section 14; requests that get a reply are not in this model.
    fn arp(&self, p: &[u8]) -> &'static str {
        if p.len() < 28 {
            return "arp-input: too-short";
        }
        let (operation, sender, target) = (be16(p, 6), be32(p, 14), be32(p, 24));
        let probe = operation == 1 && sender == 0;
        let (own, length) = self.own.unwrap_or_default();
        let ours = self.v4.find(sender) == Some(To::Drop("ip4-local: not modelled"));
        let near = self.v4.find(sender).is_some() && sender.masked(length) == own.masked(length);
        let faults = [
            (p[..6] != [0, 1, 8, 0, 6, 4], "arp-input: bad-format"),
            (!matches!(operation, 1 | 2), "arp-input: bad-operation"),
            (self.own.is_none(), "arp-input: not-enabled"),
            (
                p[8] & 1 == 1 || p[8..14] == [0; 6],
                "arp-input: bad-sender-mac",
            ),
            (
                !probe && matches!(sender >> 24, 0 | 127 | 224..),
                "arp-input: bad-sender-address",
            ),
            (
                !probe && ours && p[8..14] == self.mac,
                "arp-input: own-frame",
            ),
            (!probe && ours, "arp-input: address-conflict"),
            (!probe && !near, "arp-input: sender-elsewhere"),
            (target != own, "arp-input: not-for-us"),
            (operation == 2, "arp-input: static-only"),
        ];
        first(&faults).err().unwrap_or("arp-reply: answered")
    }

    /// Section 15; solicitations that get a reply are not in this model.
    fn nd(&self, frame: &[u8]) -> &'static str {
        let p = &frame[14..];
        if p.len() < 40 || p[0] >> 4 != 6 || p.len() < 40 + usize::from(be16(p, 4)) {
            return "nd-input: malformed";
        }
        let message = &p[40..40 + usize::from(be16(p, 4))];
        let asks = message.first() == Some(&135);
        if p[6] != 58 || !(asks || message.first() == Some(&136)) {
            return "nd-input: not-nd";
        }
        let summed = [&p[8..40], &[0, 0, p[4], p[5], 0, 0, 0, 58], message].concat();
        let faults = [
            (p[7] != 255, "nd-input: bad-hop-limit"),
            (
                message.len() >= 8 && ones_sum(&summed) != 0xffff,
                "nd-input: bad-checksum",
            ),
        ];
        if let Err(fault) = first(&faults) {
            return fault;
        }
        let Some(mac) = nd_mac(p, message, asks) else {
            return "nd-input: bad-message";
        };
        self.nd_sender(frame, asks, mac)
    }

    /// Rules from 15.7 on.
    fn nd_sender(&self, frame: &[u8], asks: bool, mac: Option<[u8; 6]>) -> &'static str {
        let p = &frame[14..];
        let Some((own, length)) = self.own6 else {
            return "nd-input: not-enabled";
        };
        let (source, to, target) = (be128(p, 8), be128(p, 24), be128(p, 48));
        let who = if asks { source } else { target };
        let [a, b, c, d, e, f] = self.mac;
        let id = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
        let mine = [own, 0xfe80 << 112 | u128::from(id)];
        let group = |a: u128| 0xff02 << 112 | 1 << 32 | 0xff00_0000 | a & 0xff_ffff;
        let takes = mine.contains(&to) || mine.map(group).contains(&to) || to == 0xff02 << 112 | 1;
        let ours =
            mine.contains(&who) || self.v6.find(who) == Some(To::Drop("ip6-local: not modelled"));
        let near =
            who >> 118 == 0xfe80 >> 6 || who == 0 || who.masked(length) == own.masked(length);
        let bad_source = source == 1 || source >> 120 == 0xff || source >> 32 == 0xffff;
        let from: &[u8] = mac.as_ref().map_or(&frame[6..12], |mac| mac);
        let faults = [
            (
                mac.is_some_and(|mac| mac[0] & 1 == 1 || mac == [0; 6]),
                "nd-input: bad-sender-mac",
            ),
            (
                bad_source || (!asks && source == 0),
                "nd-input: bad-sender-address",
            ),
            (!takes, "nd-input: not-for-us"),
            (ours && from == self.mac, "nd-input: own-frame"),
            (ours, "nd-input: address-conflict"),
            (!near, "nd-input: sender-elsewhere"),
            (asks && !mine.contains(&target), "nd-input: not-for-us"),
            (!asks, "nd-input: static-only"),
        ];
        first(&faults).err().unwrap_or("nd-reply: answered")
    }

    /// Section 3 of the rules.
    fn forward(&self, frame: &[u8]) -> Result<(&Hop, Vec<Vec<u8>>), &'static str> {
        if frame.len() < 14 {
            return Err("ethernet-input: too-short");
        }
        let group = frame[0] & 1 == 1;
        if !group && frame[..6] != self.mac {
            return Err("ethernet-input: not-my-mac");
        }
        match be16(frame, 12) {
            0x8100 | 0x88a8 if frame.len() >= 18 && be16(frame, 14) & 0xfff == 0 => {
                self.forward_priority(frame)
            }
            0x8100 | 0x88a8 | 0x9100 => Err("ethernet-input: unknown-vlan"),
            0x0806 => Err(self.arp(&frame[14..])),
            0x86dd if frame[..2] == [0x33, 0x33] && self.own6.is_some() => Err(self.nd(frame)),
            0x0800 | 0x86dd if group => Err("ethernet-input: group-mac"),
            0x0800 => self.forward4(frame),
            0x86dd => self.forward6(frame),
            _ => Err("ethernet-input: unknown-ethertype"),
        }
    }

    /// Rules 3.10 to 3.13: behind a priority tag.
    fn forward_priority(&self, frame: &[u8]) -> Result<(&Hop, Vec<Vec<u8>>), &'static str> {
        let is_tag = |at| matches!(be16(frame, at), 0x8100 | 0x88a8 | 0x9100);
        if !is_tag(16) {
            return self.forward(&[&frame[..12], &frame[16..]].concat());
        }
        Err(match frame.len() >= 22 {
            false => "vlan-input: truncated-tag",
            true if is_tag(20) => "vlan-input: too-many-tags",
            true => "vlan-input: unknown-vlan",
        })
    }

    fn forward4(&self, frame: &[u8]) -> Result<(&Hop, Vec<Vec<u8>>), &'static str> {
        let packet = &frame[14..];
        valid4(packet)?;
        let record = options4(&packet[20..4 * usize::from(packet[0] & 15)])?;
        let hop = self.v4.hop(be32(packet, 16), "ip4-lookup: no-route")?;
        let total = usize::from(be16(packet, 2));
        if total > hop.mtu && packet[6] & 0x40 != 0 {
            return Err("ip4-rewrite: frag-needed");
        }
        let mut out = rewritten(frame, 14 + total, hop);
        out[22] -= 1;
        if let (Some(at), Some(address)) = (record, hop.address) {
            record_route(&mut out[34 + at..], address);
        }
        if total > hop.mtu {
            return Ok((hop, cut(&out, hop.mtu)));
        }
        sum_header(&mut out);
        Ok((hop, vec![out]))
    }

    fn forward6(&self, frame: &[u8]) -> Result<(&Hop, Vec<Vec<u8>>), &'static str> {
        let packet = &frame[14..];
        let valid = valid6(packet);
        let link_local = valid == Err("ip6-input: link-local");
        if link_local && packet[6] == 58 && matches!(packet.get(40), Some(134..=136)) {
            return Err(self.nd(frame));
        }
        valid?;
        let payload = usize::from(be16(packet, 4));
        if packet[6] == 0 {
            hop_by_hop(&packet[40..40 + payload])?;
        }
        let hop = self.v6.hop(be128(packet, 24), "ip6-lookup: no-route")?;
        if 40 + payload > hop.mtu {
            return Err("ip6-rewrite: packet-too-big");
        }
        let mut out = rewritten(frame, 14 + 40 + payload, hop);
        out[21] -= 1;
        Ok((hop, vec![out]))
    }
}

/// Compute the checksum of a frame's IPv4 header.
fn sum_header(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let header = 4 * usize::from(frame[14] & 15);
    let checksum = !ones_sum(&frame[14..14 + header]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}

/// Rule 5.5: write the address at the pointer of a record route option with free space.
fn record_route(option: &mut [u8], address: u32) {
    let at = usize::from(option[2]) - 1;
    option[at..at + 4].copy_from_slice(&address.to_be_bytes());
    option[2] += 4;
}

/// Rule 7.2: the fragments of a packet.
fn cut(frame: &[u8], mtu: usize) -> Vec<Vec<u8>> {
    let head = 14 + 4 * usize::from(frame[14] & 15);
    let (body, word, fits) = (&frame[head..], be16(frame, 20), mtu - (head - 14));
    let (mut start, mut fragments) = (0, Vec::new());
    while start < body.len() {
        let rest = body.len() - start;
        let room = if rest <= fits { rest } else { fits & !7 };
        let mut out = [&frame[..head], &body[start..start + room]].concat();
        if start > 0 {
            later_options(&mut out[34..head]);
        }
        let more = if room < rest { 0x2000 } else { word & 0x2000 };
        let offset = ((word & 0x1fff) + (start / 8) as u16) & 0x1fff;
        let total = (out.len() - 14) as u16;
        out[16..18].copy_from_slice(&total.to_be_bytes());
        out[20..22].copy_from_slice(&(word & 0xc000 | more | offset).to_be_bytes());
        sum_header(&mut out);
        fragments.push(out);
        start += room;
    }
    fragments
}

/// Options of fragments after the first: those without the copied flag become no-operations.
fn later_options(options: &mut [u8]) {
    let mut at = 0;
    while let Some(&kind) = options.get(at).filter(|kind| **kind != 0) {
        let length = if kind == 1 {
            1
        } else {
            usize::from(options[at + 1])
        };
        if kind & 0x80 == 0 {
            options[at..at + length].fill(1);
        }
        at += length;
    }
}

/// The frame, trimmed to its packet, with the next hop's addresses.
fn rewritten(frame: &[u8], length: usize, hop: &Hop) -> Vec<u8> {
    let mut out = frame[..length].to_vec();
    out[..6].copy_from_slice(&hop.mac);
    out[6..12].copy_from_slice(&hop.source);
    out
}

/// Rules 15.5 and 15.6: the MAC address in a message, if any; outer `None` if the message is invalid.
fn nd_mac(p: &[u8], message: &[u8], asks: bool) -> Option<Option<[u8; 6]>> {
    let mut rest = message.get(24..)?;
    let mut mac = None;
    while !rest.is_empty() {
        let length = 8 * usize::from(*rest.get(1)?);
        let option = rest.get(..length).filter(|o| !o.is_empty())?;
        if option[0] == if asks { 1 } else { 2 } && length == 8 && mac.is_none() {
            mac = option[2..].try_into().ok();
        }
        rest = &rest[length..];
    }
    let (source, to, target) = (be128(p, 8), be128(p, 24), be128(p, 48));
    let group = 0xff02 << 112 | 1 << 32 | 0xff00_0000 | target & 0xff_ffff;
    let nobody = asks && source == 0 && (to != group || mac.is_some());
    let to_all = !asks && to >> 120 == 0xff && message[4] & 0x40 != 0;
    let sound = message[1] == 0 && target >> 120 != 0xff && !nobody && !to_all;
    sound.then_some(mac)
}

/// Section 4.
fn valid4(p: &[u8]) -> Result<(), &'static str> {
    if p.len() < 20 {
        return Err("ip4-input: too-short");
    }
    let (header, total) = (4 * usize::from(p[0] & 15), usize::from(be16(p, 2)));
    let (source, destination) = (be32(p, 12), be32(p, 16));
    let link_local = |a: u32| a.masked(16) == 0xa9fe_0000;
    let faults = [
        (p[0] >> 4 != 4, "ip4-input: bad-version"),
        (header < 20, "ip4-input: bad-header-length"),
        (total < header, "ip4-input: bad-total-length"),
        (total > p.len(), "ip4-input: truncated"),
        (
            p.get(..header).is_some_and(|h| ones_sum(h) != 0xffff),
            "ip4-input: bad-checksum",
        ),
        (
            destination.masked(4) == 0xe000_0000,
            "ip4-input: multicast-destination",
        ),
        (destination == u32::MAX, "ip4-input: broadcast-destination"),
        (
            matches!(destination >> 24, 0 | 127 | 240..),
            "ip4-input: martian-destination",
        ),
        (
            link_local(source) || link_local(destination),
            "ip4-input: link-local",
        ),
        (p[8] <= 1, "ip4-input: ttl-expired"),
        (
            matches!(source >> 24, 0 | 127 | 224..),
            "ip4-input: martian-source",
        ),
    ];
    first(&faults)
}

/// Section 5: offset of a record route option with free space. The value of a timestamp depends on the clock and is not
/// in this model.
fn options4(options: &[u8]) -> Result<Option<usize>, &'static str> {
    let (mut rest, mut record, mut seen) = (options, None, [false; 2]);
    while let Some(&kind) = rest.first() {
        let length = match kind {
            0 => break,
            1 => 1,
            _ => rest.get(1).map_or(0, |l| usize::from(*l)),
        };
        if length == 0 || (kind > 1 && length < 2) || length > rest.len() {
            return Err("ip4-options: bad-options");
        }
        if matches!(kind, 131 | 137) {
            return Err("ip4-options: source-route");
        }
        if matches!(kind, RECORD_ROUTE | TIMESTAMP) {
            let before = &mut seen[usize::from(kind == TIMESTAMP)];
            let room = room(&rest[..length]).filter(|_| !*before);
            *before = true;
            match room.ok_or("ip4-options: bad-options")? {
                true if kind == RECORD_ROUTE => record = Some(options.len() - rest.len()),
                _ => {}
            }
        }
        rest = &rest[length..];
    }
    Ok(record)
}

const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;

/// Rules 5.3 and 5.4: whether a record route or timestamp option has space for one more entry; `None` if it is invalid.
fn room(option: &[u8]) -> Option<bool> {
    let stamp = option[0] == TIMESTAMP;
    let fixed = if stamp { 4 } else { 3 };
    if option.len() < fixed || usize::from(option[2]) <= fixed {
        return None;
    }
    let left = (option.len() + 1).saturating_sub(option[2].into());
    let entry = if stamp && matches!(option[3] & 15, 1 | 3) {
        8
    } else {
        4
    };
    match left {
        0 if stamp && option[3] >> 4 == 15 => None,
        0 => Some(false),
        left => (left >= entry).then_some(true),
    }
}

/// Whether a frame is IPv4 with a timestamp option: the router's entry depends on the clock.
pub fn has_timestamp(frame: &[u8]) -> bool {
    let packet = frame.get(14..).unwrap_or(&[]);
    let header = packet.first().map_or(0, |b| 4 * usize::from(b & 15));
    let mut rest = packet.get(20..header).unwrap_or(&[]);
    while let Some(&kind) = rest.first().filter(|kind| **kind != 0) {
        let length = match kind {
            1 => 1,
            TIMESTAMP => return be16(frame, 12) == 0x0800,
            _ => rest.get(1).map_or(0, |l| usize::from(*l)),
        };
        match rest.get(length..).filter(|_| length > 0) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    false
}

/// Section 10.
fn valid6(p: &[u8]) -> Result<(), &'static str> {
    if p.len() < 40 {
        return Err("ip6-input: too-short");
    }
    let (source, destination) = (be128(p, 8), be128(p, 24));
    let link_local = |a: u128| a >> 118 == 0xfe80 >> 6;
    let group = |a: u128| a >> 120 == 0xff;
    let faults = [
        (p[0] >> 4 != 6, "ip6-input: bad-version"),
        (
            40 + usize::from(be16(p, 4)) > p.len(),
            "ip6-input: truncated",
        ),
        (group(destination), "ip6-input: multicast-destination"),
        (destination <= 1, "ip6-input: martian-destination"),
        (
            link_local(source) || link_local(destination),
            "ip6-input: link-local",
        ),
        (p[7] <= 1, "ip6-input: hop-limit-exceeded"),
        (
            source <= 1 || group(source) || source >> 32 == 0xffff,
            "ip6-input: martian-source",
        ),
    ];
    first(&faults)
}

/// Section 11; `p` is the data after the fixed header, up to the payload length.
fn hop_by_hop(p: &[u8]) -> Result<(), &'static str> {
    const BAD: &str = "ip6-hop-by-hop: bad-hop-by-hop";
    if p.is_empty() {
        return Err("ip6-hop-by-hop: jumbogram");
    }
    let length = 8 * (p.get(1).map_or(0, |l| usize::from(*l)) + 1);
    if p.len() < 8 || length > p.len() || p[0] == 0 {
        return Err(BAD);
    }
    let mut rest = &p[2..length];
    while let Some(&kind) = rest.first() {
        if kind == 0 {
            rest = &rest[1..];
            continue;
        }
        let end = rest.get(1).map(|l| 2 + usize::from(*l));
        match end.filter(|e| *e <= rest.len()) {
            None => return Err(BAD),
            Some(_) if kind == 0xc2 => return Err(BAD),
            Some(_) if !matches!(kind, 1 | 5) && kind >> 6 != 0 => {
                return Err("ip6-hop-by-hop: unknown-option");
            }
            Some(end) => rest = &rest[end..],
        }
    }
    Ok(())
}

/// The first fault that applies.
fn first(faults: &[(bool, &'static str)]) -> Result<(), &'static str> {
    faults
        .iter()
        .find(|(there, _)| *there)
        .map_or(Ok(()), |(_, reason)| Err(*reason))
}

/// One's complement sum of the 16-bit words.
fn ones_sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from(be16(bytes, at)) << 16 | u32::from(be16(bytes, at + 2))
}

fn be128(bytes: &[u8], at: usize) -> u128 {
    (0..4).fold(0, |sum, word| {
        sum << 32 | u128::from(be32(bytes, at + 4 * word))
    })
}

#[cfg(test)]
mod tests;
