"""Commits of other writers, noticed by a look at the directories of the Delta logs: a file that comes moves its time.

So a table that nobody writes to costs one question to the file system, and no listing of its log.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from penstock.storage.locations import is_store
from penstock.storage.log_listing import newest_version, newest_versions

_UNSETTLED = 2.0
"""Seconds in which another file may come without moving a directory's time: file systems count in ticks."""


class Watch:
    """The newest versions of tables, by name."""

    def __init__(self, clock: Callable[[], float] = time.time):
        self._clock = clock
        self._known: dict[str, tuple[tuple[int, int], int | None]] = {}
        self.listed = 0
        """How often a log was listed, which is what costs time."""

    def look(self, paths: Mapping[str, str]) -> dict[str, int | None]:
        """The newest version of each table; None where there is no log, or it cannot be told."""
        wanted = set(paths.values())
        self._known = {path: known for path, known in self._known.items() if path in wanted}
        far = newest_versions(path for path in paths.values() if is_store(path))
        return {name: far[path] if path in far else self._version(path) for name, path in paths.items()}

    def _version(self, path: str) -> int | None:
        try:
            found = os.stat(f"{path}/_delta_log")
        except (OSError, ValueError):
            self._known.pop(path, None)
            return None
        mark = found.st_mtime_ns, found.st_ino
        known = self._known.get(path)
        if known is not None and known[0] == mark:
            return known[1]
        version = newest_version(path)
        self.listed += 1
        if self._clock() - found.st_mtime > _UNSETTLED:
            self._known[path] = mark, version
        return version
