"""Tests of the oracle itself: `python3 -m unittest` in this folder."""

import ipaddress
import json
import os
import struct
import tempfile
import unittest
from unittest import mock

import capture
import compare
import corpus
import flowhash
import oracle
import second_opinion
from options4 import blank
from router import Router, RouterError
from rules import Drop, Forward, Oracle, age, ones_complement_sum

ROUTER = Router(corpus.ROUTER)
ORACLE = Oracle(ROUTER)


class Rules(unittest.TestCase):
    def test_every_case_has_its_outcome(self):
        for case in corpus.CASES:
            with self.subTest(rule=case.rule, frame=case.frame[:60].hex()):
                what = ORACLE.decide(case.rx, case.frame)
                got = str(what) if isinstance(what, Drop) else what.choices[0][0]
                self.assertIn(got, case.outcome.split("|"))

    def test_every_rule_and_reason_of_the_page_has_a_case(self):
        page_path = os.path.join(os.path.dirname(__file__), "../../docs/forwarding-rules.md")
        with open(page_path, encoding="utf-8") as file:
            rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in file if line.startswith("| ")]
        tested = {case.rule for case in corpus.CASES} | {told.rule for told in corpus.TELLING}
        # No drop of their own, or not from bytes.
        untestable = {"1.1", "1.3", "1.4", "1.5", "1.6", "1.7", "3.5", "3.8", "4.13", "8.2", "8.3", "10.9", "13.8", "14.12", "15.16", "18.2", "19.6",
                      "21.8", "21.9", "21.10"}  # by what came before
        seen = 0
        for row in rows:
            if row[0] in untestable or not row[0][:1].isdigit():
                continue
            self.assertIn(row[0], tested)
            if ": " in row[-1] and "drop" not in row[-1]:
                reason = row[-1].split("`")[1].split(": ")[1]
                self.assertIn(reason, {c.outcome.partition(": ")[2] for c in corpus.CASES if c.rule == row[0]})
                seen += 1
        self.assertGreater(seen, 25)

    def test_drops_for_the_router_have_the_page_s_reasons(self):
        page_path = os.path.join(os.path.dirname(__file__), "../../docs/forwarding-rules.md")
        with open(page_path, encoding="utf-8") as file:
            rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in file if line.startswith("| 12.")]
        rows = [row for row in rows if "drop, `" in row[-1]]
        for row in rows:
            reason = row[-1].split("`")[1].partition(": ")[2]
            self.assertIn(reason, {c.outcome.partition(": ")[2] for c in corpus.CASES if c.rule == row[0]})
        self.assertEqual(len(rows), 11)

    def test_senders_are_told_what_is_written_down(self):
        for told in corpus.TELLING:
            with self.subTest(rule=told.rule, words=told.words, frame=told.case.frame[14:80].hex()):
                dropped = ORACLE.decide(told.case.rx, told.case.frame)
                self.assertIsInstance(dropped, Drop)
                errors = ORACLE.told(told.case.rx, told.case.frame, dropped)
                self.assertEqual(len(errors), 1 if told.words else 0, str(dropped))
                for packet, _ in errors:
                    head = 20 if packet[0] >> 4 == 4 else 40
                    words = packet[head:head + 2].hex() + " " + packet[head + 4:head + 8].hex()
                    source = ipaddress.ip_address(packet[12:16] if head == 20 else packet[8:24])
                    self.assertEqual((words, source), (told.words, ipaddress.ip_address(told.source)))
                    original = told.case.frame[14:]
                    length = int.from_bytes(original[2:4], "big") if head == 20 else 40 + int.from_bytes(original[4:6], "big")
                    most = 576 if head == 20 else 1280
                    quoted = original[:min(length, most - head - 8)]
                self.assertEqual(blank(packet[head + 8:]), blank(quoted))

    def test_senders_on_the_next_hop_s_network_are_redirected(self):
        for case in corpus.REDIRECTS:
            with self.subTest(rule=case.rule, frame=case.frame[14:80].hex()):
                sent = ORACLE.decide(case.rx, case.frame)
                told = ORACLE.redirects(case.rx, case.frame, sent)
                self.assertEqual(len(told), 1 if case.rule == "19.7" else 0)
                for packet, what in told:
                    self.assertIsInstance(what, Forward)
                    self.assertEqual(what.choices[0][0], "pg12")
                    self.assertLessEqual(len(packet), 576 if packet[0] >> 4 == 4 else 1280)

    @unittest.skipUnless(second_opinion.AVAILABLE, "scapy is not installed")
    def test_scapy_agrees_on_every_message(self):
        seen = 0
        for told in corpus.TELLING:
            for packet, _ in ORACLE.told(told.case.rx, told.case.frame, ORACLE.decide(told.case.rx, told.case.frame)):
                self.assertEqual(second_opinion.message(packet), "")
                seen += 1
        self.assertGreater(seen, 30)

    def test_both_members_of_a_load_balance_are_used(self):
        used = {(case.frame[12:14], ORACLE.decide(case.rx, case.frame).choices[0][0]) for case in corpus.SPREAD}
        self.assertEqual(len(used), 4)

    def test_exact_bytes_of_a_forwarded_packet(self):
        frame = corpus.eth(0x0800, corpus.ip4() + b"\0" * 10)
        what = ORACLE.decide("pg0", frame)
        head = bytes.fromhex("020000000101" "02fe00000001" "0800" "4500002400010000" "3f11ae1b" "c0a80101" "0a010203")
        self.assertEqual(what.choices, (("pg1", head + corpus.UDP),))

    def test_checksum_feff_becomes_0000_not_ffff(self):
        packet = corpus.with_checksum(0xFEFF)
        self.assertEqual(age("ip4", packet)[10:12], b"\0\0")

    def test_checksum_of_rfc_1071(self):
        self.assertEqual(ones_complement_sum(bytes.fromhex("0001f203f4f5f6f7")), 0xDDF2)

    def test_weights_leave_the_choice_open(self):
        description = json.loads(json.dumps(corpus.ROUTER))
        pair = next(route for route in description["routes"] if route["prefix"] == "10.10.0.0/16")
        pair["paths"][0]["weight"] = 3
        what = Oracle(Router(description)).decide("pg0", corpus.eth(0x0800, corpus.ip4(dst="10.10.0.1")))
        self.assertEqual({choice[0] for choice in what.choices}, {"pg1", "pg2"})

    @unittest.skipUnless(second_opinion.AVAILABLE, "scapy is not installed")
    def test_scapy_agrees_on_every_forwarded_case(self):
        comparison = compare.Comparison(ORACLE, inputs())
        self.assertEqual(oracle.opinions(comparison, ROUTER), [])

    @unittest.skipUnless(second_opinion.AVAILABLE, "scapy is not installed")
    def test_scapy_sees_a_wrong_checksum_and_a_changed_byte(self):
        frame = corpus.eth(0x0800, corpus.ip4())
        sent = bytearray(ORACLE.decide("pg0", frame).choices[0][1])
        sent[25] ^= 1
        sent[40] ^= 1
        self.assertEqual(len(second_opinion.check(frame, bytes(sent), "02:00:00:00:01:01", "02:fe:00:00:00:01")), 2)


