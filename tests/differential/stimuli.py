"""The packets that both routers get: the oracle's corpus, captures of real traffic where they are, and packets made here."""

import ipaddress
import os
import random
import struct
from typing import NamedTuple

import corpus
from capture import read
from corpus import LOCAL4, LOCAL6, PAD, UDP, eth, hop_by_hop, icmp4, ip4, ip6, to6
from oracle import strip_vlan
from routers import MACS, MARKED, NEXT6, OWN

CAPTURES = ("valid", "mix4k-snabb", "odd", "malformed", "jumbo")


class Stimulus(NamedTuple):
    name: str
    rx: str
    frame: bytes

    @property
    def packet(self) -> bytes:
        return self.frame[14:]


def marker(rx: str, to: str, number: int) -> bytes:
    """A packet by which outputs are told apart: what leaves between two of them belongs to the packet in between."""
    body = struct.pack(">HHHH", 9, 9, 20, 0) + b"volley##" + struct.pack(">I", number)
    return eth(0x0800, ip4(dst=MARKED[to], src="10.1.255.254", body=body), MACS[rx])


def marked(frame: bytes) -> int:
    """A marker's number; -1 for anything else."""
    return struct.unpack_from(">I", frame, 50)[0] if frame[42:50] == b"volley##" and len(frame) == 54 else -1


def everything(captures: str, every: int) -> list[Stimulus]:
    """`captures` is a folder; of each file one packet in `every` is taken. Packets for which something happens later are last."""
    found = from_captures(captures, every) + from_corpus() + made()
    return [s for s in found if not is_slow(s)] + [s for s in found if is_slow(s)]


def from_captures(folder: str, every: int) -> list[Stimulus]:
    found = []
    for name in CAPTURES:
        path = os.path.join(folder, f"{name}.pcap.xz")
        if not os.path.exists(path):
            continue
        for number, frame in enumerate(read(path)):
            if number % every == 0 and len(frame.data) >= 14:
                data = strip_vlan(frame.data) if name == "mix4k-snabb" else frame.data
                found.append(Stimulus(f"{name} packet {number + 1}", "pg0", MACS["pg0"] + data[6:]))
    return found


def from_corpus() -> list[Stimulus]:
    return [Stimulus(f"rule {case.rule}", case.rx, case.frame) for case in corpus.ALL if case.rx in ("pg0", "pg1", "pg2")]


def is_slow(stimulus: Stimulus) -> bool:
    """Fragments for the router, and packets to hosts that do not answer."""
    packet = stimulus.packet
    if stimulus.frame[12:14] == b"\x08\x00" and len(packet) >= 20:
        to = ipaddress.IPv4Address(packet[16:20])
        fragment = struct.unpack_from(">H", packet, 6)[0] & 0x3FFF
        return to in OWN and fragment != 0 or packet[16:18] in (b"\x0a\x08", b"\x0a\x09") or packet[12:14] in (b"\x0a\x08", b"\x0a\x09")
    if stimulus.frame[12:14] == b"\x86\xdd" and len(packet) >= 40:
        to6 = ipaddress.IPv6Address(packet[24:40])
        quiet = bytes.fromhex("20010db80008")
        return to6 in OWN and 44 in packet[6:7] + packet[40:41] or quiet in (packet[8:14], packet[24:30])
    return False


HOST = "10.1.2.9"
NEAR6 = "2001:db8:aaaa::1"


def made() -> list[Stimulus]:
    four = sizes4() + ttls4() + options4() + fragments4() + addresses4() + triggers4()
    six = sizes6() + hops6() + extensions6() + addresses6() + triggers6()
    return [Stimulus(name, "pg0", eth(0x0800, spread(packet, number))) for number, (name, packet) in enumerate(four)] \
        + [Stimulus(name, "pg0", eth(0x86DD, packet)) for name, packet in six] + frames() + mutated()


