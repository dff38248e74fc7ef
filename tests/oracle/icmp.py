"""What the router itself says: sections 12 and 13 of docs/forwarding-rules.md.

`local4` and `local6` judge packets for the router: a reason, or the answer to an echo request. `about` writes the error
that tells a packet's sender of a drop.
"""

import ipaddress
import struct
from typing import NamedTuple, Optional, Union

import nd
import options4

HOPS = 65
ERRORS4 = (3, 4, 5, 11, 12)
PLAIN = {  # reason: ICMP type and code, ICMPv6 type and code
    "ip4-input: ttl-expired": (11, 0), "ip6-input: hop-limit-exceeded": (3, 0),
    "ip4-lookup: no-route": (3, 0), "ip6-lookup: no-route": (1, 0),
    "ip4-lookup: interface-down": (3, 0), "ip6-lookup: interface-down": (1, 0),
    "ip4-lookup: unreachable": (3, 1), "ip6-lookup: unreachable": (1, 3),
    "ip4-glean: unresolved": (3, 1), "ip6-glean: unresolved": (1, 3),
    "ip4-lookup: prohibited": (3, 13), "ip6-lookup: prohibited": (1, 1),
    "ip4-rewrite: frag-needed": (3, 4), "ip6-rewrite: packet-too-big": (2, 0),
    "ip4-local: port-unreachable": (3, 3), "ip6-local: port-unreachable": (1, 4),
    "ip4-local: protocol-unreachable": (3, 2),
    "ip6-full-reassembly: tiny-fragment": (4, 3),
}
SPECIAL = ("ip4-options: bad-options", "ip6-hop-by-hop: jumbogram", "ip6-hop-by-hop: bad-hop-by-hop",
           "ip6-hop-by-hop: unknown-option", "ip6-local: malformed", "ip6-local: unknown-option",
           "ip6-local: source-route", "ip6-local: protocol-unreachable")


class Answer(NamedTuple):
    packet: bytes


class Stop(NamedTuple):
    reason: str
    code: Optional[int]
    pointer: int


class Upper(NamedTuple):
    proto: int
    at: int
    named_at: int


def ones_sum(data: bytes) -> int:
    total = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def pseudo(packet: bytes, proto: int, length: int) -> bytes:
    if packet[0] >> 4 == 4:
        return packet[12:20] + struct.pack(">BBH", 0, proto, length)
    return packet[8:40] + struct.pack(">IHBB", length, 0, 0, proto)


def judge_udp(packet: bytes, at: int) -> str:
    body = packet[at:]
    if len(body) < 8:
        return "bad-udp-length"
    length, checksum = struct.unpack_from(">HH", body, 4)
    if not 8 <= length <= len(body):
        return "bad-udp-length"
    if checksum == 0:
        return "port-unreachable" if packet[0] >> 4 == 4 else "bad-udp-checksum"
    right = ones_sum(pseudo(packet, 17, length) + body[:length]) == 0xFFFF
    return "port-unreachable" if right else "bad-udp-checksum"


def local4(packet: bytes) -> Union[str, Answer]:
    """Section 12; `packet` is cut to its total length and passed section 4."""
    at = (packet[0] & 15) * 4
    if struct.unpack_from(">H", packet, 6)[0] & 0x3FFF:
        return "ip4-full-reassembly: " + judge_fragment4(packet)
    if packet[9] == 1:
        body = packet[at:]
        if len(body) < 8:
            return "ip4-local: icmp-too-short"
        if ones_sum(body) != 0xFFFF:
            return "ip4-local: bad-icmp-checksum"
        if (body[0], body[1]) == (8, 0):
            return Answer(echo4(packet, at))
        return judge_message("ip4", body, 0, body[0] in ERRORS4)
    if packet[9] == 17:
        return "ip4-local: " + judge_udp(packet, at)
    return "ip4-local: " + ("no-tcp-listener" if packet[9] == 6 else "protocol-unreachable")


LEAST = {1: 8, 6: 20, 17: 8, 58: 8, 132: 12, 136: 8}


def judge_fragment4(packet: bytes) -> str:
    """Section 17; the fragment is alone."""
    word, head = struct.unpack_from(">H", packet, 6)[0], (packet[0] & 15) * 4
    start, more, part = (word & 0x1FFF) * 8, word & 0x2000, len(packet) - head
    if part == 0:
        return "empty-fragment"
    if more and part % 8:
        return "bad-fragment-length"
    if start + part + head > 65535:
        return "too-long"
    if packet[9] == 6 and start == 8 or start == 0 and part < LEAST.get(packet[9], 0):
        return "tiny-fragment"
    return "timeout"


