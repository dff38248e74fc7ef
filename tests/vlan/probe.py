"""A host on a trunk, which the kernel here cannot be: it has no 802.1Q devices. Scapy makes and reads every frame.

Run inside the host's namespace: `probe.py INTERFACE ROUTER_MAC COMMAND`. `ask` asks the router of apps/volley/tests/vlan.rs
everything a host asks, by each of its VLANs; `answer SECONDS` is a host that answers; `wrong` sends what nobody takes.
"""

import sys
import time

from scapy.config import conf
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr,
                                ICMPv6NDOptSrcLLAddr, ICMPv6TimeExceeded, IPv6)
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import checksum
from scapy.utils6 import in6_getnsma, in6_getnsmac
from scapy.pton_ntop import inet_pton
import socket

INTERFACE, ROUTER = sys.argv[1:3]
conf.verb = 0
wire = conf.L2socket(iface=INTERFACE)
OWN = wire.ins.getsockname()[4].hex(":") if hasattr(wire.ins, "getsockname") else None

# Tags as the router's configuration has them, and the third number of the networks behind them.
VLANS = {
    "dot1q": (lambda: Dot1Q(vlan=100), 100),
    "priority bits": (lambda: Dot1Q(vlan=100, prio=5, id=1), 100),
    "dot1q in dot1q": (lambda: Dot1Q(vlan=100) / Dot1Q(vlan=4094), 101),
    "dot1q in dot1ad": (lambda: Dot1AD(vlan=200) / Dot1Q(vlan=7), 200),
    "dot1ad": (lambda: Dot1AD(vlan=300), 201),
}
FAR, FAR6 = "10.78.0.2", "2001:db8:78::2"


def tags(frame) -> list[tuple[int, int]]:
    """Types and VLANs of a frame's tags; every priority must be 0."""
    found, kind, layer = [], frame.type, frame.payload
    while isinstance(layer, (Dot1Q, Dot1AD)):
        found.append((kind, layer.vlan if (layer.prio, layer.id) == (0, 0) else -1))
        kind, layer = layer.type, layer.payload
    return found


def plain(tag) -> list[tuple[int, int]]:
    """What the router's own frames must have for tags: no priority."""
    frame = Ether(bytes(Ether() / tag() / Raw(b"x" * 40)))
    found, kind, layer = [], frame.type, frame.payload
    while isinstance(layer, (Dot1Q, Dot1AD)):
        found.append((kind, layer.vlan))
        kind, layer = layer.type, layer.payload
    return found


