//! The state that a dissection passes from header to header, and its output.

use core::fmt;

use crate::checksum::Sum;
use crate::field::HeaderFields;
use crate::ip4::Ip4Header;
use crate::ip6::Ip6Header;
use crate::{EtherType, IpProto, WireError};

/// A part of the packet: its available bytes, and the number of its missing bytes.
#[derive(Clone, Copy)]
pub(super) struct Kept<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) lost: usize,
    /// The offset from the packet's start.
    pub(super) at: usize,
}

impl<'a> Kept<'a> {
    /// The length of the part in the whole packet.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.lost
    }

    /// The part without its first `n` bytes.
    pub(super) fn after(self, n: usize) -> Kept<'a> {
        let gone = n.saturating_sub(self.bytes.len());
        Kept {
            bytes: self.bytes.get(n..).unwrap_or(&[]),
            lost: self.lost.saturating_sub(gone),
            at: self.at + n,
        }
    }

    /// The first `n` bytes of the part.
    pub(super) fn first(self, n: usize) -> Kept<'a> {
        let bytes = self.bytes.get(..n).unwrap_or(self.bytes);
        Kept {
            bytes,
            lost: self.lost.min(n - bytes.len().min(n)),
            ..self
        }
    }

    /// Why a header cannot be read: its bytes are missing, or the packet is wrong.
    pub(super) fn stop(&self, error: WireError) -> Stop {
        match error.shortfall() {
            Some(bytes) if bytes <= self.lost => Stop::Cut,
            _ => Stop::Bad(error.with_more(self.lost)),
        }
    }
}

/// The next header.
pub(super) enum Next<'a> {
    Ethernet(Kept<'a>),
    Type(EtherType, Kept<'a>),
    /// A transport header, and the data of the IP header in front of it.
    Transport(IpProto, Over<'a>),
    /// A packet quoted by an ICMP error: usually truncated.
    Quoted(EtherType, Kept<'a>),
    /// A header whose text comes from the table of fields.
    Named(&'static HeaderFields, Kept<'a>),
}

impl<'a> Next<'a> {
    pub(super) fn ip(all: Kept<'a>) -> Self {
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
pub(super) enum Stop {
    /// The packet is wrong.
    Bad(WireError),
    /// The next header is incomplete.
    Cut,
    Fmt,
}

impl core::convert::From<fmt::Error> for Stop {
    fn from(_: fmt::Error) -> Self {
        Stop::Fmt
    }
}

pub(super) type Step<'a> = Result<Option<Next<'a>>, Stop>;

/// The output of the layers.
pub(super) struct Out<'f, 'g> {
    pub(super) f: &'f mut fmt::Formatter<'g>,
    pub(super) separator: &'static str,
    pub(super) layers: usize,
    /// The start of the checksum that is still to be completed.
    pub(super) offloaded: Option<usize>,
}

impl Out<'_, '_> {
    /// Starts a layer.
    pub(super) fn layer(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        if self.layers > 0 {
            self.f.write_str(self.separator)?;
        }
        self.layers += 1;
        self.f.write_fmt(text)
    }

    /// Adds to the last layer.
    pub(super) fn add(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        self.f.write_fmt(text)
    }

    /// Ends the text at the end of the available bytes.
    pub(super) fn cut(&mut self, kept: usize, len: usize) -> fmt::Result {
        match self.layers {
            0 => self.layer(format_args!("({kept} of {len} bytes kept)")),
            _ => self.add(format_args!(" ({kept} of {len} bytes kept)")),
        }
    }
}

/// An IP payload, and the data of the IP header for its checksum.
#[derive(Clone, Copy)]
pub(super) struct Over<'a> {
    pub(super) payload: Kept<'a>,
    pub(super) ip: Ip<'a>,
    /// The whole message is in this packet and its destination is that of the header: lengths and checksums can be checked.
    pub(super) whole: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Ip<'a> {
    V4(&'a Ip4Header),
    V6(&'a Ip6Header),
}

impl<'a> Over<'a> {
    pub(super) fn ip4(header: &'a Ip4Header, payload: Kept<'a>, whole: bool) -> Self {
        Over {
            payload,
            ip: Ip::V4(header),
            whole,
        }
    }

    pub(super) fn ip6(header: &'a Ip6Header, payload: Kept<'a>, whole: bool) -> Self {
        Over {
            payload,
            ip: Ip::V6(header),
            whole,
        }
    }

    pub(super) fn pseudo(&self, proto: IpProto) -> Sum {
        let len = self.payload.len();
        match self.ip {
            Ip::V4(h) => Sum::pseudo4(
                h.src(),
                h.dst(),
                proto,
                u16::try_from(len).unwrap_or(u16::MAX),
            ),
            Ip::V6(h) => h.pseudo(proto, len),
        }
    }
}
