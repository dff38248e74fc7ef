"""Flow hash and choice of the path: docs/forwarding-rules.md, section 9."""

import struct

M32 = 0xFFFFFFFF
M64 = 0xFFFFFFFFFFFFFFFF
SRC, DST, SPORT, DPORT, PROTO, FLOW_LABEL = 1, 2, 4, 8, 16, 128
DEFAULT = 0x9F


def _rot(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & M32


def lookup3(a: int, b: int, c: int) -> int:
    """One mix and one final of Bob Jenkins' public-domain lookup3."""
    v = [a & M32, b & M32, c & M32]
    for turn, by in enumerate((4, 6, 8, 16, 19, 4)):
        x, y, z = turn % 3, (turn + 1) % 3, (turn + 2) % 3
        v[x] = ((v[x] - v[z]) & M32) ^ _rot(v[z], by)
        v[z] = (v[z] + v[y]) & M32
    for turn, by in enumerate((14, 11, 25, 16, 4, 14, 24)):
        x = (2, 0, 1)[turn % 3]
        y = (1, 2, 0)[turn % 3]
        v[x] = ((v[x] ^ v[y]) - _rot(v[y], by)) & M32
    return v[2]


def mix64(a: int, b: int, c: int) -> int:
    for s0, s1, s2 in ((43, 9, 8), (38, 23, 5), (35, 49, 11), (12, 18, 22)):
        a = (a - b - c) & M64
        a ^= c >> s0
        b = (b - c - a) & M64
        b = (b ^ (a << s1)) & M64
        c = (c - a - b) & M64
        c ^= b >> s2
    return c & M32


def _ports(config: int, protocol: int, l4: bytes) -> tuple[int, int]:
    if protocol not in (6, 17) or len(l4) < 4:
        return 0, 0
    sport, dport = struct.unpack_from("<HH", l4)
    return (sport if config & SPORT else 0), (dport if config & DPORT else 0)


def hash4(packet: bytes, config: int = DEFAULT, router_id: int = 0) -> int:
    """`packet` is the IPv4 packet, already cut to its total length."""
    header = (packet[0] & 15) * 4
    fragment = struct.unpack_from(">H", packet, 6)[0] & 0x3FFF
    source, destination = struct.unpack_from("<II", packet, 12)
    protocol = packet[9]
    sport, dport = (0, 0) if fragment else _ports(config, protocol, packet[header:])
    a = source if config & SRC else 0
    b = destination if config & DST else 0
    b ^= protocol if config & PROTO else 0
    return lookup3(a ^ router_id, b, dport << 16 | sport)


def hash6(packet: bytes, config: int = DEFAULT, router_id: int = 0) -> int:
    """`packet` is the IPv6 packet, already cut to 40 + payload length."""
    words = struct.unpack_from("<QQQQ", packet, 8)
    protocol, at = packet[6], 40
    if protocol == 0 and len(packet) >= 48:
        protocol, at = packet[40], 40 + 8 * (packet[41] + 1)
    sport, dport = _ports(config, protocol, packet[at:])
    a = words[0] ^ words[1] if config & SRC else 0
    b = words[2] ^ words[3] if config & DST else 0
    b ^= protocol if config & PROTO else 0
    c = (dport << 16 | sport) ^ (router_id << 32)
    if config & FLOW_LABEL:
        c ^= struct.unpack("<I", bytes([0, packet[1] & 15, packet[2], packet[3]]))[0]
    return mix64(a, b, c)