def judge_fragment6(packet: bytes, at: int) -> str:
    word, part = struct.unpack_from(">H", packet, at + 2)[0], len(packet) - at - 8
    start, more = word & 0xFFF8, word & 1
    if part == 0:
        return "empty-fragment"
    if more and part % 8:
        return "bad-fragment-length"
    if at - 40 + start + part > 65535:
        return "too-long"
    if start:
        return "timeout"
    found = headers6(packet[:6] + bytes([packet[at]]) + packet[7:40] + packet[at + 8:])
    if isinstance(found, Stop):
        return "tiny-fragment" if found.reason == "malformed" else "timeout"
    message = packet[at + 8 + found.at - 40:]
    if len(message) < LEAST.get(found.proto, 0):
        return "tiny-fragment"
    return "fragmented-neighbour-discovery" if found.proto == 58 and 133 <= message[0] <= 137 else "timeout"


def judge_message(family: str, body: bytes, reply: int, is_error: bool) -> str:
    if is_error:
        return "ping-input: unexpected-error"
    return "ping-input: unexpected-reply" if (body[0], body[1]) == (reply, 0) else f"{family}-icmp-input: unknown-type"


def echo4(packet: bytes, at: int) -> bytes:
    head = bytearray(packet[:at])
    head[8], head[10:12], head[12:16], head[16:20] = HOPS, b"\0\0", packet[16:20], packet[12:16]
    struct.pack_into(">H", head, 10, ones_sum(bytes(head)) ^ 0xFFFF)
    body = bytearray(packet[at:])
    body[0], body[2:4] = 0, b"\0\0"
    struct.pack_into(">H", body, 2, ones_sum(bytes(body)) ^ 0xFFFF)
    return bytes(head + body)


def judge_options6(options: bytes, at: int, local: bool) -> Optional[Stop]:
    """`at` is where they stand in the packet."""
    bad = "malformed" if local else "bad-hop-by-hop"
    place = 0
    while place < len(options):
        kind = options[place]
        if kind == 0:
            place += 1
            continue
        if place + 1 >= len(options) or place + 2 + options[place + 1] > len(options) or kind == 0xC2:
            return Stop(bad, 0, at + place)
        if kind not in (1, 5) and kind & 0xC0:
            return Stop("unknown-option", None if kind >> 6 == 1 else 2, at + place)
        place += 2 + options[place + 1]
    return None


def hop_by_hop(packet: bytes, local: bool) -> Optional[Stop]:
    """Section 11 with what is said about it."""
    bad = "malformed" if local else "bad-hop-by-hop"
    body = packet[40:]
    if not body:
        return Stop("malformed" if local else "jumbogram", 0, 4)
    if len(body) < 8 or 8 * (body[1] + 1) > len(body):
        return Stop(bad, 0, 41)
    if body[0] == 0:
        return Stop(bad, 1, 40)
    return judge_options6(body[2:8 * (body[1] + 1)], 42, local)


def headers6(packet: bytes) -> Union[Stop, Upper]:
    proto, named_at, at = packet[6], 6, 40
    while True:
        if proto == 59:
            return Stop("no-payload", None, 0)
        if proto == 44:
            head = packet[at:at + 8]
            if len(head) < 8:
                return Stop("malformed", None, 0)
            if struct.unpack_from(">H", head, 2)[0] & 0xFFF9:
                return Stop("fragment", None, at)
            proto, named_at, at = head[0], at, at + 8
            continue
        if proto == 0 and at == 40:
            found = hop_by_hop(packet, True)
            if found:
                return found
        elif proto not in (43, 60):
            return Upper(proto, at, named_at)
        if at + 2 > len(packet) or at + 8 * (packet[at + 1] + 1) > len(packet):
            return Stop("malformed", 0, at + 1)
        size = 8 * (packet[at + 1] + 1)
        if proto == 60:
            found = judge_options6(packet[at + 2:at + size], at + 2, True)
            if found:
                return found
        if proto == 43 and packet[at + 3]:
            return Stop("source-route", 0, at + 2)
        proto, named_at, at = packet[at], at, at + size


def local6(packet: bytes) -> Union[str, Answer]:
    found = headers6(packet)
    if isinstance(found, Stop) and found.reason == "fragment":
        return "ip6-full-reassembly: " + judge_fragment6(packet, found.pointer)
    if isinstance(found, Stop):
        return "ip6-local: " + found.reason
    body = packet[found.at:]
    if found.proto == 58:
        if len(body) < 8:
            return "ip6-local: icmp-too-short"
        if ones_sum(pseudo(packet, 58, len(body)) + body) != 0xFFFF:
            return "ip6-local: bad-icmp-checksum"
        if (body[0], body[1]) == (128, 0):
            return Answer(message6(packet[24:40], packet[8:24], bytes([129, 0]) + body[4:]))
        if body[0] in (135, 136):
            return nd.LATER
        return judge_message("ip6", body, 129, body[0] < 128 or body[0] == 137)
    if found.proto == 17:
        return "ip6-local: " + judge_udp(packet, found.at)
    return "ip6-local: " + ("no-tcp-listener" if found.proto == 6 else "protocol-unreachable")


