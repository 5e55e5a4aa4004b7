"""Streams of server-sent events: all that happens in a warehouse, and the changes of one view, epoch by epoch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from penstock.errors import PenstockError
from penstock.serve.context import PROBLEMS, Accept, Context, Meant, Named, Served, ViewName
from penstock.serve.hosted import Hosted, Listener, Told
from penstock.serve.problems import Refused, document, dumped
from penstock.serve.view_routes import changes, changes_between, view_of
from penstock.sql.names import key_of

routes = APIRouter(prefix="/api/v1", tags=["Events"])

_HEARTBEAT = 15.0
"""Seconds of silence until a comment is sent, which tells both sides that the other one is there."""
_HELLO = b"retry: 2000\n\n"
"""Nothing that happens after it is missed; and who is cut off is to come back after two seconds."""
_MOST_CHANGED = 10_000
"""Rows of a change that are sent; of a larger one, only that the view is to be read again."""

_EVENT = (
    "id: 13-a1b2c3-7\nevent: epoch\n"
    'data: {"epoch":13,"published_at":"2026-11-18T20:00:00+00:00","restored":null,"views":[{"view":"totals",'
    '"action":"INCREMENTAL","reason":"CHANGED","strategy":"OVERWRITE","rows_inserted":2,"rows_deleted":2,'
    '"seconds":0.21}]}\n\n'
)
_STREAM: dict[int | str, dict[str, Any]] = {
    **PROBLEMS, 200: {"description": "A stream.", "content": {"text/event-stream": {"example": _EVENT}}}
}  # fmt: skip
_CHANGE = {"view": "totals", "since": 12, "epoch": 13, "result": [{"region": "eu", "total": "45.00", "__weight": 1}]}

LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID", max_length=200, description="The id of the last event that is known.",
        examples=["13-a1b2c3-7"],
    ),
]  # fmt: skip


@routes.get(
    "/events/{database}", responses=_STREAM, response_class=StreamingResponse,
    summary="What happens in a warehouse, as it happens",
)  # fmt: skip
async def events(request: Request, hosted: Named, served: Served, last_event_id: LastEventId = None) -> Response:
    """``refresh`` (one has begun), ``node`` (a piece of it is through), ``epoch`` (published, with counts),
    ``failure``, ``alert`` (raised or cleared). With Last-Event-ID, what came since then is sent first; of what is not
    kept any more, the epochs, behind an event ``gap``."""
    return _stream(request, served, _events(hosted, Listener(), last_event_id))


@routes.get(
    "/views/{view}/changes", summary="The rows of a view that came and went",
    responses={**_STREAM, 200: {"description": "The change; with follow, a stream of changes.", "content": {
        "application/json": {"example": _CHANGE},
        "text/event-stream": {"example": "id: 13\nevent: change\ndata: {..}\n\n"},
    }}},
)  # fmt: skip
async def view_changes(
    request: Request,
    view: ViewName,
    hosted: Meant,
    served: Served,
    since: Annotated[int | None, Query(ge=0, lt=2**31, description="The epoch that is known.", examples=[12])] = None,
    until: Annotated[int | None, Query(ge=0, lt=2**31, description="An epoch; else the newest.", examples=[13])] = None,
    follow: Annotated[bool, Query(description="Go on with every epoch, as a stream of events.")] = False,
    limit: Annotated[int, Query(ge=1, le=10_000_000, description="Rows at most.")] = 10_000,
    accept: Accept = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Each row has a ``__weight``: how many copies of it came, or went (below zero). In a stream, the id of an event is
    its epoch, so that Last-Event-ID goes on behind it; ``reset`` says that the view is to be read again from there."""
    if not follow:
        if since is None:
            raise Refused(
                400, "since is missing: the epoch from which on to tell.", help="Add ?since=, or follow=true."
            )
        return await changes(hosted, served, view, since, until, limit, accept)
    if until is not None:
        raise Refused(400, "until is the end of a change, and follow has none.", help="Leave one of them out.")
    known = last_event_id if last_event_id is not None else since
    if known is not None and not (str(known).isascii() and str(known).isdigit() and int(known) < 2**31):
        raise Refused(400, "Last-Event-ID is not the number of an epoch.", help="Give the id of the last event.")
    name = (await anyio.to_thread.run_sync(view_of, hosted, view)).name
    start = (await anyio.to_thread.run_sync(hosted.db.snapshot)).epoch if known is None else int(known)
    return _stream(request, served, _changes(hosted, served, name, start, Listener()))


