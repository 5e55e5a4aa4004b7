"""What was published, epoch by epoch, and how far event time has come."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from penstock.serve.context import Meant, answer, listed, shows
from penstock.vocabulary import Action, Status

routes = APIRouter(prefix="/api/v1", tags=["Warehouse"])

_EPOCH = {
    "epoch": 12, "published_at": "2026-11-18T20:00:00+00:00", "begun_at": "2026-11-18T19:59:59+00:00", "restored": None,
    "views": ["totals"], "sources": {"orders": 3}, "due": {"totals": "ON COMMIT"}, "seconds": 0.21, "rows_inserted": 2,
    "rows_deleted": 2,
}  # fmt: skip
_DID = {
    "status": Status.SUCCEEDED, "action": Action.INCREMENTAL, "reason": "CHANGED", "strategy": "OVERWRITE",
    "rows_inserted": 2, "rows_deleted": 2, "seconds": 0.21, "jobs": 0, "phases": {"reading": 0.1, "writing": 0.11},
}  # fmt: skip
_TIMELINE: dict[str, Any] = {
    **{name: value for name, value in _EPOCH.items() if not name.startswith("rows_")},
    "views": [{"view": "totals", "due": "ON COMMIT", "error": None, "suggestion": None, **_DID}],
    "nodes": [{"name": "totals", "views": ["totals"], "hidden": False, "reads": [], "begun": 0.01, "ended": 0.22,
               "waited": 0.0, "critical": True, **_DID}],
}  # fmt: skip
_WATERMARK = {
    "name": "trades", "kind": "table", "definition": "at - INTERVAL 5 SECONDS",
    "watermark": "2026-11-18T20:00:00+00:00",
}  # fmt: skip


@routes.get("/epochs", responses=shows({"epoch": 12, "result": [_EPOCH]}), summary="What was published")
def epochs(
    hosted: Meant,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Epochs at most, newest first.")] = 100,
    before: Annotated[
        int | None, Query(ge=0, lt=2**31, description="Only those of a smaller number.", examples=[12])
    ] = None,
) -> Response:
    found = [asdict(epoch) for epoch in hosted.db.epochs(limit, before)]
    return answer({"epoch": hosted.newest, "result": [{"epoch": one.pop("id"), **one} for one in found]})


@routes.get("/epochs/{epoch}", responses=shows(_TIMELINE), summary="One epoch in full")
def epoch(
    epoch: Annotated[int, Path(ge=0, lt=2**31, description="Its number.", examples=[12])], hosted: Meant
) -> Response:
    """Each node with when it was worked on, in seconds since the epoch began, and whether the end hung on it
    (``critical``). What an older Penstock recorded has no times of nodes."""
    return answer(asdict(hosted.db.timeline(epoch)))


@routes.get("/watermarks", responses=shows({"result": [_WATERMARK]}), summary="How far event time has come")
def watermarks(hosted: Meant) -> Response:
    """Of tables that have a watermark, and of what is made of them."""
    return answer({"result": listed(hosted.db, "SHOW WATERMARKS")})
