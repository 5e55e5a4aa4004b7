"""Creating, refreshing and dropping views on a warehouse: the epoch around the catalog and its leases."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from penstock.catalog import Catalog, HistoryRecord, NodeRecord, ViewRecord, World
from penstock.catalog.checkpoints import Checkpoint, Checkpoints
from penstock.catalog.leases import Leases
from penstock.catalog.records import LATE, late_names
from penstock.engine.consistency import groups_of, hold_back, not_due, together
from penstock.engine.definition import Definition, define
from penstock.engine.epoch import Epoch, Request, Result
from penstock.engine.report import FAILED, SUCCEEDED, Report, ViewReport, combine
from penstock.engine.session import Spark
from penstock.engine.vacuum import vacuum_if_due, vacuum_views
from penstock.errors import (
    AlreadyExistsError,
    DefinitionError,
    DependencyError,
    NotFoundError,
    NotIncrementalError,
    PenstockError,
    RefreshError,
    SourceError,
)
from penstock.graph import CycleError
from penstock.sql.statements import CreateView, Placement
from penstock.storage.delta_log import Snapshot
from penstock.storage.vacuum import Freed, leave
from penstock.storage.view_settings import Settings, check_readable, under
from penstock.storage.view_settings import own as own_settings
from penstock.storage.view_table import delete_table
from penstock.storage.view_table import restore as restore_table


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
        self, names: Iterable[str] | None = None, *, full: bool = False, replayed: Collection[str] = ()
    ) -> Report:
        """Refresh these views (all without names) with everything upstream and their groups, in one epoch.

        ``full``: these views are recomputed; what comes with them is maintained.
        """
        world = self._catalog.world()
        keys = [world.view_key(name) for name in names] if names is not None else list(world.views)
        recompute = {node for key in keys for node in world.views[key].nodes} if full else set()
        started = datetime.now(timezone.utc)
        nodes = _with_upstream(world, together(world, keys))
        with Leases(self._catalog, nodes) as held:
            current = _newest(world, self._catalog.world())
            periodic = any(view.options.every is not None for view in current.views.values())
            asked = full or replayed or not periodic
            waiting = set() if asked else not_due(current, self._catalog.changed_at())
            request = Request(nodes, recompute, held, waiting, replayed)
            result = self._epoch(current).run(request, self._progress)
            reports = hold_back(world, result, _view_reports(world, result))
            number = self._publish(result, [_history(result, r, world, started) for r in reports], world.epoch)
        report = Report(reports, number)
        self._say_settings(reports)
        self._vacuum_if_due(world)
        if report.failed:
            first = report.failed[0]
            others = f" ({len(report.failed) - 1} more failed too)" if len(report.failed) > 1 else ""
            others_held = ", ".join(repr(view.name) for view in reports if view.reason == "GROUP_FAILED")
            also = f" {others_held} must advance together with it, and wait too." if others_held else ""
            raise RefreshError(
                f"view {first.name!r} failed to refresh: {(first.error or '').rstrip('. ')}{others}.{also} "
                "The views that do not depend on it were refreshed and published.",
                report=report,
            )
        return report

    def _say_settings(self, reports: list[ViewReport]) -> None:
        """Say once of each view that it has other settings than the session."""
        for report in reports:
            if report.unlike and report.name not in self._said:
                self._said.add(report.name)
                self._progress(f"view {report.name!r} was computed under its own {', '.join(report.unlike)}")

    def _vacuum_if_due(self, world: World) -> None:
        """What cannot be deleted today is tomorrow: the refresh stands."""
        try:
            vacuum_if_due(self._catalog, world.settings, self._folders)
        except (PenstockError, OSError) as problem:
            self._progress(f"files of old epochs were not deleted: {problem}")

    def vacuum(self, name: str | None = None) -> Freed:
        """Delete what epochs beyond the setting ``retention`` have left, of one view or of all."""
        world = self._catalog.world()
        nodes = None if name is None else world.views[world.view_key(name)].nodes
        return vacuum_views(self._catalog, self._folders, nodes)

    @property
    def _folders(self) -> list[str]:
        """Where the tables of nodes lie."""
        return [os.path.join(self._path, folder) for folder in ("views", "nodes")]

    def _epoch(self, world: World) -> Epoch:
        return Epoch(self._session, self._catalog, world)

    def _publish(self, result: Result, history: list[HistoryRecord], epoch: int) -> int:
        """Publish an epoch that moved something; of one that did not, keep the history. Gives the epoch's number."""
        moved = result.publication
        if not moved.frontiers and not moved.versions and not moved.watermarks:
            self._catalog.record(history)
            return epoch
        result.publication.history = history
        number = result.number if result.number is not None else self._catalog.begin_epoch()
        self._catalog.publish(number, result.publication)
        return number

    # -- defining -----------------------------------------------------------------------------------------------------

    def create_view(self, statement: CreateView, settings: Settings | None = None) -> Report | None:
        """Create or replace a view and fill it. A view that cannot be filled is not created, or not replaced.

        ``settings``: what the query is meant under, if not under the session's own.
        """
        world = self._catalog.world()
        key = statement.name.lower()
        if key in world.tables:
            raise AlreadyExistsError(f"the name {statement.name!r} is taken by a table. Choose another name.")
        world.check_not_late(statement.name)
        exists = key in world.views
        if exists and statement.if_not_exists:
            return None
        if exists and not statement.or_replace:
            raise AlreadyExistsError(
                f"materialized view {statement.name!r} exists already. "
                "Use CREATE OR REPLACE, or CREATE .. IF NOT EXISTS, or DROP it first."
            )
        definition = self.define(world, statement, settings)
        _check_late_names(world, definition)
        self._check_cycle(world, definition)
        if exists:
            self._check_readers(world, definition)
        if not statement.initialize:
            self._catalog.put_view(definition.view, definition.nodes, replacing=exists)
            self._leave_unused(world)
            return None
        return self._fill(world, definition, exists)

    def define(self, world: World, statement: CreateView, settings: Settings | None = None) -> Definition:
        session = self._session()
        own = own_settings(session)
        settings = own.settings if settings is None else settings
        check_readable(statement.name, settings)
        with under(session, settings, own):
            return define(session, world, statement, self.locate, settings)

    def _fill(self, world: World, definition: Definition, exists: bool) -> Report:
        view = definition.view
        amended = _amended(world, definition)
        started = datetime.now(timezone.utc)
        new = [n for n in definition.nodes if n.version is None]
        nodes = _with_upstream(amended, together(amended, [view.key]))
        try:
            with Leases(self._catalog, nodes) as held:
                amended = _amended(self._catalog.world(), definition)
                result = self._epoch(amended).run(Request(nodes, (), held), self._progress)
                reports = hold_back(amended, result, _view_reports(amended, result))
                _check_filled(view, reports)
                assert result.number is not None
                result.publication.history = [_history(result, r, amended, started) for r in reports]
                self._catalog.put_view(
                    view, definition.nodes, replacing=exists, epoch=result.number, publication=result.publication
                )
        except BaseException:
            for node in new:
                delete_table(node.path)
            raise
        self._leave_unused(world)
        return Report(reports, result.number)

    def _check_cycle(self, world: World, definition: Definition) -> None:
        views = {**world.views, definition.view.key: definition.view}
        try:
            replace(world, views=views).views_graph().order()
        except CycleError as cycle:
            path = " -> ".join(world.display_name(name) for name in cycle.path)
            raise DependencyError(
                f"view {definition.view.name!r} would read itself: {path}. Change the query so that it does not."
            ) from None

    def _check_readers(self, world: World, definition: Definition) -> None:
        """A view that others read keeps the columns that they read, with their types."""
        offered = {name.lower(): data_type for name, data_type, _ in definition.view.columns}
        for node in world.nodes.values():
            for column, data_type in node.details["input_types"].get(definition.view.key, {}).items():
                if offered.get(column.lower()) != data_type:
                    raise DependencyError(
                        f"view {definition.view.name!r} cannot be replaced: {self._owner(world, node)!r} reads its "
                        f"column {column!r} ({data_type}). Keep the column, or drop the reader first."
                    )

    @staticmethod
    def _owner(world: World, node: NodeRecord) -> str:
        return next(v.name for v in world.views.values() if node.name in v.nodes)

    def locate(self, name: str, folder: str) -> str:
        """A directory that no table uses yet."""
        base = path = os.path.join(self._path, folder, re.sub(r"[^\w.-]", "_", name.removeprefix("__node_")))
        number = 2
        while os.path.exists(path):
            path, number = f"{base}-{number}", number + 1
        return path

    def set_policy(self, name: str, policy: str) -> None:
        """Change how a view is refreshed. To and from FULL the view is planned and filled anew."""
        world = self._catalog.world()
        view = world.views[world.view_key(name)]
        recomputes = view.reason_code == "POLICY_FULL"
        if (policy == "FULL") != recomputes:
            columns = tuple((name, comment) for name, _, comment in view.columns)
            self.create_view(
                CreateView(
                    view.query, view.name, view.query, True, False, columns, view.comment,
                    tuple(view.properties.items()), view.refresh, policy,
                    placement=Placement.read(world.nodes[view.key].details.get("placement", {})),
                    options=view.options,
                ),
                Settings.recorded(world.nodes[view.key].details),
            )  # fmt: skip
        elif policy == "INCREMENTAL STRICT" and not view.incremental:
            raise NotIncrementalError(
                f"view {view.name!r} cannot be maintained incrementally: {view.reason} has no incremental rule "
                f"({view.reason_code}). Rewrite the query first.",
                code=str(view.reason_code),
            )
        else:
            self._catalog.set_policy(view.key, policy)

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
        world = self._catalog.world()
        if if_exists and name.lower() not in world.views:
            return []
        key = world.view_key(name)
        graph = world.views_graph()
        readers = graph.order(graph.descendants([key]))
        if readers and not cascade:
            names = ", ".join(repr(world.views[r].name) for r in graph.readers(key))
            verb = "reads" if len(graph.readers(key)) == 1 else "read"
            raise DependencyError(
                f"view {world.views[key].name!r} cannot be dropped: {names} {verb} it. "
                "Use DROP MATERIALIZED VIEW .. CASCADE."
            )
        dropped = [key, *readers]
        self._catalog.drop_views(dropped)
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
        missing = self._missing_tables(before, checkpoint)
        with Leases(self._catalog, sorted(set(before.nodes) | set(checkpoint.nodes))) as held:
            if held:
                raise PenstockError(f"checkpoint {name!r} cannot be restored: a refresh is running. Try again.")
            found = {node: (path, version) for node, (path, version) in checkpoint.nodes.items() if version is not None}
            versions = {node: restore_table(path, version) for node, (path, version) in found.items()}
            epoch = Checkpoints(self._catalog).restore(checkpoint, versions, missing)
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


