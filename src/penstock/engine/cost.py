"""Whether it is cheaper to maintain a node or to recompute it. Pure arithmetic on row counts and past measurements.

The seconds are those of one warm machine. What matters is their ratio, and what a view's own refreshes took corrects
both sides of it: the estimate of an action is scaled by how far the last one of that kind was off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.frames import limits
from penstock.storage.strategy import seconds_to_write

START, START_FULL = 0.1, 0.3
"""Seconds that any refresh of a node takes, and any recomputation."""

MARGIN = 1.2
"""How much cheaper recomputing must look: a guess should not throw away what is known to work."""

PER_MILLION = {
    # Seconds per million rows: of inputs read and computed in full; of changed rows maintained on the driver, by Spark.
    "rows": (0.2, 1.0, 4.0),
    "join": (0.5, 1.5, 8.0),
    "aggregate": (0.4, 1.6, 4.0),
    "groups": (0.45, 30.0, 100.0),
    "window": (1.2, 500.0, 1000.0),
    "top_k": (0.3, 5.0, 10.0),
}
"""By what a node is: rows one by one, joins, aggregates that merge or that recompute groups, windows, top-k.

Measured by ``penstock bench crossover`` on two cores. A change of groups or windows makes whole groups be read and
written again. How large they are is not known before: the guess is a hundred rows, and the first refreshes correct it.
"""

_MORE = 0.1
"""Seconds per million rows of inputs for each further join or aggregate in a node that is computed in full."""

_SEEN, _SOUGHT, _REPLACED = 0.025, 0.06, 1.0
"""Seconds per million rows of inputs that were not only added to; of the table, if its rows have no keys; and of rows
without keys that are found and replaced."""

_WRITE, _COMPARE = 0.3, 1.0
"""Seconds per million rows written, and per million rows of which two versions are compared."""


@dataclass(frozen=True)
class Work:
    """What a node would have to do."""

    kinds: tuple[str, ...]
    """What the node is made of, as in ``PER_MILLION``."""
    changed: int
    """Rows of the inputs that were added or removed."""
    rows: int
    """Rows of the inputs."""
    stored: int
    """Rows of the node's table."""
    appended: bool = False
    """Whether the inputs only grew."""
    keyed: bool = True
    """Whether rows of the table are told by keys."""
    whole: bool = True
    """Whether the node is all of its view, so that what the view's refreshes took is what the node took."""


@dataclass(frozen=True)
class Estimate:
    """Seconds that both ways would take, and the one that is chosen."""

    incremental: float
    full: float
    raw: Mapping[str, float] = field(default_factory=dict)
    """The same by action, before past refreshes corrected it."""
    readers: float = 0.0
    """Seconds that recomputing costs the nodes that read this one."""

    @property
    def choice(self) -> str:
        return "FULL" if self.full * MARGIN + self.readers < self.incremental else "INCREMENTAL"

    def __add__(self, other: Estimate) -> Estimate:
        raw = {action: self.raw[action] + other.raw[action] for action in self.raw}
        both = self.incremental + other.incremental, self.full + other.full
        return Estimate(*both, raw, self.readers + other.readers)


EITHER = Estimate(0.0, 0.0)
"""Of a node that recomputes, whatever is done with those it reads."""

NEVER_RECOMPUTED = Estimate(0.0, math.inf)
"""Of a node that is maintained, whatever is done with those it reads."""


def _factor(seconds: float, expected: float) -> float:
    """How far an estimate was off; one odd refresh must not turn everything round."""
    return min(max(seconds / expected, 0.25), 4.0)


