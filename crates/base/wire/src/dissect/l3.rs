//! Text of ARP, IPv4 and IPv6.

use core::fmt;

use super::named;
use super::out::{Kept, Next, Out, Over, Step, Stop};
use crate::arp::{self, ArpPacket};
use crate::field;
use crate::ip4::{Ip4, Ip4Header, option};
use crate::ip6::{Ip6, Ip6Header};
use crate::ip6_ext::{Ext, Extensions};
use crate::{EtherType, Header, IpProto, WireError};

/// Shows the header of an EtherType.
pub(super) fn payload<'a>(
    out: &mut Out<'_, '_>,
    ether_type: EtherType,
    packet: Kept<'a>,
) -> Step<'a> {
    match ether_type {
        EtherType::ARP => arp(out, packet),
        EtherType::IP4 => ip4(out, packet),
        EtherType::IP6 => ip6(out, packet),
        _ => match field::of_ether_type(ether_type) {
            Some(header) => named::layer(out, header, packet),
            None => {
                out.layer(format_args!("{} bytes", packet.len()))?;
                Ok(None)
            }
        },
    }
}

fn arp<'a>(out: &mut Out<'_, '_>, packet: Kept<'_>) -> Step<'a> {
    let arp = ArpPacket::parse(packet.bytes).map_err(|e| packet.stop(e))?;
    let (sender, target) = (arp.sender_ip(), arp.target_ip());
    match arp.operation.get() {
        arp::REQUEST => out.layer(format_args!("request who-has {target} tell {sender}"))?,
        arp::REPLY => out.layer(format_args!("reply {sender} is-at {}", arp.sender_mac))?,
        other => out.layer(format_args!("operation {other} {sender} -> {target}"))?,
    }
    Ok(None)
}

/// Shows the readable part of a header, followed by the header's fault.
fn tell_fault(out: &mut Out<'_, '_>, reported: fmt::Arguments<'_>, error: WireError) -> Stop {
    match out.layer(reported) {
        Ok(()) => Stop::Bad(error),
        Err(error) => error.into(),
    }
}

/// Compares the header's lengths with the length of the packet.
fn lengths4(header: &Ip4Header, have: usize) -> Result<(), WireError> {
    let (head, total) = (header.header_len(), usize::from(header.total_len.get()));
    let below = |what, len, min| Err(WireError::LengthBelow { what, len, min });
    match (header.version(), head, total) {
        (4, ..Ip4Header::LEN, _) => below("IPv4 header", head, Ip4Header::LEN),
        (4, ..) if total < head => below("IPv4 total", total, head),
        (4, ..) if total > have => Err(WireError::LengthBeyond {
            what: "IPv4 total",
            len: total,
            have,
        }),
        (4, ..) => Ok(()),
        (version, ..) => Err(WireError::Version {
            what: "IPv4",
            version,
        }),
    }
}

fn ip4<'a>(out: &mut Out<'_, '_>, packet: Kept<'a>) -> Step<'a> {
    let (header, _) = Ip4Header::split(packet.bytes).map_err(|e| packet.stop(e))?;
    if let Err(error) = lengths4(header, packet.len()) {
        if matches!(error, WireError::Version { .. }) {
            return Err(Stop::Bad(error));
        }
        let reported = format_args!(
            "{} {} -> {} ttl {}",
            header.protocol,
            header.src(),
            header.dst(),
            header.ttl
        );
        return Err(tell_fault(out, reported, error));
    }
    ip4_line(out, header)?;
    let packet = packet.first(usize::from(header.total_len.get()));
    let Some(options) = packet.bytes.get(Ip4Header::LEN..header.header_len()) else {
        return Err(Stop::Cut);
    };
    let payload = packet.after(header.header_len());
    let ip = Ip4 {
        header,
        options,
        payload: payload.bytes,
        trailer: &[],
    };
    if !ip.options.is_empty() {
        out.add(format_args!(" options"))?;
        ip4_options(out, &ip)?;
    }
    if !ip.checksum_ok() {
        out.add(format_args!(
            " bad header checksum 0x{:04x}",
            header.checksum.get()
        ))?;
    }
    if !ip.has_transport_header() {
        return Ok(None);
    }
    let whole = !header.is_fragment();
    Ok(Some(Next::Transport(
        header.protocol,
        Over::ip4(header, payload, whole),
    )))
}

/// `UDP 10.0.0.1 -> 10.1.0.1 ttl 64 len 46 ...`
fn ip4_line(out: &mut Out<'_, '_>, header: &Ip4Header) -> fmt::Result {
    let (proto, src, dst) = (header.protocol, header.src(), header.dst());
    out.layer(format_args!(
        "{proto} {src} -> {dst} ttl {} len {}",
        header.ttl,
        header.total_len.get()
    ))?;
    if header.tos != 0 {
        out.add(format_args!(" tos 0x{:02x}", header.tos))?;
    }
    if header.dont_fragment() {
        out.add(format_args!(" DF"))?;
    }
    if header.is_fragment() {
        let more = if header.more_fragments() { " more" } else { "" };
        out.add(format_args!(
            " fragment id {} offset {}{more}",
            header.id.get(),
            header.fragment_offset()
        ))?;
    }
    Ok(())
}

