//! Builds packets layer by layer, for tests and for the packet generator's templates.
//!
//! Contract: [`Packet::build`] fills in the fields that follow from the layers (types, protocols, lengths, checksums) unless a
//! layer sets them, so a packet is correct unless a fault was requested. Methods that set a field act on the innermost
//! layer that has the field, and do nothing if there is none. Lengths above 65,535 are truncated as by the header emitters.
//!
//! ```
//! use volley_wire::{MacAddr, build::Packet};
//! let bytes = Packet::eth(MacAddr::local(2), MacAddr::local(1))
//!     .ip4([10, 0, 0, 1].into(), [10, 1, 0, 1].into()).ttl(9)
//!     .udp(1234, 80).payload(b"hello").build();
//! assert_eq!(bytes.len(), 14 + 20 + 8 + 5);
//! ```

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::arp::ArpPacket;
use crate::checksum::Sum;
use crate::eth::EthHeader;
use crate::icmp4::Icmp4Header;
use crate::icmp6::Icmp6Header;
use crate::ip4::{FLAG_DONT_FRAGMENT, FLAG_MORE_FRAGMENTS, Ip4Header};
use crate::ip6::Ip6Header;
use crate::ip6_ext::FragmentHeader;
use crate::tcp::TcpHeader;
use crate::udp::UdpHeader;
use crate::vlan::{Tci, VlanTag};
use crate::{EtherType, IntoBytes, IpProto, MacAddr, U16, U32};

/// One layer; `None` in a type or protocol field means the type of the next layer.
#[derive(Debug, Clone)]
enum Layer {
    Eth(EthHeader, Option<EtherType>),
    /// The type of the tag itself, then its content.
    Vlan(EtherType, Tci, Option<EtherType>),
    Arp(ArpPacket),
    Ip4(Ip4Header, Vec<u8>, Option<IpProto>),
    Ip6(Ip6Header, Option<IpProto>),
    /// Extension header: type, and everything behind the next-header byte.
    Ext(IpProto, Vec<u8>, Option<IpProto>),
    Udp(UdpHeader),
    Tcp(TcpHeader, Vec<u8>),
    Icmp4(Icmp4Header),
    Icmp6(Icmp6Header),
}

/// A packet under construction.
#[derive(Debug, Clone, Default)]
pub struct Packet {
    layers: Vec<Layer>,
    payload: Vec<u8>,
    frame_len: Option<usize>,
    checksums: Checksums,
}

/// The treatment of transport checksums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Checksums {
    #[default]
    Right,
    Zero,
}

impl Packet {
    /// Starts with an Ethernet header.
    pub fn eth(dst: MacAddr, src: MacAddr) -> Packet {
        Packet::bare().push(Layer::Eth(
            EthHeader {
                dst,
                src,
                ether_type: EtherType::new(0),
            },
            None,
        ))
    }

    /// Starts without a layer: the first layer added is the outermost.
    pub fn bare() -> Packet {
        Packet::default()
    }

    fn push(mut self, layer: Layer) -> Packet {
        self.layers.push(layer);
        self
    }

    /// Changes the innermost layer that `change` accepts.
    fn edit(mut self, mut change: impl FnMut(&mut Layer) -> bool) -> Packet {
        let _ = self
            .layers
            .iter_mut()
            .rev()
            .find_map(|layer| change(layer).then_some(()));
        self
    }

    /// An 802.1Q tag.
    pub fn vlan(self, id: u16) -> Packet {
        self.tag(EtherType::VLAN, Tci::new(id, 0))
    }

    /// A tag of any type.
    pub fn tag(self, tag: EtherType, tci: Tci) -> Packet {
        self.push(Layer::Vlan(tag, tci, None))
    }

    /// An ARP packet.
    pub fn arp(self, arp: ArpPacket) -> Packet {
        self.push(Layer::Arp(arp))
    }

    /// An IPv4 header with TTL 64.
    pub fn ip4(self, src: Ipv4Addr, dst: Ipv4Addr) -> Packet {
        self.push(Layer::Ip4(
            Ip4Header::new(src, dst, IpProto::NO_NEXT, 64, 0),
            Vec::new(),
            None,
        ))
    }

    /// An IPv6 header with hop limit 64.
    pub fn ip6(self, src: Ipv6Addr, dst: Ipv6Addr) -> Packet {
        self.push(Layer::Ip6(
            Ip6Header::new(src, dst, IpProto::NO_NEXT, 64, 0),
            None,
        ))
    }

    /// A hop-by-hop options header; see [`Packet::extension`].
    pub fn hop_by_hop(self, options: &[u8]) -> Packet {
        self.extension(IpProto::HOP_BY_HOP, options)
    }

