"""One router, told twice: to Volley as a configuration file, to the kernel as arguments of `ip` and settings of sysctl.

It is the router of the oracle's corpus (tests/oracle/corpus.py) without the tables, cross-connects and groups of paths, with
routes for most other addresses, so that captures of real traffic are forwarded too.
"""

import ipaddress

import corpus

INTERFACES = [(entry["name"], entry["mac"], entry.get("mtu", 1500), list(entry["addresses"]))
              for entry in corpus.ROUTER["interfaces"][:3]]
INTERFACES[1][3].append("10.13.0.1/24")
NAMES = [name for name, *_ in INTERFACES]
MACS = {name: bytes.fromhex(mac.replace(":", "")) for name, mac, *_ in INTERFACES}
OWN = [ipaddress.ip_interface(text).ip for *_, addresses in INTERFACES for text in addresses]
OWN += [ipaddress.ip_address(text) for text in (corpus.LOCAL4, corpus.LOCAL6)]

# What is left out has no route: 11.0.0.0/8, 3000::/4 and most of IPv6.
REST4 = ("0.0.0.0/5", "8.0.0.0/7", "12.0.0.0/6", "16.0.0.0/4", "32.0.0.0/3", "64.0.0.0/2", "128.0.0.0/2", "192.0.0.0/3")
REST6 = ("2000::/4", "64:ff9b::/96", "fc00::/7")
ACTIONS = {"drop": "blackhole", "unreachable": "unreachable", "prohibit": "prohibit"}
# Hosts that the numbered packets between the others go to, one on each interface: `stimuli.marker`.
MARKED = {name: f"100.64.{number}.99" for number, name in enumerate(NAMES)}

# And one that a host beside it sends to.
NEXT6 = "2001:2::63"


def _routes() -> list[tuple[str, str, list[dict]]]:
    """Prefix, kind and path."""
    found = []
    for route in corpus.ROUTER["routes"]:
        kind, paths = route.get("kind", "forward"), route.get("paths", [])
        usual = kind in ACTIONS or kind in ("local", "glean", "forward") and len(paths) < 2
        if usual and not route.get("table") and all(path["tx"] in NAMES for path in paths):
            found.append((route["prefix"], kind, paths))
    for prefixes, hop in ((REST4, "192.0.2.2"), (REST6, "2001:db8:ffff::2")):
        found += [(prefix, "forward", [{"tx": "pg1", "next_hop": hop}]) for prefix in prefixes]
    return found


def _neighbours() -> list[tuple[str, str, str]]:
    known = {(path["tx"], path["next_hop"], path["mac"]) for _, _, paths in _routes() for path in paths if "mac" in path}
    known |= {(name, host, f"02:aa:00:00:{number:02x}:63") for number, (name, host) in enumerate(MARKED.items())}
    return sorted(known | {("pg0", NEXT6, "02:aa:00:00:00:63")})


def volley() -> str:
    """`@` stands for the folder of the captures."""
    lines = ["[icmp]", "rate = 0", "receiver_rate = 0"]
    lines += ["[reassembly.ip4]", "timeout = 1", "[reassembly.ip6]", "timeout = 1"]
    for name, mac, mtu, addresses in INTERFACES:
        lines += ["[[interface]]", f'name = "{name}"', 'kind = "pg"', f'mac = "{mac}"', f"mtu = {mtu}",
                  f"addresses = {addresses!r}".replace("'", '"'), f'capture = "@/volley-{name}.pcap"']
    for interface, address, mac in _neighbours():
        lines += ["[[neighbor]]", f'interface = "{interface}"', f'address = "{address}"', f'mac = "{mac}"']
    for prefix, kind, paths in _routes():
        lines += ["[[route]]", f'prefix = "{prefix}"']
        if kind in ACTIONS or kind == "local":
            lines.append(f'action = "{kind}"')
        for path in paths:
            lines.append(f'interface = "{path["tx"]}"')
            lines += [f'via = "{path["next_hop"]}"'] if "next_hop" in path else []
    return "\n".join(lines) + "\n"


def links() -> list[str]:
    """Lines for `ip -batch`, when the taps are there."""
    lines = ["link set lo up"]
    for name, mac, mtu, addresses in INTERFACES:
        lines.append(f"link set {name} address {mac} mtu {mtu} addrgenmode eui64 up")
        lines += [f"addr add {address} dev {name}" + (" nodad" if ":" in address else "") for address in addresses]
    return lines + _far()


def _far() -> list[str]:
    # Volley has a host route for each neighbour; so has the kernel then.
    lines = [f"route replace {address} dev {interface}" for interface, address, _ in _neighbours()]
    lines += [f"neigh replace {address} lladdr {mac} dev {interface} nud permanent" for interface, address, mac in _neighbours()]
    for prefix, kind, paths in _routes():
        if kind == "local":
            lines.append(f"addr add {prefix} dev lo")
        elif kind in ACTIONS:
            lines.append(f"route add {ACTIONS[kind]} {prefix}")
        else:
            hop = f"via {paths[0]['next_hop']} " if "next_hop" in paths[0] else ""
            lines.append(f"route add {prefix} {hop}dev {paths[0]['tx']}" + (" onlink" if hop else ""))
    return lines


# Forwarding on, limits off, nothing said unasked. IPv4's source check is off in both (Volley has it off by default).
SETTINGS = {
    "net/ipv4/ip_forward": 1, "net/ipv6/conf/all/forwarding": 1, "net/ipv6/conf/default/forwarding": 1,
    "net/ipv4/conf/all/rp_filter": 0, "net/ipv4/conf/default/rp_filter": 0,
    "net/ipv4/icmp_ratelimit": 0, "net/ipv4/icmp_ratemask": 0, "net/ipv6/icmp/ratelimit": 0, "net/ipv6/icmp/ratemask": "",
    "net/ipv4/icmp_msgs_per_sec": 1_000_000_000, "net/ipv4/icmp_msgs_burst": 1_000_000_000,
    "net/ipv4/icmp_errors_use_inbound_ifaddr": 0,
    "net/ipv4/conf/all/send_redirects": 0, "net/ipv4/conf/default/send_redirects": 0,
    "net/ipv4/conf/all/accept_redirects": 0, "net/ipv4/conf/default/accept_redirects": 0,
    "net/ipv6/conf/all/accept_redirects": 0, "net/ipv6/conf/default/accept_redirects": 0,
    "net/ipv6/conf/default/accept_ra": 0, "net/ipv6/conf/default/router_solicitations": 0,
    "net/ipv6/conf/default/accept_dad": 0, "net/ipv6/conf/default/dad_transmits": 0, "net/ipv6/auto_flowlabels": 0,
    "net/ipv4/ipfrag_time": 1, "net/ipv6/ip6frag_time": 1,
}
# The same for each interface: a host that does not answer is given up soon.
NEIGHBOURS = {"retrans_time_ms": 100, "mcast_solicit": 1, "ucast_solicit": 1}
