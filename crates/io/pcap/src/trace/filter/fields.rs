//! The fields that a filter can test: those of the table of `volley_wire`, and some of the packet as a whole.

use volley_wire::field::{self, ETH, FieldKind, HeaderFields, SCTP, TCP, UDP, VLAN};
use volley_wire::ip4::Ip4Header;
use volley_wire::ip6::Ip6Header;
use volley_wire::ip6_ext::Extensions;
use volley_wire::{EtherType, Header, IpProto, ethertype};

/// A field that a filter tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Length of the packet.
    Len,
    /// EtherType behind all VLAN tags.
    EtherType,
    /// Protocol of the transport layer.
    Proto,
    /// Source port of UDP, TCP or SCTP.
    Sport,
    /// Destination port of UDP, TCP or SCTP.
    Dport,
    /// Whether the packet has a header.
    Header(&'static HeaderFields),
    /// Field of a header.
    Of(&'static HeaderFields, &'static field::Field),
}

/// Headers that filters do not support: a second type of tag (`vlan` is the first tag of any type), and those inside tunnels.
const LEFT_OUT: [&str; 5] = ["qinq", "pppoe", "vxlan", "geneve", "gtpu"];

/// The headers that filters test.
fn headers() -> impl Iterator<Item = &'static HeaderFields> {
    let all = field::HEADERS.into_iter();
    all.filter(|header| !LEFT_OUT.contains(&header.name))
}

impl Field {
    /// The field of this name, such as `ip4.dst`.
    pub(crate) fn by_name(name: &str) -> Option<Field> {
        if name == "len" {
            return Some(Field::Len);
        }
        let (header, field) = match name.split_once('.') {
            Some((header, field)) => (header, Some(field)),
            None => (name, None),
        };
        let header = headers().find(|it| it.is_called(header))?;
        match field {
            None => Some(Field::Header(header)),
            Some("type") if header == &ETH => Some(Field::EtherType),
            Some(field) => {
                let field = header.field(field).filter(|field| field.has_place())?;
                Some(Field::Of(header, field))
            }
        }
    }

    /// Suggestions for an unknown name: the fields of its header if that exists, else the headers.
    pub(crate) fn names_like(name: &str) -> Vec<String> {
        let of = name.split_once('.').map_or(name, |(header, _)| header);
        match headers().find(|header| header.is_called(of)) {
            Some(header) => {
                let fields = header.fields.iter().filter(|field| field.has_place());
                let fields = fields.map(|field| format!("{}.{}", header.name, field.name));
                [header.name.to_owned()].into_iter().chain(fields).collect()
            }
            None => ["len"]
                .into_iter()
                .chain(headers().map(|it| it.name))
                .map(str::to_owned)
                .collect(),
        }
    }

    /// The type of the values; none for a header, which exists or not.
    pub(crate) fn kind(self) -> Option<FieldKind> {
        match self {
            Field::Header(_) => None,
            Field::Of(_, field) => Some(field.kind),
            _ => Some(FieldKind::Number),
        }
    }
}

/// A header of a packet, and its offset; none in later fragments.
type Place = (&'static HeaderFields, Option<usize>);

/// The maximum number of headers that a filter finds: Ethernet, a tag, IP, extension headers, transport.
const MOST: usize = 12;

/// The positions of the headers of a packet.
pub(crate) struct Packet<'a> {
    bytes: &'a [u8],
    len: usize,
    /// EtherType behind the tags, if any.
    ether_type: Option<u16>,
    /// Protocol of the transport layer.
    proto: Option<IpProto>,
    places: [Option<Place>; MOST],
    count: usize,
}

impl<'a> Packet<'a> {
    pub(crate) fn new(bytes: &'a [u8], len: usize) -> Self {
        let mut packet = Packet {
            bytes,
            len,
            ether_type: None,
            proto: None,
            places: [None; MOST],
            count: 0,
        };
        packet.ether_type = packet.half(12);
        if packet.ether_type.is_none() {
            return packet;
        }
        packet.push(&ETH, Some(0));
        let mut l3 = usize::from(ETH.len);
        while packet.ether_type.is_some_and(ethertype::is_tag) && l3 <= 22 {
            if l3 == usize::from(ETH.len) && packet.half(l3).is_some() {
                packet.push(&VLAN, Some(l3));
            }
            packet.ether_type = packet.half(l3 + 2);
            l3 += usize::from(VLAN.len);
        }
        let kind = packet.ether_type.map(EtherType::new);
        if let Some(header) = kind.and_then(field::of_ether_type)
            && bytes.len() > l3
        {
            packet.push(header, Some(l3));
            match kind {
                Some(EtherType::IP4) => packet.behind_ip4(l3),
                Some(EtherType::IP6) => packet.behind_ip6(l3),
                _ => {}
            }
        }
        packet
    }

    fn push(&mut self, header: &'static HeaderFields, at: Option<usize>) {
        if let Some(place) = self.places.get_mut(self.count) {
            *place = Some((header, at));
            self.count += 1;
        }
    }

    fn behind_ip4(&mut self, at: usize) {
        let Some(Ok((header, _))) = self.bytes.get(at..).map(Ip4Header::split) else {
            return;
        };
        let len = header.header_len();
        let has = header.fragment_offset() == 0 && len >= Ip4Header::LEN;
        self.transport(header.protocol, has.then_some(at + len));
    }

    fn behind_ip6(&mut self, at: usize) {
        let Some(Ok((header, payload))) = self.bytes.get(at..).map(Ip6Header::split) else {
            return;
        };
        let behind = at + Ip6Header::LEN;
        let walk = Extensions::new(header.next_header, payload);
        for ext in walk.clone().map_while(Result::ok) {
            if let Some(header) = field::of_protocol(ext.kind) {
                self.push(header, Some(behind + ext.offset));
            }
        }
        if let Ok(upper) = walk.upper() {
            let has = upper.has_transport_header();
            self.transport(upper.proto, has.then_some(behind + upper.offset));
        }
    }

    fn transport(&mut self, proto: IpProto, at: Option<usize>) {
        self.proto = Some(proto);
        if let Some(header) = field::of_protocol(proto) {
            self.push(header, at);
        }
    }

    fn half(&self, at: usize) -> Option<u16> {
        let [a, b] = *self.bytes.get(at..at + 2)?.as_array()?;
        Some(u16::from_be_bytes([a, b]))
    }

    fn place(&self, header: &HeaderFields) -> Option<Option<usize>> {
        let mut places = self.places.iter().flatten();
        let found = places.find(|(of, _)| std::ptr::eq(*of, header));
        found.map(|(_, at)| *at)
    }

    fn read(&self, header: &HeaderFields, field: &field::Field) -> Option<u128> {
        let at = self.place(header)??;
        field.read(self.bytes.get(at..)?)
    }

    /// A port, by its name, which is the same in all transport protocols.
    fn port(&self, name: &str) -> Option<u128> {
        let mut found = [&UDP, &TCP, &SCTP].into_iter().filter_map(|header| {
            let field = header.field(name)?;
            self.read(header, field)
        });
        found.next()
    }

    pub(crate) fn get(&self, field: Field) -> Option<u128> {
        match field {
            Field::Len => Some(self.len as u128),
            Field::EtherType => self.ether_type.map(u128::from),
            Field::Proto => self.proto.map(|proto| u128::from(proto.0)),
            Field::Sport => self.port("sport"),
            Field::Dport => self.port("dport"),
            // A later fragment belongs to a packet with the header, although its bytes are in the first fragment.
            Field::Header(header) => self.place(header).map(|_| 1),
            Field::Of(header, field) => self.read(header, field),
        }
    }
}
