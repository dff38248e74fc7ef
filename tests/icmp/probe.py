"""Sends packets that a router must tell their sender about, or must not, and judges every answer with scapy.

Run inside the sender's namespace: `probe.py INTERFACE OWN_MAC ROUTER_MAC COMMAND`. `errors` sends one packet of each kind;
`flood N` sends N packets with used-up hops and prints how many were answered. The router is that of apps/volley/tests/icmp.rs.
"""

import socket
import struct
import sys
import time

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                                IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, in6_chksum)
from scapy.layers.l2 import Ether
from scapy.utils import checksum

INTERFACE, OWN, ROUTER = sys.argv[1:4]
A, NEAR, FAR, BEHIND = "192.0.2.2", "192.0.2.1", "198.51.100.1", "198.51.100.2"
A6, NEAR6, FAR6, BEHIND6 = "2001:db8:a::2", "2001:db8:a::1", "2001:db8:b::1", "2001:db8:b::2"
MTU = 1400

wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
wire.bind((INTERFACE, 0))


def answers(seconds: float) -> list[bytes]:
    """IP packets from the router that come in this time."""
    got, end = [], time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        wire.settimeout(left)
        try:
            frame, where = wire.recvfrom(65536)
        except TimeoutError:
            break
        outgoing = where[2] == 4
        if not outgoing and Ether(frame[:14]).src == ROUTER:
            got.append(frame[14:])
    return got


def send(packet: bytes, destination: str = ROUTER) -> None:
    kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
    mac = lambda text: bytes.fromhex(text.replace(":", ""))
    wire.send(mac(destination) + mac(OWN) + struct.pack(">H", kind) + packet)


def ask(packet: bytes, destination: str = ROUTER, wait: float = 0.5) -> list[bytes]:
    answers(0.001)
    send(packet, destination)
    got, end = [], time.monotonic() + wait
    while not got and time.monotonic() < end:
        got = answers(0.02)
    return got


def own_length(packet: bytes) -> int:
    if packet[0] >> 4 == 4:
        return struct.unpack_from(">H", packet, 2)[0]
    return 40 + struct.unpack_from(">H", packet, 4)[0]


def judge(what: str, sent: bytes, got: list[bytes], want) -> list[str]:
    """`want`: source, type, code and bytes 4 to 7; or nothing."""
    if want is None:
        return [f"{what}: {len(got)} answers where none may be: {got[0].hex()}"] if got else []
    if len(got) != 1:
        return [f"{what}: {len(got)} answers instead of one"]
    source, kind, code, rest = want
    answer = got[0][:own_length(got[0])]
    if answer[0] >> 4 == 4:
        head, seen = 20, IP(answer)
        sums = checksum(answer[:20]) == 0 and checksum(answer[20:]) == 0
        fields = (seen.ihl, seen.len, seen.proto, seen.ttl, seen.src, seen.dst) == (5, len(answer), 1, 64, source, A)
        message, most = seen[ICMP], 576
        said = (message.type, message.code)
    else:
        head, seen = 40, IPv6(answer)
        sums = in6_chksum(58, IPv6(answer[:40]), answer[40:]) == 0
        fields = (seen.plen + 40, seen.nh, seen.hlim, seen.src, seen.dst) == (len(answer), 58, 64, source, A6)
        message, most = seen.payload, 1280
        said = (message.type, message.code)
    quoted = sent[:own_length(sent)][:most - head - 8]
    faults = [] if sums else ["a checksum is wrong"]
    faults += [] if fields else [f"the header is {seen.summary()}"]
    faults += [] if said == (kind, code) else [f"it says {said}"]
    faults += [] if answer[head + 4:head + 8] == rest else [f"bytes 4 to 7 are {answer[head + 4:head + 8].hex()}"]
    faults += [] if answer[head + 8:] == quoted else ["it quotes something else"]
    return [f"{what}: {fault}" for fault in faults]


def ip4(**fields) -> IP:
    return IP(**{"src": A, "dst": "203.0.113.9", "id": 7, **fields})


def ip6(**fields) -> IPv6:
    return IPv6(**{"src": A6, "dst": "2001:db8:c::9", **fields})


DATA = UDP(sport=4000, dport=4001) / (b"data" * 8)
NOTHING = b"\0" * 4


def number(n: int) -> bytes:
    return struct.pack(">I", n)


