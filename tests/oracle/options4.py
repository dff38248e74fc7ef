"""Record route and timestamp (RFC 791, 3.1): rules 5.3 to 5.6 of the page."""

import struct
from typing import Callable, Optional

RECORD_ROUTE, TIMESTAMP = 7, 68


def each(header: bytes):
    """Place and bytes of every option of a header, for as long as they fit."""
    at = 20
    while at < len(header) and header[at] != 0:
        if header[at] == 1:
            at += 1
            continue
        length = header[at + 1] if at + 1 < len(header) else 0
        if length < 2 or at + length > len(header):
            return
        yield at, header[at:at + length]
        at += length


def wrong_byte(option: bytes) -> Optional[int]:
    """Of one record route or timestamp: which byte of it is at fault."""
    stamp = option[0] == TIMESTAMP
    if len(option) < (4 if stamp else 3):
        return 1
    if option[2] < (5 if stamp else 4):
        return 2
    if option[2] > len(option):
        return 3 if stamp and option[3] >> 4 == 15 else None
    return 2 if option[2] - 1 + wanted(option) > len(option) else None


def wanted(option: bytes) -> int:
    """Bytes of one entry."""
    return 8 if option[0] == TIMESTAMP and option[3] & 15 in (1, 3) else 4


def fault(header: bytes) -> Optional[int]:
    """The first byte of the header that is wrong in one of them, a second one of a kind included."""
    seen = set()
    for at, option in each(header):
        if option[0] in (131, 137):
            return None
        if option[0] in (RECORD_ROUTE, TIMESTAMP):
            byte = wrong_byte(option)
            if byte is None and option[0] in seen:
                byte = 0
            if byte is not None:
                return at + byte
            seen.add(option[0])
    return None


def filled(packet: bytes, own: bytes, is_ours: Callable[[bytes], bool], day_ms: int = 0) -> bytes:
    """The packet with what a router enters; `own` is the address that it leaves from."""
    length = (packet[0] & 15) * 4
    header, time = bytearray(packet[:length]), struct.pack(">I", day_ms)
    for at, option in each(packet[:length]):
        if option[0] not in (RECORD_ROUTE, TIMESTAMP):
            continue
        full = option[2] > len(option)
        if option[0] == TIMESTAMP and full:
            header[at + 3] += 16
        if full:
            continue
        place = at + option[2] - 1
        if option[0] == RECORD_ROUTE:
            entry = own
        else:
            named = bytes(header[place:place + 4])
            entry = {0: time, 1: own + time, 3: named + time if is_ours(named) else b""}.get(option[3] & 15, b"")
        header[place:place + len(entry)] = entry
        header[at + 2] += len(entry)
    return summed(bytes(header)) + packet[length:]


def summed(header: bytes) -> bytes:
    total = sum(struct.unpack(f">{len(header) // 2}H", header[:10] + bytes(2) + header[12:]))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack(">H", ~total & 0xFFFF) + header[12:]


def start(data: bytes) -> Optional[int]:
    """Where an IPv4 header with options begins, in a frame or a packet."""
    at = 14 if data[12:14] == b"\x08\0" else 0
    good = len(data) > at + 20 and data[at] >> 4 == 4 and data[at] & 15 > 5 and len(data) >= at + (data[at] & 15) * 4
    return at if good else None


def untimed(frame: bytes) -> bytes:
    """Without the times that are entered, and without the checksum where that is right: no clock has to agree."""
    at = start(frame)
    header = frame[at:at + (frame[at] & 15) * 4] if at is not None else b""
    if not any(option[0] == TIMESTAMP for _, option in each(header)) or summed(header) != header:
        return frame
    plain = bytearray(header[:10] + bytes(2) + header[12:])
    for place, option in each(header):
        if option[0] == TIMESTAMP and wrong_byte(option) is None:
            entry = wanted(option)
            for end in range(4 + entry, min(option[2], len(option) + 1), entry):
                plain[place + end - 4:place + end] = bytes(4)
    return frame[:at] + bytes(plain) + frame[at + len(header):]


def blank(data: bytes) -> bytes:
    """Without anything that a router may have entered: a packet that was dropped may have come as far as that, or not."""
    at = start(data)
    header = data[at:at + (data[at] & 15) * 4] if at is not None else b""
    asked = [(place, option) for place, option in each(header) if option[0] in (RECORD_ROUTE, TIMESTAMP)]
    if not asked:
        return data
    plain = bytearray(header[:10] + bytes(2) + header[12:])
    for place, option in asked:
        plain[place + 2:place + len(option)] = bytes(len(option) - 2)
    return data[:at] + bytes(plain) + data[at + len(header):]
