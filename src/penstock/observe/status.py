"""The state of every view in one line each, from the catalog alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.catalog import Catalog, HistoryRecord
from penstock.graph.watermarks import as_time


@dataclass(frozen=True)
class ViewStatus:
    """A view as it stands: how it is maintained, and what its last refresh did."""

    name: str
    policy: str
    refresh: str
    incremental: bool
    reason: str | None
    reads: tuple[str, ...]
    populated: bool
    frontier: dict[str, int]
    """The version of every source table that the view's rows are equal to its query on."""
    last_action: str | None = None
    last_status: str | None = None
    last_reason: str | None = None
    last_refresh: datetime | None = None
    last_seconds: float | None = None
    last_error: str | None = None
    watermark: datetime | None = None
    """How far event time has come in the view; None while that is not known."""
    last_late: int = 0
    """Changed rows that came too late for the last refresh to take them."""


def status(catalog: Catalog) -> list[ViewStatus]:
    world, last = catalog.world(), catalog.last_refreshes()
    found = []
    for key in world.views_graph().order(world.views):
        view = world.views[key]
        record = last.get(key)
        frontier = {
            world.display_name(name): f.version
            for name, f in sorted(world.frontiers.get(key, {}).items())
            if name in world.tables
        }
        found.append(
            ViewStatus(
                view.name, view.policy, view.refresh, view.incremental, view.reason_code,
                tuple(world.display_name(r) for r in view.reads), world.nodes[key].version is not None, frontier,
                *_last(record), as_time(world.watermarks[key].value) if key in world.watermarks else None,
                ((record.details or {}).get("late", 0) if record else 0),
            )
        )  # fmt: skip
    return found


_Last = tuple[str | None, str | None, str | None, datetime | None, float | None, str | None]


def _last(record: HistoryRecord | None) -> _Last:
    if record is None:
        return None, None, None, None, None, None
    return record.action, record.status, record.reason, record.started_at, record.seconds, record.error
