"""Holds what Volley did against what the rules say, packet by packet.

Packets carry no number, so they are matched by their bytes. Order is required within a flow only, and only among packets
that stay in the fast lane: that is what Volley promises.
"""

from collections import Counter, defaultdict
from typing import NamedTuple, Optional

from options4 import blank, untimed
from rules import Drop, Forward, Oracle, untagged


class Dropped(NamedTuple):
    why: str
    data: bytes
    cut: bool


class Report(NamedTuple):
    packets: int
    forwarded: int
    dropped: int
    reasons: Counter
    problems: list[str]


class Comparison:
    def __init__(self, oracle: Oracle, inputs: dict[str, list[bytes]]):
        self.decided = [(f"{name} packet {number}", frame, oracle.decide(name, frame))
                        for name, frames in inputs.items() for number, frame in enumerate(frames, 1)]
        self.expected = [untimely(item) for item in pieces(self.decided)]
        self.told = [(f"what {where} is told", packet, what)
                     for where, name, frame, dropped in self._drops(inputs)
                     for packet, what in oracle.told(name, frame, dropped)]
        self.told += [(f"what {where} redirects", packet, what)
                      for (where, frame, sent), (name, _) in zip(self.decided, ((n, f) for n, fs in inputs.items() for f in fs))
                      if isinstance(sent, Forward) for packet, what in oracle.redirects(name, frame, sent)]
        self.told = [untimely(item) for item in pieces(self.told)]
        self.problems: list[str] = []

    def _drops(self, inputs: dict[str, list[bytes]]):
        names = (name for name, frames in inputs.items() for _ in frames)
        for (where, frame, what), name in zip(self.decided, names):
            if isinstance(what, Drop):
                yield where, name, frame, what

    def run(self, outputs: dict[str, list[bytes]], drops: Optional[list[Dropped]],
            counts: Optional[dict[str, int]]) -> Report:
        outputs = {name: [untimed(data) for data in frames] for name, frames in outputs.items()}
        left = Counter((name, data) for name, frames in outputs.items() for data in frames)
        pool = DropPool(drops) if drops is not None else None
        missing = self._match_forwards(left)
        if pool is not None:
            missing += self._match_drops(pool)
        self._explain(missing, left, pool)
        reasons = Counter(str(what) for _, _, what in self.expected + self.told if isinstance(what, Drop))
        if counts is not None:
            self._compare_counts(reasons, Counter(counts))
        self._check_order(outputs)
        forwarded = sum(isinstance(what, Forward) for _, _, what in self.decided)
        return Report(len(self.decided), forwarded, len(self.decided) - forwarded, reasons, self.problems)

    def _match_forwards(self, left: Counter) -> list:
        missing = []
        for item in self.expected + self.told:
            what = item[2]
            if not isinstance(what, Forward):
                continue
            found = next((choice for choice in what.choices if left[choice] > 0), None)
            if found is None:
                missing.append(item)
            else:
                left[found] -= 1
        return missing

    def _match_drops(self, pool: "DropPool") -> list:
        return [item for item in self.expected + self.told
                if isinstance(item[2], Drop) and not pool.take(str(item[2]), item[1])]

    def _explain(self, missing: list, left: Counter, pool: Optional["DropPool"]) -> None:
        """Says of each packet that did not do what it should what it did instead, as far as can be told."""
        for name, frame, what in missing:
            wish = str(what) if isinstance(what, Drop) else "forward by " + "/".join(c[0] for c in what.choices)
            other = pool.take_any(frame) if pool is not None else None
            if other is not None:
                self.problems.append(f"{name}: should be `{wish}`, was dropped as `{other}`: {frame[:64].hex()}")
                continue
            twin = nearest(frame, what, left)
            if twin is None:
                self.problems.append(f"{name}: should be `{wish}`, was neither seen leaving nor dropped: {frame[:64].hex()}")
            else:
                left[twin] -= 1
                self.problems.append(f"{name}: should be `{wish}`, {difference(what, twin)}")
        for (name, data), count in left.items():
            if count > 0:
                self.problems.append(f"{name}: {count} frame(s) left that no rule sends: {data[:64].hex()}")
        for why, data in pool.rest() if pool is not None else []:
            self.problems.append(f"dropped as `{why}`, but no such packet was injected: {data[:64].hex()}")

    def _compare_counts(self, reasons: Counter, counts: Counter) -> None:
        for why in sorted(set(reasons) | set(counts)):
            if reasons[why] != counts[why]:
                self.problems.append(f"counter `{why}`: Volley has {counts[why]}, the rules give {reasons[why]}")

    def _check_order(self, outputs: dict[str, list[bytes]]) -> None:
        places: dict[tuple[str, bytes], list[int]] = defaultdict(list)
        for name, frames in outputs.items():
            for place, data in enumerate(frames):
                places[(name, data)].append(place)
        last: dict[tuple[str, bytes], tuple[int, str]] = {}
        for name, _, what in self.expected:
            if not isinstance(what, Forward) or what.slow or len(what.choices) != 1:
                continue
            choice = what.choices[0]
            if not places[choice]:
                continue
            place = places[choice].pop(0)
            flow = (choice[0], what.flow)
            before = last.get(flow)
            if before is not None and before[0] > place:
                self.problems.append(f"{name} left by {choice[0]} before {before[1]}, which is older and of the same flow")
            last[flow] = (place, name)


