//! Encoding of echo requests, and decoding of answers (RFC 792, RFC 4443).

use crate::lane::LONGEST;
use std::net::IpAddr;
use volley_wire::icmp4::Icmp4Header;
use volley_wire::icmp6::Icmp6Header;
use volley_wire::ip4::Ip4Header;
use volley_wire::ip6::Ip6Header;
use volley_wire::{Header, IpProto, U16};

/// An echo request.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    /// Source address.
    pub from: IpAddr,
    /// Destination address, of the same family.
    pub to: IpAddr,
    /// TTL or hop limit on the wire.
    pub hops: u8,
    /// Identifier.
    pub id: u16,
    /// Sequence number.
    pub number: u16,
    /// Data bytes after the ICMP header.
    pub size: usize,
}

impl Echo {
    /// Writes the packet and returns its length; none if the families differ or the packet is too long.
    pub fn write(&self, out: &mut [u8; LONGEST]) -> Option<usize> {
        // The rewrite node decrements the value.
        let hops = self.hops.saturating_add(1);
        let length = Icmp4Header::LEN + self.size;
        let (start, pseudo) = match (self.from, self.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut header = Ip4Header::new(from, to, IpProto::ICMP, hops, length);
                header.id = U16::new(self.number);
                header.fill_checksum(&[]);
                header.emit(out).ok()?;
                (Ip4Header::LEN, None)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let header = Ip6Header::new(from, to, IpProto::ICMP6, hops, length);
                header.emit(out).ok()?;
                (Ip6Header::LEN, Some(header.pseudo(IpProto::ICMP6, length)))
            }
            _ => return None,
        };
        let message = out.get_mut(start..start + length)?;
        let (head, body) = message.split_at_mut(Icmp4Header::LEN);
        for (at, byte) in body.iter_mut().enumerate() {
            *byte = at as u8;
        }
        match pseudo {
            None => {
                let mut header = Icmp4Header::echo_request(self.id, self.number);
                header.fill_checksum(body);
                header.emit(head)
            }
            Some(pseudo) => {
                let mut header = Icmp6Header::echo_request(self.id, self.number);
                header.fill_checksum(pseudo, body);
                header.emit(head)
            }
        }
        .ok()?;
        Some(start + length)
    }
}

/// The answer in an ICMP message for the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Source of the answer.
    pub from: IpAddr,
    /// ICMP type.
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// TTL or hop limit of the answer.
    pub hops: u8,
    /// Identifier of the request.
    pub id: u16,
    /// Sequence number of the request.
    pub number: u16,
}

/// Fields of an IP header: end of the header, protocol, source, TTL or hop limit.
fn header(packet: &[u8]) -> Option<(usize, u8, IpAddr, u8)> {
    match packet.first()? >> 4 {
        4 => {
            let source: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
            let at = usize::from(packet[0] & 15) * 4;
            Some((at, packet[9], source.into(), packet[8]))
        }
        6 => {
            let source: [u8; 16] = packet.get(8..24)?.try_into().ok()?;
            Some((40, packet[6], source.into(), packet[7]))
        }
        _ => None,
    }
}

/// Identifier and sequence number of the echo message at `at`, if it has this type.
fn echo(packet: &[u8], at: usize, kind: u8) -> Option<(u16, u16)> {
    let message = packet.get(at..at + 8).filter(|m| m[0] == kind)?;
    let number = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    Some((number(4), number(6)))
}

/// Whether a message is an echo reply; all other messages in this node are errors.
pub fn is_reply(packet: &[u8]) -> bool {
    let at = header(packet).map(|(at, ..)| at);
    let kind = at.and_then(|at| packet.get(at)).copied();
    matches!(
        (packet.first().map(|b| b >> 4), kind),
        (Some(4), Some(0)) | (Some(6), Some(129))
    )
}

/// The answer in a message: an echo reply, or an error that quotes an echo request. None for other messages.
pub fn read(packet: &[u8]) -> Option<Answer> {
    let (at, proto, from, hops) = header(packet)?;
    let (icmp, request) = match from {
        IpAddr::V4(_) => (1, 8),
        IpAddr::V6(_) => (58, 128),
    };
    let message = packet.get(at..at + 8).filter(|_| proto == icmp)?;
    let (kind, code) = (message[0], message[1]);
    let (id, number) = if is_reply(packet) {
        echo(packet, at, kind)?
    } else {
        let quoted = packet.get(at + 8..)?;
        let (behind, proto, ..) = header(quoted)?;
        echo(quoted, behind, request).filter(|_| proto == icmp)?
    };
    Some(Answer {
        from,
        kind,
        code,
        hops,
        id,
        number,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_wire::checksum::is_valid;
    use volley_wire::checksum::is_valid6;

    fn request(from: &str, to: &str, size: usize) -> Vec<u8> {
        let echo = Echo {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            hops: 3,
            id: 0x1234,
            number: 7,
            size,
        };
        let mut out = [0xee; LONGEST];
        let len = echo.write(&mut out).unwrap();
        out[..len].to_vec()
    }

    #[test]
    fn requests_are_right() {
        let packet = request("192.0.2.1", "198.51.100.7", 5);
        assert_eq!(packet.len(), 33);
        assert_eq!(packet[..10], [0x45, 0, 0, 33, 0, 7, 0, 0, 4, 1]);
        assert!(is_valid(&packet[..20]) && is_valid(&packet[20..]));
        assert_eq!(packet[24..], [0x12, 0x34, 0, 7, 0, 1, 2, 3, 4]);
        let (from, to) = ("2001:db8::1", "2001:db8::2");
        let packet = request(from, to, 1400);
        assert_eq!(packet[..8], [0x60, 0, 0, 0, 0x05, 0x80, 58, 4]);
        let proto = volley_wire::IpProto(58);
        assert!(is_valid6(
            from.parse().unwrap(),
            to.parse().unwrap(),
            proto,
            &packet[40..]
        ));
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let mut out = [0; LONGEST];
        let echo = Echo {
            from: "192.0.2.1".parse().unwrap(),
            to: "2001:db8::1".parse().unwrap(),
            hops: 3,
            id: 1,
            number: 1,
            size: 5,
        };
        assert_eq!(echo.write(&mut out), None);
        let to = "192.0.2.2".parse().unwrap();
        for size in [LONGEST, 70_000] {
            assert_eq!(Echo { to, size, ..echo }.write(&mut out), None);
        }
    }

    #[test]
    fn answers_are_read_from_replies_and_from_what_errors_quote() {
        for (from, to, reply, error, header) in [
            ("192.0.2.1", "192.0.2.7", 0, 11, 20),
            ("2001:db8::1", "2001:db8::7", 129, 3, 40),
        ] {
            let asked = request(from, to, 8);
            let mut back = request(to, from, 8);
            back[header] = reply;
            let want = |kind| Answer {
                from: to.parse().unwrap(),
                kind,
                code: 0,
                hops: 4,
                id: 0x1234,
                number: 7,
            };
            assert!(is_reply(&back));
            assert_eq!(read(&back), Some(want(reply)));
            let mut reported = request(to, from, 0);
            reported[header] = error;
            reported.extend(&asked);
            assert!(!is_reply(&reported));
            assert_eq!(read(&reported), Some(want(error)));
            for cut in 0..header + 8 + header + 8 {
                assert_eq!(read(&reported[..cut]), None, "{cut}");
            }
            // An error that quotes another host's packet.
            let at = header + 8 + header;
            reported[at] = 17;
            assert_eq!(read(&reported), None);
        }
        assert_eq!(read(&[]), None);
    }
}
