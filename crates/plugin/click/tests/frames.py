"""Packets for configurations, and the list of cases."""

import os
import sys

from scapy.all import ARP, ICMP, IP, TCP, UDP, Dot1Q, Ether, IPOption_RR, Padding, Raw, RawPcapWriter, fragment, raw

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
HOST = Ether(src=A, dst=B)


def udp(size=20, **ip):
    fields = {"src": "10.0.0.1", "dst": "10.0.1.2", "id": 7, "ttl": 64}
    return IP(**(fields | ip)) / UDP(sport=1000, dport=53) / Raw(bytes(n % 256 for n in range(size)))


def tcp(**ip):
    fields = {"src": "10.0.0.1", "dst": "10.0.1.2", "id": 8, "ttl": 64}
    return IP(**(fields | ip)) / TCP(sport=1000, dport=80, flags="S") / Raw(b"hello")


def ping(**ip):
    fields = {"src": "10.0.0.1", "dst": "10.0.1.2", "id": 9, "ttl": 64}
    return IP(**(fields | ip)) / ICMP(id=5, seq=6) / Raw(b"abcdefgh")


def done(packet):
    """The packet with its lengths and checksums."""
    return packet.__class__(raw(packet))


def eth(packet):
    return HOST / packet


def bare(packet):
    """A file of Ethernet frames may hold any bytes."""
    return Raw(raw(packet))


def other(packet, layer, **fields):
    """A copy with other fields and a new checksum of IP."""
    copy = done(packet)
    for name, value in fields.items():
        setattr(copy[layer], name, value)
    del copy[IP].chksum
    return done(copy)


def wrong(packet, layer, **fields):
    copy = done(packet)
    for name, value in fields.items():
        setattr(copy[layer], name, value)
    return copy


def chain(elements):
    return f"FromDump(in.pcap) -> {elements} -> ToDump(out.pcap);"


CASES = {}


def case(name, text, packets, expected):
    CASES[name] = (text, {"in.pcap": packets}, {"out.pcap": expected})


def replied(packet, ttl=255):
    return IP(src=packet.dst, dst=packet.src, id=packet.id, ttl=ttl) / ICMP(type=0, id=5, seq=6) / packet[Raw]


def error(source, about, kind, code, ident=0, ttl=255, **fields):
    quote = raw(about)[:548]
    return IP(src=source, dst=about.src, tos=0xc0, ttl=ttl, id=ident) / ICMP(type=kind, code=code, **fields) / Raw(quote)


def write(path, packets, timed):
    """A file of Ethernet frames; the packets are written as bytes, at their times or one each microsecond."""
    with RawPcapWriter(path, linktype=1) as file:
        file.write_header(None)
        for n, packet in enumerate(packets):
            micros = round(packet.time * 1e6) if timed else n
            file.write_packet(raw(packet), sec=micros // 1000000, usec=micros % 1000000)


def write_all():
    """Each case in a folder of its name in the folder of the first argument."""
    for name, (text, ins, outs) in CASES.items():
        folder = os.path.join(sys.argv[1], name)
        os.makedirs(folder)
        with open(os.path.join(folder, "t.click"), "w", encoding="utf-8") as file:
            file.write(text)
        for file, packets in ins.items():
            write(os.path.join(folder, file), packets, "TIMING true" in text)
        for file, packets in outs.items():
            write(os.path.join(folder, f"expected-{file}"), packets, False)
