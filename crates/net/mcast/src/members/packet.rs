//! Messages of IGMP (RFC 3376, 4; RFC 2236; RFC 1112) and MLD (RFC 3810, 5; RFC 2710) as bytes, both ways. Nothing here panics,
//! whatever the bytes are.

use super::querier::{OutgoingQuery, Query, RecordType};
use crate::Mcast;
use crate::model::GroupQuerier;
use volley_fib::{V4, V6};
use volley_wire::checksum::Sum;
use volley_wire::ip4::{Ip4Header, option};
use volley_wire::ip6::Ip6Header;
use volley_wire::tlv::Options;
use volley_wire::{IntoBytes, IpProto, MacAddr};

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Header or length do not fit the frame.
    Malformed,
    /// It may go further than this link.
    Hops,
    /// There is no router alert.
    Alert,
    /// The sender's address is none that a message of its kind comes from.
    Sender,
    /// The checksum is wrong.
    Checksum,
    /// Length, group or records are not as they have to be.
    Message,
    /// It came for a group that messages of its kind are not sent to.
    Target,
    /// It is of a type that is not one of group membership.
    Unknown,
}

/// What a message says. Sources and records lie in it as they came, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembershipMessage<'a, A> {
    /// A router asks, about these sources.
    Query(Query<A>, &'a [u8]),
    /// A host of this old version listens to a group.
    OldReport(u8, A),
    /// A host of an old version listens no more.
    Leave(A),
    /// Records.
    Report(&'a [u8]),
}

/// An IP version's messages.
pub trait MembershipProtocol: Mcast {
    /// Name of the node that judges them.
    const INPUT: &'static str;
    /// Name of the node that hears what is for the router as a listener.
    const LISTENER: &'static str;
    /// Bytes of an address.
    const WIDTH: usize;

    /// An address at the front of bytes.
    fn take(bytes: &[u8]) -> Option<Self::Addr>;
    /// Whether hosts' groups of this address may be forwarded to.
    fn may_forward(group: Self::Addr) -> bool;
    /// Source, destination and message of a packet that is right so far; the position is at the IP header.
    fn open(packet: &[u8]) -> Result<Opened<'_, Self::Addr>, Fault>;
    /// What a message says.
    fn parse_message<'a>(
        opened: &Opened<'a, Self::Addr>,
    ) -> Result<MembershipMessage<'a, Self::Addr>, Fault>;
    /// A query as a frame.
    fn query(
        own: ([u8; 6], Self::Addr),
        settings: &GroupQuerier,
        ask: &OutgoingQuery<Self::Addr>,
    ) -> Vec<u8>;
}

/// A packet taken apart.
#[derive(Clone, Debug)]
pub struct Opened<'a, A> {
    /// Its sender.
    pub from: A,
    /// Where it goes.
    pub to: A,
    /// Whether it has a router alert.
    pub alert: bool,
    /// What is in it.
    pub message: &'a [u8],
}

fn be16(bytes: &[u8], at: usize) -> usize {
    bytes
        .get(at..at + 2)
        .map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]])))
}

/// Addresses one after the other.
pub fn addresses<F: MembershipProtocol>(bytes: &[u8]) -> impl Iterator<Item = F::Addr> {
    bytes.chunks_exact(F::WIDTH).filter_map(F::take)
}

/// The records of a report: what kind, of which group, its sources.
pub struct Records<'a>(&'a [u8], usize, usize);

impl<'a> Iterator for Records<'a> {
    type Item = Option<(u8, &'a [u8], &'a [u8])>;

    /// A record; none in it where the bytes end before.
    fn next(&mut self) -> Option<Self::Item> {
        let Records(bytes, left, width) = self;
        *left = left.checked_sub(1)?;
        let width = *width;
        let sources = be16(bytes, 2) * width;
        let aux = usize::from(bytes.get(1).copied().unwrap_or(0)) * 4;
        let (head, end) = (4 + width, 4 + width + sources);
        let (Some(kind), Some(group), Some(list), Some(rest)) = (
            bytes.first(),
            bytes.get(4..head),
            bytes.get(head..end),
            bytes.get(end + aux..),
        ) else {
            *left = 0;
            return Some(None);
        };
        *bytes = rest;
        Some(Some((*kind, group, list)))
    }
}

/// The records of a report from its number of records on.
pub fn records<F: MembershipProtocol>(report: &[u8]) -> Records<'_> {
    Records(report.get(8..).unwrap_or(&[]), be16(report, 6), F::WIDTH)
}

