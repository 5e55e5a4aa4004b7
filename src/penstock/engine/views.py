"""Defining views: creating, replacing, altering and dropping them, each all or nothing and alone on what it touches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from penstock.catalog import Definition, NodeRecord, Publication, ViewRecord, World
from penstock.catalog.late_rows import late_name, late_names
from penstock.catalog.leases import Leases
from penstock.catalog.states import ACTIVE, SUSPENDED
from penstock.catalog.transactions import Intents
from penstock.engine.adopting import Adopting
from penstock.engine.committing import Committing
from penstock.engine.consistency import groups_of, hold_back, together
from penstock.engine.definition import define, statement_of
from penstock.engine.events import Telling
from penstock.engine.faults import after_success
from penstock.engine.immediate import check_immediate, check_readers, immediate_nodes, standing, why_not_immediate
from penstock.engine.options import choice, policy_of
from penstock.engine.properties import check_own
from penstock.engine.relations import cycle
from penstock.engine.replanning import Replanning
from penstock.engine.report import Report, ViewReport
from penstock.engine.sources import Relation, pinned
from penstock.engine.spark_names import SparkNames
from penstock.engine.spark_views import SparkViews
from penstock.engine.steps import Request
from penstock.engine.workplace import (
    Outdated,
    Workplace,
    attempts,
    only,
    recorded,
    require,
    view_reports,
    with_upstream,
)
from penstock.engine.writing_out import check_unread
from penstock.errors import (
    AlreadyExistsError,
    BusyError,
    DefinitionError,
    DependencyError,
    LeaseLostError,
    NotIncrementalError,
    PenstockError,
    of_object,
)
from penstock.frames.settings import Own, Settings, check_readable, own, under
from penstock.graph import CycleError
from penstock.sql.names import key_of
from penstock.sql.statements import NONE, AlterView, CreateView
from penstock.sql.triggers import Trigger
from penstock.storage.delta_log import Snapshot, is_table
from penstock.storage.runs import Run
from penstock.storage.view_table import Shape, commit
from penstock.vocabulary import Policy, Reason, Status, When

_LOOKS = 100
"""How often tables that are being written are looked at again."""


class Views:
    def __init__(
        self,
        work: Workplace,
        committing: Committing,
        spark_views: SparkViews,
        refresh: Callable[[list[str]], Report],
    ):
        self._work = work
        self._spark_views = spark_views
        self._adopting = Adopting(work)
        self.names = SparkNames(work)
        self._committing = committing
        self._refresh = refresh

    def create(self, statement: CreateView, settings: Settings | None = None) -> Report | None:
        """Create or replace a view and fill it. A view that cannot be filled is not created, or not replaced.

        ``settings``: what the query is meant under, if not under the session's own.
        """
        what = f"the views that {statement.name!r} reads"
        report = attempts(lambda also: self._created(statement, settings, also), what)
        key = key_of(statement.name)
        made = self._work.catalog.world().views.get(key)
        if report is not None and made is not None and made.immediate:
            self._committing.settle(key, f"creating {statement.name}")
        failed = self._work.catalog.world().states.get(key) if statement.or_replace else None
        if failed is not None:  # what the old query did wrong is not held against the new one
            self._work.catalog.set_state(key, after_success(failed))
        self.names.settle()
        return report

    def _created(self, statement: CreateView, settings: Settings | None, also: Collection[str]) -> Report | None:
        """One attempt; ``Outdated`` if what the view was planned on has changed until the leases were there."""
        world = self._work.catalog.world()
        if not self._is_wanted(world, statement):
            return None
        with of_object(f"view {statement.name!r}"):
            adopted = self._adopting.adopt(world, statement.query)
            self._spark_views.check(adopted.world, adopted.query)
        check_own(statement.name, statement.properties)
        world, statement = adopted.world, replace(statement, query=adopted.query)
        definition = self.define(world, statement, settings)
        if statement.soonest and why_not_immediate(world, definition.view) is None:
            definition = replace(definition, view=replace(definition.view, refresh=str(When.IMMEDIATE)))
        _check_incremental(statement, definition.view)
        check_immediate(world, definition.view, initialize=statement.initialize)
        check_readers(world, definition.view)
        _check_late_names(world, definition)
        self._check_cycle(world, definition)
        key, replaces = definition.view.key, definition.replaces
        amended = _amended(world, definition)
        self.names.check(amended, definition.view)
        nodes = [*with_upstream(amended, together(amended, [key])), *also]
        moving = immediate_nodes(world) - set(also)
        if replaces:
            nodes += world.views[key].nodes
            moving -= set(world.views[key].nodes)
        nodes = [node for node in nodes if node not in moving]
        patience = self._work.patience(world, f"filling {statement.name}")
        leases = Leases(self._work.catalog, nodes, patience, began=datetime.now(timezone.utc))
        with leases:
            current = self._work.catalog.world()
            readers = _readers(world, key)
            if key in current.tables or readers != _readers(current, key):
                raise Outdated
            if not world.same_definitions(current, [*nodes, *readers]):
                raise Outdated
            with self._work.claimed(current, [_kept(current, definition, statement)]) as claimed:
                (definition,) = claimed.definitions
                if statement.initialize:
                    return self._fill(current, definition, statement, leases, moving)
                self._check_readers(current, definition)
                self._empty(definition, leases)
                self._work.catalog.publish(Publication(definitions=[definition]), leases.fence)
                self._work.leave_unused(current)
                return None

    def _is_wanted(self, world: World, statement: CreateView) -> bool:
        """Whether there is something to create; False if it exists and may. A name that is taken is an error."""
        key = key_of(statement.name)
        if key in world.tables:
            raise AlreadyExistsError(f"the name {statement.name!r} is taken by a table. Choose another name.")
        if key in world.plain:
            raise AlreadyExistsError(f"the name {statement.name!r} is taken by a view. Choose another name.")
        if key in world.models and statement.key is None:
            raise AlreadyExistsError(
                f"{statement.name!r} is a read model. To change it, DROP TABLE {statement.name} and create it again."
            )
        world.check_can_be(statement.name)
        if key not in world.views or statement.or_replace:
            return True
        if statement.if_not_exists:
            return False
        raise AlreadyExistsError(
            f"materialized view {statement.name!r} exists already. "
            "Use CREATE OR REPLACE, or CREATE .. IF NOT EXISTS, or DROP it first."
        )

    def planned(self, world: World, statement: CreateView) -> tuple[World, Definition]:
        """What a view would be, and the catalog with what it would take in; nothing is kept."""
        with of_object(f"view {statement.name!r}"):
            adopted = Adopting(self._work, trial=True).adopt(world, statement.query)
        return adopted.world, self.define(adopted.world, replace(statement, query=adopted.query))

    def define(self, world: World, statement: CreateView, settings: Settings | None = None) -> Definition:
        spark, session = self._work.spark, self._work.session()
        if settings is None:
            mine = own(spark)
            settings = mine.settings
            _check_settled(statement, mine)
        check_readable(statement.name, settings)
        with under(spark, settings), of_object(f"view {statement.name!r}"):
            return define(session, world, statement, self._work.locating(world), settings)

    def _fill(
        self, current: World, definition: Definition, statement: CreateView, leases: Leases, moving: Collection[str]
    ) -> Report:
        """Bring the view and all upstream to one cut; with CASCADE, plan its readers anew and fill those too.

        ``moving`` are nodes of IMMEDIATE views, which move with their tables and are not leased.
        """
        view, started = definition.view, datetime.now(timezone.utc)
        readers = set(_readers(current, view.key)) if statement.cascade else set()
        if not statement.cascade:
            self._check_readers(current, definition)
        amended = _amended(current, definition)
        scope = together(amended, [view.key])
        amended, sources = self._pinned(amended, definition, with_upstream(amended, scope | readers))
        renewal = Replanning(self._work.session, sources, self._work.locating(amended)).renewed(
            amended, (scope | readers) - {view.key}
        )
        for key in renewal.failing.keys() & readers:
            raise DependencyError(
                f"view {view.name!r} cannot be replaced: {amended.views[key].name!r} reads it, and "
                f"{renewal.failing[key]} Replace or drop {amended.views[key].name!r} first."
            )
        nodes = with_upstream(renewal.world, together(renewal.world, scope | renewal.definitions.keys()))
        planned = {node for d in renewal.definitions.values() for node in d.view.nodes}
        left = standing(amended, set(moving).intersection(nodes) - planned, sources)
        require(leases, left, nodes)
        with (
            self._work.claimed(amended, renewal.definitions.values()) as claimed,
            Telling(self._work.refreshing) as told,
        ):
            request = Request(
                nodes=nodes, renewed=renewal.reasons, failing=renewal.failing_nodes(), standing=left
            )  # fmt: skip
            result = self._work.run(claimed.world(renewal.world), sources, leases, request, told)
            reports = hold_back(renewal.world, result, view_reports(renewal.world, result))
            _check_filled(view, reports, readers & renewal.definitions.keys())
            done = {key_of(report.name) for report in reports if report.status == Status.SUCCEEDED}
            renewed = [d for d in claimed.definitions if d.view.key in done]
            result.publication.definitions = [definition, *renewed]
            known = amended.nodes.keys() | {node.name for d in renewed for node in d.nodes}
            publication = only(result.publication, known)
            publication.history = [recorded(r, current, started) for r in reports]
            number = self._work.catalog.publish(publication, leases.fence)
            told.ended(reports, number, result.publication, claimed.world(renewal.world))
        self._work.leave_unused(current)
        return Report(reports, number)

    def _pinned(
        self, amended: World, definition: Definition, nodes: Collection[str]
    ) -> tuple[World, dict[str, Relation]]:
        """The catalog as it will be, and the tables, at one moment."""
        for _ in range(_LOOKS):
            sources = pinned(amended, nodes)
            if Intents(self._work.catalog).unchanged(amended, sources):
                return amended, sources
            amended = _amended(self._work.catalog.world(), definition)
        raise BusyError("the tables are being written over and over. Try again.")

    def _empty(self, definition: Definition, leases: Leases) -> None:
        """A view that is replaced WITH NO DATA has no rows for those either who read its directory."""
        own = definition.nodes[-1]
        if not definition.replaces or not is_table(own.path):
            return
        table, shape = Snapshot(own.path), Shape.of(own.schema_json, own.details.placement)
        with leases.writing():
            commit(table, [], table.files, {}, node=own.name, run=Run.begun(), shape=shape)

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
            for column, data_type in node.details.input_types.get(definition.view.key, {}).items():
                if offered.get(column.lower()) != data_type:
                    raise DependencyError(
                        f"view {definition.view.name!r} cannot be replaced: {self._owner(world, node)!r} reads its "
                        f"column {column!r} ({data_type}). Keep the column, or write CASCADE at the end: then the "
                        "views that read it are planned again too."
                    )

    @staticmethod
    def _owner(world: World, node: NodeRecord) -> str:
        return next(v.name for v in world.views.values() if node.name in v.nodes)

    def alter(self, change: AlterView) -> str | None:
        """Change when or how a view is refreshed; gives a remark when that has no effect for now."""
        policy = None if change.policy is None else policy_of(change.policy)
        changed = {
            "consistency": choice("consistency", change.consistency),
            "schedule": choice("schedule_policy", change.schedule),
            "lag": change.lag,
            "priority": change.priority,
        }
        self._work.catalog.world().view_key(change.name)
        if policy is not None:
            self._set_policy(change.name, policy)
        if change.properties:
            return self._set_properties(change.name, change.properties)
        said = {k: v for k, v in changed.items() if v is not None}
        return self._set_options(change.name, change.trigger, said | ({"lag": None} if change.lag == NONE else {}))

    def suspend(self, name: str, *, suspended: bool) -> str:
        """Take a view out of what is refreshed by itself, or back into it; gives its name."""
        world = self._work.catalog.world()
        view = world.views[world.view_key(name)]
        if suspended and view.immediate:
            raise DefinitionError(
                f"view {view.name!r} is REFRESH IMMEDIATE, so it moves with the tables that it reads and cannot be "
                f"suspended. Change that first: ALTER MATERIALIZED VIEW {view.name} REFRESH MANUAL."
            )
        self._work.catalog.set_state(view.key, SUSPENDED if suspended else ACTIVE)
        return view.name

    def _set_policy(self, name: str, policy: Policy) -> None:
        """To and from FULL the view is planned and filled anew."""
        world = self._work.catalog.world()
        view = world.views[world.view_key(name)]
        recomputes = view.reason_code == Reason.POLICY_FULL
        if (policy == Policy.FULL) != recomputes:
            settings = Settings.of(world.nodes[view.key].details.settings)
            self.create(replace(statement_of(world, view), policy=policy), settings)
        elif policy in (Policy.INCREMENTAL, Policy.INCREMENTAL_STRICT) and view.reason_code is not None:
            raise NotIncrementalError(
                f"view {view.name!r} cannot be maintained incrementally: {view.reason} has no incremental rule "
                f"({view.reason_code}). Rewrite the query first.",
                code=view.reason_code,
            )
        else:
            self._work.catalog.set_policy(view, policy)

    def _set_properties(self, name: str, changed: Sequence[tuple[str, str | None]]) -> str | None:
        """Define the view as it is, with these properties; its rows stay if they do not depend on them."""
        world = self._work.catalog.world()
        view = world.views[world.view_key(name)]
        named = {key.lower() for key, _ in changed}
        kept = [(key, value) for key, value in view.properties.items() if key.lower() not in named]
        kept += [(key, value) for key, value in changed if value is not None]
        settings = Settings.of(world.nodes[view.key].details.settings)
        self.create(replace(statement_of(world, view), properties=tuple(kept)), settings)
        return self.remark(view.key)

    def _set_options(self, name: str, trigger: Trigger | None, changed: Mapping[str, Any]) -> str | None:
        world = self._work.catalog.world()
        view = world.views[world.view_key(name)]
        if trigger is not None:
            self._check_trigger(world, replace(view, refresh=str(trigger)))
        if trigger is not None and trigger.when == When.IMMEDIATE:
            self._become_immediate(view)
            trigger = None
        if trigger is not None or changed:
            refresh = self._refresh_of(view) if trigger is None else str(trigger)
            self._work.catalog.set_options(view.key, replace(view.options, **changed), refresh)
        return self.remark(view.key) if changed.keys() & {"consistency", "schedule"} else None

    @staticmethod
    def _check_trigger(world: World, view: ViewRecord) -> None:
        check_immediate(world, view)
        check_readers(world, view)

    def _refresh_of(self, view: ViewRecord) -> str:
        known = self._work.catalog.world().views.get(view.key, view)
        return known.refresh

    def _become_immediate(self, view: ViewRecord) -> None:
        """What takes long is done before; then the tables are brought to a stop, and the view catches up."""
        if not view.immediate:
            self._refresh([view.name])
            self._committing.settle(view.key, f"making {view.name} IMMEDIATE")

    def remark(self, key: str) -> str | None:
        """What is to be said about a name that could not be given yet, and a SCHEDULE POLICY that decides nothing."""
        world = self._work.catalog.world()
        view = world.views.get(key)
        if view is None:  # another process has dropped it since
            return None
        said = self.names.problems(key)
        if view.options.schedule is not None and all(key not in group.convergence for group in groups_of(world)):
            said.append(f"SCHEDULE POLICY has no effect on {view.name!r} yet: no diamond ends in it")
        return ". ".join(one.rstrip(". ") for one in said) or None

    def drop(self, name: str, *, if_exists: bool = False, cascade: bool = False) -> list[str]:
        """Drop a view, with CASCADE also the views that read it; gives the names that are gone."""
        gone = attempts(lambda also: self._dropped(name, if_exists, cascade), f"the readers of {name!r}")
        self.names.settle()
        return gone

    def _dropped(self, name: str, if_exists: bool, cascade: bool) -> list[str]:
        world = self._work.catalog.world()
        if if_exists and key_of(name) not in world.views:
            return []
        key = world.view_key(name)
        readers = _readers(world, key)
        if readers and not cascade:
            direct = world.views_graph().readers(key)
            names = ", ".join(repr(world.views[r].name) for r in direct)
            kind, word = ("read model", "TABLE") if key in world.models else ("view", "MATERIALIZED VIEW")
            raise DependencyError(
                f"{kind} {world.views[key].name!r} cannot be dropped: {names} "
                f"{'reads' if len(direct) == 1 else 'read'} it. Use DROP {word} .. CASCADE."
            )
        dropped = [key, *readers]
        check_unread(world, dropped, f"DROP {world.views[key].name}")
        nodes = [node for k in dropped for node in world.views[k].nodes]
        leases = Leases(self._work.catalog, nodes, self._work.patience(world, f"dropping {world.views[key].name}"))
        with leases:
            current = self._work.catalog.world()
            if not world.same_definitions(current, nodes) or _readers(current, key) != readers:
                raise Outdated
            self._work.catalog.drop_views(dropped, leases.fence)
        self._work.leave_unused(world)
        return [world.views[k].name for k in dropped]


def _check_incremental(statement: CreateView, view: ViewRecord) -> None:
    """Who asks for INCREMENTAL is told at once. A view of an older Penstock, which did not, goes on as it was."""
    if statement.policy == Policy.INCREMENTAL and view.reason_code is not None:
        raise NotIncrementalError(
            f"view {view.name!r} cannot be maintained incrementally: {view.reason} has no incremental rule "
            f"({view.reason_code}). Rewrite the query, or choose REFRESH POLICY AUTO.",
            code=view.reason_code,
        )


def _check_settled(statement: CreateView, session: Own) -> None:
    if session.replaces(statement.query):
        raise DefinitionError(
            f"view {statement.name!r} cannot be created: Spark would replace ${{..}} in its query by a setting of this "
            "session, which may be another at the next refresh. Write the value itself, or switch that off for the "
            "session: spark.conf.set('spark.sql.variable.substitute', 'false')."
        )


def _check_late_names(world: World, definition: Definition) -> None:
    """The names by which the view's late rows will be read must be free."""
    names = late_names(definition.view.key, definition.nodes)
    for name in [late_name(definition.view.key), *names] if names else []:
        if name in world.tables or name in world.views:
            kind = "table" if name in world.tables else "materialized view"
            raise AlreadyExistsError(
                f"view {definition.view.name!r} would keep its late rows as {name!r}, and a {kind} has that name. "
                "Choose another name for the view."
            )


