"""Frames and what becomes of them, as scapy builds both: frames.txt is this program's output. A line has the frame, and the frame that
leaves or the reason of the drop."""
import random

from scapy.all import ARP, ICMP, IP, TCP, UDP, Dot1Q, Ether, IPOption_NOP, IPOption_Router_Alert, IPv6, Raw

E = Ether(src="02:fe:00:00:00:01", dst="02:fe:00:00:00:02")
BACK = Ether(src="02:fe:00:00:00:02", dst="02:fe:00:00:00:01")


def pair(destination):
    """The addresses of the outer header: the table of the test has every second address of 10.1.0.0/24."""
    a, b, c, d = (int(part) for part in destination.split("."))
    if (a, b, c) != (10, 1, 0) or d % 2:
        return None
    return f"192.0.2.{d}", f"198.51.{d}.7"


def outcome(packet, trailer=b""):
    """A line for an IPv4 packet in a frame with a trailer."""
    frame = bytes(E / packet) + trailer
    inner = IP(bytes(packet))
    ends = pair(inner.dst)
    if len(bytes(packet)) > 65515:
        return f"{frame.hex()} not-ip4"
    if ends is None:
        return f"{frame.hex()} not-found"
    flags = "DF" if "DF" in inner.flags else 0
    outer = IP(src=ends[0], dst=ends[1], tos=inner.tos, id=inner.id, flags=flags, ttl=64, proto=4)
    return f"{frame.hex()} {(bytes(BACK / outer / inner) + trailer).hex()}"


def packets():
    rng = random.Random(1)
    yield IP(dst="10.1.0.2") / ICMP()
    yield IP(dst="10.1.0.2", flags="DF") / UDP(dport=80)
    yield IP(dst="10.1.0.4", flags="DF", frag=0, id=65535, tos=255, ttl=1) / TCP()
    yield IP(dst="10.1.0.6", flags="MF", frag=185, id=7, proto=17) / Raw(b"x" * 24)
    yield IP(dst="10.1.0.8", options=[IPOption_Router_Alert(), IPOption_NOP()]) / UDP() / Raw(b"options")
    yield IP(dst="10.1.0.0", ttl=0, proto=255) / Raw(b"")
    yield IP(dst="10.1.0.3") / UDP()
    yield IP(dst="10.1.1.2") / UDP()
    yield IP(dst="0.0.0.0") / UDP()
    yield IP(dst="10.1.0.254") / UDP() / Raw(bytes(range(256)) * 5)
    for _ in range(48):
        payload = Raw(rng.randbytes(rng.randrange(0, 100)))
        fields = dict(id=rng.randrange(65536), tos=rng.randrange(256), ttl=rng.randrange(256), flags=rng.choice([0, "DF", "MF"]))
        yield IP(src=f"10.9.8.{rng.randrange(256)}", dst=f"10.1.0.{rng.randrange(256)}", **fields) / UDP() / payload


def wrong():
    """Frames that are no IPv4 packet that fits."""
    good = IP(dst="10.1.0.2") / UDP() / Raw(b"12345678")
    yield E / ARP(pdst="10.1.0.2")
    yield E / IPv6(dst="2001:db8::1") / UDP()
    yield E / Dot1Q(vlan=7) / good
    yield Raw(bytes(E)[:13])
    yield Raw(bytes(E / good)[:33])
    yield E / IP(dst="10.1.0.2", version=5)
    yield E / IP(dst="10.1.0.2", ihl=4)
    yield E / IP(dst="10.1.0.2", ihl=6, len=20)
    yield E / IP(dst="10.1.0.2", len=19) / Raw(b"12345678")
    yield E / IP(dst="10.1.0.2", len=29) / UDP()
    yield E / IP(dst="10.1.0.2", len=65535) / UDP()


for packet in packets():
    print(outcome(packet))
print(outcome(IP(dst="10.1.0.2") / UDP(), b"\0" * 18))
print(outcome(IP(dst="10.1.0.9") / UDP(), b"\xff" * 3))
for frame in wrong():
    print(f"{bytes(frame).hex()} not-ip4")
