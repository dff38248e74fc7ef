"""The differences between Volley and the Linux kernel, each with a name that is in docs/differences-from-linux.md with the
sentence that decides.

A class is a mask, laid over what both send before it is compared, or it explains a frame that one of them alone has sent.
Identifications of the router's own packets are no class: they are never compared.
"""

import ipaddress
import struct
from typing import Callable, NamedTuple, Optional

import options4
from routers import OWN
from rules import ones_complement_sum
from stimuli import Stimulus

OWN4 = {address.packed for address in OWN if address.version == 4}
OWN6 = {address.packed for address in OWN if address.version == 6}
# First addresses of the router's own networks.
NETWORKS = {ipaddress.ip_address(text).packed for text in ("100.64.0.0", "100.64.1.0", "100.64.2.0", "10.13.0.0")}
IP4, IP6 = b"\x08\x00", b"\x86\xdd"


class Case(NamedTuple):
    """A packet, what left because of it, and why Volley dropped it."""

    stimulus: Stimulus
    kernel: list[tuple[str, bytes]]
    volley: list[tuple[str, bytes]]
    reasons: list[str]

    @property
    def packet(self) -> bytes:
        return self.stimulus.frame[14:]

    def why(self, *reasons: str) -> bool:
        return any(reason in said for said in self.reasons for reason in reasons)


class Left(NamedTuple):
    """A frame that one side alone has sent."""

    side: str
    frame: bytes
    case: Case

    def error(self, *kinds: tuple[int, int]) -> bool:
        """Whether it is an ICMP message of these types and codes."""
        return icmp(self.frame) in kinds

    def addresses(self, *networks: str) -> bool:
        """Whether the packet that came in is from or to one of these."""
        packet, size = self.case.packet, 4 if ":" not in networks[0] else 16
        at = 12 if size == 4 else 8
        if packet[0] >> 4 != (4 if size == 4 else 6) or len(packet) < at + 2 * size:
            return False
        ends = [ipaddress.ip_address(packet[place:place + size]) for place in (at, at + size)]
        return any(end in ipaddress.ip_network(net) for end in ends for net in networks)


class Class(NamedTuple):
    name: str
    mask: Optional[Callable[[bytes], bytes]] = None
    explains: Optional[Callable[[Left], bool]] = None


def header(frame: bytes) -> int:
    """Bytes before layer 4 of an IPv4 frame."""
    return 14 + (frame[14] & 15) * 4


def icmp(frame: bytes) -> Optional[tuple[int, int]]:
    """Type and code; those of ICMPv6 with 1000 added."""
    if frame[12:14] == IP4 and frame[23] == 1 and not frame[21] and len(frame) > header(frame) + 1:
        return tuple(frame[header(frame):header(frame) + 2])
    if frame[12:14] == IP6 and frame[20] == 58:
        return 1000 + frame[54], frame[55]
    return None


def own4(frame: bytes) -> bool:
    """IPv4 that the router itself says."""
    return frame[12:14] == IP4 and frame[26:30] in OWN4


def own6(frame: bytes) -> bool:
    return frame[12:14] == IP6 and frame[22:38] in OWN6


def unsummed(frame: bytes) -> bytes:
    """With 0 for the header's checksum, if it is right."""
    right = ones_complement_sum(frame[14:header(frame)]) == 0xFFFF
    return frame[:24] + b"\0\0" + frame[26:] if right else frame


def unsummed_message(frame: bytes) -> bytes:
    """With 0 for the checksum of an ICMP or ICMPv6 message, if it is right."""
    if frame[12:14] == IP4:
        at, start = header(frame), b""
    else:
        at, start = 54, frame[22:54] + struct.pack(">II", len(frame) - 54, 58)
    right = ones_complement_sum(start + frame[at:]) == 0xFFFF
    return frame[:at + 2] + b"\0\0" + frame[at + 4:] if right else frame


def of_the_moment(frame: bytes) -> bytes:
    """Without what is another each time: any identification will do for what the router itself says (RFC 6864, 4.1; RFC 8200, 4.5),
    and no two clocks agree."""
    frame = options4.untimed(frame)
    if own4(frame):
        frame = unsummed(frame)
        return frame[:18] + b"\0\0" + frame[20:]
    if own6(frame) and frame[20] == 44:
        return frame[:58] + b"\0\0\0\0" + frame[62:]
    return frame


def may_be_cut(frame: bytes) -> bytes:
    return frame[:20] + bytes([frame[20] & 0xBF]) + frame[21:] if own4(frame) and frame[21] == 0 else frame


