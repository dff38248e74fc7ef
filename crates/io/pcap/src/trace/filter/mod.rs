//! Capture filters: `ip4.dst == 10.0.0.0/8 and (udp.dport == 53 or not tcp)`.
//!
//! ```text
//! expression   tests joined with and, or, not (or && || !) and parentheses; `and` binds tighter than `or`
//! test         FIELD OP VALUE     OP: == != < <= > >=; addresses take a prefix, and only == and !=
//!              FIELD              the packet has the field
//!              host A, net P      source or destination of IPv4, IPv6 or ARP
//!              port N             source or destination port of UDP, TCP or SCTP
//!              proto N            IP protocol, by number or by the name of its header, such as udp or gre
//!              HEADER             the packet has this header, such as arp or ip6-frag
//! ```
//! Headers and fields are those of `volley_wire::field`; `vlan` is the first tag, `eth.type` the type behind all tags.
//! A test of a field that the packet does not have is false, also with `!=`. A packet is read from its Ethernet header.
//!
//! [`Filter::compile`] ensures that the program is at most as long as the text, and needs at most [`DEPTH`] open
//! results. [`Filter::matches`] accepts any bytes, never panics and never allocates.

mod fields;
mod parse;

use fields::{Field, Packet};
use volley_graph::{PacketView, TraceFilter};
use volley_model::{ModelError, SyntaxError};

/// The maximum nesting depth of parentheses and `not`.
pub const DEPTH: usize = 32;

/// The comparison of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Compare {
    fn holds(self, left: u128, right: u128) -> bool {
        match self {
            Compare::Equal => left == right,
            Compare::NotEqual => left != right,
            Compare::Less => left < right,
            Compare::LessOrEqual => left <= right,
            Compare::Greater => left > right,
            Compare::GreaterOrEqual => left >= right,
        }
    }
}

/// One step of a program: a test pushes a result, other steps pop results and push one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// The packet has the field.
    Has(Field),
    /// Whether the comparison of the masked field is true.
    Test {
        field: Field,
        mask: u128,
        compare: Compare,
        value: u128,
    },
    Not,
    And,
    Or,
}

/// A compiled filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    program: Box<[Op]>,
}

impl Filter {
    /// Compiles a filter; an error contains the column.
    pub fn compile(text: &str) -> Result<Filter, SyntaxError> {
        parse::parse(text).map(|program| Filter {
            program: program.into(),
        })
    }

    /// Compiles the filter of a request.
    pub fn asked(text: &str) -> Result<Filter, ModelError> {
        let what = || format!("filter '{}'", text.escape_debug());
        Filter::compile(text).map_err(|error| ModelError::invalid(what(), error))
    }

    /// Whether a packet matches: `bytes` are its first bytes, from the Ethernet header; `len` is its whole length.
    pub fn matches(&self, bytes: &[u8], len: usize) -> bool {
        let packet = Packet::new(bytes, len);
        // Open results as bits, the newest is the lowest; the parser limits their number.
        let mut stack = 0u128;
        for op in &self.program {
            stack = match *op {
                Op::Has(field) => stack << 1 | u128::from(packet.get(field).is_some()),
                Op::Test {
                    field,
                    mask,
                    compare,
                    value,
                } => {
                    let hit = packet
                        .get(field)
                        .is_some_and(|found| compare.holds(found & mask, value));
                    stack << 1 | u128::from(hit)
                }
                Op::Not => stack ^ 1,
                Op::And => stack >> 1 & (stack | !1),
                Op::Or => stack >> 1 | stack & 1,
            };
        }
        stack & 1 != 0
    }
}

impl TraceFilter for Filter {
    fn wants(&self, packet: &PacketView<'_>, back: usize) -> bool {
        let (len, mut hit) = (packet.len() + back, None);
        packet.segments(back, |first| {
            hit.get_or_insert_with(|| self.matches(first, len));
        });
        hit == Some(true)
    }
}

#[cfg(test)]
mod tests;
