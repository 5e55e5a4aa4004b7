"""X-Request-Id: a request that changes something, sent again with the id it had, is not done again.

The first one is noted before it runs and its answer afterwards, in the server's own file. So the promise also holds
over a restart: a request whose answer is known is answered with it, and one that a server died over is not done again,
but told that nobody knows what became of it.
"""

from __future__ import annotations

import asyncio
import hashlib

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.serve.problems import Refused, respond
from penstock.serve.state import Answer, State

_UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
_ONLY_READS = "/api/v1/query/"
"""With what is before it: a view or a checkpoint may be called ``query``."""
_NOTHING_DONE = (401, 403, 413, 415, 422)
"""Such a request may be sent again with the same id; so may one that is told to come again later."""


class Once:
    def __init__(self, app: ASGIApp, state: State, server: str, most: int):
        """``server`` names this process; ``most``: bytes of an answer that is kept."""
        self._app, self._state, self._server, self._most = app, state, server, most
        self._running: dict[bytes, asyncio.Event] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = Headers(scope=scope).get("x-request-id") if scope["type"] == "http" else None
        asks = scope["type"] == "http" and scope["method"] in _UNSAFE and scope["state"]["caller"] is not None
        if not given or not asks or _ONLY_READS in scope["path"]:
            await self._app(scope, receive, send)
            return
        body = await _whole(receive)
        place = f"{scope['state']['caller'].name}\n{given}"
        key = hashlib.sha256(place.encode()).digest()
        sent = f"{scope['method']} {scope['path']}?{scope.get('query_string', b'').decode('latin-1')}\n".encode()
        while True:
            known = self._state.begin(key, hashlib.sha256(sent + body).digest(), self._server)
            if known is None:
                await self._do(key, scope, body, receive, send)
                return
            if known[0] != hashlib.sha256(sent + body).digest():
                raise Refused(422, "another request had this X-Request-Id.", help="Give each request an id of its own.")
            if known[2] is not None:
                await _again(known[2], send)
                return
            if key not in self._running:
                raise Refused(
                    409, "this request was begun by a server that ended before it answered: what became of it is not "
                    "known.", help="Look whether it was done. If not, send it with another X-Request-Id.",
                )  # fmt: skip
            await self._running[key].wait()

    async def _do(self, key: bytes, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """If this ends without an answer, the request stays begun: nobody knows what became of it."""
        over = self._running[key] = asyncio.Event()
        kept = _Kept(send, self._most)
        try:
            await self._app(scope, _replayed(body, receive), kept)
        except Exception as problem:
            if kept.status is None:
                await respond(kept, problem)
            else:
                raise
        finally:
            if kept.nothing_done:
                self._state.forget(key)
            elif kept.status is not None:
                self._state.done(key, Answer(kept.status, kept.type, kept.body))
            del self._running[key]
            over.set()


class _Kept:
    """Hands an answer on, and keeps it if it is not too long."""

    def __init__(self, send: Send, most: int):
        self._send, self._most = send, most
        self.status: int | None = None
        self.type = ""
        self.nothing_done = False
        self._pieces: list[bytes] | None = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = dict(message["headers"])
            self.type = headers.get(b"content-type", b"").decode("latin-1")
            self.nothing_done = self.status in _NOTHING_DONE or b"retry-after" in headers
        elif message["type"] == "http.response.body" and self._pieces is not None:
            self._pieces.append(message.get("body", b""))
            if sum(map(len, self._pieces)) > self._most:
                self._pieces = None
        await self._send(message)

    @property
    def body(self) -> bytes | None:
        return None if self._pieces is None else b"".join(self._pieces)


async def _whole(receive: Receive) -> bytes:
    pieces = list[bytes]()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(pieces)
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def _replayed(body: bytes, receive: Receive) -> Receive:
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _again(answer: Answer, send: Send) -> None:
    if answer.body is None:
        raise Refused(
            409, f"this request was done (status {answer.status}), and its answer was too long to keep.",
            help="Look for what it changed.",
        )  # fmt: skip
    headers = [(b"content-type", answer.type.encode("latin-1")), (b"idempotent-replayed", b"true"),
               (b"content-length", str(len(answer.body)).encode())]  # fmt: skip
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