def _stream(request: Request, served: Context, events: AsyncGenerator[bytes, None]) -> StreamingResponse:
    served.gate.check()
    if served.streams >= served.options.limits.streams:
        raise Refused(429, "too many streams are open.", help="Close some.", headers={"Retry-After": "10"})
    headers = {"X-Accel-Buffering": "no"}  # a proxy is not to wait for more
    return StreamingResponse(_counted(request, served, events), headers=headers, media_type="text/event-stream")


async def _counted(request: Request, served: Context, events: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """For as long as who asked is let in: a heartbeat comes often enough to see it."""
    served.streams += 1
    try:
        async with aclosing(events):
            async for event in events:
                if not await request.state.holds():
                    return
                yield event
    finally:
        served.streams -= 1


async def _events(hosted: Hosted, listener: Listener, after: str | None) -> AsyncGenerator[bytes, None]:
    try:
        missed = await anyio.to_thread.run_sync(hosted.listen, listener, after)
        yield _HELLO
        for told in missed:
            yield told.sent()
        async for found in _heard(listener):
            yield b": still here\n\n" if found is None else found.sent()
    finally:
        hosted.leave(listener)


async def _heard(listener: Listener) -> AsyncIterator[Told | None]:
    """Events until the end; None where there was none for a while."""
    while not listener.over:
        try:
            found = await listener.next(_HEARTBEAT)
        except (TimeoutError, asyncio.TimeoutError):
            yield None
            continue
        if found is None:
            return
        yield found


async def _changes(
    hosted: Hosted, served: Context, view: str, since: int, listener: Listener
) -> AsyncGenerator[bytes, None]:
    try:
        await anyio.to_thread.run_sync(hosted.listen, listener, None)
        yield _HELLO
        newest = (await anyio.to_thread.run_sync(hosted.db.snapshot)).epoch
        if newest > since:
            yield await _change(hosted, served, view, since, newest)
            since = newest
        async for told in _heard(listener):
            if told is None:
                yield b": still here\n\n"
            elif told.kind == "epoch" and told.epoch > since and _concerns(told, view):
                yield await _change(hosted, served, view, since, told.epoch)
                since = told.epoch
    except PenstockError as problem:  # the view was dropped, say
        yield b"event: error\ndata: %s\n\n" % dumped(document(problem))
    finally:
        hosted.leave(listener)


def _concerns(told: Told, view: str) -> bool:
    """Whether an epoch may have changed a view. One that went back to another says nothing of views."""
    return told.data.get("restored") is not None or any(
        key_of(done["view"]) == key_of(view) for done in told.data["views"]
    )


async def _change(hosted: Hosted, served: Context, view: str, since: int, until: int) -> bytes:
    def read() -> tuple[str, dict[str, Any]]:
        told: dict[str, Any] = {"view": view, "since": since, "epoch": until}
        try:
            rows = changes_between(hosted, view, since, until, _MOST_CHANGED)
            found = [row for piece in rows.dicts(_MOST_CHANGED) for row in piece]
        except PenstockError as problem:  # what was then is not there any more, or had other columns
            return "reset", {**told, "why": str(problem)}
        if rows.more:
            return "reset", {**told, "why": f"more than {_MOST_CHANGED:,} rows changed"}
        return "change", {**told, "result": found}

    kind, data = await served.gate.run(read)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (until, kind.encode(), dumped(data))
