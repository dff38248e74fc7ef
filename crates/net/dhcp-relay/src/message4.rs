//! Changes of a relay agent to DHCPv4 messages (RFC 1542, 4.1; RFC 2131; RFC 3046). No packets and no state: bytes in, bytes
//! out, and a [`Count`] for every message that is dropped.

use crate::buffer::{Buffer, Full};
use crate::model::Option82;
use crate::node::dhcp4_relay::Count;
use std::net::Ipv4Addr;

/// Bytes before the options, including the magic cookie.
const FIXED: usize = 240;
/// Bytes of the shortest message that every BOOTP agent accepts (RFC 951, 3; RFC 1542, 2.1).
const SHORTEST: usize = 300;
/// Bytes of a message in an IP packet of 1500 bytes: an option that does not fit into them is left out (RFC 3046, 2.1).
const USUAL: usize = 1500 - 28;
/// Magic cookie before the options (RFC 2131, 3).
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// Most relay agents that a request may pass (RFC 1542, 4.1.1).
const MAX_HOPS: u8 = 16;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ETHERNET: [u8; 2] = [1, 6];
const HOPS: usize = 3;
const FLAGS: usize = 10;
const CLIENT: usize = 12;
const YOURS: usize = 16;
const GATEWAY: usize = 24;
const HARDWARE: usize = 28;

const PAD: u8 = 0;
const END: u8 = 255;
/// The relay agent information option and its sub-options (RFC 3046, 2.0; RFC 3527, 3).
const RELAY_AGENT: u8 = 82;
const CIRCUIT_ID: u8 = 1;
const REMOTE_ID: u8 = 2;
const LINK_SELECTION: u8 = 5;

impl From<Full> for Count {
    fn from(_: Full) -> Self {
        Count::TooLong
    }
}

/// Contents of option 82.
#[derive(Clone, Copy, Debug)]
pub struct Circuit<'a> {
    /// Name of the interface.
    pub name: &'a [u8],
    /// The remote ID.
    pub remote: &'a [u8],
    /// Address of the clients' network, if servers reply to an address of another network.
    pub link: Option<Ipv4Addr>,
}

/// A message whose options were checked.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    bytes: &'a [u8],
    /// Offset of the end option, or the end of the message.
    end: usize,
}

/// An option: its code, its value, and all its bytes.
struct Opt<'a> {
    kind: u8,
    value: &'a [u8],
    whole: &'a [u8],
}

/// The option at the start of `bytes`; none at the end of the options, an error if it is truncated.
fn option(bytes: &[u8]) -> Result<Option<Opt<'_>>, Count> {
    let kind = match bytes.first() {
        None | Some(&END) => return Ok(None),
        Some(kind) => *kind,
    };
    if kind == PAD {
        let (value, whole) = (&[][..], &bytes[..1]);
        return Ok(Some(Opt { kind, value, whole }));
    }
    let len = usize::from(*bytes.get(1).ok_or(Count::BadOption)?);
    let whole = bytes.get(..2 + len).ok_or(Count::BadOption)?;
    let value = &whole[2..];
    Ok(Some(Opt { kind, value, whole }))
}

/// Checks a message: its length, its cookie, and that no option is truncated.
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, Count> {
    if bytes.len() < FIXED {
        return Err(Count::TooShort);
    }
    let known = matches!(bytes[0], REQUEST | REPLY);
    if !known || bytes[2] > 16 || bytes[FIXED - 4..FIXED] != COOKIE {
        return Err(Count::Malformed);
    }
    let mut end = FIXED;
    while let Some(it) = option(&bytes[end..])? {
        end += it.whole.len();
    }
    Ok(Message { bytes, end })
}

impl<'a> Message<'a> {
    /// Whether the message is from a server.
    pub fn is_reply(&self) -> bool {
        self.bytes[0] == REPLY
    }

    fn options(&self) -> impl Iterator<Item = Opt<'a>> + use<'a> {
        let mut rest = &self.bytes[FIXED..self.end];
        std::iter::from_fn(move || {
            let it = option(rest).ok().flatten()?;
            rest = &rest[it.whole.len()..];
            Some(it)
        })
    }

    fn address(&self, at: usize) -> Ipv4Addr {
        let b = &self.bytes[at..at + 4];
        Ipv4Addr::new(b[0], b[1], b[2], b[3])
    }

    /// The address of the first relay agent; 0.0.0.0 for none.
    pub fn gateway(&self) -> Ipv4Addr {
        self.address(GATEWAY)
    }

    fn has_relay_agent(&self) -> bool {
        self.options().any(|it| it.kind == RELAY_AGENT)
    }

