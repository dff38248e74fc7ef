//! Conversion of offload requests to DPDK's form: header lengths instead of offsets.

use crate::sys::{IP4, IP6, Outgoing, TCP, UDP};
use volley_graph::Offload;
use volley_iface::GsoProtocol;
use volley_wire::ethertype;

/// Offset of the checksum in a TCP and in a UDP header.
const TCP_SUM: u16 = 16;
const UDP_SUM: u16 = 6;

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([word[0], word[1]]))
}

/// The request for a packet that begins with `first`. `None` if DPDK's form cannot express it.
#[inline(always)]
pub(crate) fn plan(first: &[u8], offload: &Offload) -> Option<Outgoing> {
    if *offload == Offload::NONE {
        return Some(Outgoing::default());
    }
    planned(first, offload)
}

fn planned(first: &[u8], offload: &Offload) -> Option<Outgoing> {
    let mut l2 = 14;
    let mut kind = be16(first, 12)?;
    while ethertype::is_tag(kind) && l2 < 22 {
        kind = be16(first, l2 + 2)?;
        l2 += 4;
    }
    let (ip, fixed) = match kind {
        ethertype::IP4 => (IP4, usize::from(first.get(l2)? & 15) * 4),
        ethertype::IP6 => (IP6, 40),
        _ => return None,
    };
    let start = offload
        .checksum
        .map_or(l2 + fixed, |sum| usize::from(sum.start));
    let l3 = start
        .checked_sub(l2)
        .filter(|&l3| (20..512).contains(&l3))?;
    let wants = match (offload.gso, offload.checksum.map(|sum| sum.offset)) {
        (Some(gso), None | Some(TCP_SUM)) if GsoProtocol::from(gso.kind) != GsoProtocol::Udp => TCP,
        (None, Some(TCP_SUM)) => TCP,
        (None, Some(UDP_SUM)) => UDP,
        _ => return None,
    };
    let l4 = match offload.gso {
        None => 0,
        Some(gso) => usize::from(gso.headers)
            .checked_sub(start)
            .filter(|l4| (20..=60).contains(l4))?,
    };
    Some(Outgoing {
        segments: 0,
        l2: l2 as u16,
        l3: l3 as u16,
        l4: l4 as u16,
        gso: offload.gso.map_or(0, |gso| gso.size),
        wants: wants | ip,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_graph::{Checksum, Gso};

    fn packet(tags: usize, ethertype: u16) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        for _ in 0..tags {
            bytes.extend([0x81, 0, 0, 5]);
        }
        bytes.extend(ethertype.to_be_bytes());
        bytes.push(if ethertype == 0x0800 { 0x45 } else { 0x60 });
        bytes.resize(bytes.len() + 80, 0);
        bytes
    }

    fn sum(start: u16, offset: u16) -> Offload {
        Offload {
            checksum: Some(Checksum { start, offset }),
            gso: None,
        }
    }

    fn order(l2: u16, l3: u16, l4: u16, gso: u16, wants: u16) -> Option<Outgoing> {
        Some(Outgoing {
            segments: 0,
            l2,
            l3,
            l4,
            gso,
            wants,
        })
    }

    #[test]
    fn checksums_become_lengths_of_headers() {
        let four = packet(0, 0x0800);
        assert_eq!(plan(&four, &Offload::NONE), Some(Outgoing::default()));
        assert_eq!(plan(&four, &sum(34, 16)), order(14, 20, 0, 0, TCP | IP4));
        let six = packet(2, 0x86dd);
        assert_eq!(plan(&six, &sum(62, 6)), order(22, 40, 0, 0, UDP | IP6));
        assert_eq!(plan(&six, &sum(70, 6)), order(22, 48, 0, 0, UDP | IP6));
    }

    #[test]
    fn segments_too() {
        let gso = |protocol: GsoProtocol, checksum| Offload {
            checksum,
            gso: Some(Gso {
                kind: protocol.into(),
                size: 1448,
                headers: 66,
            }),
        };
        let four = packet(0, 0x0800);
        let checksum = Some(Checksum {
            start: 34,
            offset: 16,
        });
        let all = order(14, 20, 32, 1448, TCP | IP4);
        assert_eq!(plan(&four, &gso(GsoProtocol::Tcp4, checksum)), all);
        assert_eq!(plan(&four, &gso(GsoProtocol::Tcp4, None)), all);
        assert_eq!(plan(&four, &gso(GsoProtocol::Udp, None)), None);
    }

    #[test]
    fn what_no_port_is_told_is_said() {
        assert_eq!(plan(&packet(0, 0x0800), &sum(34, 8)), None, "SCTP");
        assert_eq!(plan(&packet(0, 0x88b5), &sum(34, 16)), None);
        assert_eq!(plan(&packet(0, 0x0800), &sum(20, 16)), None);
        assert_eq!(plan(&[0; 13], &sum(34, 16)), None);
    }
}