def frames() -> list[Stimulus]:
    tags = {"priority": b"\0\0", "two priorities": b"\0\0\x81\0\0\0", "VLAN 5": b"\0\5", "QinQ": b"\0\5\x81\0\0\6"}
    found = [(f"{name} tag, type {kind:#x}", eth(kind, tag + b"\x08\0" + ip4(src=HOST)))
             for name, tag in tags.items() for kind in (0x8100, 0x88A8)]
    found += [(f"{more} bytes behind the packet", eth(kind, packet + data(more))) for more in (1, 6, 18, 1000)
              for kind, packet in ((0x0800, ip4(src=HOST)), (0x86DD, ip6()), (0x0800, ip4(src=HOST, ttl=1)), (0x86DD, ip6(hops=1)))]
    found += [(f"to {mac}", eth(kind, packet, bytes.fromhex(mac))) for mac in ("ffffffffffff", "01005e010203", "333300000001", "020000000001")
              for kind, packet in ((0x0800, ip4(src=HOST)), (0x86DD, ip6()), (0x0800, ip4(src=HOST, ttl=1)))]
    found += [("a host that asks", eth(0x86DD, corpus.nd(), b"\x33\x33\xff\0\0\1")),
              ("back to the link where it came from", eth(0x86DD, ip6(src=corpus.HOST6, dst=NEXT6)))]
    return [Stimulus(name, "pg0", frame) for name, frame in found]


def spread(packet: bytes, number: int) -> bytes:
    """From a host of its own, if nobody is there where it goes: the kernel tells each host of six such packets only, and
    this limit alone cannot be changed within a namespace."""
    dead = ("10.4.0.1", "10.5.0.1", "10.6.0.1", "11.0.0.1")
    if packet[12:15] not in (b"\x0a\1\2", b"\x0a\2\0", b"\xc0\xa8\1") or str(ipaddress.IPv4Address(packet[16:20])) not in dead:
        return packet
    source = packet[12:14] + struct.pack(">H", 256 * 16 + number)
    return resummed(packet[:12] + source + packet[16:])


def resummed(packet: bytes) -> bytes:
    end = (packet[0] & 15) * 4
    head = packet[:10] + b"\0\0" + packet[12:end]
    return head[:10] + struct.pack(">H", corpus.ones_complement_sum(head) ^ 0xFFFF) + head[12:] + packet[end:]


def data(length: int) -> bytes:
    return bytes(number * 7 % 251 for number in range(length))


def sizes4() -> list:
    around = [mtu + more for mtu in (576, 1280, 1500) for more in (-9, -8, -7, -1, 0, 1, 7, 8, 9)] + [20, 21, 28, 3000, 9000, 65521]
    return [(f"IPv4 of {size} bytes, flags {flags:#x}", ip4(dst=to, src=HOST, body=data(size - 20), fragment=flags))
            for size in around for to in ("10.2.0.1", "10.1.2.3") for flags in (0, 0x4000, 0x8000, 0x2000, 0x6000)
            if size < 3000 or flags in (0, 0x4000)]


def ttls4() -> list:
    found = [(f"IPv4 with TTL {ttl}", ip4(dst=to, src=HOST, ttl=ttl, ident=ttl, body=UDP + data(more)))
             for ttl in (0, 1, 2, 3, 64, 128, 254, 255) for to in ("10.1.2.3", "10.2.0.1", LOCAL4, "11.0.0.1", "10.4.0.1")
             for more in (0, 600)]
    services = [(f"type of service {tos:#04x} and TTL {ttl}", retos(ip4(src=HOST, ttl=ttl), tos))
                for tos in range(0, 256, 5) for ttl in (1, 64)]
    return found + services


def retos(packet: bytes, tos: int) -> bytes:
    return resummed(packet[:1] + bytes([tos]) + packet[2:])


OPTIONS4 = {
    "no-operations": b"\1\1\1\1", "the end": b"\0\0\0\0", "record route": b"\x07\x0b\x04" + bytes(8) + b"\0",
    "record route, one filled": b"\x07\x0b\x08\x0a\1\1\1" + bytes(4) + b"\0", "record route, full": b"\x07\x07\x08\x0a\1\1\1\0",
    "record route, nearly full": b"\x07\x08\x08\x0a\1\1\1\0", "record route, odd pointer": b"\x07\x0b\x05" + bytes(9),
    "record route, pointer 3": b"\x07\x0b\x03" + bytes(9), "timestamp": b"\x44\x0c\x05\0" + bytes(8),
    "timestamp with address": b"\x44\x0c\x05\1" + bytes(8), "timestamp, prespecified": b"\x44\x0c\x05\3" + bytes(8),
    "timestamp, full": b"\x44\x08\x09\0" + bytes(4), "timestamp, overflow full": b"\x44\x08\x09\xf0" + bytes(4),
    "timestamp of 3 bytes": b"\x44\3\5\0", "router alert": b"\x94\4\0\0", "router alert 1": b"\x94\4\0\1",
    "unknown": b"\x1e\4\0\0", "unknown, copied": b"\x9e\4\0\0", "stream": b"\x88\4\0\1", "security": b"\x82\x0b" + bytes(9) + b"\0",
    "loose source": b"\x83\7\4\x0a\1\1\1\0", "strict source": b"\x89\7\4\x0a\1\1\1\0", "loose source, used": b"\x83\7\x08\x0a\1\1\1\0",
    "cut": b"\x07\x0b\x04\0", "length 1": b"\x07\1\0\0", "length 0": b"\x9e\0\0\0", "length missing": b"\1\1\1\x9e",
}


