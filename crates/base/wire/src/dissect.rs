//! A packet's headers as text for people: one line (packet traces, drop traces) or one line per layer.
//!
//! Contract: any bytes give a text, never a panic; what is cut or wrong is named where it is found and ends the text. At most
//! [`MAX_LAYERS`] headers are told, so the length is bounded whatever the bytes say. Checksums are told only when wrong.
//!
//! `IP4: 02:00:00:00:00:01 -> 02:00:00:00:00:02 / UDP 10.0.0.1 -> 10.1.0.1 ttl 64 len 46 / ports 1234 -> 80`

mod l2;
mod l3;
mod l4;

use alloc::string::String;
use core::fmt::{self, Display};

use crate::{EtherType, IpProto, WireError};

/// How many headers are told at most.
pub const MAX_LAYERS: usize = 16;

/// Where the first byte of a packet stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// At an Ethernet header.
    Ethernet,
    /// At an IP header of either version.
    Ip,
    /// At the header of this type.
    Type(EtherType),
}

/// A packet that displays as one line; `{:#}` gives one line per layer.
#[derive(Debug, Clone, Copy)]
pub struct Dissect<'a> {
    bytes: &'a [u8],
    from: From,
    cut: bool,
}

impl Dissect<'_> {
    /// Only the first bytes of the packet are here: what lies behind them is no fault of it.
    pub fn cut(self) -> Self {
        Dissect { cut: true, ..self }
    }
}

/// An Ethernet frame, to display.
pub fn frame(bytes: &[u8]) -> Dissect<'_> {
    packet(bytes, From::Ethernet)
}

/// Any packet, to display.
pub fn packet(bytes: &[u8], from: From) -> Dissect<'_> {
    Dissect {
        bytes,
        from,
        cut: false,
    }
}

/// An Ethernet frame as one line.
pub fn one_line(bytes: &[u8]) -> String {
    alloc::format!("{}", frame(bytes))
}

/// An Ethernet frame as one line per layer.
pub fn multi_line(bytes: &[u8]) -> String {
    alloc::format!("{:#}", frame(bytes))
}

impl Display for Dissect<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if f.alternate() { "\n  " } else { " / " };
        let mut out = Out {
            f,
            separator,
            layers: 0,
            cut: self.cut,
        };
        let mut next = match self.from {
            From::Ethernet => Next::Ethernet(self.bytes),
            From::Ip => Next::ip(self.bytes),
            From::Type(t) => Next::Type(t, self.bytes),
        };
        while out.layers < MAX_LAYERS {
            next = match out.step(next) {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(()),
                Err(Stop::Bad(error)) => return out.layer(format_args!("{error}")),
                Err(Stop::Fmt) => return Err(fmt::Error),
            };
        }
        out.layer(format_args!("..."))
    }
}

/// What stands at the place reached.
enum Next<'a> {
    Ethernet(&'a [u8]),
    Type(EtherType, &'a [u8]),
    /// What a transport header needs of the IP header before it.
    Transport(IpProto, l4::Over<'a>),
    /// A packet quoted by an ICMP error: cut by design.
    Quoted(EtherType, &'a [u8]),
}

impl<'a> Next<'a> {
    fn ip(bytes: &'a [u8]) -> Self {
        let version = bytes.first().map_or(4, |b| b >> 4);
        Next::Type(
            if version == 6 {
                EtherType::IP6
            } else {
                EtherType::IP4
            },
            bytes,
        )
    }
}

/// Why the text ends early.
enum Stop {
    Bad(WireError),
    Fmt,
}

impl core::convert::From<fmt::Error> for Stop {
    fn from(_: fmt::Error) -> Self {
        Stop::Fmt
    }
}

impl core::convert::From<WireError> for Stop {
    fn from(error: WireError) -> Self {
        Stop::Bad(error)
    }
}

type Step<'a> = Result<Option<Next<'a>>, Stop>;

/// Where the layers go.
struct Out<'f, 'g> {
    f: &'f mut fmt::Formatter<'g>,
    separator: &'static str,
    layers: usize,
    cut: bool,
}

impl Out<'_, '_> {
    /// Starts a layer.
    fn layer(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        if self.layers > 0 {
            self.f.write_str(self.separator)?;
        }
        self.layers += 1;
        self.f.write_fmt(text)
    }

    /// Adds to the layer begun last.
    fn add(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        self.f.write_fmt(text)
    }

    fn step<'a>(&mut self, next: Next<'a>) -> Step<'a> {
        match next {
            Next::Ethernet(bytes) => l2::ethernet(self, bytes),
            Next::Type(ether_type, bytes) => l3::payload(self, ether_type, bytes),
            Next::Transport(proto, over) => l4::payload(self, proto, over),
            Next::Quoted(ether_type, bytes) => l3::quoted(self, ether_type, bytes),
        }
    }
}

#[cfg(test)]
mod tests;
