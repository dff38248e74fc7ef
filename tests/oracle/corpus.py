"""At least one packet for every row of docs/forwarding-rules.md, made by hand, each with the outcome it must have.

The outcome is written down here as text, so that these cases test the oracle (test_oracle.py) as well as Volley
(`oracle.py corpus` writes them as pcap files).
"""

import ipaddress
import struct
from typing import NamedTuple

from rules import ones_complement_sum


class Case(NamedTuple):
    rule: str
    rx: str
    frame: bytes
    outcome: str


MAC = {name: bytes([0x02, 0xFE, 0, 0, 0, index]) for index, name in enumerate(
    ("pg0", "pg1", "pg2", "pg3", "pg4", "pg5", "pg6", "pg7", "pg8", "pg9", "pg10", "pg11", "pg12", "pg13"))}


def _mac_text(mac: bytes) -> str:
    return ":".join(f"{byte:02x}" for byte in mac)


def _path(tx: str, host: int, hop: str, **more) -> dict:
    return {"tx": tx, "mac": f"02:00:00:00:{int(tx[2:]):02x}:{host:02x}", "next_hop": hop, **more}


ROUTER = {
    "interfaces": [
        {"name": "pg0", "mac": _mac_text(MAC["pg0"]), "addresses": ["100.64.0.1/24", "2001:2::1/64"]},
        {"name": "pg1", "mac": _mac_text(MAC["pg1"]), "addresses": ["100.64.1.1/24", "2001:2:0:1::1/64"]},
        {"name": "pg2", "mac": _mac_text(MAC["pg2"]), "mtu": 1280, "addresses": ["100.64.2.1/24", "2001:2:0:2::1/64"]},
        {"name": "pg3", "mac": _mac_text(MAC["pg3"]), "admin": False, "addresses": ["100.64.3.1/24", "2001:2:0:3::1/64"]},
        {"name": "pg4", "mac": _mac_text(MAC["pg4"]), "table": 7, "table6": 7,
         "addresses": ["100.64.4.1/24", "2001:2:0:4::1/64"]},
        {"name": "pg5", "mac": _mac_text(MAC["pg5"]), "mode": "l2xc", "peer": "pg1"},
        {"name": "pg6", "mac": _mac_text(MAC["pg6"]), "mode": "l2patch", "peer": "pg1"},
        {"name": "pg7", "mac": _mac_text(MAC["pg7"]), "promiscuous": True},
        {"name": "pg8", "mac": _mac_text(MAC["pg8"]), "ip4": False, "ip6": False},
        {"name": "pg9", "mac": _mac_text(MAC["pg9"]), "mode": "l2patch", "peer": "pg3"},
        {"name": "pg10", "mac": _mac_text(MAC["pg10"]), "urpf": "strict", "urpf6": "strict"},
        {"name": "pg11", "mac": _mac_text(MAC["pg11"]), "urpf": "loose", "urpf6": "loose"},
        {"name": "pg12", "mac": _mac_text(MAC["pg12"]), "redirects": True, "addresses": ["192.0.3.1/24", "2001:db8:19::1/64"]},
        {"name": "pg13", "mac": _mac_text(MAC["pg13"]), "virtual_reassembly": True},
    ],
    "routes": [
        {"prefix": "10.0.0.0/8", "paths": [_path("pg1", 1, "192.0.2.2")]},
        {"prefix": "10.2.0.0/16", "paths": [_path("pg2", 1, "198.51.100.2")]},
        {"prefix": "10.3.0.0/16", "paths": [_path("pg3", 1, "203.0.113.2")]},
        {"prefix": "10.4.0.0/16", "kind": "drop"},
        {"prefix": "10.5.0.0/16", "kind": "unreachable"},
        {"prefix": "10.6.0.0/16", "kind": "prohibit"},
        {"prefix": "10.7.0.1/32", "kind": "local"},
        {"prefix": "10.8.0.0/16", "kind": "glean", "paths": [{"tx": "pg1"}]},
        {"prefix": "10.9.0.0/16", "paths": [{"tx": "pg1", "next_hop": "192.0.2.9"}]},
        {"prefix": "10.10.0.0/16", "paths": [_path("pg2", 2, "198.51.100.3"), _path("pg1", 2, "192.0.2.3")]},
        {"prefix": "10.11.0.0/16", "kind": "lookup", "to_table": 7},
        {"prefix": "10.12.0.0/16", "kind": "lookup", "to_table": 0},
        {"prefix": "10.13.0.255/32", "kind": "subnet-broadcast"},
        {"prefix": "10.14.0.0/16", "paths": [_path("pg3", 3, "203.0.113.3"), _path("pg1", 3, "192.0.2.4")]},
        {"prefix": "10.15.0.0/16", "paths": [_path("pg8", 1, "192.0.2.8")]},
        {"prefix": "10.16.0.255/32", "kind": "broadcast", "paths": [{"tx": "pg2"}]},
        {"prefix": "192.0.3.2/32", "paths": [_path("pg12", 2, "192.0.3.2")]},
        {"prefix": "192.0.3.9/32", "paths": [_path("pg12", 9, "192.0.3.9")]},
        {"prefix": "10.19.0.0/16", "paths": [_path("pg12", 2, "192.0.3.2")]},
        {"prefix": "2001:db8:19::2/128", "paths": [_path("pg12", 2, "2001:db8:19::2")]},
        {"prefix": "2001:db8:19::9/128", "paths": [_path("pg12", 9, "2001:db8:19::9")]},
        {"prefix": "2001:db8:1a::/48", "paths": [_path("pg12", 2, "fe80::2")]},
        {"prefix": "2001:db8:1b::/48", "paths": [_path("pg12", 2, "2001:db8:19::2")]},
        {"prefix": "10.17.0.0/16", "paths": [_path("pg10", 1, "192.0.2.10")]},
        {"prefix": "10.18.0.0/16", "paths": [_path("pg1", 2, "192.0.2.3"), _path("pg10", 1, "192.0.2.10")]},
        {"prefix": "10.11.0.0/16", "table": 7, "paths": [_path("pg1", 7, "192.0.2.7")]},
        {"prefix": "2001:db8::/32", "paths": [_path("pg1", 1, "2001:db8:ffff::2")]},
        {"prefix": "2001:db8:2::/48", "paths": [_path("pg2", 1, "2001:db8:fffe::2")]},
        {"prefix": "2001:db8:4::/48", "kind": "drop"},
        {"prefix": "2001:db8:5::/48", "kind": "unreachable"},
        {"prefix": "2001:db8:6::/48", "kind": "prohibit"},
        {"prefix": "2001:db8:7::1/128", "kind": "local"},
        {"prefix": "2001:db8:8::/48", "kind": "glean", "paths": [{"tx": "pg1"}]},
        {"prefix": "2001:db8:10::/48", "paths": [_path("pg2", 2, "2001:db8:fffe::3"), _path("pg1", 2, "2001:db8:ffff::3")]},
        {"prefix": "2001:db8:17::/48", "paths": [_path("pg10", 1, "2001:db8:ffff::10")]},
        {"prefix": "2001:db8:18::/48", "paths": [_path("pg1", 2, "2001:db8:ffff::3"), _path("pg10", 1, "2001:db8:ffff::10")]},
        {"prefix": "2001:db8:11::/48", "table": 7, "paths": [_path("pg1", 7, "2001:db8:ffff::7")]},
        {"prefix": "::ffff:0:0/96", "paths": [_path("pg1", 1, "2001:db8:ffff::2")]},
    ],
}

UDP = struct.pack(">HHHH", 1000, 2000, 16, 0) + b"abcdefgh"


def eth(kind: int, payload: bytes, dst: bytes = MAC["pg0"]) -> bytes:
    return dst + b"\x02\xaa\0\0\0\x01" + struct.pack(">H", kind) + payload