    /// A destination options header; see [`Packet::extension`].
    pub fn dest_options(self, options: &[u8]) -> Packet {
        self.extension(IpProto::DEST_OPTS, options)
    }

    /// A routing header with zeros behind its four fields and space for `addresses` IPv6 addresses.
    pub fn routing(self, routing_type: u8, segments_left: u8, addresses: usize) -> Packet {
        let mut content = alloc::vec![routing_type, segments_left];
        content.resize(6 + addresses.min(127) * 16, 0);
        self.extension(IpProto::ROUTING, &content)
    }

    /// Any extension header with a length byte in units of 8. `content` follows that byte and is padded (with one PadN, or with
    /// zeros in a header without options).
    pub fn extension(self, kind: IpProto, content: &[u8]) -> Packet {
        let content = content.get(..content.len().min(2046)).unwrap_or(&[]);
        let mut bytes = alloc::vec![0];
        bytes.extend_from_slice(content);
        let pad = (8 - (bytes.len() + 1) % 8) % 8;
        match pad {
            0 => {}
            1 => bytes.push(0),
            _ if kind == IpProto::ROUTING => bytes.resize(bytes.len() + pad, 0),
            _ => {
                bytes.extend([1, pad as u8 - 2]);
                bytes.resize(bytes.len() + pad - 2, 0);
            }
        }
        bytes[0] = ((bytes.len() + 1) / 8 - 1) as u8;
        self.push(Layer::Ext(kind, bytes, None))
    }

    /// An IPv6 fragment header; `offset` in bytes is cut to a multiple of 8.
    pub fn fragment6(self, offset: u16, more: bool, id: u32) -> Packet {
        let header = FragmentHeader {
            next_header: IpProto::NO_NEXT,
            reserved: 0,
            offset_flags: U16::new(offset & 0xfff8 | u16::from(more)),
            id: U32::new(id),
        };
        let bytes = header.as_bytes().get(1..).unwrap_or(&[]).to_vec();
        self.push(Layer::Ext(IpProto::FRAGMENT, bytes, None))
    }

    /// A UDP header.
    pub fn udp(self, src_port: u16, dst_port: u16) -> Packet {
        self.push(Layer::Udp(UdpHeader::new(src_port, dst_port, 0)))
    }

    /// A TCP header; see [`crate::tcp::flag`].
    pub fn tcp(self, src_port: u16, dst_port: u16, flags: u8) -> Packet {
        self.push(Layer::Tcp(
            TcpHeader::new(src_port, dst_port, flags),
            Vec::new(),
        ))
    }

    /// An ICMP header.
    pub fn icmp4(self, header: Icmp4Header) -> Packet {
        self.push(Layer::Icmp4(header))
    }

    /// An ICMP echo request.
    pub fn echo4(self, id: u16, seq: u16) -> Packet {
        self.icmp4(Icmp4Header::echo_request(id, seq))
    }

    /// An ICMPv6 header.
    pub fn icmp6(self, header: Icmp6Header) -> Packet {
        self.push(Layer::Icmp6(header))
    }

    /// An ICMPv6 echo request.
    pub fn echo6(self, id: u16, seq: u16) -> Packet {
        self.icmp6(Icmp6Header::echo_request(id, seq))
    }

    /// The bytes behind the innermost header.
    pub fn payload(mut self, bytes: impl AsRef<[u8]>) -> Packet {
        self.payload = bytes.as_ref().to_vec();
        self
    }

    /// Length of the whole packet without FCS: the payload is truncated, or extended by a counting pattern. Headers are never
    /// truncated.
    pub fn frame_len(mut self, len: usize) -> Packet {
        self.frame_len = Some(len);
        self
    }

    /// Sets TTL or hop limit.
    pub fn ttl(self, ttl: u8) -> Packet {
        self.edit(|layer| match layer {
            Layer::Ip4(h, ..) => {
                h.ttl = ttl;
                true
            }
            Layer::Ip6(h, _) => {
                h.hop_limit = ttl;
                true
            }
            _ => false,
        })
    }

    /// Sets TOS or traffic class.
    pub fn tos(self, tos: u8) -> Packet {
        self.edit(|layer| match layer {
            Layer::Ip4(h, ..) => {
                h.tos = tos;
                true
            }
            Layer::Ip6(h, _) => {
                h.set_class_flow(tos, h.flow_label());
                true
            }
            _ => false,
        })
    }

