//! Converts templates to bytes: places every field, and computes the lengths, types and checksums that the template omits.
//!
//! The packet is `size` bytes long if a size is requested and its headers allow it (the payload is truncated or
//! padded at the end, headers never are), and every checksum that the template omits is correct.

use super::bits;
use super::sums::{Checksum, Pseudo};
use crate::spec::{FieldDefault, FieldPath, Layer, LayerKind, PACKET_SIZE, Template, Value};
use volley_model::ModelError;
use volley_wire::ethertype;

/// A layer with its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    kind: LayerKind,
    at: usize,
    header: usize,
}

/// A length field that depends on the packet's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    /// Offset of its 16 bits.
    pub(crate) at: usize,
    /// The difference between the packet's length and the field.
    pub(crate) less: usize,
}

/// A template as a packet.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    /// The packet.
    pub(crate) bytes: Vec<u8>,
    /// Length of the headers, which is the minimum length.
    pub(crate) headers: usize,
    /// Omitted length fields that depend on the payload's length.
    pub(crate) lengths: Vec<Length>,
    /// Omitted checksums, innermost first.
    pub(crate) sums: Vec<Checksum>,
    layers: Vec<Placed>,
}

/// Build a packet, of `size` bytes where one is given.
pub(crate) fn build(template: &Template, size: Option<usize>) -> Result<Built, ModelError> {
    let layers = &template.layers;
    let last = layers.last().filter(|l| l.kind == LayerKind::Payload);
    let mut built = Built {
        bytes: Vec::new(),
        headers: 0,
        lengths: Vec::new(),
        sums: Vec::new(),
        layers: Vec::new(),
    };
    for layer in layers {
        if last.is_some_and(|l| std::ptr::eq(l, layer)) {
            built.headers = built.bytes.len();
        }
        let bytes = match layer.kind {
            LayerKind::Payload => payload(layer),
            _ => header(layer),
        };
        built.layers.push(Placed {
            kind: layer.kind,
            at: built.bytes.len(),
            header: bytes.len(),
        });
        built.bytes.extend(bytes);
    }
    if last.is_none() {
        built.headers = built.bytes.len();
    }
    resize(&mut built, last, size);
    let limit = *PACKET_SIZE.end() as usize;
    if built.bytes.len() > limit {
        let (what, len) = ("length of the template's packet", built.bytes.len());
        return Err(ModelError::limit(what, len as u64, limit as u64));
    }
    for nth in (0..layers.len()).rev() {
        complete(&mut built, layers, nth);
    }
    Ok(built)
}

impl Built {
    /// The position of a field of the template.
    pub(crate) fn place(&self, path: &FieldPath) -> Option<bits::Place> {
        let mut same = self.layers.iter().filter(|l| l.kind == path.layer);
        let layer = same.nth(path.nth.into())?;
        Some(bits::Place {
            at_bit: layer.at * 8 + usize::from(path.field.bit),
            bits: path.field.bits.into(),
        })
    }
}

/// The bytes of a payload layer.
fn payload(layer: &Layer) -> Vec<u8> {
    let mut bytes = match layer.value("hex") {
        Some(Value::Bytes(bytes)) => bytes.clone(),
        _ => Vec::new(),
    };
    if let Some(Value::Uint(size)) = layer.value("size") {
        fill_up(&mut bytes, layer, *size as usize);
    }
    bytes
}

/// Extend or truncate a payload.
fn fill_up(bytes: &mut Vec<u8>, layer: &Layer, size: usize) {
    let had = bytes.len();
    bytes.truncate(size);
    match layer.value("fill") {
        Some(Value::Uint(fill)) => bytes.resize(size, *fill as u8),
        _ => bytes.extend((had..size).map(|i| i as u8)),
    }
}

fn resize(built: &mut Built, last: Option<&Layer>, size: Option<usize>) {
    let Some(size) = size else { return };
    let mut tail = built.bytes.split_off(built.headers);
    let room = size.saturating_sub(built.headers);
    let none = Layer {
        kind: LayerKind::Payload,
        fields: Vec::new(),
    };
    fill_up(&mut tail, last.unwrap_or(&none), room);
    built.bytes.append(&mut tail);
}

/// A header with its options; computed fields are still zero.
fn header(layer: &Layer) -> Vec<u8> {
    let mut bytes = vec![0; layer.kind.header_len()];
    for field in layer.kind.places() {
        let value = match (layer.value(field.name), layer.kind.default_of(field)) {
            (Some(value), _) => value.to_u128(),
            (None, FieldDefault::Is(number)) => number.into(),
            (None, FieldDefault::Auto) => continue,
        };
        let (at, width) = (field.bit.into(), field.bits.into());
        bits::set(&mut bytes, at, width, value);
    }
    if let Some(Value::Bytes(options)) = layer.value("options") {
        bytes.extend(options);
    }
    match layer.kind {
        LayerKind::Ip4 | LayerKind::Tcp => bytes.resize(bytes.len().next_multiple_of(4), 0),
        LayerKind::Ip6Hbh | LayerKind::Ip6Dst => pad_options(&mut bytes),
        _ => {}
    }
    bytes
}