def reserved_flag(frame: bytes) -> bytes:
    if frame[12:14] != IP4 or own4(frame):
        return frame
    frame = unsummed(frame)
    return frame[:20] + bytes([frame[20] & 0x7F]) + frame[21:]


def source6(frame: bytes) -> bytes:
    """Of errors."""
    if not own6(frame) or icmp(frame) is None or frame[54] >= 128:
        return frame
    frame = unsummed_message(frame)
    return frame[:22] + bytes(16) + frame[38:]


def without_options(frame: bytes) -> bytes:
    length = header(frame) - 34
    total = struct.pack(">H", int.from_bytes(frame[16:18], "big") - length)
    frame = unsummed(frame)
    return frame[:14] + b"\x45" + frame[15:16] + total + frame[18:34] + frame[34 + length:]


def changed_options(frame: bytes, change: Callable[[bytearray], None]) -> bytes:
    """A packet of others with something else in its options, and without its checksum, if that is right."""
    if frame[12:14] != IP4 or own4(frame) or header(frame) <= 34:
        return frame
    plain = bytearray(unsummed(frame))
    change(plain)
    return bytes(plain)


def stamps(frame: bytearray):
    """Where timestamp options begin that ask for addresses, and what they ask for."""
    for place, option in options4.each(bytes(frame[14:header(frame)])):
        if option[0] == options4.TIMESTAMP and len(option) >= 12:
            yield 14 + place, option[3] & 15


def behind_the_end(frame: bytes) -> bytes:
    def change(plain: bytearray) -> None:
        at, end = 34, header(frame)
        while at < end and plain[at] != 0:
            at += 1 if plain[at] == 1 else max(plain[at + 1] if at + 1 < end else 1, 1)
        plain[at:end] = bytes(max(end - at, 0))
    return changed_options(frame, change)


def timestamp_address(frame: bytes) -> bytes:
    def change(plain: bytearray) -> None:
        for place in [place for place, flags in stamps(plain) if flags == 1]:
            plain[place + 4:place + 8] = bytes(4)
    return changed_options(frame, change)


def timestamp_without_next_address(frame: bytes) -> bytes:
    def change(plain: bytearray) -> None:
        for place in [place for place, flags in stamps(plain) if flags == 3]:
            if plain[place + 4:place + 8] == bytes(4):
                plain[place + 2], plain[place + 8:place + 12] = 5, bytes(4)
    return changed_options(frame, change)


def options_of_echo(frame: bytes) -> bytes:
    return without_options(frame) if own4(frame) and icmp(frame) == (0, 0) and header(frame) > 34 else frame


def options_of_errors(frame: bytes) -> bytes:
    """And of the packet that is quoted."""
    found = icmp(frame)
    if not own4(frame) or found is None or found[0] in (0, 8, 14):
        return frame
    frame = without_options(frame) if header(frame) > 34 else frame
    at = 42
    if len(frame) < at + 20 or frame[at] & 15 <= 5:
        return frame
    frame = unsummed_message(frame)
    return frame[:at + 10] + b"\0\0" + frame[at + 12:at + 20] + bytes((frame[at] & 15) * 4 - 20) + frame[at + (frame[at] & 15) * 4:]


def no_route_code(frame: bytes) -> bytes:
    if icmp(frame) not in ((1001, 0), (1001, 3)) or not own6(frame):
        return frame
    frame = unsummed_message(frame)
    return frame[:55] + b"\0" + frame[56:]


def jumbo_pointer(frame: bytes) -> bytes:
    """At the option, where it is at the option's length."""
    if icmp(frame) != (1004, 0) or not own6(frame):
        return frame
    pointer = int.from_bytes(frame[58:62], "big")
    if frame[62 + pointer - 2:62 + pointer - 1] != b"\xc2":
        return frame
    frame = unsummed_message(frame)
    return frame[:58] + struct.pack(">I", pointer - 2) + frame[62:]


def quoted(frame: bytes) -> bytes:
    """The packet that an error is about."""
    found = icmp(frame)
    if found is None or found[0] in (0, 8, 13, 14) or 1128 <= found[0] and found[0] != 1137:
        return b""
    return frame[header(frame) + 8:] if frame[12:14] == IP4 else frame[62:]


def nobody(frame: bytes) -> bool:
    """An error that says that a host does not answer. The kernel says so when it has given up, while other packets come: all
    of these are compared at the end."""
    about, found = quoted(frame), icmp(frame)
    if found == (3, 1):
        return about[16:18] != b"\x0a\5"
    return found == (1001, 3) and about[24:30] != bytes.fromhex("20010db80005")


