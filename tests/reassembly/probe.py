"""Sends fragments to a router's own address and judges what comes back with scapy.

Run inside the sender's namespace: `probe.py INTERFACE ROUTER_MAC`. The router is that of apps/volley/tests/reassembly.rs, which
waits one second for missing fragments.
"""

import os
import random
import struct
import sys

from scapy.config import conf
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet import fragment as cut4
from scapy.layers.inet6 import (ICMPv6EchoRequest, ICMPv6ND_NS, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, PadN, fragment6)
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.sendrecv import AsyncSniffer, sendp

INTERFACE, ROUTER = sys.argv[1:3]
OWN4, OWN6, HOST4, HOST6 = "10.77.0.1", "2001:db8:77::1", "10.77.0.2", "2001:db8:77::2"
conf.verb = 0
random.seed(5)
tests = 0


def ask(packets, seconds=0.6):
    """What the router sends to us within that time, as IP packets."""
    came = lambda frame: frame.src == ROUTER and frame.haslayer(IP) | frame.haslayer(IPv6)
    sniffer = AsyncSniffer(iface=INTERFACE, lfilter=came, started_callback=lambda: started.append(1))
    started = []
    sniffer.start()
    while not started:
        pass
    sendp([Ether(dst=ROUTER) / packet for packet in packets], iface=INTERFACE)
    sniffer.join(seconds)
    frames = sniffer.stop() or []
    return [bytes(frame.payload) for frame in frames if not is_the_router_s_own(frame)]


def is_the_router_s_own(frame):
    """What is no answer to a packet of ours: its neighbour discovery, and its reports of groups."""
    if not frame.haslayer(IPv6):
        return False
    is_nd = frame[IPv6].nh == 58 and bytes(frame[IPv6].payload)[0] in (133, 134, 135, 136)
    return is_nd or frame[IPv6].dst.startswith("ff")


def check(name, holds, what=None):
    global tests
    tests += 1
    if not holds:
        print("FAILED", name, what)
        sys.exit(1)


def echo4(size=100, ident=0, **more):
    """An echo request with random data, and what its answer carries."""
    data = os.urandom(size)
    return IP(src=HOST4, dst=OWN4, id=ident or random.randrange(1, 65535), **more) / ICMP(id=7, seq=9) / Raw(data), data


def echo6(size=100):
    data = os.urandom(size)
    ident = random.randrange(1 << 32)
    whole = IPv6(src=HOST6, dst=OWN6) / IPv6ExtHdrFragment(id=ident) / ICMPv6EchoRequest(id=7, seq=9) / Raw(data)
    return whole, data


