"""Whether it is cheaper to maintain a node or to recompute it. Pure arithmetic on row counts and past measurements.

The seconds are those of one warm machine with its data on a disk. What matters is their ratio, and what a view's own
refreshes took corrects both sides of it (``engine/measured.py``). How many cores Spark has beside the driver's, and how
fast files are read, move them before anything was measured of the view (``frames/pace.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.engine.measured import HALF_LIFE, STEP, Measured
from penstock.frames import limits
from penstock.storage.strategy import seconds_to_write
from penstock.vocabulary import Action, Strategy

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

_READ, _TASK_ROWS = 0.1, 500_000
"""Seconds per million rows that reading takes, of all that is done with them; and rows that are worth a task."""

_WRITE, _COMPARE = 0.3, 1.0
"""Seconds per million rows written, and per million rows of which two versions are compared."""


@dataclass(frozen=True, kw_only=True)
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
    speedup: float = 1.0
    """How many times the cores that the driver has Spark has."""
    rate: float = 1.0
    """How many times as fast as on a disk the inputs' files are read."""

    def by_spark(self, seconds: float, rows: int) -> float:
        """Seconds of Spark's for so many rows: shared by as many cores as have rows enough to be worth a task."""
        return seconds / min(self.speedup, max(rows / _TASK_ROWS, 1.0))

    def reading(self, rows: int) -> float:
        """Seconds that reading so many rows takes more than it would on a disk; where that is faster, less."""
        return rows * _READ * (1 / self.rate - 1) / 1e6


@dataclass(frozen=True)
class Retry:
    """A way that is tried again, because what is known of it is old."""

    action: Action
    since: int
    """Refreshes by the other way since it was measured."""
    believed: float
    """Seconds that it would take, if it were still as it was then."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds that both ways would take, and the one that is chosen."""

    incremental: float
    full: float
    raw: Mapping[Action, float] = field(default_factory=dict)
    """The same by action, before past refreshes corrected it."""
    readers: float = 0.0
    """Seconds that recomputing costs the nodes that read this one."""
    retry: Retry | None = None
    """Why the way that is chosen is another than the last measurements say."""

    @property
    def choice(self) -> Action:
        return Action.FULL if self.full * MARGIN + self.readers < self.incremental else Action.INCREMENTAL

    def __add__(self, other: Estimate) -> Estimate:
        raw = {action: self.raw[action] + other.raw[action] for action in self.raw}
        return Estimate(
            incremental=self.incremental + other.incremental, full=self.full + other.full, raw=raw,
            readers=self.readers + other.readers, retry=self.retry or other.retry,
        )  # fmt: skip


EITHER = Estimate(incremental=0.0, full=0.0)
"""Of a node that recomputes, whatever is done with those it reads."""

NEVER_RECOMPUTED = Estimate(incremental=0.0, full=math.inf)
"""Of a node that is maintained, whatever is done with those it reads."""


def written(past: Iterable[tuple[Strategy | None, Mapping[str, Any]]]) -> dict[Strategy, float]:
    """By strategy, how far the newest write was off; from past refreshes, the newest first: strategy and details.

    Only with both measured can they be compared: the machine may be slow for any of them. What is old counts less, so
    that a strategy which was slow once is taken again.

    >>> patch = "PATCH", {"weighed": {"PATCH": 50_000, "REWRITE": 950_000}, "wrote": 0.2}
    >>> rewrite = "REWRITE", {"weighed": {"PATCH": 50_000, "REWRITE": 950_000}, "wrote": 0.5}
    >>> written([rewrite, patch])["REWRITE"], written([patch])
    (0.5, {})
    >>> [round(written([*[rewrite] * writes, patch])["PATCH"], 2) for writes in (1, 4, 16)]
    [1.79, 1.41, 1.04]
    """
    found: dict[Strategy, float] = {}
    writes = [(s, d) for s, d in past if s is not None and s in d.get("weighed", ()) and "wrote" in d]
    for since, (strategy, details) in enumerate(writes):
        off = details["wrote"] / seconds_to_write(details["weighed"][strategy])
        found.setdefault(strategy, min(max(off, 1 / STEP), STEP) ** 0.5 ** (since / HALF_LIFE))
    return found if len(found) > 1 else {}


