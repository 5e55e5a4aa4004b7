"""X-Request-Id, without a server: which requests are done once."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from penstock.serve.access import LOCAL
from penstock.serve.once import Once
from penstock.serve.state import State


def times_done(path: str, times: int) -> int:
    """How often a request is done that is sent so many times."""
    done = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal done
        done += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        pass

    async def ask() -> None:
        state = State(None)
        once = Once(app, state, "server", 1_000)
        for _ in range(times):
            scope = {
                "type": "http", "method": "POST", "path": path, "query_string": b"", "state": {"caller": LOCAL},
                "headers": [(b"x-request-id", b"one")],
            }  # fmt: skip
            await once(scope, receive, send)
        state.close()

    asyncio.run(ask())
    return done


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/command/shop",
        "/api/v1/views/query/refresh",
        "/api/v1/checkpoints/query/restore",
        "/at/query/api/v1/refresh",
    ],
)
def test_what_changes_something_is_done_once_whatever_it_is_called(path: str) -> None:
    assert times_done(path, 3) == 1


@pytest.mark.parametrize("path", ["/api/v1/query/shop", "/penstock/api/v1/query/shop"])
def test_what_only_reads_is_read_again(path: str) -> None:
    assert times_done(path, 3) == 3
