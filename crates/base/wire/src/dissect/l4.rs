//! Text of UDP, TCP, ICMP, ICMPv6 and neighbour discovery.

use core::fmt;

use super::named;
use super::out::{Ip, Next, Out, Over, Step, Stop};
use crate::field;
use crate::icmp4::{Icmp4, Icmp4Type};
use crate::icmp6::{Icmp6, Icmp6Type};
use crate::nd::{NdBody, NdMessage, NdOption};
use crate::tcp::{Tcp, TcpHeader, flag};
use crate::udp::{Udp, UdpHeader};
use crate::{EtherType, Header, IpProto, WireError};

/// Shows the header of a protocol number.
pub(super) fn payload<'a>(out: &mut Out<'_, '_>, proto: IpProto, over: Over<'a>) -> Step<'a> {
    match proto {
        IpProto::UDP => udp(out, &over),
        IpProto::TCP => tcp(out, &over),
        IpProto::ICMP => icmp4(out, &over),
        IpProto::ICMP6 => icmp6(out, &over),
        IpProto::IP4 => Ok(Some(Next::Type(EtherType::IP4, over.payload))),
        IpProto::IP6 => Ok(Some(Next::Type(EtherType::IP6, over.payload))),
        IpProto::GRE | IpProto::ESP | IpProto::AH | IpProto::SCTP => {
            match field::of_protocol(proto) {
                Some(header) => named::transport(out, header, over),
                None => Ok(None),
            }
        }
        IpProto::NO_NEXT if over.payload.len() == 0 => Ok(None),
        _ => {
            out.layer(format_args!("{} bytes", over.payload.len()))?;
            Ok(None)
        }
    }
}

/// The text about a checksum; `right` is called only if the checksum can be checked.
fn checksum(
    out: &mut Out<'_, '_>,
    over: &Over<'_>,
    field: u16,
    right: impl FnOnce() -> bool,
) -> fmt::Result {
    if out.offloaded == Some(over.payload.at) {
        return out.add(format_args!(" checksum offloaded"));
    }
    if over.whole && over.payload.lost == 0 && !right() {
        out.add(format_args!(" bad checksum 0x{field:04x}"))?;
    }
    Ok(())
}

/// A header that cannot be read: the rest of a fragment's header is in other packets.
fn unread<'a>(over: &Over<'_>, error: WireError) -> Step<'a> {
    match over.payload.stop(error) {
        Stop::Bad(error) if !over.whole && error.shortfall().is_some() => Ok(None),
        stop => Err(stop),
    }
}

fn udp<'a>(out: &mut Out<'_, '_>, over: &Over<'a>) -> Step<'a> {
    let bytes = over.payload.bytes;
    let header = match UdpHeader::split(bytes) {
        Ok((header, _)) => header,
        Err(error) => return unread(over, error),
    };
    out.layer(format_args!(
        "ports {} -> {}",
        header.src_port.get(),
        header.dst_port.get()
    ))?;
    let udp = match Udp::parse(bytes) {
        _ if !over.whole => None,
        Ok(udp) => Some(udp),
        Err(error) => match over.payload.stop(error) {
            Stop::Cut => None,
            stop => return Err(stop),
        },
    };
    checksum(out, over, header.checksum.get(), || match over.ip {
        Ip::V4(h) => udp.is_none_or(|udp| udp.checksum_ok4(h.src(), h.dst())),
        Ip::V6(h) => udp.is_none_or(|udp| udp.checksum_ok6(h.src(), h.dst())),
    })?;
    let tunnel = field::of_udp_port(header.dst_port.get()).filter(|_| over.whole);
    Ok(tunnel.map(|header| Next::Named(header, over.payload.after(UdpHeader::LEN))))
}

fn tcp<'a>(out: &mut Out<'_, '_>, over: &Over<'_>) -> Step<'a> {
    let bytes = over.payload.bytes;
    let tcp = Tcp::parse(bytes);
    let h = match (TcpHeader::split(bytes), tcp) {
        (Ok((header, _)), Ok(_)) => header,
        // Only options are missing.
        (Ok((header, _)), Err(error)) if matches!(over.payload.stop(error), Stop::Cut) => header,
        (_, Err(error)) | (Err(error), _) => return unread(over, error),
    };
    out.layer(format_args!(
        "ports {} -> {}",
        h.src_port.get(),
        h.dst_port.get()
    ))?;
    for (bit, name) in flag::NAMES.iter().enumerate() {
        if h.flags >> bit & 1 == 1 {
            out.add(format_args!(" {name}"))?;
        }
    }
    out.add(format_args!(
        " seq {} ack {} win {}",
        h.seq.get(),
        h.ack.get(),
        h.window.get()
    ))?;
    if let Some(mss) = tcp.ok().and_then(|tcp| tcp.mss()) {
        out.add(format_args!(" mss {mss}"))?;
    }
    checksum(out, over, h.checksum.get(), || {
        tcp.is_ok_and(|tcp| tcp.checksum_ok(over.pseudo(IpProto::TCP)))
    })?;
    tcp.map(|_| None).map_err(|_| Stop::Cut)
}

