"""The server as a process: what it listens on, and how it goes down.

The first SIGTERM or Ctrl-C drains: nothing new is taken (503), what was begun is finished, streams are ended. A second
one abandons what is left.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType

import uvicorn

from penstock.errors import WarehouseError
from penstock.serve.app import Application
from penstock.serve.options import Options

_TURN = 0.0005
"""Seconds that a thread works in Python before another one may. A request changes threads a few times, and would wait
ten times as long for each of those that work, by what Python does otherwise."""


def serve(
    options: Options,
    say: Callable[[str], None],
    beside: Callable[[Application], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> None:
    """Until it is told to stop. ``say`` hears where it listens, and that it goes down. ``beside`` is what goes on
    meanwhile."""
    sys.setswitchinterval(_TURN)
    _log_to(options.audit)
    application = Application(options)
    try:
        _check_door(application)
        with _listening(options) as listening:
            if options.schedule:
                for hosted in application.warehouses:
                    hosted.schedule()
            say(_greeting(options, listening))
            with beside(application):
                _Server(application, say).run(sockets=[listening])
    finally:
        for hosted in application.warehouses:
            hosted.stop_scheduling()
        application.close()


def _check_door(application: Application) -> None:
    options = application.options
    if not options.loopback and options.oidc is None and not any(_holds(application)):
        raise WarehouseError(
            f"the server does not listen on {options.host} without a token: everybody there could change everything. "
            "Make one with penstock token create --role admin, sign in with --oidc, or listen on 127.0.0.1."
        )
    if bool(options.certificate) != bool(options.key):
        raise WarehouseError("TLS takes both --tls-certificate and --tls-key.")


def _holds(application: Application) -> list[bool]:
    from datetime import datetime, timezone

    now = datetime.now(timezone.utc)
    return [token.holds(now) for token in application.state.tokens()]


def _listening(options: Options) -> socket.socket:
    try:
        listening = socket.create_server((options.host, options.port), backlog=512, family=_family(options.host))
    except OSError as problem:
        raise WarehouseError(
            f"{options.host}, port {options.port}, cannot be listened on: {problem.strerror}. Choose another --port."
        ) from None
    # Connections have it from here. Without it, a small answer waits 40 ms until the client has confirmed its head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _greeting(options: Options, listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    names = ", ".join(place.name for place in options.places)
    scheme = "https" if options.certificate else "http"
    also = " and keeping their views fresh" if options.schedule else ""
    return f"serving {names}{also} on {scheme}://{shown}:{port}{options.root_path}; stop with Ctrl-C"


def _log_to(audit: str | None) -> None:
    """One line for each request, of who did what; what went wrong on standard error."""
    try:
        lines: logging.Handler = logging.StreamHandler(sys.stderr) if audit is None else logging.FileHandler(audit)
    except OSError as problem:
        raise WarehouseError(f"the file {audit!r} cannot be written: {problem.strerror}.") from None
    lines.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("penstock.audit")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.handlers[:] = [lines]
    told = logging.StreamHandler(sys.stderr)
    told.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.getLogger("penstock.serve").handlers[:] = [told]


class _Server(uvicorn.Server):
    def __init__(self, application: Application, say: Callable[[str], None]):
        options = application.options
        super().__init__(
            uvicorn.Config(
                application.asgi, lifespan="off", log_config=None, access_log=False, server_header=False,
                proxy_headers=bool(options.proxies), forwarded_allow_ips=options.proxies or None,
                ssl_certfile=options.certificate, ssl_keyfile=options.key, timeout_graceful_shutdown=5,
            )
        )  # fmt: skip
        self._application, self._say = application, say
        self._draining = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._draining:
            self.should_exit = self.force_exit = True
            return
        self._draining = True
        threading.Thread(target=self._drain, name="penstock-drain", daemon=True).start()

    def _drain(self) -> None:
        """Wait for what was begun, then let the server end."""
        application = self._application
        application.gate.draining = True
        count = application.gate.running + application.gate.waiting
        self._say(f"finishing {count} {'statement' if count == 1 else 'statements'}; once more to abandon them")
        for hosted in application.warehouses:
            hosted.hang_up()
            hosted.stop_scheduling()
        until = time.monotonic() + application.options.drain
        while time.monotonic() < until and not self.force_exit:
            busy = application.protection.active + application.context.jobs.running
            if not busy:
                break
            time.sleep(0.02)
        self.should_exit = True
