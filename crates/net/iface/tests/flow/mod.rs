//! A TCP or UDP flow whose packets can be built as one super-segment, segment by segment, and in the form that a kernel sends.

use proptest::prelude::*;
use volley_graph::Offload;
use volley_iface::virtio::{GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CSUM, VirtioNetHdr};
use volley_wire::MacAddr;
use volley_wire::build::Packet as Build;

#[derive(Clone, Debug)]
pub struct Flow {
    pub six: bool,
    pub udp: bool,
    pub tags: u8,
    pub options: u8,
    pub flags: u8,
    pub seq: u32,
    pub id: u16,
    pub payload: Vec<u8>,
    pub size: u16,
}

impl Flow {
    /// Packet `number`, with the payload from `from` on.
    fn packet(&self, from: usize, number: usize, payload: &[u8], flags: u8) -> Build {
        let mut p = Build::eth(MacAddr::local(2), MacAddr::local(1));
        for tag in 0..self.tags {
            p = p.vlan(u16::from(tag) + 7);
        }
        let id = self.id.wrapping_add(number as u16);
        p = match self.six {
            true => p.ip6(
                "2001:db8::1".parse().unwrap(),
                "2001:db8::2".parse().unwrap(),
            ),
            false => p
                .ip4([10, 0, 0, 1].into(), [10, 1, 0, 1].into())
                .dont_fragment()
                .edit_ip4(move |h| h.id = id.into()),
        };
        let p = match self.udp {
            true => p.udp(1234, 80),
            false => {
                let seq = self.seq.wrapping_add(from as u32);
                let options = vec![1; usize::from(self.options) * 4];
                p.tcp(1234, 80, flags)
                    .options(&options)
                    .edit_tcp(move |h| h.seq = seq.into())
            }
        };
        p.payload(payload)
    }

    fn headers(&self) -> usize {
        self.packet(0, 0, &[], 0).headers_len()
    }

    /// Start of the transport header, and offset of the checksum from there.
    fn sum(&self) -> (usize, usize) {
        match self.udp {
            true => (self.headers() - 8, 6),
            false => (self.headers() - 20 - usize::from(self.options) * 4, 16),
        }
    }

    /// The super-segment with a complete checksum.
    pub fn whole(&self) -> Vec<u8> {
        self.packet(0, 0, &self.payload, self.flags).build()
    }

    /// The super-segment in the form that a kernel sends: the checksum field has the sum of the pseudo header.
    pub fn partial(&self) -> Vec<u8> {
        let mut bytes = self.whole();
        let (start, offset) = self.sum();
        let proto = if self.udp { 17u64 } else { 6 };
        let addresses = start - if self.six { 32 } else { 8 }..start;
        let words = bytes[addresses].chunks(2);
        let sum: u64 = words.map(|w| u64::from(w[0]) << 8 | u64::from(w[1])).sum();
        let mut sum = sum + proto + (bytes.len() - start) as u64;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        bytes[start + offset..][..2].copy_from_slice(&(sum as u16).to_be_bytes());
        bytes
    }

    pub fn segments(&self) -> Vec<Vec<u8>> {
        let size = usize::from(self.size);
        let last = self.payload.len().div_ceil(size).max(1) - 1;
        if last == 0 {
            return vec![self.whole()];
        }
        let one = |(number, part): (usize, &[u8])| {
            let mut flags = self.flags;
            flags &= if number == last { 0xff } else { !0x09 };
            flags &= if number == 0 { 0xff } else { !0x80 };
            self.packet(number * size, number, part, flags).build()
        };
        self.payload.chunks(size).enumerate().map(one).collect()
    }

    /// The `virtio_net_hdr` of the packet, as a kernel writes it.
    fn hdr(&self, gso: bool) -> VirtioNetHdr {
        let (start, offset) = self.sum();
        let kind = match (self.udp, self.six) {
            (true, _) => GSO_UDP_L4,
            (false, true) => GSO_TCPV6,
            (false, false) => GSO_TCPV4,
        };
        VirtioNetHdr {
            flags: NEEDS_CSUM,
            gso_type: if gso { kind } else { 0 },
            // This hint must be ignored.
            hdr_len: 9,
            gso_size: if gso { self.size } else { 0 },
            csum_start: start as u16,
            csum_offset: offset as u16,
        }
    }

    /// The offload request, with or without segmentation.
    pub fn request(&self, gso: bool) -> Offload {
        self.hdr(gso).to_offload(&self.partial()).unwrap()
    }
}

/// An arbitrary flow.
pub fn flow() -> impl Strategy<Value = Flow> {
    let shape = (any::<bool>(), any::<bool>(), 0u8..=2, 0u8..=10);
    let numbers = (any::<u8>(), any::<u32>(), any::<u16>());
    let len = prop_oneof![1usize..200, 1usize..6000, 1usize..65_000];
    let size = prop_oneof![100u16..1500, 1400u16..9000];
    (shape, numbers, len, any::<u8>(), size).prop_map(|(shape, numbers, len, fill, size)| Flow {
        six: shape.0,
        udp: shape.1,
        tags: shape.2,
        options: if shape.1 { 0 } else { shape.3 },
        flags: numbers.0,
        seq: numbers.1,
        id: numbers.2,
        payload: (0..len).map(|i| (i / 3) as u8 ^ fill).collect(),
        size,
    })
}

/// TCP over IPv4 with sequence and identification numbers that overflow.
pub fn tcp(payload: usize, size: u16) -> Flow {
    Flow {
        six: false,
        udp: false,
        tags: 0,
        options: 3,
        flags: 0x99,
        seq: u32::MAX - 5000,
        id: u16::MAX - 3,
        payload: vec![0x5a; payload],
        size,
    }
}