def pieces6(whole, size):
    """Fragments of `size` bytes each of what is behind the fragment header; scapy cuts by the MTU only."""
    head, upper = whole.copy(), bytes(IPv6(bytes(whole))[IPv6ExtHdrFragment].payload)
    ident, number = head[IPv6ExtHdrFragment].id, 58
    cuts = []
    for at in range(0, len(upper), size):
        part = upper[at:at + size]
        more = int(at + size < len(upper))
        cuts.append(IPv6(src=HOST6, dst=OWN6) / IPv6ExtHdrFragment(nh=number, id=ident, offset=at // 8, m=more) / Raw(part))
    return cuts


def answered4(out, data):
    return len(out) == 1 and IP(out[0])[ICMP].type == 0 and bytes(IP(out[0])[ICMP].payload) == data


def answered6(out, data):
    return len(out) == 1 and IPv6(out[0]).nh == 58 and out[0][40] == 129 and out[0][48:] == data


def orders():
    for size in (8, 16, 64):
        for mix in ("in order", "in reverse", "shuffled", "twice"):
            whole, data = echo4()
            whole6, data6 = echo6()
            for cuts, good, payload in ((cut4(whole, size), answered4, data), (pieces6(whole6, size), answered6, data6)):
                cuts = cuts[::-1] if mix == "in reverse" else cuts
                if mix == "twice":
                    cuts = [cut for cut in cuts[:-1] for _ in range(2)] + cuts[-1:]
                if mix == "shuffled":
                    random.shuffle(cuts)
                out = ask(cuts)
                check(f"{good.__name__} {size} {mix}", good(out, payload), out)


def overlaps():
    body = bytes(IP(bytes(echo4()[0])).payload)
    for ident, (start, length) in enumerate([(0, 24), (8, 8), (8, 40), (16, 16)], 1000):
        head = IP(src=HOST4, dst=OWN4, id=ident, proto=1)
        bad = [head.copy() for _ in range(4)]
        parts = [(0, 24, 1), (start, length, 1), (24, len(body), 0), (0, 24, 1)]
        for packet, (at, size, more) in zip(bad, parts):
            packet.frag, packet.flags = at // 8, more
        bad = [packet / Raw(body[at:at + size]) for packet, (at, size, _) in zip(bad, parts)]
        # An exact duplicate is no overlap.
        same = (start, length) == (0, 24)
        out = ask(bad[:3] if same else bad, 2)
        check(f"overlap {start} {length}", answered4(out, body[8:]) if same else not out, out)
    upper = bytes(IPv6(bytes(echo6()[0]))[IPv6ExtHdrFragment].payload)
    for ident, (start, length) in enumerate([(8, 8), (8, 40), (16, 16)], 2000):
        cut = lambda at, size, more: (IPv6(src=HOST6, dst=OWN6)
                                      / IPv6ExtHdrFragment(nh=58, id=ident, offset=at // 8, m=more) / Raw(upper[at:at + size]))
        out = ask([cut(0, 24, 1), cut(start, length, 1), cut(24, len(upper), 0), cut(0, 24, 1)], 2)
        check(f"overlap6 {start} {length}", not out, out)


def alone():
    """What one fragment alone brings: an error by itself, after its time, or nothing."""
    whole, _ = echo4()
    first, later = cut4(whole, 48)[:2]
    out = ask([first], 2.5)
    good = len(out) == 1 and (IP(out[0])[ICMP].type, IP(out[0])[ICMP].code) == (11, 1)
    check("time exceeded", good and out[0][28:] == bytes(first), out)
    check("no first fragment", not ask([later], 2.5))
    first, later = pieces6(echo6()[0], 48)[:2]
    out = ask([first], 2.5)
    check("time exceeded 6", len(out) == 1 and out[0][40:42] == b"\3\1" and out[0][48:] == bytes(first), out)
    check("no first fragment 6", not ask([later], 2.5))


def problems():
    told = lambda out, code, pointer: len(out) == 1 and out[0][40:48][:2] + out[0][44:48] == struct.pack(">BBI", 4, code, pointer)
    frag = lambda **more: IPv6(src=HOST6, dst=OWN6) / IPv6ExtHdrFragment(nh=17, id=random.randrange(1 << 32), **more)
    cases = [
        ("length 6", frag(m=1) / Raw(b"x" * 13), 0, 4),
        ("too long 6", frag(offset=8191, m=0) / Raw(b"x" * 8), 0, 42),
        ("header chain", IPv6(src=HOST6, dst=OWN6) / IPv6ExtHdrFragment(nh=6, id=3, m=1) / Raw(b"x" * 16), 3, 0),
        ("options cut", IPv6(src=HOST6, dst=OWN6) / IPv6ExtHdrFragment(nh=60, id=4, m=1) / Raw(b"\x11\2\1\4\0\0\0\0"), 3, 0),
    ]
    for name, packet, code, pointer in cases:
        out = ask([packet])
        check(name, told(out, code, pointer), out)
    tcp = IP(src=HOST4, dst=OWN4, proto=6, id=77)
    silent = [
        ("tiny 4", [tcp / Raw(b"x" * 8)], {"flags": "MF"}),
        ("rest of TCP header", [tcp / Raw(b"x" * 24)], {"frag": 1}),
        ("too long 4", [tcp / Raw(b"x" * 16)], {"frag": 8191}),
        ("length 4", [tcp / Raw(b"x" * 33)], {"flags": "MF"}),
    ]
    for name, packets, fields in silent:
        for key, value in fields.items():
            setattr(packets[0], key, value)
        check(name, not ask(packets, 2))
    solicitation = ICMPv6ND_NS(tgt=OWN6)
    whole = IPv6(src=HOST6, dst=OWN6, hlim=255) / IPv6ExtHdrFragment(id=5, m=1) / solicitation
    check("fragmented neighbour discovery", not ask([whole], 2))


def atomic():
    for mark in (0, 1):
        whole, data = echo6()
        packet = whole if mark == 0 else IPv6(src=HOST6, dst=OWN6) / IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)]) / whole.payload
        out = ask([packet])
        check("atomic", answered6(out, data), out)


def congestion():
    for marks, want in (((2, 3), 3), ((2, 2), 2), ((0, 3), None)):
        whole, data = echo4()
        cuts = cut4(whole, 56)[:2]
        for packet, mark in zip(cuts, marks):
            packet.tos = mark
        out = ask(cuts)
        if want is None:
            check("congestion that not all may tell of", not out, out)
        else:
            check("congestion", answered4(out, data) and IP(out[0]).tos == want, out)


for part in (orders, overlaps, alone, problems, atomic, congestion):
    part()
print(f"{tests} checks passed")
