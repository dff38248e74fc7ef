//! IPGWOptions: what a gateway does with options (RFC 1812, 4.2.2.6 and 5.3.13): record route and timestamp.

use crate::arguments::{plain_words, prefix};
use crate::columns::{self, POINTER_SHIFT};
use crate::element::{Each, Fast, Made, Reason, Verdict};
use crate::packet::{Ip, fill_checksum, put, u32_at};
use crate::spec::Need::{Optional, Required};
use crate::spec::{Kind, Spec, argument};
use std::sync::Arc;
use volley_graph::Packet;
use volley_wire::ip4::option::{RECORD_ROUTE, TIMESTAMP};

#[derive(Clone)]
struct GatewayOptions {
    /// The address that is recorded comes first.
    own: Arc<[u32]>,
}

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

impl GatewayOptions {
    /// Change options; an error is the place of the fault in the header.
    fn walk(&self, header: &mut [u8], now_ms: u32) -> Result<bool, usize> {
        let mut at = 20;
        let mut changed = false;
        while at < header.len() {
            let kind = header[at];
            match kind {
                0 => break,
                1 => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let len = usize::from(*header.get(at + 1).ok_or(at)?);
            if len < 2 || at + len > header.len() {
                return Err(at + 1);
            }
            let option = &mut header[at..at + len];
            match kind {
                RECORD_ROUTE => changed |= self.record(option).map_err(|bad| at + bad)?,
                TIMESTAMP => changed |= self.stamp(option, now_ms).map_err(|bad| at + bad)?,
                _ => {}
            }
            at += len;
        }
        Ok(changed)
    }

    fn record(&self, option: &mut [u8]) -> Result<bool, usize> {
        let pointer = usize::from(*option.get(2).ok_or(1usize)?);
        if pointer < 4 {
            return Err(2);
        }
        if pointer > option.len() {
            return Ok(false);
        }
        if pointer + 3 > option.len() {
            return Err(2);
        }
        put(option, pointer - 1, &self.own[0].to_be_bytes());
        option[2] = (pointer + 4) as u8;
        Ok(true)
    }

    fn stamp(&self, option: &mut [u8], now_ms: u32) -> Result<bool, usize> {
        let (pointer, flags) = match option {
            [_, _, pointer, flags, ..] => (usize::from(*pointer), *flags & 15),
            _ => return Err(1),
        };
        if pointer < 5 {
            return Err(2);
        }
        let size = if flags == 0 { 4 } else { 8 };
        if pointer > option.len() {
            // No room: the overflow is counted.
            return match option[3] >> 4 {
                15 => Err(2),
                _ => {
                    option[3] += 0x10;
                    Ok(true)
                }
            };
        }
        if pointer - 1 + size > option.len() {
            return Err(2);
        }
        let place = pointer - 1;
        match flags {
            0 => put(option, place, &now_ms.to_be_bytes()),
            1 => {
                put(option, place, &self.own[0].to_be_bytes());
                put(option, place + 4, &now_ms.to_be_bytes());
            }
            3 if self.own.contains(&u32_at(option, place)) => {
                put(option, place + 4, &now_ms.to_be_bytes());
            }
            3 => return Ok(false),
            _ => return Err(3),
        }
        option[2] = (pointer + size) as u8;
        Ok(true)
    }
}

impl Each for GatewayOptions {
    fn fast(&self) -> Fast {
        Fast::Plain
    }

    fn packet(&mut self, packet: &mut Packet<'_>, now_ns: u64) -> Verdict {
        let Some(ip) = Ip::of(&packet.view()) else {
            return Verdict::drop(Reason::NoIpHeader);
        };
        if ip.header == 20 {
            return Verdict::port(0);
        }
        // The clock of a worker is not universal time: RFC 791 marks such values by the highest bit.
        let now_ms = (now_ns / 1_000_000 % DAY_MS) as u32 | 1 << 31;
        let header = &mut packet.bytes_mut()[ip.at..ip.at + ip.header];
        match self.walk(header, now_ms) {
            Ok(changed) => {
                if changed {
                    fill_checksum(header, ip.header);
                }
                Verdict::port(0)
            }
            Err(pointer) => {
                let mask = 0xff << POINTER_SHIFT;
                columns::set_note(packet, mask, (pointer as u32) << POINTER_SHIFT);
                Verdict::port_or(1, Reason::BadOptions)
            }
        }
    }
}

pub(super) const SPEC: Spec = Spec {
    name: "IPGWOptions",
    ports: "1/1-2",
    modes: "a/ah",
    arguments: &[
        argument(
            Required,
            "MYADDR",
            Kind::Address,
            "address that is recorded",
        ),
        argument(
            Optional,
            "OTHERADDRS",
            Kind::Words,
            "further addresses of the router",
        ),
    ],
    handlers: &[],
    text: "Fills in the options record route and timestamp; packets with wrong options go to output 1.",
    make: |arguments, _| {
        let mut own = vec![arguments.address("MYADDR").unwrap_or(0)];
        for word in plain_words(arguments.text("OTHERADDRS").unwrap_or_default()) {
            let (address, _) = prefix(&word)
                .ok_or_else(|| format!("'{word}' is not an IPv4 address: correct OTHERADDRS"))?;
            own.push(address);
        }
        Ok(Made::each(GatewayOptions { own: own.into() }))
    },
};