def written(past: Iterable[tuple[str | None, Mapping[str, Any]]]) -> dict[str, float]:
    """By strategy, how far the newest write was off; from past refreshes, the newest first: strategy and details.

    Only with both measured can they be compared: the machine may be slow for any of them.

    >>> patch = "PATCH", {"weighed": {"PATCH": 50_000, "REWRITE": 950_000}, "wrote": 0.2}
    >>> rewrite = "REWRITE", {"weighed": {"PATCH": 50_000, "REWRITE": 950_000}, "wrote": 0.5}
    >>> written([patch, rewrite]), written([patch])
    ({'PATCH': 2.0, 'REWRITE': 0.5}, {})
    """
    found: dict[str, float] = {}
    for strategy, details in past:
        if strategy is not None and strategy in details.get("weighed", ()) and "wrote" in details:
            found.setdefault(strategy, _factor(details["wrote"], seconds_to_write(details["weighed"][strategy])))
    return found if len(found) > 1 else {}


@dataclass(frozen=True)
class Measured:
    """The last refresh of each action that was estimated: seconds that it took, and seconds that were expected."""

    last: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, past: Iterable[tuple[str, float, Mapping[str, Any]]]) -> Measured:
        """From past refreshes, the newest first: action, seconds, and details with an ``estimate`` if there was one."""
        last: dict[str, tuple[float, float]] = {}
        for action, seconds, details in past:
            raw = (details.get("estimate") or {}).get("raw", {}).get(action)
            if raw and action not in last:
                last[action] = seconds, raw
        return cls(last)

    def factor(self, action: str) -> float:
        """How far the last estimate was off. Of an action never measured: half as far as the other's."""
        if action in self.last:
            return _factor(*self.last[action])
        return math.sqrt(_factor(*next(iter(self.last.values()), (1.0, 1.0))))

    def incremental(self, raw: float) -> float:
        """Seconds for maintaining: those of last time, more or less as the change is larger or smaller.

        Much of what a refresh takes does not depend on the change, so a small one says little about the rest.
        """
        if "INCREMENTAL" not in self.last:
            return raw * self.factor("INCREMENTAL")
        seconds, before = self.last["INCREMENTAL"]
        return seconds + raw - before if raw > before else max(seconds * raw / before, seconds + raw - before)


def passed_on(stored: int, readers: Sequence[Estimate]) -> float:
    """Seconds that it costs the readers of a node with so many rows if it is recomputed.

    They compare two versions of it, once for all of them, or each recomputes as well, whatever is less.

    >>> passed_on(1_000_000, [Estimate(1.0, 9.0)]), passed_on(1_000_000, [Estimate(1.0, 1.5)]), passed_on(10, [])
    (2.0, 0.5, 0.0)
    """
    recomputing = [reader.full + reader.readers for reader in readers]
    cheapest = sum(map(min, recomputing, (reader.incremental for reader in readers)), 0.0)
    return min(2 * stored * _COMPARE / 1e6 + cheapest, sum(recomputing)) - cheapest


def estimate(work: Work, measured: Measured | None = None, readers: Sequence[Estimate] = ()) -> Estimate:
    """Seconds for a node, and for those that read it.

    >>> estimate(Work(("aggregate",), changed=10_000, rows=10_000_000, stored=1_000)).choice
    'INCREMENTAL'
    >>> estimate(Work(("aggregate",), changed=5_000_000, rows=10_000_000, stored=1_000)).choice
    'FULL'
    """
    measured = measured or Measured()
    read = [PER_MILLION[kind][0] for kind in work.kinds]
    full = START_FULL + work.rows * (max(read) + _MORE * (len(read) - 1)) / 1e6 + work.stored * _WRITE / 1e6
    where = 1 if work.changed <= limits.CHANGE_ROWS else 2
    incremental = START + work.changed * sum(PER_MILLION[kind][where] for kind in work.kinds) / 1e6
    replaced = work.changed * min(work.stored / max(work.rows, 1), 1.0)
    incremental += replaced * _WRITE / 1e6
    if not work.appended:
        incremental += work.rows * _SEEN / 1e6
    if not work.appended and not work.keyed:
        incremental += (work.stored * _SOUGHT + replaced * _REPLACED) / 1e6
    raw = {"INCREMENTAL": incremental, "FULL": full}
    expected = measured.incremental(incremental) if work.whole else incremental * measured.factor("INCREMENTAL")
    return Estimate(expected, full * measured.factor("FULL"), raw, passed_on(work.stored, readers))