class FlowHash(unittest.TestCase):
    """The only published expectations: which of two members a flow takes."""

    def test_known_members(self):
        two = flowhash.SRC | flowhash.DST | flowhash.PROTO
        self.assertEqual(flowhash.hash4(corpus.ip4(src="20.0.0.1", dst="10.0.0.1"), two, 0x11111111) & 1, 1)
        self.assertEqual(flowhash.hash6(corpus.ip6(src="3000:1::1", dst="3000::1"), two, 0x11111111) & 1, 1)

    def test_lookup3_matches_its_unrolled_form(self):
        self.assertEqual(flowhash.lookup3(1, 2, 3), unrolled(1, 2, 3))
        self.assertEqual(flowhash.lookup3(0xDEADBEEF, 0xFFFFFFFF, 0x80000000), unrolled(0xDEADBEEF, 0xFFFFFFFF, 0x80000000))

    def test_fragments_of_one_datagram_agree(self):
        first = corpus.ip4(fragment=0x2000)
        later = corpus.ip4(fragment=0x0003, body=b"other bytes")
        self.assertEqual(flowhash.hash4(first), flowhash.hash4(later))
        self.assertNotEqual(flowhash.hash4(first), flowhash.hash4(corpus.ip4()))

    def test_options_do_not_move_the_ports(self):
        self.assertEqual(flowhash.hash4(corpus.ip4()), flowhash.hash4(corpus.ip4(options=b"\1\1\1\1")))


def unrolled(a, b, c):
    m, r = 0xFFFFFFFF, flowhash._rot
    a = (a - c) & m ^ r(c, 4); c = (c + b) & m
    b = (b - a) & m ^ r(a, 6); a = (a + c) & m
    c = (c - b) & m ^ r(b, 8); b = (b + a) & m
    a = (a - c) & m ^ r(c, 16); c = (c + b) & m
    b = (b - a) & m ^ r(a, 19); a = (a + c) & m
    c = (c - b) & m ^ r(b, 4); b = (b + a) & m
    c = ((c ^ b) - r(b, 14)) & m
    a = ((a ^ c) - r(c, 11)) & m
    b = ((b ^ a) - r(a, 25)) & m
    c = ((c ^ b) - r(b, 16)) & m
    a = ((a ^ c) - r(c, 4)) & m
    b = ((b ^ a) - r(a, 14)) & m
    return ((c ^ b) - r(b, 24)) & m