fn icmp4<'a>(out: &mut Out<'_, '_>, over: &Over<'a>) -> Step<'a> {
    let icmp = match Icmp4::parse(over.payload.bytes) {
        Ok(icmp) => icmp,
        Err(error) => return unread(over, error),
    };
    let h = icmp.header;
    out.layer(format_args!("{} code {}", h.kind, h.code))?;
    match h.kind {
        Icmp4Type::ECHO_REQUEST | Icmp4Type::ECHO_REPLY => {
            let (id, seq) = h.echo();
            out.add(format_args!(" id {id} seq {seq}"))?;
        }
        Icmp4Type::UNREACHABLE if h.mtu() != 0 => out.add(format_args!(" mtu {}", h.mtu()))?,
        Icmp4Type::REDIRECT => out.add(format_args!(" gateway {}", h.gateway()))?,
        Icmp4Type::PARAMETER_PROBLEM => out.add(format_args!(" pointer {}", h.pointer()))?,
        _ => {}
    }
    checksum(out, over, h.checksum.get(), || icmp.checksum_ok())?;
    let body = over
        .payload
        .after(over.payload.bytes.len() - icmp.body.len());
    Ok(icmp
        .is_error()
        .then_some(Next::Quoted(EtherType::IP4, body)))
}

fn icmp6<'a>(out: &mut Out<'_, '_>, over: &Over<'a>) -> Step<'a> {
    let icmp = match Icmp6::parse(over.payload.bytes) {
        Ok(icmp) => icmp,
        Err(error) => return unread(over, error),
    };
    let h = icmp.header;
    out.layer(format_args!("{} code {}", h.kind, h.code))?;
    match h.kind {
        Icmp6Type::ECHO_REQUEST | Icmp6Type::ECHO_REPLY => {
            let (id, seq) = h.echo();
            out.add(format_args!(" id {id} seq {seq}"))?;
        }
        Icmp6Type::PACKET_TOO_BIG => out.add(format_args!(" mtu {}", h.word()))?,
        Icmp6Type::PARAMETER_PROBLEM => out.add(format_args!(" pointer {}", h.word()))?,
        _ => {}
    }
    checksum(out, over, h.checksum.get(), || {
        icmp.checksum_ok(over.pseudo(IpProto::ICMP6))
    })?;
    let body = over
        .payload
        .after(over.payload.bytes.len() - icmp.body.len());
    match NdMessage::parse_body(&icmp) {
        Some(Ok(message)) => {
            nd(out, &message)?;
            if let Err(error) = message.check_options() {
                return unread(over, error);
            }
        }
        Some(Err(error)) => return unread(over, error),
        None => {}
    }
    Ok(h.kind
        .is_error()
        .then_some(Next::Quoted(EtherType::IP6, body)))
}

fn nd(out: &mut Out<'_, '_>, message: &NdMessage<'_>) -> fmt::Result {
    match message.body {
        NdBody::RouterSolicitation => {}
        NdBody::RouterAdvertisement {
            hop_limit,
            lifetime_s,
            ..
        } => {
            out.add(format_args!(
                " hop-limit {hop_limit} lifetime {lifetime_s}s"
            ))?;
        }
        NdBody::NeighbourSolicitation { target } => out.add(format_args!(" who-has {target}"))?,
        NdBody::NeighbourAdvertisement { target, flags } => {
            out.add(format_args!(" {target} flags 0x{flags:02x}"))?
        }
        NdBody::Redirect {
            target,
            destination,
        } => out.add(format_args!(" {destination} via {target}"))?,
    }
    for option in message.options().take(8) {
        match option {
            NdOption::SourceMac(mac) => out.add(format_args!(" source {mac}"))?,
            NdOption::TargetMac(mac) => out.add(format_args!(" target {mac}"))?,
            NdOption::Mtu(mtu) => out.add(format_args!(" mtu {mtu}"))?,
            NdOption::Prefix(info) => {
                out.add(format_args!(
                    " prefix {}/{}",
                    core::net::Ipv6Addr::from(info.prefix),
                    info.prefix_len
                ))?;
            }
            NdOption::Redirected(packet) => {
                out.add(format_args!(" about {} bytes", packet.len()))?
            }
            NdOption::Other { kind, .. } => out.add(format_args!(" option {kind}"))?,
        }
    }
    Ok(())
}
