//! Trace records of DHCP packets.

use volley_fib::columns::UPPER_OFFSET;
use volley_graph::{PacketView, Trace, TraceNames};
use volley_wire::MacAddr;

/// A DHCP datagram, or the received packet that was none.
#[derive(Clone, Copy)]
pub struct DhcpTrace {
    rx: u32,
    /// IP version.
    version: u8,
    /// First bytes of the message.
    head: [u8; HEAD],
    held: u8,
    /// Type of a DHCPv4 message, 0 for none.
    kind: u8,
}

/// Number of bytes that identify the sender.
const HEAD: usize = 34;

const NAMES4: [&str; 8] = [
    "Discover", "Offer", "Request", "Decline", "Ack", "Nak", "Release", "Inform",
];
const NAMES6: [&str; 13] = [
    "Solicit",
    "Advertise",
    "Request",
    "Confirm",
    "Renew",
    "Rebind",
    "Reply",
    "Release",
    "Decline",
    "Reconfigure",
    "Information-request",
    "Relay-forward",
    "Relay-reply",
];

/// Name of a message type; numbers begin with 1.
fn name<'n>(names: &[&'n str], number: u8) -> &'n str {
    let at = usize::from(number).checked_sub(1);
    at.and_then(|at| names.get(at))
        .copied()
        .unwrap_or("unknown message")
}

/// Type of a DHCPv4 message: the option is usually the first one.
fn kind4(message: &[u8]) -> u8 {
    match message.get(240..243) {
        Some(&[53, 1, kind]) => kind,
        _ => 0,
    }
}

fn text4(message: &[u8], kind: u8) -> Option<String> {
    let mac: [u8; 6] = message.get(28..34)?.try_into().ok()?;
    let word = |at: usize| {
        Some(u32::from_be_bytes(
            message.get(at..at + 4)?.try_into().ok()?,
        ))
    };
    let gateway = std::net::Ipv4Addr::from(word(24)?);
    let (kind, client) = (name(&NAMES4, kind), MacAddr(mac));
    let (transaction, hops) = (word(4)?, message.get(3)?);
    Some(format!(
        "DHCP {kind}, transaction {transaction:#010x}, client {client}, hops {hops}, gateway {gateway}"
    ))
}

fn text6(message: &[u8]) -> Option<String> {
    let kind = *message.first()?;
    let output = match (kind, message.get(1..4)?) {
        (12 | 13, [hops, ..]) => format!("hops {hops}"),
        (_, [a, b, c]) => format!("transaction {:#08x}", u32::from_be_bytes([0, *a, *b, *c])),
        _ => return None,
    };
    Some(format!("DHCPv6 {}, {output}", name(&NAMES6, kind)))
}

impl Trace for DhcpTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        let at = packet.get(UPPER_OFFSET.col).unwrap_or(0) as usize + 8;
        let message = packet.bytes().get(at..).unwrap_or(&[]);
        let (mut head, held) = ([0; HEAD], message.len().min(HEAD));
        head[..held].copy_from_slice(&message[..held]);
        DhcpTrace {
            rx: packet.rx(),
            version: packet.bytes().first().map_or(0, |b| b >> 4),
            head,
            held: held as u8,
            kind: kind4(message),
        }
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let rx = names.interface(self.rx);
        let message = &self.head[..usize::from(self.held)];
        let output = match self.version {
            4 => text4(message, self.kind),
            _ => text6(message),
        };
        let output = output.unwrap_or_else(|| "no message of DHCP".to_owned());
        format!("rx {rx}\n{output}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_named() {
        let mut message = vec![0; 243];
        message[3] = 2;
        message[4..8].copy_from_slice(&[0x12, 0x34, 0x56, 0x78]);
        message[24..28].copy_from_slice(&[10, 0, 0, 1]);
        message[28..34].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        message[240..].copy_from_slice(&[53, 1, 3]);
        assert_eq!(
            text4(&message, kind4(&message)).unwrap(),
            "DHCP Request, transaction 0x12345678, client 02:00:00:00:00:09, hops 2, gateway 10.0.0.1"
        );
        assert_eq!(text4(&message[..30], 0), None);
        assert_eq!(
            text6(&[1, 0xab, 0xcd, 0xef]).unwrap(),
            "DHCPv6 Solicit, transaction 0xabcdef"
        );
        assert_eq!(text6(&[13, 3, 0, 0]).unwrap(), "DHCPv6 Relay-reply, hops 3");
        assert_eq!(text6(&[1]), None);
    }
}
