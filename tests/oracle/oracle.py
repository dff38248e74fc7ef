#!/usr/bin/env python3
"""The forwarding oracle: computes from the bytes of each packet what a router must do with it.

    oracle.py expect  --router r.json --input pg0=in.pcap            one JSON line per packet
    oracle.py compare --router r.json --input pg0=in.pcap --output pg1=out.pcap --drops drops.pcapng
    oracle.py corpus  --out FOLDER                                    packets for every rule, with their router.json
    oracle.py prepare --mac 02:fe:00:00:00:00 [--strip-vlan] IN OUT   a capture (.xz too), aimed at the router

The rules are docs/forwarding-rules.md. `--drops` is a pcapng whose packet comments are `node: reason`, or JSON lines
`{"node": ..., "reason": ..., "hex": ...}`. `--counts` is a JSON object of `"node: reason": number`. `--input`
and `--output` may be given several times; name every interface, since what leaves by an interface without `--output` is
not seen. Ends with 0 when nothing disagrees, 1 when something does, 2 when a file cannot be used.
"""

import argparse
import json
import os
import sys

import corpus
import second_opinion
from capture import CaptureError, read, write
from compare import Comparison, Dropped
from router import Router, RouterError, parse_mac
from rules import FRAGMENTS, VLAN_TYPES, Drop, Oracle


def named_files(pairs: list[str]) -> dict[str, list[bytes]]:
    files: dict[str, list[bytes]] = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals:
            raise RouterError(f"{pair!r} must be INTERFACE=FILE")
        files.setdefault(name, []).extend(frame.data for frame in read(path))
    return files


def aimed_at_router(inputs: dict[str, list[bytes]], router: Router) -> dict[str, list[bytes]]:
    """With --to-router the destination MAC of every frame becomes that of the interface it arrives on."""
    return {name: [router.interfaces[name].mac + data[6:] if len(data) >= 6 else data for data in frames]
            for name, frames in inputs.items()}