/// What a record says; none for a kind that is unknown, and skipped (RFC 3376, 4.2.12).
pub fn kind(code: u8) -> Option<RecordType> {
    Some(match code {
        1 => RecordType::ModeIsInclude,
        2 => RecordType::ModeIsExclude,
        3 => RecordType::ChangeToInclude,
        4 => RecordType::ChangeToExclude,
        5 => RecordType::AllowNewSources,
        6 => RecordType::BlockOldSources,
        _ => return None,
    })
}

fn report<F: MembershipProtocol>(message: &[u8]) -> Result<MembershipMessage<'_, F::Addr>, Fault> {
    let fine = |it: Option<(u8, &[u8], &[u8])>| it.is_some_and(|(_, it, _)| group::<F>(it).is_ok());
    let all = message.len() >= 8 && records::<F>(message).all(fine);
    all.then_some(MembershipMessage::Report(message))
        .ok_or(Fault::Message)
}

/// A group at the front of bytes.
fn group<F: MembershipProtocol>(bytes: &[u8]) -> Result<F::Addr, Fault> {
    let group = F::take(bytes).filter(|group| F::ip(*group).is_multicast());
    group.ok_or(Fault::Message)
}

/// The tail that queries of the new versions have: flags, interval, sources.
fn query<F: MembershipProtocol>(
    message: &[u8],
    at: usize,
    within_ms: u32,
    about: Option<F::Addr>,
) -> Result<MembershipMessage<'_, F::Addr>, Fault> {
    let mut it = Query {
        group: about,
        within_ms,
        suppress: false,
        robustness: 0,
        interval_s: 0,
    };
    let mut sources = &[][..];
    if let Some(tail) = message.get(at..).filter(|tail| !tail.is_empty()) {
        let end = 4 + be16(tail, 2) * F::WIDTH;
        sources = tail.get(4..end).ok_or(Fault::Message)?;
        it.suppress = tail[0] & 8 != 0;
        it.robustness = tail[0] & 7;
        it.interval_s = float(tail[1].into(), 7);
        if about.is_none() && !sources.is_empty() {
            return Err(Fault::Message);
        }
    }
    Ok(MembershipMessage::Query(it, sources))
}

/// A number as queries write it (RFC 3376, 4.1.1; RFC 3810, 5.1.3): `bits` 7 or 15.
fn float(code: u32, bits: u32) -> u32 {
    if code >> bits == 0 {
        return code;
    }
    let mantissa = bits - 3;
    let exponent = code >> mantissa & 7;
    (code & ((1 << mantissa) - 1) | 1 << mantissa) << (exponent + 3)
}

/// The greatest code for a number that is not greater.
fn code(number: u32, bits: u32) -> u32 {
    if number >> bits == 0 {
        return number;
    }
    let mantissa = bits - 3;
    let exponent = (32 - number.leading_zeros()).saturating_sub(mantissa + 4);
    if exponent > 7 {
        return (1 << (bits + 1)) - 1;
    }
    1 << bits | exponent << mantissa | number >> (exponent + 3) & ((1 << mantissa) - 1)
}

/// Flags, interval, number of sources.
fn tail(settings: &GroupQuerier, suppress: bool, sources: usize) -> [u8; 4] {
    let flags = u8::from(suppress) << 3 | settings.robustness as u8 & 7;
    let interval = code(settings.query_interval, 7) as u8;
    let [a, b] = (sources as u16).to_be_bytes();
    [flags, interval, a, b]
}

/// In how many milliseconds a query wants its answers.
fn within<A>(settings: &GroupQuerier, ask: &OutgoingQuery<A>) -> u32 {
    match ask.group {
        None => settings.max_response,
        Some(_) => settings.last_member_interval,
    }
}

fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk::<N>().copied()
}

impl MembershipProtocol for V4 {
    const INPUT: &'static str = "igmp-input";
    const LISTENER: &'static str = "error-drop";
    const WIDTH: usize = 4;

    fn take(bytes: &[u8]) -> Option<u32> {
        array(bytes).map(u32::from_be_bytes)
    }

    fn may_forward(group: u32) -> bool {
        group >> 28 == 14 && group >> 8 != 0x00e0_0000
    }

