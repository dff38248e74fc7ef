"""Frames with their flows, outer and inner, as scapy builds and reads them: flows.txt is this program's output."""
import socket

from scapy.all import ARP, GRE, IP, TCP, UDP, Dot1Q, Dot1AD, Ether, ICMP, IPv6, SCTP, VXLAN, Raw
from scapy.all import IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPOption_NOP, ICMPv6EchoRequest

E = Ether(src="02:fe:00:00:00:01", dst="02:fe:00:00:00:02")
I4 = IP(src="192.0.2.1", dst="198.51.100.7", id=7)
I6 = IPv6(src="2001:db8::1", dst="2001:db8:1::7")
O4 = IP(src="203.0.113.1", dst="203.0.113.2", id=9)
O6 = IPv6(src="2001:db8:f::1", dst="2001:db8:f::2")
T = TCP(sport=1234, dport=80, flags="A")
U = UDP(sport=5353, dport=53)
P = Raw(b"payload of a packet")
IP4_PACKET = I4 / T / P
INNER = Ether(src="02:fe:00:00:00:03", dst="02:fe:00:00:00:04")


def fragment(packet):
    return packet.haslayer(IPv6ExtHdrFragment) and (packet[IPv6ExtHdrFragment].offset or packet[IPv6ExtHdrFragment].m)


def flow(packet):
    """The flow of the first IP header of a packet, by scapy's reading of it."""
    layer = next((l for l in layers(packet) if isinstance(l, (IP, IPv6))), None)
    if layer is None:
        return b""
    family = socket.AF_INET if isinstance(layer, IP) else socket.AF_INET6
    out = socket.inet_pton(family, layer.src) + socket.inet_pton(family, layer.dst)
    parts = isinstance(layer, IP) and (layer.frag or "MF" in layer.flags) or isinstance(layer, IPv6) and fragment(layer)
    after = layer.payload
    while isinstance(after, (IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop, IPv6ExtHdrFragment)):
        after = after.payload
    if not parts and isinstance(after, (TCP, UDP, SCTP)):
        out += after.sport.to_bytes(2, "big") + after.dport.to_bytes(2, "big")
    return out


def layers(packet):
    while packet:
        yield packet
        packet = packet.payload


def innermost(packet):
    """The last IP header that a tunnel leads to; a fragment hides what it carries."""
    best = packet
    for layer in layers(packet):
        if isinstance(layer, (IP, IPv6)):
            best = layer
            if isinstance(layer, IP) and (layer.frag or "MF" in layer.flags) or isinstance(layer, IPv6) and fragment(layer):
                break
    return best


CASES = {
    "ip4 tcp": E / IP4_PACKET,
    "ip4 udp": E / I4 / U / P,
    "ip4 sctp": E / I4 / SCTP(sport=1, dport=2) / P,
    "ip4 icmp": E / I4 / ICMP() / P,
    "ip4 with options": E / IP(src="192.0.2.1", dst="198.51.100.7", options=[IPOption_NOP()] * 4) / T / P,
    "ip4 don't fragment": E / IP(src="192.0.2.1", dst="198.51.100.7", flags="DF") / T / P,
    "ip4 first fragment": E / IP(src="192.0.2.1", dst="198.51.100.7", flags="MF") / U / P,
    "ip4 later fragment": E / IP(src="192.0.2.1", dst="198.51.100.7", frag=100, proto=17) / P,
    "ip6 tcp": E / I6 / T / P,
    "ip6 udp": E / I6 / U / P,
    "ip6 icmp": E / I6 / ICMPv6EchoRequest() / P,
    "ip6 options": E / I6 / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / U / P,
    "ip6 fragment": E / I6 / IPv6ExtHdrFragment(offset=0, m=1, id=5) / U / P,
    "ip6 later fragment": E / I6 / IPv6ExtHdrFragment(offset=9, m=0, nh=17, id=5) / P,
    "ip6 atomic fragment": E / I6 / IPv6ExtHdrFragment(offset=0, m=0, id=5) / U / P,
    "vlan": E / Dot1Q(vlan=7) / IP4_PACKET,
    "two tags": E / Dot1AD(vlan=7) / Dot1Q(vlan=8) / IP4_PACKET,
    "arp": E / ARP(),
    "ip in ip": E / O4 / IP4_PACKET,
    "ip6 in ip4": E / O4 / I6 / U / P,
    "ip4 in ip6": E / O6 / IP4_PACKET,
    "ip6 in ip6": E / O6 / I6 / T / P,
    "gre": E / O4 / GRE() / IP4_PACKET,
    "gre with everything": E / O4 / GRE(chksum_present=1, key_present=1, seqnum_present=1, key=5, sequence_number=6) / I6 / U / P,
    "gre bridged": E / O4 / GRE(proto=0x6558) / INNER / IP4_PACKET,
    "vxlan": E / O4 / UDP(sport=50000, dport=4789) / VXLAN(vni=42, flags="Instance") / INNER / I4 / U / P,
    "vxlan in ip6, tagged": E / O6 / UDP(sport=50001, dport=4789) / VXLAN(vni=42, flags="Instance") / INNER / Dot1Q(vlan=3) / I6 / T / P,
    "gre in ip in ip": E / O4 / IP(src="10.0.0.1", dst="10.0.0.2") / GRE() / IP4_PACKET,
    "tunnel fragment": E / IP(src="203.0.113.1", dst="203.0.113.2", flags="MF") / IP4_PACKET,
    "fragment in a tunnel": E / O4 / IP(src="192.0.2.1", dst="198.51.100.7", flags="MF") / U / P,
}

print("# name | frame | flow | flow of the innermost packet: made by flows.py")
for name, packet in CASES.items():
    raw = bytes(packet)
    # Read again from its bytes, so that what is expected is what scapy finds, not what was put in.
    read = Ether(raw)
    if name in ("ip in ip", "tunnel fragment"):
        read = packet
    print(name, raw.hex(), flow(read).hex(), flow(innermost(read)).hex(), sep="|")
