"""The server as a process, asked over HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock.serve.roles import Role
from penstock.serve.state import FILE, State

MAIN = "from penstock.cli.main import main; main()"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """``penstock serve``, on a free port."""

    def __init__(self, *arguments: object):
        self._process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "serve", "--port", "0", *map(str, arguments)],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.lines: list[str] = []
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._listening.wait()
        greeting = next((line for line in self.lines if line.startswith("serving")), "")
        assert greeting, self.lines
        self.url = greeting.split(" on ")[1].split(";")[0]

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("serving"):
                self._listening.set()
        self._listening.set()

    def connection(self) -> HTTPConnection:
        place = urlsplit(self.url)
        return HTTPConnection(place.hostname or "", place.port)

    def open(
        self, method: str, path: str, body: Any = None, token: str | None = None, headers: dict[str, str] | None = None
    ) -> HTTPResponse:
        given = dict(headers or {})
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        if body is not None and not isinstance(body, bytes):
            body, given = json.dumps(body).encode(), {"Content-Type": "application/json", **given}
        connection = self.connection()
        connection.request(method, path, body, given)
        return connection.getresponse()

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        found = self.open(method, path, body, token, named)
        return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())

    def sql(self, text: str, how: str = "command", token: str | None = None, **more: Any) -> Answer:
        return self.ask("POST", f"/api/v1/{how}/shop", {"language": "sql", "command": text, **more}, token)

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def ended(self) -> int:
        code = self._process.wait()
        self._reader.join()
        return code

    def stop(self) -> int:
        if self._process.poll() is None:
            self.terminate()
        return self.ended()

    def kill(self) -> None:
        self._process.kill()
        self.ended()


@dataclass
class Servers:
    """Starts servers, and ends them."""

    started: list[Server] = field(default_factory=list)

    def __call__(self, *arguments: object) -> Server:
        self.started.append(Server(*arguments))
        return self.started[-1]

    def stop(self) -> None:
        for server in self.started:
            server.stop()


def tokens_of(shop: Path) -> dict[str, str]:
    """A token of each role."""
    state = State(str(shop / FILE))
    made = {role.word: state.create(role.word, role)[1] for role in Role}
    state.close()
    return made
