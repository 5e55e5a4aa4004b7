"""Aggregates over frames: for each row of a sequence those of the rows from ``start`` to before ``stop``.

Exact values are added up once for all frames. Doubles are added in each frame's own order, as Spark adds them: where
frames begin with their partition, each goes on from the one before it; else each is added up from its own first row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from penstock.frames import limits
from penstock.frames.arrow.exact import adds_up_exactly, averages, doubles, exact_array, stored, sum_type, wholes
from penstock.frames.arrow.groups import Numbers, ranks
from penstock.frames.frame import NotHere


def valid(values: pa.Array) -> Numbers:
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False))


@dataclass(frozen=True)
class Frames:
    """Frames of the rows of a sequence; ``begin`` is where the partition of each row begins."""

    start: Numbers
    stop: Numbers
    begin: Numbers

    @cached_property
    def _is_growing(self) -> bool:
        return bool((self.start[self.stop > self.start] == self.begin[self.stop > self.start]).all())

    def count(self, chosen: Numbers) -> Numbers:
        """How many rows of each frame are among the chosen."""
        return self._between(_added_up(chosen.astype(np.int64)))

    def _between(self, total: Numbers) -> Numbers:
        return total[self.stop] - total[self.start]

    def sum(self, values: pa.Array) -> pa.Array:
        none = self.count(valid(values)) == 0
        if pa.types.is_floating(values.type):
            return pa.array(self._sum_of_doubles(values), mask=none)
        return exact_array(self._between(_added_up(wholes(values))), sum_type(values.type), none)

    def average(self, values: pa.Array) -> pa.Array:
        counts = self.count(valid(values))
        if pa.types.is_decimal128(values.type):
            return averages(self._between(_added_up(wholes(values))), counts, values.type)
        number = None if pa.types.is_floating(values.type) else stored(values)
        if number is not None and adds_up_exactly(number):
            return averages(self._between(_added_up(number)), counts, values.type)
        return averages(self._sum_of_doubles(values), counts, values.type)

    def _sum_of_doubles(self, values: pa.Array) -> Numbers:
        number = doubles(values)
        with np.errstate(all="ignore"):
            return self._running(number) if self._is_growing else self._each_anew(number)

    def _running(self, number: Numbers) -> Numbers:
        """Sums from the beginning of each partition on."""
        total = np.zeros(len(number) + 1)
        edges = [*np.unique(self.begin), len(number)]
        for begin, end in pairwise(edges):
            total[begin + 1 : end + 1] = np.add.accumulate(np.concatenate([[0.0], number[begin:end]]))[1:]
        return np.where(self.stop > self.start, total[self.stop], 0.0)

    def _each_anew(self, number: Numbers) -> Numbers:
        """Sums from the first row of each frame on: the first rows of all frames at once, then the second ones."""
        width = self.stop - self.start
        if int(width.sum()) > limits.FRAME_STEPS:
            raise NotHere("wide frames of doubles")
        total, places = np.zeros(len(number)), np.flatnonzero(width > 0)
        step = 0
        while len(places):
            total[places] += number[self.start[places] + step]
            step += 1
            places = places[width[places] > step]
        return total

    def extreme(self, values: pa.Array, kind: str) -> pa.Array:
        """The least or greatest value, of equal ones the first; ``kind`` is min or max."""
        rank = ranks(values)
        there = rank > 0
        order = np.argsort(np.where(there, rank if kind == "min" else -rank, np.iinfo(np.int64).max), kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        place[~there] = len(order)
        least = self._least(place)
        return _taken(values, order[np.minimum(least, len(order) - 1)] if len(order) else order, least == len(order))

    def _least(self, numbers: Numbers) -> Numbers:
        """The least number in each frame: that of two spans of 2^n rows that cover it."""
        found = np.full(len(numbers), len(numbers), np.int64)
        width, span, size = self.stop - self.start, numbers, 1
        while size <= int(width.max(initial=0)):
            here = np.flatnonzero((width >= size) & (width < 2 * size))
            found[here] = np.minimum(span[self.start[here]], span[self.stop[here] - size])
            span = np.minimum(span[: max(len(span) - size, 0)], span[size:])
            size *= 2
        return found

    def nth(self, values: pa.Array, number: int, *, ignores_nulls: bool) -> pa.Array:
        """The n-th value of each frame; -1 is the last one."""
        if ignores_nulls:
            there = valid(values)
            places, before = np.flatnonzero(there), _added_up(there.astype(np.int64))
            start, stop = before[self.start], before[self.stop]
        else:
            places, start, stop = np.arange(len(values)), self.start, self.stop
        at = start + number - 1 if number > 0 else stop + number
        outside = (at < start) | (at >= stop)
        return _taken(values, places[np.where(outside, 0, at)] if len(places) else np.zeros_like(at), outside)


def _added_up(numbers: Numbers) -> Numbers:
    """Sums of the first 0, 1, 2, .. numbers."""
    return np.concatenate([np.zeros(1, numbers.dtype), np.cumsum(numbers)])


def _taken(values: pa.Array, places: Numbers, missing: Numbers) -> pa.Array:
    return values.take(pa.array(places, pa.int64(), mask=missing))