def read_drops(path: str) -> list[Dropped]:
    if path.endswith((".jsonl", ".json")):
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.strip()]
        return [Dropped(f"{line['node']}: {line['reason']}", bytes.fromhex(line["hex"]),
                        line.get("length", 0) > len(line["hex"]) // 2) for line in lines]
    return [Dropped(frame.comment, frame.data, frame.original_length > len(frame.data)) for frame in read(path)]


def opinions(comparison: Comparison, router: Router) -> list[str]:
    complaints = []
    for name, frame, what in comparison.told:
        complaint = second_opinion.message(frame)
        if complaint:
            complaints.append(f"{name}: scapy says: {complaint}")
    for name, frame, what in comparison.decided:
        if isinstance(what, Drop) or what.flow.startswith((b"l2", b"arp")):
            continue
        if what.flow == FRAGMENTS:
            tx, first = what.choices[0]
            complaint = second_opinion.fragments(frame, [first, *what.rest], router.interfaces[tx].mtu)
            complaints += [f"{name}: scapy says: {complaint}"] if complaint else []
            continue
        if what.flow == b"own":
            complaint = second_opinion.message(what.choices[0][1][14:])
            complaints += [f"{name}: scapy says: {complaint}"] if complaint else []
            continue
        for tx, data in what.choices:
            text = lambda mac: ":".join(f"{byte:02x}" for byte in mac)
            for complaint in second_opinion.check(frame, data, text(data[:6]), text(router.interfaces[tx].mac)):
                complaints.append(f"{name}: scapy says: {complaint}")
    return complaints


def do_expect(options: argparse.Namespace) -> int:
    router = Router.load(options.router)
    inputs = named_files(options.input)
    if options.to_router:
        inputs = aimed_at_router(inputs, router)
    oracle = Oracle(router)
    for name, frames in inputs.items():
        for number, frame in enumerate(frames, 1):
            what = oracle.decide(name, frame)
            line = {"interface": name, "packet": number}
            if isinstance(what, Drop):
                line["drop"] = str(what)
            else:
                line["forward"] = [{"tx": tx, "hex": data.hex()} for tx, data in what.choices]
                if what.rest:
                    line["fragments"] = [data.hex() for data in what.rest]
            print(json.dumps(line))
    return 0


def do_compare(options: argparse.Namespace) -> int:
    router = Router.load(options.router)
    inputs = named_files(options.input)
    if options.to_router:
        inputs = aimed_at_router(inputs, router)
    comparison = Comparison(Oracle(router), inputs)
    drops = read_drops(options.drops) if options.drops else None
    counts = None
    if options.counts:
        with open(options.counts, encoding="utf-8") as file:
            counts = json.load(file)
    problems = []
    if second_opinion.AVAILABLE:
        problems = opinions(comparison, router)
    report = comparison.run(named_files(options.output), drops, counts)
    problems += report.problems
    for problem in problems[:options.limit]:
        print(problem)
    if len(problems) > options.limit:
        print(f"... and {len(problems) - options.limit} more")
    for why, count in report.reasons.most_common() if options.reasons else []:
        print(f"{count:8} {why}")
    opinion = "checked by scapy too" if second_opinion.AVAILABLE else "scapy is not installed, no second opinion"
    print(f"oracle: {report.packets} packets, {report.forwarded} to forward, {report.dropped} to drop, "
          f"{len(problems)} disagreements ({opinion})")
    return 1 if problems else 0


def do_corpus(options: argparse.Namespace) -> int:
    os.makedirs(options.out, exist_ok=True)
    with open(os.path.join(options.out, "router.json"), "w", encoding="utf-8") as file:
        json.dump(corpus.ROUTER, file, indent=2)
    for name in sorted({case.rx for case in corpus.ALL}):
        write(os.path.join(options.out, f"{name}.pcap"), [case.frame for case in corpus.ALL if case.rx == name])
    print(f"{len(corpus.ALL)} packets, router.json and one pcap per interface in {options.out}")
    return 0


def strip_vlan(data: bytes) -> bytes:
    """Without its VLAN tags, however many."""
    while len(data) >= 18 and int.from_bytes(data[12:14], "big") in VLAN_TYPES:
        data = data[:12] + data[16:]
    return data


def do_prepare(options: argparse.Namespace) -> int:
    mac = parse_mac(options.mac)
    frames = [frame.data for frame in read(options.source)]
    if options.strip_vlan:
        frames = [strip_vlan(data) for data in frames]
    write(options.result, [mac + data[6:] if len(data) >= 6 else data for data in frames])
    print(f"{len(frames)} packets in {options.result}")
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(required=True)
    for name, action in (("expect", do_expect), ("compare", do_compare)):
        command = commands.add_parser(name)
        command.set_defaults(action=action)
        command.add_argument("--router", required=True)
        command.add_argument("--input", action="append", default=[], metavar="IF=PCAP", required=True)
        command.add_argument("--to-router", action="store_true", help="rewrite destination MACs to the interface's")
    command.add_argument("--output", action="append", default=[], metavar="IF=PCAP")
    command.add_argument("--drops", help="pcapng with comments, or JSON lines")
    command.add_argument("--counts", help="JSON object of drop counters")
    command.add_argument("--limit", type=int, default=20, help="disagreements to print")
    command.add_argument("--reasons", action="store_true", help="print the expected drops by reason")
    command = commands.add_parser("prepare")
    command.set_defaults(action=do_prepare)
    command.add_argument("--mac", required=True)
    command.add_argument("--strip-vlan", action="store_true")
    command.add_argument("source")
    command.add_argument("result")
    command = commands.add_parser("corpus")
    command.set_defaults(action=do_corpus)
    command.add_argument("--out", required=True)
    return top


def main() -> int:
    options = parser().parse_args()
    try:
        return options.action(options)
    except (CaptureError, RouterError, OSError, KeyError, ValueError) as error:
        print(f"oracle: {type(error).__name__}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