def _newest(world: World, fresh: World) -> World:
    """Another process may have published between reading the catalog and taking the leases."""
    nodes = {name: fresh.nodes.get(name, node) for name, node in world.nodes.items()}
    return replace(world, nodes=nodes, frontiers=fresh.frontiers, watermarks=fresh.watermarks)


def _view_reports(world: World, result: Result) -> list[ViewReport]:
    reports = []
    for key, view in world.views.items():
        if key in result.reports:
            hidden = [result.reports[n] for n in view.nodes if n != key and n in result.reports]
            reports.append(combine(view.name, result.reports[key], hidden))
    return reports


def _check_filled(view: ViewRecord, reports: list[ViewReport]) -> None:
    own = next(r for r in reports if r.name == view.name)
    if own.status == SUCCEEDED:
        return
    blamed = next((r for r in reports if r.status == FAILED), own)
    why = (
        blamed.error or "another process is refreshing a view that it reads, or must advance together with. Try again."
    )
    if blamed is not own and blamed.error:
        why = (
            f"view {blamed.name!r}, which it reads or must advance together with, failed to refresh: "
            f"{blamed.error.rstrip('. ')}. Repair that first, or let views advance on their own with CONSISTENCY NONE."
        )
    raise PenstockError(f"view {view.name!r} was not created: {why}")


def _history(result: Result, report: ViewReport, world: World, started: datetime) -> HistoryRecord:
    return HistoryRecord(
        result.number if result.number is not None else world.epoch, report.name.lower(), report.status,
        report.action, report.strategy, report.reason, report.rows_inserted, report.rows_deleted, report.seconds,
        started, report.error, report.details(),
    )  # fmt: skip
