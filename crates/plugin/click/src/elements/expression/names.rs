//! Names of ports, protocols, types of ICMP and flags of TCP in expressions.

use crate::packet::{ICMP, TCP, UDP};

/// Protocols.
pub(super) const PROTOCOLS: [(&str, u8); 7] = [
    ("icmp", ICMP),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", TCP),
    ("udp", UDP),
    ("gre", 47),
    ("esp", 50),
];

/// Ports.
pub(super) const PORTS: [(&str, u16); 35] = [
    ("echo", 7),
    ("discard", 9),
    ("daytime", 13),
    ("chargen", 19),
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("dns", 53),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("finger", 79),
    ("http", 80),
    ("www", 80),
    ("pop3", 110),
    ("sunrpc", 111),
    ("auth", 113),
    ("nntp", 119),
    ("ntp", 123),
    ("netbios-ns", 137),
    ("netbios-dgm", 138),
    ("netbios-ssn", 139),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("bgp", 179),
    ("irc", 194),
    ("imap3", 220),
    ("https", 443),
    ("rip", 520),
    ("route", 520),
    ("imaps", 993),
    ("pop3s", 995),
];

/// Types of ICMP.
pub(super) const ICMP_TYPES: [(&str, u8); 15] = [
    ("echo-reply", 0),
    ("unreachable", 3),
    ("sourcequench", 4),
    ("redirect", 5),
    ("echo", 8),
    ("routeradvert", 9),
    ("routersolicit", 10),
    ("timeexceeded", 11),
    ("parameterproblem", 12),
    ("timestamp", 13),
    ("timestamp-reply", 14),
    ("inforeq", 15),
    ("inforeq-reply", 16),
    ("maskreq", 17),
    ("maskreq-reply", 18),
];

/// Flags of TCP.
pub(super) const TCP_FLAGS: [(&str, u8); 6] = [
    ("fin", 1),
    ("syn", 2),
    ("rst", 4),
    ("psh", 8),
    ("ack", 16),
    ("urg", 32),
];

/// The value of a name.
pub(super) fn find<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    let found = names.iter().find(|(it, _)| *it == name);
    found.map(|(_, value)| *value)
}
