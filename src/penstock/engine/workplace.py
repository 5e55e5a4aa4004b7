"""What all work on a warehouse shares: its catalog and session, waiting for leases, directories, and telling of it.

Whatever changes definitions or files goes the same way: look at the catalog, take leases on every node concerned, look
again, and begin anew if the definitions are not those of the first look. Publishing checks the leases once more.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from pyspark.sql import SparkSession

from penstock.catalog import Catalog, Definition, HistoryRecord, Publication, World
from penstock.catalog.checkpoints import Checkpoints
from penstock.catalog.leases import Leases, Patience
from penstock.catalog.transactions import Intents
from penstock.engine.callbacks import Callbacks
from penstock.engine.claims import Claims
from penstock.engine.epoch import Epoch
from penstock.engine.events import Listeners, Telling, Worked
from penstock.engine.mending import run_mending
from penstock.engine.outcomes import alerts_of
from penstock.engine.report import ViewReport, combine
from penstock.engine.session import Spark
from penstock.engine.settings import file_cache, lock_timeout, read_rate
from penstock.engine.sources import Relation, pinned
from penstock.engine.steps import Request, Result
from penstock.engine.vacuum import TABLES, vacuum_if_due
from penstock.errors import BusyError, PenstockError
from penstock.frames.pace import PACE
from penstock.sql.names import key_of
from penstock.storage.file_cache import FILES
from penstock.storage.vacuum import leave

_ATTEMPTS = 20
"""How often work is begun again because definitions changed under it."""

_T = TypeVar("_T")
_log = logging.getLogger("penstock")


class Outdated(Exception):
    """Definitions changed between looking at the catalog and having the leases, or these nodes need leases too."""

    def __init__(self, nodes: Iterable[str] = ()):
        super().__init__()
        self.nodes = set(nodes)


def attempts(attempt: Callable[[set[str]], _T], what: str) -> _T:
    """Try until the definitions that the work is based on hold still while the leases are taken.

    An attempt is told which nodes were found to need leases too.
    """
    also: set[str] = set()
    for _ in range(_ATTEMPTS):
        try:
            return attempt(also)
        except Outdated as outdated:
            also |= outdated.nodes
    raise BusyError(f"{what} are being changed by other processes over and over. Try again.")


def require(leases: Leases, held: Collection[str], nodes: Iterable[str]) -> None:
    """What is to be written must be leased; nodes that came up since are leased from the beginning next time."""
    missing = set(nodes) - leases.fence.nodes - set(held)
    if missing:
        raise Outdated(missing)


class Workplace:
    def __init__(self, path: str, spark: Spark, catalog: Catalog, progress: Callable[[str], None]):
        self.catalog = catalog
        self.path = path
        self.spark = spark
        self._progress = progress
        self.refreshing: Listeners = Callbacks()
        self.worked: Callbacks[Worked] = Callbacks()
        """Who is told of refreshes while they happen."""

    def session(self) -> SparkSession:
        return self.spark.session()

    def tell(self, text: str) -> None:
        """Say what is being done. Whoever listens cannot stop it by failing."""
        try:
            self._progress(text)
        except Exception as problem:
            _log.warning("a progress callback failed at %r: %s: %s", text, type(problem).__name__, problem)

    def patience(self, world: World, doing: str) -> Patience:
        def waiting(who: str) -> None:
            self.tell(f"{doing}: waiting for {who}")

        return Patience(lock_timeout(world.settings), waiting, world.display_name)

    @contextmanager
    def claimed(self, world: World, definitions: Iterable[Definition]) -> Iterator[Claims]:
        """The definitions with directories of their own for new nodes, which go again if they do not come to be."""
        claims = Claims(world, definitions)
        try:
            yield claims
        finally:
            claims.settle(self.catalog)

    def locating(self, world: World) -> Callable[[str, str], str]:
        """Where tables of nodes go: where they are. A view stays in one place, whatever becomes of its query."""
        return lambda name, folder: world.nodes[name].path if name in world.nodes else self.locate(name, folder)

    def locate(self, name: str, folder: str) -> str:
        """Where a new table would go. The directory is its own only when it has been claimed."""
        return os.path.join(self.path, folder, re.sub(r"[^\w.-]", "_", name.removeprefix("__node_")))

    def pinned(
        self, world: World, nodes: Collection[str], also: Collection[str] = ()
    ) -> tuple[World, dict[str, Relation]]:
        """The catalog and the tables that these nodes read as they were at one moment; definitions are as before."""
        for _ in range(_ATTEMPTS):
            sources = pinned(world, nodes, also=also)
            if Intents(self.catalog).unchanged(world, sources):
                return world, sources
            now = self.catalog.world()
            if not world.same_definitions(now, nodes):
                raise Outdated
            world = now
        raise BusyError("the tables are being written over and over. Try again.")

    def run(
        self, world: World, sources: Mapping[str, Relation], leases: Leases, request: Request, telling: Telling
    ) -> Result:
        FILES.allow(file_cache(world.settings))
        PACE.assume(read_rate(world.settings))
        PACE.spark_has(self.spark.cores)

        def run(wanted: Request) -> Result:
            return Epoch(self.spark, self.catalog, world, sources, leases.check).run(
                wanted, self.tell, lambda node: telling.working(node, world), lambda report: self._tell(report, world)
            )

        return run_mending(world, request, run)

    def _tell(self, report: ViewReport, world: World) -> None:
        if self.worked:
            self.worked(Worked(views=tuple(view.name for view in world.owners(report.name)), report=report))

    def leave_unused(self, before: World) -> None:
        """Leave the tables of nodes that the catalog no longer knows to be deleted when nobody reads them any more."""
        self.leave_paths(node.path for node in before.nodes.values())

    def leave_paths(self, paths: Iterable[str]) -> None:
        """The same for these tables, unless the catalog knows them, or a checkpoint does."""
        kept = {node.path for node in self.catalog.world().nodes.values()}
        for checkpoint in Checkpoints(self.catalog).all():
            kept |= {path for path, _ in checkpoint.nodes.values()}
        for path in paths:
            if path not in kept:
                leave(path)

    def vacuum_if_due(self, world: World) -> None:
        """What cannot be deleted today is tomorrow: what was done stands."""
        try:
            vacuum_if_due(self.catalog, world.settings, self.folders)
        except (PenstockError, OSError) as problem:
            self.tell(f"files of old epochs were not deleted: {problem}")

    @property
    def folders(self) -> list[str]:
        """Where the tables of nodes lie, and those of users that are kept here."""
        return [os.path.join(self.path, folder) for folder in ("views", "nodes", TABLES)]


def with_upstream(world: World, keys: Iterable[str]) -> list[str]:
    """The nodes of these views and all that they read, inputs before readers."""
    graph = world.nodes_graph()
    wanted = {node for key in keys for node in world.views[key].nodes}
    return graph.order((wanted | graph.ancestors(wanted)) - set(world.tables))


def only(publication: Publication, known: Collection[str]) -> Publication:
    """What concerns nodes that the catalog has, or will have with this publication."""
    return replace(
        publication,
        versions={n: v for n, v in publication.versions.items() if n in known},
        frontiers={n: f for n, f in publication.frontiers.items() if n in known},
        watermarks={n: m for n, m in publication.watermarks.items() if n in known or m.seen is not None},
    )


def view_reports(world: World, result: Result) -> list[ViewReport]:
    reports = []
    for key, view in world.views.items():
        if key in result.reports:
            hidden = [result.reports[n] for n in view.nodes if n != key and n in result.reports]
            reports.append(combine(view.name, result.reports[key], hidden))
    return reports


def recorded(
    report: ViewReport, world: World, started: datetime, due: Mapping[str, str] | None = None
) -> HistoryRecord:
    """What the history keeps of a refresh; ``due``: what made each view due, of those that refresh by themselves."""
    key, alerts = key_of(report.name), alerts_of(report)
    noted = {"due": (due or {}).get(key), "alerts": alerts, "work": report.timeline(started)}
    return HistoryRecord(
        epoch=world.epoch, view=key, status=report.status, action=report.action,
        strategy=report.strategy, reason=report.reason, rows_inserted=report.rows_inserted,
        rows_deleted=report.rows_deleted, seconds=report.seconds, started_at=started, error=report.error,
        details={**report.details(), **{name: told for name, told in noted.items() if told}},
    )  # fmt: skip
