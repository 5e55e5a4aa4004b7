"""Schedulers at work on the made-up warehouse, played: what is due is told by the project's own ``due``.

What things take was measured before. There is no clock, and no chance beyond the seed. A scheduler is one process of
Python: looking, the catalog and small changes are its own work, one after the other; what larger ones take beyond that
is done beside it, in two lanes. Sources commit at even intervals, each with a beginning of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from random import Random

from penstock.bench.ten_thousand.made_up import FIRST_VIEW, FURTHER_VIEW, NOTHING_TO_DO, MadeUp
from penstock.graph.groups import Group, groups
from penstock.graph.lags import TargetLag, effective_lags
from penstock.graph.sets import Sets
from penstock.graph.shards import sharded
from penstock.schedule.due import Due, Plan, State, due, next_moment
from penstock.schedule.parts import Part, bundled
from penstock.schedule.scheduler import WORTH

START = datetime(2026, 1, 5, tzinfo=timezone.utc)
_LEAST_LAG = timedelta(minutes=1)
_POLL = 1.0
LANES = 2
"""The setting ``max_concurrent_refreshes``."""
_REST = 1.0
"""Seconds after which a view that another scheduler had is asked for again."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """How the work is done."""

    name: str
    schedulers: int
    shards: bool = False
    """Whether each has views of its own; else all look at all, and leases decide."""
    catalogs: int = 1
    bundles: bool = True
    """Whether small parts go into one epoch, where there are many."""


@dataclass(frozen=True, kw_only=True)
class Takes:
    """Seconds on a catalog with all views; both are in proportion to how many these are."""

    look: float
    """To see what is due, when something was published since."""
    epoch: float
    """Of an epoch, beside the views: reading the catalog, leases, publishing."""


@dataclass(kw_only=True)
class Played:
    seconds: float
    busy: list[float]
    """Of each scheduler, the share of the time in which it did something."""
    within: list[float]
    """Of each view with a target, the share of moments at which it was kept."""
    epochs: int = 0
    refreshes: int = 0
    in_vain: int = 0
    """Epochs that another scheduler had the leases of."""
    looks: int = 0
    changed: int = 0
    """Refreshes that had something to do: each is a row of the history."""
    work: float = 0.0
    """Seconds that the refreshes took, without the catalog."""

    @property
    def kept(self) -> float:
        """The share of views that are within their target at 95 of 100 moments."""
        return sum(share >= 0.95 for share in self.within) / max(len(self.within), 1)

    @property
    def transactions(self) -> float:
        """Writing ones a second: taking leases, publishing or recording, giving leases back; in vain, two."""
        return (3 * self.epochs + 2 * self.in_vain) / self.seconds


class Play:
    def __init__(self, made: MadeUp, way: Way, takes: Takes, seed: int = 1):
        self._made, self._way, self._takes = made, way, takes
        graph, views = made.graph(), set(made.views)
        found = groups(graph, views)
        self._upstream = {key: graph.ancestors([key]) for key in views}
        self._group = {key: group.members for group in found for key in group.members}
        said = {key: TargetLag(view.lag) for key, view in made.views.items() if view.lag or view.downstream}
        lags = effective_lags(said, graph, _LEAST_LAG)
        self._plans = {
            key: Plan(key=key, trigger=view.trigger, lag=lags[key].length if key in lags else None, since=START)
            for key, view in made.views.items()
        }
        random = Random(seed)
        self._phase = {source: random.random() * every for source, every in made.every.items()}
        self._seen = dict.fromkeys(views, START)
        """The data time of each view: nothing is older than the beginning."""
        self._begun = dict(self._seen)
        self._taken: dict[str, tuple[datetime, _Desk]] = {}
        """Until when a view's lease is held, and by whom."""
        self._took = dict.fromkeys(views, FURTHER_VIEW)
        """Seconds of the last refresh of each view."""
        self._good = dict.fromkeys(views, 0.0)
        self._counted = dict.fromkeys(views, 0.0)
        whose = sharded(graph, views, found, way.schedulers) if way.shards else {}
        self._desks = [
            _Desk(
                plans=[plan for key, plan in self._plans.items() if not whose or whose[key].number == number],
                groups=[group for group in found if not whose or whose[group.members[0]].number == number],
            )
            for number in range(1, way.schedulers + 1)
        ]

    def run(self, length: timedelta) -> Played:
        played = Played(seconds=length.total_seconds(), busy=[0.0] * len(self._desks), within=[])
        ahead = [(START + timedelta(seconds=0.01 * number), number) for number in range(len(self._desks))]
        end = START + length
        while ahead[0][0] < end:
            now, number = heapq.heappop(ahead)
            until, worked = self._turn(self._desks[number], now, played)
            played.busy[number] += worked / played.seconds
            heapq.heappush(ahead, (until, number))
        for key, plan in self._plans.items():
            if plan.lag is not None:
                self._count(key, end)
                played.within.append(self._good[key] / played.seconds)
        return played

    # -- one scheduler ------------------------------------------------------------------------------------------------

    def _turn(self, desk: _Desk, now: datetime, played: Played) -> tuple[datetime, float]:
        """A look, and one epoch if anything is due; gives when it looks again, and how long it worked."""
        if desk.lanes[0] > now:
            return desk.lanes[0], 0.0
        look = self._takes.look / self._way.catalogs
        played.looks += 1
        states = {plan.key: self._state(plan, now) for plan in desk.plans}
        found = due(desk.plans, states, now, desk.groups)
        begins = now + timedelta(seconds=look)
        parts = self._parts(one for one in found if desk.resting.get(one.key, now) <= now)
        free = [part for part in parts if id(desk) not in self._holders((one.key for one in part), now)]
        if not free:
            moments = (next_moment(plan, states[plan.key], now) for plan in desk.plans)
            next_one = min((moment for moment in moments if moment is not None), default=now)
            wait = min(max((next_one - now).total_seconds(), 0.01), _POLL)
            return begins + timedelta(seconds=wait), look
        most_urgent = bundled(free, self._took.__getitem__, WORTH * look)[0] if self._way.bundles else free[0]
        chosen = [one.key for one in most_urgent]
        reached = self._reached(chosen)
        overhead = self._takes.epoch / self._way.catalogs
        if self._holders(chosen, begins):
            played.in_vain += 1
            desk.resting |= dict.fromkeys(chosen, begins + timedelta(seconds=overhead + _REST))
            return begins + timedelta(seconds=overhead), look + overhead
        new = [key for key in reached if self._news(key, begins)]
        own, beside = self._work(reached, new)
        seconds = overhead + own
        until = begins + timedelta(seconds=seconds)
        ends = until + timedelta(seconds=beside)
        heapq.heapreplace(desk.lanes, ends)
        for key in reached:
            self._count(key, ends)
            self._seen[key] = self._begun[key] = begins
            self._taken[key] = ends, desk
        played.epochs += 1
        played.refreshes += len(reached)
        played.changed += len(new)
        played.work += own + beside
        return until, look + seconds

    def _state(self, plan: Plan, now: datetime) -> State:
        behind = plan.lag is None and self._news(plan.key, now)
        return State(data_time=self._seen[plan.key], begun=self._begun[plan.key], behind=behind)

    def _holders(self, keys: Iterable[str], now: datetime) -> set[int]:
        """Who has leases that an epoch of these views needs."""
        held = (self._taken[key] for key in self._reached(keys) if key in self._taken)
        return {id(desk) for until, desk in held if until > now}

    def _parts(self, found: Iterable[Due]) -> list[Part]:
        """What is due, in parts that share no view; the most urgent first."""
        sets, wanted = Sets(), list(found)
        parts: dict[str, list[Due]] = {}
        for one in wanted:
            sets.join(list(self._reached([one.key])))
        for one in wanted:
            parts.setdefault(sets.of(one.key), []).append(one)
        return [tuple(members) for members in parts.values()]

    def _reached(self, keys: Iterable[str]) -> set[str]:
        """These views, what must advance together with them, and all that these read."""
        found = {member for key in keys for member in self._group[key]}
        return found.union(*(self._upstream[key] for key in found)) & self._made.views.keys()

    # -- what it takes, and what comes of it --------------------------------------------------------------------------

    def _work(self, keys: Collection[str], new: Collection[str]) -> tuple[float, float]:
        """Seconds of the scheduler's own, and beside it."""
        self._took |= {
            **dict.fromkeys(keys, NOTHING_TO_DO),
            **{k: FURTHER_VIEW + self._made.views[k].more for k in new},
        }
        own = (FIRST_VIEW - FURTHER_VIEW + FURTHER_VIEW * len(new) if new else 0.0) + NOTHING_TO_DO * len(keys)
        return own, sum(self._made.views[key].more for key in new)

    def _news(self, key: str, now: datetime) -> bool:
        """Whether a table that a view reads, directly or not, has a commit that it has not seen."""
        seen = self._seen[key]
        return any(self._committed(name, now) > seen for name in self._upstream[key] if name in self._phase)

    def _committed(self, source: str, now: datetime) -> datetime:
        every, phase = self._made.every[source], self._phase[source]
        passed = (now - START).total_seconds()
        return START + timedelta(seconds=(passed - phase) // every * every + phase)

    def _count(self, key: str, now: datetime) -> None:
        """Add the moments since the last time at which the view was no older than it may get."""
        lag = self._plans[key].lag
        if lag is not None:
            passed, fresh = (now - START).total_seconds(), (self._seen[key] + lag - START).total_seconds()
            self._good[key] += max(min(passed, fresh) - self._counted[key], 0.0)
            self._counted[key] = passed


@dataclass(kw_only=True)
class _Desk:
    """What one scheduler looks after."""

    plans: list[Plan]
    groups: list[Group]
    lanes: list[datetime] = field(default_factory=lambda: [START] * LANES)
    """When each is free."""
    resting: dict[str, datetime] = field(default_factory=dict)


def played(made: MadeUp, way: Way, takes: Takes, length: timedelta) -> Played:
    return Play(made, way, takes).run(length)
