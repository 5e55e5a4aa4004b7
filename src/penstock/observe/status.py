"""The state of every view in one line each, from the catalog alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.catalog import Catalog


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
                *((record.action, record.status, record.reason, record.started_at, record.seconds, record.error)
                  if record else ()),
            )
        )  # fmt: skip
    return found
