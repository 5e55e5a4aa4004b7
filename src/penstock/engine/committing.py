"""Committing what was written to tables together with the IMMEDIATE views that follow: all of it is seen, or nothing.

1. Leases on the tables and on the nodes of the views.
2. Intents in the catalog: from now on the others read these tables at the versions before.
3. One commit a table, then one epoch of the views, which sees these commits.
4. One transaction of the catalog shows the tables and the views, and takes the intents away.

What fails on the way is undone, by whoever made it or, if that has died, by the next who writes the table. Undoing
always makes a version, so that one who was only paused finds the place of its own commit taken.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from penstock.catalog import Fence, Intent, TableRecord, World
from penstock.catalog.leases import Leases, Patience
from penstock.catalog.transactions import Intents
from penstock.engine.events import Telling
from penstock.engine.immediate import check_immediate, immediate_readers
from penstock.engine.reading import pin
from penstock.engine.replanning import Renewal, Replanning
from penstock.engine.report import Report, ViewReport
from penstock.engine.settings import lock_timeout
from penstock.engine.sources import Relation, pinned
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
from penstock.errors import ConflictError, LeaseLostError, PenstockError, RefreshError, StoreError, WarehouseError
from penstock.sql.names import key_of
from penstock.storage.branch import same_rows, undo
from penstock.storage.delta_log import Snapshot, first_line, snapshot_of
from penstock.storage.files import Held
from penstock.storage.log_replay import Action
from penstock.storage.log_writer import TableGone, VersionTaken, put, said
from penstock.storage.runs import RUN
from penstock.vocabulary import Reason, Status, When

_CHECKPOINT_EVERY = 100
_TRIES = 20

_log = logging.getLogger("penstock")


@dataclass(frozen=True, kw_only=True)
class Write:
    """What is to become of a table: one commit on the version that it was computed from."""

    table: TableRecord
    base: Snapshot
    actions: Sequence[Action]
    operation: str
    log: Held | None = None
    """Held before the table was looked at; see ``held_log``."""


class Committing:
    def __init__(self, work: Workplace):
        self._work = work

    def commit(
        self, writes: Sequence[Write], doing: str, *, becoming: str | None = None, known: World | None = None
    ) -> Report:
        """Commit writes with the IMMEDIATE views that follow; ``ConflictError`` if another was first on one of them.

        ``becoming``: a view that is IMMEDIATE from then on. ``known``: the catalog as it was a moment ago.
        """
        by_key, worlds = {write.table.key: write for write in writes}, [] if known is None else [known]

        def attempt(also: set[str]) -> tuple[Report, World]:
            world = worlds.pop() if worlds else self._work.catalog.world()
            return _Commit(self._work, by_key, doing, becoming).run(world, also), world

        with disk_errors(doing):
            report, world = attempts(attempt, "the views")
        self._work.vacuum_if_due(world)
        return report

    def settle(self, key: str, doing: str) -> None:
        """Make a view that is there IMMEDIATE: its tables are brought to a stop for a moment, and it catches up.

        Its tables get an empty commit. So who has looked at one of them before, and does not know of the view, finds
        that another was first, and looks again.
        """
        for _ in range(_TRIES):
            world = self._work.catalog.world()
            if key not in world.views:  # dropped in this moment
                return
            tables = sorted(world.views_graph().ancestors([key]) & set(world.tables))
            if any(table in world.intents for table in tables):
                with self.alone(tables, doing):
                    continue
            writes = [self._stop(world, table) for table in tables]
            try:
                self.commit(writes, doing, becoming=key)
                return
            except ConflictError:
                continue
        raise ConflictError(f"{doing}: its tables are being written by others all the time. Try again.")

    @staticmethod
    def _stop(world: World, key: str) -> Write:
        return Write(table=world.tables[key], base=pin(world, key).snapshot(), actions=(), operation="SYNC")

    @contextmanager
    def alone(self, tables: Iterable[str], doing: str) -> Iterator[World]:
        """No transaction commits to these tables meanwhile; what one has left there that died is undone."""
        keys = sorted(tables)
        leases = Leases(self._work.catalog, keys, _patience(self._work, self._work.catalog.world(), doing))
        with leases:
            world = self._work.catalog.world()
            with disk_errors(doing):
                undone = undo_left(self._work, world, keys, leases.fence)
            yield self._work.catalog.world() if undone else world


class _Commit:
    """One attempt."""

    def __init__(self, work: Workplace, writes: dict[str, Write], doing: str, becoming: str | None):
        self._work = work
        self._writes = writes
        self._doing = doing
        self._becoming = becoming
        self._run = uuid.uuid4().hex[:12]
        self._started = datetime.now(timezone.utc)

    def run(self, known: World, also: Collection[str]) -> Report:
        known = self._amended(known)
        followers = immediate_readers(known, self._writes)
        nodes = [*with_upstream(known, followers), *also]
        patience = _patience(self._work, known, self._doing)
        worlds: list[World] = []
        intents: list[Intent] = []

        def decide(world: World, fence: Fence) -> list[Intent]:
            """When the leases are there: look again, and say what is to be written."""
            worlds.append(self._amended(world))
            if self._holds_still(known, worlds[-1], followers, nodes):
                self._check_first(world)
                intents.extend(self._intents(fence))
            return intents

        leases = Leases(
            self._work.catalog, [*self._writes, *nodes], patience, then=Intents.beginning(decide)
        )  # fmt: skip
        with leases:
            (world,) = worlds
            if not intents:
                self._check_tables(world)
                self._follow_undone(undo_left(self._work, world, self._writes, leases.fence))
                raise Outdated
            try:
                report, renewed = self._commit(world, followers, leases)
            except Outdated:  # before anything was committed
                Intents(self._work.catalog).close({i.source: i.base for i in intents}, leases.fence)
                raise
            except BaseException:
                self._undo(intents, leases.fence)
                raise
        if renewed:
            self._work.leave_unused(world)
        return report

    def _holds_still(self, known: World, world: World, followers: list[str], nodes: Collection[str]) -> bool:
        """Whether nothing has changed since the first look, and nobody has left anything in these tables."""
        return (
            not world.intents.keys() & self._writes.keys()
            and all(self._is_there(world, write) for write in self._writes.values())
            and immediate_readers(world, self._writes) == followers
            and known.same_definitions(world, nodes)
        )

    def _intents(self, fence: Fence) -> list[Intent]:
        return [
            Intent(source=key, run=self._run, base=write.base.version, owner=fence.owner)
            for key, write in self._writes.items()
        ]

    def _amended(self, world: World) -> World:
        """The catalog with the view that is to become IMMEDIATE."""
        view = None if self._becoming is None else world.views.get(self._becoming)
        if view is None:
            return world
        view = replace(view, refresh=str(When.IMMEDIATE))
        check_immediate(world, view)
        return replace(world, views={**world.views, view.key: view})

    def _check_tables(self, world: World) -> None:
        for write in self._writes.values():
            if not self._is_there(world, write):
                raise ConflictError(
                    f"table {write.table.name!r} was dropped, or made again, by another process since {self._doing} "
                    "began. Nothing has changed."
                )

    def _follow_undone(self, undone: Mapping[str, int]) -> None:
        """What was undone is as it was before: a write that was computed from that holds for what is there now."""
        for key, version in undone.items():
            write = self._writes[key]
            now = snapshot_of(write.table.path, version)
            if same_rows(now, write.base):
                self._writes[key] = replace(write, base=now)

    @staticmethod
    def _is_there(world: World, write: Write) -> bool:
        known = world.tables.get(write.table.key)
        return known is not None and (known.path, known.created_at) == (write.table.path, write.table.created_at)

    # -- from the intents on, whatever fails is undone ----------------------------------------------------------------

    def _commit(self, world: World, followers: list[str], leases: Leases) -> tuple[Report, bool]:
        """Gives what became of the views, and whether one of them was planned again."""
        sources = pinned(world, with_upstream(world, followers))
        renewal = Replanning(self._work.session, sources, self._work.locating(world)).renewed(world, followers)
        scope = [*followers, *(key for key in renewal.definitions if key not in followers)]
        require(leases, (), with_upstream(renewal.world, scope))
        for key, write in self._writes.items():
            self._put(write)
            if key in sources:
                sources[key].after = snapshot_of(write.table.path, write.base.version + 1)
        return self._follow(world, renewal, scope, sources, leases), bool(renewal.definitions)

    def _put(self, write: Write) -> None:
        about = said(write.operation, **{RUN: self._run})
        version = write.base.version + 1
        try:
            put(write.table.path, version, [about, *write.actions], checkpoint_every=_CHECKPOINT_EVERY, log=write.log)
        except (VersionTaken, TableGone):
            raise self._too_late(write) from None

    def _check_first(self, world: World) -> None:
        """An intent must not send readers back to a version that is not the one they see."""
        for key, write in self._writes.items():
            if pin(world, key).version != write.base.version:
                raise self._too_late(write)

    def _too_late(self, write: Write) -> ConflictError:
        return ConflictError(
            f"table {write.table.name!r} was changed by another writer since {self._doing} began, and the first one "
            "wins. Nothing has changed; try again."
        )

    def _follow(
        self, world: World, renewal: Renewal, scope: list[str], sources: Mapping[str, Relation], leases: Leases
    ) -> Report:
        """The epoch of the views, and publishing all."""
        catalog, versions = self._work.catalog, {key: w.base.version + 1 for key, w in self._writes.items()}
        if not scope:
            Intents(catalog).close(versions, leases.fence, last=True)
            leases.given_back()
            return Report([], world.epoch)
        request = Request(
            nodes=with_upstream(renewal.world, scope), renewed=renewal.reasons, failing=renewal.failing_nodes()
        )
        with (
            self._work.claimed(world, renewal.definitions.values()) as claimed,
            Telling(self._work.refreshing) as told,
        ):
            result = self._work.run(claimed.world(renewal.world), sources, leases, request, told)
            reports = [r for r in view_reports(renewal.world, result) if key_of(r.name) in scope]
            self._check(world, reports)
            known = world.nodes.keys() | {node.name for d in claimed.definitions for node in d.nodes}
            publication = only(result.publication, known)
            publication.tables, publication.definitions = versions, list(claimed.definitions)
            publication.immediate = set() if self._becoming is None else {self._becoming}
            publication.history = [recorded(r, world, self._started) for r in reports]
            publication.last = not renewal.definitions
            report = Report(reports, catalog.publish(publication, leases.fence))
            if publication.last:
                leases.given_back()
            told.ended(reports, report.epoch, publication, claimed.world(renewal.world))
            return report

    def _check(self, world: World, reports: Sequence[ViewReport]) -> None:
        failed = [report for report in reports if report.status != Status.SUCCEEDED]
        if not failed:
            return
        blamed = next((report for report in failed if report.status == Status.FAILED), failed[0])
        if blamed.reason == Reason.LEASE_LOST:
            raise LeaseLostError(blamed.error or "")
        self._work.catalog.record([recorded(report, world, self._started) for report in failed])
        raise RefreshError(
            f"{self._doing} was not done: view {blamed.name!r} is REFRESH IMMEDIATE and cannot follow: "
            f"{(blamed.error or str(blamed.reason)).rstrip('. ')}. Nothing has changed.",
            report=Report(list(reports), world.epoch),
        )

    def _undo(self, intents: Iterable[Intent], fence: Fence) -> None:
        """Leave the tables as they were. What cannot be undone now, the next who writes the table undoes."""
        try:
            still = [intent for intent in intents if self._is_open(intent)]
            undo_intents(self._work, self._work.catalog.world(), still, fence, sealing=False)
        except (PenstockError, OSError) as problem:
            _log.warning("what was not published could not be undone, and will be by the next writer: %s", problem)

    def _is_open(self, intent: Intent) -> bool:
        """Whether it was neither published, nor undone by another."""
        return Intents(self._work.catalog).all().get(intent.source) == intent


@contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """What could not be written is said, with what to do."""
    try:
        yield
    except StoreError as problem:
        raise WarehouseError(f"{doing} failed: {problem} Nothing was changed; try again.") from problem
    except OSError as problem:
        raise WarehouseError(
            f"{doing} failed: {first_line(problem)}. Nothing was changed; see that its disk has room and can be "
            "written, and try again."
        ) from problem


def undo_left(work: Workplace, world: World, tables: Iterable[str], fence: Fence) -> Mapping[str, int]:
    """Undo what others have left in tables that are leased here: they have died, or lost their leases.

    Gives the versions of these tables from which on that is so.
    """
    return undo_intents(work, world, [world.intents[key] for key in tables if key in world.intents], fence)


def undo_intents(
    work: Workplace, world: World, intents: Sequence[Intent], fence: Fence, *, sealing: bool = True
) -> Mapping[str, int]:
    """``sealing``: whoever had these intents may only be paused, and is not to commit when it goes on."""
    there = [intent for intent in intents if intent.source in world.tables]
    versions = {intent.source: _undone(world.tables[intent.source].path, intent, sealing) for intent in there}
    if versions:
        Intents(work.catalog).close(versions, fence)
    return versions


def _undone(path: str, intent: Intent, sealing: bool) -> int:
    for _ in range(_TRIES):
        try:
            return undo(path, intent.base, intent.run, sealing=sealing)
        except VersionTaken:
            continue
    raise ConflictError(f"the table at {path!r} is being written by others all the time.")


def _patience(work: Workplace, world: World, doing: str) -> Patience:
    def named(node: str) -> str:
        return next((view.name for view in world.owners(node)), world.display_name(node))

    return Patience(lock_timeout(world.settings), lambda who: work.tell(f"{doing}: waiting for {who}"), named)