def passed_on(stored: int, readers: Sequence[Estimate]) -> float:
    """Seconds that it costs the readers of a node with so many rows if it is recomputed.

    They compare two versions of it, once for all of them, or each recomputes as well, whatever is less.

    >>> estimated = lambda incremental, full: Estimate(incremental=incremental, full=full)
    >>> passed_on(1_000_000, [estimated(1.0, 9.0)]), passed_on(1_000_000, [estimated(1.0, 1.5)]), passed_on(10, [])
    (2.0, 0.5, 0.0)
    """
    recomputing = [reader.full + reader.readers for reader in readers]
    cheapest = sum(map(min, recomputing, (reader.incremental for reader in readers)), 0.0)
    return min(2 * stored * _COMPARE / 1e6 + cheapest, sum(recomputing)) - cheapest


def estimate(work: Work, measured: Measured | None = None, readers: Sequence[Estimate] = ()) -> Estimate:
    """Seconds for a node, and for those that read it.

    >>> estimate(Work(kinds=("aggregate",), changed=10_000, rows=10_000_000, stored=1_000)).choice
    'INCREMENTAL'
    >>> estimate(Work(kinds=("aggregate",), changed=5_000_000, rows=10_000_000, stored=1_000)).choice
    'FULL'
    """
    measured = measured or Measured()
    raw = {Action.INCREMENTAL: _maintaining(work), Action.FULL: _recomputing(work)}
    after = passed_on(work.stored, readers)
    then = _corrected(work, raw, measured, after)
    return _with_retry(_corrected(work, raw, measured.faded(), after), then, measured)


def _corrected(work: Work, raw: Mapping[Action, float], measured: Measured, readers: float) -> Estimate:
    """An estimate as past refreshes correct it: by the seconds that maintaining took, if these were the node's own."""
    expected = raw[Action.INCREMENTAL]
    incremental = measured.incremental(expected) if work.whole else expected * measured.factor(Action.INCREMENTAL)
    return Estimate(
        incremental=incremental, full=raw[Action.FULL] * measured.factor(Action.FULL), raw=raw, readers=readers
    )


def _with_retry(now: Estimate, then: Estimate, measured: Measured) -> Estimate:
    """The estimate with the reason why it chooses another way than the last measurements would."""
    oldest = measured.longest_ago()
    if now.choice == then.choice or oldest is None:
        return now
    action, since = oldest
    return replace(now, retry=Retry(now.choice, since, then.incremental if action == Action.INCREMENTAL else then.full))


def _recomputing(work: Work) -> float:
    read = [PER_MILLION[kind][0] for kind in work.kinds]
    seconds = work.rows * (max(read) + _MORE * (len(read) - 1)) / 1e6 + work.reading(work.rows)
    return START_FULL + work.by_spark(seconds + work.stored * _WRITE / 1e6, max(work.rows, work.stored))


def _maintaining(work: Work) -> float:
    here = work.changed <= limits.CHANGE_ROWS
    replaced = work.changed * min(work.stored / max(work.rows, 1), 1.0)
    seconds = work.changed * sum(PER_MILLION[kind][1 if here else 2] for kind in work.kinds) / 1e6
    seconds += replaced * _WRITE / 1e6 + work.reading(work.changed)
    if not work.appended:
        seconds += work.rows * _SEEN / work.rate / 1e6
    if not work.appended and not work.keyed:
        seconds += (work.stored * _SOUGHT / work.rate + replaced * _REPLACED) / 1e6
    return START + (seconds if here else work.by_spark(seconds, work.changed))
