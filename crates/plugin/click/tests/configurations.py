"""Whole configurations, the files `../configurations/*.click`: packets in, and what scapy expects out of each file.

Usage: configurations.py FOLDER. The folders are as those of cases.py.
"""

import pathlib

from scapy.all import ARP, ICMP, IP, TCP, UDP, Dot1Q, Ether, IPOption_RR, Raw, fragment, raw

from frames import A, B, CASES, done, error, eth, other, ping, replied, tcp, udp, write_all, wrong

FILES = pathlib.Path(__file__).parent.parent / "configurations"
MAC = ["02:00:00:00:01:00", "02:00:00:00:01:01"]
ADDRESS = ["10.0.0.254", "10.0.1.254"]
PEER = [A, B]
ALL = "ff:ff:ff:ff:ff:ff"


def into(n, packet):
    return Ether(src=PEER[n], dst=MAC[n]) / packet


def out_of(n, packet):
    return Ether(src=MAC[n], dst=PEER[n]) / packet


class Case:
    """Packets of each interface, one each millisecond, and what each interface sends."""

    def __init__(self, name, outputs, inputs=("in0.pcap", "in1.pcap")):
        self.ins = {file: [] for file in inputs}
        self.outs = {f"out{n}.pcap": [] for n in range(outputs)}
        self.now = 0.0
        CASES[name] = ((FILES / f"{name}.click").read_text(encoding="utf-8"), self.ins, self.outs)

    def arrive(self, n, packet, *sent):
        """A packet at input n, and what leaves: pairs of output and packet."""
        packet.time = self.now
        self.now += 0.001
        self.ins[list(self.ins)[n]].append(packet)
        for to, made in sent:
            self.outs[f"out{to}.pcap"].append(made)


def start(case):
    """The first packet of each input begins its time: the same one for all."""
    for file in case.ins:
        nothing = Ether(src=A, dst="02:00:00:00:00:99", type=0x88b5) / Raw(b"start of the test")
        nothing.time = 0
        case.ins[file].append(nothing)
    case.now = 0.001


# The gateway with address translation.
nat = Case("nat", 2)
start(nat)
OUTER = "192.0.2.1"


def from_client(ttl=64, sport=1000, src="10.0.0.1", **ip):
    return IP(src=src, dst="198.51.100.5", id=3, ttl=ttl, **ip) / UDP(sport=sport, dport=53) / Raw(b"question")


def answer(dst, dport, ttl=64):
    return IP(src="198.51.100.5", dst=dst, id=4, ttl=ttl) / UDP(sport=53, dport=dport) / Raw(b"the answer")


ask = Ether(src=A, dst=ALL) / ARP(hwsrc=A, psrc="10.0.0.1", pdst="10.0.0.254")
nat.arrive(0, ask, (0, Ether(src=MAC[0], dst=A) / ARP(op=2, hwsrc=MAC[0], psrc="10.0.0.254", hwdst=A, pdst="10.0.0.1")))
ask = Ether(src=B, dst=ALL) / ARP(hwsrc=B, psrc="192.0.2.9", pdst=OUTER)
nat.arrive(1, ask, (1, Ether(src=MAC[1], dst=B) / ARP(op=2, hwsrc=MAC[1], psrc=OUTER, hwdst=B, pdst="192.0.2.9")))
nat.arrive(0, into(0, from_client()), (1, out_of(1, from_client(63, 5000, OUTER))))
nat.arrive(0, into(0, from_client(src="10.0.0.2")), (1, out_of(1, from_client(63, 5001, OUTER))))
nat.arrive(0, into(0, from_client()), (1, out_of(1, from_client(63, 5000, OUTER))))
nat.arrive(1, into(1, answer(OUTER, 5001)), (0, out_of(0, answer("10.0.0.2", 1000, 63))))
nat.arrive(1, into(1, answer(OUTER, 5000)), (0, out_of(0, answer("10.0.0.1", 1000, 63))))
# A flow that nobody began, a wrong checksum, the last hop, no port.
nat.arrive(1, into(1, answer(OUTER, 5002)))
nat.arrive(0, into(0, wrong(from_client(), IP, chksum=5)))
nat.arrive(0, into(0, from_client(ttl=1)))
nat.arrive(0, into(0, ping()))
syn = IP(src="10.0.0.1", dst="198.51.100.5", id=8, ttl=64) / TCP(sport=1000, dport=80, flags="S", seq=9)
hidden = IP(src=OUTER, dst="198.51.100.5", id=8, ttl=63) / TCP(sport=5002, dport=80, flags="S", seq=9)
nat.arrive(0, into(0, syn), (1, out_of(1, hidden)))

