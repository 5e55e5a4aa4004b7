"""The loop that keeps views fresh by themselves: it looks, asks what is due, and has it refreshed.

What is due is decided by ``due``, which knows no clock; here are the clock, the threads and the sleeping. Several
schedulers on one warehouse need not know of each other: whoever has the leases on a view's nodes refreshes it, and for
the others it is done, or still due at the next look.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from penstock.catalog import Catalog, HistoryRecord, World
from penstock.catalog.alerts import Episode
from penstock.engine.consistency import together
from penstock.engine.engine import Engine
from penstock.engine.readable import readable
from penstock.engine.report import Report, ViewReport
from penstock.engine.settings import length_of, number_of
from penstock.errors import PenstockError, RefreshError, without_values
from penstock.graph.shards import Shard
from penstock.observe.alerting import look
from penstock.schedule.asleep import marks
from penstock.schedule.due import Due, Why
from penstock.schedule.naps import Nap, settled
from penstock.schedule.parts import Part, bundled, independent, took
from penstock.schedule.plans import Outlook, outlook
from penstock.schedule.watching import Watch
from penstock.storage.locations import is_store
from penstock.vocabulary import Action, Reason

_log = logging.getLogger("penstock.schedule")

WORTH = 3.0
"""Small parts share an epoch, up to so many times what reading the catalog takes, which each of them would do."""
_BETWEEN_ALERTS = timedelta(seconds=5)
_FIRST_REST, _LONGEST_REST = timedelta(seconds=1), timedelta(minutes=1)
_SHORTER_RESTS = {Reason.HELD_BY_ANOTHER: timedelta(seconds=5), Reason.UPSTREAM_FAILED: timedelta(seconds=10)}
"""What may be over without a commit is looked at more often."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A refresh that the scheduler made: what was due and why, and what became of it."""

    due: tuple[Due, ...]
    reports: tuple[ViewReport, ...] = ()
    epoch: int | None = None
    error: str | None = None
    """What went wrong before any view was reached."""
    began: datetime
    seconds: float


@dataclass(kw_only=True)
class Tick:
    """What one look found: what was begun, and when the next one is worth while."""

    begun: list[tuple[str, ...]] = field(default_factory=list)
    wait: float = 0.0


@dataclass(kw_only=True)
class _Seen:
    """The catalog and the sources as they were at the last look, and what that meant."""

    beat: object
    world: World
    last: Mapping[str, HistoryRecord]
    saw: Mapping[str, HistoryRecord]
    alerts: set[Episode]
    seconds: float
    """What reading that took."""
    versions: Mapping[str, int | None] = field(default_factory=dict)
    outlook: Outlook | None = None


@dataclass(frozen=True, kw_only=True)
class _Rest:
    """A view that is due, and of which the last refresh came to nothing: another process has it, say. It is not asked
    for again at once, or the history would tell of nothing else."""

    until: datetime
    tries: int
    held: bool
    versions: Mapping[str, int | None]
    """Of the tables: a commit ends the rest, unless another process has the view."""

    def goes_on(self, now: datetime, versions: Mapping[str, int | None]) -> bool:
        return now < self.until and (self.held or versions == self.versions)