def _kept(world: World, definition: Definition, statement: CreateView) -> Definition:
    """A view that is replaced by one of the same plan keeps its rows: only what else is said of it is new."""
    old, own = world.views.get(definition.view.key), definition.nodes[-1]
    if old is None or not statement.initialize or not _same_rows(world, old, definition):
        return definition
    timed = (old.refresh, old.options.lag) == (definition.view.refresh, definition.view.options.lag)
    scheduled = old.scheduled_at if timed else definition.view.created_at
    view = replace(definition.view, created_at=old.created_at, scheduled_at=scheduled)
    kept = replace(own, version=world.nodes[own.name].version)
    return replace(definition, view=view, nodes=(*definition.nodes[:-1], kept))


def _same_rows(world: World, old: ViewRecord, definition: Definition) -> bool:
    """Whether what is stored of a view is what the new definition stands for too."""
    new = definition.view
    if world.nodes[old.key].version is None or old.nodes != new.nodes:
        return False
    if any(_stored(node) != _stored(world.nodes[node.name]) for node in definition.nodes):
        return False
    emitted = [(view.options.emit, view.options.lateness, view.columns) for view in (old, new)]
    return emitted[0] == emitted[1] and (new.incremental or old.query == new.query)


def _stored(node: NodeRecord) -> tuple[object, ...]:
    """What the rows in a node's table depend on, and how they lie there."""
    noted = node.details
    how = (noted.incremental, noted.reason_code, noted.types, noted.input_types, noted.lateness, noted.renamed)
    return node.fingerprint, node.schema_json, node.inputs, how, noted.settings, noted.placement


