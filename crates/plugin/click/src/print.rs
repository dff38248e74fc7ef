//! The lines of Print and IPPrint.

use crate::packet::{ICMP, TCP, UDP, dst, is_first, protocol, src, u16_at};
use std::fmt::Write;
use std::net::Ipv4Addr;
use volley_pcap::spool::Record;

/// How a packet is printed.
#[derive(Clone, Debug)]
pub struct Style {
    /// In front of the line.
    pub label: String,
    /// Bytes that are shown, in hexadecimal digits.
    pub bytes: usize,
    /// As a packet of IP.
    pub is_ip: bool,
}

impl Style {
    /// The line of a packet.
    pub fn line(&self, record: &Record) -> String {
        line(self, record)
    }
}

fn line(style: &Style, record: &Record) -> String {
    let mut line = match style.label.as_str() {
        "" => String::new(),
        label => format!("{label}: "),
    };
    match style.is_ip {
        true => line += &ip(record.len as usize, &record.bytes),
        false => {
            line += &hexadecimal(
                record.len as usize,
                &record.bytes[..record.bytes.len().min(style.bytes)],
            )
        }
    }
    line
}

fn hexadecimal(len: usize, bytes: &[u8]) -> String {
    let mut line = format!("{len:4} |");
    for (i, byte) in bytes.iter().enumerate() {
        let space = if i % 4 == 0 { " " } else { "" };
        // Writing to a string does not fail.
        let _ = write!(line, "{space}{byte:02x}");
    }
    line
}

/// `10.0.0.1.5 > 10.0.0.2.53: udp 20`
fn ip(len: usize, bytes: &[u8]) -> String {
    let header = usize::from(bytes.first().copied().unwrap_or(0) & 15) * 4;
    if header < 20 || bytes.len() < header || bytes[0] >> 4 != 4 {
        return format!("no IPv4 header, {len} bytes");
    }
    let (from, to) = (
        Ipv4Addr::from_bits(src(bytes)),
        Ipv4Addr::from_bits(dst(bytes)),
    );
    let payload = usize::from(u16_at(bytes, 2)).saturating_sub(header);
    let ports = match is_first(bytes) && [TCP, UDP].contains(&protocol(bytes)) {
        true => Some((u16_at(bytes, header), u16_at(bytes, header + 2))),
        false => None,
    };
    let name = match protocol(bytes) {
        ICMP => "icmp".to_owned(),
        TCP => "tcp".to_owned(),
        UDP => "udp".to_owned(),
        other => format!("protocol {other}"),
    };
    match ports {
        Some((source, target)) => format!("{from}.{source} > {to}.{target}: {name} {payload}"),
        None if !is_first(bytes) => format!("{from} > {to}: {name} fragment {payload}"),
        None => format!("{from} > {to}: {name} {payload}"),
    }
}
