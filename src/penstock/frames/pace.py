"""How fast this process reads files, by where they lie, and how many cores Spark has: what was seen, and what follows.

Limits on bytes were chosen for a laptop with its data on disk, where Spark has the cores that the driver has. Where the
driver reads from an object store, or Spark has a cluster, less is brought to the driver (``within``), and recomputing
looks cheaper (``engine/cost.py``). No result depends on it. Nothing here knows of stores, tables or Spark.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from penstock.frames.memory import memory

NOMINAL = 200 * 1024**2
"""Bytes a second for which limits and estimates were chosen: of files on a disk, unpacking them included."""

STARTING = 64 * 1024**2
"""Bytes that are read at that pace while Spark only begins: it can never be faster with those."""

SLOWEST, FASTEST = 1 / 16, 4.0
"""How far limits on bytes move, whatever was measured."""

_TELLING = 512 * 1024
"""Smaller reads tell how long an answer takes to come, not how many bytes come in a second."""
_RECENT = 256 * 1024**2
"""Bytes after which what was seen before them counts half."""
_SHARE = 16
"""The part of the memory that one step may fill."""


@dataclass
class _Place:
    """What was read of one place. The time of reads that run at once counts once: it is what the driver waits."""

    size: float = 0.0
    seconds: float = 0.0
    reading: int = 0
    since: float = 0.0

    def begin(self, now: float) -> None:
        if not self.reading:
            self.since = now
        self.reading += 1

    def end(self, size: int, now: float) -> None:
        """``size`` is 0 of a read that failed: how long it took says nothing."""
        self.reading -= 1
        if not size:
            return
        self.size += size
        self.seconds += now - self.since
        self.since = now
        if self.size > _RECENT:
            self.size, self.seconds = self.size / 2, self.seconds / 2


class Pace:
    """Of one process."""

    def __init__(self, own_cores: int | None = None):
        self._own_cores = own_cores or os.cpu_count() or 1
        self._places: defaultdict[str, _Place] = defaultdict(_Place)
        self._assumed: int | None = None
        self._cores: int | None = None
        self._lock = Lock()

    def assume(self, rate: int | None) -> None:
        """So many bytes a second are read of any place, whatever is measured; None: what is measured holds."""
        self._assumed = rate

    def spark_has(self, cores: int | None) -> None:
        """So many tasks run at once; None: nobody knows."""
        self._cores = cores

    @contextmanager
    def reading(self, place: str, size: int) -> Iterator[None]:
        """So many bytes of a place are read inside."""
        if size < _TELLING:
            yield
            return
        with self._lock:
            self._places[place].begin(time.monotonic())
        read = 0
        try:
            yield
            read = size
        finally:
            with self._lock:
                self._places[place].end(read, time.monotonic())

    def rate(self, place: str) -> float | None:
        """Bytes a second of a place; None if nothing was read of it."""
        if self._assumed is not None:
            return float(self._assumed)
        with self._lock:
            seen = self._places.get(place)
            return seen.size / seen.seconds if seen is not None and seen.size and seen.seconds else None

    def factor(self, place: str) -> float:
        """How many times as fast as at the nominal pace a place is read, within bounds.

        >>> pace = Pace()
        >>> pace.factor("s3://bucket")
        1.0
        >>> pace.assume(50 * 1024**2)
        >>> pace.factor("s3://bucket")
        0.25
        """
        rate = self.rate(place)
        return 1.0 if rate is None else min(max(rate / NOMINAL, SLOWEST), FASTEST)

    @property
    def speedup(self) -> float:
        """How many times the cores of this process Spark has; as many, if that is not known.

        >>> pace = Pace(own_cores=4)
        >>> pace.spark_has(64)
        >>> pace.speedup
        16.0
        """
        return max((self._cores or 0) / self._own_cores, 1.0)

    def within(self, limit: int, place: str) -> int:
        """A limit on bytes that the driver reads of a place instead of Spark.

        What Spark would read in less time is left to it, and what a slow place lets come in that time is less. A fast
        place lets more come, up to what one step may fill of the memory.

        >>> pace, gb = Pace(own_cores=2), 1024**3
        >>> pace.within(2 * gb, "") // gb
        2
        >>> pace.spark_has(64)
        >>> pace.within(2 * gb, "") // 1024**2, pace.within(64 * 1024**2, "") // 1024**2
        (64, 64)
        >>> pace.assume(50 * 1024**2)
        >>> pace.within(64 * 1024**2, "") // 1024**2
        16
        """
        least = min(limit, STARTING)
        return int(min(max(limit / self.speedup, least) * self.factor(place), max(limit, memory() // _SHARE)))


PACE = Pace()
"""What this process has seen. An epoch says how many cores Spark has, and what the warehouse assumes."""
