//! Encoding and decoding of MLD reports and queries (RFC 3810, 5; RFC 2710, 3).

use crate::link::Mac;
use crate::nd;
use std::net::Ipv6Addr;
use volley_wire::IpProto;
use volley_wire::checksum::Sum;

/// All MLDv2-capable routers (RFC 3810, 5.2.14).
pub const ALL_MLD2: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);
/// Hop-by-hop header with only a router alert for MLD, before ICMPv6 (RFC 2711).
const ALERT: [u8; 8] = [58, 0, 5, 2, 0, 0, 1, 0];
pub(crate) const QUERY: u8 = 130;
pub(crate) const REPORT1: u8 = 131;
const DONE1: u8 = 132;
const REPORT2: u8 = 143;

/// Type of a multicast address record (RFC 3810, 5.2.12), without sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// MODE_IS_EXCLUDE: the interface listens to the group.
    Is = 2,
    /// CHANGE_TO_INCLUDE_MODE: the interface has left the group.
    Left = 3,
    /// CHANGE_TO_EXCLUDE_MODE: the interface has joined the group.
    Joined = 4,
}

/// A received query, or an MLDv1 report of another listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A query.
    Query {
        /// The queried group; none = general query.
        group: Option<Ipv6Addr>,
        /// Maximum response delay in milliseconds.
        within_ms: u32,
        /// Whether this is an MLDv1 query.
        old: bool,
    },
    /// An MLDv1 report for this group.
    Report(Ipv6Addr),
}

/// The frame of a message from an interface.
fn frame(own: Mac, to: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
    let from = nd::link_local(own);
    let pseudo = Sum::pseudo6(from, to, IpProto(58), message.len() as u32);
    let sum = pseudo.bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = (message.len() + ALERT.len()) as u16;
    let header = [
        &[0x86, 0xdd, 0x60, 0, 0, 0][..],
        &length.to_be_bytes(),
        &[0, 1],
    ]
    .concat();
    let ends = [from.octets(), to.octets()].concat();
    [
        &nd::group_mac(to)[..],
        &own,
        &header,
        &ends,
        &ALERT,
        &message,
    ]
    .concat()
}

/// An MLDv2 report.
pub fn report(own: Mac, records: &[(Ipv6Addr, Record)]) -> Vec<u8> {
    let mut message = vec![REPORT2, 0, 0, 0, 0, 0];
    message.extend((records.len() as u16).to_be_bytes());
    for (group, record) in records {
        message.extend([*record as u8, 0, 0, 0]);
        message.extend(group.octets());
    }
    frame(own, ALL_MLD2, message)
}

/// An MLDv1 report, or done message.
pub fn old_report(own: Mac, group: Ipv6Addr, listens: bool) -> Vec<u8> {
    let (kind, to) = match listens {
        true => (REPORT1, group),
        false => (DONE1, nd::ALL_ROUTERS),
    };
    let mut message = vec![kind, 0, 0, 0, 0, 0, 0, 0];
    message.extend(group.octets());
    frame(own, to, message)
}

/// Maximum response delay of an MLDv2 query in milliseconds (RFC 3810, 5.1.3).
fn delay(code: u16) -> u32 {
    if code < 0x8000 {
        return code.into();
    }
    let (mantissa, exponent) = (u32::from(code & 0xfff), u32::from(code >> 12 & 7));
    (mantissa | 0x1000) << (exponent + 3)
}

/// Parses a message whose checksum is correct.
pub fn read(message: &[u8]) -> Option<Heard> {
    let group: [u8; 16] = message.get(8..24)?.try_into().ok()?;
    let group = Ipv6Addr::from(group);
    let code = u16::from_be_bytes([message[4], message[5]]);
    if message[0] == REPORT1 {
        return group.is_multicast().then_some(Heard::Report(group));
    }
    if !group.is_unspecified() && !group.is_multicast() {
        return None;
    }
    // RFC 3810, 8.1: a length between the two is invalid.
    let old = match message.len() {
        24 => true,
        28.. => false,
        _ => return None,
    };
    Some(Heard::Query {
        group: Some(group).filter(|g| !g.is_unspecified()),
        within_ms: if old { code.into() } else { delay(code) },
        old,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Mac = [2, 0, 0, 0, 0, 1];

    #[test]
    fn a_report_has_its_alert_records_and_checksum() {
        let group: Ipv6Addr = "ff02::1:ff00:1".parse().unwrap();
        let frame = report(
            OWN,
            &[(group, Record::Joined), (nd::ALL_ROUTERS, Record::Is)],
        );
        assert_eq!(
            frame[..14],
            [0x33, 0x33, 0, 0, 0, 0x16, 2, 0, 0, 0, 0, 1, 0x86, 0xdd]
        );
        assert_eq!(frame[18..22], [0, 56, 0, 1]);
        assert_eq!(frame[54..62], [58, 0, 5, 2, 0, 0, 1, 0]);
        let message = &frame[62..];
        assert_eq!(
            (message[0], &message[4..12]),
            (143, &[0, 0, 0, 2, 4, 0, 0, 0][..])
        );
        assert_eq!(message[12..28], group.octets());
        assert_eq!(message[28], 2);
        let pseudo = Sum::pseudo6(
            nd::link_local(OWN),
            ALL_MLD2,
            IpProto(58),
            message.len() as u32,
        );
        assert_eq!(pseudo.bytes(message).checksum(), 0);
    }

    #[test]
    fn queries_are_read_by_their_length() {
        let mut query = vec![QUERY, 0, 0, 0, 0x27, 0x10, 0, 0];
        query.extend([0; 16]);
        let all = |within_ms, old| Heard::Query {
            group: None,
            within_ms,
            old,
        };
        assert_eq!(read(&query), Some(all(10_000, true)));
        query.extend([0; 3]);
        assert_eq!(read(&query), None);
        query.push(0);
        assert_eq!(read(&query), Some(all(10_000, false)));
        query[4..6].copy_from_slice(&[0x91, 0x23]);
        assert_eq!(read(&query), Some(all(0x1123 << 4, false)));
        query[8] = 0x20;
        assert_eq!(read(&query), None, "no group");
    }
}
