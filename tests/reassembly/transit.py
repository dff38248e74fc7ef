"""Datagrams through a router in fragments, for apps/volley/tests/virtual_reassembly.rs.

`receive` says of each datagram what it is, of which flow, and whether it is whole; `kernel` sends small datagrams and long ones,
which the kernel cuts; `scapy INTERFACE ROUTER_MAC` sends the long ones cut by scapy, in reverse and in other orders, and small ones,
for the kernel's flow labels are others.
"""

import random
import signal
import socket
import sys

signal.alarm(60)
FLOWS = range(20000, 20024)
SOURCES, TARGETS = ("10.77.0.2", "2001:db8:77::2"), ("203.0.113.1", "2001:db8:99::1")
PORT, LONG = 5005, 4000


def body(kind, flow, length):
    return (b"%s%d " % (kind.encode(), flow) * length)[:length]


def receive():
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    s.bind(("::", PORT))
    print("ready", flush=True)
    while True:
        data, (source, flow, *_) = s.recvfrom(70000)
        kind = chr(data[0])
        whole = data == body(kind, flow, 60 if kind == "s" else LONG)
        print(kind, 4 if source.startswith("::ffff:") else 6, flow, "whole" if whole else "torn", flush=True)


def kernel():
    for family, source, target in zip((socket.AF_INET, socket.AF_INET6), SOURCES, TARGETS):
        for flow in FLOWS:
            s = socket.socket(family, socket.SOCK_DGRAM)
            s.bind((source, flow))
            s.sendto(body("s", flow, 60), (target, PORT))
            s.sendto(body("k", flow, LONG), (target, PORT))
            s.close()


def scapy(interface, router):
    from scapy.config import conf
    from scapy.layers.inet import IP, UDP, fragment
    from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, fragment6
    from scapy.layers.l2 import Ether
    from scapy.packet import Raw

    conf.verb = 0
    random.seed(7)
    out = conf.L2socket(iface=interface)
    for flow in FLOWS:
        upper = UDP(sport=flow, dport=PORT) / Raw(body("s", flow, 60))
        out.send(Ether(dst=router) / IP(src=SOURCES[0], dst=TARGETS[0]) / upper)
        out.send(Ether(dst=router) / IPv6(src=SOURCES[1], dst=TARGETS[1]) / upper)
    for kind in "rm":
        for flow in FLOWS:
            upper = UDP(sport=flow, dport=PORT) / Raw(body(kind, flow, LONG))
            four = IP(src=SOURCES[0], dst=TARGETS[0], id=random.randrange(1 << 16)) / upper
            head = IPv6(src=SOURCES[1], dst=TARGETS[1])
            six = head / IPv6ExtHdrFragment(id=random.randrange(1 << 32)) / upper
            for cuts in (fragment(four, 640), fragment6(six, 1280)):
                cuts = [Ether(dst=router) / cut for cut in cuts]
                if kind == "r":
                    cuts.reverse()
                else:
                    random.shuffle(cuts)
                for cut in cuts:
                    out.send(cut)
    print("sent")


{"receive": receive, "kernel": kernel, "scapy": scapy}[sys.argv[1]](*sys.argv[2:])