class Scheduler:
    """Refreshes what is due until it is told to stop. ``tell`` hears of every refresh, in the thread that made it."""

    def __init__(
        self,
        catalog: Catalog,
        engine: Callable[[], Engine],
        *,
        tell: Callable[[Finished], None] = lambda finished: None,
        clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        rest: Callable[[timedelta, Mapping[str, str]], None] = lambda idle, settings: None,
        shard: Shard | None = None,
    ):
        """``rest`` hears how long there was nothing to do, with the settings in force. ``shard``: which views it looks
        after, if not all."""
        self._catalog, self._engine = catalog, engine
        self._tell, self._clock, self._rest, self._shard = tell, clock, rest, shard
        self._watch = Watch()
        self._wake, self._stopped, self._leaving = threading.Event(), threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._busy: dict[Future[None], frozenset[str]] = {}
        self._begun: dict[str, datetime] = {}
        """When a view was last tried here: a view that another scheduler holds is not asked for in a tight loop."""
        self._resting: dict[str, _Rest] = {}
        self._seen: _Seen | None = None
        self._last_work = clock()
        self._looked = datetime.min.replace(tzinfo=timezone.utc)

    # -- from outside -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the loop. What is being refreshed is finished first."""
        self._stopped.set()
        self._wake.set()

    def finish(self) -> None:
        """End the loop when what is due now was done, each view once."""
        self._leaving.set()
        self._wake.set()

    def look_again(self) -> None:
        """Something has changed: a commit, a definition, a setting. May be called by any thread."""
        self._wake.set()

    @property
    def stopping(self) -> bool:
        return self._stopped.is_set()

    def busy(self) -> set[str]:
        """The views that are being refreshed now."""
        with self._lock:
            return set().union(*self._busy.values())

    def nap(self, catalog: Iterable[str]) -> Nap | None:
        """What to watch while nothing is due, besides the files of the catalog; None if something is, or nobody can
        tell. To be called by the loop."""
        if self._seen is None:
            return None
        tables = [table.path for table in self._seen.world.tables.values()]
        if any(map(is_store, tables)):  # where a file that is looked at tells nothing
            return None
        logs = [f"{path}/_delta_log" for path in tables]
        seen = marks([*catalog, *logs])  # first: what changes while it is being looked at is seen afterwards
        world, found = self._look(self._clock())
        if not found.quiet(self._clock()) or not settled(seen, time.time()):
            return None
        until = None if found.next is None else found.next.timestamp()
        return Nap(marks=seen, until=until, poll=length_of(world.settings, "poll_interval").total_seconds())

    # -- the loop -----------------------------------------------------------------------------------------------------

    def run(self, *, until_idle: bool = False) -> None:
        """Until ``stop``; with ``until_idle``, or after ``finish``, until nothing is due and nothing is being done."""
        done: set[str] | None = None
        with self._pool() as pool:
            while not self._stopped.is_set():
                self._wake.clear()
                if done is None and (until_idle or self._leaving.is_set()):
                    done = set()
                try:
                    tick = self.tick(pool, done)
                except PenstockError as problem:  # the catalog is away, say: it may be there again in a moment
                    if until_idle:
                        raise
                    _log.warning("the catalog cannot be asked what is due: %s", without_values(problem))
                    tick = Tick(wait=5.0)
                except Exception as problem:  # what nobody thought of is no reason to leave all views alone
                    if until_idle:
                        raise
                    where = "".join(traceback.format_tb(problem.__traceback__))
                    _log.error("what is due cannot be told: %s\n%s", type(problem).__name__, where)
                    tick = Tick(wait=5.0)
                if done is not None and not tick.begun and not self.busy():
                    return
                self._wake.wait(tick.wait)

    @contextmanager
    def _pool(self) -> Iterator[ThreadPoolExecutor]:
        pool = ThreadPoolExecutor(64, thread_name_prefix="penstock-run")  # the setting bounds how many are used
        try:
            yield pool
        finally:
            pool.shutdown(wait=True)

    def tick(self, pool: ThreadPoolExecutor, done: set[str] | None = None) -> Tick:
        """Look once, and begin what is due and fits beside what is being done; nothing of what is ``done``, to which
        what is begun is added."""
        now = self._clock()
        world, found = self._look(now)
        tick = Tick(wait=self._wait(found, now, world))
        room = number_of(world.settings, "max_concurrent_refreshes") - len(self._running())
        taken = self.busy()
        wanted = [one for one in found.due if self._may_begin(one.key, now, taken, done)] if room > 0 else []
        parts = [(part, frozenset(together(world, [one.key for one in part]))) for part in independent(world, wanted)]
        free = [part for part, reached in parts if not reached & taken]  # the others are due still when that is done
        for group in self._epochs(free)[: max(room, 0)]:
            reached = frozenset(together(world, [one.key for one in group]))
            tick.begun.append(tuple(one.key for one in group))
            for one in group:
                self._begun[one.key] = now
            if done is not None:
                done.update(one.key for one in group)
            with self._lock:
                future = pool.submit(self._refresh, group, found.left_out, world)
                self._busy[future] = reached
            future.add_done_callback(self._done)
        if self._running():
            self._last_work = now
        else:
            self._rest(now - self._last_work, world.settings)
        return tick

    def _epochs(self, parts: list[Part]) -> list[Part]:
        seen = self._seen
        return parts if seen is None else bundled(parts, lambda key: took(seen.last.get(key)), WORTH * seen.seconds)

    def _may_begin(self, key: str, now: datetime, taken: Collection[str], done: set[str] | None) -> bool:
        resting = self._resting.get(key)
        if resting is not None and self._seen is not None and resting.goes_on(now, self._seen.versions):
            return False
        return key not in taken and (done is None or key not in done)

    def _look(self, now: datetime) -> tuple[World, Outlook]:
        """What is due. Where nothing was written and no moment has come, nothing is read: that costs a fraction of a
        millisecond, and is what a scheduler does most of its life."""
        beat = self._catalog.beat()
        seen = self._seen
        if seen is None or seen.beat != beat:
            began, catalog = time.perf_counter(), self._catalog
            world, last, alerts = catalog.world(), catalog.last_refreshes(), catalog.open_alerts()
            saw = catalog.last_refreshes(that_saw_sources=True)
            taken = time.perf_counter() - began
            seen = _Seen(beat=beat, world=world, last=last, saw=saw, alerts=alerts, seconds=taken)
        newest = self._watch.look({key: table.path for key, table in seen.world.tables.items()})
        versions = {key: readable(seen.world, key, version) for key, version in newest.items()}
        if seen is not self._seen or versions != seen.versions or seen.outlook is None or not seen.outlook.quiet(now):
            seen.versions = versions
            seen.outlook = outlook(seen.world, seen.last, seen.saw, versions, self._begun, now, self._shard)
        self._seen = seen
        self._look_for_alerts(seen, now)
        assert seen.outlook is not None
        return seen.world, seen.outlook

    def _look_for_alerts(self, seen: _Seen, now: datetime) -> None:
        """Every few seconds, which is soon enough for a view that has become too old."""
        if not now - self._looked < _BETWEEN_ALERTS:  # a clock that was set back is no reason to wait
            self._looked = now
            look(self._catalog, seen.world, seen.saw, seen.versions, seen.alerts, now)

    def _wait(self, found: Outlook, now: datetime, world: World) -> float:
        """Seconds until the next look: at the next moment of a schedule, or to poll, whichever is sooner."""
        resting = (self._resting[one.key].until for one in found.due if one.key in self._resting)
        moments = [moment - now for moment in (found.next, *resting) if moment is not None and moment > now]
        return max(0.01, min([length_of(world.settings, "poll_interval"), *moments]).total_seconds())

    def _running(self) -> list[Future[None]]:
        with self._lock:
            return [future for future in self._busy if not future.done()]

    def _done(self, future: Future[None]) -> None:
        with self._lock:
            self._busy.pop(future, None)
        self._wake.set()

    def _refresh(self, group: Part, left_out: Collection[str], world: World) -> None:
        began = self._clock()
        error = None
        try:
            report: Report | Mapping[str, ViewReport] = self._engine().refresh(
                [one.key for one in group], leave=left_out, due={one.key: one.why.value for one in group}, seen=world
            )
        except RefreshError as problem:
            report = problem.report
        except PenstockError as problem:
            report, error = {}, without_values(problem)
        except Exception as problem:  # a scheduler outlives whatever goes wrong with one view
            report, error = {}, without_values(problem)
            where = "".join(traceback.format_tb(problem.__traceback__))  # without the message, which may quote rows
            _log.error("refreshing %s failed: %s\n%s", ", ".join(one.key for one in group), error, where)
        self._rest_after(group, report)
        finished = Finished(
            due=group, reports=tuple(report.values()), epoch=getattr(report, "epoch", None), error=error, began=began,
            seconds=(self._clock() - began).total_seconds(),
        )  # fmt: skip
        try:
            self._tell(finished)
        except Exception:
            _log.exception("telling of a refresh failed")

    def _rest_after(self, group: tuple[Due, ...], report: Mapping[str, ViewReport]) -> None:
        """Of what came to nothing the next try is a little later each time."""
        now, versions = self._clock(), self._seen.versions if self._seen is not None else {}
        for one in group:
            found = report.get(one.key)
            idle = found is not None and found.action == Action.NO_DATA and one.why == Why.COMMIT
            if found is not None and found.action != Action.SKIP and not idle:
                self._resting.pop(one.key, None)
                continue
            reason, before = None if found is None else found.reason, self._resting.get(one.key)
            tries = before.tries + 1 if before is not None and before.versions == versions else 0
            longest = _LONGEST_REST if reason is None else _SHORTER_RESTS.get(reason, _LONGEST_REST)
            until, held = now + min(_FIRST_REST * 2 ** min(tries, 6), longest), reason == Reason.HELD_BY_ANOTHER
            self._resting[one.key] = _Rest(until=until, tries=tries, held=held, versions=versions)
