"""The warehouse that is made up: teams with sources, and views over them in the shapes that such graphs have.

Pure, and the same each time: what is random has a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TypeVar

from penstock.graph.dag import Dag
from penstock.sql.triggers import MANUAL, Trigger
from penstock.vocabulary import When

VIEWS_A_TEAM = 200
"""Of which one in a hundred also reads a view of another team."""

FIRST_VIEW, FURTHER_VIEW, NOTHING_TO_DO = 0.031, 0.016, 0.0005
"""Seconds of a small refresh on record (docs/benchmarks.md: chains, nothing): one view, each further one, one that has
nothing to do."""

_Item = TypeVar("_Item")

_MORE = ((80, (0.0, 0.0)), (15, (0.1, 0.8)), (4, (1.0, 5.0)), (1, (10.0, 30.0)))
"""Not all views are small. Of a hundred so many take so many seconds more, from and to."""
_WORTH = 1 / 60
"""Of its lag a refresh takes no more: nobody asks to have every minute what takes half of it."""
_LAGS = ((10, 60), (25, 300), (35, 900), (20, 3_600), (10, 21_600))
_COMMITS = ((5, 5.0), (15, 60.0), (40, 900.0), (40, 21_600.0))
"""To so many of a hundred sources a commit comes every so many seconds."""
_ON_COMMIT = Trigger(when=When.ON_COMMIT, length=10_000_000)
_HOURLY = Trigger(when=When.EVERY, length=3_600_000_000)
_TRIGGERS = ((60, "lag"), (20, "downstream"), (10, "commit"), (5, "every"), (5, "cron"))


@dataclass(frozen=True, kw_only=True)
class MadeView:
    reads: tuple[str, ...]
    trigger: Trigger = MANUAL
    lag: timedelta | None = None
    downstream: bool = False
    """Whether its lag is what its readers need."""
    more: float = 0.0
    """Seconds that a refresh takes beyond those of a small view."""


@dataclass(kw_only=True)
class MadeUp:
    every: dict[str, float] = field(default_factory=dict)
    """By source, the seconds between two commits to it."""
    views: dict[str, MadeView] = field(default_factory=dict)

    def graph(self) -> Dag:
        return Dag({**dict.fromkeys(self.every, ()), **{key: view.reads for key, view in self.views.items()}})


def made_up(views: int, sources: int, seed: int = 1) -> MadeUp:
    """So many views over so many sources.

    >>> made = made_up(1_000, 100)
    >>> len(made.views), len(made.every), made_up(1_000, 100) == made
    (1000, 100, True)
    """
    random = Random(seed)
    made = MadeUp(every={f"source_{number}": _one_of(random, _COMMITS) for number in range(sources)})
    teams = max(round(views / VIEWS_A_TEAM), 1)
    for team in range(teams):
        _Team(made, random, team, list(made.every)[team::teams] or list(made.every)).grow(views * (team + 1) // teams)
    return made


class _Team:
    """Adds views one after the other, so that what a view reads is always there before it."""

    def __init__(self, made: MadeUp, random: Random, number: int, sources: Sequence[str]):
        self._made, self._random, self._number, self._sources = made, random, number, sources
        self._own: list[str] = []

    def grow(self, until: int) -> None:
        shapes = (35, self._chain), (25, self._fan), (20, self._diamonds), (12, self._star), (25, self._mart)
        while len(self._made.views) < until:
            _one_of(self._random, shapes)()
        for name in list(self._made.views)[until:]:  # the last shape may be cut: nobody reads its last views
            del self._made.views[name]
            self._own.remove(name)

    def _add(self, *reads: str) -> str:
        kind, name = _one_of(self._random, _TRIGGERS), f"team_{self._number}_view_{len(self._own)}"
        cron = f"{self._random.randrange(60)} {self._random.randrange(24)} * * *"
        trigger = {"commit": _ON_COMMIT, "every": _HOURLY, "cron": Trigger(when=When.CRON, cron=cron)}.get(kind, MANUAL)
        lag, often = _one_of(self._random, _LAGS), kind in ("downstream", "commit")
        more = self._random.uniform(*_one_of(self._random, _MORE))
        self._made.views[name] = MadeView(
            reads=tuple(dict.fromkeys(reads)), trigger=trigger, downstream=kind == "downstream",
            lag=timedelta(seconds=lag) if kind == "lag" else None, more=min(more, _WORTH * (60 if often else lag)),
        )  # fmt: skip
        self._own.append(name)
        return name

    def _source(self) -> str:
        return self._random.choice(self._sources)

    def _chain(self) -> None:
        below = self._source()
        for _ in range(self._random.randint(2, 6)):
            below = self._add(below)

    def _fan(self) -> None:
        clean = self._add(self._source())
        for _ in range(self._random.randint(3, 20)):
            self._add(clean)

    def _diamonds(self) -> None:
        """One to three on top of each other."""
        below = self._add(self._source())
        for _ in range(self._random.randint(1, 3)):
            below = self._add(*[self._add(below) for _ in range(self._random.randint(2, 5))])

    def _star(self) -> None:
        facts = self._add(*[self._source() for _ in range(self._random.randint(2, 5))])
        for _ in range(self._random.randint(0, 4)):
            self._add(facts)

    def _mart(self) -> None:
        """Over what is there already, one in four also over what another team has."""
        read = [self._random.choice(self._own) for _ in range(2) if self._own]
        if self._random.random() < 1 / 4:
            read.append(self._random.choice(list(self._made.views) or [self._source()]))
        self._add(*(read or [self._source()]))


def _one_of(random: Random, weighted: Sequence[tuple[int, _Item]]) -> _Item:
    """One of the items, by weight."""
    (chosen,) = random.choices([item for _, item in weighted], [weight for weight, _ in weighted])
    return chosen
