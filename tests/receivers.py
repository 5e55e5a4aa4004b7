"""A real HTTP server that keeps what is posted to it."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from penstock.observe.webhook import DELIVERY


class Receiver:
    """A server that refuses the first ``refusals`` requests and keeps the others."""

    def __init__(self) -> None:
        self.refusals = 0
        self.slow = 0.0
        self.tried: list[str | None] = []
        self.heard: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.tried.append(self.headers.get(DELIVERY))
                time.sleep(receiver.slow)
                refused = len(receiver.tried) <= receiver.refusals
                if not refused:
                    receiver.heard.append((dict(self.headers), body))
                self.send_response(503 if refused else 204)
                self.end_headers()

            def log_message(self, *words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/alerts"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.heard]

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *problem: object) -> None:
        self.server.shutdown()
        self.server.server_close()
