"""Against a real daemon: $VOLLEY is the program."""

import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from volley_client import Client, Refused

VOLLEY = os.path.abspath(os.environ.get("VOLLEY", "target/debug/volley"))


class Daemon:
    def __init__(self, config: str = ""):
        self.folder = tempfile.TemporaryDirectory(prefix="volley-python-")
        root = Path(self.folder.name)
        (root / "volley.toml").write_text(config.replace("@", str(root)))
        self.log = open(root / "log", "w+")
        args = ["run", "-c", "volley.toml", "--socket", "s", "--state-dir", "state"]
        self.process = subprocess.Popen([VOLLEY, *args], cwd=root, stderr=self.log)
        self.socket = str(root / "s.http.sock")
        deadline = time.monotonic() + 60
        while "ready" not in (root / "log").read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((root / "log").read_text())
            time.sleep(0.02)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()
        self.folder.cleanup()


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon('[[interface]]\nname = "pg0"\nkind = "pg"\naddresses = ["192.0.2.1/24"]\n')

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()

    def setUp(self):
        self.volley = Client(self.daemon.socket)
        self.addCleanup(self.volley.close)

    def test_questions(self):
        self.assertRegex(self.volley.show("version")["version"], r"^\d+\.\d+")
        (pg0,) = self.volley.show("interfaces", name="pg0")["interfaces"]
        self.assertEqual(pg0["addresses"], ["192.0.2.1/24"])
        fib = self.volley.show("fib", family="ip4", address="192.0.2.9")
        self.assertEqual(fib["tables"][0]["routes"][0]["prefix"], "192.0.2.0/24")
        with self.assertRaises(Refused) as caught:
            self.volley.show("interfaces", nome="pg0")
        self.assertEqual((caught.exception.status, caught.exception.place), (400, "nome"))

    def test_transactions_are_all_or_nothing(self):
        before = self.volley.state()
        with self.assertRaises(Refused) as caught:
            self.volley.transaction([
                {"set": {"class": "table", "family": "ip4", "id": 77}},
                {"set": {"class": "mtu", "interface": "no-such", "mtu": 1500}},
            ])
        self.assertEqual((caught.exception.code, caught.exception.index), ("not-found", 1))
        self.assertEqual(self.volley.state(), before)
        done = self.volley.transaction([{"set": {"class": "table", "family": "ip4", "id": 78}}])
        self.assertGreater(done["transaction"], before["transactions"])
        self.volley.request({"unset": {"class": "table", "family": "ip4", "id": 78}})

    def test_commits(self):
        text = self.volley.export()
        self.assertIn("pg0", text)
        self.assertGreater(self.volley.check({"text": text}), 0)
        first = self.volley.commit(comment="as found")
        self.volley.request({"set": {"class": "table", "family": "ip6", "id": 5}})
        self.assertEqual(len(self.volley.diff()), 1)
        second = self.volley.commit(confirm_s=60)
        self.assertEqual(self.volley.confirm(), second["number"])
        third = self.volley.rollback(first["number"])
        one, two, three = [{"commit": it["number"]} for it in (first, second, third)]
        self.assertEqual(len(self.volley.diff(one, two)), 1)
        self.assertEqual(self.volley.diff(one, three), [])
        numbers = [row["number"] for row in self.volley.history()]
        self.assertEqual(numbers[0], third["number"])
        self.assertEqual(self.volley.export("commands"), self.volley.export("commands", first["number"]))

    def test_events(self):
        with self.volley.events(timeout=20) as events:
            stream = iter(events)
            kind, start = next(stream)
            self.assertEqual(kind, "start")
            self.volley.request({"set": {"class": "table", "family": "ip4", "id": 90}})
            kind, event = next(stream)
            self.assertEqual((kind, event["kind"], event["object"]), ("change", "created", "object"))
            self.assertEqual(event["sequence"], start["next_event"])
            self.assertRegex(event["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
            kind, record = next(stream)
            self.assertEqual((kind, record["module"], record["fields"]["via"]), ("log", "config", "http"))
            self.assertEqual(record["fields"]["user"], event["user"])
            self.assertEqual(self.volley.log(after=record["sequence"] - 1)["records"], [record])
        self.volley.request({"unset": {"class": "table", "family": "ip4", "id": 90}})

    def test_metrics_and_description(self):
        self.assertIn("volley_interface_receive_packets_total", self.volley.metrics())
        self.assertEqual(self.volley.openapi()["openapi"], "3.1.0")
        try:
            from prometheus_client.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("prometheus_client is not installed; the Rust test has a check of its own")
        families = list(text_string_to_metric_families(self.volley.metrics()))
        self.assertGreater(len(families), 20)
        self.assertTrue(all(f.documentation and f.type != "unknown" for f in families))


class TcpTest(unittest.TestCase):
    def test_tls_and_token(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        cert, key, token = (str(Path(folder.name) / n) for n in ("cert.pem", "key.pem", "token"))
        make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        make += ["-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"]
        make += ["-addext", "subjectAltName=IP:127.0.0.1"]
        # A certificate of an authority may not be a server's: it is one or the other.
        make += ["-addext", "basicConstraints=critical,CA:FALSE"]
        try:
            subprocess.run(make, check=True, capture_output=True)
        except FileNotFoundError:
            self.skipTest("openssl is not installed")
        Path(token).write_text("correct-horse-battery\n")
        Path(token).chmod(0o600)
        Path(key).chmod(0o600)
        config = f'[api]\nlisten = "127.0.0.1:0"\ncertificate = "{cert}"\nkey = "{key}"\ntoken_file = "{token}"\n'
        daemon = Daemon(config)
        self.addCleanup(daemon.stop)
        log = Path(daemon.folder.name, "log").read_text()
        port = int(log.split("127.0.0.1:")[1].split()[0])
        with Client(host="127.0.0.1", port=port, token="correct-horse-battery", cafile=cert) as volley:
            self.assertIn("version", volley.show("version"))
        for wrong in (None, "correct-horse-batterz", "x"):
            with Client(host="127.0.0.1", port=port, token=wrong, cafile=cert) as volley:
                with self.assertRaises(Refused) as caught:
                    volley.metrics()
                self.assertEqual(caught.exception.status, 401)


if __name__ == "__main__":
    unittest.main()
