"""Reading and writing capture files, without libraries.

`read(path)` gives one Frame per packet of a pcap or pcapng file, `.xz` and `.gz` included. A pcapng comment on a packet
("node: reason") comes along: Volley's drop capture carries the reason there. `write(path, frames)` writes a classic pcap.
"""

import gzip
import lzma
import struct
from typing import Iterable, Iterator, NamedTuple


class CaptureError(Exception):
    """The file is not a capture, or it ends in the middle of a record."""


class Frame(NamedTuple):
    data: bytes
    comment: str = ""
    original_length: int = 0


def open_any(path: str):
    if path.endswith(".xz"):
        return lzma.open(path, "rb")
    if path.endswith(".gz"):
        return gzip.open(path, "rb")
    return open(path, "rb")


def read(path: str) -> list[Frame]:
    with open_any(path) as file:
        blob = file.read()
    if len(blob) < 4:
        raise CaptureError(f"{path}: {len(blob)} bytes are too few for a capture file")
    magic = blob[:4]
    if magic == b"\x0a\x0d\x0d\x0a":
        return list(_pcapng(path, blob))
    orders = {
        b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">",
        b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\x3c\x4d": ">",
    }
    if magic not in orders:
        raise CaptureError(f"{path}: magic {magic.hex()} is neither pcap nor pcapng")
    return list(_pcap(path, blob, orders[magic]))


def _pcap(path: str, blob: bytes, order: str) -> Iterator[Frame]:
    at = 24
    while at < len(blob):
        if at + 16 > len(blob):
            raise CaptureError(f"{path}: record header cut at byte {at}")
        _, _, stored, original = struct.unpack_from(order + "IIII", blob, at)
        at += 16
        if at + stored > len(blob):
            raise CaptureError(f"{path}: record of {stored} bytes cut at byte {at}")
        yield Frame(blob[at:at + stored], "", original)
        at += stored


def _pcapng(path: str, blob: bytes) -> Iterator[Frame]:
    at, order = 0, "<"
    while at < len(blob):
        if at + 12 > len(blob):
            raise CaptureError(f"{path}: block header cut at byte {at}")
        if blob[at:at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if blob[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
        kind, total = struct.unpack_from(order + "II", blob, at)
        if total < 12 or total % 4 or at + total > len(blob):
            raise CaptureError(f"{path}: block of {total} bytes at byte {at} does not fit")
        body = blob[at + 8:at + total - 4]
        if kind == 6:
            stored, original = struct.unpack_from(order + "II", body, 12)
            end = 20 + stored
            yield Frame(body[20:end], _comment(body[(end + 3) & ~3:], order), original)
        elif kind == 3:
            original = struct.unpack_from(order + "I", body, 0)[0]
            yield Frame(body[4:4 + min(original, len(body) - 4)], "", original)
        at += total


def _comment(options: bytes, order: str) -> str:
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(order + "HH", options, at)
        if code == 0:
            break
        if code == 1:
            return options[at + 4:at + 4 + length].decode("utf-8", "replace")
        at += 4 + ((length + 3) & ~3)
    return ""


def write(path: str, frames: Iterable[bytes]) -> None:
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for number, data in enumerate(frames):
            file.write(struct.pack("<IIII", 1_700_000_000, number % 1_000_000, len(data), len(data)))
            file.write(data)