    fn open(packet: &[u8]) -> Result<Opened<'_, u32>, Fault> {
        let header = packet.first_chunk::<20>().ok_or(Fault::Malformed)?;
        let (at, end) = (usize::from(header[0] & 15) * 4, be16(header, 2));
        let (options, message) = (packet.get(20..at), packet.get(at..end));
        let (Some(options), Some(message)) = (options, message) else {
            return Err(Fault::Malformed);
        };
        let fragment = be16(header, 6) & 0x3fff != 0;
        if header[0] >> 4 != 4 || fragment || !Sum::new().bytes(&packet[..at]).is_valid() {
            return Err(Fault::Malformed);
        }
        if header[8] != 1 {
            return Err(Fault::Hops);
        }
        if !Sum::new().bytes(message).is_valid() {
            return Err(Fault::Checksum);
        }
        let word = |at: usize| V4::take(&header[at..]).ok_or(Fault::Malformed);
        let from = word(12)?;
        if from >> 28 >= 14 || from >> 24 == 127 {
            return Err(Fault::Sender);
        }
        Ok(Opened {
            from,
            to: word(16)?,
            // RFC 2113.
            alert: Options::classic(options, "IPv4 option").has(148, &[0, 0]),
            message,
        })
    }

    fn parse_message<'a>(opened: &Opened<'a, u32>) -> Result<MembershipMessage<'a, u32>, Fault> {
        let message = opened.message;
        let head = message.first_chunk::<8>().ok_or(Fault::Message)?;
        let address = V4::take(&head[4..]).filter(|a| *a != 0);
        // Version 1 knows no alert (RFC 1112), neither does its query.
        let old = head[0] == 0x12 || head[0] == 0x11 && head[1] == 0;
        if !opened.alert && !old {
            return Err(Fault::Alert);
        }
        match head[0] {
            0x11 => {
                let about = address.map(|_| group::<V4>(&head[4..])).transpose()?;
                // A switch that stands in for a router asks by no address: it is no router (RFC 4541, 2.1.1).
                if opened.from == 0 {
                    return Err(Fault::Sender);
                }
                if (9..12).contains(&message.len()) {
                    return Err(Fault::Message);
                }
                if about.is_none() && opened.to != 0xe000_0001 {
                    return Err(Fault::Target);
                }
                let within = match (message.len(), head[1]) {
                    (8, 0) => 10_000,
                    (8, tenths) => u32::from(tenths) * 100,
                    (_, tenths) => float(tenths.into(), 7) * 100,
                };
                query::<V4>(message, 8, within, about)
            }
            0x12 | 0x16 => {
                let group = group::<V4>(&head[4..])?;
                match group == opened.to {
                    true => Ok(MembershipMessage::OldReport(
                        if head[0] == 0x12 { 1 } else { 2 },
                        group,
                    )),
                    false => Err(Fault::Target),
                }
            }
            0x17 => Ok(MembershipMessage::Leave(group::<V4>(&head[4..])?)),
            0x22 => report::<V4>(message),
            _ => Err(Fault::Unknown),
        }
    }

    fn query(
        (mac, from): ([u8; 6], u32),
        settings: &GroupQuerier,
        ask: &OutgoingQuery<u32>,
    ) -> Vec<u8> {
        let to = ask.group.unwrap_or(0xe000_0001);
        let tenths = code(within(settings, ask) / 100, 7) as u8;
        let mut message = vec![0x11, tenths, 0, 0];
        message.extend(ask.group.unwrap_or(0).to_be_bytes());
        message.extend(tail(settings, ask.suppress, ask.sources.len()));
        ask.sources
            .iter()
            .for_each(|a| message.extend(a.to_be_bytes()));
        let sum = Sum::new().bytes(&message).checksum();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        // Internetwork control (RFC 3376, 4), one hop, a router alert (RFC 2113).
        let options = [option::ROUTER_ALERT, 4, 0, 0];
        let mut header = Ip4Header::new(from.into(), to.into(), IpProto::IGMP, 1, message.len());
        header.tos = 0xc0;
        let header = [header.with_options(&options).as_bytes(), &options].concat();
        let group = MacAddr::for_ip4_multicast(to.to_be_bytes().into());
        [&group.0[..], &mac, &V4::ETHER_TYPE, &header, &message].concat()
    }
}

/// All nodes of the link.
const ALL_NODES: u128 = 0xff02 << 112 | 1;

