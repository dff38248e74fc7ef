//! Text of headers without dedicated code: names and values from the table of fields, and the header that follows.

use super::out::{Kept, Next, Out, Over, Step, Stop};
use crate::field::{self, Field, HeaderFields};
use crate::{EtherType, IpProto, WireError};

/// PPP protocol numbers (RFC 1332, RFC 5072).
const PPP_IP4: u128 = 0x0021;
const PPP_IP6: u128 = 0x0057;

/// Type of the GTP-U message that carries a user's packet (G-PDU).
const GTPU_DATA: u128 = 255;

/// A transport header from the table of fields; an authentication header is followed by the protocol that it protects.
pub(super) fn transport<'a>(
    out: &mut Out<'_, '_>,
    header: &'static HeaderFields,
    over: Over<'a>,
) -> Step<'a> {
    // The rest of a fragment's header may be in another packet.
    if !over.whole && over.payload.len() < usize::from(header.len) {
        return Ok(None);
    }
    let next = layer(out, header, over.payload)?;
    if *header != field::AH {
        return Ok(next);
    }
    let value = |name| value(header, name, over.payload.bytes);
    let (Some(proto), Some(words)) = (value("next"), value("length")) else {
        return Ok(None);
    };
    let (len, min) = (4 * (words as usize + 2), usize::from(header.len));
    if len < min {
        let what = header.name;
        return Err(Stop::Bad(WireError::LengthBelow { what, len, min }));
    }
    let payload = over.payload.after(len);
    let over = Over { payload, ..over };
    Ok(Some(Next::Transport(IpProto(proto as u8), over)))
}

/// The name of the header, and its fields that are not zero.
pub(super) fn layer<'a>(
    out: &mut Out<'_, '_>,
    header: &'static HeaderFields,
    packet: Kept<'a>,
) -> Step<'a> {
    let (have, need) = (packet.bytes.len(), usize::from(header.len));
    if have < need {
        let what = header.name;
        return Err(packet.stop(WireError::Short { what, need, have }));
    }
    out.layer(format_args!("{}", header.name))?;
    let fields = header.fields.iter();
    for field in fields.filter(|it| it.has_place() && !it.overlaps) {
        match field.read(packet.bytes) {
            Some(value) if value != 0 => put(out, field, value)?,
            _ => {}
        }
    }
    Ok(follows(header, packet))
}

fn put(out: &mut Out<'_, '_>, field: &Field, value: u128) -> core::fmt::Result {
    match field.name {
        "type" | "proto" | "flags" | "checksum" | "spi" | "teid" => {
            out.add(format_args!(" {} 0x{value:x}", field.name))
        }
        name => out.add(format_args!(" {name} {value}")),
    }
}

fn value(header: &HeaderFields, name: &str, bytes: &[u8]) -> Option<u128> {
    header.field(name)?.read(bytes)
}

/// The header behind a header; none where the table does not define it.
fn follows<'a>(header: &HeaderFields, packet: Kept<'a>) -> Option<Next<'a>> {
    let value = |name| value(header, name, packet.bytes).unwrap_or_default();
    let behind = packet.after(usize::from(header.len));
    let of_type = |bytes: Kept<'a>| match EtherType::new(value("type") as u16) {
        EtherType::TEB => Next::Ethernet(bytes),
        other => Next::Type(other, bytes),
    };
    Some(match header.name {
        "mpls" if value("bottom") == 0 => Next::Type(EtherType::MPLS, behind),
        // The first four bits are the version of IP; a pseudowire has other values (RFC 4928).
        "mpls" => match behind.bytes.first()? >> 4 {
            4 | 6 => Next::ip(behind),
            _ => return None,
        },
        "pppoe" => match value("proto") {
            PPP_IP4 => Next::Type(EtherType::IP4, behind),
            PPP_IP6 => Next::Type(EtherType::IP6, behind),
            _ => return None,
        },
        // Each of checksum, key and sequence number takes 4 bytes (RFC 2890, 2). Version 1 is another header (RFC 2637).
        "gre" if value("version") == 0 => {
            let words = value("c") + value("k") + value("s");
            of_type(behind.after(4 * words as usize))
        }
        "vxlan" => Next::Ethernet(behind),
        "geneve" => of_type(behind.after(4 * value("length") as usize)),
        // With a flag in the last three bits of the first byte, 4 bytes and perhaps extension headers follow.
        "gtpu" if value("type") == GTPU_DATA && packet.bytes.first()? & 7 == 0 => Next::ip(behind),
        _ => return None,
    })
}