# The firewall.
wall = Case("firewall", 2)
start(wall)


def refused(n, packet):
    return (0, out_of(0, error("10.0.0.254", packet, 3, 13, n)))


web, tls = tcp(), IP(src="10.0.0.1", dst="10.0.1.2", id=1) / TCP(sport=9, dport=443)
name = udp(dst="10.0.1.53")
for good in (web, tls, name, ping()):
    wall.arrive(0, into(0, good), (1, out_of(1, good)))
for n, bad in enumerate((udp(), ping(ttl=1), udp(dst="10.0.1.54"))):
    wall.arrive(0, into(0, bad), refused(n, bad))
wall.arrive(0, into(0, udp(src="203.0.113.7")))
wall.arrive(0, into(0, IP(src="10.0.0.1", dst="10.0.1.2") / ICMP(type=3) / raw(udp())))
back = udp(src="10.0.1.53", dst="10.0.0.1")
wall.arrive(1, into(1, back), (0, out_of(0, back)))
wall.arrive(1, into(1, wrong(back, IP, chksum=9)))

# The balancer: the sum of the source address's bytes chooses the server.
balancer = Case("balancer", 3, ["in.pcap"])
for n in range(24):
    source = f"10.{n}.{n * 7 % 256}.{n * 31 % 256}"
    total = sum(int(part) for part in source.split("."))
    server = (total + (total >> 4)) % 3
    packet = udp(n, src=source, dst="192.0.2.80", id=n)
    balanced = udp(n, src=source, dst=f"10.0.1.{server + 1}", id=n)
    balancer.arrive(0, eth(packet), (server, Ether(src=MAC[1], dst=f"02:00:00:00:02:0{server + 1}") / balanced))
balancer.arrive(0, eth(tcp(dst="192.0.2.80")))
balancer.arrive(0, eth(udp(dst="192.0.2.81")))

# VLANs.
vlans = Case("vlans", 3, ["in0.pcap", "in1.pcap", "in2.pcap"])


def tagged(vlan, packet, prio=0):
    return Ether(src=A, dst=B) / Dot1Q(vlan=vlan, prio=prio) / packet


for file in ("in0.pcap", "in1.pcap", "in2.pcap"):
    first = Ether(src=A, dst=B, type=0x88b5) / Raw(b"start")
    first.time = 0
    vlans.ins[file].append(first)
vlans.now = 0.001
vlans.outs["out0.pcap"] += [tagged(vlan, Raw(b"start")) for vlan in (7, 9)]
for made in vlans.outs["out0.pcap"]:
    made[Dot1Q].type = 0x88b5
vlans.arrive(0, tagged(7, udp()), (1, eth(udp())))
vlans.arrive(0, tagged(9, tcp(), 5), (2, eth(tcp())))
vlans.arrive(0, tagged(8, udp()))
vlans.arrive(0, eth(udp()))
vlans.arrive(1, eth(ping()), (0, tagged(7, ping())))
vlans.arrive(2, eth(ping(ttl=3)), (0, tagged(9, ping(ttl=3))))
# A frame with two tags keeps the inner one.
vlans.arrive(0, Ether(src=A, dst=B) / Dot1Q(vlan=7) / Dot1Q(vlan=100) / udp(), (1, tagged(100, udp())))

# The station.
host = Case("host", 1, ["in.pcap"])
ME = ADDRESS[1]


def to_me(packet):
    return Ether(src=A, dst=MAC[1]) / packet


def from_me(packet):
    return (0, Ether(src=MAC[1], dst=A) / packet)


ask = Ether(src=A, dst=ALL) / ARP(hwsrc=A, psrc="10.0.0.1", pdst=ME)
host.arrive(0, ask, from_me(ARP(op=2, hwsrc=MAC[1], psrc=ME, hwdst=A, pdst="10.0.0.1")))
host.arrive(0, to_me(ping(dst=ME)), from_me(replied(ping(dst=ME))))
host.arrive(0, to_me(udp(dst=ME)), from_me(error(ME, udp(dst=ME), 3, 3, 0)))
host.arrive(0, to_me(udp(900, dst=ME)), from_me(error(ME, udp(900, dst=ME), 3, 3, 1)))
host.arrive(0, to_me(tcp(dst=ME)))
host.arrive(0, to_me(ping(dst="10.0.1.7")))
host.arrive(0, Ether(src=A, dst="02:00:00:00:00:77") / ping(dst=ME))
strange = IP(src="10.0.0.1", dst=ME, proto=99, id=2) / Raw(b"of a protocol that the station does not have")
host.arrive(0, to_me(strange), from_me(error(ME, strange, 3, 2, 0)))

