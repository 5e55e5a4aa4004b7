"""What the real pieces take on a catalog and on logs of that size: the project's own code, each piece a few times."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from statistics import median
from typing import Any

from penstock.bench.ten_thousand.filled import source_path
from penstock.bench.ten_thousand.made_up import MadeUp
from penstock.catalog import Catalog, Frontier, HistoryRecord, Publication, World
from penstock.catalog.leases import Leases
from penstock.engine.consistency import groups_of
from penstock.observe.alerting import overdue
from penstock.schedule.due import Due, Why
from penstock.schedule.parts import independent
from penstock.schedule.plans import outlook
from penstock.schedule.watching import Watch
from penstock.vocabulary import Action, Reason, Status, Strategy

_TIMES = 5


class What(str, Enum):
    """The pieces."""

    WORLD = "read the catalog"
    HISTORY = "read the last refreshes"
    OUTLOOK = "tell what is due"
    GROUPS = "find the consistency groups"
    PARTS = "part what is due into epochs, if all is"
    ALERTS = "look for alerts"
    IDLE_LOGS = "look at all logs, nothing new"
    NEW_LOGS = "look at all logs, a commit in each"
    LEASES = "take leases, and give them back"
    PUBLISH_ONE = "publish an epoch of 1 view"
    PUBLISH_TEN = "publish an epoch of 10 views"
    NOTHING = "record that there was nothing new"


@dataclass(frozen=True, kw_only=True)
class Piece:
    what: What
    seconds: float
    """The median of a few."""
    processor: float
    """Of which so many by this process' processor; the rest is waiting for the disk or the server."""


@dataclass(kw_only=True)
class Measured:
    """``held``: bytes of memory of what a scheduler keeps between two looks."""

    pieces: list[Piece]
    held: int

    def processor(self, what: What) -> float:
        return next(piece.processor for piece in self.pieces if piece.what == what)


def measured(catalog: Catalog, made: MadeUp, where: str) -> Measured:
    """``where``: the directory of the tables; logs of the sources are written into it."""
    before, now = _resident(), datetime.now(timezone.utc)
    world = catalog.world()
    last, saw = catalog.last_refreshes(), catalog.last_refreshes(that_saw_sources=True)
    held = _resident() - before
    newest: dict[str, int | None] = dict.fromkeys(made.every, 1)
    later = now + timedelta(days=1)  # when nearly all that has a time is due
    everything = [Due(key, Why.COMMIT, now) for key in world.views]
    paths = {key: source_path(where, key) for key in made.every}
    for path in paths.values():
        _commit(path, 0)
    watch = Watch(lambda: time.time() + 60)  # as if what is there had been there for a minute
    watch.look(paths)
    pieces = [
        _piece(What.WORLD, catalog.world),
        _piece(What.HISTORY, lambda: (catalog.last_refreshes(), catalog.last_refreshes(that_saw_sources=True))),
        _piece(What.OUTLOOK, lambda world: outlook(world, last, saw, newest, {}, later), catalog.world),
        _piece(What.GROUPS, groups_of, catalog.world),
        _piece(What.PARTS, lambda world: independent(world, everything), catalog.world),
        _piece(What.ALERTS, lambda world: overdue(world, saw, newest, later), catalog.world),
        _piece(What.IDLE_LOGS, lambda: watch.look(paths)),
        _piece(What.NEW_LOGS, watch.look, lambda: _committed(paths)),
        *_writing(catalog, world, list(made.views)),
    ]
    return Measured(pieces=pieces, held=held)


def _writing(catalog: Catalog, world: World, views: list[str]) -> list[Piece]:
    def leased() -> None:
        with Leases(catalog, views[:3]):
            pass

    numbers = iter(range(1, 1_000_000))

    def publish(count: int) -> Callable[[], Any]:
        return lambda: catalog.publish(_publication(world, views[:count], next(numbers)))

    return [
        _piece(What.LEASES, leased, times=20),
        _piece(What.PUBLISH_ONE, publish(1), times=20),
        _piece(What.PUBLISH_TEN, publish(10), times=20),
        _piece(What.NOTHING, lambda: catalog.record([_history(views[0], Action.NO_DATA, Reason.NO_CHANGE)]), times=20),
    ]


def _publication(world: World, views: list[str], version: int) -> Publication:
    read = sorted({read for view in views for read in world.nodes[view].inputs})
    return Publication(
        versions=dict.fromkeys(views, version), sources={key: version for key in read if key in world.tables},
        frontiers={
            view: {name: Frontier(version, "0" * 36, True, "0" * 40) for name in world.nodes[view].inputs}
            for view in views
        },
        history=[_history(view, Action.INCREMENTAL, Reason.CHANGED) for view in views], run="made up",
    )  # fmt: skip


def _history(view: str, action: Action, reason: Reason) -> HistoryRecord:
    did = action == Action.INCREMENTAL
    return HistoryRecord(
        epoch=1, view=view, status=Status.SUCCEEDED, action=action, strategy=Strategy.PATCH if did else None,
        reason=reason, rows_inserted=5 * did, rows_deleted=5 * did, seconds=0.016,
        started_at=datetime.now(timezone.utc), details={"jobs": 0, "phases": {"computing": 0.01}, "due": Why.LAG.value},
    )  # fmt: skip


def _committed(paths: dict[str, str]) -> dict[str, str]:
    """The same paths, with a commit more in each log."""
    for path in paths.values():
        _commit(path, None)
    return paths


def _commit(path: str, version: int | None) -> None:
    log = Path(path) / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    number = len(list(log.iterdir())) if version is None else version
    (log / f"{number:020d}.json").write_text(json.dumps({"commitInfo": {}}))


def _piece(what: What, do: Callable[..., Any], given: Callable[[], Any] | None = None, times: int = _TIMES) -> Piece:
    """``given`` makes what it is done with, which is not measured: a catalog of which nothing is worked out yet."""
    seconds, processor = [], []
    for _ in range(times):
        argument = () if given is None else (given(),)
        wall, own = time.perf_counter(), time.process_time()
        do(*argument)
        seconds.append(time.perf_counter() - wall)
        processor.append(time.process_time() - own)
    return Piece(what=what, seconds=median(seconds), processor=median(processor))


def _resident() -> int:
    """Bytes of memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
