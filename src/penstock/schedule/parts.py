"""What is due at one moment, cut into epochs: what has nothing to do with each other need not wait for each other.

But an epoch reads the catalog and publishes, however little there is to do: of many small ones, some are one again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from penstock.catalog import HistoryRecord, World
from penstock.engine.consistency import together
from penstock.engine.workplace import with_upstream
from penstock.graph.sets import Sets
from penstock.schedule.due import Due
from penstock.vocabulary import Status

Part = tuple[Due, ...]

MANY = 16
"""Parts that are refreshed each on its own, however small they are."""


def independent(world: World, found: Iterable[Due]) -> list[Part]:
    """What is due, in parts that share no node: each can be an epoch of its own. The most urgent part is first."""
    sets, due = Sets(), list(found)
    for one in due:
        sets.join(with_upstream(world, together(world, [one.key])))
    parts: dict[str, list[Due]] = {}
    for one in due:
        parts.setdefault(sets.of(world.views[one.key].nodes[0]), []).append(one)
    return [tuple(members) for members in parts.values()]


def bundled(parts: Sequence[Part], usual: Callable[[str], float], most: float) -> list[Part]:
    """Where there are many, small ones together, as long as they take no more than so many seconds. The most urgent one
    stays first. ``usual``: the seconds that a view takes.
    """
    if len(parts) <= MANY:
        return list(parts)
    found: list[list[Due]] = []
    small, taken = -1, math.inf
    for part in parts:
        seconds = sum(usual(one.key) for one in part)
        if seconds > most:
            found.append(list(part))
        elif taken + seconds > most:
            small, taken = len(found), seconds
            found.append(list(part))
        else:
            found[small] += part
            taken += seconds
    return [tuple(members) for members in found]


def took(last: HistoryRecord | None) -> float:
    """What a view may be expected to take; one that failed is better left alone."""
    return math.inf if last is None or last.status == Status.FAILED else last.seconds / last.times
