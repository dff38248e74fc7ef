"""Second opinion on offloads: cuts super-segments and finishes checksums with scapy, and compares.

Reads one JSON object a line from standard input: `frame` (hex), `size` (payload bytes of a segment, 0 for none), and `out`,
the frames (hex) that Volley made of it. Prints the first difference and fails, or prints how many cases agree.
"""

import json
import sys

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

FIN, PSH, CWR = 0x01, 0x08, 0x80


def layer4(frame):
    """The TCP or UDP layer of a frame."""
    return frame[TCP] if TCP in frame else frame[UDP]


def fresh(frame, payload):
    """The frame with another payload; scapy fills in every length and checksum."""
    copy = frame.copy()
    top = layer4(copy)
    top.remove_payload()
    top.add_payload(payload)
    del top.chksum
    if UDP in copy:
        del top.len
    if IP in copy:
        del copy[IP].len, copy[IP].chksum
    else:
        del copy[IPv6].plen
    return copy


def expected(frame, size):
    """What the frame has to become, as bytes."""
    data = bytes(layer4(frame).payload)
    if size == 0 or len(data) <= size:
        return [bytes(fresh(frame, data))]
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    made = []
    for number, part in enumerate(parts):
        one = fresh(frame, part)
        if IP in one:
            one[IP].id = (one[IP].id + number) & 0xFFFF
        if TCP in one:
            one[TCP].seq = (one[TCP].seq + number * size) & 0xFFFFFFFF
            flags = int(one[TCP].flags)
            flags &= ~0 if number == len(parts) - 1 else ~(FIN | PSH)
            flags &= ~0 if number == 0 else ~CWR
            one[TCP].flags = flags
        made.append(bytes(one))
    return made


def main():
    """Compare every case."""
    cases = 0
    for line in sys.stdin:
        case = json.loads(line)
        frame = Ether(bytes.fromhex(case["frame"]))
        want = [one.hex() for one in expected(frame, case["size"])]
        if want != case["out"]:
            at = next((i for i, pair in enumerate(zip(want, case["out"])) if pair[0] != pair[1]), -1)
            sys.exit(
                f"case {cases}: {len(want)} frames wanted, {len(case['out'])} made; they differ at {at}:\n"
                f"{want[at][:240]}\n{case['out'][at][:240]}"
            )
        cases += 1
    print(cases)


if __name__ == "__main__":
    main()
