"""An object store of one's own: an S3 server from a wheel (moto), on loopback, with an empty bucket in it.

The server notes every request. It does one conditional put at a time: moto looks whether there is an object, and later
makes it, so that of two requests at once both may succeed; a real store decides in one step. As a program, which
``far_store`` runs, it is as far away as it is told, and its work is not that of the process that asks it.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote
from urllib.request import Request, urlopen

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from penstock.errors import WarehouseError

BUCKET = "s3://bucket"


def options_for(url: str) -> dict[str, str]:
    """As ``storage_options``."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "the-access-key",
        "AWS_SECRET_ACCESS_KEY": "the-secret-key",
        "AWS_REGION": "us-east-1",
    }


_REFUSAL = (
    '<?xml version="1.0" encoding="UTF-8"?><Error><Code>InvalidAccessKeyId</Code><Message>The AWS Access Key Id you '
    "provided does not exist in our records.</Message><AWSAccessKeyId>{}</AWSAccessKeyId></Error>"
)
"""S3 repeats what it was given."""


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """Nothing."""


@dataclass(kw_only=True)
class Store:
    """A store that runs. ``deaf``: it takes conditional puts for any others, as some stores do."""

    url: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path, in their order."""
    conditional: list[str] = field(default_factory=list)
    """The paths of what was to be put only where nothing is."""
    deaf: bool = False
    refusing: str = ""
    """With which status it answers all that it is asked, in as many words as S3 uses then."""
    delay: Callable[[], object] = bool
    """What is done before each answer."""

    @property
    def options(self) -> dict[str, str]:
        return options_for(self.url)

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
        if store.refusing:
            start(store.refusing, [("Content-Type", "application/xml")])
            return [_REFUSAL.format(environ.get("HTTP_AUTHORIZATION", "")).encode()]
        if store.deaf:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        if environ.get("HTTP_IF_NONE_MATCH") == "*":
            store.conditional.append(unquote(environ["PATH_INFO"]))
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


class FarStore:
    """A store that runs in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]):
        self._process = process
        self.url = self._said()

    def _said(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise WarehouseError("the S3 server of the benchmark did not start. pip install 'penstock-spark[bench]'.")
        return line

    @property
    def options(self) -> dict[str, str]:
        return options_for(self.url)

    def requests(self) -> int:
        """How many there were so far."""
        assert self._process.stdin is not None
        print("?", file=self._process.stdin, flush=True)
        return int(self._said())


@contextmanager
def far_store(seconds: float) -> Iterator[FarStore]:
    """Each request takes so much longer than it would."""
    command = [sys.executable, "-m", __name__, str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield FarStore(process)
        assert process.stdin is not None
        process.stdin.close()


def _main() -> None:
    """Says its URL, and for each line that it is given how many requests there were; ends with the lines."""
    with running_store() as store:
        store.delay = partial(time.sleep, float(sys.argv[1]))
        print(store.url, flush=True)
        for _ in sys.stdin:
            print(len(store.requests), flush=True)


if __name__ == "__main__":
    _main()
