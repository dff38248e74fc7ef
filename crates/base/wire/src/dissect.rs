//! A packet's headers as text for people: one line (packet traces, drop traces) or one line per layer.
//!
//! Contract: any bytes give a text, never a panic; what is cut or wrong is named where it is found and ends the text. At most
//! [`MAX_LAYERS`] headers are told, so the length is bounded whatever the bytes say. Checksums are told only when wrong.
//! Of a packet whose first bytes only are here ([`Dissect::of`]), length fields are judged against the length of the whole
//! packet; a header that is not all here ends the text with `(80 of 1514 bytes kept)`, and no checksum is judged over bytes
//! that are not here. A checksum that the device has still to finish ([`Dissect::offloaded`]) is told as such.
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
    len: usize,
    offloaded: Option<usize>,
}

impl Dissect<'_> {
    /// The whole packet has this many bytes, of which only the first are here.
    pub fn of(self, len: usize) -> Self {
        Dissect {
            len: len.max(self.bytes.len()),
            ..self
        }
    }

    /// The checksum over everything from this byte on is still to be finished (a partial checksum, as virtio's).
    pub fn offloaded(self, start: Option<usize>) -> Self {
        Dissect {
            offloaded: start,
            ..self
        }
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
        len: bytes.len(),
        offloaded: None,
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
            offloaded: self.offloaded,
        };
        let all = Kept {
            bytes: self.bytes,
            lost: self.len - self.bytes.len(),
            at: 0,
        };
        let mut next = match self.from {
            From::Ethernet => Next::Ethernet(all),
            From::Ip => Next::ip(all),
            From::Type(t) => Next::Type(t, all),
        };
        while out.layers < MAX_LAYERS {
            next = match out.step(next) {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(()),
                Err(Stop::Bad(error)) => return out.layer(format_args!("{error}")),
                Err(Stop::Cut) => return out.cut(self.bytes.len(), self.len),
                Err(Stop::Fmt) => return Err(fmt::Error),
            };
        }
        out.layer(format_args!("..."))
    }
}

/// A part of the packet: its bytes that are here, and how many bytes of it are not.
#[derive(Clone, Copy)]
struct Kept<'a> {
    bytes: &'a [u8],
    lost: usize,
    /// Bytes from the packet's start.
    at: usize,
}

impl<'a> Kept<'a> {
    /// Its length in the whole packet.
    fn len(&self) -> usize {
        self.bytes.len() + self.lost
    }

    /// Without its first `n` bytes.
    fn after(self, n: usize) -> Kept<'a> {
        let gone = n.saturating_sub(self.bytes.len());
        Kept {
            bytes: self.bytes.get(n..).unwrap_or(&[]),
            lost: self.lost.saturating_sub(gone),
            at: self.at + n,
        }
    }

    /// Its first `n` bytes.
    fn first(self, n: usize) -> Kept<'a> {
        let bytes = self.bytes.get(..n).unwrap_or(self.bytes);
        Kept {
            bytes,
            lost: self.lost.min(n - bytes.len().min(n)),
            ..self
        }
    }

    /// Why a header cannot be read: bytes of it are not here, or the packet is wrong.
    fn stop(&self, error: WireError) -> Stop {
        match error.shortfall() {
            Some(bytes) if bytes <= self.lost => Stop::Cut,
            _ => Stop::Bad(error.with_more(self.lost)),
        }
    }
}

/// What stands at the place reached.
enum Next<'a> {
    Ethernet(Kept<'a>),
    Type(EtherType, Kept<'a>),
    /// What a transport header needs of the IP header before it.
    Transport(IpProto, l4::Over<'a>),
    /// A packet quoted by an ICMP error: cut by design.
    Quoted(EtherType, Kept<'a>),
}

impl<'a> Next<'a> {
    fn ip(all: Kept<'a>) -> Self {
        let version = all.bytes.first().map_or(4, |b| b >> 4);
        Next::Type(
            if version == 6 {
                EtherType::IP6
            } else {
                EtherType::IP4
            },
            all,
        )
    }
}

/// Why the text ends early.
enum Stop {
    /// The packet is wrong.
    Bad(WireError),
    /// The next header is not all here.
    Cut,
    Fmt,
}

impl core::convert::From<fmt::Error> for Stop {
    fn from(_: fmt::Error) -> Self {
        Stop::Fmt
    }
}

type Step<'a> = Result<Option<Next<'a>>, Stop>;

/// Where the layers go.
struct Out<'f, 'g> {
    f: &'f mut fmt::Formatter<'g>,
    separator: &'static str,
    layers: usize,
    /// Where the checksum begins that is still to be finished.
    offloaded: Option<usize>,
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

    /// Ends the text where the bytes end that are here.
    fn cut(&mut self, kept: usize, len: usize) -> fmt::Result {
        match self.layers {
            0 => self.layer(format_args!("({kept} of {len} bytes kept)")),
            _ => self.add(format_args!(" ({kept} of {len} bytes kept)")),
        }
    }

    fn step<'a>(&mut self, next: Next<'a>) -> Step<'a> {
        match next {
            Next::Ethernet(frame) => l2::ethernet(self, frame),
            Next::Type(ether_type, packet) => l3::payload(self, ether_type, packet),
            Next::Transport(proto, over) => l4::payload(self, proto, over),
            Next::Quoted(ether_type, packet) => l3::quoted(self, ether_type, packet),
        }
    }
}

#[cfg(test)]
mod tests;
