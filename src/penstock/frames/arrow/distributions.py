"""How a group's numbers are distributed: variances and percentiles, with the very steps that Spark takes.

Variances are those of Spark for rows of one partition in their order. Where its partitions are several it merges them,
and the last digits are others; so are those of SUM and AVG of doubles. No order is the right one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.frames.arrow.exact import doubles
from penstock.frames.arrow.groups import Groups, Numbers, ranks
from penstock.frames.arrow.lists import codes_are_ranks
from penstock.frames.frame import NotHere

DEVIATIONS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")


def deviation(name: str, values: pa.Array, groups: Groups) -> pa.Array:
    """VAR_POP and its like; NULL for no values, and for one where it is that of a sample."""
    found = [_deviation(name, count, squares) for count, squares in _squares(values, groups)]
    return pa.array(found, pa.float64())


def _deviation(name: str, count: float, squares: float) -> float | None:
    freedom = count - 1.0 if name.endswith("samp") else count
    if freedom <= 0:
        return None
    variance = squares / freedom
    return math.sqrt(variance) if name.startswith("stddev") and variance >= 0 else variance


def _squares(values: pa.Array, groups: Groups) -> list[tuple[float, float]]:
    """Of each group the number of values, and the sum of the squares of their distances from the mean (Welford)."""
    there = values.is_valid().to_numpy(zero_copy_only=False)
    count, mean, squares = ([0.0] * groups.count for _ in range(3))
    for group, number in zip(groups.of[there].tolist(), doubles(values)[there].tolist(), strict=True):
        count[group] += 1.0
        apart = number - mean[group]
        step = apart / count[group]
        mean[group] += step
        squares[group] += apart * (apart - step)
    return [(n, _merged(n, m, s)) for n, m, s in zip(count, mean, squares, strict=True)]


def _merged(count: float, mean: float, squares: float) -> float:
    """Merged with the state of no rows, as Spark does at last: it makes NaN of squares that overflow."""
    return 0.0 + squares + mean * (mean / count) * 0.0 * count if count else 0.0


def percentile(values: pa.Array, shares: Sequence[float], groups: Groups) -> list[pa.Array]:
    """The values below which these shares of each group lie, between two values in proportion."""
    if not codes_are_ranks(values) and bool((doubles(values) == 0).any()):  # which zero comes first is open
        raise NotHere("-0.0 in a percentile")
    there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    order = there[np.lexsort((ranks(values)[there], groups.of[there]))]
    number = doubles(values)[order]
    size = np.bincount(groups.of[there], minlength=groups.count)
    begin = np.cumsum(size) - size
    return [_share(number, begin, size, share) for share in shares]


def _share(number: Numbers, begin: Numbers, size: Numbers, share: float) -> pa.Array:
    if not len(number):
        return pa.nulls(len(size), pa.float64())
    place = np.maximum(size - 1, 0) * share
    low, high = np.floor(place), np.ceil(place)
    last = len(number) - 1
    below, above = (number[np.minimum(begin + edge.astype(np.int64), last)] for edge in (low, high))
    with np.errstate(all="ignore"):
        between = (high - place) * below + (place - low) * above
    return pa.array(np.where((low == high) | (below == above), below, between), mask=size == 0)
