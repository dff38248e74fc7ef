#!/usr/bin/env python3
"""Volley against the Linux kernel: the same router, the same packets, outputs compared byte for byte.

    differential.py prepare FOLDER [--captures FOLDER] [--every N]   volley.toml, burst-N.pcap, and a line for each burst
    differential.py judge FOLDER [the same options]                  in a network namespace of its own: plays the kernel,
                                                                     reads volley-pgN.pcap and drops.pcapng, compares

Every difference must be one of `classes.py`, and every class must be seen. docs/differences-from-linux.md must list just these. Ends with 1 when something does not agree.
"""

import argparse
import os
import sys
from collections import Counter, defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "oracle"))

import classes
import routers
import stimuli
from capture import read, write
from kernel import Kernel

BURST = 500
PAGE = os.path.join(HERE, "..", "..", "docs", "differences-from-linux.md")
LATE = "what comes late"


def bursts(found: list) -> list[list[tuple[int, stimuli.Stimulus]]]:
    """Parts that fit what a capture can hold back, each for one interface."""
    parts, weight = [], 0
    for number, stimulus in enumerate(found):
        more = 1 + len(stimulus.frame) // 1200
        if not parts or parts[-1][-1][1].rx != stimulus.rx or weight + more > BURST:
            parts.append([])
            weight = 0
        parts[-1].append((number, stimulus))
        weight += more
    return parts


def prepare(options: argparse.Namespace) -> int:
    with open(os.path.join(options.folder, "volley.toml"), "w", encoding="utf-8") as file:
        file.write(routers.volley())
    for count, part in enumerate(bursts(stimuli.everything(options.captures, options.every))):
        frames, rx = [], part[0][1].rx
        for number, stimulus in part:
            frames += [stimulus.frame, *(stimuli.marker(rx, name, number) for name in routers.NAMES)]
        path = os.path.join(options.folder, f"burst-{count}.pcap")
        write(path, frames)
        print(rx, len(frames), path)
    return 0


def of_volley(folder: str) -> dict[int, list[tuple[str, bytes]]]:
    """Frames that left, by the number of the packet that they are because of."""
    found, markers = defaultdict(list), 0
    for name in routers.NAMES:
        number = 0
        for frame in read(os.path.join(folder, f"volley-{name}.pcap")):
            seen = stimuli.marked(frame.data)
            if seen < 0:
                found[number].append((name, frame.data))
                continue
            if seen != number:
                raise RuntimeError(f"{name}: marker {seen} comes instead of {number}")
            number, markers = number + 1, markers + 1
    return found


def of_kernel(found: list) -> dict[int, list[tuple[str, bytes]]]:
    kernel = Kernel()
    outputs = {number: kernel.send(stimulus.rx, stimulus.frame) for number, stimulus in enumerate(found)}
    outputs[len(found)] = kernel.collect(2.5)
    return outputs


def reasons(folder: str) -> dict[bytes, list[str]]:
    """Why Volley dropped packets, by their bytes: as frames or from layer 3 on."""
    found = defaultdict(list)
    for drop in read(os.path.join(folder, "drops.pcapng")):
        found[drop.data].append(drop.comment.split(" (")[0])
    return found


def cases(found: list, folder: str) -> list[classes.Case]:
    kernel, volley, why = of_kernel(found), of_volley(folder), reasons(folder)
    together = []
    quick = [number for number, stimulus in enumerate(found) if not stimuli.is_slow(stimulus)]
    late = range(len(quick), len(found) + 1)
    merged = [[out for number in late for out in side.get(number, [])] for side in (kernel, volley)]
    for number in quick:
        for side, pool in zip((kernel, volley), merged):
            pool += [out for out in side.get(number, []) if classes.nobody(out[1])]
            side[number] = [out for out in side.get(number, []) if not classes.nobody(out[1])]
    for number in quick:
        stimulus = found[number]
        dropped = next((why[shape] for shape in shapes(stimulus.frame) if shape in why), [])
        together.append(classes.Case(stimulus, kernel.get(number, []), volley.get(number, []), dropped))
    everything = [stimulus for stimulus in found if stimuli.is_slow(stimulus)]
    together.append(classes.Case(stimuli.Stimulus(LATE, "pg0", b"".join(s.frame for s in everything)), *merged, []))
    return together


def shapes(frame: bytes):
    """How a frame may look in the capture of drops."""
    packet = frame[14:]
    yield from (frame, packet)
    if frame[12:14] == b"\x08\x00":
        yield packet[:int.from_bytes(packet[2:4], "big")]
        yield frame[:14 + int.from_bytes(packet[2:4], "big")]
    else:
        yield packet[:40 + int.from_bytes(packet[4:6], "big")]
        yield frame[:54 + int.from_bytes(packet[4:6], "big")]


def listed() -> set[str]:
    """Classes of the page: the first cell of each row, in backticks."""
    with open(PAGE, encoding="utf-8") as file:
        rows = [line.split("`") for line in file if line.startswith("| `")]
    return {row[1] for row in rows}


def judge(options: argparse.Namespace) -> int:
    found = stimuli.everything(options.captures, options.every)
    seen, problems = Counter(), []
    outputs = 0
    for case in cases(found, options.folder):
        outputs += len(case.kernel)
        names, left = classes.explain(case)
        seen.update(names)
        problems += left
    known = {c.name for c in classes.ALL}
    page = listed()
    for name in sorted(known ^ page):
        problems.append(f"class {name} is not in both classes.py and {os.path.basename(PAGE)}")
    missing = [c.name for c in classes.ALL if not seen[c.name]]
    problems += [f"class {name} is listed, but no packet shows it" for name in missing]
    for problem in problems[:options.limit]:
        print(problem)
    if options.counts:
        for name, count in seen.most_common():
            print(f"{count:7} {name}")
    differ = sum(seen.values())
    print(f"differential: {len(found)} packets, {outputs} outputs of the kernel, {len(seen)} of {len(classes.ALL)} classes seen "
          f"({differ} times), {len(problems)} problems")
    return 1 if problems else 0


def main() -> int:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(required=True)
    for name, action in (("prepare", prepare), ("judge", judge)):
        command = commands.add_parser(name)
        command.set_defaults(action=action)
        command.add_argument("folder")
        command.add_argument("--captures", default="")
        command.add_argument("--every", type=int, default=1)
    command.add_argument("--limit", type=int, default=40)
    command.add_argument("--counts", action="store_true")
    options = top.parse_args()
    return options.action(options)


if __name__ == "__main__":
    sys.exit(main())
