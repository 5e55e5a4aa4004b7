"""Whether it is cheaper to maintain a node or to recompute it. Pure arithmetic on row counts and past measurements.

The seconds are those of one warm machine. What matters is their ratio, and what a view's own refreshes took corrects
both sides of it: the estimate of an action is scaled by how far the last one of that kind was off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

START = 0.3
"""Seconds that any refresh of a node takes."""

MARGIN = 1.2
"""How much cheaper recomputing must look: it costs later readers of the node the comparison of two versions."""

LEAST_ROWS = 50_000
"""Fewer changed rows than this are never worth a recomputation."""

PER_MILLION = {
    # Seconds per million rows: of inputs read and computed in full; of changed rows maintained.
    "rows": (0.2, 1.5),
    "join": (0.8, 4.0),
    "aggregate": (0.5, 2.5),
    "groups": (0.7, 6.0),
    "window": (2.0, 10.0),
    "top_k": (0.3, 2.0),
}
"""By what a node is: rows one by one, joins, aggregates that merge or that recompute groups, windows, top-k."""

_WRITE, _COMPARE = 0.5, 1.0
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
    readers: bool = False
    """Whether other nodes wait for its change."""


@dataclass(frozen=True)
class Estimate:
    """Seconds that both ways would take, and the one that is chosen."""

    incremental: float
    full: float
    raw: Mapping[str, float] = field(default_factory=dict)
    """The same by action, before past refreshes corrected it."""

    @property
    def choice(self) -> str:
        return "FULL" if self.full * MARGIN < self.incremental else "INCREMENTAL"

    def __add__(self, other: Estimate) -> Estimate:
        raw = {action: self.raw[action] + other.raw[action] for action in self.raw}
        return Estimate(self.incremental + other.incremental, self.full + other.full, raw)


@dataclass(frozen=True)
class Measured:
    """How far the estimates of a view were off: seconds taken for each second estimated, by action."""

    factors: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, past: Iterable[tuple[str, float, Mapping[str, Any]]]) -> Measured:
        """From past refreshes, the newest first: action, seconds, and details with an ``estimate`` if there was one."""
        factors: dict[str, float] = {}
        for action, seconds, details in past:
            raw = (details.get("estimate") or {}).get("raw", {}).get(action)
            if raw and action not in factors:
                factors[action] = min(max(seconds / raw, 0.25), 4.0)
        return cls(factors)

    def factor(self, action: str) -> float:
        """Of an action that was never measured: that of the other, for the machine is the same."""
        return self.factors.get(action, next(iter(self.factors.values()), 1.0))


def estimate(work: Work, measured: Measured | None = None) -> Estimate:
    """Seconds for a node.

    >>> estimate(Work(("aggregate",), changed=10_000, rows=10_000_000, stored=1_000)).choice
    'INCREMENTAL'
    >>> estimate(Work(("aggregate",), changed=5_000_000, rows=10_000_000, stored=1_000)).choice
    'FULL'
    """
    measured = measured or Measured()
    read = sum(PER_MILLION[kind][0] for kind in work.kinds) / 1e6
    maintained = sum(PER_MILLION[kind][1] for kind in work.kinds) / 1e6
    written = min(work.stored, work.changed) if work.appended else min(work.stored, 4 * work.changed)
    full = START + work.rows * read + work.stored * _WRITE / 1e6
    if work.readers:
        full += 2 * work.stored * _COMPARE / 1e6
    incremental = START + work.changed * maintained + written * _WRITE / 1e6
    raw = {"INCREMENTAL": incremental, "FULL": full}
    return Estimate(incremental * measured.factor("INCREMENTAL"), full * measured.factor("FULL"), raw)
