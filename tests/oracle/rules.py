"""What a router described by `router.json` must do with one frame: docs/forwarding-rules.md, rule by rule.

`Oracle.decide(interface, frame)` returns a `Drop` (node and reason) or a `Forward` (every acceptable pair of egress
interface and output bytes; one, unless the paths have weights whose bucket layout the rules leave open).
Nothing here looks at Volley's code. Rule numbers are those of the page.
"""

import ipaddress
import struct
from typing import NamedTuple, Optional, Union

import flowhash
import icmp
import nd
import options4
from router import Interface, Path, Router

VLAN_TYPES = (0x8100, 0x88A8, 0x9100)
MAX_TABLE_HOPS = 4


class Drop(NamedTuple):
    node: str
    reason: str
    told: bool = True

    def __str__(self) -> str:
        return f"{self.node}: {self.reason}"


class Forward(NamedTuple):
    choices: tuple[tuple[str, bytes], ...]
    flow: bytes
    slow: bool
    # Fragments behind the first one, which leave by the interface of the first choice.
    rest: tuple[bytes, ...] = ()


Outcome = Union[Drop, Forward]

# The flow of fragments made here: they are of no order with what was not cut.
FRAGMENTS = b"fragments"


def ones_complement_sum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def inside4(address: bytes, *prefixes: str) -> bool:
    value = ipaddress.IPv4Address(address)
    return any(value in ipaddress.IPv4Network(prefix) for prefix in prefixes)


def inside6(address: bytes, *prefixes: str) -> bool:
    value = ipaddress.IPv6Address(address)
    return any(value in ipaddress.IPv6Network(prefix) for prefix in prefixes)


def priority_only(frame: bytes) -> bool:
    """Whether a frame has a tag with a priority and VLAN 0 (IEEE 802.1Q, 9.6)."""
    kind = struct.unpack_from(">H", frame, 12)[0] if len(frame) >= 18 else 0
    return kind in (0x8100, 0x88A8) and struct.unpack_from(">H", frame, 14)[0] & 0xFFF == 0


def untagged(frame: bytes) -> bytes:
    """The frame without such a tag."""
    return frame[:12] + frame[16:] if priority_only(frame) else frame