def options4() -> list:
    return [(f"IPv4 option {name} to {to}, TTL {ttl}", ip4(dst=to, src=HOST, ttl=ttl, options=option, proto=proto, body=body))
            for name, option in OPTIONS4.items() for to, ttl in (("10.1.2.3", 64), ("10.1.2.3", 1), ("10.2.0.1", 64), (LOCAL4, 64))
            for proto, body in ((17, UDP), (1, icmp4(8)))] \
        + [(f"IPv4 option {name}, cut to pieces", ip4(dst="10.2.0.1", src=HOST, options=option, body=data(1400)))
           for name, option in OPTIONS4.items()]


def fragments4() -> list:
    found = [(f"IPv4 fragment field {field:#06x}, TTL {ttl}", ip4(dst=to, src=HOST, fragment=field, ttl=ttl, body=data(24)))
             for field in (0x2000, 0x0001, 0x1FFF, 0x3FFF, 0x6000, 0x8001, 0x4001, 0xFFFF)
             for to in ("10.1.2.3", "10.5.0.1", "10.6.0.1", "11.0.0.1") for ttl in (1, 64)]
    message = icmp4(8, data=data(4000))
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        pieces = [(0x2000, message[:1480]), (0x2000 | 185, message[1480:2960]), (370, message[2960:])]
        found += [(f"echo request in pieces {order}", ip4(dst=LOCAL4, src=HOST, proto=1, fragment=pieces[n][0], body=pieces[n][1],
                                                       ident=100 + order[0])) for n in order]
    return found


ODD4 = ("0.0.0.0", "0.1.2.3", "127.0.0.1", "127.9.9.9", "169.254.1.1", "192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1",
        "198.51.100.1", "203.0.113.1", "224.0.0.1", "224.0.0.5", "239.1.1.1", "240.0.0.1", "255.255.255.254", "255.255.255.255",
        "100.64.0.1", "100.64.1.1", "100.64.0.0", "100.64.0.255", "100.64.1.255", "100.64.0.9", "10.13.0.255", "10.13.0.0", "10.7.0.1",
        "10.4.0.1", "10.5.0.1", "10.6.0.1", "11.0.0.1")


def addresses4() -> list:
    # Next hops in these subnets answer nobody; what is asked for there is tests/neighbors.rs.
    quiet = ("100.64.0.9",)
    return [(f"IPv4 from {odd}, TTL {ttl}", ip4(src=odd, ttl=ttl, dst=to)) for odd in ODD4 if odd not in quiet
            for ttl in (1, 64) for to in ("10.1.2.3", LOCAL4)] \
        + [(f"IPv4 to {odd}, TTL {ttl}", ip4(dst=odd, src=HOST, ttl=ttl)) for odd in ODD4 if odd not in quiet for ttl in (1, 64)]


def triggers4() -> list:
    to = (LOCAL4, "100.64.0.1", "100.64.1.1")
    found = [(f"ICMP type {kind} code {code} for the router", ip4(dst=host, src=HOST, proto=1, body=icmp4(kind, code, data(20))))
             for kind in (*range(0, 20), 30, 40, 42, 43, 255) for code in (0, 1) for host in to[:2]]
    found += [(f"ICMP type {kind} that dies", ip4(src=HOST, ttl=1, proto=1, body=icmp4(kind, 0, data(28))))
              for kind in (*range(0, 20), 40, 41, 42, 43, 255)]
    found += [(f"echo request of {size}", ip4(dst=host, src=source, proto=1, body=icmp4(8, data=data(size))))
              for size in (0, 1, 64, 1232, 1252, 1253, 1472) for host in to for source in (HOST, "10.2.0.9")]
    found += [(f"protocol {proto}", ip4(dst=LOCAL4, src=HOST, proto=proto, body=data(24))) for proto in range(0, 256, 3)]
    found += [(f"UDP of {size} to a closed port", ip4(dst=LOCAL4, src=HOST, body=udp(data(size)))) for size in (0, 1, 519, 520, 521, 600, 1400)]
    flags = [(f"TCP flags {flag:#04x}", ip4(dst=LOCAL4, src=HOST, proto=6, body=tcp(flag))) for flag in (0x02, 0x10, 0x12, 0x04, 0x01, 0)]
    dead = [(f"to {host} of {size}", ip4(dst=host, src=source, body=data(size)))
            for host in ("10.4.0.1", "10.5.0.1", "10.6.0.1", "11.0.0.1") for size in (8, 547, 548, 549, 1480)
            for source in (HOST, "10.2.0.9", "192.168.1.1", "11.0.0.9")]
    return found + flags + dead