impl MembershipProtocol for V6 {
    const INPUT: &'static str = "mld-router-input";
    const LISTENER: &'static str = "mld-input";
    const WIDTH: usize = 16;

    fn take(bytes: &[u8]) -> Option<u128> {
        array(bytes).map(u128::from_be_bytes)
    }

    fn may_forward(group: u128) -> bool {
        group >> 120 == 0xff && group >> 112 & 15 > 2
    }

    fn open(packet: &[u8]) -> Result<Opened<'_, u128>, Fault> {
        let header = packet.first_chunk::<42>().ok_or(Fault::Malformed)?;
        let (at, end) = (48 + 8 * usize::from(header[41]), 40 + be16(header, 4));
        let (options, message) = (packet.get(42..at), packet.get(at..end));
        let (Some(options), Some(message)) = (options, message) else {
            return Err(Fault::Malformed);
        };
        if header[0] >> 4 != 6 || header[6] != 0 || header[40] != 58 {
            return Err(Fault::Malformed);
        }
        if header[7] != 1 {
            return Err(Fault::Hops);
        }
        let address = |at: usize| V6::take(&header[at..]).ok_or(Fault::Malformed);
        let (from, to) = (address(8)?, address(24)?);
        if from >> 118 != 0xfe80 >> 6 {
            return Err(Fault::Sender);
        }
        let pseudo = Sum::pseudo6(from.into(), to.into(), IpProto(58), message.len() as u32);
        if !pseudo.bytes(message).is_valid() {
            return Err(Fault::Checksum);
        }
        Ok(Opened {
            from,
            to,
            // For MLD (RFC 2711).
            alert: Options::ip6(options, "IPv6 option").has(5, &[0, 0]),
            message,
        })
    }

    fn parse_message<'a>(opened: &Opened<'a, u128>) -> Result<MembershipMessage<'a, u128>, Fault> {
        let message = opened.message;
        let head = message.first_chunk::<8>().ok_or(Fault::Message)?;
        if !opened.alert {
            return Err(Fault::Alert);
        }
        let address = message.get(8..24).ok_or(Fault::Message);
        match head[0] {
            130 => {
                let address = address?;
                let unsaid = address.iter().all(|b| *b == 0);
                let about = (!unsaid).then(|| group::<V6>(address)).transpose()?;
                if (25..28).contains(&message.len()) {
                    return Err(Fault::Message);
                }
                if about.is_none() && opened.to != ALL_NODES {
                    return Err(Fault::Target);
                }
                let delay = be16(head, 4) as u32;
                let within = match message.len() {
                    24 => delay,
                    _ => float(delay, 15),
                };
                query::<V6>(message, 24, within, about)
            }
            131 => {
                let group = group::<V6>(address?)?;
                match group == opened.to {
                    true => Ok(MembershipMessage::OldReport(2, group)),
                    false => Err(Fault::Target),
                }
            }
            132 => Ok(MembershipMessage::Leave(group::<V6>(address?)?)),
            143 => report::<V6>(message),
            _ => Err(Fault::Unknown),
        }
    }

    fn query(
        (mac, from): ([u8; 6], u128),
        settings: &GroupQuerier,
        ask: &OutgoingQuery<u128>,
    ) -> Vec<u8> {
        let to = ask.group.unwrap_or(ALL_NODES);
        let delay = code(within(settings, ask), 15) as u16;
        let mut message = vec![130, 0, 0, 0];
        message.extend(delay.to_be_bytes());
        message.extend([0, 0]);
        message.extend(ask.group.unwrap_or(0).to_be_bytes());
        message.extend(tail(settings, ask.suppress, ask.sources.len()));
        ask.sources
            .iter()
            .for_each(|a| message.extend(a.to_be_bytes()));
        let pseudo = Sum::pseudo6(from.into(), to.into(), IpProto(58), message.len() as u32);
        let sum = pseudo.bytes(&message).checksum();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        // Router alert (RFC 2711) behind the fixed header.
        let options = [IpProto::ICMP6.0, 0, 5, 2, 0, 0, 1, 0];
        let payload = options.len() + message.len();
        let header = Ip6Header::new(from.into(), to.into(), IpProto::HOP_BY_HOP, 1, payload);
        let header = [header.as_bytes(), &options[..]].concat();
        let group = MacAddr::for_ip6_multicast(to.into());
        [&group.0[..], &mac, &V6::ETHER_TYPE, &header, &message].concat()
    }
}

#[cfg(test)]
mod tests;