class Oracle:
    def __init__(self, router: Router):
        self.router = router

    def decide(self, interface: str, frame: bytes) -> Outcome:
        rx = self.router.interfaces[interface]
        if not rx.admin:
            return Drop(rx.source_node, "admin-down")  # 1.2
        if rx.mode == "l2patch":
            return self._cross_connect(rx, frame)  # 1.3
        if rx.mode == "l2xc":
            return self._cross_connect(rx, frame) if len(frame) >= 14 else Drop("l2-xconnect", "too-short")  # 2.1
        return self._ethernet(rx, frame)

    def _cross_connect(self, rx: Interface, frame: bytes) -> Outcome:
        tx = self.router.interfaces[rx.peer]
        if not tx.admin:
            return Drop("interface-output", "interface-down")  # 8.1
        return Forward(((tx.name, frame),), b"l2" + rx.name.encode(), False)

    def _ethernet(self, rx: Interface, frame: bytes) -> Outcome:
        node = "ethernet-input"
        if len(frame) < 14:
            return Drop(node, "too-short")  # 3.1
        group = frame[0] & 1
        if not group and not rx.promiscuous and frame[:6] != rx.mac:
            return Drop(node, "not-my-mac")  # 3.3
        kind = struct.unpack_from(">H", frame, 12)[0]
        if kind in VLAN_TYPES:
            if not priority_only(frame):
                return Drop(node, "unknown-vlan")  # 3.4
            behind = struct.unpack_from(">H", frame, 16)[0]
            if behind in VLAN_TYPES:
                if len(frame) < 22:
                    return Drop("vlan-input", "truncated-tag")  # 3.10
                third = len(frame) >= 22 and struct.unpack_from(">H", frame, 20)[0] in VLAN_TYPES
                return Drop("vlan-input", "too-many-tags" if third else "unknown-vlan")  # 3.11, 3.12
            what = self._ethernet(rx, untagged(frame))  # 3.13: by a slow node, which packets without a tag may overtake
            return what._replace(slow=True) if isinstance(what, Forward) else what
        if kind == 0x0806:
            return self._arp(rx, frame[14:])  # 3.5
        if kind not in (0x0800, 0x86DD):
            return Drop(node, "unknown-ethertype")  # 3.6
        if kind == 0x86DD and frame[:2] == b"\x33\x33" and nd.own6(rx):
            return self._nd(rx, frame[14:], frame[6:12])  # 3.9
        if group:
            return Drop(node, "group-mac")  # 3.7
        if kind == 0x0800:
            return self._ip4(rx, frame[14:])  # 3.8
        what = self._ip6(rx, frame[14:])
        return what if str(what) != nd.LATER else self._nd(rx, frame[14:], frame[6:12])  # 10.6, 12.8

    def told(self, interface: str, frame: bytes, dropped: Drop) -> list[tuple[bytes, Outcome]]:
        """Section 13: the packet that tells the sender of a drop, and what becomes of it; at most one."""
        rx = self.router.interfaces[interface]
        if not self.router.icmp_errors or not dropped.told or len(frame) < 34 or dropped.node[:3] not in ("ip4", "ip6"):
            return []
        family, packet = dropped.node[:3], untagged(frame)[14:]
        end = struct.unpack_from(">H", packet, 2 if family == "ip4" else 4)[0] + (0 if family == "ip4" else 40)
        packet, table = packet[:end], rx.table if family == "ip4" else rx.table6
        if family == "ip4" and dropped.node not in ("ip4-input", "ip4-options") and packet[0] & 15 > 5:
            packet = self._recorded(rx, packet)
        source, destination = (packet[12:16], packet[16:20]) if family == "ip4" else (packet[8:24], packet[24:40])
        what = icmp.words(str(dropped), packet, self._mtu(table, packet, destination))
        if what is None or icmp.in_silence(packet):
            return []
        there, back = self._follow(table, destination), self._follow(table, source)
        if there in ("subnet-broadcast", "broadcast") or back not in ("forward", "glean"):
            return []  # 13.4 to 13.6
        own = destination if there == "local" else own_address(self._leaves_by(table, source), source) or own_address(rx, source)
        if own is None:
            return []  # 13.7
        error = icmp.error(packet, what, own)
        return [(error, self._route(table, error, source, True))]

    def redirects(self, interface: str, frame: bytes, sent: Forward) -> list[tuple[bytes, Outcome]]:
        """Section 19: the packet that tells a sender of a better first hop, and what becomes of it; at most one."""
        rx = self.router.interfaces[interface]
        if not rx.redirects or sent.choices[0][0] != interface or sent.flow in (b"own", FRAGMENTS) or sent.flow[:3] == b"arp":
            return []  # 19.1, 19.2
        packet = untagged(frame)[14:]
        six = packet[0] >> 4 == 6
        packet = packet[:struct.unpack_from(">H", packet, 4 if six else 2)[0] + (40 if six else 0)]
        source, destination = (packet[8:24], packet[24:40]) if six else (packet[12:16], packet[16:20])
        if icmp.in_silence(packet):
            return []  # 19.3
        table = rx.table6 if six else rx.table
        path = self._last(table, destination).paths[0]
        hop = path.sort_key[0 if six else 12:]
        ours = [a for a in rx.addresses if a.version == (6 if six else 4) and ipaddress.ip_address(source) in a.network]
        near = ours if six else [a for a in ours if ipaddress.ip_address(hop) in a.network]
        if not near or hop == source:
            return []  # 19.4
        if not six:
            redirect = icmp.error(packet, b"\5\1" + hop, near[0].ip.packed)
        elif hop == destination or inside6(hop, "fe80::/10"):
            redirect = nd.redirect(rx, packet, hop, path.mac)
        else:
            return []  # 19.5
        return [(redirect, self._route(table, redirect, source, True))]

    def _last(self, table: int, destination: bytes):
        """The route that decides, behind all those that look in other tables; or why there is none."""
        for _ in range(MAX_TABLE_HOPS + 1):
            route = self.router.lookup(table, destination)
            if route is None:
                return "no-route"
            if route.kind != "lookup":
                return route
            table = route.table
        return "lookup-loop"

    def _follow(self, table: int, destination: bytes) -> str:
        route = self._last(table, destination)
        if isinstance(route, str):
            return route
        up = route.kind != "forward" or any(self.router.interfaces[path.tx].admin for path in route.paths)
        return route.kind if up else "interface-down"

    def _leaves_by(self, table: int, destination: bytes) -> Optional[Interface]:
        """The one interface that leads there; none when the hash has a choice."""
        all_by = [self.router.interfaces[path.tx] for path in self._last(table, destination).paths]
        up = [tx for tx in all_by if tx.admin]
        return up[0] if len(up) == 1 else None

    def _mtu(self, table: int, packet: bytes, destination: bytes) -> int:
        """That of the interface that the packet would leave by."""
        if self._follow(table, destination) != "forward":
            return 0
        return self._route(table, packet, destination, True, too_long=True)

    def _arp(self, rx: Interface, packet: bytes) -> Outcome:
        """Section 14, on an interface that does not learn neighbours."""
        node = "arp-input"
        if len(packet) < 28:
            return Drop(node, "too-short")  # 14.1
        if packet[:6] != b"\0\1\x08\0\6\4":
            return Drop(node, "bad-format")  # 14.2
        operation = struct.unpack_from(">H", packet, 6)[0]
        if operation not in (1, 2):
            return Drop(node, "bad-operation")  # 14.3
        if not rx.own4:
            return Drop(node, "not-enabled")  # 14.4
        mac, sender, target = packet[8:14], packet[14:18], packet[24:28]
        if mac[0] & 1 or mac == bytes(6):
            return Drop(node, "bad-sender-mac")  # 14.5
        probe = operation == 1 and sender == bytes(4)
        if not probe and inside4(sender, "0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3"):
            return Drop(node, "bad-sender-address")  # 14.6
        if not probe and self._is_ours(rx, sender):
            return Drop(node, "own-frame" if mac == rx.mac else "address-conflict")  # 14.7, 14.8
        if not probe and not self._leads_back(rx, sender):
            return Drop(node, "sender-elsewhere")  # 14.9
        if ipaddress.IPv4Address(target) not in [own.ip for own in rx.own4]:
            return Drop(node, "not-for-us")  # 14.10
        if operation == 2:
            return Drop(node, "static-only")  # 14.11
        reply = packet[:6] + b"\0\2" + rx.mac + target + mac + sender
        return Forward(((rx.name, mac + rx.mac + b"\x08\x06" + reply),), b"arp" + sender, True)  # 14.13

    def _nd(self, rx: Interface, packet: bytes, mac: bytes) -> Outcome:
        """Section 15, on an interface that does not learn neighbours."""
        found = nd.parse(packet)
        if isinstance(found, str):
            return Drop("nd-input", found)  # 15.1 to 15.6
        reason = nd.judge_sender(rx, found)
        if reason:
            return Drop("nd-input", reason)  # 15.7 to 15.10
        who = found.source if found.asks else found.target
        route = self.router.lookup(rx.table6, who)
        others = [o for o in self.router.interfaces.values() if o.table6 == rx.table6]
        ours = any(a.ip.packed == who for other in others for a in other.addresses) or who == nd.link_local(rx.mac)
        if ours or (route is not None and route.kind == "local"):
            return Drop("nd-input", "own-frame" if (found.mac or mac) == rx.mac else "address-conflict")  # 15.11, 15.12
        if who != bytes(16) and not inside6(who, "fe80::/10") and not self._leads_back6(rx, who, route):
            return Drop("nd-input", "sender-elsewhere")  # 15.13
        if found.asks and found.target not in nd.own6(rx):
            return Drop("nd-input", "not-for-us")  # 15.14
        if not found.asks:
            return Drop("nd-input", "static-only")  # 15.15
        return Forward(((rx.name, nd.answer(rx, found, mac)),), b"own", True)  # 15.17

    def _leads_back6(self, rx: Interface, address: bytes, route) -> bool:
        if route is not None and route.kind == "forward":
            return all(path.tx == rx.name for path in route.paths)
        near = any(ipaddress.ip_address(address) in own.network for own in rx.addresses if own.version == 6)
        return near and (route is None or route.kind == "glean")

    def _is_ours(self, rx: Interface, address: bytes) -> bool:
        value, route = ipaddress.IPv4Address(address), self.router.lookup(rx.table, address)
        others = [own.ip for other in self.router.interfaces.values() if other.table == rx.table for own in other.own4]
        return value in others or (route is not None and route.kind == "local")

    def _leads_back(self, rx: Interface, address: bytes) -> bool:
        route = self.router.lookup(rx.table, address)
        if route is not None and route.kind == "forward":
            return all(path.tx == rx.name for path in route.paths)
        near = any(ipaddress.IPv4Address(address) in own.network for own in rx.own4)
        return near and (route is None or route.kind == "glean")

    def _ip4(self, rx: Interface, payload: bytes) -> Outcome:
        reason = judge_ip4(payload, lambda: self._follow(rx.table, payload[16:20]) == "local")
        if reason:
            return Drop("ip4-input", reason)
        header = (payload[0] & 15) * 4
        packet = payload[:struct.unpack_from(">H", payload, 2)[0]]
        if header > 20:
            reason = judge_options(packet[20:header])  # 4.13
            if reason:
                return Drop("ip4-options", reason)
            packet = self._recorded(rx, packet)  # 5.5, 5.6
        if not rx.ip4:
            return Drop("ip4-not-enabled", "not-enabled")  # 6.0
        if spoofed := self._urpf(rx, rx.urpf, rx.table, packet[12:16]):
            return Drop(f"ip4-rx-urpf-{rx.urpf}", spoofed)
        if rx.virtual_reassembly and struct.unpack_from(">H", packet, 6)[0] & 0x3FFF:
            return self._in_transit4(rx, packet)
        return self._route(rx.table, packet, packet[16:20], header > 20, rx=rx.name)

    def _recorded(self, rx: Interface, packet: bytes) -> bytes:
        destination = packet[16:20]
        route = self._last(rx.table, destination)
        kind = self._follow(rx.table, destination)
        if kind == "local":
            own = destination
        elif kind in ("forward", "glean"):
            tx = self._candidates("ip4", packet, route.paths)[0].tx
            own = own_address(self.router.interfaces[tx], destination)
        else:
            own = None
        if own is None:
            return packet
        return options4.filled(packet, own, lambda address: self._follow(rx.table, address) == "local")

    def _ip6(self, rx: Interface, payload: bytes) -> Outcome:
        if judge_ip6(payload) == "link-local" and payload[6] == 58 and payload[40:41] in (b"\x86", b"\x87", b"\x88"):
            return Drop(*nd.LATER.split(": "))
        reason = judge_ip6(payload, lambda: self._follow(rx.table6, payload[24:40]) == "local")
        if reason:
            return Drop("ip6-input", reason)
        packet = payload[:40 + struct.unpack_from(">H", payload, 4)[0]]
        slow = packet[6] == 0
        if slow:
            reason = judge_hop_by_hop(packet[40:])  # 10.9
            if reason:
                return Drop("ip6-hop-by-hop", reason)
        if not rx.ip6:
            return Drop("ip6-not-enabled", "not-enabled")  # 6.0
        if spoofed := self._urpf(rx, rx.urpf6, rx.table6, packet[8:24]):
            return Drop(f"ip6-rx-urpf-{rx.urpf6}", spoofed)
        cut = fragment_header(packet)
        if rx.virtual_reassembly and cut:
            return self._in_transit6(rx, packet, *cut)
        return self._route(rx.table6, packet, packet[24:40], slow, rx=rx.name)

    def _in_transit4(self, rx: Interface, packet: bytes) -> Outcome:
        """Section 21; the fragment is alone."""
        found = icmp.judge_fragment4(packet)
        if found != "timeout" or struct.unpack_from(">H", packet, 6)[0] & 0x1FFF:
            return Drop("ip4-sv-reassembly", found, False)  # 21.2 to 21.5, 21.11
        whole = packet[:6] + bytes(2) + packet[8:]
        return self._route(rx.table, packet, packet[16:20], True, rx=rx.name, whole=whole)  # 21.7

    def _in_transit6(self, rx: Interface, packet: bytes, named_at: int, at: int) -> Outcome:
        found = icmp.judge_fragment6(packet, at)
        if found != "timeout" or struct.unpack_from(">H", packet, at + 2)[0] & 0xFFF8:
            return Drop("ip6-sv-reassembly", found, False)  # 21.2 to 21.6, 21.11
        whole = packet[:named_at] + packet[at:at + 1] + packet[named_at + 1:at] + packet[at + 8:]
        return self._route(rx.table6, packet, packet[24:40], True, rx=rx.name, whole=whole)  # 21.7

    def _urpf(self, rx: Interface, mode: Optional[str], table: int, source: bytes) -> str:
        """Section 18. Sources without a route by their nature (18.2) do not come as far as this."""
        if not mode:
            return ""  # 18.1
        route = self._last(table, source)
        back = [] if isinstance(route, str) or route.kind not in ("forward", "glean") else route.paths
        back = {path.tx for path in back if self.router.interfaces[path.tx].admin}
        if not back:
            return "urpf-no-route"  # 18.3
        return "urpf-other-interface" if mode == "strict" and rx.name not in back else ""  # 18.4

    def _route(self, table: int, packet: bytes, destination: bytes, slow: bool, too_long: bool = False, rx: str = "",
               whole: bytes = b""):
        """Section 6. `packet` is already cut to its own length. With `too_long` the MTU that it does not fit. The hash is that of
        `whole` where there is one."""
        family = "ip4" if len(destination) == 4 else "ip6"
        first_table = table
        for _ in range(MAX_TABLE_HOPS + 1):
            route = self.router.lookup(table, destination)
            if route is None:
                return Drop(f"{family}-lookup", "no-route")  # 6.1
            if route.kind == "lookup":
                table = route.table
                continue
            if route.kind == "forward":
                return self._spread(family, packet, route.paths, slow, too_long, whole)
            if route.kind == "broadcast":
                if rx in ("", route.paths[0].tx):
                    return Drop(f"{family}-lookup", "subnet-broadcast")  # 6.13
                everybody = route.paths[0]._replace(mac=b"\xff" * 6)
                return self._spread(family, packet, [everybody], slow, too_long)  # 6.12
            if route.kind == "local" and not too_long:
                return self._local(family, first_table, packet)
            return dead_end(family, route.kind)
        return Drop(f"{family}-lookup", "lookup-loop")  # 6.9

    def _local(self, family: str, table: int, packet: bytes) -> Outcome:
        """Section 12."""
        found = icmp.local4(packet) if family == "ip4" else icmp.local6(packet)
        if found == nd.LATER:
            return Drop(*found.split(": "))
        if isinstance(found, icmp.Answer):
            answer = found.packet
            sent = self._route(table, answer, answer[16:20] if family == "ip4" else answer[24:40], True)
            # It is a packet of the router's own: no flow of others, nobody is told.
            return sent._replace(told=False) if isinstance(sent, Drop) else sent._replace(flow=b"own")
        return Drop(*found.split(": "))

    def _spread(self, family: str, packet: bytes, paths: list[Path], slow: bool, too_long: bool = False, whole: bytes = b""):
        """Rule 6.8 and section 9."""
        paths = [path for path in paths if self.router.interfaces[path.tx].admin]
        if not paths:
            return Drop(f"{family}-lookup", "interface-down")  # 6.11
        candidates = self._candidates(family, whole or packet, paths)
        if too_long:
            return self.router.interfaces[candidates[0].tx].mtu
        results = [self._rewrite(family, packet, path) for path in candidates]
        drops = [result for result in results if isinstance(result, Drop)]
        if drops:
            # With an open layout a drop cannot be told from a forward; the corpus keeps such routes uniform.
            return drops[0]
        if any(len(pieces) > 1 for _, pieces in results):
            tx, pieces = results[0]
            return Forward(((tx, pieces[0]),), FRAGMENTS, True, tuple(pieces[1:]))
        return Forward(tuple((tx, pieces[0]) for tx, pieces in results), flow_key(family, packet), slow)

    def _candidates(self, family: str, packet: bytes, paths: list[Path]) -> list[Path]:
        """Paths of which the packet takes one; only one where the page says which."""
        paths = [path for path in paths if self.router.interfaces[path.tx].admin]
        ordered = sorted(paths, key=lambda path: (path.sort_key, self.router.interfaces[path.tx].index))
        flow_hash = flowhash.hash4 if family == "ip4" else flowhash.hash6
        value = flow_hash(packet, self.router.hash_config, self.router.router_id)
        even = len({path.weight for path in ordered}) == 1 and len(ordered) & (len(ordered) - 1) == 0
        return [ordered[value & (len(ordered) - 1)]] if even else ordered

    def _rewrite(self, family: str, packet: bytes, path: Path):
        """Section 7 on one path."""
        if path.mac is None:
            return Drop(f"{family}-glean", "unresolved")  # 6.6
        tx = self.router.interfaces[path.tx]
        head = path.mac + tx.mac + (b"\x08\x00" if family == "ip4" else b"\x86\xdd")
        if len(packet) <= tx.mtu:
            return tx.name, [head + age(family, packet)]
        if family == "ip6":
            return Drop("ip6-rewrite", "packet-too-big")  # 7.3
        if packet[6] & 0x40:
            return Drop("ip4-rewrite", "frag-needed")  # 7.1
        return tx.name, [head + piece for piece in fragments(age(family, packet), tx.mtu)]  # 7.2


