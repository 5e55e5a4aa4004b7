"""Who is told of what happens here: functions that are called once each time, in the order of registration."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

_log = logging.getLogger("penstock")

_T = TypeVar("_T")


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

    def __str__(self) -> str:
        return f"the {self.operation} on {self.table!r}, which is committed"


class Callbacks(Generic[_T]):
    def __init__(self) -> None:
        self._known: list[Callable[[_T], object]] = []
        self._lock = threading.Lock()

    def add(self, callback: Callable[[_T], object]) -> Callable[[], None]:
        """Gives a function that takes the callback out again."""
        with self._lock:
            self._known.append(callback)

        def remove() -> None:
            with self._lock:
                if callback in self._known:
                    self._known.remove(callback)

        return remove

    def __call__(self, event: _T) -> None:
        """Tell all of them. One that fails stops neither the others nor what it is told of, which is done."""
        with self._lock:
            known = list(self._known)
        for callback in known:
            try:
                callback(event)
            except Exception:
                _log.exception("a callback failed after %s", event)

    def __bool__(self) -> bool:
        return bool(self._known)
