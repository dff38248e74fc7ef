//! The expressions of IPClassifier and IPFilter: `tcp && dst port 80`, `src net 10.0.0.0/8 and not icmp`.

mod names;
mod parse;

pub(super) use parse::parse;

use crate::packet::{ICMP, TCP, UDP, dst, is_first, protocol, src, u16_at};

/// A condition on a packet of IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// Always, or never.
    Always(bool),
    /// All of these.
    And(Vec<Test>),
    /// One of these.
    Or(Vec<Test>),
    /// The contrary.
    Not(Box<Test>),
    /// The second test where the first one holds, else the third one.
    If(Box<[Test; 3]>),
    /// A number of the packet.
    Field(Field, Wanted),
    /// An address of the packet has these bits under this mask.
    Address(Side, u32, u32),
    /// A port of TCP or UDP.
    Port(Side, Wanted),
    /// A flag of TCP is set.
    TcpFlag(u8),
    /// A fragment.
    Fragment,
}

/// The numbers that are wanted: these bits of them are in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    mask: u32,
    low: u32,
    high: u32,
}

impl Wanted {
    /// All numbers.
    const ANY: Wanted = Wanted::range(0, u32::MAX);

    const fn range(low: u32, high: u32) -> Wanted {
        Wanted {
            mask: u32::MAX,
            low,
            high,
        }
    }

    const fn one(value: u32) -> Wanted {
        Wanted::range(value, value)
    }

    fn has(self, value: u32) -> bool {
        (self.low..=self.high).contains(&(value & self.mask))
    }
}

/// A number in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Protocol,
    Ttl,
    Tos,
    Dscp,
    Version,
    HeaderLength,
    Id,
    Length,
    Checksum,
    IcmpType,
    TcpWindow,
    /// Bytes of the IP header: place and length.
    Header(u16, u8),
    /// Bytes behind the IP header of a first fragment: protocol, place and length.
    Payload(Option<u8>, u16, u8),
}

/// Source, destination, one of them, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Src,
    Dst,
    Either,
    Both,
}

impl Side {
    fn holds(self, src: bool, dst: bool) -> bool {
        match self {
            Side::Src => src,
            Side::Dst => dst,
            Side::Either => src || dst,
            Side::Both => src && dst,
        }
    }
}

/// A packet as tests read it: its IP header, and the bytes behind it.
pub(super) struct View<'a> {
    pub(super) header: &'a [u8],
    pub(super) payload: &'a [u8],
}

impl Test {
    /// Whether the condition holds.
    pub(super) fn holds(&self, view: &View<'_>) -> bool {
        match self {
            Test::Always(value) => *value,
            Test::And(all) => all.iter().all(|it| it.holds(view)),
            Test::Or(any) => any.iter().any(|it| it.holds(view)),
            Test::Not(it) => !it.holds(view),
            Test::If(tests) => {
                let [condition, yes, no] = &**tests;
                match condition.holds(view) {
                    true => yes.holds(view),
                    false => no.holds(view),
                }
            }
            Test::Field(field, wanted) => view.field(*field).is_some_and(|value| wanted.has(value)),
            Test::Address(side, address, mask) => {
                let fits = |it: u32| it & mask == *address;
                side.holds(fits(src(view.header)), fits(dst(view.header)))
            }
            Test::Port(side, wanted) => {
                let has_ports = [TCP, UDP].contains(&protocol(view.header));
                if !has_ports || !is_first(view.header) || view.payload.len() < 4 {
                    return false;
                }
                let fits = |at| wanted.has(u32::from(u16_at(view.payload, at)));
                side.holds(fits(0), fits(2))
            }
            Test::TcpFlag(flag) => {
                protocol(view.header) == TCP
                    && is_first(view.header)
                    && view.payload.get(13).is_some_and(|flags| flags & flag != 0)
            }
            Test::Fragment => u16_at(view.header, 6) & 0x3fff != 0,
        }
    }
}

impl View<'_> {
    fn field(&self, field: Field) -> Option<u32> {
        let byte = |at: usize| self.header.get(at).map(|it| u32::from(*it));
        match field {
            Field::Protocol => byte(9),
            Field::Ttl => byte(8),
            Field::Tos => byte(1),
            Field::Dscp => byte(1).map(|it| it >> 2),
            Field::Version => byte(0).map(|it| it >> 4),
            Field::HeaderLength => byte(0).map(|it| it & 15),
            Field::Id => Some(u32::from(u16_at(self.header, 4))),
            Field::Length => Some(u32::from(u16_at(self.header, 2))),
            Field::Checksum => Some(u32::from(u16_at(self.header, 10))),
            Field::IcmpType => self.payload(Some(ICMP), 0, 1),
            Field::TcpWindow => self.payload(Some(TCP), 14, 2),
            Field::Header(at, length) => number(self.header, at, length),
            Field::Payload(of, at, length) => self.payload(of, at, length),
        }
    }

    /// Bytes behind the IP header of a first fragment, if its protocol is `of`.
    fn payload(&self, of: Option<u8>, at: u16, length: u8) -> Option<u32> {
        let is_it = of.is_none_or(|of| protocol(self.header) == of) && is_first(self.header);
        is_it.then(|| number(self.payload, at, length)).flatten()
    }
}

/// A number of up to four bytes.
fn number(bytes: &[u8], at: u16, length: u8) -> Option<u32> {
    let at = usize::from(at);
    let bytes = bytes.get(at..at + usize::from(length))?;
    Some(bytes.iter().fold(0, |all, it| all << 8 | u32::from(*it)))
}