/// Pad with Pad1 or PadN to a multiple of 8 (RFC 8200, 4.2).
fn pad_options(bytes: &mut Vec<u8>) {
    match bytes.len().next_multiple_of(8) - bytes.len() {
        0 => {}
        1 => bytes.push(0),
        n => {
            bytes.extend([1, n as u8 - 2]);
            bytes.resize(bytes.len() + n - 2, 0);
        }
    }
}

fn ether_type(next: Option<&Layer>) -> u128 {
    let kind = match next.map(|l| l.kind) {
        Some(LayerKind::Vlan) => ethertype::VLAN,
        Some(LayerKind::Qinq) => ethertype::QINQ,
        Some(LayerKind::Arp) => ethertype::ARP,
        Some(LayerKind::Mpls) => ethertype::MPLS,
        Some(LayerKind::Ip4) => ethertype::IP4,
        Some(LayerKind::Ip6) => ethertype::IP6,
        _ => ethertype::EXPERIMENT,
    };
    kind.into()
}

fn protocol(next: Option<&Layer>) -> u128 {
    match next.map(|l| l.kind) {
        Some(LayerKind::Ip6Hbh) => 0,
        Some(LayerKind::Icmp) => 1,
        Some(LayerKind::Ip4) => 4,
        Some(LayerKind::Tcp) => 6,
        Some(LayerKind::Udp) => 17,
        Some(LayerKind::Ip6) => 41,
        Some(LayerKind::Ip6Frag) => 44,
        Some(LayerKind::Icmp6) => 58,
        Some(LayerKind::Ip6Dst) => 60,
        Some(LayerKind::Mpls) => 137,
        Some(LayerKind::Eth) => 143,
        _ => 59, // no next header
    }
}

/// Compute the fields that layer `nth` omits; the layers behind it are complete.
fn complete(built: &mut Built, layers: &[Layer], nth: usize) {
    let (layer, next) = (&layers[nth], layers.get(nth + 1));
    let Placed { at, header, .. } = built.layers[nth];
    let total = built.bytes.len();
    let open = layer
        .kind
        .places()
        .filter(|f| layer.kind.default_of(f) == FieldDefault::Auto)
        .filter(|f| layer.value(f.name).is_none());
    for field in open {
        let words = (header / 4) as u128;
        let place = at + usize::from(field.bit) / 8;
        let value = match (layer.kind, field.name) {
            (_, "checksum") => {
                let sum = checksum(built, nth, place);
                sum.compute(&mut built.bytes, total);
                built.sums.push(sum);
                continue;
            }
            (_, "type") => ether_type(next),
            (_, "proto" | "next") => protocol(next),
            (_, "bottom") => u128::from(next.is_none_or(|n| n.kind != LayerKind::Mpls)),
            (_, "ihl" | "offset") => words,
            (LayerKind::Ip6Hbh | LayerKind::Ip6Dst, "length") => words / 2 - 1,
            _ => {
                let less = at + if layer.kind == LayerKind::Ip6 { 40 } else { 0 };
                built.lengths.push(Length { at: place, less });
                (total - less).min(0xffff) as u128
            }
        };
        let bit = at * 8 + usize::from(field.bit);
        bits::set(&mut built.bytes, bit, field.bits.into(), value);
    }
}

