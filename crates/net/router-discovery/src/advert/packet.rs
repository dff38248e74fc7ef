//! Encoding of a router advertisement as a frame (RFC 4861, 4.2 and 4.6; RFC 8106, 5.1 and 5.2).

use crate::link::Mac;
use crate::model::{AdvertisedPrefix, RouterAdvertisement};
use crate::nd::LONG;
use crate::nd::{self, ALL_NODES};
use std::net::IpAddr;
use volley_wire::icmp6::Icmp6Type;

/// Bytes of an Ethernet and an IPv6 header.
const IP: usize = 54;
const SOURCE: u8 = 1;
const PREFIX: u8 = 3;
const MTU: u8 = 5;
const RDNSS: u8 = 25;
const DNSSL: u8 = 31;
const ON_LINK: u8 = 0x80;
const AUTONOMOUS: u8 = 0x40;
const MANAGED: u8 = 0x80;
const OTHER: u8 = 0x40;

/// Contents of an advertisement.
#[derive(Clone, Copy, Debug)]
pub struct Advertisement<'a> {
    /// The interface's MAC address.
    pub own: Mac,
    /// The interface's MTU.
    pub mtu: u16,
    /// Configured settings.
    pub settings: &'a RouterAdvertisement,
    /// All prefixes to advertise.
    pub prefixes: &'a [AdvertisedPrefix],
    /// A final advertisement: its router lifetime is 0.
    pub ending: bool,
}

/// Appends an option: type, length in units of 8 bytes, and body padded with zeros.
fn option(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    let units = (body.len() + 2).div_ceil(8);
    let end = out.len() + 8 * units;
    out.extend([kind, units as u8]);
    out.extend(body);
    out.resize(end, 0);
}

fn prefix(out: &mut Vec<u8>, it: &AdvertisedPrefix) {
    let IpAddr::V6(address) = it.prefix.addr() else {
        return;
    };
    // Interface identifiers have 64 bits on Ethernet (RFC 2464, 4): hosts make no addresses from prefixes of other lengths.
    let autonomous = it.autoconfig && it.prefix.len() == 64;
    let mut flags = if it.on_link { ON_LINK } else { 0 };
    flags |= if autonomous { AUTONOMOUS } else { 0 };
    let mut body = vec![it.prefix.len(), flags];
    body.extend(it.valid.to_be_bytes());
    body.extend(it.preferred_lifetime().to_be_bytes());
    body.extend([0; 4]);
    body.extend(address.octets());
    option(out, PREFIX, &body);
}

/// Appends a domain name in DNS encoding (RFC 1035, 3.1).
fn domain(out: &mut Vec<u8>, name: &str) {
    for label in name.split('.') {
        out.push(label.len() as u8);
        out.extend(label.as_bytes());
    }
    out.push(0);
}

