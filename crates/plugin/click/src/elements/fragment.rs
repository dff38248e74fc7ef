//! IPFragmenter (RFC 791, 3.2).

use crate::columns;
use crate::element::{Build, Emit, Fast, Made, PacketAction, Reason, Verdict};
use crate::packet::{Ip, fill_checksum, put, u16_at};
use crate::spec::Need::{Keyword, Optional, Required};
use crate::spec::{Kind, Spec, argument};
use volley_graph::Packet;
use volley_wire::ip4::{FLAG_DONT_FRAGMENT, FLAG_MORE_FRAGMENTS};

/// Offset of a fragment, in units of 8 bytes.
const OFFSET: u16 = 0x1fff;

#[derive(Clone)]
struct Fragmenter {
    mtu: usize,
    honour_df: bool,
}

/// Options of the first header that the other fragments have too: those with the copied flag. Returns their length, a multiple
/// of 4.
fn copied(options: &[u8], to: &mut [u8; 40]) -> usize {
    let (mut at, mut len) = (0, 0);
    while at < options.len() {
        let size = match options[at] {
            0 => break,
            1 => 1,
            _ => usize::from(options.get(at + 1).copied().unwrap_or(0)),
        };
        let Some(option) = options.get(at..at + size).filter(|_| size > 0) else {
            break;
        };
        if option[0] & 0x80 != 0 {
            put(to, len, option);
            len += size;
        }
        at += size;
    }
    len.next_multiple_of(4).min(40)
}

impl Fragmenter {
    /// Make the fragments. Returns false when there is no buffer for one.
    fn split(&self, packet: &mut Packet<'_>, ip: Ip, to: &mut dyn Emit) -> bool {
        let mut first = [0; 60];
        put(&mut first, 0, ip.bytes(packet.bytes()));
        let mut later = [0; 60];
        put(&mut later, 0, &first[..20]);
        let mut options = [0; 40];
        let kept = copied(&first[20..ip.header], &mut options);
        put(&mut later, 20, &options[..kept]);
        later[0] = 0x40 | (5 + kept / 4) as u8;
        let word = u16_at(&first, 6);
        let (begin, more) = (usize::from(word & OFFSET), word & FLAG_MORE_FRAGMENTS);
        let payload = ip.total - ip.header;
        let mut done = 0;
        while done < payload {
            let (header, size) = match done {
                0 => (&mut first, ip.header),
                _ => (&mut later, 20 + kept),
            };
            let room = (self.mtu - size) & !7;
            let part = room.min(payload - done);
            let last = done + part == payload;
            let flags = if last { more } else { FLAG_MORE_FRAGMENTS };
            let place = flags | ((begin + done / 8) as u16 & OFFSET);
            put(header, 2, &((size + part) as u16).to_be_bytes());
            put(header, 6, &place.to_be_bytes());
            fill_checksum(header, size);
            let data = Part {
                skip: ip.at + ip.header + done,
                len: part,
            };
            let mut body = [0u8; 2048];
            data.read(packet, &mut body);
            let made = to.build(packet, 0, (size + part, 0), &mut |bytes| {
                put(bytes, 0, &header[..size]);
                put(bytes, size, &body[..part]);
            });
            if !made {
                return false;
            }
            done += part;
        }
        true
    }
}

/// Bytes of a packet, which may be in several buffers.
struct Part {
    skip: usize,
    len: usize,
}

impl Part {
    fn read(&self, packet: &Packet<'_>, to: &mut [u8]) {
        let (mut skip, mut at) = (self.skip, 0);
        for slice in packet.view().slices() {
            let from = skip.min(slice.len());
            skip -= from;
            let slice = &slice[from..];
            let n = slice.len().min(self.len - at);
            put(to, at, &slice[..n]);
            at += n;
        }
    }
}

impl Build for Fragmenter {
    fn fast(&self) -> Fast {
        Fast::AtMost(self.mtu as u32)
    }

    fn packet(&mut self, packet: &mut Packet<'_>, to: &mut dyn Emit, _: u64) -> PacketAction {
        let Some(ip) = Ip::of(&packet.view()) else {
            return PacketAction::Go(Verdict::drop(Reason::NoIpHeader));
        };
        if ip.total <= self.mtu {
            return PacketAction::Go(Verdict::port(0));
        }
        let flags = u16_at(packet.bytes(), ip.at + 6);
        if self.honour_df && flags & FLAG_DONT_FRAGMENT != 0 {
            return PacketAction::Go(Verdict::port_or(1, Reason::MustFragment));
        }
        if self.mtu < ip.header + 8 {
            return PacketAction::Go(Verdict::port_or(1, Reason::MustFragment));
        }
        columns::set_net(packet, ip.at);
        match self.split(packet, ip, to) {
            true => PacketAction::Replaced,
            false => PacketAction::Go(Verdict::drop(Reason::NoBuffer)),
        }
    }
}

pub(super) const SPEC: Spec = Spec {
    name: "IPFragmenter",
    ports: "1/1-2",
    modes: "h/h",
    arguments: &[
        argument(
            Required,
            "MTU",
            Kind::Number(28, 2048),
            "the longest packet of IP, in bytes",
        ),
        argument(
            Optional,
            "HONOR_DF",
            Kind::Bool,
            "whether the flag DF is obeyed, true by default",
        ),
        argument(Keyword, "VERBOSE", Kind::Bool, "accepted and ignored"),
        argument(
            Keyword,
            "HEADROOM",
            Kind::Number(0, u64::MAX),
            "accepted and ignored",
        ),
    ],
    handlers: &[],
    text: "Divides longer packets into fragments; those with the flag DF go to output 1.",
    make: |arguments, _| {
        Ok(Made::build(Fragmenter {
            mtu: arguments.number("MTU").unwrap_or(1500) as usize,
            honour_df: arguments.flag("HONOR_DF").unwrap_or(true),
        }))
    },
};