fn ip4_options(out: &mut Out<'_, '_>, ip: &Ip4<'_>) -> Result<(), Stop> {
    for found in ip.options() {
        match found.map_err(Stop::Bad)?.kind {
            option::RECORD_ROUTE => out.add(format_args!(" record-route"))?,
            option::TIMESTAMP => out.add(format_args!(" timestamp"))?,
            option::LOOSE_SOURCE_ROUTE => out.add(format_args!(" loose-source-route"))?,
            option::STRICT_SOURCE_ROUTE => out.add(format_args!(" strict-source-route"))?,
            option::ROUTER_ALERT => out.add(format_args!(" router-alert"))?,
            other => out.add(format_args!(" {other}"))?,
        }
    }
    Ok(())
}

fn ip6<'a>(out: &mut Out<'_, '_>, packet: Kept<'a>) -> Step<'a> {
    let (header, _) = Ip6Header::split(packet.bytes).map_err(|e| packet.stop(e))?;
    let hops = header.hop_limit;
    if header.version() != 6 {
        return Err(Stop::Bad(WireError::Version {
            what: "IPv6",
            version: header.version(),
        }));
    }
    let (behind, len) = (
        packet.after(Ip6Header::LEN),
        usize::from(header.payload_len.get()),
    );
    if len > behind.len() {
        let reported = format_args!(
            "{} {} -> {} hop-limit {hops}",
            header.next_header,
            header.src(),
            header.dst()
        );
        let error = WireError::LengthBeyond {
            what: "IPv6 payload",
            len,
            have: behind.len(),
        };
        return Err(tell_fault(out, reported, error));
    }
    let payload = behind.first(len);
    let ip = Ip6 {
        header,
        payload: payload.bytes,
        trailer: &[],
    };
    let upper = ip.upper();
    let proto = upper.map_or(header.next_header, |upper| upper.proto);
    let (src, dst) = (header.src(), header.dst());
    out.layer(format_args!(
        "{proto} {src} -> {dst} hop-limit {hops} len {len}"
    ))?;
    if header.traffic_class() != 0 {
        out.add(format_args!(" class 0x{:02x}", header.traffic_class()))?;
    }
    if header.flow_label() != 0 {
        out.add(format_args!(" flow 0x{:05x}", header.flow_label()))?;
    }
    extensions(out, ip.extensions(), payload)?;
    let upper = upper.map_err(|e| payload.stop(e))?;
    if !upper.has_transport_header() {
        return Ok(None);
    }
    let routed = ip
        .extensions()
        .flatten()
        .any(|e| e.routing().is_some_and(|r| r.segments_left > 0));
    let whole = upper.fragment.is_none_or(|f| !f.more()) && !routed;
    Ok(Some(Next::Transport(
        upper.proto,
        Over::ip6(header, payload.after(upper.offset), whole),
    )))
}

fn extensions(out: &mut Out<'_, '_>, walk: Extensions<'_>, payload: Kept<'_>) -> Result<(), Stop> {
    for (n, ext) in walk.enumerate() {
        if n == 16 {
            out.add(format_args!(" and more extension headers"))?;
            return Ok(());
        }
        extension(out, &ext.map_err(|e| payload.stop(e))?)?;
    }
    Ok(())
}

fn extension(out: &mut Out<'_, '_>, ext: &Ext<'_>) -> fmt::Result {
    out.add(format_args!(" [{}", ext.kind))?;
    if let Some(fragment) = ext.fragment() {
        let more = if fragment.more() { " more" } else { "" };
        out.add(format_args!(
            " id {} offset {}{more}",
            fragment.id.get(),
            fragment.offset()
        ))?;
    }
    if let Some(routing) = ext.routing() {
        out.add(format_args!(
            " type {} left {}",
            routing.routing_type, routing.segments_left
        ))?;
    }
    out.add(format_args!("]"))
}

/// The header of a packet that an ICMP error quotes; its lengths are those of the original packet, not of the quoted bytes.
pub(super) fn quoted<'a>(
    out: &mut Out<'_, '_>,
    ether_type: EtherType,
    packet: Kept<'a>,
) -> Step<'a> {
    let bytes = packet.bytes;
    if packet.len() == 0 {
        return Ok(None);
    }
    match (ether_type, Ip4Header::split(bytes), Ip6Header::split(bytes)) {
        (EtherType::IP4, Ok((h, rest)), _) => {
            out.layer(format_args!(
                "quoted {} {} -> {} ttl {}",
                h.protocol,
                h.src(),
                h.dst(),
                h.ttl
            ))?;
            let options = h.header_len().saturating_sub(Ip4Header::LEN);
            quoted_ports(out, h.protocol, rest.get(options..))
        }
        (EtherType::IP6, _, Ok((h, rest))) => {
            let (proto, hops) = (h.next_header, h.hop_limit);
            out.layer(format_args!(
                "quoted {proto} {} -> {} hop-limit {hops}",
                h.src(),
                h.dst()
            ))?;
            quoted_ports(out, proto, Some(rest))
        }
        _ if packet.lost > 0 => Err(Stop::Cut),
        _ => {
            out.layer(format_args!("quoted {} bytes", bytes.len()))?;
            Ok(None)
        }
    }
}

fn quoted_ports<'a>(out: &mut Out<'_, '_>, proto: IpProto, bytes: Option<&[u8]>) -> Step<'a> {
    if let (IpProto::UDP | IpProto::TCP, Some([a, b, c, d, ..])) = (proto, bytes) {
        let (src, dst) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
        out.add(format_args!(" ports {src} -> {dst}"))?;
    }
    Ok(None)
}