def inputs():
    frames: dict[str, list[bytes]] = {}
    for case in corpus.ALL:
        frames.setdefault(case.rx, []).append(case.frame)
    return frames


def perfect_run():
    """What a router without faults would have put into its files."""
    outputs = {name: [] for name in ROUTER.interfaces}
    drops = []
    run = compare.Comparison(ORACLE, inputs())
    for _, frame, what in run.expected + run.told:
        if isinstance(what, Forward):
            outputs[what.choices[0][0]].append(what.choices[0][1])
        else:
            drops.append(compare.Dropped(str(what), frame, False))
    return outputs, drops


class Comparing(unittest.TestCase):
    def problems(self, outputs, drops, counts=None):
        return compare.Comparison(ORACLE, inputs()).run(outputs, drops, counts).problems

    def test_a_perfect_run_has_no_problems(self):
        outputs, drops = perfect_run()
        counts: dict[str, int] = {}
        for drop in drops:
            counts[drop.why] = counts.get(drop.why, 0) + 1
        self.assertEqual(self.problems(outputs, drops, counts), [])

    def test_drops_from_layer_3_on_and_cut_ones_are_recognised(self):
        outputs, drops = perfect_run()
        drops = [d._replace(data=d.data[14:]) if d.why.startswith("ip") else d._replace(data=d.data[:12], cut=True)
                 for d in drops]
        self.assertEqual(self.problems(outputs, drops), [])

    def test_each_fault_is_seen(self):
        def lose(outputs, drops): outputs["pg1"].pop(3)
        def double(outputs, drops): outputs["pg1"].append(outputs["pg1"][5])
        def flip(outputs, drops): outputs["pg1"][6] = outputs["pg1"][6][:-1] + b"\xee"
        def move(outputs, drops): outputs["pg2"].append(outputs["pg1"].pop(5))
        def rename(outputs, drops): drops[4] = drops[4]._replace(why="ip4-input: bad-luck")
        def forget(outputs, drops): drops.pop()
        def invent(outputs, drops): drops.append(compare.Dropped("ip4-input: too-short", b"xyz", False))
        def pad(outputs, drops): outputs["pg1"][7] += b"\0"
        for fault in (lose, double, flip, move, rename, forget, invent, pad):
            with self.subTest(fault=fault.__name__):
                outputs, drops = perfect_run()
                fault(outputs, drops)
                self.assertGreaterEqual(len(self.problems(outputs, drops)), 1)

    def test_wrong_counter_is_seen(self):
        outputs, _ = perfect_run()
        self.assertIn("counter `ip4-input: nonsense`: Volley has 3, the rules give 0",
                      self.problems(outputs, None, {"ip4-input: nonsense": 3}))

    def test_order_within_a_flow_and_only_there(self):
        one, two = (corpus.eth(0x0800, corpus.ip4(ident=i)) for i in (1, 2))
        other = corpus.eth(0x0800, corpus.ip4(src="192.168.9.9"))
        frames = [one, two, other]
        sent = [ORACLE.decide("pg0", frame).choices[0][1] for frame in frames]
        run = lambda order: compare.Comparison(ORACLE, {"pg0": frames}).run({"pg1": order}, [], None).problems
        self.assertEqual(run([sent[2], sent[0], sent[1]]), [])
        self.assertEqual(len(run([sent[1], sent[0], sent[2]])), 1)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_pcap_there_and_back(self):
        frames = [b"a", b"bc" * 700, b""]
        capture.write(self.path("x.pcap"), frames)
        self.assertEqual([frame.data for frame in capture.read(self.path("x.pcap"))], frames)

    def test_pcapng_with_comment(self):
        def block(kind, body):
            total = len(body) + 12
            return struct.pack("<II", kind, total) + body + struct.pack("<I", total)
        comment = b"ip4-input: bad-checksum"
        options = struct.pack("<HH", 1, len(comment)) + comment.ljust(24, b"\0") + struct.pack("<HH", 0, 0)
        packet = struct.pack("<IIIII", 0, 0, 0, 5, 9) + b"hello\0\0\0" + options
        blob = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, 0))
        with open(self.path("d.pcapng"), "wb") as file:
            file.write(blob + block(6, packet))
        self.assertEqual(capture.read(self.path("d.pcapng")), [capture.Frame(b"hello", comment.decode(), 9)])
        self.assertEqual(oracle.read_drops(self.path("d.pcapng")), [compare.Dropped(comment.decode(), b"hello", True)])

    def test_cut_files_are_errors(self):
        capture.write(self.path("x.pcap"), [b"0123456789"])
        with open(self.path("x.pcap"), "rb") as file:
            blob = file.read()
        for length in (3, 30, len(blob) - 1):
            with open(self.path("cut.pcap"), "wb") as file:
                file.write(blob[:length])
            with self.assertRaises(capture.CaptureError):
                capture.read(self.path("cut.pcap"))

    def test_table_file_and_longest_prefix(self):
        with open(self.path("t.txt"), "w", encoding="ascii") as file:
            file.write("# comment\n0.0.0.0/0 0\n10.0.0.0/8 1\n10.1.0.0/16 2\n10.1.2.3/32 5\n")
        hops = [{"tx": "pg0", "mac": f"02:00:00:00:00:0{n}"} for n in range(3)]
        router = Router({"interfaces": [{"name": "pg0", "mac": "02:00:00:00:00:00"}],
                         "files": [{"file": "t.txt", "next_hops": hops}]}, self.folder.name)
        last = lambda *address: router.lookup(0, bytes(address)).paths[0].mac[5]
        self.assertEqual([last(9, 0, 0, 1), last(10, 9, 9, 9), last(10, 1, 9, 9), last(10, 1, 2, 3)], [0, 1, 2, 2])
        self.assertIsNone(router.lookup(1, bytes(4)))

    def test_bad_descriptions_are_refused(self):
        for change in ({"interfaces": [{"name": "x", "mac": "02:00"}]},
                       {"interfaces": [], "routes": [{"prefix": "0.0.0.0/0"}]},
                       {"interfaces": [], "routes": [{"prefix": "0.0.0.0/0", "kind": "hope"}]},
                       {"interfaces": [], "routes": [{"prefix": "0.0.0.0/0", "paths": [{"tx": "no"}]}]},
                       {"interfaces": [{"name": "x", "mac": "02:00:00:00:00:00", "mode": "l2xc"}]}):
            with self.assertRaises(RouterError):
                Router(change)

    def test_prepare_aims_and_strips(self):
        inner = corpus.ip4()
        tagged = corpus.eth(0x88A8, b"\0\7\x81\0\0\5\x08\0" + inner, b"\xff" * 6)
        capture.write(self.path("in.pcap"), [tagged, b"abc", corpus.eth(0x8100, b"\0\1\x08")])
        words = ["prepare", "--mac", "02:fe:00:00:00:00", "--strip-vlan", self.path("in.pcap"), self.path("out.pcap")]
        with mock.patch("builtins.print"):
            self.assertEqual(oracle.do_prepare(oracle.parser().parse_args(words)), 0)
        frames = [frame.data for frame in capture.read(self.path("out.pcap"))]
        self.assertEqual(frames, [corpus.eth(0x0800, inner), b"abc", corpus.eth(0x8100, b"\0\1\x08")])

    def test_the_command_end_to_end(self):
        with mock.patch("builtins.print"):
            self.assertEqual(oracle.do_corpus(oracle.parser().parse_args(["corpus", "--out", self.folder.name])), 0)
        outputs, drops = perfect_run()
        for name, frames in outputs.items():
            capture.write(self.path(f"out-{name}.pcap"), frames)
        with open(self.path("drops.jsonl"), "w", encoding="utf-8") as file:
            for drop in drops:
                node, reason = drop.why.split(": ")
                file.write(json.dumps({"node": node, "reason": reason, "hex": drop.data.hex()}) + "\n")
        words = ["compare", "--router", self.path("router.json"), "--drops", self.path("drops.jsonl")]
        for name in sorted({case.rx for case in corpus.CASES}):
            words += ["--input", f"{name}={self.path(name)}.pcap"]
        for name in outputs:
            words += ["--output", f"{name}={self.path('out-' + name)}.pcap"]
        at = words.index(f"pg1={self.path('out-pg1')}.pcap")
        without_pg1 = words[:at - 1] + words[at + 1:]
        with mock.patch("builtins.print") as printed:
            self.assertEqual(oracle.do_compare(oracle.parser().parse_args(words)), 0)
            self.assertIn("0 disagreements", printed.call_args_list[-1].args[0])
            self.assertEqual(oracle.do_compare(oracle.parser().parse_args(without_pg1)), 1)


if __name__ == "__main__":
    unittest.main()
