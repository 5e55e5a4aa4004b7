"""One epoch in full: what was done to each node and when, what waited for what, and why each view was due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from penstock.catalog import Catalog, HistoryRecord, World
from penstock.catalog.records import EpochRecord
from penstock.errors import NotFoundError
from penstock.observe.epochs import own_refreshes
from penstock.observe.suggestions import suggestion
from penstock.vocabulary import Action


@dataclass(kw_only=True)
class NodeWork:
    """What was done to a node. ``begun`` and ``ended`` are seconds since the epoch began; an older Penstock has not
    kept them."""

    name: str
    views: list[str]
    """That it belongs to."""
    hidden: bool
    """Whether it is a step on the way to its views, and none of them."""
    reads: tuple[str, ...]
    """The nodes among those of the epoch that it had to wait for."""
    begun: float | None
    ended: float | None
    waited: float
    """How much of the time it waited for its turn, since others were worked on."""
    status: str
    action: str
    reason: str
    strategy: str | None
    rows_inserted: int
    rows_deleted: int
    seconds: float
    jobs: int | None
    phases: Mapping[str, float]
    critical: bool = False
    """Whether the epoch would have been over earlier, had it taken less time."""


@dataclass(frozen=True, kw_only=True)
class Timeline:
    epoch: int
    published_at: datetime
    begun_at: datetime | None
    seconds: float | None
    """From when it began until it was published."""
    restored: int | None
    run: str | None
    sources: Mapping[str, int]
    due: Mapping[str, str]
    views: list[Mapping[str, Any]]
    nodes: list[NodeWork] = field(default_factory=list)
    """In the order in which they began."""


def timeline(catalog: Catalog, number: int) -> Timeline:
    found = catalog.epochs(1, before=number + 1) if 0 <= number < 2**31 - 1 else []
    if not found or found[0].id != number:
        raise NotFoundError(f"there is no published epoch {number}. The newest is {catalog.world().epoch}.")
    epoch, world = found[0], catalog.world()
    places = {key: place for place, key in enumerate(world.views_graph().order())}
    records = own_refreshes(epoch, catalog.refreshes_of(number, number))
    return _told(world, epoch, sorted(records, key=lambda r: places.get(r.view, len(places))))


def _told(world: World, epoch: EpochRecord, records: list[HistoryRecord]) -> Timeline:
    begun = min((r.started_at for r in records), default=None)
    due = {world.display_name(r.view): r.details["due"] for r in records if r.details and "due" in r.details}
    return Timeline(
        epoch=epoch.id, published_at=epoch.published_at, begun_at=begun, restored=epoch.restored, run=epoch.run,
        seconds=None if begun is None else (epoch.published_at - begun).total_seconds(), due=due,
        sources={world.display_name(key): version for key, version in sorted(epoch.sources.items())},
        views=[_view(world, r) for r in records], nodes=_nodes(world, records, begun),
    )  # fmt: skip


def _view(world: World, record: HistoryRecord) -> Mapping[str, Any]:
    details = record.details or {}
    kept = ("jobs", "phases", "bytes_read", "bytes_written", "due", "remark", "estimate", "by_spark", "late")
    return {
        "view": world.display_name(record.view), "status": record.status, "action": record.action,
        "reason": record.reason, "strategy": record.strategy, "rows_inserted": record.rows_inserted,
        "rows_deleted": record.rows_deleted, "seconds": record.seconds, "error": record.error,
        "suggestion": suggestion(record.reason), **{name: details.get(name) for name in kept},
    }  # fmt: skip


def _nodes(world: World, records: Iterable[HistoryRecord], begun: datetime | None) -> list[NodeWork]:
    """Each node once, though several views may have told of it."""
    found: dict[str, NodeWork] = {}
    for record in records:
        view, details = world.display_name(record.view), record.details or {}
        offset = 0.0 if begun is None else (record.started_at - begun).total_seconds()
        if "work" not in details and record.action in _MOVED:
            found[record.view] = _untimed(view, record)
        for told in details.get("work", ()):
            name = told["node"]
            if name in found:
                found[name].views.append(view)
            else:
                found[name] = _timed(view, told, offset, hidden=name != record.view)
    graph = world.nodes_graph()
    for name, work in found.items():
        work.reads = tuple(read for read in graph.inputs(name) if read in found) if name in world.nodes else ()
    _mark_critical(found)
    for work in found.values():
        work.name = work.name if work.hidden else world.display_name(work.name)
        work.reads = tuple(world.display_name(read) if not found[read].hidden else read for read in work.reads)
    return sorted(found.values(), key=lambda work: (work.begun is None, work.begun or 0.0, work.ended or 0.0))


_MOVED = (Action.INCREMENTAL, Action.FULL, Action.REINITIALIZE)


def _timed(view: str, told: Mapping[str, Any], offset: float, *, hidden: bool) -> NodeWork:
    begun, ended, waited = told["begun"] + offset, told["ended"] + offset, told.get("waited", 0.0)
    return NodeWork(
        name=told["node"], views=[view], hidden=hidden, reads=(), begun=round(begun, 4), ended=round(ended, 4),
        waited=waited, status=told["status"], action=told["action"], reason=told["reason"],
        strategy=told.get("strategy"), rows_inserted=told["rows_inserted"], rows_deleted=told["rows_deleted"],
        seconds=round(ended - begun - waited, 4), jobs=told["jobs"], phases=told["phases"],
    )  # fmt: skip


def _untimed(view: str, record: HistoryRecord) -> NodeWork:
    details = record.details or {}
    return NodeWork(
        name=record.view, views=[view], hidden=False, reads=(), begun=None, ended=None, waited=0.0,
        status=record.status, action=record.action, reason=record.reason, strategy=record.strategy,
        rows_inserted=record.rows_inserted, rows_deleted=record.rows_deleted, seconds=record.seconds,
        jobs=details.get("jobs"), phases=details.get("phases", {}),
    )  # fmt: skip


def _mark_critical(nodes: Mapping[str, NodeWork]) -> None:
    """From the node that ended last back, each time to that of its inputs which ended last."""

    def ended(name: str) -> float:
        return nodes[name].ended or 0.0

    timed = [name for name, work in nodes.items() if work.ended is not None]
    at = max(timed, key=ended, default=None)
    while at is not None:
        nodes[at].critical = True
        at = max((read for read in nodes[at].reads if nodes[read].ended is not None), key=ended, default=None)
