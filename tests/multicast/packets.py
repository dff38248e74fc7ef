"""Packets to groups, and what a router makes of those that it forwards, as scapy has them: packets.py IN WANT."""

import random
import sys

from scapy.all import Ether, IP, IPv6, Raw, UDP, conf, wrpcap
from scapy.layers.inet import IPOption_Router_Alert
from scapy.layers.inet6 import IPv6ExtHdrHopByHop, RouterAlert, getmacbyip6
from scapy.layers.l2 import getmacbyip

conf.verb = 0
random.seed(11)


def group4():
    return "%d.%d.%d.%d" % (random.randint(225, 239), *(random.randrange(256) for _ in range(3)))


def group6():
    tail = ":".join("%x" % random.randrange(65536) for _ in range(7))
    return "ff%x%x:%s" % (random.choice([0, 1, 3]), random.choice([3, 4, 5, 8, 14]), tail)


def packet(hops, size):
    load = Raw(bytes(random.randrange(256) for _ in range(size)))
    if random.random() < 0.5:
        options = [IPOption_Router_Alert()] if random.random() < 0.2 else []
        ip = IP(src="10.0.0.%d" % random.randint(1, 254), dst=group4(), ttl=hops, tos=random.randrange(256),
                id=random.randrange(65536), flags=random.choice(["", "DF"]), options=options)
        return getmacbyip(ip.dst), ip / UDP(sport=1, dport=2) / load
    ip = IPv6(src="2001:db8::%x" % random.randint(1, 65535), dst=group6(), hlim=hops, tc=random.randrange(256),
              fl=random.randrange(1 << 20))
    if random.random() < 0.2:
        ip = ip / IPv6ExtHdrHopByHop(options=[RouterAlert()])
    return getmacbyip6(ip.dst), ip / UDP(sport=1, dport=2) / load


def main():
    given, wanted = [], []
    for _ in range(500):
        hops = random.choice([1, 2, 2, 3, 64, 255])
        mac, ip = packet(hops, random.randrange(1200))
        # Padding does not travel on.
        tail = bytes(random.randrange(8))
        given.append(Ether(bytes(Ether(dst=mac, src="02:00:00:00:00:09") / ip) + tail))
        if hops > 1:
            out = ip.copy()
            if IP in out:
                out.ttl = hops - 1
                del out[IP].chksum
            else:
                out.hlim = hops - 1
            wanted.append(Ether(dst=mac, src="02:fe:00:00:00:02") / out)
    wrpcap(sys.argv[1], given)
    wrpcap(sys.argv[2], wanted)


main()