def fragment_header(packet: bytes):
    """Where the first fragment header of an IPv6 packet is named and stands, if all of it is there."""
    named_at, at = 6, 40
    while packet[named_at] in (0, 43, 60):
        if len(packet) < at + 8 or len(packet) < at + 8 * (packet[at + 1] + 1):
            return None
        named_at, at = at, at + 8 * (packet[at + 1] + 1)
    return (named_at, at) if packet[named_at] == 44 and len(packet) >= at + 8 else None


def own_address(interface: Optional[Interface], receiver: bytes):
    """The address that an error comes from; none where there is no fit one."""
    if interface is None:
        return None
    ip = ipaddress.ip_address(receiver)
    own = [a for a in interface.addresses if a.version == ip.version and not (a.version == 6 and a.is_link_local)]
    near = [a for a in own if ip in a.network]
    return (near or own)[0].packed if own else None


def judge_ip4(payload: bytes, is_local=lambda: False) -> str:
    """Rules 4.1 to 4.12; the empty string for a packet that may go on."""
    if len(payload) < 20:
        return "too-short"
    if payload[0] >> 4 != 4:
        return "bad-version"
    header = (payload[0] & 15) * 4
    total = struct.unpack_from(">H", payload, 2)[0]
    if header < 20:
        return "bad-header-length"
    if total < header:
        return "bad-total-length"
    if total > len(payload):
        return "truncated"
    if ones_complement_sum(payload[:header]) != 0xFFFF:
        return "bad-checksum"
    return judge_addresses4(payload[12:16], payload[16:20], payload[8], is_local)