def quote_as_received(frame: bytes) -> bytes:
    """Where it goes, a quoted packet has lost a hop."""
    if not nobody(frame):
        return frame
    frame, at = unsummed_message(frame), 42 if frame[12:14] == IP4 else 62
    if frame[12:14] == IP4:
        return frame[:at + 8] + b"\0" + frame[at + 9:at + 10] + b"\0\0" + frame[at + 12:]
    return frame[:at + 7] + b"\0" + frame[at + 8:]


def to_many(address: bytes) -> bool:
    """A broadcast address of one of the router's networks."""
    return address in (b"\x64\x40\0\xff", b"\x64\x40\1\xff", b"\x64\x40\2\xff", b"\x0a\x0d\0\xff")


def fragment6(left: "Left") -> bytes:
    """The fragment header of the packet that an error is about."""
    about = quoted(left.frame) or left.case.packet
    return about[40:48] if about[6:7] == b"\x2c" else b""


def parameter_problem(left: "Left") -> bool:
    """The kernel complains of what a source route or router alert says, or is silent because of it."""
    packet, sent = left.case.packet, left.case.kernel
    if packet[0] not in range(0x46, 0x50) or not {0x83, 0x94} & set(packet[20:(packet[0] & 15) * 4]):
        return False
    return not sent or any(icmp(frame) == (12, 0) for _, frame in sent)


def kernel(test: Callable[[Left], bool]) -> Callable[[Left], bool]:
    return lambda left: left.side == "kernel" and test(left)


def volley(test: Callable[[Left], bool]) -> Callable[[Left], bool]:
    return lambda left: left.side == "volley" and test(left)


ALL: list[Class] = [
    Class("own-dont-fragment", may_be_cut),
    Class("reserved-flag", reserved_flag),
    Class("quote-as-received", quote_as_received),
    Class("icmp6-unreachable-code", no_route_code),
    Class("jumbo-pointer", jumbo_pointer),
    Class("icmp6-source", source6),
    Class("bytes-behind-options", behind_the_end),
    Class("timestamp-address", timestamp_address),
    Class("timestamp-without-next-address", timestamp_without_next_address),
    Class("options-of-echo", options_of_echo),
    Class("options-of-errors", options_of_errors),
    Class("class-e", explains=kernel(lambda left: left.addresses("240.0.0.0/4") and left.case.why("martian"))),
    Class("this-network", explains=kernel(lambda left: left.addresses("0.0.0.0/8") and left.case.why("martian"))),
    Class("link-local-4", explains=kernel(lambda left: left.case.why("ip4-input: link-local"))),
    Class("broadcast-source", explains=kernel(lambda left: to_many(left.case.packet[12:16]))),
    Class("ttl-first", explains=lambda left: left.case.why("ip4-input: ttl-expired")),
    Class("hop-limit-first", explains=lambda left: left.case.why("hop-limit-exceeded")),
    Class("link-local-6", explains=kernel(lambda left: left.case.why("ip6-input: link-local") or b"\xfe\x80" in (left.frame[38:40], quoted(left.frame)[24:26]))),
    Class("mapped-source", explains=kernel(lambda left: left.addresses("::ffff:0:0/96"))),
    Class("unspecified-destination", explains=kernel(lambda left: left.case.packet[24:40] == bytes(16))),
    Class("tcp-reset", explains=kernel(lambda left: left.case.why("no-tcp-listener"))),
    Class("icmp-timestamp", explains=kernel(lambda left: left.error((14, 0)))),
    Class("echo-code", explains=kernel(lambda left: left.error((0, 1), (1129, 1)))),
    Class("udp-trailer", explains=lambda left: left.error((3, 3), (1001, 4)) and int.from_bytes(quoted(left.frame)[24:26], "big") == 16
          and len(left.case.packet) > 60),
    Class("udp-lite", explains=volley(lambda left: left.error((1004, 1)) and left.case.packet[6] == 136)),
    Class("option-contents-4", explains=parameter_problem),
    Class("bad-options-6", explains=lambda left: left.case.why("bad-hop-by-hop", "jumbogram", "ip6-local: malformed")),
    Class("option-contents-6", explains=volley(lambda left: not left.case.reasons and left.case.packet[6] in (0, 60))),
    Class("segment-routing", explains=volley(lambda left: left.error((1004, 0)) and left.case.why("ip6-local: source-route"))),
    Class("icmp6-later-fragment", explains=kernel(lambda left: left.error((1002, 0), (1004, 0), (1003, 0)) and fragment6(left)[:1] == b"\x3a")),
    Class("fragment-header-6", explains=kernel(lambda left: left.error((1004, 0), (1004, 3)) and fragment6(left)[:1] == b"\x11")),
    Class("fragmented-nd", explains=kernel(lambda left: left.error((1003, 1)) and fragment6(left)[:1] == b"\x3a")),
    Class("network-address", explains=kernel(lambda left: quoted(left.frame)[16:20] in NETWORKS)),
    Class("fragment-length-4", explains=kernel(lambda left: left.error((11, 1)))),
    Class("nested-priority-tags", explains=kernel(lambda left: left.case.why("vlan-input: unknown-vlan"))),
    Class("strict-arp", explains=kernel(lambda left: left.frame[12:14] == b"\x08\x06" and left.case.why("arp-input"))),
    Class("strict-nd", explains=kernel(lambda left: left.error((1136, 0)) and left.case.why("nd-input"))),
    Class("nd-answer", explains=lambda left: left.error((1136, 0)) and not left.case.reasons),
    Class("redirect-6", explains=kernel(lambda left: left.error((1137, 0)))),
]


