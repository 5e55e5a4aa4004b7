"""Refreshing views, and what keeps a warehouse in order: the epoch around the catalog and its leases."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from penstock import points
from penstock.catalog import Catalog, Fence, HistoryRecord, World
from penstock.catalog.leases import Leases
from penstock.engine.adopting import Adopting
from penstock.engine.committing import Committing
from penstock.engine.consistency import hold_back, not_due, together
from penstock.engine.events import Telling
from penstock.engine.immediate import immediate_nodes, standing, with_followers
from penstock.engine.outcomes import note_outcomes, versions_of
from penstock.engine.past import Past
from penstock.engine.plain_views import PlainViews
from penstock.engine.read_models import ReadModels
from penstock.engine.replanning import Replanning
from penstock.engine.report import Report, ViewReport
from penstock.engine.schemas import Schemas
from penstock.engine.session import Spark
from penstock.engine.spark_views import SparkViews
from penstock.engine.steps import Request, Result
from penstock.engine.vacuum import vacuum_views
from penstock.engine.views import Views
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
from penstock.errors import DefinitionError, LeaseLostError, RefreshError
from penstock.sql.names import key_of
from penstock.storage.vacuum import Freed
from penstock.vocabulary import Action, Reason, Status

_LOOK_AGAIN = 0.5
"""Seconds between two looks at a lease that is waited for."""


class _Held(Exception):
    """Another process is refreshing some of the views, and may be waited for."""


class Engine:
    def __init__(self, path: str, spark: Spark, catalog: Catalog, progress: Callable[[str], None]):
        self._work = Workplace(path, spark, catalog, progress)
        self.committing = Committing(self._work)
        self.spark_views = SparkViews(self._work)
        self.views = Views(self._work, self.committing, self.spark_views, self.refresh)
        self.past = Past(self._work, self.refresh, self.views.names)
        self.plain = PlainViews(self._work, self.views)
        self.models = ReadModels(self._work, self.views)
        self.adopting = Adopting(self._work)
        self.schemas = Schemas(self._work, self.views.names)
        self.locate, self.tell, self.leave_unused = self._work.locate, self._work.tell, self._work.leave_unused
        self.refreshing, self.worked = self._work.refreshing, self._work.worked
        self._said: set[str] = set()
        """Views of which was said that they have other settings than the session."""

    def replay_late(self, name: str) -> Report:
        """Take the rows that came too late for a view after all, and refresh it."""
        world = self._work.catalog.world()
        view = world.views[world.view_key(name)]
        late = {node for node in view.nodes if world.nodes[node].details.late}
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
        leave: Collection[str] = (),
        due: Mapping[str, str] | None = None,
        seen: World | None = None,
    ) -> Report:
        """Refresh these views (all without names) with everything upstream and their groups, in one epoch.

        ``full``: these views are recomputed; what comes with them is maintained. ``wait``: for how long another process
        that refreshes some of them is waited for; then those are skipped. ``leave``: views that are left as they are.
        ``due``: why it is time for these views, for the history. ``seen``: the catalog as the caller has just read it,
        which need not be read once more to know what to lease; what it says is checked under the leases.
        """
        wanted = None if names is None else list(names)
        until = time.monotonic() + wait.total_seconds()
        looks = itertools.chain([] if seen is None else [seen], iter(self._work.catalog.world, None))
        while True:
            try:
                report, world, read = attempts(
                    lambda also: self._refreshed(next(looks), wanted, full, replayed, until, also, leave, due),
                    "the views",
                )
                break
            except _Held:
                self._work.tell("waiting for another process that is refreshing")
                points.reached(points.WAIT)
                time.sleep(_LOOK_AGAIN)
        self._say_settings(report.values())
        self.views.names.settle_late(world)
        note_outcomes(self._work.catalog, world, report.values(), read)
        self._work.vacuum_if_due(world)
        if report.failed:
            raise _failure(report)
        return report

    def _refreshed(
        self,
        world: World,
        names: list[str] | None,
        full: bool,
        replayed: Collection[str],
        until: float,
        also: Collection[str],
        leave: Collection[str],
        due: Mapping[str, str] | None,
    ) -> tuple[Report, World, dict[str, int | None]]:
        """One attempt, from a first look at the catalog; gives what was done, the catalog of then, and the versions of
        the tables that were read.

        ``Outdated`` if definitions changed between a first look and having the leases.

        ``_Held`` if another process has some of them and there is time to wait for it.
        """
        if names is not None and due is not None:  # what was dropped since the scheduler looked is no longer due
            names = [name for name in names if key_of(name) in world.views]
        keys = [world.view_key(name) for name in names] if names is not None else list(world.views)
        started = datetime.now(timezone.utc)
        scope = with_followers(world, together(world, keys))
        recompute = {node for key in keys for node in world.views[key].nodes} if full else set()
        moving = immediate_nodes(world) - set(also) - recompute  # with the tables, not with this epoch
        if replayed:
            moving -= {node for key in scope for node in world.views[key].nodes}
        nodes = [node for node in dict.fromkeys([*with_upstream(world, scope), *also]) if node not in moving]
        leases = Leases(self._work.catalog, nodes, began=started)
        with leases as held:
            if held and time.monotonic() < until:
                raise _Held
            current = self._work.catalog.world()
            added = names is None and world.views.keys() != current.views.keys()
            if added or not world.same_definitions(current, nodes) or _joined(world, current, scope):
                raise Outdated
            looked = self.spark_views.look(current, scope)
            read = with_upstream(current, scope | (current.views.keys() & set(looked.reads)))
            current, sources = self._work.pinned(current, read, looked.reads)
            replanning = Replanning(self._work.session, sources, self._work.locating(current), looked)
            renewal = replanning.renewed(current, scope)
            amended = renewal.world
            scope |= renewal.definitions.keys()
            nodes = with_upstream(amended, scope)
            renewed = {node for definition in renewal.definitions.values() for node in definition.view.nodes}
            left = standing(current, moving.intersection(nodes) - renewed, sources)
            require(leases, {*held, *left}, nodes)
            self._seal(amended, renewal.sealed, leases.fence)
            periodic = any(view.options.every is not None for view in amended.views.values())
            asked = full or replayed or not periodic
            request = Request(
                nodes=nodes,
                recompute={node for key in keys for node in amended.views[key].nodes} if full else set(),
                held=held,
                waiting=_left(amended, leave) | (set() if asked else not_due(amended, self._work.catalog.changed_at())),
                replayed=replayed,
                renewed=renewal.reasons,
                failing=renewal.failing_nodes(),
                standing=left,
            )
            with (
                self._work.claimed(current, renewal.definitions.values()) as claimed,
                Telling(self._work.refreshing) as told,
            ):
                try:
                    result = self._work.run(claimed.world(amended), sources, leases, request, told)
                except KeyboardInterrupt:
                    self._work.catalog.record(
                        _interrupted(amended, key, started) for key in amended.views if key in nodes
                    )
                    raise
                reports = hold_back(amended, result, view_reports(amended, result))
                for one in reports:
                    one.remark = renewal.remarks.get(key_of(one.name))
                done = {key_of(one.name) for one in reports if one.status == Status.SUCCEEDED}
                result.publication.definitions = [d for d in claimed.definitions if d.view.key in done]
                history = [recorded(r, current, started, due) for r in reports]
                published = self._publish(result, reports, history, current, leases.fence)
                told.ended(published.values(), published.epoch, result.publication, claimed.world(amended))
                return published, current, versions_of(sources)

    def _seal(self, world: World, sealed: Mapping[str, str], fence: Fence) -> None:
        """Keep that views are planned as another Penstock has planned them, so that the next process need not look."""
        mine = {key: told for key, told in sealed.items() if key in fence.nodes}
        nodes = {key: replace(world.nodes[key].details, seal=told) for key, told in mine.items()}
        if nodes:
            with suppress(LeaseLostError):  # which is told when there is something to publish
                self._work.catalog.set_details(nodes, fence)

    def _publish(
        self, result: Result, reports: list[ViewReport], history: list[HistoryRecord], before: World, fence: Fence
    ) -> Report:
        """Publish an epoch that moved something; of one that did not, keep the history."""
        known = before.nodes.keys() | {n.name for d in result.publication.definitions for n in d.nodes}
        moved = only(result.publication, known)
        if moved.empty:
            self._work.catalog.record(history)
            return Report(reports, before.epoch)
        moved.history = history
        try:
            number = self._work.catalog.publish(moved, fence)
        except LeaseLostError as problem:
            lost: dict[str, Any] = {
                "status": Status.FAILED, "action": Action.SKIP, "reason": Reason.LEASE_LOST, "error": str(problem),
            }  # fmt: skip
            self._work.catalog.record([replace(record, **lost) for record in history])
            return Report([replace(report, **lost, told=str(problem)) for report in reports], before.epoch)
        if moved.definitions:
            self._work.leave_unused(before)
        return Report(reports, number)

    def _say_settings(self, reports: Iterable[ViewReport]) -> None:
        """Say once of each view that it has other settings than the session."""
        for report in reports:
            if report.unlike and report.name not in self._said:
                self._said.add(report.name)
                self._work.tell(f"view {report.name!r} was computed under its own {', '.join(report.unlike)}")

    def vacuum(self, name: str | None = None) -> Freed:
        """Delete what epochs beyond the setting ``retention`` have left, of one view or of all."""
        world = self._work.catalog.world()
        nodes = None if name is None else world.views[world.view_key(name)].nodes
        return vacuum_views(self._work.catalog, self._work.folders, nodes)


def _joined(before: World, now: World, scope: set[str]) -> bool:
    """Whether views that were defined since a first look must come along: they made a diamond, or follow at once."""
    if before.views == now.views and before.settings == now.settings:
        return False
    return not with_followers(now, together(now, [key for key in scope if key in now.views])) <= scope


def _left(world: World, views: Iterable[str]) -> set[str]:
    """Those of the views that can be left as they are: they have rows."""
    return {key for key in views if key in world.views and world.nodes[key].version is not None}


def _failure(report: Report) -> RefreshError:
    first, *more = report.failed
    others = f" {', '.join(repr(view.name) for view in more)} failed too; the report says why." if more else ""
    if first.reason == Reason.LEASE_LOST:
        return RefreshError(f"nothing was refreshed: {first.error}", report=report)
    held = ", ".join(repr(view.name) for view in report.values() if view.reason == Reason.GROUP_FAILED)
    also = f" {held} must advance together with it, and wait too." if held else ""
    return RefreshError(
        f"view {first.name!r} failed to refresh: {(first.error or '').rstrip('. ')}.{others}{also} "
        f"The views that do not depend on {'them' if more else 'it'} were refreshed and published.",
        report=report,
    )


def _interrupted(world: World, key: str, started: datetime) -> HistoryRecord:
    """The record of a view whose refresh was interrupted; nothing of it was published."""
    seconds = (datetime.now(timezone.utc) - started).total_seconds()
    return HistoryRecord(
        epoch=world.epoch, view=key, status=Status.FAILED, action=Action.SKIP, strategy=None, reason=Reason.INTERRUPTED,
        rows_inserted=0, rows_deleted=0, seconds=seconds, started_at=started,
        error="interrupted before anything was published. Refresh again.",
    )  # fmt: skip