impl Advertisement<'_> {
    /// The ICMPv6 message with checksum 0. Prefixes that would make it longer than [`LONG`] are left out.
    fn message(&self) -> Vec<u8> {
        let it = self.settings;
        let lifetime = if self.ending { 0 } else { it.router_lifetime() };
        let mut flags = if it.managed { MANAGED } else { 0 };
        flags |= if it.other { OTHER } else { 0 };
        let mut out = vec![
            Icmp6Type::ROUTER_ADVERTISEMENT.0,
            0,
            0,
            0,
            it.hop_limit,
            flags,
        ];
        out.extend(lifetime.to_be_bytes());
        out.extend(it.reachable.to_be_bytes());
        out.extend(it.retransmit.to_be_bytes());
        if it.send_link_layer {
            option(&mut out, SOURCE, &self.own);
        }
        if it.send_mtu {
            let mut body = vec![0, 0];
            body.extend(u32::from(self.mtu).to_be_bytes());
            option(&mut out, MTU, &body);
        }
        self.names(&mut out);
        for it in self.prefixes {
            if IP + out.len() + 32 <= LONG {
                prefix(&mut out, it);
            }
        }
        out
    }

    fn names(&self, out: &mut Vec<u8>) {
        let it = self.settings;
        let begin = || {
            let mut body = vec![0, 0];
            body.extend(it.names_lifetime().to_be_bytes());
            body
        };
        if !it.rdnss.is_empty() {
            let mut body = begin();
            it.rdnss.iter().for_each(|a| body.extend(a.octets()));
            option(out, RDNSS, &body);
        }
        if !it.dnssl.is_empty() {
            let mut body = begin();
            it.dnssl.iter().for_each(|name| domain(&mut body, name));
            option(out, DNSSL, &body);
        }
    }

    /// The whole frame, to the all-nodes group.
    pub fn frame(&self) -> Vec<u8> {
        let (from, message) = (nd::link_local(self.own), self.message());
        nd::frame(self.own, nd::group_mac(ALL_NODES), from, ALL_NODES, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_object::Object;
    use volley_wire::checksum::Sum;
    use volley_wire::icmp6::Icmp6;
    use volley_wire::nd::{NdBody, NdMessage, NdOption};
    use volley_wire::{IpProto, MacAddr};

    const OWN: Mac = [2, 0, 0, 0, 0, 1];

    fn usual() -> RouterAdvertisement {
        RouterAdvertisement::defaults(["pg0".into()]).unwrap()
    }

    fn made(settings: &RouterAdvertisement, prefixes: &[&str], ending: bool) -> Vec<u8> {
        let usual = |p: &&str| AdvertisedPrefix::network(p.parse().unwrap());
        let prefixes: Vec<AdvertisedPrefix> = prefixes.iter().map(usual).collect();
        let advertisement = Advertisement {
            own: OWN,
            mtu: 1500,
            settings,
            prefixes: &prefixes,
            ending,
        };
        let frame = advertisement.frame();
        assert_eq!(
            frame[..14],
            [0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x86, 0xdd]
        );
        assert_eq!(frame[20..22], [58, 255]);
        frame
    }

    fn read(frame: &[u8]) -> (NdBody, Vec<NdOption<'_>>) {
        let icmp = Icmp6::parse(&frame[54..]).unwrap();
        let length = frame.len() as u32 - 54;
        let pseudo = Sum::pseudo6(nd::link_local(OWN), ALL_NODES, IpProto(58), length);
        assert!(icmp.checksum_ok(pseudo));
        assert_eq!(
            u32::from(u16::from_be_bytes([frame[18], frame[19]])),
            length
        );
        let nd = NdMessage::parse(&icmp).unwrap().unwrap();
        (nd.body, nd.options().collect())
    }

    #[test]
    fn everything_that_is_set_is_said() {
        let settings = RouterAdvertisement {
            max_interval: 100,
            lifetime: Some(1234),
            managed: true,
            hop_limit: 7,
            reachable: 5,
            retransmit: 6,
            rdnss: vec!["2001:db8::53".parse().unwrap()],
            dnssl: vec!["example.net".to_owned(), "a.b".to_owned()],
            ..usual()
        };
        let frame = made(&settings, &["2001:db8:1::/64", "2001:db8:2::/56"], false);
        let (body, options) = read(&frame);
        let NdBody::RouterAdvertisement {
            hop_limit,
            flags,
            lifetime_s,
            times,
        } = body
        else {
            panic!("{body:?}");
        };
        assert_eq!((hop_limit, flags, lifetime_s), (7, 0x80, 1234));
        assert_eq!(
            (times.reachable_ms.get(), times.retransmit_ms.get()),
            (5, 6)
        );
        assert_eq!(options[0], NdOption::SourceMac(MacAddr(OWN)));
        assert_eq!(options[1], NdOption::Mtu(1500));
        let NdOption::Other { kind: 25, data } = options[2] else {
            panic!("{options:?}");
        };
        assert_eq!(data[..6], [0, 0, 0, 0, 1, 44], "300 s");
        assert_eq!(
            data[6..],
            "2001:db8::53"
                .parse::<std::net::Ipv6Addr>()
                .unwrap()
                .octets()
        );
        let NdOption::Other { kind: 31, data } = options[3] else {
            panic!("{options:?}");
        };
        assert_eq!(&data[6..], b"\x07example\x03net\0\x01a\x01b\0\0\0\0\0\0\0");
        let (NdOption::Prefix(a), NdOption::Prefix(b)) = (options[4], options[5]) else {
            panic!("{options:?}");
        };
        assert_eq!(
            (a.prefix_len, a.flags, a.valid_s.get(), a.preferred_s.get()),
            (64, 0xc0, 2_592_000, 604_800)
        );
        assert_eq!(
            (b.prefix_len, b.flags),
            (56, 0x80),
            "no address is made of it"
        );
        assert_eq!(options.len(), 6);
    }

    #[test]
    fn what_is_suppressed_is_not_said_and_the_last_ones_have_no_lifetime() {
        let bare = RouterAdvertisement {
            send_mtu: false,
            send_link_layer: false,
            ..usual()
        };
        let frame = made(&bare, &[], true);
        let (body, options) = read(&frame);
        assert!(matches!(
            body,
            NdBody::RouterAdvertisement { lifetime_s: 0, .. }
        ));
        assert_eq!((options.len(), frame.len()), (0, 70));
    }

    #[test]
    fn more_prefixes_than_fit_are_left_out() {
        let all: Vec<String> = (0..60).map(|n| format!("2001:db8:{n:x}::/64")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let frame = made(&usual(), &all, false);
        assert!(
            frame.len() <= LONG && frame.len() > LONG - 32,
            "{}",
            frame.len()
        );
        read(&frame);
    }
}