# The tunnel.
tunnel = Case("tunnel", 2)
start(tunnel)


def inside(n, packet):
    return IP(src="192.0.2.1", dst="192.0.2.2", ttl=64, id=n, proto=4) / packet


for n, packet in enumerate((udp(ttl=9), tcp(ttl=64), udp(1300, ttl=255))):
    shorter = done(packet)
    shorter[IP].ttl -= 1
    del shorter[IP].chksum
    tunnel.arrive(0, into(0, packet), (1, out_of(1, inside(n, done(shorter)))))
tunnel.arrive(0, into(0, udp(ttl=1)), (0, out_of(0, error("10.0.0.254", udp(ttl=1), 11, 0))))
there = IP(src="192.0.2.2", dst="192.0.2.1", id=4, proto=4)
tunnel.arrive(1, into(1, there / udp()), (0, out_of(0, udp())))
tunnel.arrive(1, into(1, there / tcp()), (0, out_of(0, tcp())))
tunnel.arrive(1, into(1, IP(src="192.0.2.3", dst="192.0.2.1", proto=4) / udp()))
tunnel.arrive(1, into(1, there / wrong(udp(), IP, chksum=3)))
tunnel.arrive(1, into(1, IP(src="192.0.2.2", dst="192.0.2.1") / UDP() / Raw(b"not from the tunnel")))

# The monitor.
monitor = Case("monitor", 4, ["in.pcap"])
for n in range(10):
    for packet, kind in ((udp(n), 3), (tcp(id=n), 2), (ping(id=n), 3)):
        frame = eth(packet)
        monitor.arrive(0, frame, (0, frame), (1, Raw(raw(frame)[:54])), (kind, frame))
frame = Ether(src=A, dst=ALL) / ARP(pdst="10.0.0.9")
monitor.arrive(0, frame, (0, frame), (1, frame))

# Classes with rates.
classes = Case("classes", 3, ["in.pcap"])
for n in range(90):
    dscp = (46, 10, 0)[n * n % 3 if n % 4 else n % 3]
    packet = udp(n, id=n, tos=dscp << 2)
    marked = {46: (0, packet), 10: (1, packet), 0: (2, udp(n, id=n, tos=8 << 2))}[dscp]
    classes.arrive(0, eth(packet), (marked[0], eth(marked[1])))

# The generator.
generator = Case("generator", 3, [])
for n in range(12):
    made = IP(src="10.0.0.1", dst="10.0.1.2", ttl=250, id=n) / UDP(sport=1000, dport=53) / Raw(b"volley")
    frame = (eth(made), Ether(src=A, dst=B) / Dot1Q(vlan=5, prio=6) / made, Ether(src=B, dst=A) / made)[n % 3]
    generator.outs[f"out{n % 3}.pcap"].append(frame)

# The path with a small MTU.
mtu = Case("mtu", 2, ["in.pcap"])
errors = 0
for size in (10, 572, 573, 600, 1200, 1400):
    for flags in (0, "DF"):
        packet = udp(size, id=size, flags=flags)
        if len(packet) <= 600:
            mtu.arrive(0, eth(packet), (1, out_of(1, packet)))
        elif flags == "DF":
            mtu.arrive(0, eth(packet), (0, out_of(0, error("10.0.0.254", packet, 3, 4, errors, nexthopmtu=600))))
            errors += 1
        else:
            mtu.arrive(0, eth(packet), *[(1, out_of(1, part)) for part in fragment(done(packet), fragsize=576)])

# A forwarded port.
forward = Case("forward", 2)
start(forward)


def client(n, **tcp_fields):
    return IP(src=f"198.51.100.{n}", dst=OUTER, id=n) / TCP(sport=2000 + n, dport=8080, flags="S", **tcp_fields)


for n in (1, 2, 3):
    sent = IP(src=f"198.51.100.{n}", dst="10.0.1.5", id=n) / TCP(sport=2000 + n, dport=80, flags="S")
    forward.arrive(0, into(0, client(n)), (1, out_of(1, sent)))
for n in (2, 1):
    reply = IP(src="10.0.1.5", dst=f"198.51.100.{n}", id=9) / TCP(sport=80, dport=2000 + n, flags="SA") / Raw(b"hello")
    seen = IP(src=OUTER, dst=f"198.51.100.{n}", id=9) / TCP(sport=8080, dport=2000 + n, flags="SA") / Raw(b"hello")
    forward.arrive(1, into(1, reply), (0, out_of(0, seen)))
