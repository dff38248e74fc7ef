"""Graphs of Click elements from Python: see README.md."""

from __future__ import annotations

import os
import re
import tempfile
from typing import Any, Dict, List, Optional, Tuple, Union

from . import Client

__all__ = ["Graph", "Module", "Port"]

Argument = Union[bool, int, float, str]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLAIN = re.compile(r"[A-Za-z0-9_.:/+*%<>=!&|() -]+\Z")


class Port:
    """An output or an input of a module: `module[1]`."""

    def __init__(self, module: "Module", number: int):
        self.module, self.number = module, number

    def __rshift__(self, to: Union["Module", "Port"]) -> "Module":
        port = to if isinstance(to, Port) else Port(to, 0)
        return self.module.connect(port.module, output=self.number, input=port.number)


class Module:
    """An element of a graph. `a >> b[1] >> c` connects output 0 of `a` with input 1 of `b`, and output 0 of `b` with `c`."""

    def __init__(self, graph: "Graph", class_name: str, name: str, arguments: str):
        self.graph, self.class_name, self.name, self.arguments = graph, class_name, name, arguments

    def __getitem__(self, number: int) -> Port:
        return Port(self, number)

    def __rshift__(self, to: Union["Module", Port]) -> "Module":
        return Port(self, 0) >> to

    def connect(self, to: "Module", *, output: int = 0, input: int = 0) -> "Module":
        """Connects an output with an input of another module, which is returned."""
        if to.graph is not self.graph:
            raise ValueError(f"{self.name} and {to.name} are in different graphs: connect modules of one graph")
        self.graph._connections.append((self.name, output, input, to.name))
        return to

    def disconnect(self, output: int = 0) -> None:
        """Removes the connections of an output."""
        connections = self.graph._connections
        connections[:] = [it for it in connections if it[:2] != (self.name, output)]

    def read(self, handler: str) -> str:
        """The value of a handler of the graph that runs: `read("count")`."""
        return self.graph.client.show("click", handler=f"{self.name}.{handler}")["value"]

    def write(self, handler: str, value: Argument = "") -> None:
        """Writes a handler of the graph that runs: `write("reset_counts")`."""
        body = {"handler": f"{self.name}.{handler}", "value": _argument(value)}
        self.graph.client.do("click-write", body)


class Graph:
    """A graph of elements, which the daemon runs from a file.

    `path` is a file that this program may write and the daemon may read: both are on one machine. Modules are made by the names of
    their classes: `graph.Counter()`, `graph.Queue(200, name="q")`. `start` runs the graph. After changes, `start` replaces the
    running graph without loss of packets: modules with the same name, class and arguments keep their state.
    """

    def __init__(self, client: Client, path: Union[str, "os.PathLike[str]"]):
        self.client, self.path = client, os.path.abspath(path)
        self._modules: Dict[str, Module] = {}
        self._connections: List[Tuple[str, int, int, str]] = []

    def __getattr__(self, class_name: str) -> Any:
        if not class_name[:1].isupper():
            raise AttributeError(class_name)
        return lambda *arguments, name=None, **keywords: self.add(class_name, *arguments, name=name, **keywords)

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]

    def add(self, class_name: str, *arguments: Argument, name: Optional[str] = None, **keywords: Argument) -> Module:
        """A module of a class. Keywords of the class are keywords here: `add("RatedSource", RATE=1000)`."""
        if name is None:
            number = 0
            while (name := f"{class_name.lower()}{number}") in self._modules:
                number += 1
        if not _NAME.match(name) or not _NAME.match(class_name):
            raise ValueError(f"{name} :: {class_name}: names consist of letters, digits and _, and begin with no digit")
        if name in self._modules:
            raise ValueError(f"there is a module {name}: give another name")
        given = [_argument(it) for it in arguments]
        given += [f"{keyword} {_argument(value)}" for keyword, value in keywords.items()]
        module = Module(self, class_name, name, ", ".join(given))
        self._modules[name] = module
        return module

    def remove(self, module: Module) -> None:
        """Removes a module and its connections."""
        del self._modules[module.name]
        self._connections[:] = [it for it in self._connections if module.name not in (it[0], it[3])]

    def text(self) -> str:
        """The graph in Click's language."""
        lines = [f"{it.name} :: {it.class_name}({it.arguments});" for it in self._modules.values()]
        lines += [f"{a} [{output}] -> [{input}] {b};" for a, output, input, b in self._connections]
        return "".join(f"{line}\n" for line in lines)

    def start(self) -> None:
        """Runs the graph, or replaces the one that runs. Raises `Refused`, with the line of `text`, when the daemon refuses it; the
        file and the graph that runs are then as before."""
        before = self._file()
        self._write(self.text())
        try:
            if self.client.show("click")["graph"] == self.path:
                self.client.do("click-reload", {})
            else:
                self.client.request({"set": {"class": "click", "graph": self.path}})
        except BaseException:
            self._write(before)
            raise

    def stop(self) -> None:
        """Stops the graph. Its file stays."""
        self.client.request({"unset": {"class": "click"}})

    def _file(self) -> Optional[str]:
        try:
            with open(self.path, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _write(self, text: Optional[str]) -> None:
        if text is None:
            os.unlink(self.path)
            return
        # The daemon never reads half a file.
        handle, name = tempfile.mkstemp(dir=os.path.dirname(self.path), prefix=".graph-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(name, 0o644)
            os.replace(name, self.path)
        except BaseException:
            os.unlink(name)
            raise


def _argument(value: Argument) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if not isinstance(value, str) or text == "" or _PLAIN.match(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
