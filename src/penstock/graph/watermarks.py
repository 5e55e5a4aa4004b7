"""Watermarks: how far event time has come. A table's moves with its rows; a view's is that of its slowest input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from penstock.graph.dag import Dag


def advanced(before: datetime | None, seen: datetime | None) -> datetime | None:
    """A watermark after an epoch; it never moves back.

    >>> advanced(datetime(2026, 1, 2), datetime(2026, 1, 1))
    datetime.datetime(2026, 1, 2, 0, 0)
    """
    if before is None or seen is None:
        return before if seen is None else seen
    return max(before, seen)


def propagate(graph: Dag, tables: Mapping[str, datetime | None]) -> dict[str, datetime]:
    """The watermark of everything that has one: the least of its inputs', and none while an input has none."""
    known: dict[str, datetime] = {}
    for name in graph.order():
        inputs = graph.inputs(name)
        if not inputs:
            found = tables.get(name)
        else:
            found = _least(known, inputs)
        if found is not None:
            known[name] = found
    return known


def _least(known: Mapping[str, datetime], inputs: Iterable[str]) -> datetime | None:
    least: datetime | None = None
    for read in inputs:
        value = known.get(read)
        if value is None:
            return None
        if least is None or value < least:
            least = value
    return least
