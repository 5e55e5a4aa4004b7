"""An object store of the tests' own: an S3 server from a wheel (moto), on loopback, with an empty bucket in it.

The server notes every request. It does one conditional put at a time: moto looks whether there is an object, and later
makes it, so that of two requests at once both may succeed; a real store decides in one step.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from urllib.request import Request, urlopen

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "s3://bucket"


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """Nothing."""


@dataclass
class Store:
    """A store that runs. ``deaf``: it takes conditional puts for any others, as some stores do."""

    url: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path, in their order."""
    deaf: bool = False
    delay: Callable[[], object] = bool
    """What is done before each answer."""

    @property
    def options(self) -> dict[str, str]:
        """As ``storage_options``."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "the-access-key",
            "AWS_SECRET_ACCESS_KEY": "the-secret-key",
            "AWS_REGION": "us-east-1",
        }

    @contextmanager
    def noted(self) -> Iterator[list[tuple[str, str]]]:
        """The requests of a block."""
        begin, found = len(self.requests), list[tuple[str, str]]()
        yield found
        found += self.requests[begin:]


@contextmanager
def running_store() -> Iterator[Store]:
    store, app, one_at_a_time = Store(), DomainDispatcherApplication(create_backend_app), threading.Lock()

    def answer(environ: dict[str, Any], start: Any) -> Any:
        store.requests.append((environ["REQUEST_METHOD"], unquote(environ["PATH_INFO"])))
        store.delay()
        if store.deaf:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        if environ.get("HTTP_IF_NONE_MATCH") == "*":
            with one_at_a_time:
                return app(environ, start)
        return app(environ, start)

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_port}"
    try:
        with urlopen(Request(f"{store.url}/moto-api/reset", method="POST")):
            pass
        with urlopen(Request(f"{store.url}/bucket", method="PUT")):
            pass
        store.requests.clear()
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