def bad_option() -> bytes:
    """An option that is longer than the header: scapy would not make one."""
    packet = bytearray(bytes(ip4(dst=BEHIND, options=[IPOption(b"\x01")] * 4) / DATA))
    packet[20:24], packet[10:12] = b"\x07\x27\x04\0", b"\0\0"
    struct.pack_into(">H", packet, 10, checksum(bytes(packet[:24])))
    return bytes(packet)


def cases():
    """What it is, the packet, the answer."""
    yield "time exceeded", ip4(dst=BEHIND, ttl=1) / DATA, (NEAR, 11, 0, NOTHING)
    yield "ttl 0", ip4(dst=BEHIND, ttl=0) / DATA, (NEAR, 11, 0, NOTHING)
    yield "a long packet", ip4(dst=BEHIND, ttl=1) / UDP(dport=9) / (b"x" * 1400), (NEAR, 11, 0, NOTHING)
    yield "with options", ip4(dst=BEHIND, ttl=1, options=[IPOption(b"\x44\x08\x05\0\0\0\0\0")]) / DATA, (NEAR, 11, 0, NOTHING)
    yield "a first fragment", ip4(dst=BEHIND, ttl=1, flags="MF") / DATA, (NEAR, 11, 0, NOTHING)
    yield "an expired echo request", ip4(dst=BEHIND, ttl=1) / ICMP() / b"ping", (NEAR, 11, 0, NOTHING)
    yield "no route", ip4() / DATA, (NEAR, 3, 0, NOTHING)
    yield "unreachable", ip4(dst="203.0.113.65") / DATA, (NEAR, 3, 1, NOTHING)
    yield "prohibited", ip4(dst="203.0.113.129") / DATA, (NEAR, 3, 13, NOTHING)
    yield "too big", ip4(dst=BEHIND, flags="DF") / UDP(dport=9) / (b"x" * 1400), (NEAR, 3, 4, number(MTU))
    yield "a closed port", ip4(dst=NEAR, ttl=1) / DATA, (NEAR, 3, 3, NOTHING)
    yield "a closed port behind", ip4(dst=FAR) / DATA, (FAR, 3, 3, NOTHING)
    yield "an unknown protocol", ip4(dst=FAR, proto=132) / (b"\0" * 12), (FAR, 3, 2, NOTHING)
    yield "a bad option", bad_option(), (NEAR, 12, 0, b"\x14\0\0\0")
    yield "6 hop limit", ip6(dst=BEHIND6, hlim=1) / DATA, (NEAR6, 3, 0, NOTHING)
    yield "6 a long packet", ip6(dst=BEHIND6, hlim=0) / UDP(dport=9) / (b"x" * 1400), (NEAR6, 3, 0, NOTHING)
    yield "6 an expired echo request", ip6(dst=BEHIND6, hlim=1) / ICMPv6EchoRequest(data=b"ping"), (NEAR6, 3, 0, NOTHING)
    yield "6 no route", ip6() / DATA, (NEAR6, 1, 0, NOTHING)
    yield "6 unreachable", ip6(dst="2001:db8:d::9") / DATA, (NEAR6, 1, 3, NOTHING)
    yield "6 prohibited", ip6(dst="2001:db8:e::9") / DATA, (NEAR6, 1, 1, NOTHING)
    yield "6 too big", ip6(dst=BEHIND6) / UDP(dport=9) / (b"x" * 1400), (NEAR6, 2, 0, number(MTU))
    yield "6 a closed port", ip6(dst=FAR6, hlim=1) / DATA, (FAR6, 1, 4, NOTHING)
    yield "6 an unknown protocol", ip6(dst=NEAR6, nh=132) / (b"\0" * 12), (NEAR6, 4, 1, number(6))
    yield ("6 an unknown option", ip6(dst=NEAR6) / IPv6ExtHdrDestOpt(options=[_option(0x9E)]) / DATA,
           (NEAR6, 4, 2, number(42)))
    yield ("6 an unknown hop-by-hop option", ip6(dst=BEHIND6) / IPv6ExtHdrHopByHop(options=[_option(0xDE)]) / DATA,
           (NEAR6, 4, 2, number(42)))
    yield ("6 a source route", ip6(dst=NEAR6) / IPv6ExtHdrRouting(addresses=[BEHIND6], segleft=1) / DATA,
           (NEAR6, 4, 0, number(42)))


def _option(kind: int):
    from scapy.layers.inet6 import HBHOptUnknown
    return HBHOptUnknown(otype=kind, optlen=4, optdata=b"\0" * 4)


