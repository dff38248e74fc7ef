"""Graphs against a real daemon: $VOLLEY is the program."""

import struct
import time
import unittest
from pathlib import Path

from test_client import Daemon
from volley_client import Client, Refused
from volley_client.graph import Graph


def capture(path, frames):
    """Writes a capture file (libpcap's format, microseconds, Ethernet)."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def captured(path):
    """The packets of a capture file with its byte order."""
    data, frames, at = Path(path).read_bytes(), [], 24
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        frames.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return frames


def wait_for(value, wanted):
    deadline = time.monotonic() + 20
    while (seen := value()) != wanted:
        if time.monotonic() > deadline:
            raise AssertionError(f"{seen} instead of {wanted}")
        time.sleep(0.01)


class GraphTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.stop)
        self.root = Path(self.daemon.folder.name)
        self.volley = Client(self.daemon.socket)
        self.addCleanup(self.volley.close)
        self.graph = Graph(self.volley, self.root / "graph.click")

    def test_packets_pass_a_graph_that_changes(self):
        frames = [bytes([n % 2]) * 12 + struct.pack(">I", n) for n in range(3000)]
        capture(self.root / "in.pcap", frames)
        graph = self.graph
        source = graph.FromDump("in.pcap", ACTIVE=False, name="source")
        parts = graph.Classifier("0/01", "-", name="parts")
        odd = graph.Counter(name="odd")
        source >> parts >> odd >> graph.ToDump("odd.pcap")
        parts[1] >> graph.Discard()
        graph.start()
        self.assertEqual(odd.read("count"), "0")
        source.write("active", True)
        wait_for(lambda: odd.read("count"), "1500")
        # The counter goes on behind another element, and what is new begins.
        odd.disconnect()
        even = graph.Counter(name="even")
        odd >> graph.EtherMirror() >> graph["todump0"]
        parts.disconnect(1)
        parts[1] >> even >> graph["discard0"]
        graph.start()
        self.assertEqual((odd.read("count"), even.read("count")), ("1500", "0"))
        odd.write("reset_counts")
        self.assertEqual(odd.read("count"), "0")
        elements = {it["name"]: it["class"] for it in self.volley.show("click")["elements"]}
        self.assertEqual(elements["ethermirror0"], "EtherMirror")
        graph.stop()
        self.assertIsNone(self.volley.show("click").get("graph"))
        self.assertEqual(captured(self.root / "odd.pcap"), [it for it in frames if it[0] == 1])

    def test_a_refused_graph_changes_nothing(self):
        graph = self.graph
        counter = graph.Counter(name="c")
        graph.Idle() >> counter >> graph.Discard()
        graph.start()
        before = Path(graph.path).read_text()
        wrong = graph.add("Countr")
        counter >> wrong
        with self.assertRaises(Refused) as caught:
            graph.start()
        self.assertIn("there is no element class Countr: did you mean Counter?", str(caught.exception))
        self.assertEqual(Path(graph.path).read_text(), before)
        self.assertEqual(counter.read("count"), "0")
        graph.remove(wrong)
        graph.start()
        with self.assertRaises(Refused):
            counter.write("count", 7)
        with self.assertRaises(ValueError):
            graph.Counter(name="c")
        with self.assertRaises(ValueError):
            counter >> Graph(self.volley, self.root / "other.click").Discard()

    def test_arguments_are_written_in_the_language(self):
        graph = self.graph
        graph.Print('a, "quoted" \\ text', MAXLENGTH=2, name="p")
        graph.Queue(200, name="q")
        self.assertEqual(graph.text(), 'p :: Print("a, \\"quoted\\" \\\\ text", MAXLENGTH 2);\nq :: Queue(200);\n')


if __name__ == "__main__":
    unittest.main()
