"""Client of Volley's HTTP interface, version 1: see README.md."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
import urllib.parse
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

__version__ = "0.1.0"
__all__ = ["Client", "Events", "Refused"]

Request = Dict[str, Any]
Source = Union[str, Dict[str, Any]]

# The daemon closes connections that are silent for 30 s: a new one is opened well before.
_IDLE_S = 15.0


class Refused(Exception):
    """The daemon refused, and changed nothing."""

    def __init__(self, status: int, error: Dict[str, Any]):
        super().__init__(error.get("message", ""))
        self.status = status
        self.code: str = error.get("code", "")
        self.index: Optional[int] = error.get("index")
        self.place: Optional[str] = error.get("place")


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: Optional[float]):
        super().__init__("volley", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Events:
    """An endless iterator of (kind, data): `start`, then `change` and `log`, and `lost` when this reader was too slow."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse):
        self._connection, self._response = connection, response

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Tuple[str, Dict[str, Any]]]:
        while True:
            line = self._response.readline()
            if not line:
                return
            if line.strip():
                ((kind, data),) = json.loads(line).items()
                yield kind, data

    def close(self) -> None:
        self._response.close()
        self._connection.close()


class Client:
    """One connection to a daemon, opened when it is needed. Not for several threads at once."""

    def __init__(
        self,
        socket_path: Optional[str] = None,
        *,
        host: Optional[str] = None,
        port: int = 8443,
        token: Optional[str] = None,
        cafile: Optional[str] = None,
        timeout: Optional[float] = 60.0,
    ):
        if (socket_path is None) == (host is None):
            raise ValueError("give the path of a socket, or host (with port and token)")
        self._path, self._host, self._port = socket_path, host, port
        self._token, self._timeout = token, timeout
        self._tls = ssl.create_default_context(cafile=cafile) if host is not None else None
        self._connection: Optional[http.client.HTTPConnection] = None
        self._used = 0.0

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        if self._path is not None:
            return _Unix(self._path, timeout)
        assert self._host is not None
        return http.client.HTTPSConnection(self._host, self._port, context=self._tls, timeout=timeout)

    def _headers(self) -> Dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def call(self, method: str, path: str, body: Any = None) -> bytes:
        """The raw answer to a request; raises `Refused`."""
        if self._connection is not None and time.monotonic() - self._used > _IDLE_S:
            self.close()
        if self._connection is None:
            self._connection = self._connect(self._timeout)
        data = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, path, data, self._headers())
            response = self._connection.getresponse()
            answer = response.read()
        except BaseException:
            self.close()
            raise
        self._used = time.monotonic()
        if response.will_close:
            self.close()
        if response.status >= 400:
            raise _refusal(response.status, answer)
        return answer

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self.call(method, path, body))

    def show(self, question: str, /, **parameters: Any) -> Dict[str, Any]:
        """The answer to a question: `show("fib", family="ip4", address="192.0.2.1")`."""
        given = {k: v for k, v in parameters.items() if v is not None}
        query = "?" + urllib.parse.urlencode(given) if given else ""
        return self._json("GET", f"/v1/show/{urllib.parse.quote(question, safe='')}{query}")

    def state(self) -> Dict[str, Any]:
        """What runs, as requests that lead to it from nothing, with the number of the next event."""
        return self._json("GET", "/v1/state")

    def request(self, request: Request) -> Dict[str, Any]:
        """Carries out one request."""
        return self._json("POST", "/v1/requests", request)

    def transaction(self, requests: List[Request]) -> Dict[str, Any]:
        """Carries out several requests: all of them or none."""
        return self._json("POST", "/v1/transactions", requests)

    def check(self, source: Source) -> int:
        """Checks a configuration, such as `{"text": "..."}`; returns how many objects it has."""
        return self._json("POST", "/v1/config/check", {"source": source})["checked"]["objects"]

    def diff(self, from_: Source = "committed", to: Source = "running") -> List[str]:
        """What is different between two configurations, as lines that begin with - or +."""
        answer = self._json("POST", "/v1/config/diff", {"from": from_, "to": to})
        return answer["difference"]["lines"]

    def commit(
        self,
        source: Source = "running",
        *,
        confirm_s: Optional[int] = None,
        comment: Optional[str] = None,
    ) -> Dict[str, Any]:
        """Brings a configuration in force and keeps it; taken back unless confirmed within `confirm_s` seconds."""
        body = {"source": source, "confirm_s": confirm_s, "comment": comment}
        return self._json("POST", "/v1/config/commit", body)["committed"]

    def confirm(self) -> int:
        """Keeps the commit that waits; returns its number."""
        return self._json("POST", "/v1/config/confirm", {})["confirmed"]["number"]

    def rollback(self, number: int) -> Dict[str, Any]:
        """Commits an earlier commit again."""
        return self._json("POST", "/v1/config/rollback", {"number": number})["committed"]

    def history(self) -> List[Dict[str, Any]]:
        """The commits, newest first."""
        return self._json("GET", "/v1/config/history")["history"]["commits"]

    def export(self, form: str = "toml", commit: Optional[int] = None) -> str:
        """What runs (or a commit) as text: `toml`, `commands` or `json`."""
        query = f"?form={urllib.parse.quote(form)}" + ("" if commit is None else f"&commit={commit}")
        return self.call("GET", f"/v1/config/export{query}").decode()

    def do(self, verb: str, body: Request) -> Dict[str, Any]:
        """Carries out a verb: `do("click-write", {"handler": "c.reset_counts", "value": ""})`."""
        return self._json("POST", f"/v1/do/{urllib.parse.quote(verb, safe='')}", body)

    def metrics(self) -> str:
        """Figures in Prometheus' text format."""
        return self.call("GET", "/metrics").decode()

    def openapi(self) -> Dict[str, Any]:
        """The description of the interface."""
        return self._json("GET", "/v1/openapi.json")

    def log(self, **parameters: Any) -> Dict[str, Any]:
        """The newest records of the log, oldest first: `log(max=20, level="warn", module="interface", after=7)`."""
        return self.show("log", **parameters)

    def events(self, timeout: Optional[float] = None, kind: Optional[str] = None) -> Events:
        """What happens from now on, over a connection of its own: `kind` is "change" (what transactions change), "log"
        (records of the log), or both when it is not given."""
        connection = self._connect(self._timeout)
        headers = {**self._headers(), "Accept": "application/x-ndjson"}
        query = "" if kind is None else f"?kind={urllib.parse.quote(kind, safe='')}"
        connection.request("GET", f"/v1/events{query}", headers=headers)
        # http.client forgets the socket of an answer without an end.
        sock = connection.sock
        response = connection.getresponse()
        if response.status >= 400:
            raise _refusal(response.status, response.read())
        if sock is not None:
            sock.settimeout(timeout)
        return Events(connection, response)


def _refusal(status: int, answer: bytes) -> Refused:
    try:
        error = json.loads(answer)["error"]
    except (ValueError, KeyError, TypeError):
        error = {"code": "", "message": answer.decode(errors="replace")}
    return Refused(status, error)
