"""Watermarks: how far event time has come. A table's moves with its rows; a view's is that of its slowest input.

Times are microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.graph.dag import Dag

_START = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST = datetime(1, 1, 2, tzinfo=timezone.utc)
_LAST = datetime(9999, 12, 30, tzinfo=timezone.utc)
"""What Python can show of a time in every zone; Spark knows earlier and later ones."""


def as_time(micros: int) -> datetime:
    """A time to be shown; one that Python does not know is cut.

    >>> as_time(0).isoformat(), as_time(10**18).year
    ('1970-01-01T00:00:00+00:00', 9999)
    """
    return _START + timedelta(microseconds=min(max(micros, as_micros(_FIRST)), as_micros(_LAST)))


def as_micros(time: datetime) -> int:
    """A time without a zone is taken as UTC."""
    time = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    return (time - _START) // timedelta(microseconds=1)


def advanced(before: int | None, seen: int | None) -> int | None:
    """A watermark after an epoch; it never moves back.

    >>> advanced(2000, 1000)
    2000
    """
    if before is None or seen is None:
        return before if seen is None else seen
    return max(before, seen)


def propagate(graph: Dag, tables: Mapping[str, int | None]) -> dict[str, int]:
    """The watermark of everything that has one: the least of its inputs', and none while an input has none."""
    known: dict[str, int] = {}
    for name in graph.order():
        inputs = graph.inputs(name)
        if not inputs:
            found = tables.get(name)
        else:
            found = _least(known, inputs)
        if found is not None:
            known[name] = found
    return known


def _least(known: Mapping[str, int], inputs: Iterable[str]) -> int | None:
    least: int | None = None
    for read in inputs:
        value = known.get(read)
        if value is None:
            return None
        if least is None or value < least:
            least = value
    return least


def moment_in(zone: str, local: int) -> int | None:
    """The moment at which clocks of a zone show a time, both in microseconds; None for a zone that is not known here.

    >>> moment_in("Europe/Berlin", 7_200_000_000), moment_in("Etc/Nowhere", 0)
    (3600000000, None)
    """
    try:
        known = ZoneInfo(zone)
        shown = _START + timedelta(microseconds=local)
        return local - (shown.replace(tzinfo=known).utcoffset() or timedelta()) // timedelta(microseconds=1)
    except (ZoneInfoNotFoundError, ValueError, OverflowError):
        return None