    /// Sets the IPv6 flow label.
    pub fn flow_label(self, flow: u32) -> Packet {
        self.edit(|layer| match layer {
            Layer::Ip6(h, _) => {
                h.set_class_flow(h.traffic_class(), flow);
                true
            }
            _ => false,
        })
    }

    /// Changes fields of the IPv4 header; lengths, protocol and checksum are filled in afterwards.
    pub fn edit_ip4(self, change: impl Fn(&mut Ip4Header)) -> Packet {
        self.edit(|layer| match layer {
            Layer::Ip4(h, ..) => {
                change(h);
                true
            }
            _ => false,
        })
    }

    /// Sets "don't fragment".
    pub fn dont_fragment(self) -> Packet {
        self.edit_ip4(|h| h.flags_fragment = U16::new(h.flags_fragment.get() | FLAG_DONT_FRAGMENT))
    }

    /// Makes the packet a fragment; `offset` in bytes is cut to a multiple of 8.
    pub fn fragment4(self, offset: u16, more: bool, id: u16) -> Packet {
        let more = if more { FLAG_MORE_FRAGMENTS } else { 0 };
        self.edit_ip4(|h| {
            h.id = U16::new(id);
            h.flags_fragment =
                U16::new(h.flags_fragment.get() & FLAG_DONT_FRAGMENT | more | (offset / 8));
        })
    }

    /// Adds IPv4 or TCP options in wire format, padded with "end of list" to a multiple of 4, at most 40 bytes.
    pub fn options(self, bytes: &[u8]) -> Packet {
        self.edit(|layer| match layer {
            Layer::Ip4(_, options, _) | Layer::Tcp(_, options) => {
                options.extend_from_slice(bytes);
                options.resize(options.len().next_multiple_of(4).min(40), 0);
                true
            }
            _ => false,
        })
    }

    /// Changes fields of the TCP header; offset and checksum are filled in afterwards.
    pub fn edit_tcp(self, change: impl Fn(&mut TcpHeader)) -> Packet {
        self.edit(|layer| match layer {
            Layer::Tcp(h, _) => {
                change(h);
                true
            }
            _ => false,
        })
    }

    /// Sets another protocol than that of the next layer.
    pub fn proto(self, proto: IpProto) -> Packet {
        self.edit(|layer| match layer {
            Layer::Ip4(_, _, p) | Layer::Ip6(_, p) | Layer::Ext(_, _, p) => {
                *p = Some(proto);
                true
            }
            _ => false,
        })
    }

    /// Sets another EtherType than that of the next layer.
    pub fn ether_type(self, ether_type: EtherType) -> Packet {
        self.edit(|layer| match layer {
            Layer::Eth(_, t) | Layer::Vlan(_, _, t) => {
                *t = Some(ether_type);
                true
            }
            _ => false,
        })
    }

    /// Leaves transport checksums zero (UDP over IPv4: "none").
    pub fn zero_transport_checksums(mut self) -> Packet {
        self.checksums = Checksums::Zero;
        self
    }

    /// The total number of bytes of all headers.
    pub fn headers_len(&self) -> usize {
        self.layers.iter().map(Layer::len).sum()
    }

    /// The packet's bytes.
    pub fn build(&self) -> Vec<u8> {
        let mut inner = self.payload.clone();
        if let Some(len) = self.frame_len {
            let (room, had) = (len.saturating_sub(self.headers_len()), inner.len());
            inner.truncate(room);
            inner.extend((had..room).map(|i| i as u8));
        }
        for (at, layer) in self.layers.iter().enumerate().rev() {
            let outer = self.layers.get(..at).unwrap_or(&[]);
            let next = self.layers.get(at + 1);
            let mut bytes = layer.head(outer, next, &inner, self.checksums);
            bytes.append(&mut inner);
            inner = bytes;
        }
        inner
    }
}

impl Layer {
    fn len(&self) -> usize {
        match self {
            Layer::Eth(..) => 14,
            Layer::Vlan(..) => 4,
            Layer::Arp(_) => 28,
            Layer::Ip4(_, options, _) | Layer::Tcp(_, options) => 20 + options.len(),
            Layer::Ip6(..) => 40,
            Layer::Ext(_, bytes, _) => 1 + bytes.len(),
            Layer::Udp(_) | Layer::Icmp4(_) | Layer::Icmp6(_) => 8,
        }
    }

    fn ether_type(&self) -> EtherType {
        match self {
            Layer::Vlan(tag, ..) => *tag,
            Layer::Arp(_) => EtherType::ARP,
            Layer::Ip4(..) => EtherType::IP4,
            Layer::Ip6(..) => EtherType::IP6,
            _ => EtherType::TEB,
        }
    }

