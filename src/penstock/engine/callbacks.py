"""Who is told of commits: functions that are called once after each, in the order in which they were registered."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

_log = logging.getLogger("penstock")


@dataclass(frozen=True, kw_only=True)
class Committed:
    """A commit to a table that a statement made."""

    table: str
    operation: str
    """INSERT, UPDATE, DELETE, MERGE, ..."""
    version: int | None
    """The table's version from then on, where it can be told."""
    rows: int | None = None
    """How many rows it touched, where that is known."""


Callback = Callable[[Committed], object]


class Callbacks:
    def __init__(self) -> None:
        self._known: list[Callback] = []
        self._lock = threading.Lock()

    def add(self, callback: Callback) -> Callable[[], None]:
        """Gives a function that takes the callback out again."""
        with self._lock:
            self._known.append(callback)

        def remove() -> None:
            with self._lock:
                if callback in self._known:
                    self._known.remove(callback)

        return remove

    def __call__(self, commit: Committed) -> None:
        """Tell all of them. One that fails stops neither the others nor the commit, which is made."""
        with self._lock:
            known = list(self._known)
        for callback in known:
            try:
                callback(commit)
            except Exception:
                _log.exception(
                    "a callback failed after the %s on %r, which is committed", commit.operation, commit.table
                )

    def __bool__(self) -> bool:
        return bool(self._known)