def _amended(world: World, definition: Definition) -> World:
    """The catalog as it will be with a new view in it; what the view shares with others is as it is now.

    Of a view that it replaces, and whose rows it does not keep, nothing is left: what that had consumed, and how far
    its event time had come, is not true of the new one.
    """
    view = definition.view
    if definition.nodes[-1].version is not None:
        return replace(world, views={**world.views, view.key: view})
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


def _check_filled(view: ViewRecord, reports: list[ViewReport], readers: Collection[str] = ()) -> None:
    """The view, and the readers that were planned again with it, must all have come to be."""
    own = next(r for r in reports if r.name == view.name)
    failed = [r for r in reports if key_of(r.name) in readers and r.status != Status.SUCCEEDED]
    if own.status == Status.SUCCEEDED and not failed:
        return
    blamed = next((r for r in reports if r.status == Status.FAILED), own)
    why = blamed.error or "a view that it reads, or must advance together with, was not refreshed. Try again."
    if blamed is not own and blamed.error:
        role = "which reads it," if key_of(blamed.name) in readers else "which it reads or must advance together with,"
        why = (
            f"view {blamed.name!r}, {role} failed to refresh: "
            f"{blamed.error.rstrip('. ')}. Repair that first, or let views advance on their own with CONSISTENCY NONE."
        )
    kind = LeaseLostError if blamed.reason == Reason.LEASE_LOST else PenstockError
    raise kind(f"view {view.name!r} was not created: {why}")