def udp(body: bytes) -> bytes:
    return struct.pack(">HHHH", 1000, 2000, 8 + len(body), 0) + body


def tcp(flags: int) -> bytes:
    source, target = (ipaddress.IPv4Address(a).packed for a in (HOST, LOCAL4))
    head = struct.pack(">HHIIBBHHH", 1000, 2000, 7, 9, 0x50, flags, 1000, 0, 0)
    return corpus.with_sum(head, source + target + struct.pack(">HH", 6, len(head)), 16)


def sizes6() -> list:
    around = [mtu + more for mtu in (1280, 1500) for more in (-8, -1, 0, 1, 8)] + [40, 41, 3000, 9000, 65521]
    return [(f"IPv6 of {size} bytes", ip6(dst=to, body=data(size - 40), nh=nh)) for size in around
            for to in ("2001:db8:2::1", "2001:db8:1::1") for nh in (17, 59)]


def hops6() -> list:
    return [(f"IPv6 with hop limit {hops}", ip6(dst=to, hops=hops, label=0x0FF12345, body=UDP + data(more)))
            for hops in (0, 1, 2, 64, 255) for to in ("2001:db8:1::1", "2001:db8:2::1", LOCAL6, "3fff::1", "2001:db8:4::1")
            for more in (0, 1190, 1400)]


def fragment6(offset: int, more: int, nh: int = 17, ident: int = 77) -> bytes:
    return struct.pack(">BBHI", nh, 0, offset << 3 | more, ident)


