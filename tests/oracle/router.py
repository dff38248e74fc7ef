"""The router that the oracle plays: read from JSON.

    { "router_id": 0, "hash": 159,
      "interfaces": [ {"name": "pg0", "mac": "02:fe:00:00:00:00", "table": 0, "table6": 0, "mtu": 1500, "admin": true,
                       "mode": "l3", "peer": null, "promiscuous": false, "source_node": "pg-input",
                       "addresses": ["192.0.2.1/24"]} ],
      "icmp_errors": true,
      "routes": [ {"prefix": "10.0.0.0/8", "table": 0,
                   "paths": [ {"next_hop": "192.0.2.2", "mac": "02:00:00:00:01:02", "tx": "pg1", "weight": 1} ]},
                  {"prefix": "10.9.0.0/16", "kind": "drop"} ],
      "files": [ {"file": "rib4.txt.xz", "table": 0, "next_hops": [ {path}, ... ]} ] }

`mode` is `l3`, `l2patch` or `l2xc` (the last two need `peer`). `kind` is one of forward (needs `paths`), drop,
unreachable, prohibit, local, glean, subnet-broadcast, broadcast (a path with `tx`), lookup (needs `to_table`). `ip4` and `ip6` switch a version off. `urpf` and `urpf6` are strict or loose. A path without `mac` is unresolved. In a table file each
line is `PREFIX ID`; the path is `next_hops[ID % len(next_hops)]`. What has a default may be left out.
"""

import ipaddress
import json
import os
from typing import NamedTuple, Optional

from capture import open_any

KINDS = ("forward", "drop", "unreachable", "prohibit", "local", "glean", "lookup", "subnet-broadcast", "broadcast")


class RouterError(Exception):
    """router.json does not describe a router."""


class Interface(NamedTuple):
    name: str
    mac: bytes
    index: int
    table: int
    table6: int
    mtu: int
    admin: bool
    mode: str
    peer: Optional[str]
    promiscuous: bool
    source_node: str
    ip4: bool
    ip6: bool
    addresses: list
    own4: tuple[ipaddress.IPv4Interface, ...]
    urpf: Optional[str]
    urpf6: Optional[str]
    redirects: bool
    virtual_reassembly: bool


class Path(NamedTuple):
    sort_key: bytes
    mac: Optional[bytes]
    tx: str
    weight: int


class Route(NamedTuple):
    kind: str
    paths: list[Path]
    table: int


def parse_mac(text: str) -> bytes:
    mac = bytes.fromhex(text.replace(":", ""))
    if len(mac) != 6:
        raise RouterError(f"MAC address {text!r} has {len(mac)} bytes instead of 6")
    return mac


class Router:
    def __init__(self, description: dict, folder: str = "."):
        self.router_id = description.get("router_id", 0)
        self.hash_config = description.get("hash", 0x9F)
        self.icmp_errors = description.get("icmp_errors", True)
        self.interfaces: dict[str, Interface] = {}
        # (table, address bytes) -> {prefix length -> {masked address -> Route}}
        self.tables: dict[tuple[int, int], dict[int, dict[int, Route]]] = {}
        for index, entry in enumerate(description["interfaces"]):
            self._add_interface(index, entry)
        for entry in description.get("routes", []):
            self._add_route(entry)
        for entry in description.get("files", []):
            self._add_file(entry, folder)

    @staticmethod
    def load(path: str) -> "Router":
        with open(path, encoding="utf-8") as file:
            return Router(json.load(file), os.path.dirname(os.path.abspath(path)))

    def _add_interface(self, index: int, entry: dict) -> None:
        mode = entry.get("mode", "l3")
        if mode not in ("l3", "l2patch", "l2xc") or (mode != "l3" and not entry.get("peer")):
            raise RouterError(f"interface {entry['name']}: mode {mode!r} is unknown or lacks its peer")
        self.interfaces[entry["name"]] = Interface(
            name=entry["name"], mac=parse_mac(entry["mac"]), index=entry.get("index", index),
            table=entry.get("table", 0), table6=entry.get("table6", entry.get("table", 0)),
            mtu=entry.get("mtu", 1500), admin=entry.get("admin", True), mode=mode, peer=entry.get("peer"),
            promiscuous=entry.get("promiscuous", False), source_node=entry.get("source_node", "pg-input"),
            ip4=entry.get("ip4", True), ip6=entry.get("ip6", True),
            addresses=[ipaddress.ip_interface(text) for text in entry.get("addresses", [])],
            own4=tuple(ipaddress.IPv4Interface(a) for a in entry.get("addresses", []) if ":" not in a),
            urpf=entry.get("urpf"), urpf6=entry.get("urpf6"), redirects=entry.get("redirects", False),
            virtual_reassembly=entry.get("virtual_reassembly", False))

    def _path(self, entry: dict) -> Path:
        if entry["tx"] not in self.interfaces:
            raise RouterError(f"path by {entry['tx']!r}: there is no such interface")
        hop = ipaddress.ip_address(entry.get("next_hop", "0.0.0.0")).packed
        mac = parse_mac(entry["mac"]) if entry.get("mac") else None
        return Path(hop.rjust(16, b"\0"), mac, entry["tx"], entry.get("weight", 1))

    def _add_route(self, entry: dict) -> None:
        kind = entry.get("kind", "forward")
        paths = [self._path(path) for path in entry.get("paths", [])]
        if kind not in KINDS or (kind == "forward" and not paths):
            raise RouterError(f"route {entry['prefix']}: kind {kind!r} is unknown or lacks paths")
        self._insert(entry.get("table", 0), entry["prefix"], Route(kind, paths, entry.get("to_table", 0)))

    def _add_file(self, entry: dict, folder: str) -> None:
        routes = [Route("forward", [self._path(path)], 0) for path in entry["next_hops"]]
        with open_any(os.path.join(folder, entry["file"])) as file:
            for line in file:
                words = line.split()
                if words and not words[0].startswith(b"#"):
                    self._insert(entry.get("table", 0), words[0].decode(), routes[int(words[1]) % len(routes)])

    def _insert(self, table: int, prefix: str, route: Route) -> None:
        address, _, length = prefix.partition("/")
        packed = ipaddress.ip_address(address).packed
        bits = 8 * len(packed)
        size = int(length) if length else bits
        levels = self.tables.setdefault((table, len(packed)), {})
        levels.setdefault(size, {})[int.from_bytes(packed, "big") >> (bits - size)] = route

    def lookup(self, table: int, destination: bytes) -> Optional[Route]:
        """Longest prefix first, one dictionary per length: slow and plain on purpose."""
        levels = self.tables.get((table, len(destination)), {})
        value, bits = int.from_bytes(destination, "big"), 8 * len(destination)
        for size in sorted(levels, reverse=True):
            route = levels[size].get(value >> (bits - size))
            if route is not None:
                return route
        return None
