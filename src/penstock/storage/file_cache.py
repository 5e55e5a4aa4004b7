"""What was read of files stays in memory between epochs, up to a bound. Files of a table never change, so what is kept
of one is never outdated: a file is told by its place, its size and the time of its writing, and another one under the
same name (a backup that was put back) is another file. There is one cache in a process, and it knows nothing of tables.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

from penstock.frames.memory import memory

Identity = tuple[Hashable, ...]
"""What tells a file from all others, those that had its name before among them."""

_T = TypeVar("_T")


class FileCache:
    """Values by what they were read from, each with its bytes; what was not asked for the longest goes first."""

    def __init__(self, most: int):
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def most(self) -> int:
        """The bound, in bytes; 0 means that nothing is kept."""
        return self._most

    @property
    def held(self) -> int:
        """The bytes that are held now."""
        return self._bytes

    def allow(self, most: int) -> None:
        """Set the bound. What is beyond it goes at once."""
        with self._lock:
            self._most = most
            self._make_room(0)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def get(self, key: Hashable) -> Any | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Keep a value, unless it is larger than all that may be kept."""
        with self._lock:
            self._forget(key)
            if size <= self._most and self._most > 0:
                self._make_room(size)
                self._kept[key] = value, size
                self._bytes += size

    def kept(self, key: Hashable, read: Callable[[], _T], size: Callable[[_T], int]) -> _T:
        """A value that is there, or is read now. Two threads may both read it; that costs time and nothing else."""
        found: _T | None = self.get(key)
        if found is None:
            found = read()
            self.put(key, found, size(found))
        return found

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def _make_room(self, size: int) -> None:
        while self._kept and self._bytes + size > self._most:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: Hashable) -> None:
        if key in self._kept:
            self._bytes -= self._kept.pop(key)[1]


FILES = FileCache(memory() // 10)
"""The cache of this process. An epoch sets its bound as the warehouse says; see ``engine.settings``."""
