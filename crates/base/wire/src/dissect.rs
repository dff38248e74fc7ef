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
mod named;
mod out;

use alloc::string::String;
use core::fmt::{self, Display};

use crate::EtherType;
use out::{Kept, Next, Out, Step, Stop};

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
            next = match step(&mut out, next) {
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

/// The next header.
fn step<'a>(out: &mut Out<'_, '_>, next: Next<'a>) -> Step<'a> {
    match next {
        Next::Ethernet(frame) => l2::ethernet(out, frame),
        Next::Type(ether_type, packet) => l3::payload(out, ether_type, packet),
        Next::Transport(proto, over) => l4::payload(out, proto, over),
        Next::Quoted(ether_type, packet) => l3::quoted(out, ether_type, packet),
        Next::Named(header, packet) => named::layer(out, header, packet),
    }
}

#[cfg(test)]
mod tests;
