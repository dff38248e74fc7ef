//! Changes of a relay agent to DHCPv6 messages (RFC 8415, 9 and 19). No packets and no state: bytes in, bytes out, and a
//! [`Count`] for every message that is dropped.

use crate::buffer::{Buffer, Full};
use crate::node::dhcp6_relay::Count;
use std::net::Ipv6Addr;

/// Types of messages (RFC 8415, 7.3).
const ADVERTISE: u8 = 2;
const REPLY: u8 = 7;
const RECONFIGURE: u8 = 10;
const RELAY_FORWARD: u8 = 12;
pub(crate) const RELAY_REPLY: u8 = 13;
/// HOP_COUNT_LIMIT (RFC 8415, 7.6).
const HOP_LIMIT: u8 = 8;
/// Bytes before the options of a message between relay agents and servers: type, hops, link and peer address.
const FIXED: usize = 34;
/// Bytes of the shortest message of a client: type and transaction.
const SHORTEST: usize = 4;

/// Options (RFC 8415, 21.10 and 21.18).
const RELAY_MESSAGE: u16 = 9;
const INTERFACE_ID: u16 = 18;

impl From<Full> for Count {
    fn from(_: Full) -> Self {
        Count::TooLong
    }
}

fn address(bytes: &[u8]) -> Option<Ipv6Addr> {
    let octets: [u8; 16] = bytes.try_into().ok()?;
    Some(octets.into())
}

/// Length of a message in an option.
fn length(bytes: &[u8]) -> Result<[u8; 2], Count> {
    let len = u16::try_from(bytes.len()).map_err(|_| Count::TooLong)?;
    Ok(len.to_be_bytes())
}

fn put_option(kind: u16, value: &[u8], out: &mut Buffer) -> Result<(), Count> {
    out.put(&kind.to_be_bytes())?;
    out.put(&length(value)?)?;
    Ok(out.put(value)?)
}

/// Whether the message is from a server.
pub fn is_from_server(message: &[u8]) -> bool {
    message.first() == Some(&RELAY_REPLY)
}

/// Writes a Relay-forward message with the message of a client or of another relay agent into `out` (RFC 8415, 19.1). `peer` is
/// its source; `link` is an address of the clients' network, if there is one.
pub fn to_servers(
    message: &[u8],
    peer: Ipv6Addr,
    (link, name): (Option<Ipv6Addr>, &[u8]),
    out: &mut Buffer,
) -> Result<(), Count> {
    let kind = *message.first().ok_or(Count::TooShort)?;
    let (hops, link) = match kind {
        RELAY_FORWARD => {
            let hops = message.get(1).filter(|_| message.len() >= FIXED);
            let hops = *hops.ok_or(Count::TooShort)?;
            if hops >= HOP_LIMIT {
                return Err(Count::HopLimit);
            }
            // RFC 8415, 19.1.2: the link address stays 0 if a relay agent's source address is not link-local, since it
            // identifies the network.
            let link = link.filter(|_| peer.is_unicast_link_local());
            (hops + 1, link)
        }
        ADVERTISE | REPLY | RECONFIGURE | RELAY_REPLY => return Err(Count::UnexpectedType),
        _ if message.len() < SHORTEST => return Err(Count::TooShort),
        _ => (0, link),
    };
    out.clear();
    out.put(&[RELAY_FORWARD, hops])?;
    out.put(&link.unwrap_or(Ipv6Addr::UNSPECIFIED).octets())?;
    out.put(&peer.octets())?;
    put_option(INTERFACE_ID, name, out)?;
    put_option(RELAY_MESSAGE, message, out)
}

/// A checked Relay-reply message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Address of the clients' network, or ::.
    pub link: Ipv6Addr,
    /// Destination of the message.
    pub peer: Ipv6Addr,
    /// Name of the interface, from the interface ID option that the server returns.
    pub name: Option<&'a [u8]>,
    /// The message for the peer.
    pub message: &'a [u8],
}

impl Reply<'_> {
    /// Whether the peer is another relay agent.
    pub fn is_for_agent(&self) -> bool {
        self.message.first() == Some(&RELAY_REPLY)
    }
}

/// Parses a Relay-reply message (RFC 8415, 19.2).
pub fn from_server(bytes: &[u8]) -> Result<Reply<'_>, Count> {
    let (fixed, mut rest) = bytes.split_at_checked(FIXED).ok_or(Count::TooShort)?;
    if fixed[0] != RELAY_REPLY {
        return Err(Count::UnexpectedType);
    }
    let link = address(&fixed[2..18]).ok_or(Count::TooShort)?;
    let peer = address(&fixed[18..34]).ok_or(Count::TooShort)?;
    let (mut name, mut message) = (None, None);
    while !rest.is_empty() {
        let (head, more) = rest.split_at_checked(4).ok_or(Count::BadOption)?;
        let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let value = more.get(..usize::from(word(2))).ok_or(Count::BadOption)?;
        match word(0) {
            INTERFACE_ID => name = Some(value),
            RELAY_MESSAGE => message = Some(value),
            _ => {}
        }
        rest = &more[value.len()..];
    }
    let message = message.ok_or(Count::NoMessage)?;
    if message.len() < SHORTEST {
        return Err(Count::TooShort);
    }
    if peer.is_unspecified() || peer.is_loopback() || peer.is_multicast() {
        return Err(Count::BadPeer);
    }
    Ok(Reply {
        link,
        peer,
        name,
        message,
    })
}

#[cfg(test)]
mod tests;