def judge_addresses4(source: bytes, destination: bytes, ttl: int, is_local) -> str:
    if inside4(destination, "224.0.0.0/4"):
        return "multicast-destination"
    if destination == b"\xff\xff\xff\xff":
        return "broadcast-destination"
    if inside4(destination, "0.0.0.0/8", "127.0.0.0/8", "240.0.0.0/4"):
        return "martian-destination"
    if inside4(source, "169.254.0.0/16") or inside4(destination, "169.254.0.0/16"):
        return "link-local"
    if ttl <= 1 and not is_local():
        return "ttl-expired"
    if inside4(source, "0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4"):
        return "martian-source"
    return ""


def judge_options(options: bytes) -> str:
    """Section 5; `options` are the bytes from 20 to the end of the header."""
    at = 0
    while at < len(options):
        kind = options[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        if at + 1 >= len(options):
            return "bad-options"
        length = options[at + 1]
        if length < 2 or at + length > len(options):
            return "bad-options"
        if kind in (131, 137):
            return "source-route"
        at += length
        if options4.fault(bytes(20) + options[:at]) is not None:
            return "bad-options"
    return ""


def judge_ip6(payload: bytes, is_local=lambda: False) -> str:
    """Rules 10.1 to 10.8."""
    if len(payload) < 40:
        return "too-short"
    if payload[0] >> 4 != 6:
        return "bad-version"
    if 40 + struct.unpack_from(">H", payload, 4)[0] > len(payload):
        return "truncated"
    source, destination = payload[8:24], payload[24:40]
    if inside6(destination, "ff00::/8"):
        return "multicast-destination"
    if inside6(destination, "::/128", "::1/128"):
        return "martian-destination"
    if inside6(source, "fe80::/10") or inside6(destination, "fe80::/10"):
        return "link-local"
    if payload[7] <= 1 and not is_local():
        return "hop-limit-exceeded"
    if inside6(source, "::/128", "::1/128", "ff00::/8", "::ffff:0:0/96"):
        return "martian-source"
    return ""


def judge_hop_by_hop(body: bytes) -> str:
    """Section 11; `body` is everything behind the fixed header, already cut to the payload length."""
    if not body:
        return "jumbogram"
    if len(body) < 8 or 8 * (body[1] + 1) > len(body):
        return "bad-hop-by-hop"
    if body[0] == 0:
        return "bad-hop-by-hop"
    options = body[2:8 * (body[1] + 1)]
    at = 0
    while at < len(options):
        kind = options[at]
        if kind == 0:
            at += 1
            continue
        if at + 1 >= len(options) or at + 2 + options[at + 1] > len(options):
            return "bad-hop-by-hop"
        if kind == 0xC2:
            return "bad-hop-by-hop"
        if kind not in (1, 5) and kind & 0xC0:
            return "unknown-option"
        at += 2 + options[at + 1]
    return ""


def dead_end(family: str, kind: str) -> Drop:
    """Rules 6.2 to 6.6 and 6.10: a route without paths."""
    node, reason = {
        "drop": ("lookup", "drop-route"),
        "unreachable": ("lookup", "unreachable"),
        "prohibit": ("lookup", "prohibited"),
        "subnet-broadcast": ("lookup", "subnet-broadcast"),
        "glean": ("glean", "unresolved"),
    }[kind]
    return Drop(f"{family}-{node}", reason)


def fragments(packet: bytes, mtu: int) -> list[bytes]:
    """Section 7, fragments."""
    size = (packet[0] & 15) * 4
    body, word = packet[size:], struct.unpack_from(">H", packet, 6)[0]
    pieces, start = [], 0
    while start < len(body):
        rest = len(body) - start
        room = rest if rest <= mtu - size else (mtu - size) // 8 * 8
        part = body[start:start + room]
        header = bytearray(packet[:size])
        if start:
            header[20:] = later_options(bytes(header[20:]))
        more = 0x2000 if start + room < len(body) else word & 0x2000
        offset = ((word & 0x1FFF) + start // 8) & 0x1FFF
        struct.pack_into(">H", header, 2, size + len(part))
        struct.pack_into(">HHH", header, 6, word & 0xC000 | more | offset, struct.unpack_from(">H", header, 8)[0], 0)
        struct.pack_into(">H", header, 10, ones_complement_sum(bytes(header)) ^ 0xFFFF)
        pieces.append(bytes(header) + part)
        start += room
    return pieces


def later_options(options: bytes) -> bytes:
    """Options of the fragments behind the first: those without the copied flag become no-operations."""
    out, at = bytearray(options), 0
    while at < len(out) and out[at] != 0:
        if out[at] == 1:
            at += 1
            continue
        if at + 1 >= len(out) or out[at + 1] < 2 or at + out[at + 1] > len(out):
            break
        end = at + out[at + 1]
        if out[at] < 0x80:
            out[at:end] = b"\1" * (end - at)
        at = end
    return bytes(out)


def age(family: str, packet: bytes) -> bytes:
    """TTL or hop limit minus one, checksum computed anew over the whole header."""
    out = bytearray(packet)
    if family == "ip6":
        out[7] = (out[7] - 1) % 256  # A redirect has 255 on the wire.
        return bytes(out)
    out[8] -= 1
    out[10:12] = b"\0\0"
    header = (out[0] & 15) * 4
    struct.pack_into(">H", out, 10, ones_complement_sum(bytes(out[:header])) ^ 0xFFFF)
    return bytes(out)


def flow_key(family: str, packet: bytes) -> bytes:
    """Packets with the same key must leave in the order they came."""
    if family == "ip4":
        return packet[12:20] + packet[9:10]
    return packet[8:40] + packet[6:7]
