"""scapy's view of a packet that the rules forward: a second, separately written reading of the same bytes.

`check(received, sent)` takes the frame as it came and as the rules want it to leave, and returns a list of complaints.
A complaint means that the oracle itself is wrong (or scapy is), so it is reported apart from disagreements with Volley.
"""

try:
    from scapy.layers.inet import IP, fragment
    from scapy.layers.inet6 import IPv6, in6_chksum
    from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
    from scapy.utils import checksum
    AVAILABLE = True
except ImportError:
    AVAILABLE = False


def message(packet: bytes) -> str:
    """What is wrong with an ICMP packet of the router's own; the empty string when it is right."""
    if packet[0] >> 4 == 4:
        end = (packet[0] & 15) * 4
        header = IP(packet[:end])
        right = (header.len, header.proto) == (len(packet), 1)
        return "" if right and checksum(packet[:end]) == 0 and checksum(packet[end:]) == 0 else repr(header)
    header6 = IPv6(packet[:40])
    right = (header6.plen + 40, header6.nh) == (len(packet), 58)
    return "" if right and in6_chksum(58, header6, packet[40:]) == 0 else repr(header6)


def fragments(received: bytes, sent: list[bytes], mtu: int) -> str:
    """What scapy would cut otherwise. It copies every option to every fragment, so packets with options are not judged."""
    size = (received[14] & 15) * 4
    if size > 20:
        return ""
    packet = IP(received[14:14 + int.from_bytes(received[16:18], "big")])
    packet.ttl -= 1
    pieces = list(fragment(packet, (mtu - size) // 8 * 8))
    if len(pieces) > 1 and sum(len(piece.payload) for piece in pieces[-2:]) <= mtu - size:
        # What is left fits one fragment, though it is not in whole eights (RFC 791, 3.2); scapy looks at eights only.
        last = pieces.pop()
        pieces[-1].payload = type(last.payload)(bytes(pieces[-1].payload) + bytes(last.payload))
        pieces[-1].flags = last.flags
        del pieces[-1].len
    for at, (piece, ours) in enumerate(zip(pieces, sent)):
        del piece.chksum
        if bytes(piece) != ours[14:]:
            return f"fragment {at + 1} is {ours[14:].hex()}, and should be {bytes(piece).hex()}"
    return "" if len(sent) == len(pieces) else f"{len(sent)} fragments, and should be {len(pieces)}"


def check(received: bytes, sent: bytes, next_hop: str, egress: str) -> list[str]:
    tagged = Ether(received[:18])
    if Dot1Q in tagged or Dot1AD in tagged:
        received = received[:12] + received[16:]
    outer = Ether(sent[:14])
    complaints = []
    if outer.dst != next_hop or outer.src != egress:
        complaints.append(f"MAC addresses are {outer.src} > {outer.dst}, not {egress} > {next_hop}")
    if outer.type == 0x0800:
        complaints += _check_ip4(received[14:], sent[14:])
    elif outer.type == 0x86DD:
        complaints += _check_ip6(received[14:], sent[14:])
    else:
        complaints.append(f"type {outer.type:#06x} cannot be routed")
    return complaints


def _check_ip4(received: bytes, sent: bytes) -> list[str]:
    # Headers only: what is behind them may be anything, and scapy would try to dissect it.
    before = IP(received[:(received[0] & 15) * 4])
    after = IP(sent[:(sent[0] & 15) * 4])
    complaints = []
    if after.ttl != before.ttl - 1:
        complaints.append(f"TTL {before.ttl} became {after.ttl}")
    if after.len != len(sent):
        complaints.append(f"total length {after.len} but {len(sent)} bytes are sent")
    header = bytearray(sent[:after.ihl * 4])
    header[10:12] = b"\0\0"
    if checksum(bytes(header)) != after.chksum:
        complaints.append(f"checksum {after.chksum:#06x}, scapy has {checksum(bytes(header)):#06x}")
    for field in ("version", "ihl", "tos", "len", "id", "flags", "frag", "proto", "src", "dst"):
        if getattr(before, field) != getattr(after, field):
            complaints.append(f"{field} changed from {getattr(before, field)} to {getattr(after, field)}")
    end = after.ihl * 4
    complaints += _check_options(before.options, received[20:end], sent[20:end])
    if sent[end:] != received[end:len(sent)]:
        complaints.append("bytes behind the header changed")
    return complaints


def _check_options(asked, before: bytes, after: bytes) -> list[str]:
    """Nothing changes but what routers enter: in a record route (7) the pointer and an address, in a timestamp (4 of class 2) the pointer
    or the overflow, and an address and a time."""
    may = sum({7: 5, 4: 9}.get(getattr(option, "option", 0), 0) for option in asked)
    changed = sum(one != other for one, other in zip(before, after))
    return [f"options {before.hex()} became {after.hex()}"] if changed > may else []


def _check_ip6(received: bytes, sent: bytes) -> list[str]:
    before, after = IPv6(received[:40]), IPv6(sent[:40])
    complaints = []
    if after.hlim != before.hlim - 1:
        complaints.append(f"hop limit {before.hlim} became {after.hlim}")
    if after.plen + 40 != len(sent):
        complaints.append(f"payload length {after.plen} but {len(sent) - 40} bytes are sent")
    for field in ("version", "tc", "fl", "plen", "nh", "src", "dst"):
        if getattr(before, field) != getattr(after, field):
            complaints.append(f"{field} changed from {getattr(before, field)} to {getattr(after, field)}")
    if sent[40:] != received[40:len(sent)]:
        complaints.append("bytes behind the fixed header changed")
    return complaints
