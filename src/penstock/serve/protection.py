"""What every request goes through before a route sees it, and every answer afterwards.

Who asks is found out, bounds are kept, the headers are set that keep a browser from doing anything it need not, and a
line is written of who did what.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections import OrderedDict
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.serve.access import NOBODY, Caller, Door, is_local_name
from penstock.serve.metrics import HttpMetrics
from penstock.serve.options import Options
from penstock.serve.problems import Refused, respond, status_of
from penstock.serve.state import State
from penstock.serve.work import Gate

_log, _audit = logging.getLogger("penstock.serve"), logging.getLogger("penstock.audit")

_SAFE = ("GET", "HEAD", "OPTIONS")
_REQUEST_ID = re.compile(r"[\w.:\-]{1,128}", re.ASCII)
_MOST_BUCKETS = 10_000
_ALWAYS = ("/health", "/ready", "/metrics")
"""Answered while the server drains, too; jobs can be asked for as well."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""Of every answer. The page may load and ask nothing but what this server has."""


class Protection:
    def __init__(self, app: ASGIApp, options: Options, state: State, gate: Gate, metrics: HttpMetrics):
        self._app, self._options, self._gate, self._metrics = app, options, gate, metrics
        self._door = Door(options, state)
        self._rates = Rates(options.limits.rate)
        self.active = 0
        """Requests that are being answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["root_path"] = self._options.root_path  # the path itself may have it or not
        headers, began = Headers(scope=scope), time.perf_counter()
        status = 500
        given = headers.get("x-request-id", "")
        known = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {}).update(caller=None, refused=NOBODY, request_id=known, audit={})

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._finish(MutableHeaders(scope=message), scope, known)
            await send(message)

        self.active += 1
        self._metrics.begun()
        try:
            await self._guarded(scope, headers, given, receive, sending)
        finally:
            self.active -= 1
            seconds = time.perf_counter() - began
            self._metrics.ended(scope["method"], _route_of(scope), status, seconds)
            self._tell(scope, status, seconds)

    async def _guarded(self, scope: Scope, headers: Headers, given: str, receive: Receive, send: Send) -> None:
        started = complete = False
        bounded = _Bounded(receive, self._options.limits.body)

        async def noting(message: Message) -> None:
            nonlocal started, complete
            if bounded.exceeded and not started:  # what whoever read it says is not what is wrong
                return
            started = True
            complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            await self._check(scope, headers, given)
            await self._app(scope, bounded, noting)
            if bounded.exceeded and not started:
                raise too_large(self._options.limits.body)
        except Exception as problem:
            if status_of(problem) >= 500:
                _log.exception("%s %s failed", scope["method"], scope["path"])
            if started and not complete:  # too late for another answer: the connection is cut, which the client sees
                raise
            if not started:
                await respond(send, problem)

    async def _check(self, scope: Scope, headers: Headers, given: str) -> None:
        if given and not _REQUEST_ID.fullmatch(given):
            raise Refused(
                422, "X-Request-Id has characters that it cannot have.", help="Use up to 128 letters, digits, and -_.:"
            )
        self._check_origin(scope, headers)
        if not scope["path"].endswith(_ALWAYS) and "/jobs/" not in scope["path"]:
            self._gate.check()
        scope["state"]["holds"] = lambda: self._holds(headers)
        who = f"@{(scope.get('client') or ('?',))[0]}"
        try:
            caller = scope["state"]["caller"] = await self._door.caller(headers)
            who = caller.name
        except Refused as problem:  # what is told to everybody is told to them too
            scope["state"]["refused"] = problem
        self._rates.take(who)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > self._options.limits.body:
            raise too_large(self._options.limits.body)

    async def _holds(self, headers: Headers) -> bool:
        """Whether who began a stream may go on: a token may have been revoked since, or have expired."""
        try:
            await self._door.caller(headers)
        except Refused:
            return False
        return True

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """Without a token the browser's own user would be believed: then no other site's page may be what asks."""
        host = headers.get("host", "")
        if self._door.is_open and not is_local_name(host):
            raise Refused(
                403, f"the host {host!r} is not this machine, and without tokens only this machine is served.",
                help="Use http://127.0.0.1, or make tokens: penstock token create.",
            )  # fmt: skip
        origin = headers.get("origin")
        if origin is None or scope["method"] in _SAFE or origin in self._options.origins:
            return
        if urlsplit(origin).netloc.lower() != host.lower():
            raise Refused(
                403, f"a page of {origin!r} may not change anything here.",
                help="Start the server with --allow-origin to let it.",
            )  # fmt: skip

    def _finish(self, headers: MutableHeaders, scope: Scope, request_id: str) -> None:
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        headers.setdefault("Cache-Control", "no-store")
        headers["X-Request-Id"] = request_id
        if self._options.certificate:
            headers["Strict-Transport-Security"] = "max-age=31536000"

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        caller: Caller | None = scope["state"].get("caller")
        route = _route_of(scope)
        if caller is None and status == 200:  # the page's files, and whether the server is well
            return
        meant = {name: str(value)[:255] for name, value in scope.get("path_params", {}).items() if name != "path"}
        line = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "user": caller.name if caller else None,
            "role": caller.role.word if caller else None, "from": (scope.get("client") or (None,))[0],
            "method": scope["method"], "route": route, **meant, **scope["state"].get("audit", {}), "status": status,
            "seconds": round(seconds, 4), "request": scope["state"]["request_id"],
        }  # fmt: skip
        _audit.info("%s", json.dumps(line))


def _route_of(scope: Scope) -> str:
    """The route's pattern, not what was asked for: names of things are no labels."""
    return str(getattr(scope.get("route"), "path", "other"))


def too_large(most: int) -> Refused:
    return Refused(413, f"the request has more than {most:,} bytes.", help="Send less at once.")


class _Bounded:
    """The body, as long as it is not too long."""

    def __init__(self, receive: Receive, most: int):
        self._receive, self._most, self._had = receive, most, 0

    @property
    def exceeded(self) -> bool:
        return self._had > self._most

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._had += len(message.get("body", b""))
            if self.exceeded:
                raise too_large(self._most)
        return message


class Rates:
    """So many requests a second of each caller."""

    def __init__(self, rate: float):
        self._rate, self._most = rate, rate * 10
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> None:
        now = time.monotonic()
        left, at = self._left.pop(who, (self._most, now))
        left = min(self._most, left + (now - at) * self._rate)
        self._left[who] = (max(left - 1, 0.0), now)
        while len(self._left) > _MOST_BUCKETS:
            self._left.popitem(last=False)
        if left < 1:
            raise Refused(
                429, f"more than {self._rate:g} requests a second.", help="Send fewer.", headers={"Retry-After": "1"}
            )
