"""Creating, refreshing and dropping views on a warehouse: the epoch around the catalog and its leases.

Whatever changes definitions or files goes the same way: look at the catalog, take leases on every node concerned, look
again, and begin anew if the definitions are not those of the first look. Publishing checks the leases once more.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TypeVar

from pyspark.sql import SparkSession

from penstock import points
from penstock.catalog import (
    Catalog,
    Definition,
    Fence,
    HistoryRecord,
    NodeRecord,
    Publication,
    ViewRecord,
    World,
)
from penstock.catalog.checkpoints import Checkpoint, Checkpoints
from penstock.catalog.leases import Leases, Patience
from penstock.catalog.records import LATE, late_names
from penstock.engine.claims import Claims
from penstock.engine.consistency import groups_of, hold_back, not_due, together
from penstock.engine.definition import define, statement_of
from penstock.engine.epoch import Epoch, Request, Result
from penstock.engine.mending import run_mending
from penstock.engine.relations import cycle
from penstock.engine.replanning import Replanning
from penstock.engine.report import FAILED, SUCCEEDED, Report, ViewReport, combine
from penstock.engine.session import Spark
from penstock.engine.settings import lock_timeout
from penstock.engine.sources import Relation, pinned
from penstock.engine.vacuum import vacuum_if_due, vacuum_views
from penstock.errors import (
    AlreadyExistsError,
    BusyError,
    DefinitionError,
    DependencyError,
    LeaseLostError,
    NotFoundError,
    NotIncrementalError,
    PenstockError,
    RefreshError,
    SourceError,
)
from penstock.graph import CycleError
from penstock.sql.statements import CreateView, Placement
from penstock.storage.delta_log import Snapshot, is_table
from penstock.storage.vacuum import Freed, leave
from penstock.storage.view_settings import Settings, check_readable, under
from penstock.storage.view_settings import own as own_settings
from penstock.storage.view_table import Shape, commit
from penstock.storage.view_table import restore as restore_table

_ATTEMPTS = 20
"""How often work is begun again because definitions changed under it."""

_T = TypeVar("_T")
_log = logging.getLogger("penstock")


class _Outdated(Exception):
    """Definitions changed between looking at the catalog and having the leases, or these nodes need leases too."""

    def __init__(self, nodes: Iterable[str] = ()):
        super().__init__()
        self.nodes = set(nodes)


class _Held(Exception):
    """Another process is refreshing some of the views, and may be waited for."""


def _attempts(attempt: Callable[[set[str]], _T], what: str) -> _T:
    """Try until the definitions that the work is based on hold still while the leases are taken.

    An attempt is told which nodes were found to need leases too.
    """
    also: set[str] = set()
    for _ in range(_ATTEMPTS):
        try:
            return attempt(also)
        except _Outdated as outdated:
            also |= outdated.nodes
    raise BusyError(f"{what} are being changed by other processes over and over. Try again.")


def _require(leases: Leases, held: Collection[str], nodes: Iterable[str]) -> None:
    """What is to be written must be leased; nodes that came up since are leased from the beginning next time."""
    missing = set(nodes) - leases.fence.nodes - set(held)
    if missing:
        raise _Outdated(missing)


_LOOK_AGAIN = 0.5
"""Seconds between two looks at a lease that is waited for."""


class Engine:
    def __init__(self, path: str, spark: Spark, catalog: Catalog, progress: Callable[[str], None]):
        self._path = path
        self._spark = spark
        self._catalog = catalog
        self._progress = progress
        self._said: set[str] = set()
        """Views of which was said that they have other settings than the session."""

    def _session(self) -> SparkSession:
        return self._spark.session

    # -- refreshing ---------------------------------------------------------------------------------------------------

    def replay_late(self, name: str) -> Report:
        """Take the rows that came too late for a view after all, and refresh it."""
        world = self._catalog.world()
        view = world.views[world.view_key(name)]
        late = {node for node in view.nodes if world.nodes[node].details.get("late")}
        if not late:
            raise DefinitionError(f"view {view.name!r} has no late rows: it was created without ALLOW LATENESS.")
        if world.nodes[view.key].version is None:
            raise DefinitionError(
                f"view {view.name!r} has no rows yet, late or not: it was created WITH NO DATA. "
                f"Run REFRESH MATERIALIZED VIEW {view.name}."
            )
        return self.refresh([name], replayed=late)

    def refresh(
        self,
        names: Iterable[str] | None = None,
        *,
        full: bool = False,
        replayed: Collection[str] = (),
        wait: timedelta = timedelta(0),
    ) -> Report:
        """Refresh these views (all without names) with everything upstream and their groups, in one epoch.

        ``full``: these views are recomputed; what comes with them is maintained. ``wait``: for how long another process
        that refreshes some of them is waited for; then those are skipped.
        """
        wanted = None if names is None else list(names)
        until = time.monotonic() + wait.total_seconds()
        while True:
            try:
                report, world = _attempts(
                    lambda also: self._refreshed(wanted, full, replayed, until, also), "the views"
                )
                break
            except _Held:
                self.tell("waiting for another process that is refreshing")
                points.reached(points.WAIT)
                time.sleep(_LOOK_AGAIN)
        self._say_settings(report.values())
        self._vacuum_if_due(world)
        if report.failed:
            raise _failure(report)
        return report

    def _refreshed(
        self, names: list[str] | None, full: bool, replayed: Collection[str], until: float, also: Collection[str]
    ) -> tuple[Report, World]:
        """One attempt; ``_Outdated`` if definitions changed between a first look and having the leases.

        ``_Held`` if another process has some of them and there is time to wait for it.
        """
        world = self._catalog.world()
        keys = [world.view_key(name) for name in names] if names is not None else list(world.views)
        started = datetime.now(timezone.utc)
        scope = together(world, keys)
        nodes = [*_with_upstream(world, scope), *also]
        leases = Leases(self._catalog, nodes)
        with leases as held:
            if held and time.monotonic() < until:
                raise _Held
            current = self._catalog.world()
            added = names is None and world.views.keys() != current.views.keys()
            if added or not world.same_definitions(current, nodes):
                raise _Outdated
            sources = pinned(current, nodes)
            renewal = Replanning(self._session, sources, self._locating(current)).renewed(current, scope)
            amended = renewal.world
            scope |= renewal.definitions.keys()
            nodes = _with_upstream(amended, scope)
            _require(leases, held, nodes)
            periodic = any(view.options.every is not None for view in amended.views.values())
            asked = full or replayed or not periodic
            request = Request(
                nodes,
                recompute={node for key in keys for node in amended.views[key].nodes} if full else set(),
                held=held,
                waiting=set() if asked else not_due(amended, self._catalog.changed_at()),
                replayed=replayed,
                renewed=renewal.reasons,
                failing=renewal.failing_nodes(),
            )
            with self._claimed(current, renewal.definitions.values()) as claimed:
                try:
                    result = self._run(claimed.world(amended), sources, leases, request)
                except KeyboardInterrupt:
                    self._catalog.record(_interrupted(amended, key, started) for key in amended.views if key in nodes)
                    raise
                reports = hold_back(amended, result, _view_reports(amended, result))
                done = {report.name.lower() for report in reports if report.status == SUCCEEDED}
                result.publication.definitions = [d for d in claimed.definitions if d.view.key in done]
                return self._publish(result, reports, current, started, leases.fence), current

    def tell(self, text: str) -> None:
        """Say what is being done. Whoever listens cannot stop it by failing."""
        try:
            self._progress(text)
        except Exception as problem:
            _log.warning("a progress callback failed at %r: %s: %s", text, type(problem).__name__, problem)

    def _say_settings(self, reports: Iterable[ViewReport]) -> None:
        """Say once of each view that it has other settings than the session."""
        for report in reports:
            if report.unlike and report.name not in self._said:
                self._said.add(report.name)
                self.tell(f"view {report.name!r} was computed under its own {', '.join(report.unlike)}")

    def _vacuum_if_due(self, world: World) -> None:
        """What cannot be deleted today is tomorrow: the refresh stands."""
        try:
            vacuum_if_due(self._catalog, world.settings, self._folders)
        except (PenstockError, OSError) as problem:
            self.tell(f"files of old epochs were not deleted: {problem}")

    def vacuum(self, name: str | None = None) -> Freed:
        """Delete what epochs beyond the setting ``retention`` have left, of one view or of all."""
        world = self._catalog.world()
        nodes = None if name is None else world.views[world.view_key(name)].nodes
        return vacuum_views(self._catalog, self._folders, nodes)

    @property
    def _folders(self) -> list[str]:
        """Where the tables of nodes lie."""
        return [os.path.join(self._path, folder) for folder in ("views", "nodes")]

    def _run(self, world: World, sources: Mapping[str, Relation], leases: Leases, request: Request) -> Result:
        def run(wanted: Request) -> Result:
            return Epoch(self._session, self._catalog, world, sources, leases.check).run(wanted, self.tell)

        return run_mending(world, request, run)

    def _publish(
        self, result: Result, reports: list[ViewReport], before: World, started: datetime, fence: Fence
    ) -> Report:
        """Publish an epoch that moved something; of one that did not, keep the history."""
        history = [_history(r, before, started) for r in reports]
        known = before.nodes.keys() | {n.name for d in result.publication.definitions for n in d.nodes}
        moved = _only(result.publication, known)
        if moved.empty:
            self._catalog.record(history)
            return Report(reports, before.epoch)
        moved.history = history
        try:
            number = self._catalog.publish(moved, fence)
        except LeaseLostError as problem:
            lost = [replace(r, status=FAILED, action="SKIP", reason="LEASE_LOST", error=str(problem)) for r in reports]
            self._catalog.record([_history(r, before, started) for r in lost])
            return Report(lost, before.epoch)
        if moved.definitions:
            self._leave_unused(before)
        return Report(reports, number)

    # -- defining -----------------------------------------------------------------------------------------------------

    def create_view(self, statement: CreateView, settings: Settings | None = None) -> Report | None:
        """Create or replace a view and fill it. A view that cannot be filled is not created, or not replaced.

        ``settings``: what the query is meant under, if not under the session's own.
        """
        what = f"the views that {statement.name!r} reads"
        return _attempts(lambda also: self._created(statement, settings, also), what)

    def _created(self, statement: CreateView, settings: Settings | None, also: Collection[str]) -> Report | None:
        """One attempt; ``_Outdated`` if what the view was planned on has changed until the leases were there."""
        world = self._catalog.world()
        if not self._is_wanted(world, statement):
            return None
        definition = self.define(world, statement, settings)
        _check_late_names(world, definition)
        self._check_cycle(world, definition)
        key, replaces = definition.view.key, definition.replaces
        amended = _amended(world, definition)
        nodes = [*_with_upstream(amended, together(amended, [key])), *also]
        if replaces:
            nodes += world.views[key].nodes
        leases = Leases(self._catalog, nodes, self._patience(world, f"filling {statement.name}"))
        with leases:
            current = self._catalog.world()
            readers = _readers(world, key)
            if key in current.tables or readers != _readers(current, key):
                raise _Outdated
            if not world.same_definitions(current, [*nodes, *readers]):
                raise _Outdated
            with self._claimed(current, [definition]) as claimed:
                (definition,) = claimed.definitions
                if statement.initialize:
                    return self._fill(current, definition, statement, leases)
                self._check_readers(current, definition)
                self._empty(current, definition)
                self._catalog.publish(Publication(definitions=[definition]), leases.fence)
                self._leave_unused(current)
                return None

    def _is_wanted(self, world: World, statement: CreateView) -> bool:
        """Whether there is something to create; False if it exists and may. A name that is taken is an error."""
        key = statement.name.lower()
        if key in world.tables:
            raise AlreadyExistsError(f"the name {statement.name!r} is taken by a table. Choose another name.")
        world.check_not_late(statement.name)
        if key not in world.views or statement.or_replace:
            return True
        if statement.if_not_exists:
            return False
        raise AlreadyExistsError(
            f"materialized view {statement.name!r} exists already. "
            "Use CREATE OR REPLACE, or CREATE .. IF NOT EXISTS, or DROP it first."
        )

    def define(self, world: World, statement: CreateView, settings: Settings | None = None) -> Definition:
        session = self._session()
        own = own_settings(session)
        settings = own.settings if settings is None else settings
        check_readable(statement.name, settings)
        with under(session, settings, own):
            return define(session, world, statement, self._locating(world), settings)

    def _fill(self, current: World, definition: Definition, statement: CreateView, leases: Leases) -> Report:
        """Bring the view and all upstream to one cut; with CASCADE, plan its readers anew and fill those too."""
        view, started = definition.view, datetime.now(timezone.utc)
        readers = set(_readers(current, view.key)) if statement.cascade else set()
        if not statement.cascade:
            self._check_readers(current, definition)
        amended = _amended(current, definition)
        scope = together(amended, [view.key])
        sources = pinned(amended, _with_upstream(amended, scope | readers))
        renewal = Replanning(self._session, sources, self._locating(amended)).renewed(
            amended, (scope | readers) - {view.key}
        )
        for key in renewal.failing.keys() & readers:
            raise DependencyError(
                f"view {view.name!r} cannot be replaced: {amended.views[key].name!r} reads it, and "
                f"{renewal.failing[key]}"
            )
        nodes = _with_upstream(renewal.world, together(renewal.world, scope | renewal.definitions.keys()))
        _require(leases, (), nodes)
        with self._claimed(amended, renewal.definitions.values()) as claimed:
            request = Request(nodes, renewed=renewal.reasons, failing=renewal.failing_nodes())
            result = self._run(claimed.world(renewal.world), sources, leases, request)
            reports = hold_back(renewal.world, result, _view_reports(renewal.world, result))
            _check_filled(view, reports, readers & renewal.definitions.keys())
            done = {report.name.lower() for report in reports if report.status == SUCCEEDED}
            renewed = [d for d in claimed.definitions if d.view.key in done]
            result.publication.definitions = [definition, *renewed]
            known = amended.nodes.keys() | {node.name for d in renewed for node in d.nodes}
            publication = _only(result.publication, known)
            publication.history = [_history(r, current, started) for r in reports]
            number = self._catalog.publish(publication, leases.fence)
        self._leave_unused(current)
        return Report(reports, number)

    def _empty(self, world: World, definition: Definition) -> None:
        """A view that is replaced WITH NO DATA has no rows for those either who read its directory."""
        own = definition.nodes[-1]
        if definition.replaces and is_table(own.path):
            table = Snapshot(own.path)
            shape = Shape.of(own.schema_json, Placement.read(own.details.get("placement", {})))
            commit(table, [], table.files, {}, node=own.name, epoch=0, shape=shape)

    @contextmanager
    def _claimed(self, world: World, definitions: Iterable[Definition]) -> Iterator[Claims]:
        """The definitions with directories of their own for new nodes, which go again if they do not come to be."""
        claims = Claims(world, definitions)
        try:
            yield claims
        finally:
            claims.settle(self._catalog)

    def _patience(self, world: World, doing: str) -> Patience:
        def waiting(who: str) -> None:
            self.tell(f"{doing}: waiting for {who}")

        return Patience(lock_timeout(world.settings), waiting, world.display_name)

    def _check_cycle(self, world: World, definition: Definition) -> None:
        views = {**world.views, definition.view.key: definition.view}
        try:
            replace(world, views=views).views_graph().order()
        except CycleError as found:
            raise cycle(definition.view.name, [world.display_name(name) for name in found.path]) from None

    def _check_readers(self, world: World, definition: Definition) -> None:
        """A view that others read keeps the columns that they read, with their types."""
        offered = {name.lower(): data_type for name, data_type, _ in definition.view.columns}
        for node in world.nodes.values():
            for column, data_type in node.details["input_types"].get(definition.view.key, {}).items():
                if offered.get(column.lower()) != data_type:
                    raise DependencyError(
                        f"view {definition.view.name!r} cannot be replaced: {self._owner(world, node)!r} reads its "
                        f"column {column!r} ({data_type}). Keep the column, or write CASCADE at the end: then the "
                        "views that read it are planned again too."
                    )

    @staticmethod
    def _owner(world: World, node: NodeRecord) -> str:
        return next(v.name for v in world.views.values() if node.name in v.nodes)

    def _locating(self, world: World) -> Callable[[str, str], str]:
        """Where tables of nodes go: where they are. A view stays in one place, whatever becomes of its query."""
        return lambda name, folder: world.nodes[name].path if name in world.nodes else self.locate(name, folder)

    def locate(self, name: str, folder: str) -> str:
        """Where a new table would go. The directory is its own only when it has been claimed."""
        return os.path.join(self._path, folder, re.sub(r"[^\w.-]", "_", name.removeprefix("__node_")))

    def set_policy(self, name: str, policy: str) -> None:
        """Change how a view is refreshed. To and from FULL the view is planned and filled anew."""
        world = self._catalog.world()
        view = world.views[world.view_key(name)]
        recomputes = view.reason_code == "POLICY_FULL"
        if (policy == "FULL") != recomputes:
            settings = Settings.recorded(world.nodes[view.key].details)
            self.create_view(replace(statement_of(world, view), policy=policy), settings)
        elif policy == "INCREMENTAL STRICT" and not view.incremental:
            raise NotIncrementalError(
                f"view {view.name!r} cannot be maintained incrementally: {view.reason} has no incremental rule "
                f"({view.reason_code}). Rewrite the query first.",
                code=str(view.reason_code),
            )
        else:
            self._catalog.set_policy(view, policy)

    def set_options(self, name: str, *, consistency: str | None, schedule: str | None) -> str | None:
        """Change a view's CONSISTENCY or SCHEDULE POLICY; gives a remark when that has no effect for now."""
        world = self._catalog.world()
        view = world.views[world.view_key(name)]
        options = replace(
            view.options, consistency=consistency or view.options.consistency,
            schedule=schedule or view.options.schedule,
        )  # fmt: skip
        self._catalog.set_options(view.key, options)
        return self.remark(view.key)

    def remark(self, key: str) -> str | None:
        """What is to be said about a view's SCHEDULE POLICY that decides nothing."""
        world = self._catalog.world()
        view = world.views[key]
        if view.options.schedule is None or any(key in group.convergence for group in groups_of(world)):
            return None
        return f"SCHEDULE POLICY has no effect on {view.name!r} yet: no diamond ends in it"

    # -- dropping -----------------------------------------------------------------------------------------------------

    def drop_view(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> list[str]:
        """Drop a view, with CASCADE also the views that read it; gives the names that are gone."""
        return _attempts(lambda also: self._dropped(name, if_exists, cascade), f"the readers of {name!r}")

    def _dropped(self, name: str, if_exists: bool, cascade: bool) -> list[str]:
        world = self._catalog.world()
        if if_exists and name.lower() not in world.views:
            return []
        key = world.view_key(name)
        readers = _readers(world, key)
        if readers and not cascade:
            direct = world.views_graph().readers(key)
            names = ", ".join(repr(world.views[r].name) for r in direct)
            raise DependencyError(
                f"view {world.views[key].name!r} cannot be dropped: {names} {'reads' if len(direct) == 1 else 'read'} "
                "it. Use DROP MATERIALIZED VIEW .. CASCADE."
            )
        dropped = [key, *readers]
        nodes = [node for k in dropped for node in world.views[k].nodes]
        leases = Leases(self._catalog, nodes, self._patience(world, f"dropping {world.views[key].name}"))
        with leases:
            current = self._catalog.world()
            if not world.same_definitions(current, nodes) or _readers(current, key) != readers:
                raise _Outdated
            self._catalog.drop_views(dropped, leases.fence)
        self._leave_unused(world)
        return [world.views[k].name for k in dropped]

    def _leave_unused(self, before: World) -> None:
        """Leave the tables of nodes that the catalog no longer knows to be deleted when nobody reads them any more."""
        self._leave_paths(node.path for node in before.nodes.values())

    def _leave_paths(self, paths: Iterable[str]) -> None:
        """The same for these tables, unless the catalog knows them, or a checkpoint does."""
        kept = {node.path for node in self._catalog.world().nodes.values()}
        for checkpoint in Checkpoints(self._catalog).all():
            kept |= {path for path, _ in checkpoint.nodes.values()}
        for path in paths:
            if path not in kept:
                leave(path)

    # -- going back ---------------------------------------------------------------------------------------------------

    def drop_checkpoint(self, name: str) -> None:
        paths = [path for path, _ in Checkpoints(self._catalog).get(name).nodes.values()]
        Checkpoints(self._catalog).drop(name)
        self._leave_paths(paths)

    def restore(self, name: str) -> int:
        """Bring views, their tables and frontiers back to a checkpoint, in one step; gives the new epoch.

        The tables of the views go back first, which no reader sees: readers have the versions that the catalog says.
        """
        checkpoint = Checkpoints(self._catalog).get(name)
        before = self._catalog.world()
        everything = sorted(set(before.nodes) | set(checkpoint.nodes))
        leases = Leases(self._catalog, everything, self._patience(before, f"restoring checkpoint {name}"))
        with leases:
            before = self._catalog.world()
            if not set(before.nodes) <= set(everything):
                raise BusyError(f"checkpoint {name!r} was not restored: views were created in this moment. Try again.")
            missing = self._missing_tables(before, checkpoint)
            found = {node: (path, version) for node, (path, version) in checkpoint.nodes.items() if version is not None}
            versions = {node: restore_table(path, version) for node, (path, version) in found.items()}
            epoch = Checkpoints(self._catalog).restore(checkpoint, versions, missing, leases.fence)
        self._leave_unused(before)
        return epoch

    @staticmethod
    def _missing_tables(world: World, checkpoint: Checkpoint) -> list[str]:
        """The source tables that a checkpoint needs and the catalog no longer has. They must still be there."""
        names = {row["key"]: row for row in checkpoint.state["views"]}
        for key in names.keys() & world.tables.keys():
            raise AlreadyExistsError(
                f"checkpoint {checkpoint.name!r} has a view {names[key]['name']!r}, and now a table has that name. "
                "Drop the table first."
            )
        missing = []
        for row in checkpoint.tables:
            if row["key"] not in world.tables:
                try:
                    Snapshot(row["path"])
                except SourceError:
                    raise NotFoundError(
                        f"checkpoint {checkpoint.name!r} cannot be restored: table {row['name']!r}, which its views "
                        "may read, was dropped and its data deleted."
                    ) from None
                missing.append(row["key"])
        return missing


def _with_upstream(world: World, keys: Iterable[str]) -> list[str]:
    """The nodes of these views and all that they read, inputs before readers."""
    graph = world.nodes_graph()
    wanted = {node for key in keys for node in world.views[key].nodes}
    return graph.order((wanted | graph.ancestors(wanted)) - set(world.tables))


def _check_late_names(world: World, definition: Definition) -> None:
    """The names by which the view's late rows will be read must be free."""
    names = late_names(definition.view.key, definition.nodes)
    for name in [definition.view.key + LATE, *names] if names else []:
        if name in world.tables or name in world.views:
            kind = "table" if name in world.tables else "materialized view"
            raise AlreadyExistsError(
                f"view {definition.view.name!r} would keep its late rows as {name!r}, and a {kind} has that name. "
                "Choose another name for the view."
            )


def _amended(world: World, definition: Definition) -> World:
    """The catalog as it will be with a new view in it; what the view shares with others is as it is now.

    Of a view that it replaces nothing is left: what that had consumed, and how far its event time had come, is not
    true of the new one.
    """
    view = definition.view
    new = {node.name: world.nodes.get(node.name, node) if node.hidden else node for node in definition.nodes}
    frontiers = {name: frontier for name, frontier in world.frontiers.items() if name != view.key}
    watermarks = {name: mark for name, mark in world.watermarks.items() if name != view.key}
    return replace(
        world, views={**world.views, view.key: view}, nodes={**world.nodes, **new}, frontiers=frontiers,
        watermarks=watermarks,
    )  # fmt: skip


def _readers(world: World, key: str) -> list[str]:
    """The views that read a view, directly or not, in order."""
    graph = world.views_graph()
    return [k for k in graph.order(graph.descendants([key])) if k in world.views] if key in world.views else []


def _only(publication: Publication, known: Collection[str]) -> Publication:
    """What concerns nodes that the catalog has, or will have with this publication."""
    return replace(
        publication,
        versions={n: v for n, v in publication.versions.items() if n in known},
        frontiers={n: f for n, f in publication.frontiers.items() if n in known},
        watermarks={n: m for n, m in publication.watermarks.items() if n in known or m.seen is not None},
    )


def _failure(report: Report) -> RefreshError:
    first = report.failed[0]
    others = f" ({len(report.failed) - 1} more failed too)" if len(report.failed) > 1 else ""
    if first.reason == "LEASE_LOST":
        return RefreshError(f"nothing was refreshed: {first.error}", report=report)
    held = ", ".join(repr(view.name) for view in report.values() if view.reason == "GROUP_FAILED")
    also = f" {held} must advance together with it, and wait too." if held else ""
    return RefreshError(
        f"view {first.name!r} failed to refresh: {(first.error or '').rstrip('. ')}{others}.{also} "
        "The views that do not depend on it were refreshed and published.",
        report=report,
    )


def _view_reports(world: World, result: Result) -> list[ViewReport]:
    reports = []
    for key, view in world.views.items():
        if key in result.reports:
            hidden = [result.reports[n] for n in view.nodes if n != key and n in result.reports]
            reports.append(combine(view.name, result.reports[key], hidden))
    return reports


def _check_filled(view: ViewRecord, reports: list[ViewReport], readers: Collection[str] = ()) -> None:
    """The view, and the readers that were planned again with it, must all have come to be."""
    own = next(r for r in reports if r.name == view.name)
    failed = [r for r in reports if r.name.lower() in readers and r.status != SUCCEEDED]
    if own.status == SUCCEEDED and not failed:
        return
    blamed = next((r for r in reports if r.status == FAILED), own)
    why = blamed.error or "a view that it reads, or must advance together with, was not refreshed. Try again."
    if blamed is not own and blamed.error:
        role = "which reads it," if blamed.name.lower() in readers else "which it reads or must advance together with,"
        why = (
            f"view {blamed.name!r}, {role} failed to refresh: "
            f"{blamed.error.rstrip('. ')}. Repair that first, or let views advance on their own with CONSISTENCY NONE."
        )
    raise PenstockError(f"view {view.name!r} was not created: {why}")


def _history(report: ViewReport, world: World, started: datetime) -> HistoryRecord:
    return HistoryRecord(
        world.epoch, report.name.lower(), report.status, report.action, report.strategy, report.reason,
        report.rows_inserted, report.rows_deleted, report.seconds, started, report.error, report.details(),
    )  # fmt: skip


def _interrupted(world: World, key: str, started: datetime) -> HistoryRecord:
    """The record of a view whose refresh was interrupted; nothing of it was published."""
    seconds = (datetime.now(timezone.utc) - started).total_seconds()
    return HistoryRecord(
        world.epoch, key, FAILED, "SKIP", None, "INTERRUPTED", 0, 0, seconds, started,
        "interrupted before anything was published. Refresh again.",
    )  # fmt: skip