def silent():
    """Packets that nobody is told about: what it is, the packet, the MAC address it goes to."""
    quoted = bytes(ip4(dst=BEHIND) / DATA)
    yield "about an error", ip4(dst=BEHIND, ttl=1) / ICMP(type=3, code=1) / quoted, ROUTER
    yield "about a redirect", ip4(dst=BEHIND, ttl=1) / ICMP(type=5, gw=NEAR) / quoted, ROUTER
    yield "about a later fragment", ip4(dst=BEHIND, ttl=1, frag=9) / DATA, ROUTER
    for source in ("127.0.0.1", "0.0.0.0", "224.0.0.5", "255.255.255.255", "192.0.2.255", NEAR, "10.9.9.9"):
        yield f"from {source}", ip4(dst=BEHIND, src=source, ttl=1) / DATA, ROUTER
    yield "to a subnet's broadcast address", ip4(dst="198.51.100.255", ttl=1) / DATA, ROUTER
    yield "to everybody", ip4(dst="255.255.255.255") / DATA, ROUTER
    yield "to everybody's MAC address", ip4(dst=BEHIND, ttl=1) / DATA, "ff:ff:ff:ff:ff:ff"
    yield "an echo request to everybody's MAC address", ip4(dst=NEAR) / ICMP(), "ff:ff:ff:ff:ff:ff"
    yield "an echo request to the subnet", ip4(dst="192.0.2.255") / ICMP(), ROUTER
    yield "a fragment of an echo request", ip4(dst=NEAR, flags="MF") / ICMP() / b"12345678", ROUTER
    yield "a broken echo request", ip4(dst=NEAR) / ICMP(chksum=1), ROUTER
    yield "an answer to nobody", ip4(dst=NEAR) / ICMP(type=0), ROUTER
    yield "a dropped route", ip4(dst="203.0.113.193") / DATA, ROUTER
    yield "TCP to the router", ip4(dst=NEAR) / TCP(dport=179), ROUTER
    yield "UDP with a wrong checksum", ip4(dst=NEAR) / UDP(dport=9, chksum=1), ROUTER
    quoted6 = bytes(ip6(dst=BEHIND6) / DATA)
    yield "6 about an error", ip6(dst=BEHIND6, hlim=1) / ICMPv6DestUnreach() / quoted6, ROUTER
    yield "6 about a redirect", ip6(dst=BEHIND6, hlim=1, nh=58) / (b"\x89" + b"\0" * 39), ROUTER
    yield "6 about a fragment of ICMP", ip6(dst=BEHIND6, hlim=1) / IPv6ExtHdrFragment(nh=58, offset=3) / (b"x" * 16), ROUTER
    for source in ("::", "::1", "ff02::1", NEAR6, "2001:db8:ffff::1"):
        yield f"6 from {source}", ip6(dst=BEHIND6, src=source, hlim=1) / DATA, ROUTER
    yield "6 to all nodes", ip6(dst="ff02::1") / ICMPv6EchoRequest(), ROUTER
    yield "6 to all nodes' MAC address", ip6(dst=BEHIND6, hlim=1) / DATA, "33:33:00:00:00:01"
    yield "6 an option that asks for silence", ip6(dst=NEAR6) / IPv6ExtHdrDestOpt(options=[_option(0x5E)]) / DATA, ROUTER
    yield "6 UDP without checksum", ip6(dst=NEAR6) / UDP(dport=9, chksum=0), ROUTER


def errors() -> int:
    faults, seen = [], 0
    for what, packet, want in cases():
        sent = bytes(packet)
        faults += judge(what, sent, ask(sent), want)
        seen += 1
    for what, packet, mac in silent():
        faults += judge(what, b"", ask(bytes(packet), mac, 0.15), None)
        seen += 1
    for fault in faults:
        print(fault)
    print(f"probe: {seen} packets, {len(faults)} faults")
    return 1 if faults else 0


def flood(count: int) -> int:
    packet = bytes(ip4(dst=BEHIND, ttl=1) / DATA)
    start = time.monotonic()
    for _ in range(count):
        send(packet)
    took = time.monotonic() - start
    told = sum(IP(answer).proto == 1 and IP(answer)[ICMP].type == 11 for answer in answers(1.0))
    print(f"flood: {count} packets in {took:.3f} s, {told} answers")
    return 0


if __name__ == "__main__":
    sys.exit(errors() if sys.argv[4] == "errors" else flood(int(sys.argv[5])))