/// The checksum of layer `nth`, whose field is at `place`.
fn checksum(built: &Built, nth: usize, place: usize) -> Checksum {
    let layer = built.layers[nth];
    let protocol = match layer.kind {
        LayerKind::Tcp => 6,
        LayerKind::Udp => 17,
        LayerKind::Icmp6 => 58,
        _ => 0,
    };
    let network = built.layers[..nth].iter().rev();
    let mut network = network.filter(|l| matches!(l.kind, LayerKind::Ip4 | LayerKind::Ip6));
    let pseudo = network.next().filter(|_| protocol != 0).map(|ip| {
        let (at, len) = match ip.kind {
            LayerKind::Ip4 => (ip.at + 12, 8),
            _ => (ip.at + 8, 32),
        };
        Pseudo { at, len, protocol }
    });
    Checksum {
        at: place,
        start: layer.at,
        end: (layer.kind == LayerKind::Ip4).then_some(layer.at + layer.header),
        pseudo,
        is_udp: layer.kind == LayerKind::Udp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_wire::build::Packet;
    use volley_wire::{
        EtherType, MacAddr, dissect, ip4::Ip4, ip6::Ip6, tcp::Tcp, udp::Udp, vlan::Tci,
    };

    fn bytes(text: &str) -> Vec<u8> {
        build(&text.parse().unwrap(), None).unwrap().bytes
    }

    #[test]
    fn same_bytes_as_the_wire_crate_builds() {
        let eth = Packet::eth(MacAddr::local(2), MacAddr::local(1));
        let head = "eth dst 02:00:00:00:00:02 src 02:00:00:00:00:01 / ";
        let cases = [
            (
                "ip4 src 10.0.0.1 dst 10.1.0.1 ttl 9 / udp sport 1234 dport 80 / payload hex 68656c6c6f",
                eth.clone()
                    .ip4([10, 0, 0, 1].into(), [10, 1, 0, 1].into())
                    .ttl(9)
                    .udp(1234, 80)
                    .payload(b"hello"),
            ),
            (
                "qinq id 5 / vlan id 7 / ip6 src 2001:db8::1 dst 2001:db8::2 / tcp sport 5 dport 6 flags 2",
                eth.clone()
                    .tag(EtherType::QINQ, Tci::new(5, 0))
                    .vlan(7)
                    .ip6(
                        "2001:db8::1".parse().unwrap(),
                        "2001:db8::2".parse().unwrap(),
                    )
                    .tcp(5, 6, 2),
            ),
            (
                "ip4 src 10.0.0.1 dst 10.1.0.1 options 0101 df 1 / icmp id 3 seq 4 / payload size 9",
                eth.clone()
                    .ip4([10, 0, 0, 1].into(), [10, 1, 0, 1].into())
                    .options(&[1, 1])
                    .dont_fragment()
                    .echo4(3, 4)
                    .payload([0, 1, 2, 3, 4, 5, 6, 7, 8]),
            ),
            (
                "ip6 src ::5 dst ::6 / ip6-hbh options 05020000 / icmp6 id 1 seq 2",
                eth.clone()
                    .ip6("::5".parse().unwrap(), "::6".parse().unwrap())
                    .hop_by_hop(&[5, 2, 0, 0])
                    .echo6(1, 2),
            ),
        ];
        for (text, packet) in cases {
            let (ours, theirs) = (bytes(&format!("{head}{text}")), packet.build());
            let say = (dissect::multi_line(&ours), dissect::multi_line(&theirs));
            assert_eq!(ours, theirs, "{}\n{}", say.0, say.1);
        }
    }

    #[test]
    fn what_the_template_says_is_not_corrected() {
        let packet =
            bytes("eth type 0x1234 / ip4 checksum 1 length 9 ihl 6 / udp checksum 2 length 3");
        assert_eq!(packet[12..14], [0x12, 0x34]);
        assert_eq!(
            (packet[14], &packet[16..18], &packet[24..26]),
            (0x46, &[0, 9][..], &[0, 1][..])
        );
        assert_eq!(packet[38..42], [0, 3, 0, 2]);
    }

    #[test]
    fn sizes_cut_and_fill_the_payload_and_never_headers() {
        let template: Template = "eth / ip4 / udp / payload size 30 fill 7".parse().unwrap();
        for (size, len) in [(64, 64), (60, 60), (42, 42), (20, 42), (9000, 9000)] {
            let packet = build(&template, Some(size)).unwrap().bytes;
            assert_eq!(packet.len(), len);
            let ip = Ip4::parse(&packet[14..]).unwrap();
            assert!(ip.checksum_ok());
            let udp = Udp::parse(ip.payload).unwrap();
            assert!(udp.checksum_ok4(ip.header.src(), ip.header.dst()));
            assert_eq!(udp.payload.len(), len - 42);
            assert!(udp.payload.iter().all(|b| *b == 7));
        }
        let no_payload: Template = "eth / ip6 / tcp".parse().unwrap();
        let packet = build(&no_payload, Some(100)).unwrap().bytes;
        let ip = Ip6::parse(&packet[14..]).unwrap();
        let tcp = Tcp::parse(ip.payload).unwrap();
        assert!(
            tcp.checksum_ok(
                ip.header
                    .pseudo(volley_wire::IpProto::TCP, ip.payload.len())
            )
        );
        assert_eq!(tcp.payload[..3], [0, 1, 2]);
    }

    #[test]
    fn too_long_a_packet_is_refused() {
        let template: Template = "eth / payload size 65535".parse().unwrap();
        let error = build(&template, None).unwrap_err().to_string();
        assert_eq!(
            error,
            "length of the template's packet is 65549, the limit is 65535"
        );
    }
}