    fn proto(&self) -> IpProto {
        match self {
            Layer::Ip4(..) => IpProto::IP4,
            Layer::Ip6(..) => IpProto::IP6,
            Layer::Ext(kind, ..) => *kind,
            Layer::Udp(_) => IpProto::UDP,
            Layer::Tcp(..) => IpProto::TCP,
            Layer::Icmp4(_) => IpProto::ICMP,
            Layer::Icmp6(_) => IpProto::ICMP6,
            Layer::Eth(..) => IpProto::ETHERNET,
            Layer::Vlan(..) | Layer::Arp(_) => IpProto::NO_NEXT,
        }
    }

    /// The bytes of this layer's header; `inner`: everything behind the header.
    fn head(
        &self,
        outer: &[Layer],
        next: Option<&Layer>,
        inner: &[u8],
        checksums: Checksums,
    ) -> Vec<u8> {
        let ether_type = |set: Option<EtherType>| {
            set.or(next.map(Layer::ether_type))
                .unwrap_or(EtherType::new(0x88b5)) // for local experiments (IEEE 802)
        };
        let proto =
            |set: Option<IpProto>| set.or(next.map(Layer::proto)).unwrap_or(IpProto::NO_NEXT);
        match self {
            Layer::Eth(h, t) => EthHeader {
                ether_type: ether_type(*t),
                ..*h
            }
            .as_bytes()
            .to_vec(),
            Layer::Vlan(_, tci, t) => VlanTag {
                tci: *tci,
                ether_type: ether_type(*t),
            }
            .as_bytes()
            .to_vec(),
            Layer::Arp(arp) => arp.as_bytes().to_vec(),
            Layer::Ip4(h, options, p) => ip4_head(*h, options, proto(*p), inner.len()),
            Layer::Ip6(h, p) => Ip6Header {
                payload_len: U16::new(u16::try_from(inner.len()).unwrap_or(u16::MAX)),
                next_header: proto(*p),
                ..*h
            }
            .as_bytes()
            .to_vec(),
            Layer::Ext(_, bytes, p) => [&[proto(*p).0], bytes.as_slice()].concat(),
            _ => self.transport_head(outer, inner, checksums),
        }
    }

    fn transport_head(&self, outer: &[Layer], inner: &[u8], checksums: Checksums) -> Vec<u8> {
        let fill = checksums == Checksums::Right;
        let pseudo = pseudo(outer, self.proto(), self.len() + inner.len());
        match self {
            Layer::Udp(h) => {
                let mut h = UdpHeader::new(h.src_port.get(), h.dst_port.get(), inner.len());
                if fill {
                    h.fill_checksum(pseudo, inner);
                }
                h.as_bytes().to_vec()
            }
            Layer::Tcp(h, options) => {
                let mut h = *h;
                h.data_offset = (((20 + options.len()) / 4) << 4) as u8 | (h.data_offset & 0xf);
                if fill {
                    h.fill_checksum(pseudo, options, inner);
                }
                [h.as_bytes(), options].concat()
            }
            Layer::Icmp4(h) => {
                let mut h = *h;
                if fill {
                    h.fill_checksum(inner);
                }
                h.as_bytes().to_vec()
            }
            Layer::Icmp6(h) => {
                let mut h = *h;
                if fill {
                    h.fill_checksum(pseudo, inner);
                }
                h.as_bytes().to_vec()
            }
            _ => Vec::new(),
        }
    }
}

fn ip4_head(mut h: Ip4Header, options: &[u8], protocol: IpProto, payload: usize) -> Vec<u8> {
    let header_len = 20 + options.len();
    h.version_ihl = 0x40 | (header_len / 4) as u8;
    h.total_len = U16::new(u16::try_from(header_len + payload).unwrap_or(u16::MAX));
    h.protocol = protocol;
    h.fill_checksum(options);
    [h.as_bytes(), options].concat()
}

/// The pseudo-header of the innermost IP layer; for IPv6 with the destination of its header (routing headers are ignored).
fn pseudo(outer: &[Layer], proto: IpProto, len: usize) -> Sum {
    let ip = outer
        .iter()
        .rev()
        .find(|layer| matches!(layer, Layer::Ip4(..) | Layer::Ip6(..)));
    match ip {
        Some(Layer::Ip4(h, ..)) => Sum::pseudo4(
            h.src(),
            h.dst(),
            proto,
            u16::try_from(len).unwrap_or(u16::MAX),
        ),
        Some(Layer::Ip6(h, _)) => h.pseudo(proto, len),
        _ => Sum::new(),
    }
}

#[cfg(test)]
mod tests;
