"""What a benchmark knows when it is through: seconds of alternated runs, their medians and ratios, goals met or missed.

Pure: no Spark, no files, no clock.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from penstock.vocabulary import Action, Reason, Strategy

Item = TypeVar("Item")

PENSTOCK, FULL, ALWAYS, MERGE, PIPELINES, DUCKDB = "penstock", "full", "always", "merge", "pipelines", "duckdb"
SPARK, DELTA_SPARK, DELTA_RS, MANUAL, DISK = "spark", "delta-spark", "delta-rs", "manual", "disk"
TITLES = {
    PENSTOCK: "Penstock",
    FULL: "recomputation",
    ALWAYS: "always incremental",
    MERGE: "MERGE by hand",
    PIPELINES: "Declarative Pipelines",
    DUCKDB: "DuckDB",
    MANUAL: "REFRESH MANUAL",
    DISK: "the local disk",
    SPARK: "a process with Spark",
    DELTA_SPARK: "delta-spark",
    DELTA_RS: "delta-rs",
}


def rotated(items: Sequence[Item], turn: int) -> list[Item]:
    """The items, beginning with another one each turn, so that no contender always runs after the same other one.

    >>> rotated("abc", 0), rotated("abc", 1), rotated("abc", 5)
    (['a', 'b', 'c'], ['b', 'c', 'a'], ['c', 'a', 'b'])
    """
    start = turn % len(items) if items else 0
    return [*items[start:], *items[:start]]


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What Penstock recorded of one view, and in how many of the measured refreshes."""

    view: str
    action: Action
    strategy: Strategy | None
    reason: Reason
    times: int = 1


@dataclass(frozen=True)
class Driven:
    """Incremental refreshes of one view: how many, how many without a Spark job, and what of them was left to Spark."""

    view: str
    refreshes: int
    without_jobs: int
    by_spark: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One case of a workload: the seconds of every contender, run by run, on the same data."""

    case: str
    rows: int
    """Rows of the tables."""
    changed: int
    """Rows of the tables that each change touched."""
    views: int
    seconds: dict[str, list[float]]
    actions: list[Recorded] = field(default_factory=list)
    jobs: int | None = None
    """Spark jobs of the last refresh by Penstock."""
    peaks: dict[str, dict[str, int]] = field(default_factory=dict)
    """By contender, the most memory that each process held while it ran, in bytes."""
    kind: str = ""
    """What a plot draws as one line: the operator, or the shape."""
    notes: list[str] = field(default_factory=list)
    driven: list[Driven] = field(default_factory=list)
    requests: dict[str, int] = field(default_factory=dict)
    """By contender, how often it asked the object store in its last run, if there is one."""

    def median(self, contender: str) -> float | None:
        seconds = self.seconds.get(contender)
        return statistics.median(seconds) if seconds else None

    def ratio(self, other: str) -> float | None:
        """How many times as long the other took: the median of the ratios of runs that stood beside each other.

        One that gave up has fewer of them.

        >>> seconds = {"penstock": [1.0, 2.0, 1.0], "full": [4.0, 4.0, 5.0]}
        >>> Cell(case="c", rows=1, changed=1, views=1, seconds=seconds).ratio("full")
        4.0
        """
        own, others = self.seconds.get(PENSTOCK), self.seconds.get(other)
        if not own or not others:
            return None
        return statistics.median(theirs / mine for mine, theirs in zip(own, others, strict=False))

    def chose_well(self, tolerance: float = 1.15) -> bool | None:
        """Whether AUTO took the faster way, or one that is hardly slower; None when one of the two was not measured.

        >>> full = Recorded(view="v", action=Action.FULL, strategy=Strategy.OVERWRITE, reason=Reason.CHEAPER)
        >>> cell = Cell(case="c", rows=1, changed=1, views=1, seconds={"always": [1.0], "full": [4.0]}, actions=[full])
        >>> cell.chose_well()
        False
        >>> cell.seconds["always"] = [4.1]
        >>> cell.chose_well()
        True
        """
        maintaining, recomputing = self.median(ALWAYS), self.median(FULL)
        if maintaining is None or recomputing is None or not self.actions:
            return None
        if self.recomputed:
            return recomputing <= maintaining * tolerance
        return maintaining <= recomputing * tolerance

    @property
    def peak(self) -> int | None:
        """The most memory that Python and Java together held during Penstock's refreshes."""
        held = self.peaks.get(PENSTOCK)
        return sum(held.values()) if held else None

    @property
    def recomputed(self) -> int:
        """How many refreshes of a view were not incremental although something had changed."""
        return sum(a.times for a in self.actions if a.action not in (Action.INCREMENTAL, Action.NO_DATA))


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A number that was aimed at, and what it came to; ``case`` is empty for the workload as a whole."""

    what: str
    measured: float | None
    bound: str
    target: float
    case: str = ""

    @property
    def met(self) -> bool | None:
        """Whether it was reached; None when it was not measured."""
        if self.measured is None:
            return None
        return self.measured >= self.target if self.bound == ">=" else self.measured <= self.target


def at_least(what: str, measured: float | None, target: float, case: str = "") -> Goal:
    return Goal(what=what, measured=measured, bound=">=", target=target, case=case)


def at_most(what: str, measured: float | None, target: float, case: str = "") -> Goal:
    return Goal(what=what, measured=measured, bound="<=", target=target, case=case)


def faster_than(cells: Iterable[Cell], other: str, target: float) -> list[Goal]:
    """Each case is so many times as fast as another contender."""
    return [at_least(f"x the speed of {TITLES[other]}", cell.ratio(other), target, cell.case) for cell in cells]


def geometric_mean(values: Sequence[float]) -> float | None:
    """
    >>> geometric_mean([2.0, 8.0]), geometric_mean([])
    (4.0, None)
    """
    return round(math.exp(sum(math.log(v) for v in values) / len(values)), 12) if values else None


@dataclass(frozen=True, kw_only=True)
class Result:
    """A workload that was run."""

    workload: str
    title: str
    scale: float
    repeat: int
    machine: dict[str, str]
    cells: list[Cell]
    goals: list[Goal]
    left_out: dict[str, str] = field(default_factory=dict)
    """Contenders that did not run, and why."""
    setup: float = 0.0
    """Seconds to load the tables and create the views, the last time they were; nothing is compared with it."""

    def document(self) -> dict[str, Any]:
        """As JSON has it; medians, ratios and verdicts are there for readers and not read back."""
        document = asdict(self)
        for cell, written in zip(self.cells, document["cells"], strict=True):
            written["median"] = {name: cell.median(name) for name in cell.seconds}
            written["ratio"] = {name: cell.ratio(name) for name in cell.seconds if name != PENSTOCK}
        for goal, written in zip(self.goals, document["goals"], strict=True):
            written["met"] = goal.met
        return document

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Result:
        cells = [
            Cell(**{k: v for k, v in cell.items() if k not in ("median", "ratio", "actions", "driven")},
                 actions=[Recorded(**action) for action in cell["actions"]],
                 driven=[Driven(**driven) for driven in cell.get("driven", ())])
            for cell in document["cells"]
        ]  # fmt: skip
        goals = [Goal(**{k: v for k, v in goal.items() if k != "met"}) for goal in document["goals"]]
        return cls(**{**document, "cells": cells, "goals": goals})

    @property
    def full_size(self) -> bool:
        """Whether the goals can be judged: they were set for the whole number of rows."""
        return self.scale == 1