def pieces(decided):
    """Each frame that has to leave by itself: fragments are several."""
    for where, frame, what in decided:
        rest = what.rest if isinstance(what, Forward) else ()
        yield where, frame, what
        for number, data in enumerate(rest, 2):
            yield f"{where} fragment {number}", frame, what._replace(choices=((what.choices[0][0], data),), rest=())


def untimely(item):
    """Frames that leave without the times that were entered in them."""
    where, frame, what = item
    if isinstance(what, Forward):
        what = what._replace(choices=tuple((tx, untimed(data)) for tx, data in what.choices))
    return where, frame, what


class DropPool:
    """The packets that Volley dropped, to be taken one by one.

    A drop may be captured as the whole frame or from layer 3 on, and cut at the capture's snap length.
    """

    def __init__(self, drops: list[Dropped]):
        self.whole = Counter((drop.why, blank(drop.data)) for drop in drops if not drop.cut)
        self.cut = [drop._replace(data=blank(drop.data)) for drop in drops if drop.cut]

    def take(self, why: str, frame: bytes) -> bool:
        frame, bare = blank(frame), blank(untagged(frame))
        for shape in dict.fromkeys((frame, frame[14:], bare, bare[14:])):
            if self.whole[(why, shape)] > 0:
                self.whole[(why, shape)] -= 1
                return True
        for place, drop in enumerate(self.cut):
            if drop.why == why and any(shape.startswith(drop.data) for shape in (frame, frame[14:], bare, bare[14:])):
                del self.cut[place]
                return True
        return False

    def take_any(self, frame: bytes) -> Optional[str]:
        for why in {why for (why, _), count in self.whole.items() if count > 0} | {drop.why for drop in self.cut}:
            if self.take(why, frame):
                return why
        return None

    def rest(self) -> list[tuple[str, bytes]]:
        whole = [key for key, count in self.whole.items() for _ in range(count)]
        return whole + [(drop.why, drop.data) for drop in self.cut]


def nearest(frame: bytes, what, left: Counter):
    """A frame left over that is probably this packet: the same bytes from the addresses on."""
    tail = frame[26:58]
    for key, count in left.items():
        if count > 0 and tail and key[1][26:58] == tail[:max(0, len(key[1]) - 26)]:
            return key
    return None


def difference(what, twin: tuple[str, bytes]) -> str:
    name, data = twin
    if isinstance(what, Drop):
        return f"left by {name}: {data[:64].hex()}"
    tx, wish = what.choices[0]
    if name != tx:
        return f"left by {name}"
    if len(data) != len(wish):
        return f"left with {len(data)} bytes instead of {len(wish)}"
    at = next(place for place, pair in enumerate(zip(data, wish)) if pair[0] != pair[1])
    return f"left with byte {at} = {data[at]:#04x} instead of {wish[at]:#04x}: {data[:64].hex()}"