unknown = udp(src="10.0.1.5", dst="198.51.100.1")
forward.arrive(1, into(1, unknown), (0, out_of(0, unknown)))
forward.arrive(0, into(0, udp(dst=OUTER)))
forward.arrive(0, into(0, tcp(dst=OUTER)))

# The router.


def question(n, address):
    return Ether(src=MAC[n], dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=MAC[n], psrc=ADDRESS[n], hwdst="00:00:00:00:00:00", pdst=address)


def says(n, address):
    return Ether(src=PEER[n], dst=MAC[n]) / ARP(op=2, hwsrc=PEER[n], psrc=address, hwdst=MAC[n], pdst=ADDRESS[n])


def router():
    """Packets in, one each millisecond, and what each interface sends."""
    ins, outs, time = ([], []), ([], []), 0.0

    def arrive(n, packet, *sent):
        nonlocal time
        packet.time = time
        time += 0.001
        ins[n].append(packet)
        for to, made in sent:
            outs[to].append(made)

    nothing = Ether(src=A, dst="ff:ff:ff:ff:ff:ff") / ARP(pdst="10.0.0.7")
    first = nothing.copy()
    first.time = 0
    ins[1].append(first)
    arrive(0, nothing)
    ask = Ether(src=A, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=A, psrc="10.0.0.1", pdst=ADDRESS[0])
    arrive(0, ask, (0, Ether(src=MAC[0], dst=A) / ARP(op=2, hwsrc=MAC[0], psrc=ADDRESS[0], hwdst=A, pdst="10.0.0.1")))
    # A packet that waits for the answer to a query, and those behind it.
    arrive(0, into(0, udp(ttl=9)), (1, question(1, "10.0.1.2")))
    arrive(0, into(0, tcp()))
    arrive(1, says(1, "10.0.1.2"), (1, out_of(1, udp(ttl=8))), (1, out_of(1, tcp(ttl=63))))
    arrive(0, into(0, ping()), (1, out_of(1, ping(ttl=63))))
    # The other way, and the gateway of the default route.
    arrive(1, into(1, udp(src="10.0.1.2", dst="10.0.0.1")), (0, question(0, "10.0.0.1")))
    arrive(0, says(0, "10.0.0.1"), (0, out_of(0, udp(src="10.0.1.2", dst="10.0.0.1", ttl=63))))
    arrive(0, into(0, udp(dst="198.51.100.7")), (1, question(1, "10.0.1.9")))
    arrive(1, says(1, "10.0.1.9"), (1, out_of(1, udp(dst="198.51.100.7", ttl=63))))
    # Errors: the TTL, the MTU. They pass the routes and the TTL of the router themselves.
    late = udp(ttl=1)
    arrive(0, into(0, late), (0, out_of(0, error(ADDRESS[0], late, 11, 0, ttl=254))))
    long = other(udp(800, flags="DF"), IP, ttl=63)
    arrive(0, into(0, udp(800, flags="DF")), (0, out_of(0, error(ADDRESS[0], long, 3, 4, ttl=254, nexthopmtu=600))))
    parts = fragment(done(udp(800, ttl=63)), fragsize=576)
    arrive(0, into(0, udp(800)), *[(1, out_of(1, part)) for part in parts])
    # A packet that leaves where it came from: it is forwarded, and its source gets a redirect.
    stray = udp(src="10.0.1.2", dst="10.0.1.9")
    arrive(1, into(1, stray), (1, out_of(1, other(stray, IP, ttl=63))),
           (1, out_of(1, error(ADDRESS[1], stray, 5, 1, ttl=254, gw="10.0.1.9"))))
    # The router itself.
    arrive(0, into(0, ping(dst=ADDRESS[1])), (0, out_of(0, replied(ping(dst=ADDRESS[1]), 254))))
    arrive(0, into(0, udp(dst=ADDRESS[0])))
    # Wrong: a checksum, a broadcast, a frame for another station.
    arrive(0, into(0, wrong(udp(), IP, chksum=1)))
    arrive(0, Ether(src=A, dst="ff:ff:ff:ff:ff:ff") / udp())
    arrive(0, Ether(src=A, dst="02:00:00:00:00:99") / udp())
    return ins, outs


INS, OUTS = router()
TEXT = (FILES / "router.click").read_text(encoding="utf-8")
CASES["router"] = (TEXT, {f"in{n}.pcap": INS[n] for n in (0, 1)}, {f"out{n}.pcap": OUTS[n] for n in (0, 1)})

write_all()