    /// The circuit ID in the relay agent information option.
    pub fn circuit(&self) -> Option<&'a [u8]> {
        let agent = self.options().find(|it| it.kind == RELAY_AGENT)?;
        let mut rest = agent.value;
        while let [kind, len, more @ ..] = rest {
            let value = more.get(..usize::from(*len))?;
            if *kind == CIRCUIT_ID {
                return Some(value);
            }
            rest = &more[value.len()..];
        }
        None
    }

    /// Copies the message, with or without relay agent information options; the end option is not copied.
    fn copy(&self, with: bool, out: &mut Buffer) -> Result<(), Full> {
        out.clear();
        out.put(&self.bytes[..FIXED])?;
        let kept = |it: &Opt<'_>| it.kind != PAD && (with || it.kind != RELAY_AGENT);
        let mut kept = self.options().filter(kept);
        kept.try_for_each(|it| out.put(it.whole))
    }

    /// Writes the request for servers into `out`; `ours` is the relay's address, `is_own` returns whether an address is the
    /// router's. Returns whether option 82 was left out because the message would become too long.
    pub fn to_servers(
        &self,
        ours: Ipv4Addr,
        is_own: impl Fn(Ipv4Addr) -> bool,
        (policy, circuit): (Option82, Circuit<'_>),
        out: &mut Buffer,
    ) -> Result<bool, Count> {
        if self.bytes[HOPS] >= MAX_HOPS {
            return Err(Count::HopLimit);
        }
        let (gateway, mut left_out) = (self.gateway(), false);
        if !gateway.is_unspecified() {
            // RFC 3046, 2.1: another relay agent came first. Its address and its option stay.
            if is_own(gateway) {
                return Err(Count::OwnGateway);
            }
            self.copy(true, out)?;
        } else {
            let adds = match (self.has_relay_agent(), policy) {
                (true, Option82::Drop) => return Err(Count::UntrustedOption),
                (true, Option82::Keep) => false,
                (true, Option82::Replace) | (false, _) => true,
            };
            self.copy(!adds, out)?;
            if adds {
                left_out = !put_circuit(circuit, out)?;
            }
            out.bytes_mut()[GATEWAY..GATEWAY + 4].copy_from_slice(&ours.octets());
        }
        out.bytes_mut()[HOPS] += 1;
        out.put(&[END])?;
        out.pad(SHORTEST)?;
        Ok(left_out)
    }

    /// Writes the reply for the client into `out`: without option 82 if it names this circuit (RFC 3046, 2.1).
    pub fn to_client(&self, circuit: &[u8], out: &mut Buffer) -> Result<Client, Count> {
        let ours = self.circuit() == Some(circuit);
        self.copy(!ours, out)?;
        out.put(&[END])?;
        out.pad(SHORTEST)?;
        let mac = &self.bytes[HARDWARE..HARDWARE + 6];
        let has_mac =
            self.bytes[1..3] == ETHERNET && mac[0] & 1 == 0 && mac.iter().any(|b| *b != 0);
        let wants_broadcast = self.bytes[FLAGS] & 0x80 != 0;
        let to = match self.address(YOURS) {
            none if none.is_unspecified() => self.address(CLIENT),
            yours => yours,
        };
        // RFC 1542, 4.1.2: to the address that the client gets, unless the client cannot receive unicast packets yet.
        let far = to.is_unspecified() || to.is_multicast() || to.is_loopback() || to.is_broadcast();
        if wants_broadcast || !has_mac || far {
            return Ok(Client {
                mac: [0xff; 6],
                addr: Ipv4Addr::BROADCAST,
            });
        }
        let mut client = Client {
            mac: [0; 6],
            addr: to,
        };
        client.mac.copy_from_slice(mac);
        Ok(client)
    }
}

/// Destination of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// MAC address.
    pub mac: [u8; 6],
    /// IP address.
    pub addr: Ipv4Addr,
}

/// Adds option 82; false if the message would become too long.
fn put_circuit(circuit: Circuit<'_>, out: &mut Buffer) -> Result<bool, Full> {
    let link = circuit.link.map(|it| it.octets());
    let all = [
        (CIRCUIT_ID, Some(circuit.name)),
        (REMOTE_ID, Some(circuit.remote)),
        (LINK_SELECTION, link.as_ref().map(|it| &it[..])),
    ];
    let all = all
        .into_iter()
        .filter_map(|(kind, value)| Some((kind, value?)));
    let len: usize = all.clone().map(|(_, value)| 2 + value.len()).sum();
    let fits = out.bytes().len() + 2 + len < USUAL;
    let (true, Ok(len)) = (fits, u8::try_from(len)) else {
        return Ok(false);
    };
    out.put(&[RELAY_AGENT, len])?;
    for (kind, value) in all {
        out.put(&[kind, value.len() as u8])?;
        out.put(value)?;
    }
    Ok(true)
}

#[cfg(test)]
pub(crate) mod tests;