def ip4(dst: str = "10.1.2.3", src: str = "192.168.1.1", ttl: int = 64, options: bytes = b"", body: bytes = UDP,
        fragment: int = 0, proto: int = 17, **lie) -> bytes:
    """A right IPv4 packet, except for what `lie` says: version, ihl, total, checksum (added to the right one)."""
    ihl = lie.get("ihl", 5 + len(options) // 4)
    total = lie.get("total", 20 + len(options) + len(body))
    header = bytearray(struct.pack(">BBHHHBBH", lie.get("version", 4) << 4 | ihl, 0, total, lie.get("ident", 1),
                                   fragment, ttl, proto, 0))
    header += ipaddress.IPv4Address(src).packed + ipaddress.IPv4Address(dst).packed + options
    right = ones_complement_sum(bytes(header[:max(ihl, 5) * 4])) ^ 0xFFFF
    struct.pack_into(">H", header, 10, (right + lie.get("checksum", 0)) & 0xFFFF)
    return bytes(header) + body


def ip6(dst: str = "2001:db8:1::1", src: str = "2001:db8:aaaa::1", hops: int = 64, nh: int = 17, body: bytes = UDP,
        **lie) -> bytes:
    head = struct.pack(">IHBB", lie.get("version", 6) << 28 | lie.get("label", 0), lie.get("length", len(body)), nh, hops)
    return head + ipaddress.IPv6Address(src).packed + ipaddress.IPv6Address(dst).packed + body


def hop_by_hop(options: bytes, nh: int = 17, length: int = -1) -> bytes:
    options += b"\0" * (-(len(options) + 2) % 8)
    return bytes([nh, (len(options) + 2) // 8 - 1 if length < 0 else length]) + options + UDP


def with_checksum(wanted: int) -> bytes:
    """A packet whose right checksum is `wanted`, by choice of its identification."""
    ident = next(i for i in range(65536) if ip4(ident=i)[10:12] == struct.pack(">H", wanted))
    return ip4(ident=ident)


def v4(rule: str, outcome: str, packet: bytes, rx: str = "pg0") -> Case:
    return Case(rule, rx, eth(0x0800, packet, MAC[rx]), outcome)


def v6(rule: str, outcome: str, packet: bytes, rx: str = "pg0") -> Case:
    return Case(rule, rx, eth(0x86DD, packet, MAC[rx]), outcome)


ETHERNET = [
    Case("1.2", "pg3", eth(0x0800, ip4(), MAC["pg3"]), "pg-input: admin-down"),
    Case("2", "pg6", b"\x01\x02\x03\x04", "pg1"),
    Case("2", "pg6", eth(0x1234, b"anything", b"\x02" * 6), "pg1"),
    Case("2", "pg5", eth(0x8100, b"\x00\x05\x08\x00" + ip4(), b"\x02" * 6), "pg1"),
    Case("2.1", "pg5", b"\x01" * 13, "l2-xconnect: too-short"),
    Case("3.1", "pg0", MAC["pg0"] + b"\x01" * 7, "ethernet-input: too-short"),
    Case("3.3", "pg0", eth(0x0800, ip4(), b"\x02" * 6), "ethernet-input: not-my-mac"),
    Case("3.3", "pg7", eth(0x0800, ip4(), b"\x02" * 6), "pg1"),
    Case("3.4", "pg0", eth(0x8100, b"\0\x05\x08\0" + ip4()), "ethernet-input: unknown-vlan"),
    Case("3.4", "pg0", eth(0x88A8, b"\0\x05\x08\0" + ip4()), "ethernet-input: unknown-vlan"),
    Case("3.4", "pg0", eth(0x9100, b"\0\x05\x08\0" + ip4()), "ethernet-input: unknown-vlan"),
    Case("3.4", "pg0", eth(0x8100, b"\0\0\x08"), "ethernet-input: unknown-vlan"),
    Case("3.4", "pg0", eth(0x9100, b"\0\0\x08\0" + ip4()), "ethernet-input: unknown-vlan"),
    Case("3.10", "pg0", eth(0x8100, b"\0\0\x81\0\0\x05"), "vlan-input: truncated-tag"),
    Case("3.11", "pg0", eth(0x88A8, b"\0\0\x81\0\0\x05\x81\0\0\x05\x08\0" + ip4()), "vlan-input: too-many-tags"),
    Case("3.12", "pg0", eth(0x8100, b"\0\0\x81\0\0\x05\x08\0" + ip4()), "vlan-input: unknown-vlan"),
    Case("3.13", "pg0", eth(0x8100, b"\xe0\0\x08\0" + ip4(dst="10.1.2.113")), "pg1"),
    Case("3.13", "pg0", eth(0x88A8, b"\0\0\x88\xcc" + b"\0" * 46), "ethernet-input: unknown-ethertype"),
    Case("3.5", "pg0", eth(0x0806, b"\0" * 28, b"\xff" * 6), "arp-input: bad-format"),
    Case("3.6", "pg0", eth(0x88CC, b"\0" * 46), "ethernet-input: unknown-ethertype"),
    Case("3.6", "pg0", eth(0x0026, b"\x42\x42\x03" + b"\0" * 43, b"\x01\x80\xc2\0\0\0"), "ethernet-input: unknown-ethertype"),
    Case("3.7", "pg0", eth(0x0800, ip4(), b"\xff" * 6), "ethernet-input: group-mac"),
    Case("3.7", "pg0", eth(0x86DD, ip6(), b"\xff" * 6), "ethernet-input: group-mac"),
]

IPV4 = [
    v4("4", "pg1", ip4()),
    v4("4", "pg1", ip4(ttl=2)),
    v4("4", "pg1", ip4(ttl=255)),
    v4("4", "pg1", ip4(body=b"")),
    v4("4", "pg1", ip4(src="10.1.2.3")),
    v4("4", "pg1", ip4(fragment=0x2000)),
    v4("4", "pg1", ip4(fragment=0x1FFF)),
    v4("4.1", "ip4-input: too-short", ip4()[:19]),
    v4("4.1", "ip4-input: too-short", b""),
    v4("4.2", "ip4-input: bad-version", ip4(version=6)),
    v4("4.3", "ip4-input: bad-header-length", ip4(ihl=4)),
    v4("4.3", "ip4-input: bad-header-length", ip4(ihl=0)),
    v4("4.4", "ip4-input: bad-total-length", ip4(total=19)),
    v4("4.4", "ip4-input: bad-total-length", ip4(total=0)),
    v4("4.4", "ip4-input: bad-total-length", ip4(options=b"\1\1\1\1", total=23)),
    v4("4.5", "ip4-input: truncated", ip4(total=37)),
    v4("4.5", "ip4-input: truncated", ip4(body=b"", ihl=15, total=60)),
    v4("4.6", "ip4-input: bad-checksum", ip4(checksum=1)),
    v4("4.6", "ip4-input: bad-checksum", ip4(options=b"\1\1\1\0", checksum=0x100)),
    v4("4.7", "ip4-input: multicast-destination", ip4(dst="224.0.0.5", ttl=1)),
    v4("4.7", "ip4-input: multicast-destination", ip4(dst="239.255.255.255", src="0.0.0.0")),
    v4("4.8", "ip4-input: broadcast-destination", ip4(dst="255.255.255.255", src="0.0.0.0")),
    v4("4.9", "ip4-input: martian-destination", ip4(dst="0.1.2.3")),
    v4("4.9", "ip4-input: martian-destination", ip4(dst="127.0.0.1", src="127.0.0.1")),
    v4("4.9", "ip4-input: martian-destination", ip4(dst="240.0.0.1")),
    v4("4.9", "ip4-input: martian-destination", ip4(dst="255.255.255.254")),
    v4("4.10", "ip4-input: link-local", ip4(dst="169.254.1.1", ttl=1)),
    v4("4.10", "ip4-input: link-local", ip4(src="169.254.1.1")),
    v4("4.11", "ip4-input: ttl-expired", ip4(ttl=1)),
    v4("4.11", "ip4-input: ttl-expired", ip4(ttl=0)),
    v4("4.11", "ip4-input: ttl-expired", ip4(ttl=1, src="127.0.0.1")),
    v4("4.11", "ip4-local: port-unreachable", ip4(ttl=1, dst="10.7.0.1")),
    v4("4.11", "ip4-input: martian-source", ip4(ttl=0, src="127.0.0.1", dst="10.7.0.1")),
    v4("4.11", "ip4-local: port-unreachable", ip4(ttl=0, dst="10.7.0.1", options=b"\1\1\1\1")),
    v4("4.12", "ip4-input: martian-source", ip4(src="0.0.0.0")),
    v4("4.12", "ip4-input: martian-source", ip4(src="127.255.255.255")),
    v4("4.12", "ip4-input: martian-source", ip4(src="224.0.0.1")),
    v4("4.12", "ip4-input: martian-source", ip4(src="240.0.0.1")),
    v4("4.12", "ip4-input: martian-source", ip4(src="255.255.255.255")),
    v4("4", "pg1", ip4(src="126.255.255.255")),
    v4("4", "pg1", ip4(src="128.0.0.0")),
    v4("4", "pg1", ip4(src="223.255.255.255")),
    v4("4", "pg1", ip4(src="169.253.255.255")),
    v4("4", "pg1", ip4(src="169.255.0.0")),
    v4("5.1", "ip4-options: bad-options", ip4(options=b"\1\1\1\7")),
    v4("5.1", "ip4-options: bad-options", ip4(options=b"\7\1\1\1")),
    v4("5.1", "ip4-options: bad-options", ip4(options=b"\7\0\1\1")),
    v4("5.1", "ip4-options: bad-options", ip4(options=b"\7\5\4\0")),
    v4("5.1", "ip4-options: bad-options", ip4(options=b"\x83\5\4\0")),
    v4("5.3", "ip4-options: bad-options", ip4(options=b"\7\2\0\0")),
    v4("5.3", "ip4-options: bad-options", ip4(options=b"\7\7\3\0\0\0\0\0")),
    v4("5.3", "ip4-options: bad-options", ip4(options=b"\7\6\4\0\0\0\0\0")),
    v4("5.3", "ip4-options: bad-options", ip4(options=b"\7\7\4\0\0\0\0\7\7\4\0\0\0\0\0\0")),
    v4("5.4", "ip4-options: bad-options", ip4(options=b"\x44\3\5\0")),
    v4("5.4", "ip4-options: bad-options", ip4(options=b"\x44\x08\4\0\0\0\0\0")),
    v4("5.4", "ip4-options: bad-options", ip4(options=b"\x44\x08\6\0\0\0\0\0")),
    v4("5.4", "ip4-options: bad-options", ip4(options=b"\x44\x08\5\1\0\0\0\0")),
    v4("5.4", "ip4-options: bad-options", ip4(options=b"\x44\x08\x09\xf0\0\0\0\0")),
    v4("5.4", "ip4-options: bad-options", ip4(options=b"\x44\4\5\0\x44\4\5\0")),
    v4("5.2", "ip4-options: source-route", ip4(options=b"\1\x83\3\4")),
    v4("5.2", "ip4-options: source-route", ip4(options=b"\x89\7\4\x0a\0\0\1\0")),
    v4("5.2", "ip4-options: source-route", ip4(options=b"\x83\3\4\7")),
    v4("5", "pg1", ip4(options=b"\0\x83\1\1")),
    v4("5", "pg1", ip4(options=b"\x94\4\0\0")),
    v4("5", "pg1", ip4(options=b"\7\7\4\0\0\0\0\0", body=b"")),
    v4("5", "pg1", ip4(options=b"\1" * 40)),
    v4("5.5", "pg1", ip4(options=b"\7\x0b\4\0\0\0\0\0\0\0\0\0")),
    v4("5.5", "pg1", ip4(options=b"\7\x0b\x08\x0a\1\1\1\0\0\0\0\0")),
    v4("5.5", "pg1", ip4(options=b"\7\x0b\x0c\x0a\1\1\1\x0a\1\1\2\0")),
    v4("5.5", "pg1", ip4(options=b"\7\7\xff\0\0\0\0\0")),
    v4("5.5", "pg1|pg2", ip4(dst="10.10.0.1", options=b"\7\7\4\0\0\0\0\0")),
    v4("5.5", "ip4-local: port-unreachable", ip4(dst="10.7.0.1", options=b"\7\7\4\0\0\0\0\0")),
    v4("5.6", "pg1", ip4(options=b"\x44\x0c\5\0\0\0\0\0\0\0\0\0")),
    v4("5.6", "pg1", ip4(options=b"\x44\x0c\5\1\0\0\0\0\0\0\0\0")),
    v4("5.6", "pg1", ip4(options=b"\x44\x0c\5\3\x0a\7\0\1\0\0\0\0")),
    v4("5.6", "pg1", ip4(options=b"\x44\x0c\5\3\x0a\7\0\2\0\0\0\0")),
    v4("5.6", "pg1", ip4(options=b"\x44\x08\x09\x20\0\0\1\1")),
    v4("5.6", "pg1", ip4(options=b"\x44\x08\5\2\0\0\0\0")),
    v4("5.6", "pg1", ip4(options=b"\7\7\4\0\0\0\0\x44\x0c\5\1\0\0\0\0\0\0\0\0\0")),
]

ROUTES = [
    v4("6.1", "ip4-lookup: no-route", ip4(dst="11.0.0.1")),
    v4("6.1", "ip4-lookup: no-route", ip4(dst="10.1.2.3"), "pg4"),
    v4("6.2", "ip4-lookup: drop-route", ip4(dst="10.4.0.1")),
    v4("6.3", "ip4-lookup: unreachable", ip4(dst="10.5.0.1")),
    v4("6.4", "ip4-lookup: prohibited", ip4(dst="10.6.0.1")),
    v4("6.5", "ip4-local: no-tcp-listener", ip4(dst="10.7.0.1", proto=6)),
    v4("6.5", "pg1", ip4(dst="10.7.0.2")),
    v4("6.6", "ip4-glean: unresolved", ip4(dst="10.8.0.1")),
    v4("6.6", "ip4-glean: unresolved", ip4(dst="10.9.0.1")),
    v4("6.7", "pg1", ip4(dst="10.11.0.1"), "pg4"),
    v4("6.9", "pg1", ip4(dst="10.11.0.1")),
    v4("6.9", "ip4-lookup: lookup-loop", ip4(dst="10.12.0.1")),
    v4("7.1", "ip4-rewrite: frag-needed", ip4(dst="10.2.0.1", body=b"x" * 1261, fragment=0x4000)),
    v4("7.2", "pg2", ip4(dst="10.2.0.1", body=b"x" * 1261)),
    v4("7.2", "pg1", ip4(body=bytes(range(250)) * 36)),
    v4("7.2", "pg1", ip4(body=bytes(range(250)) * 200, fragment=0x8000)),
    v4("7.2", "pg2", ip4(dst="10.2.0.1", body=b"x" * 1264, fragment=0x2000)),
    v4("7.2", "pg2", ip4(dst="10.2.0.1", body=b"x" * 2513, fragment=0x0123)),
    v4("7.2", "pg2", ip4(dst="10.2.0.1", body=b"x" * 2512, fragment=0x3FFF)),
    v4("7.2", "pg2", ip4(dst="10.2.0.1", body=b"x" * 1400, options=b"\7\7\4\0\0\0\0\1\x94\4\0\0")),
    v4("7.2", "pg2", ip4(dst="10.2.0.1", body=b"x" * 1300, options=b"\1" * 39 + b"\0")),
    v4("7", "pg2", ip4(dst="10.2.0.1", body=b"x" * 1260)),
    v4("7", "pg1", ip4(body=b"x" * 1480)),
    v4("7", "pg1", ip4() + b"padding to be cut"),
    v4("7", "pg2", ip4(dst="10.2.0.1", body=b"x" * 1260) + b"trailer beyond the MTU"),
    v4("7", "pg1", with_checksum(0xFEFF)),
    v4("7", "pg1", with_checksum(0xFFFE)),
    v4("7", "pg1", with_checksum(0x0000)),
    v4("6.0", "ip4-not-enabled: not-enabled", ip4(), "pg8"),
    v6("6.0", "ip6-not-enabled: not-enabled", ip6(), "pg8"),
    v4("6.0", "ip4-input: ttl-expired", ip4(ttl=1), "pg8"),
    v4("6.10", "ip4-lookup: subnet-broadcast", ip4(dst="10.13.0.255")),
    v4("6.12", "pg2", ip4(dst="10.16.0.255")),
    v4("6.12", "pg2", ip4(dst="10.16.0.255", options=b"\1\1\1\1", src="192.168.1.2")),
    v4("6.12", "pg2", ip4(dst="10.16.0.255", body=b"x" * 1400, src="192.168.1.3")),
    v4("6.12", "ip4-rewrite: frag-needed", ip4(dst="10.16.0.255", body=b"x" * 1400, fragment=0x4000)),
    v4("6.13", "ip4-lookup: subnet-broadcast", ip4(dst="10.16.0.255"), "pg2"),
    v4("6.11", "ip4-lookup: interface-down", ip4(dst="10.3.0.1")),
    v4("6.11", "ip4-lookup: interface-down", ip4(dst="10.3.0.1", body=b"x" * 1481)),
    v4("6.8", "pg1", ip4(dst="10.14.0.1")),
    v4("6.8", "pg1", ip4(dst="10.14.0.2")),
    Case("8.1", "pg9", eth(0x0800, ip4()), "interface-output: interface-down"),
    v6("6.1", "ip6-lookup: no-route", ip6(dst="2001:db9::1")),
    v6("6.2", "ip6-lookup: drop-route", ip6(dst="2001:db8:4::1")),
    v6("6.3", "ip6-lookup: unreachable", ip6(dst="2001:db8:5::1")),
    v6("6.4", "ip6-lookup: prohibited", ip6(dst="2001:db8:6::1")),
    v6("6.5", "ip6-local: no-tcp-listener", ip6(dst="2001:db8:7::1", nh=6)),
    v6("6.6", "ip6-glean: unresolved", ip6(dst="2001:db8:8::1")),
    v6("6.7", "pg1", ip6(dst="2001:db8:11::1"), "pg4"),
    v6("7.3", "ip6-rewrite: packet-too-big", ip6(dst="2001:db8:2::1", body=b"x" * 1241)),
    v6("7", "pg2", ip6(dst="2001:db8:2::1", body=b"x" * 1240) + b"padding"),
]
# Flows enough that both members of each pair of paths are used; which one each takes is computed, not written here.
SPREAD = [v4("6.8", "pg1|pg2", ip4(dst=f"10.10.0.{n}", proto=(17, 6, 1)[n % 3], fragment=0x2000 if n % 5 == 0 else 0))
          for n in range(32)]
SPREAD += [v6("6.8", "pg1|pg2", ip6(dst=f"2001:db8:10::{n:x}", label=n * 1000, nh=(17, 6, 58)[n % 3])) for n in range(31)]
SPREAD += [v6("6.8", "pg1|pg2", ip6(dst="2001:db8:10::ff", nh=0, body=hop_by_hop(b"\5\2\0\0")))]

IPV6 = [
    v6("10", "pg1", ip6()),
    v6("10", "pg1", ip6(hops=2)),
    v6("10", "pg1", ip6(body=b"", nh=59)),
    v6("10", "pg1", ip6(body=b"", nh=17)),
    v6("10", "pg1", ip6(label=0x0FFFFFFF)),
    v6("10.1", "ip6-input: too-short", ip6()[:39]),
    v6("10.2", "ip6-input: bad-version", ip6(version=4)),
    v6("10.3", "ip6-input: truncated", ip6(length=17)),
    v6("10.4", "ip6-input: multicast-destination", ip6(dst="ff02::1", src="fe80::1", hops=1)),
    v6("10.5", "ip6-input: martian-destination", ip6(dst="::")),
    v6("10.5", "ip6-input: martian-destination", ip6(dst="::1", src="::1")),
    v6("10.6", "ip6-input: link-local", ip6(dst="fe80::1", hops=255)),
    v6("10.6", "ip6-input: link-local", ip6(src="febf::1", hops=1)),
    v6("10.7", "ip6-input: hop-limit-exceeded", ip6(hops=1)),
    v6("10.7", "ip6-local: no-tcp-listener", ip6(hops=1, dst="2001:db8:7::1", nh=6)),
    v6("10.7", "ip6-input: hop-limit-exceeded", ip6(hops=0, src="::")),
    v6("10.8", "ip6-input: martian-source", ip6(src="::")),
    v6("10.8", "ip6-input: martian-source", ip6(src="::1")),
    v6("10.8", "ip6-input: martian-source", ip6(src="ff02::1")),
    v6("10.8", "ip6-input: martian-source", ip6(src="::ffff:10.0.0.1")),
    v6("10", "pg1", ip6(dst="::ffff:10.0.0.1")),
    v6("10", "pg1", ip6(src="fec0::1")),
    v6("10", "pg1", ip6(nh=43, body=b"\x11\x02\x00\x01" + b"\0" * 20 + UDP)),
    v6("10", "pg1", ip6(nh=60, body=b"\x00\x00\1\4\0\0\0\0" + hop_by_hop(b"\xc1\0"))),
    v6("11", "pg1", ip6(nh=0, body=hop_by_hop(b"\5\2\0\0\1\0"))),
    v6("11", "pg1", ip6(nh=0, body=hop_by_hop(b"\1\x0c" + b"\0" * 12))),
    v6("11", "pg1", ip6(nh=0, body=hop_by_hop(b"\x3e\2\0\0"))),
    v6("11", "pg1", ip6(nh=0, body=hop_by_hop(b"")[:8])),
    v6("11.1", "ip6-hop-by-hop: jumbogram", ip6(nh=0, length=0, body=hop_by_hop(b"\xc2\4\0\1\0\0"))),
    v6("11.1", "ip6-hop-by-hop: jumbogram", ip6(nh=0, body=b"")),
    v6("11.2", "ip6-hop-by-hop: bad-hop-by-hop", ip6(nh=0, body=b"\x11\0\1\0\0\0\0")),
    v6("11.2", "ip6-hop-by-hop: bad-hop-by-hop", ip6(nh=0, body=hop_by_hop(b"\1\4\0\0\0\0", length=3))),
    v6("11.3", "ip6-hop-by-hop: bad-hop-by-hop", ip6(nh=0, body=hop_by_hop(b"\1\4\0\0\0\0", nh=0))),
    v6("11.4", "ip6-hop-by-hop: bad-hop-by-hop", ip6(nh=0, body=hop_by_hop(b"\1\3\0\0\0\5"))),
    v6("11.4", "ip6-hop-by-hop: bad-hop-by-hop", ip6(nh=0, body=hop_by_hop(b"\1\5\0\0\0\0"))),
    v6("11.5", "ip6-hop-by-hop: bad-hop-by-hop", ip6(nh=0, body=hop_by_hop(b"\xc2\4\0\1\0\0"))),
    v6("11.6", "ip6-hop-by-hop: unknown-option", ip6(nh=0, body=hop_by_hop(b"\x40\0"))),
    v6("11.6", "ip6-hop-by-hop: unknown-option", ip6(nh=0, body=hop_by_hop(b"\x8a\1\0"))),
    v6("11.6", "ip6-hop-by-hop: unknown-option", ip6(nh=0, body=hop_by_hop(b"\1\0\xff\0"))),
]

LOCAL4, LOCAL6 = "10.7.0.1", "2001:db8:7::1"


def with_sum(message: bytes, pseudo: bytes = b"", at: int = 2) -> bytes:
    """The message with the checksum that its bytes and the pseudo-header ask for."""
    right = ones_complement_sum(pseudo + message) ^ 0xFFFF
    return message[:at] + struct.pack(">H", right) + message[at + 2:]


def icmp4(kind: int, code: int = 0, data: bytes = b"data.") -> bytes:
    return with_sum(bytes([kind, code, 0, 0, 1, 2, 3, 4]) + data)


def to6(nh: int, message: bytes, before: bytes = b"", first: int = -1, **more) -> bytes:
    """An IPv6 packet for the router whose message has its checksum; `before` are extension headers."""
    source = more.setdefault("src", "2001:db8:aaaa::1")
    ends = ipaddress.IPv6Address(source).packed + ipaddress.IPv6Address(LOCAL6).packed
    summed = with_sum(message, ends + struct.pack(">II", len(message), nh), 6 if nh == 17 else 2)
    return ip6(dst=LOCAL6, nh=nh if first < 0 else first, body=before + summed, **more)


ECHO6 = bytes([128, 0, 0, 0, 1, 2, 3, 4]) + b"data."
PAD = b"\1\4\0\0\0\0"

LOCAL = [
    v6("12.1", "ip6-local: malformed", ip6(dst=LOCAL6, nh=60, body=b"\x11\3\1\4\0\0\0\0")),
    v6("12.1", "ip6-local: malformed", ip6(dst=LOCAL6, nh=60, body=b"\x11\0\1\5\0\0\0\0" + UDP)),
    v6("12.1", "ip6-local: malformed", ip6(dst=LOCAL6, nh=60, body=b"\x11\0\xc2\4\0\0\0\0" + UDP)),
    v6("12.1", "ip6-local: malformed", ip6(dst=LOCAL6, nh=44, body=b"\x11\0\0\0")),
    v6("12.1", "ip6-local: malformed", ip6(dst=LOCAL6, nh=43, body=b"\x11")),
    v6("12.2", "ip6-local: unknown-option", ip6(dst=LOCAL6, nh=60, body=b"\x11\0\x81\4\0\0\0\0" + UDP)),
    v6("12.2", "ip6-local: unknown-option", ip6(dst=LOCAL6, nh=60, body=b"\x11\0\x41\4\0\0\0\0" + UDP)),
    v6("12.3", "ip6-local: source-route", ip6(dst=LOCAL6, nh=43, body=b"\x11\0\0\1\0\0\0\0" + UDP)),
    v4("12.4", "ip4-full-reassembly: timeout", ip4(dst=LOCAL4, ident=2, proto=1, body=icmp4(8, data=b""), fragment=0x2000)),
    v6("12.4", "ip6-full-reassembly: timeout", ip6(dst=LOCAL6, nh=44, body=b"\x3a\0\0\1\0\0\0\1" + ECHO6[:8])),
    v4("17.1", "ip4-full-reassembly: empty-fragment", ip4(dst=LOCAL4, body=b"", fragment=7)),
    v6("17.1", "ip6-full-reassembly: empty-fragment", ip6(dst=LOCAL6, nh=44, body=b"\x11\0\0\1\0\0\0\2")),
    v4("17.2", "ip4-full-reassembly: bad-fragment-length", ip4(dst=LOCAL4, body=UDP + b"x" * (13 - len(UDP) % 8), fragment=0x2000)),
    v6("17.2", "ip6-full-reassembly: bad-fragment-length", ip6(dst=LOCAL6, nh=44, body=b"\x11\0\0\1\0\0\0\3" + b"x" * 9)),
    v4("17.3", "ip4-full-reassembly: too-long", ip4(dst=LOCAL4, body=b"x" * 8, fragment=0x1fff)),
    v6("17.3", "ip6-full-reassembly: too-long", ip6(dst=LOCAL6, nh=44, body=b"\x11\0\xff\xf8\0\0\0\4" + b"x" * 8)),
    v4("17.4", "ip4-full-reassembly: tiny-fragment", ip4(dst=LOCAL4, proto=6, body=b"x" * 16, fragment=0x2000)),
    v4("17.4", "ip4-full-reassembly: tiny-fragment", ip4(dst=LOCAL4, proto=6, body=b"x" * 16, fragment=1)),
    v6("17.4", "ip6-full-reassembly: tiny-fragment", ip6(dst=LOCAL6, nh=44, body=b"\6\0\0\1\0\0\0\5" + b"x" * 16)),
    v6("17.4", "ip6-full-reassembly: tiny-fragment", ip6(dst=LOCAL6, nh=44, body=b"\x3c\0\0\1\0\0\0\6\x11\3\1\4\0\0\0\0")),
    v6("17.5", "ip6-full-reassembly: fragmented-neighbour-discovery",
       ip6(dst=LOCAL6, nh=44, body=b"\x3a\0\0\1\0\0\0\7\x87\0\0\0\0\0\0\0")),
    v4("17.6", "ip4-full-reassembly: timeout", ip4(dst=LOCAL4, ident=3, fragment=7)),
    v6("17.6", "ip6-full-reassembly: timeout", ip6(dst=LOCAL6, nh=44, body=b"\x3a\0\0\x10\0\0\0\x08" + b"x" * 9)),
    v6("12.5", "ip6-local: no-payload", ip6(dst=LOCAL6, nh=59, body=b"")),
    v4("12.6", "ip4-local: icmp-too-short", ip4(dst=LOCAL4, proto=1, body=icmp4(8)[:7])),
    v6("12.6", "ip6-local: icmp-too-short", ip6(dst=LOCAL6, nh=58, body=b"")),
    v4("12.7", "ip4-local: bad-icmp-checksum", ip4(dst=LOCAL4, proto=1, body=icmp4(8) + b"x")),
    v6("12.7", "ip6-local: bad-icmp-checksum", ip6(dst=LOCAL6, nh=58, body=ECHO6)),
    v4("12.8", "pg1", ip4(dst=LOCAL4, src="10.1.2.9", proto=1, body=icmp4(8))),
    v4("12.8", "pg1", ip4(dst=LOCAL4, src="10.1.2.9", proto=1, body=icmp4(8, data=b""), ttl=1) + b"trailer"),
    v4("12.8", "pg1", ip4(dst=LOCAL4, src="10.1.2.9", proto=1, body=icmp4(8, data=b"x" * 1400), options=b"\1\1\1\1")),
    v4("12.8", "ip4-icmp-input: unknown-type", ip4(dst=LOCAL4, proto=1, body=icmp4(8, 1))),
    v4("12.8", "ip4-icmp-input: unknown-type", ip4(dst=LOCAL4, proto=1, body=icmp4(13))),
    v4("12.8", "ping-input: unexpected-reply", ip4(dst=LOCAL4, proto=1, body=icmp4(0))),
    v4("12.8", "ping-input: unexpected-error", ip4(dst=LOCAL4, proto=1, body=icmp4(3, 4))),
    v6("12.8", "pg1", to6(58, ECHO6)),
    v6("12.8", "pg1", to6(58, ECHO6, hops=0, label=77)),
    v6("12.8", "pg1", to6(58, ECHO6, b"\x3c\0" + PAD + b"\x2c\0" + PAD + b"\x3a\0\0\0\1\1\1\1", 0)),
    v6("12.8", "ip6-icmp-input: unknown-type", to6(58, bytes([133, 0, 0, 0]) + b"\0" * 20)),
    v6("12.8", "nd-input: bad-hop-limit", to6(58, bytes([135, 0, 0, 0]) + b"\0" * 20)),
    v6("12.8", "nd-input: not-nd", to6(58, bytes([136, 0, 0, 0]) + b"\0" * 20, b"\x3a\0" + PAD, 60)),
    v6("12.8", "ping-input: unexpected-reply", to6(58, b"\x81\0" + ECHO6[2:])),
    v6("12.8", "ping-input: unexpected-error", to6(58, b"\x89\0" + ECHO6[2:])),
    v4("12.9", "ip4-local: bad-udp-length", ip4(dst=LOCAL4, body=UDP[:7])),
    v4("12.9", "ip4-local: bad-udp-length", ip4(dst=LOCAL4, body=UDP[:-1])),
    v6("12.9", "ip6-local: bad-udp-length", ip6(dst=LOCAL6, body=UDP[:4] + b"\0\7" + UDP[6:])),
    v4("12.10", "ip4-local: bad-udp-checksum", ip4(dst=LOCAL4, body=UDP[:6] + b"\1\1" + UDP[8:])),
    v6("12.10", "ip6-local: bad-udp-checksum", ip6(dst=LOCAL6)),
    v6("12.11", "ip6-local: port-unreachable", to6(17, UDP)),
    v4("12.11", "ip4-local: port-unreachable", ip4(dst=LOCAL4)),
    v4("12.12", "ip4-local: no-tcp-listener", ip4(dst=LOCAL4, proto=6)),
    v4("12.13", "ip4-local: protocol-unreachable", ip4(dst=LOCAL4, proto=132)),
    v6("12.13", "ip6-local: protocol-unreachable", ip6(dst=LOCAL6, nh=50)),
    v6("12.13", "ip6-local: protocol-unreachable", ip6(dst=LOCAL6, nh=60, body=b"\0\0" + PAD + b"\x11\0" + PAD)),
]


class Told(NamedTuple):
    """A packet that is dropped, and what its sender is told: source, type, code and bytes 4 to 7, or nothing."""

    rule: str
    case: Case
    source: str
    words: str


def told4(rule: str, words: str, packet: bytes, source: str = "100.64.1.1", rx: str = "pg0") -> Told:
    return Told(rule, v4(rule, "", packet, rx), source, words)


def told6(rule: str, words: str, packet: bytes, source: str = "2001:2:0:1::1") -> Told:
    return Told(rule, v6(rule, "", packet), source, words)


def near(**more) -> bytes:
    """From a host that a route leads to."""
    return ip4(**{"src": "10.1.2.9", **more})


QUOTE4 = b"\x45" + b"\0" * 19
TELLING = [
    told4("13.9", "0b00 00000000", near(ttl=1)),
    told4("13.9", "0b00 00000000", near(ttl=1, options=b"\1\1\1\1", body=b"x" * 900) + b"trailer"),
    told4("13.9", "0b00 00000000", near(ttl=1, fragment=0x2000)),
    told4("13.9", "0b00 00000000", near(ttl=1, proto=1, body=icmp4(8))),
    told4("13.9", "0300 00000000", near(dst="11.0.0.1")),
    told4("13.9", "0300 00000000", near(dst="10.3.0.1")),
    told4("13.9", "0301 00000000", near(dst="10.5.0.1")),
    told4("13.9", "030d 00000000", near(dst="10.6.0.1")),
    told4("13.9", "0304 00000500", near(dst="10.2.0.1", body=b"x" * 1261, fragment=0x4000)),
    told4("13.9", "0303 00000000", near(dst=LOCAL4), LOCAL4),
    told4("13.9", "0302 00000000", near(dst=LOCAL4, proto=132), LOCAL4),
    told4("13.9", "0c00 14000000", near(options=b"\7\x27\4\0")),
    told4("13.9", "0c00 15000000", near(options=b"\1\7\1\4")),
    told4("13.9", "0c00 17000000", near(options=b"\1\7\3\3")),
    told4("13.9", "0c00 16000000", near(options=b"\x44\x08\5\1\0\0\0\0")),
    told4("13.9", "0303 00000000", near(dst=LOCAL4, options=b"\7\7\4\0\0\0\0\0"), LOCAL4),
    told4("13.9", "0b00 00000000", near(ttl=1, options=b"\7\7\4\0\0\0\0\0")),
    told4("13.9", "0301 00000000", near(dst="10.5.0.1", src="10.8.0.9")),
    told4("13.9", "0301 00000000", near(dst="10.8.0.1")),
    told4("13.9", "0301 00000000", near(dst="10.9.0.1")),
    told4("13.9", "0b00 00000000", ip4(ttl=1, src="10.2.0.9"), "100.64.2.1"),
    told4("13.9", "0b00 00000000", ip4(ttl=1, src="10.14.0.9")),
    told4("13.9", "0b00 00000000", ip4(ttl=1, src="10.10.0.9"), "100.64.0.1"),
    told4("13.1", "", near(ttl=1, src="127.0.0.1")),
    told4("13.2", "", near(ttl=1, proto=1, body=icmp4(3, 1, QUOTE4))),
    told4("13.2", "", near(ttl=1, proto=1, body=b"")),
    told4("13.3", "", near(ttl=1, fragment=1)),
    told4("13.4", "", near(ttl=1, dst="10.13.0.255")),
    told4("13.5", "", near(ttl=1, src=LOCAL4)),
    told4("13.5", "", near(ttl=1, src="10.13.0.255")),
    told4("13.6", "", near(ttl=1, src="192.168.1.1")),
    told4("13.6", "", near(ttl=1, src="10.4.0.1")),
    told4("13.7", "", ip4(ttl=1, src="10.15.0.9"), rx="pg8"),
    told4("13", "", near(dst="10.4.0.1")),
    told4("13", "", near(options=b"\x83\3\4\0")),
    told6("13.9", "0300 00000000", ip6(hops=1)),
    told6("13.9", "0300 00000000", ip6(hops=1, body=b"x" * 1400)),
    told6("13.9", "0100 00000000", ip6(dst="2001:db9::1")),
    told6("13.9", "0103 00000000", ip6(dst="2001:db8:5::1")),
    told6("13.9", "0101 00000000", ip6(dst="2001:db8:6::1")),
    told6("13.9", "0200 00000500", ip6(dst="2001:db8:2::1", body=b"x" * 1241)),
    told6("13.9", "0104 00000000", to6(17, UDP), LOCAL6),
    told6("13.9", "0401 00000006", ip6(dst=LOCAL6, nh=50), LOCAL6),
    told6("13.9", "0401 00000028", ip6(dst=LOCAL6, nh=60, body=b"\x32\0" + PAD + UDP), LOCAL6),
    told6("13.9", "0400 00000004", ip6(nh=0, body=b"")),
    told6("13.9", "0400 00000029", ip6(nh=0, body=hop_by_hop(b"\1\4\0\0\0\0", length=3))),
    told6("13.9", "0401 00000028", ip6(nh=0, body=hop_by_hop(PAD, nh=0))),
    told6("13.9", "0400 0000002c", ip6(nh=0, body=hop_by_hop(b"\0\0\1\x09\0\0"))),
    told6("13.9", "0402 0000002a", ip6(nh=0, body=hop_by_hop(b"\xc1\4\0\0\0\0"))),
    told6("13.9", "0402 0000002b", ip6(dst=LOCAL6, nh=60, body=b"\x11\0\0\x81\3\0\0\0"), LOCAL6),
    told6("13.9", "0400 0000002a", ip6(dst=LOCAL6, nh=43, body=b"\x11\0\0\1\0\0\0\0" + UDP), LOCAL6),
    told6("13.9", "0300 00000000", ip6(hops=1, nh=44, body=b"\x11\0\0\x08\0\0\0\1" + UDP)),
    told6("13.9", "0300 00000000", ip6(hops=1, nh=58, body=ECHO6)),
    told6("13.9", "0103 00000000", ip6(dst="2001:db8:8::1")),
    told4("13.9", "0b01 00000000", near(dst=LOCAL4, ident=9, fragment=0x2000, body=UDP[:8]), LOCAL4),
    told6("13.9", "0301 00000000", ip6(dst=LOCAL6, nh=44, body=b"\x11\0\0\1\0\0\0\x09" + UDP[:8]), LOCAL6),
    told6("13.9", "0400 00000004", ip6(dst=LOCAL6, nh=44, body=b"\x11\0\0\1\0\0\0\x0a" + b"x" * 9), LOCAL6),
    told6("13.9", "0400 0000002a", ip6(dst=LOCAL6, nh=44, body=b"\x11\0\xff\xf8\0\0\0\x0b" + b"x" * 8), LOCAL6),
    told6("13.9", "0403 00000000", ip6(dst=LOCAL6, nh=44, body=b"\6\0\0\1\0\0\0\x0c" + b"x" * 16), LOCAL6),
    told6("13.9", "0300 00000000", ip6(hops=1, src="2001:db8:2::9"), "2001:2:0:2::1"),
    told6("13.9", "0300 00000000", ip6(hops=1, src="2001:db8:10::9"), "2001:2::1"),
    told6("13.1", "", ip6(hops=1, src="ff02::1")),
    told6("13.2", "", ip6(hops=1, nh=58, body=b"\1" + ECHO6)),
    told6("13.2", "", ip6(hops=1, nh=60, body=b"\x3a\0" + PAD + b"\x89" + ECHO6)),
    told6("13.2", "", ip6(hops=1, nh=58, body=b"")),
    told6("13.3", "", ip6(hops=1, nh=44, body=b"\x3a\0\0\x08\0\0\0\1" + UDP)),
    told6("13.6", "", ip6(hops=1, src="2001:db9::1")),
    told6("13", "", ip6(nh=0, body=hop_by_hop(b"\x41\4\0\0\0\0"))),
    told6("13", "", ip6(dst=LOCAL6, nh=44, body=b"\x11\0\0\0")),
]
ERRORS = [told.case._replace(outcome="") for told in TELLING]


def arp(operation: int = 1, mac: bytes = b"\2\0\0\0\0\x55", sender: str = "100.64.0.9", target: str = "100.64.0.1",
        start: bytes = b"\0\1\x08\0\6\4") -> bytes:
    addresses = [ipaddress.IPv4Address(address).packed for address in (sender, target)]
    return start + struct.pack(">H", operation) + mac + addresses[0] + bytes(6) + addresses[1]


def arp_case(rule: str, outcome: str, packet: bytes, rx: str = "pg0") -> Case:
    return Case(rule, rx, eth(0x0806, packet, b"\xff" * 6), outcome)


ARP = [
    arp_case("14.1", "arp-input: too-short", arp()[:27]),
    arp_case("14.1", "arp-input: too-short", b""),
    arp_case("14.2", "arp-input: bad-format", arp(start=b"\0\6\x08\0\6\4")),
    arp_case("14.2", "arp-input: bad-format", arp(start=b"\0\1\x86\xdd\6\4")),
    arp_case("14.2", "arp-input: bad-format", arp(start=b"\0\1\x08\0\x08\x04")),
    arp_case("14.2", "arp-input: bad-format", arp(start=b"\0\1\x08\0\6\x10", operation=9)),
    arp_case("14.3", "arp-input: bad-operation", arp(0)),
    arp_case("14.3", "arp-input: bad-operation", arp(3, mac=bytes(6)), "pg8"),
    arp_case("14.4", "arp-input: not-enabled", arp(mac=bytes(6)), "pg8"),
    arp_case("14.5", "arp-input: bad-sender-mac", arp(mac=bytes(6), sender="127.0.0.1")),
    arp_case("14.5", "arp-input: bad-sender-mac", arp(mac=b"\xff" * 6)),
    arp_case("14.6", "arp-input: bad-sender-address", arp(sender="127.0.0.1")),
    arp_case("14.6", "arp-input: bad-sender-address", arp(sender="224.0.0.1")),
    arp_case("14.6", "arp-input: bad-sender-address", arp(sender="255.255.255.255")),
    arp_case("14.6", "arp-input: bad-sender-address", arp(2, sender="0.0.0.0")),
    arp_case("14.7", "arp-input: own-frame", arp(mac=MAC["pg0"], sender="100.64.0.1")),
    arp_case("14.8", "arp-input: address-conflict", arp(2, sender="100.64.0.1")),
    arp_case("14.8", "arp-input: address-conflict", arp(sender="10.7.0.1")),
    arp_case("14.9", "arp-input: sender-elsewhere", arp(sender="10.1.2.3")),
    arp_case("14.9", "arp-input: sender-elsewhere", arp(sender="203.0.113.77")),
    arp_case("14.10", "arp-input: not-for-us", arp(target="100.64.0.2")),
    arp_case("14.10", "arp-input: not-for-us", arp(target="100.64.0.9")),
    arp_case("14.10", "arp-input: not-for-us", arp(sender="0.0.0.0", target="10.7.0.1")),
    arp_case("14.11", "arp-input: static-only", arp(2)),
    arp_case("14.13", "pg0", arp()),
    arp_case("14.13", "pg0", arp(sender="0.0.0.0") + b"padding that is cut off"),
]

OWN6, HOST6, LINK6 = "2001:2::1", "2001:2::9", "fe80::fe:ff:fe00:0"
SOURCE_MAC, TARGET_MAC = b"\1\1\2\0\0\0\0\x55", b"\2\1\2\0\0\0\0\x55"


def nd(kind: int = 135, target: str = OWN6, src: str = HOST6, dst: str = "", options: bytes = SOURCE_MAC, flags: int = 0,
       code: int = 0, hops: int = 255, keep: int = 999, wrong: int = 0) -> bytes:
    """A message of neighbour discovery, to the target's group unless it is said where to."""
    last = ipaddress.IPv6Address(target).packed[13:].hex()
    to = dst or f"ff02::1:ff{last[:2]}:{last[2:]}"
    message = bytes([kind, code, 0, 0, flags, 0, 0, 0]) + ipaddress.IPv6Address(target).packed + options
    message = message[:keep]
    ends = ipaddress.IPv6Address(src).packed + ipaddress.IPv6Address(to).packed
    summed = with_sum(message, ends + struct.pack(">II", len(message), 58)) if len(message) >= 4 else message
    summed = summed[:2] + bytes(byte ^ wrong for byte in summed[2:4]) + summed[4:]
    return ip6(dst=to, src=src, nh=58, hops=hops, body=summed)


def nd_case(rule: str, outcome: str, packet: bytes, rx: str = "pg0") -> Case:
    return Case(rule, rx, eth(0x86DD, packet, b"\x33\x33" + packet[36:40].ljust(4, b"\0")), outcome)


def advert(target: str = HOST6, flags: int = 0x60, dst: str = OWN6, options: bytes = TARGET_MAC, **more) -> bytes:
    return nd(136, target, flags=flags, dst=dst, options=options, **more)


ND = [
    nd_case("3.9", "pg0", nd()),
    nd_case("3.7", "ethernet-input: group-mac", nd(), "pg8"),
    nd_case("15.1", "nd-input: malformed", nd()[:39]),
    nd_case("15.1", "nd-input: malformed", nd()[:71]),
    nd_case("15.1", "nd-input: malformed", b"\x70" + nd()[1:]),
    nd_case("15.2", "nd-input: not-nd", ip6(dst="ff02::fb")),
    nd_case("15.2", "nd-input: not-nd", ip6(dst="ff02::1", nh=58, body=b"")),
    nd_case("15.2", "nd-input: not-nd", nd(134)),
    nd_case("15.3", "nd-input: bad-hop-limit", nd(hops=254)),
    v6("15.3", "nd-input: bad-hop-limit", nd(src="fe80::9", dst=OWN6, hops=64)),
    nd_case("15.4", "nd-input: bad-checksum", nd(wrong=1)),
    nd_case("15.5", "nd-input: bad-message", nd(code=1)),
    nd_case("15.5", "nd-input: bad-message", nd(keep=7)),
    nd_case("15.5", "nd-input: bad-message", nd(keep=23)),
    nd_case("15.5", "nd-input: bad-message", nd(keep=25)),
    nd_case("15.5", "nd-input: bad-message", nd(keep=31)),
    nd_case("15.5", "nd-input: bad-message", nd(options=b"\1\0\2\0\0\0\0\x55")),
    nd_case("15.5", "nd-input: bad-message", nd(target="ff02::9")),
    nd_case("15.6", "nd-input: bad-message", nd(src="::")),
    nd_case("15.6", "nd-input: bad-message", nd(src="::", dst="ff02::1", options=b"")),
    nd_case("15.6", "nd-input: bad-message", advert(dst="ff02::1")),
    v6("15.7", "nd-input: not-enabled", nd(src="fe80::9", dst="fe80::1"), "pg8"),
    nd_case("15.8", "nd-input: bad-sender-mac", nd(options=b"\1\1\0\0\0\0\0\0")),
    nd_case("15.8", "nd-input: bad-sender-mac", nd(src="::1", options=b"\1\1\1\0\0\0\0\0")),
    nd_case("15.9", "nd-input: bad-sender-address", nd(src="ff02::1")),
    nd_case("15.9", "nd-input: bad-sender-address", nd(src="::1")),
    nd_case("15.9", "nd-input: bad-sender-address", nd(src="::ffff:10.0.0.1")),
    nd_case("15.9", "nd-input: bad-sender-address", advert(src="::", dst="ff02::1", flags=0x20)),
    nd_case("15.10", "nd-input: not-for-us", nd(target="2001:2::2:1")),
    nd_case("15.10", "nd-input: not-for-us", nd(dst="ff02::2")),
    nd_case("15.11", "nd-input: own-frame", nd(src=OWN6, options=b"\1\1" + MAC["pg0"])),
    nd_case("15.12", "nd-input: address-conflict", nd(src=OWN6)),
    nd_case("15.12", "nd-input: address-conflict", nd(src=LINK6)),
    nd_case("15.12", "nd-input: address-conflict", nd(src="2001:db8:7::1")),
    nd_case("15.12", "nd-input: address-conflict", advert(OWN6, dst="ff02::1", flags=0x20)),
    nd_case("15.13", "nd-input: sender-elsewhere", nd(src="2001:db8::9")),
    nd_case("15.13", "nd-input: sender-elsewhere", nd(src="2001:db9::9")),
    nd_case("15.14", "nd-input: not-for-us", nd(target="2001:2:0:5::1")),
    v6("15.15", "nd-input: static-only", advert(src="fe80::9", target="fe80::9")),
    nd_case("15.15", "nd-input: static-only", advert()),
    nd_case("15.15", "nd-input: static-only", advert(dst="ff02::1", flags=0x20, options=b"")),
    nd_case("15.17", "pg0", nd(src="::", options=b"")),
    nd_case("15.17", "pg0", nd(options=b"\x0e\1nonces") + b"padding"),
    nd_case("15.17", "pg0", nd(target=LINK6, src="fe80::9")),
    v6("15.17", "pg0", nd(src="fe80::9", dst=OWN6)),
    nd_case("15.17", "pg0", nd(dst=OWN6)),
]



def urpf(mode: str, reason: str) -> str:
    return f"{mode}: {reason}" if reason else "pg1"


def sources(rx: str, mode: str) -> list[Case]:
    """Section 18: what comes by an interface that checks sources; the empty reason for what passes."""
    other = "urpf-other-interface" if mode == "strict" else ""
    four = [("18.5", "10.17.0.9", ""), ("18.5", "10.18.0.9", ""), ("18.4", "10.1.9.9", other), ("18.4", "10.8.0.5", other),
            ("18.4", "10.10.0.1", other), ("18.4", "10.11.0.1", other), ("18.4", "10.9.0.1", other)]
    four += [("18.3", source, "urpf-no-route") for source in (
        "10.4.0.1", "10.5.0.1", "10.6.0.1", "10.7.0.1", "10.3.0.1", "10.13.0.255", "10.12.0.1", "192.168.1.1")]
    six = [("18.5", "2001:db8:17::9", ""), ("18.5", "2001:db8:18::9", ""), ("18.4", "2001:db8:aaaa::1", other),
           ("18.4", "2001:db8:8::1", other), ("18.4", "2001:db8:10::1", other)]
    six += [("18.3", f"2001:db8:{net}::1", "urpf-no-route") for net in (4, 5, 6, 7)] + [("18.3", "2001:dba::1", "urpf-no-route")]
    return ([v4(rule, urpf(f"ip4-rx-urpf-{mode}", reason), ip4(src=source), rx) for rule, source, reason in four]
            + [v4(rule, urpf(f"ip4-rx-urpf-{mode}", reason), ip4(src=source, options=b"\1\1\1\1"), rx) for rule, source, reason in four]
            + [v6(rule, urpf(f"ip6-rx-urpf-{mode}", reason), ip6(src=source), rx) for rule, source, reason in six])


def back(rule: str, packet: bytes) -> Case:
    """Section 19: what leaves by the interface that it came in by."""
    return (v6 if packet[0] >> 4 == 6 else v4)(rule, "pg12", packet, "pg12")


REDIRECTS = [
    v4("19.1", "pg1", ip4(src="100.64.1.9"), "pg1"), v6("19.1", "pg1", ip6(src="2001:2:0:1::9"), "pg1"),
    v4("19.2", "pg1", ip4(src="192.0.3.9"), "pg12"), v6("19.2", "pg1", ip6(src="2001:db8:19::9"), "pg12"),
    back("19.3", ip4(dst="10.19.0.1", src="192.0.3.9", fragment=5)),
    back("19.3", ip4(dst="10.19.0.1", src="192.0.3.9", proto=1, body=b"\3\1" + bytes(6))),
    back("19.3", ip6(dst="2001:db8:1a::1", src="2001:db8:19::9", nh=58, body=b"\1\0" + bytes(6))),
    back("19.4", ip4(dst="10.19.0.1", src="192.0.4.9")), back("19.4", ip4(dst="10.19.0.1", src="192.0.3.2")),
    back("19.4", ip6(dst="2001:db8:1a::1", src="2001:db8:20::9")),
    back("19.5", ip6(dst="2001:db8:1b::1", src="2001:db8:19::9")),
    back("19.7", ip4(dst="10.19.0.1", src="192.0.3.9")), back("19.7", ip4(dst="192.0.3.2", src="192.0.3.9")),
    back("19.7", ip4(dst="10.19.0.1", src="192.0.3.9", body=b"y" * 1400, options=b"\1\1\1\1")),
    back("19.7", ip6(dst="2001:db8:1a::1", src="2001:db8:19::9")), back("19.7", ip6(dst="2001:db8:19::2", src="2001:db8:19::9")),
    back("19.7", ip6(dst="2001:db8:1a::1", src="2001:db8:19::9", body=b"z" * 1401)),
    back("19.7", ip6(dst="2001:db8:1a::1", src="2001:db8:19::9", nh=0, body=hop_by_hop(b"\1\4\0\0\0\0"))),
]

URPF = sources("pg10", "strict") + sources("pg11", "loose") + [
    v4("18.1", "pg1", ip4(src="192.168.1.1")), v6("18.1", "pg1", ip6(src="2001:dba::1"))]

def first(rule: str, ident: int, head: bytes = b"", more: int = 1) -> list[Case]:
    """Section 21: a first fragment of a flow for either path of a route; IPv6 with `head` in front."""
    body = struct.pack(">HHHH", 4000 + ident, 53, 2000, 0) + b"f" * 24
    cut = b"\x11\0" + struct.pack(">HI", more, ident) + body
    six = ip6(dst="2001:db8:10::9", nh=head[0] if head else 44, body=head[1:] + cut)
    four = ip4(dst="10.10.0.9", ident=ident, fragment=0x2000, body=body, options=b"\1" * (4 * (ident % 3)))
    return [v4(rule, "pg1|pg2", four, "pg13"), v6(rule, "pg1|pg2", six, "pg13")]


def wrong_in_transit(rule: str, reason: str, *packets: bytes) -> list[Case]:
    return [(v6 if packet[0] >> 4 == 6 else v4)(rule, f"ip{packet[0] >> 4}-sv-reassembly: {reason}", packet, "pg13")
            for packet in packets]


VIRTUAL = [
    *(case for n in range(40, 56) for case in first("21.7", n)),
    *first("21.7", 60, b"\0\x2c\0" + PAD), *first("21.7", 61, b"\x3c\x2c\0" + PAD), *first("21.7", 62, more=0),
    v4("21.1", "pg1", ip4(fragment=5)), v6("21.1", "pg1", ip6(nh=44, body=b"\x11\0\0\x28\0\0\0\7" + b"x" * 8)),
    v4("21.1", "pg1", ip4(), "pg13"), v6("21.1", "pg1", ip6(nh=60, body=b"\x11\0" + PAD + UDP), "pg13"),
    *wrong_in_transit("21.2", "empty-fragment", ip4(body=b"", fragment=7), ip6(nh=44, body=b"\x11\0\0\1\0\0\0\2")),
    *wrong_in_transit("21.3", "bad-fragment-length", ip4(body=b"x" * 13, fragment=0x2000),
                      ip6(nh=44, body=b"\x11\0\0\1\0\0\0\3" + b"x" * 9)),
    *wrong_in_transit("21.4", "too-long", ip4(body=b"x" * 8, fragment=0x1fff),
                      ip6(nh=44, body=b"\x11\0\xff\xf8\0\0\0\4" + b"x" * 8)),
    *wrong_in_transit("21.5", "tiny-fragment", ip4(proto=6, body=b"x" * 16, fragment=0x2000), ip4(proto=6, body=b"x" * 16, fragment=1),
                      ip6(nh=44, body=b"\6\0\0\1\0\0\0\5" + b"x" * 16),
                      ip6(nh=44, body=b"\x3c\0\0\1\0\0\0\6\x11\3\1\4\0\0\0\0")),
    *wrong_in_transit("21.6", "fragmented-neighbour-discovery", ip6(nh=44, body=b"\x3a\0\0\1\0\0\0\7\x87\0\0\0\0\0\0\0")),
    *wrong_in_transit("21.11", "timeout", ip4(ident=30, fragment=7), ip4(ident=31, fragment=0x2007, body=b"y" * 800),
                      ip6(nh=44, body=b"\x3a\0\0\x10\0\0\0\x08" + b"x" * 9)),
]

CASES = ETHERNET + ARP + ND + IPV4 + ROUTES + SPREAD + IPV6 + LOCAL + URPF + REDIRECTS + VIRTUAL
ALL = CASES + ERRORS
