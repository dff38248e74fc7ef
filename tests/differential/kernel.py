"""The kernel as a router: its interfaces are taps of this process, so a packet written to one is routed before the call is
back, and what the kernel sent because of it waits at the others."""

import fcntl
import os
import select
import struct
import subprocess
import time

import routers

TUNSETIFF, TAP, NO_INFO = 0x400454CA, 2, 0x1000
# What the kernel says of its own accord, or to find a neighbour: reports of group members, questions by ARP and ND.
GROUP_REPORTS = (bytes.fromhex("333300000016"), bytes.fromhex("01005e000016"))


def own_accord(frame: bytes) -> bool:
    kind = frame[12:14]
    asks4 = kind == b"\x08\x06" and frame[20:22] == b"\0\1"
    asks6 = kind == b"\x86\xdd" and frame[20:21] == b"\x3a" and frame[54:55] in (b"\x85", b"\x87")
    return frame[:6] in GROUP_REPORTS or asks4 or asks6


class Kernel:
    """In the namespace of the process."""

    def __init__(self):
        for name, value in routers.SETTINGS.items():
            setting(name, value)
        self.taps = {}
        for name in routers.NAMES:
            tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP | NO_INFO))
            self.taps[name] = tap
            for family in ("ipv4", "ipv6"):
                for key, value in routers.NEIGHBOURS.items():
                    setting(f"net/{family}/neigh/{name}/{key}", value)
        lines = "\n".join(routers.links()) + "\n"
        done = subprocess.run(["ip", "-batch", "-"], input=lines, text=True, capture_output=True, timeout=30, check=False)
        if done.returncode:
            raise RuntimeError(f"ip: {done.stderr}")
        self.collect(0.5)

    def send(self, name: str, frame: bytes) -> list[tuple[str, bytes]]:
        """What leaves at once because of a frame. A frame that no link would carry makes nothing."""
        try:
            os.write(self.taps[name], frame)
        except OSError:
            return []
        return self.waiting()

    def waiting(self) -> list[tuple[str, bytes]]:
        found = []
        for name, tap in self.taps.items():
            while True:
                try:
                    frame = os.read(tap, 70000)
                except BlockingIOError:
                    break
                if not own_accord(frame):
                    found.append((name, frame))
        return found

    def collect(self, seconds: float) -> list[tuple[str, bytes]]:
        found, end = [], time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            select.select(list(self.taps.values()), [], [], left)
            found += self.waiting()
        return found


def setting(name: str, value) -> None:
    try:
        with open(f"/proc/sys/{name}", "w", encoding="ascii") as file:
            file.write(f"{value}\n")
    except FileNotFoundError:
        # A kernel without this switch: then the comparison says what it does.
        pass
