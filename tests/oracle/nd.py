"""Neighbour discovery: section 15 of docs/forwarding-rules.md, as far as it needs no table."""

import ipaddress
import struct
from typing import NamedTuple, Optional, Union

from router import Interface

# What stands for "to nd-input" until the whole frame is at hand.
LATER = "nd-input: later"
ALL_NODES = ipaddress.IPv6Address("ff02::1").packed


class Found(NamedTuple):
    asks: bool
    solicited: bool
    source: bytes
    to: bytes
    target: bytes
    mac: Optional[bytes]


def group(address: bytes) -> bytes:
    return ipaddress.IPv6Address("ff02::1:ff00:0").packed[:13] + address[13:]


def link_local(mac: bytes) -> bytes:
    return b"\xfe\x80" + bytes(6) + bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:]


def own6(rx: Interface) -> list[bytes]:
    """Nothing where the interface has no IPv6 address."""
    own = [address.ip.packed for address in rx.addresses if address.version == 6]
    return own + [link_local(rx.mac)] if own else []


def right_sum(source: bytes, to: bytes, message: bytes) -> bool:
    data = source + to + struct.pack(">II", len(message), 58) + message + bytes(len(message) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    return total % 0xFFFF == 0 and total > 0


def options(rest: bytes) -> Optional[list[tuple[int, bytes]]]:
    found = []
    while rest:
        if len(rest) < 2 or rest[1] == 0 or 8 * rest[1] > len(rest):
            return None
        found.append((rest[0], rest[2:8 * rest[1]]))
        rest = rest[8 * rest[1]:]
    return found


def parse(packet: bytes) -> Union[str, Found]:
    """Rules 15.1 to 15.6."""
    length = struct.unpack_from(">H", packet, 4)[0] if len(packet) >= 40 else 0
    if len(packet) < 40 + length or len(packet) < 40 or packet[0] >> 4 != 6:
        return "malformed"
    message, source, to = packet[40:40 + length], packet[8:24], packet[24:40]
    if packet[6] != 58 or message[:1] not in (b"\x87", b"\x88"):
        return "not-nd"
    if packet[7] != 255:
        return "bad-hop-limit"
    if len(message) >= 8 and not right_sum(source, to, message):
        return "bad-checksum"
    asks, target, given = message[0] == 135, message[8:24], options(message[24:])
    if len(message) < 24 or message[1] != 0 or target[0] == 0xFF or given is None:
        return "bad-message"
    macs = [data for kind, data in given if kind == (1 if asks else 2) and len(data) == 6]
    solicited = not asks and bool(message[4] & 0x40)
    nobody = asks and source == bytes(16)
    if nobody and (to != group(target) or macs) or solicited and to[0] == 0xFF:
        return "bad-message"
    return Found(asks, solicited, source, to, target, macs[0] if macs else None)


def judge_sender(rx: Interface, found: Found) -> str:
    """Rules 15.7 to 15.10."""
    own = own6(rx)
    if not own:
        return "not-enabled"
    if found.mac is not None and (found.mac[0] & 1 or found.mac == bytes(6)):
        return "bad-sender-mac"
    source = ipaddress.IPv6Address(found.source)
    nobody = source.is_unspecified and not found.asks
    if source.is_multicast or source.is_loopback or source.ipv4_mapped is not None or nobody:
        return "bad-sender-address"
    return "" if found.to in own + [group(address) for address in own] + [ALL_NODES] else "not-for-us"


def answer(rx: Interface, found: Found, frame_mac: bytes) -> bytes:
    nobody = found.source == bytes(16)
    to, to_mac = (ALL_NODES, b"\x33\x33\0\0\0\1") if nobody else (found.source, found.mac or frame_mac)
    body = bytes([0xA0 if nobody else 0xE0, 0, 0, 0]) + found.target + b"\2\1" + rx.mac
    summed = found.target + to + struct.pack(">II", 32, 58) + b"\x88\0\0\0" + body
    total = sum(struct.unpack(f">{len(summed) // 2}H", summed)) % 0xFFFF
    message = b"\x88\0" + struct.pack(">H", 0xFFFF - total) + body
    return to_mac + rx.mac + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, 32, 58, 255) + found.target + to + message


def redirect(rx: Interface, packet: bytes, hop: bytes, mac: bytes) -> bytes:
    """RFC 4861, 4.5, with all of the packet that fits into 1280 bytes, in units of 8. The hop limit is one more than on the wire."""
    own = [a.ip.packed for a in rx.addresses if a.version == 6 and a.is_link_local] or [link_local(rx.mac)]
    body = b"\x89\0\0\0" + bytes(4) + hop + packet[24:40] + b"\2\1" + mac
    room = (1280 - 40 - len(body) - 8) // 8 * 8
    part = packet[:min(room, len(packet) // 8 * 8)]
    body += bytes([4, len(part) // 8 + 1]) + bytes(6) + part
    pseudo = own[0] + packet[8:24] + struct.pack(">II", len(body), 58) + body
    total = sum(struct.unpack(f">{len(pseudo) // 2}H", pseudo))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    body = body[:2] + struct.pack(">H", total ^ 0xFFFF) + body[4:]
    return struct.pack(">IHBB", 6 << 28, len(body), 58, 0) + own[0] + packet[8:24] + body