def frames(seconds: float):
    """Frames of the router that come in this time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ready = wire.select([wire], max(0.0, min(0.2, end - time.monotonic())))
        for one in ready:
            try:
                frame = one.recv()
            except OSError:  # The link is down for a moment.
                time.sleep(0.05)
                continue
            if frame is not None and frame.src == ROUTER:
                yield Ether(bytes(frame))


def exchange(frame, wanted, seconds: float = 3.0):
    """The first frame from the router that is wanted."""
    wire.send(frame)
    for got in frames(seconds):
        if wanted(got):
            return got
    return None


def sound(packet) -> bool:
    """Whether checksums and lengths are what scapy computes."""
    again = packet.copy()
    for layer, field in ((IP, "chksum"), (ICMP, "chksum"), (UDP, "chksum")):
        if layer in again:
            delattr(again[layer], field)
    for name in ("cksum",):
        inner = again
        while inner.payload:
            inner = inner.payload
            if name in getattr(inner, "fields", {}):
                delattr(inner, name)
    return bytes(again) == bytes(packet)


def ask_all(name: str, tag, net: int) -> list[str]:
    me, gate = f"10.77.{net}.2", f"10.77.{net}.1"
    me6, gate6 = f"2001:db8:{net}::2", f"2001:db8:{net}::1"
    faults, wanted_tags = [], plain(tag)

    def head(destination: str = ROUTER):
        return Ether(src=OWN, dst=destination) / tag()

    def check(what: str, got, *right) -> None:
        if got is None:
            faults.append(f"{name}, {what}: no answer")
        elif tags(got) != wanted_tags:
            faults.append(f"{name}, {what}: the tags are {tags(got)}")
        elif got.dst != OWN or not all(right) or not sound(got):
            faults.append(f"{name}, {what}: {got.summary()}")

    arp = exchange(head("ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=OWN, psrc=me, pdst=gate), lambda f: ARP in f and f[ARP].op == 2)
    check("ARP", arp, arp is not None and (arp[ARP].hwsrc, arp[ARP].psrc) == (ROUTER, gate))
    raw = inet_pton(socket.AF_INET6, gate6)
    group = in6_getnsma(raw)
    group_text = socket.inet_ntop(socket.AF_INET6, group)
    ns = head(in6_getnsmac(group)) / IPv6(src=me6, dst=group_text, hlim=255) / ICMPv6ND_NS(tgt=gate6) / ICMPv6NDOptSrcLLAddr(lladdr=OWN)
    na = exchange(ns, lambda f: ICMPv6ND_NA in f)
    check("ND", na, na is not None and na[ICMPv6ND_NA].tgt == gate6 and na[ICMPv6NDOptDstLLAddr].lladdr == ROUTER)
    for target in (gate, FAR):
        echo = exchange(head() / IP(src=me, dst=target) / ICMP(id=net, seq=1) / Raw(b"ping" * 100),
                        lambda f: ICMP in f and f[ICMP].type == 0)
        check(f"ping {target}", echo, echo is not None and echo[IP].src == target and echo[Raw].load == b"ping" * 100)
    for target in (gate6, FAR6):
        echo = exchange(head() / IPv6(src=me6, dst=target) / ICMPv6EchoRequest(id=net, data=b"ping" * 100),
                        lambda f: ICMPv6EchoReply in f)
        check(f"ping {target}", echo, echo is not None and echo[IPv6].src == target and echo[ICMPv6EchoReply].data == b"ping" * 100)
    probe = UDP(sport=4000, dport=33434) / Raw(b"trace" * 4)
    for hops, source, kind in ((1, gate, (11, 0)), (2, FAR, (3, 3))):
        told = exchange(head() / IP(src=me, dst=FAR, ttl=hops) / probe, lambda f: ICMP in f and f[ICMP].type in (3, 11))
        check(f"traceroute {hops}", told, told is not None and told[IP].src == source and (told[ICMP].type, told[ICMP].code) == kind)
    for hops, source, layer in ((1, gate6, ICMPv6TimeExceeded), (2, FAR6, ICMPv6DestUnreach)):
        told = exchange(head() / IPv6(src=me6, dst=FAR6, hlim=hops) / probe, lambda f: layer in f)
        check(f"traceroute6 {hops}", told, told is not None and told[IPv6].src == source)
    return faults


def ask() -> None:
    faults = []
    for name, (tag, net) in VLANS.items():
        faults += ask_all(name, tag, net)
    print(*faults, sep="\n")
    print(f"{len(VLANS)} VLANs, {len(faults)} faults")
    sys.exit(bool(faults))


def answer(seconds: float) -> None:
    """A host in all VLANs: who asks for host 2 of the VLAN's own network is answered, with the tags of the question."""
    mine = {tuple(plain(tag)): net for tag, net in VLANS.values()}
    print("ready", flush=True)
    for frame in frames(seconds):
        net = mine.get(tuple(tags(frame)))
        if net is None:
            continue
        layer, head = frame.payload, Ether(src=OWN, dst=ROUTER)
        while isinstance(layer, (Dot1Q, Dot1AD)):
            head = head / layer.__class__(vlan=layer.vlan)
            layer = layer.payload
        if ARP in frame and frame[ARP].op == 1 and frame[ARP].pdst == f"10.77.{net}.2":
            wire.send(head / ARP(op=2, hwsrc=OWN, hwdst=ROUTER, psrc=frame[ARP].pdst, pdst=frame[ARP].psrc))
        elif ICMPv6ND_NS in frame and frame[ICMPv6ND_NS].tgt == f"2001:db8:{net}::2":
            wire.send(head / IPv6(src=frame[ICMPv6ND_NS].tgt, dst=frame[IPv6].src, hlim=255)
                      / ICMPv6ND_NA(tgt=frame[ICMPv6ND_NS].tgt, R=0, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=OWN))
        elif ICMP in frame and frame[ICMP].type == 8:
            echo = frame[ICMP]
            wire.send(head / IP(src=frame[IP].dst, dst=frame[IP].src) / ICMP(type=0, id=echo.id, seq=echo.seq) / echo.payload)
        elif ICMPv6EchoRequest in frame:
            echo = frame[ICMPv6EchoRequest]
            wire.send(head / IPv6(src=frame[IPv6].dst, dst=frame[IPv6].src)
                      / ICMPv6EchoReply(id=echo.id, seq=echo.seq, data=echo.data))


def wrong() -> None:
    """Frames that are dropped, by the reason that the router is to count; three of each."""
    inner = IP(src="10.77.100.2", dst="10.77.100.1") / ICMP()
    head = Ether(src=OWN, dst=ROUTER)

    def cut(frame, size: int) -> bytes:
        return bytes(frame)[:size]

    cases = {
        "unknown-vlan": [head / Dot1Q(vlan=102) / inner, head / Dot1AD(vlan=100) / inner, head / Dot1Q(vlan=4095) / inner,
                         head / Dot1AD(vlan=100) / Dot1Q(vlan=4094) / inner],
        "unknown-inner-vlan": [head / Dot1AD(vlan=200) / inner, head / Dot1AD(vlan=200) / Dot1Q(vlan=8) / inner,
                               head / Dot1AD(vlan=200) / Dot1AD(vlan=7) / inner, head / Dot1Q(vlan=100) / Dot1Q(vlan=5) / inner],
        "too-many-tags": [head / Dot1Q(vlan=100) / Dot1Q(vlan=4094) / Dot1Q(vlan=1) / inner,
                          head / Dot1AD(vlan=200) / Dot1Q(vlan=7) / Dot1Q(vlan=7) / Dot1Q(vlan=7) / inner],
        # Cut inside the outer tag or the type behind it, no frame gets past the kernel.
        "truncated-tag": [cut(head / Dot1AD(vlan=200) / Dot1Q(vlan=7), 20), cut(head / Dot1Q(vlan=100) / Dot1Q(vlan=7), 21)],
        "sub-interface-down": [head / Dot1Q(vlan=103) / inner],
    }
    count = {}
    for reason, packets in cases.items():
        for packet in packets:
            for _ in range(3):
                wire.send(packet if not isinstance(packet, bytes) else Raw(packet))
        count[reason] = 3 * len(packets)
    answers = [frame.summary() for frame in frames(1.0) if ICMP in frame]
    print(*answers, sep="\n")
    print(" ".join(f"{reason}={n}" for reason, n in count.items()))
    sys.exit(bool(answers))


if __name__ == "__main__":
    command = sys.argv[3]
    if command == "answer":
        answer(float(sys.argv[4]))
    else:
        {"ask": ask, "wrong": wrong}[command]()