def explain(case: Case) -> tuple[set[str], list[str]]:
    """Names of the classes that the case shows, and what none of them explains."""
    names: set[str] = set()
    kernel, volley = unmatched(case.kernel, case.volley, of_the_moment)
    if not kernel and not volley:
        return names, []
    masks = [c for c in ALL if c.mask is not None]
    rest_kernel, rest_volley = unmatched(kernel, volley, lambda frame: masked(frame, masks))
    if (len(rest_kernel), len(rest_volley)) != (len(kernel), len(volley)):
        for mask in masks:
            others = [other for other in masks if other is not mask]
            without = unmatched(kernel, volley, lambda frame, others=others: masked(frame, others))
            if len(without[0]) > len(rest_kernel):
                names.add(mask.name)
    problems = []
    for side, frames in (("kernel", rest_kernel), ("volley", rest_volley)):
        for name, frame in frames:
            left = Left(side, frame, case)
            found = None if alike(left, name, rest_volley if side == "kernel" else rest_kernel) else next(
                (c.name for c in ALL if c.explains is not None and c.explains(left)), None)
            if found is None:
                problems.append(problem(left, name))
            else:
                names.add(found)
    return names, problems


def alike(left: Left, name: str, others: list[tuple[str, bytes]]) -> bool:
    """Both send the same error, only not with the same bytes: that is for a mask to explain."""
    quotes = quoted(left.frame)[:20]
    return bool(quotes) and any(icmp(frame) == icmp(left.frame) and quoted(frame)[:20] == quotes and name == other
                                for other, frame in others) and not left.error((3, 3))


def masked(frame: bytes, masks: list[Class]) -> bytes:
    frame = of_the_moment(frame)
    for mask in masks:
        frame = mask.mask(frame)
    return frame


def unmatched(kernel: list, volley: list, canonical: Callable[[bytes], bytes]) -> tuple[list, list]:
    """What one side alone has sent."""
    left, rest = [], [((name, canonical(frame)), frame) for name, frame in volley]
    for name, frame in kernel:
        key = (name, canonical(frame))
        at = next((place for place, (other, _) in enumerate(rest) if other == key), None)
        if at is None:
            left.append((name, frame))
        else:
            del rest[at]
    return left, [(name, frame) for (name, _), frame in rest]


def what(frame: bytes) -> str:
    """A frame in a few words."""
    if frame[12:14] == IP4 and len(frame) >= 34:
        found = icmp(frame)
        return f"IPv4 icmp {found[0]},{found[1]}" if found else f"IPv4 proto {frame[23]}"
    if frame[12:14] == IP6 and len(frame) >= 56:
        found = icmp(frame)
        return f"IPv6 icmp {found[0] - 1000},{found[1]}" if found else f"IPv6 next {frame[20]}"
    return f"type {frame[12:14].hex()}"


def problem(left: Left, name: str) -> str:
    case, side = left.case, left.side
    why = f", dropped by Volley as {case.reasons[0]}" if case.reasons else ""
    return (f"only {side} sends {what(left.frame)} by {name} ({len(left.frame)} bytes){why}; {case.stimulus.name}: "
            f"{left.frame[:120].hex()} because of {case.stimulus.frame[:120].hex()}")
