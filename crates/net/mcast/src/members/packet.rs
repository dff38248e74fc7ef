//! Decoding and encoding of IGMP (RFC 3376, 4; RFC 2236; RFC 1112) and MLD (RFC 3810, 5; RFC 2710) messages. No input causes a
//! panic.

use super::querier::{OutgoingQuery, Query, RecordType};
use crate::Mcast;
use crate::model::GroupQuerier;
use volley_fib::{V4, V6};
use volley_wire::checksum::Sum;
use volley_wire::ip4::{Ip4Header, option};
use volley_wire::ip6::Ip6Header;
use volley_wire::tlv::Options;
use volley_wire::{IntoBytes, IpProto, MacAddr};

/// Why a message is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The header or its length does not fit the frame.
    Malformed,
    /// The TTL or hop limit is not 1.
    Hops,
    /// The router alert option is missing.
    Alert,
    /// The source address is not valid for this message type.
    Sender,
    /// The checksum is wrong.
    Checksum,
    /// The length, group or records are invalid.
    Message,
    /// The destination is not valid for this message type.
    Target,
    /// The type is not one of group membership.
    Unknown,
}

/// Contents of a message. Sources and records are the unparsed bytes of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembershipMessage<'a, A> {
    /// A query, and its sources.
    Query(Query<A>, &'a [u8]),
    /// A report of an old version (its number) for a group.
    OldReport(u8, A),
    /// A leave group or done message.
    Leave(A),
    /// The records of a report.
    Report(&'a [u8]),
}

/// Membership protocol of an IP version: IGMP or MLD.
pub trait MembershipProtocol: Mcast {
    /// Name of the node that checks the messages.
    const INPUT: &'static str;
    /// Name of the node that handles messages to this router as a listener.
    const LISTENER: &'static str;
    /// Bytes of an address.
    const WIDTH: usize;

    /// Reads an address from the start of bytes.
    fn take(bytes: &[u8]) -> Option<Self::Addr>;
    /// Whether the group has a scope that is forwarded.
    fn may_forward(group: Self::Addr) -> bool;
    /// Source, destination and message of a packet, after the checks of its headers; the position is at the IP header.
    fn open(packet: &[u8]) -> Result<Opened<'_, Self::Addr>, Fault>;
    /// Parses a message.
    fn parse_message<'a>(
        opened: &Opened<'a, Self::Addr>,
    ) -> Result<MembershipMessage<'a, Self::Addr>, Fault>;
    /// Builds a query as a frame.
    fn query(
        own: ([u8; 6], Self::Addr),
        settings: &GroupQuerier,
        ask: &OutgoingQuery<Self::Addr>,
    ) -> Vec<u8>;
}

/// A parsed packet.
#[derive(Clone, Debug)]
pub struct Opened<'a, A> {
    /// Source address.
    pub from: A,
    /// Destination address.
    pub to: A,
    /// Whether the packet has a router alert option.
    pub alert: bool,
    /// The IGMP or MLD message.
    pub message: &'a [u8],
}

fn be16(bytes: &[u8], at: usize) -> usize {
    bytes
        .get(at..at + 2)
        .map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]])))
}

/// Consecutive addresses.
pub fn addresses<F: MembershipProtocol>(bytes: &[u8]) -> impl Iterator<Item = F::Addr> {
    bytes.chunks_exact(F::WIDTH).filter_map(F::take)
}

/// Iterator over the records of a report: type, group, sources.
pub struct Records<'a>(&'a [u8], usize, usize);

impl<'a> Iterator for Records<'a> {
    type Item = Option<(u8, &'a [u8], &'a [u8])>;

    /// The next record; it is none if the bytes end early.
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

/// The records of a report, whose bytes begin at the number of records.
pub fn records<F: MembershipProtocol>(report: &[u8]) -> Records<'_> {
    Records(report.get(8..).unwrap_or(&[]), be16(report, 6), F::WIDTH)
}

/// The record type; none for an unknown type, which is skipped (RFC 3376, 4.2.12).
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

/// Reads a group from the start of bytes.
fn group<F: MembershipProtocol>(bytes: &[u8]) -> Result<F::Addr, Fault> {
    let group = F::take(bytes).filter(|group| F::ip(*group).is_multicast());
    group.ok_or(Fault::Message)
}

/// Parses the tail of IGMPv3 and MLDv2 queries: flags, interval, sources.
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

/// Decodes the floating-point value of a query (RFC 3376, 4.1.1; RFC 3810, 5.1.3): `bits` is 7 or 15.
fn float(code: u32, bits: u32) -> u32 {
    if code >> bits == 0 {
        return code;
    }
    let mantissa = bits - 3;
    let exponent = code >> mantissa & 7;
    (code & ((1 << mantissa) - 1) | 1 << mantissa) << (exponent + 3)
}

/// Encodes a number: the largest code whose value is not greater.
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

/// Flags, query interval and number of sources of a query.
fn tail(settings: &GroupQuerier, suppress: bool, sources: usize) -> [u8; 4] {
    let flags = u8::from(suppress) << 3 | settings.robustness as u8 & 7;
    let interval = code(settings.query_interval, 7) as u8;
    let [a, b] = (sources as u16).to_be_bytes();
    [flags, interval, a, b]
}

/// Maximum response time of a query in milliseconds.
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
            // Router alert option (RFC 2113).
            alert: Options::classic(options, "IPv4 option").has(148, &[0, 0]),
            message,
        })
    }

    fn parse_message<'a>(opened: &Opened<'a, u32>) -> Result<MembershipMessage<'a, u32>, Fault> {
        let message = opened.message;
        let head = message.first_chunk::<8>().ok_or(Fault::Message)?;
        let address = V4::take(&head[4..]).filter(|a| *a != 0);
        // IGMPv1 has no router alert (RFC 1112), neither in reports nor in queries.
        let old = head[0] == 0x12 || head[0] == 0x11 && head[1] == 0;
        if !opened.alert && !old {
            return Err(Fault::Alert);
        }
        match head[0] {
            0x11 => {
                let about = address.map(|_| group::<V4>(&head[4..])).transpose()?;
                // A snooping switch may send queries with source 0.0.0.0; these do not take part in the querier election (RFC
                // 4541, 2.1.1).
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
        // Precedence internetwork control (RFC 3376, 4), TTL 1, and a router alert (RFC 2113).
        let options = [option::ROUTER_ALERT, 4, 0, 0];
        let mut header = Ip4Header::new(from.into(), to.into(), IpProto::IGMP, 1, message.len());
        header.tos = 0xc0;
        let header = [header.with_options(&options).as_bytes(), &options].concat();
        let group = MacAddr::for_ip4_multicast(to.to_be_bytes().into());
        [&group.0[..], &mac, &V4::ETHER_TYPE, &header, &message].concat()
    }
}

/// All-nodes group of the link.
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
            // Router alert option for MLD (RFC 2711).
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
        // Router alert option (RFC 2711) after the fixed header.
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
