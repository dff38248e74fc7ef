//! A packet's headers as text: one line (packet traces, drop traces) or one line per layer.
//!
//! Contract: any bytes result in a text, never in a panic; a fault is reported where it is found and ends the text. At most
//! [`MAX_LAYERS`] headers are shown, so the length is bounded for any bytes. Checksums are shown only when they are wrong.
//! If only the first bytes of a packet are available ([`Dissect::of`]), length fields are compared with the length of the whole
//! packet, an incomplete header ends the text with `(80 of 1514 bytes kept)`, and a checksum over missing bytes is not
//! checked. A checksum that the device has still to complete ([`Dissect::offloaded`]) is shown as such.
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

/// The maximum number of headers that are shown.
pub const MAX_LAYERS: usize = 16;

/// The type of a packet's first header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// An Ethernet header.
    Ethernet,
    /// An IP header of either version.
    Ip,
    /// The header of this EtherType.
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
    /// Sets the length of the whole packet, of which only the first bytes are available.
    pub fn of(self, len: usize) -> Self {
        Dissect {
            len: len.max(self.bytes.len()),
            ..self
        }
    }

    /// Sets the start of a checksum that is still to be completed (a partial checksum, as in virtio).
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
