"""Target lags: how old a view may get, resolved through the graph, and the moments at which it is brought up to date.

Views with different lags share moments: a period is 48 seconds doubled as often as fits into half of the lag, and its
moments are counted from the Unix epoch. So every moment of a long period is one of each shorter period, and what is due
together is one epoch. A view that is refreshed at each moment is at most two periods behind, less what a refresh takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache

from penstock.graph.dag import Dag

SHORTEST = timedelta(seconds=48)
_LEAST = timedelta(milliseconds=1)
"""However short a lag is, there is time between two moments."""
_UNIX = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class TargetLag:
    """What a view says: so much, or (None) as little as its readers need: DOWNSTREAM."""

    length: timedelta | None

    @property
    def downstream(self) -> bool:
        return self.length is None


@dataclass(frozen=True)
class EffectiveLag:
    """What holds for a view, and whose word that is: its own, a reader's, or (None) the setting ``min_target_lag``."""

    length: timedelta
    said_by: str | None


@lru_cache(maxsize=4096)
def period(lag: timedelta) -> timedelta:
    """How often a view with this lag is brought up to date.

    >>> [period(timedelta(seconds=s)).total_seconds() for s in (0, 10, 95, 96, 191, 192, 300, 3600)]
    [0.001, 5.0, 47.5, 48.0, 48.0, 96.0, 96.0, 1536.0]
    """
    half = lag / 2
    if half < SHORTEST:
        return max(half, _LEAST)
    found = SHORTEST
    while found * 2 <= half:
        found *= 2
    return found


def moment_before(now: datetime, every: timedelta) -> datetime:
    """The newest moment of a period that is not after now.

    >>> moment_before(datetime(2026, 1, 1, 0, 7, 30, tzinfo=timezone.utc), timedelta(minutes=5)).isoformat()
    '2026-01-01T00:05:00+00:00'
    """
    return now - (now - _UNIX) % every


def effective_lags(lags: Mapping[str, TargetLag], graph: Dag, least: timedelta) -> dict[str, EffectiveLag]:
    """The lag of each view that has one; DOWNSTREAM is the smallest among all who read the view, directly or not.

    >>> graph = Dag({"clean": ["raw"], "daily": ["clean"], "live": ["clean"], "alone": ["raw"]})
    >>> down, minute, hour = TargetLag(None), TargetLag(timedelta(minutes=1)), TargetLag(timedelta(hours=1))
    >>> lags = {"clean": down, "daily": hour, "live": minute, "alone": down}
    >>> for name, lag in effective_lags(lags, graph, timedelta(minutes=5)).items():
    ...     print(name, lag.length, lag.said_by)
    clean 0:01:00 live
    daily 1:00:00 daily
    live 0:01:00 live
    alone 0:05:00 None
    """
    said = _said_by_readers(lags, graph) if any(lag.downstream for lag in lags.values()) else {}
    found = {}
    for name, lag in lags.items():
        if lag.length is not None:
            found[name] = EffectiveLag(lag.length, name)
        else:
            found[name] = EffectiveLag(*said[name]) if name in said else EffectiveLag(least, None)
    return found


def _said_by_readers(lags: Mapping[str, TargetLag], graph: Dag) -> dict[str, tuple[timedelta, str]]:
    """The smallest lag among all who read a name, directly or not, and who says it; told from the last reader on."""
    found: dict[str, tuple[timedelta, str]] = {}
    for name in reversed(graph.order()):
        readers = graph.readers(name)
        said = [found[reader] for reader in readers if reader in found]
        said += [(own, reader) for reader in readers if reader in lags and (own := lags[reader].length)]
        if said:
            found[name] = min(said)
    return found