def options6(*options: bytes, nh: int) -> bytes:
    body = b"".join(options)
    body += b"\0" * (-(len(body) + 2) % 8)
    return bytes([nh, (len(body) + 2) // 8 - 1]) + body


OPTIONS6 = {
    "Pad1": b"\0", "PadN": b"\1\2\0\0", "PadN not zero": b"\1\2\1\1", "PadN of 7": b"\1\x07" + bytes(7), "router alert": b"\5\2\0\0",
    "router alert of 3": b"\5\3\0\0\0", "router alert twice": b"\5\2\0\0\5\2\0\0", "tunnel limit": b"\4\1\5", "home address": b"\xc9\x10" + bytes(16),
    "jumbo": b"\xc2\4\0\1\0\0", "jumbo small": b"\xc2\4\0\0\1\0", "skip": b"\x3e\2\0\0", "drop": b"\x7e\2\0\0", "tell": b"\x9e\2\0\0",
    "tell unless multicast": b"\xde\2\0\0", "too long": b"\x1e\x30\0\0", "CALIPSO": b"\x07\x08" + bytes(8), "changing": b"\x3f\0",
}


def extensions6() -> list:
    found = []
    for name, option in OPTIONS6.items():
        for to in ("2001:db8:1::1", "2001:db8:2::1", LOCAL6):
            message = (lambda nh, before, first: to6(nh, ECHO, before, first)) if to == LOCAL6 else \
                (lambda nh, before, first, to=to: ip6(dst=to, nh=first, body=before + ECHO))
            for header in (0, 60):
                found.append((f"{name} in header {header} to {to}", message(58, options6(option, nh=58), header)))
    chains = {
        "routing 0, none left": (43, b"\x3a\x02\0\0" + bytes(20)), "routing 0, one left": (43, b"\x3a\x02\0\1" + bytes(20)),
        "routing 2": (43, b"\x3a\x02\2\1" + bytes(20)), "routing 4": (43, b"\x3a\x02\4\1\0\0\0\0" + bytes(16)),
        "routing 99, none left": (43, b"\x3a\0\x63\0\0\0\0\0"), "routing 99, one left": (43, b"\x3a\0\x63\1\0\0\0\0"),
        "whole fragment": (44, fragment6(0, 0, 58)), "first fragment": (44, fragment6(0, 1, 58)), "later fragment": (44, fragment6(9, 1, 58)),
        "hop-by-hop behind options": (60, options6(PAD, nh=0) + options6(PAD, nh=58)),
        "hop-by-hop twice": (0, options6(PAD, nh=0) + options6(PAD, nh=58)),
        "all in order": (0, options6(PAD, nh=60) + options6(PAD, nh=43) + b"\x3c\0\x63\0\0\0\0\0" + options6(PAD, nh=58)),
        "no next header": (59, b""), "ESP": (50, b""), "AH": (51, b"\x3a\x04\0\0" + bytes(20)), "mobility": (135, b"\x3b\0\0\0\0\0\0\0"),
        "HIP": (139, b"\x3b\0\0\0\0\0\0\0"), "shim6": (140, b"\x3b\0\0\0\0\0\0\0"), "unknown header 253": (253, b"\x3a\0\0\0\0\0\0\0"),
    }
    for name, (first, before) in chains.items():
        found += [(f"{name}, hops {hops}", ip6(nh=first, body=before + ECHO, hops=hops)) for hops in (1, 64)]
        found += [(f"{name}, too long", ip6(dst="2001:db8:2::1", nh=first, body=before + data(1400)))]
        found += [(f"{name}, for the router", to6(58, ECHO, before, first))]
    return found


ECHO = corpus.ECHO6
ODD6 = ("::", "::1", "::10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203", "100::1", "2001::1", "2002:a01:203::1", "3fff::1", "fc00::1",
        "fd00::1", "fe80::1", "fe80::fe:ff:fe00:0", "fec0::1", "ff01::1", "ff02::1", "ff05::2", "ff0e::1", "2001:2::1", "2001:2::", "2001:2:0:1::1",
        "2001:db8:4::1", "2001:db8:5::1", "2001:db8:6::1", LOCAL6)


def addresses6() -> list:
    return [(f"IPv6 from {odd}, hops {hops}", ip6(src=odd, hops=hops, dst=to)) for odd in ODD6 for hops in (1, 64)
            for to in ("2001:db8:1::1",)] \
        + [(f"echo from {odd}", to6(58, ECHO, src=odd)) for odd in ODD6] \
        + [(f"IPv6 to {odd}, hops {hops}", ip6(dst=odd, hops=hops)) for odd in ODD6 for hops in (1, 64)]


def triggers6() -> list:
    kinds = (0, 1, 2, 3, 4, 5, 100, 127, 128, 129, 130, 131, 132, 133, 134, 137, 138, 139, 140, 141, 143, 144, 151, 160, 200, 255)
    found = [(f"ICMPv6 type {kind} code {code} for the router", to6(58, bytes([kind, code, 0, 0]) + data(48))) for kind in kinds for code in (0, 1)]
    found += [(f"ICMPv6 type {kind} that dies", ip6(hops=1, nh=58, body=bytes([kind, 0, 0, 0]) + data(48))) for kind in kinds]
    found += [(f"echo of {size} for the router", to6(58, ECHO + data(size), src=source))
              for size in (0, 1, 1000, 1227, 1228, 1400) for source in (NEAR6, "2001:db8:2::9")]
    found += [(f"next header {nh}", ip6(dst=LOCAL6, nh=nh, body=data(24))) for nh in range(1, 256, 5) if nh not in (6, 43, 44, 51, 60)]
    found += [(f"UDP of {size} to a closed port", to6(17, udp(data(size)))) for size in (0, 1, 1180, 1184, 1185, 1400)]
    found += [(f"to {host} of {size}", ip6(dst=host, src=source, body=data(size)))
              for host in ("2001:db8:4::1", "2001:db8:5::1", "2001:db8:6::1", "3fff::1") for size in (8, 1192, 1193, 1400)
              for source in (NEAR6, "2001:db8:2::9", "3fff::9", "2001:db8:4::9")]
    return found


def mutated() -> list[Stimulus]:
    """Right packets with one or two bytes of the header changed and, half of the time, the checksum mended."""
    dice, found = random.Random(5), []
    for number in range(600):
        four = number % 2 == 0
        packet = bytearray(ip4(src=HOST, options=b"\1\1\1\1" if number % 8 == 0 else b"") if four else ip6())
        for _ in range(dice.choice((1, 1, 2))):
            packet[dice.randrange(20 if four else 40)] = dice.randrange(256)
        if four and dice.random() < 0.8:
            mended = (packet[0] & 15) * 4
            packet[10:12] = b"\0\0"
            struct.pack_into(">H", packet, 10, corpus.ones_complement_sum(bytes(packet[:max(20, mended)])) ^ 0xFFFF)
        found.append(Stimulus(f"mutation {number}", "pg0", eth(0x0800 if four else 0x86DD, bytes(packet))))
    return found
