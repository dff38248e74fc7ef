//! MAC addresses, EtherTypes and IP protocol numbers: on the wire and as text.
//!
//! `Display` and `FromStr` of [`MacAddr`] are inverse to each other; `FromStr` also takes `-` and the dotted form `0200.0000.0001`.

use alloc::string::ToString;
use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header::numbers;
use crate::{TextError, U16};

/// A 48-bit Ethernet address.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// `ff:ff:ff:ff:ff:ff`
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// `00:00:00:00:00:00`
    pub const ZERO: MacAddr = MacAddr([0; 6]);

    /// `02:00:00:00:xx:xx`: a locally administered address with number `n`, for tests and generated interfaces.
    pub const fn local(n: u32) -> MacAddr {
        let [a, b, c, d] = n.to_be_bytes();
        MacAddr([2, 0, a, b, c, d])
    }

    /// The link-local IPv6 address of an interface with this MAC address (RFC 4291, appendix A).
    pub fn link_local(self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.0;
        let id = u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
        Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(id))
    }

    /// Group bit (broadcast included).
    #[inline]
    pub fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// All ones.
    #[inline]
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }

    /// Neither zero nor a group address: valid for an interface.
    #[inline]
    pub fn is_unicast(self) -> bool {
        !self.is_multicast() && self != Self::ZERO
    }

    /// The requirement for the address of one host that this address violates, if any.
    pub fn not_of_one_host(self) -> Option<&'static str> {
        (!self.is_unicast()).then_some("a unicast address (first octet even) and not zero")
    }

    /// The group address for an IPv4 multicast group (RFC 1112 6.4).
    pub fn for_ip4_multicast(group: core::net::Ipv4Addr) -> MacAddr {
        let [_, b, c, d] = group.octets();
        MacAddr([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// The group address for an IPv6 multicast group (RFC 2464 7).
    pub fn for_ip6_multicast(group: core::net::Ipv6Addr) -> MacAddr {
        let [.., a, b, c, d] = group.octets();
        MacAddr([0x33, 0x33, a, b, c, d])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MacAddr {
    type Err = TextError;

    /// Parses `02:fe:00:00:00:01`, with `:` or `-` between pairs, or `02fe.0000.0001` (groups may be short: `2.3.4`).
    fn from_str(text: &str) -> Result<Self, TextError> {
        let pairs = || hex_groups::<6>(text, &[':', '-']);
        let parsed = hex_groups::<3>(text, &['.']).or_else(pairs);
        parsed
            .map(MacAddr)
            .ok_or_else(|| TextError::Mac(text.to_string()))
    }
}

/// `N` groups of hex digits, which may be short, to six bytes.
fn hex_groups<const N: usize>(text: &str, separators: &[char]) -> Option<[u8; 6]> {
    let mut out = [0u8; 6];
    let mut groups = text.split(separators);
    for slot in out.chunks_exact_mut(6 / N) {
        let group = groups.next()?;
        let width_fits = (1..=2 * slot.len()).contains(&group.len());
        if !width_fits || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let value = u16::from_str_radix(group, 16).ok()?.to_be_bytes();
        slot.copy_from_slice(value.get(2 - slot.len()..)?);
    }
    groups.next().is_none().then_some(out)
}

numbers! {
    /// The type of an Ethernet payload; a value below 0x600 is an 802.3 length.
    pub struct EtherType(U16) {
        /// IPv4
        IP4 = 0x0800 "IP4",
        /// ARP
        ARP = 0x0806 "ARP",
        /// RARP
        RARP = 0x8035 "RARP",
        /// 802.1Q customer tag
        VLAN = 0x8100 "VLAN",
        /// 802.1ad service tag
        QINQ = 0x88a8 "802.1ad",
        /// The service tag of older equipment
        QINQ_OLD = 0x9100 "QinQ",
        /// IPv6
        IP6 = 0x86dd "IP6",
        /// MPLS unicast
        MPLS = 0x8847 "MPLS",
        /// MPLS multicast
        MPLS_MCAST = 0x8848 "MPLS-multicast",
        /// PPPoE discovery
        PPPOE_DISCOVERY = 0x8863 "PPPoE-discovery",
        /// PPPoE session
        PPPOE = 0x8864 "PPPoE",
        /// Slow protocols (LACP)
        SLOW = 0x8809 "slow-protocols",
        /// EAPOL
        EAPOL = 0x888e "EAPOL",
        /// LLDP
        LLDP = 0x88cc "LLDP",
        /// PTP
        PTP = 0x88f7 "PTP",
        /// MACsec
        MACSEC = 0x88e5 "MACsec",
        /// Transparent Ethernet bridging (GRE)
        TEB = 0x6558 "TEB",
    }
}

impl EtherType {
    /// From a number in host order.
    pub const fn new(n: u16) -> EtherType {
        EtherType(U16::from_bytes(n.to_be_bytes()))
    }

    /// As a number in host order.
    #[inline]
    pub const fn value(self) -> u16 {
        u16::from_be_bytes(self.0.to_bytes())
    }

    /// An 802.3 length field, not a type.
    #[inline]
    pub fn is_length(self) -> bool {
        self.value() < 0x600
    }

    /// A VLAN tag follows.
    #[inline]
    pub fn is_vlan(self) -> bool {
        matches!(
            self,
            EtherType::VLAN | EtherType::QINQ | EtherType::QINQ_OLD
        )
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "0x{:04x}", self.value()),
        }
    }
}

impl FromStr for EtherType {
    type Err = TextError;

    /// A name as `Display` writes it (any case), or a hexadecimal number with `0x`.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let by_name = Self::NAMED
            .iter()
            .copied()
            .find(|t| t.name().is_some_and(|n| n.eq_ignore_ascii_case(text)));
        let by_number = || {
            text.strip_prefix("0x")
                .and_then(|hex| u16::from_str_radix(hex, 16).ok())
                .map(Self::new)
        };
        by_name.or_else(by_number).ok_or_else(|| {
            TextError::Number(
                text.to_string(),
                "an EtherType; write it like 0x0800 or ip4",
            )
        })
    }
}

numbers! {
    /// The protocol field of IPv4 and the next-header field of IPv6 (one number space).
    pub struct IpProto(u8) {
        /// IPv6 hop-by-hop options
        HOP_BY_HOP = 0 "hop-by-hop",
        /// ICMP
        ICMP = 1 "ICMP",
        /// IGMP
        IGMP = 2 "IGMP",
        /// IPv4 in IP
        IP4 = 4 "IP4",
        /// TCP
        TCP = 6 "TCP",
        /// UDP
        UDP = 17 "UDP",
        /// IPv6 in IP
        IP6 = 41 "IP6",
        /// IPv6 routing header
        ROUTING = 43 "routing",
        /// IPv6 fragment header
        FRAGMENT = 44 "fragment",
        /// GRE
        GRE = 47 "GRE",
        /// ESP
        ESP = 50 "ESP",
        /// AH
        AH = 51 "AH",
        /// ICMPv6
        ICMP6 = 58 "ICMP6",
        /// IPv6: no next header
        NO_NEXT = 59 "no-next-header",
        /// IPv6 destination options
        DEST_OPTS = 60 "dest-options",
        /// EIGRP
        EIGRP = 88 "EIGRP",
        /// OSPF
        OSPF = 89 "OSPF",
        /// PIM
        PIM = 103 "PIM",
        /// VRRP
        VRRP = 112 "VRRP",
        /// L2TPv3
        L2TP = 115 "L2TP",
        /// SCTP
        SCTP = 132 "SCTP",
        /// Mobility header
        MOBILITY = 135 "mobility",
        /// UDP-Lite
        UDP_LITE = 136 "UDP-Lite",
        /// Ethernet in IPv6 segment routing
        ETHERNET = 143 "Ethernet",
    }
}

impl fmt::Display for IpProto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "protocol-{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn mac_text_both_ways() {
        let mac = MacAddr([0x02, 0xfe, 0, 0x10, 0xab, 1]);
        assert_eq!(mac.to_string(), "02:fe:00:10:ab:01");
        for text in [
            "02:fe:00:10:ab:01",
            "2:FE:0:10:AB:1",
            "02-fe-00-10-ab-01",
            "02fe.0010.ab01",
            "2fe.10.ab01",
        ] {
            assert_eq!(text.parse(), Ok(mac), "{text}");
        }
    }

    #[test]
    fn bad_mac_texts() {
        let bad = [
            "",
            "02",
            "02:fe:00:10:ab",
            "02:fe:00:10:ab:01:02",
            "02:fe:00:10:ab:001",
            "1.2.3.4",
            "02:fe:00:10:ab:+1",
            "02fe.0010",
            "0:0:0:0:0:é",
        ];
        for text in bad {
            let error = text.parse::<MacAddr>().unwrap_err();
            assert_eq!(error, TextError::Mac(text.to_string()));
        }
        let error = "junk".parse::<MacAddr>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'junk' is not a MAC address: write six pairs of hex digits, such as 02:fe:00:00:00:01"
        );
    }

    #[test]
    fn mac_kinds() {
        assert!(MacAddr::BROADCAST.is_multicast() && MacAddr::BROADCAST.is_broadcast());
        assert!(MacAddr::local(7).is_unicast() && !MacAddr::ZERO.is_unicast());
        assert_eq!(MacAddr::local(0x0102), MacAddr([2, 0, 0, 0, 1, 2]));
        let v4 = MacAddr::for_ip4_multicast([224, 129, 0, 251].into());
        assert_eq!(v4.to_string(), "01:00:5e:01:00:fb");
        let v6 = MacAddr::for_ip6_multicast("ff02::1:ff00:1234".parse().unwrap());
        assert_eq!(v6.to_string(), "33:33:ff:00:12:34");
    }

    #[test]
    fn numbers_have_names() {
        assert_eq!(EtherType::IP6.value(), 0x86dd);
        assert_eq!(EtherType::IP6.as_bytes(), [0x86, 0xdd]);
        assert_eq!(
            format!("{} {}", EtherType::IP4, EtherType::new(0x1234)),
            "IP4 0x1234"
        );
        assert_eq!(
            format!("{} {:?}", IpProto::UDP, IpProto(253)),
            "UDP protocol-253"
        );
        assert_eq!("0x86dd".parse(), Ok(EtherType::IP6));
        assert_eq!("arp".parse(), Ok(EtherType::ARP));
        assert!("86dd".parse::<EtherType>().is_err());
        for known in EtherType::NAMED {
            assert_eq!(known.to_string().parse(), Ok(*known));
        }
        assert!(EtherType::new(0x5ff).is_length() && !EtherType::new(0x600).is_length());
    }

    proptest::proptest! {
        #[test]
        fn mac_display_parses(bytes: [u8; 6]) {
            proptest::prop_assert_eq!(MacAddr(bytes).to_string().parse(), Ok(MacAddr(bytes)));
        }

        #[test]
        fn mac_parse_never_panics(text: std::string::String) {
            let _ = text.parse::<MacAddr>();
        }
    }
}