def message6(source: bytes, destination: bytes, body: bytes) -> bytes:
    """An ICMPv6 packet; `body` lacks its checksum field."""
    body = body[:2] + b"\0\0" + body[2:]
    head = struct.pack(">IHBB", 6 << 28, len(body), 58, HOPS) + source + destination
    checksum = ones_sum(pseudo(head, 58, len(body)) + body) ^ 0xFFFF
    return head + body[:2] + struct.pack(">H", checksum) + body[4:]


def message4(source: bytes, destination: bytes, tos: int, body: bytes) -> bytes:
    body = body[:2] + b"\0\0" + body[2:]
    checksum = ones_sum(body) ^ 0xFFFF
    body = body[:2] + struct.pack(">H", checksum) + body[4:]
    head = struct.pack(">BBHHHBBH", 0x45, 0xC0 | tos & 0x1E, 20 + len(body), 0, 0x4000, HOPS, 1, 0) + source + destination
    return head[:10] + struct.pack(">H", ones_sum(head) ^ 0xFFFF) + head[12:] + body


def outer_protocol(packet: bytes) -> Optional[tuple[int, int, bool]]:
    """What an IPv6 packet carries, where, and whether that is a later fragment; none when it cannot be told."""
    proto, at = packet[6], 40
    while proto in (0, 43, 44, 51, 60):
        if at + 2 > len(packet):
            return None
        if proto == 44:
            if at + 8 > len(packet):
                return None
            if struct.unpack_from(">H", packet, at + 2)[0] & 0xFFF8:
                return packet[at], at + 8, True
            proto, at = packet[at], at + 8
            continue
        size = 4 * (packet[at + 1] + 2) if proto == 51 else 8 * (packet[at + 1] + 1)
        if proto != 51 and at + size > len(packet):
            return None
        proto, at = packet[at], at + size
    return proto, at, False


def in_silence(packet: bytes) -> bool:
    """Rules 13.1 to 13.3."""
    if packet[0] >> 4 == 4:
        source = ipaddress.IPv4Address(packet[12:16])
        if any(source in ipaddress.IPv4Network(net) for net in ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3")):
            return True
        if struct.unpack_from(">H", packet, 6)[0] & 0x1FFF:
            return True
        at = (packet[0] & 15) * 4
        return packet[9] == 1 and (len(packet) <= at or packet[at] in ERRORS4)
    source6 = ipaddress.IPv6Address(packet[8:24])
    if int(source6) < 2 or source6 in ipaddress.IPv6Network("ff00::/8") or source6 in ipaddress.IPv6Network("::ffff:0:0/96"):
        return True
    found = outer_protocol(packet)
    if found is None or found[0] != 58:
        return False
    return found[2] or len(packet) <= found[1] or packet[found[1]] < 128 or packet[found[1]] == 137


def words(reason: str, packet: bytes, mtu: int) -> Optional[bytes]:
    """Type, code and bytes 4 to 7 of the error; none when nobody is told."""
    if reason in PLAIN:
        kind, code = PLAIN[reason]
        return bytes([kind, code]) + struct.pack(">I", mtu if "-rewrite: " in reason else 0)
    if reason.endswith("-full-reassembly: timeout"):
        later = later_fragment(packet)
        return None if later else bytes([11 if packet[0] >> 4 == 4 else 3, 1, 0, 0, 0, 0])
    if reason in ("ip6-full-reassembly: bad-fragment-length", "ip6-full-reassembly: too-long"):
        pointer = 4 if "length" in reason else headers6(packet).pointer + 2
        return bytes([4, 0]) + struct.pack(">I", pointer)
    if reason not in SPECIAL:
        return None
    if reason == "ip4-options: bad-options":
        return bytes([12, 0, bad_option4(packet), 0, 0, 0])
    if reason == "ip6-local: protocol-unreachable":
        found = headers6(packet)
        return bytes([4, 1]) + struct.pack(">I", found.named_at)
    stop = hop_by_hop(packet, False) if "hop-by-hop" in reason.split(":")[0] else headers6(packet)
    if stop.code is None:
        return None
    return bytes([4, stop.code]) + struct.pack(">I", stop.pointer)


def later_fragment(packet: bytes) -> bool:
    if packet[0] >> 4 == 4:
        return bool(struct.unpack_from(">H", packet, 6)[0] & 0x1FFF)
    return bool(struct.unpack_from(">H", packet, headers6(packet).pointer + 2)[0] & 0xFFF8)


def bad_option4(packet: bytes) -> int:
    end, at = (packet[0] & 15) * 4, 20
    while True:
        if packet[at] == 1:
            at += 1
        elif at + 1 >= end or packet[at + 1] < 2 or at + packet[at + 1] > end:
            return at
        else:
            at += packet[at + 1]
            inside = options4.fault(packet[:at])
            if inside is not None:
                return inside


def error(packet: bytes, what: bytes, source: bytes) -> bytes:
    if packet[0] >> 4 == 4:
        return message4(source, packet[12:16], packet[1], what + packet[:548])
    return message6(source, packet[8:24], what + packet[:1232])
