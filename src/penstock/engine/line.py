"""Those who change the same table in one process stand in line: of several that begin at once only one can be first,
and the others would compute their change in vain, again and again. It is an order, no protection: who has waited too
long goes ahead, and other processes know nothing of it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Line:
    """
    >>> line = Line()
    >>> with line.behind_others("orders", 1), line.behind_others("orders", 1):
    ...     "who is in turn may go on"
    'who is in turn may go on'
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[threading.Event]] = {}
        self._mine = threading.local()

    @contextmanager
    def behind_others(self, key: str, longest: float) -> Iterator[None]:
        """Come behind those who came before, or after so many seconds."""
        mine: set[str] = self._mine.__dict__.setdefault("keys", set())
        if key in mine:  # a callback, say
            yield
            return
        turn = threading.Event()
        with self._lock:
            line = self._waiting.setdefault(key, deque())
            line.append(turn)
            first = line[0] is turn
        if not first:
            turn.wait(longest)
        mine.add(key)
        try:
            yield
        finally:
            mine.discard(key)
            self._leave(key, turn)

    def _leave(self, key: str, turn: threading.Event) -> None:
        with self._lock:
            line = self._waiting[key]
            line.remove(turn)
            if line:
                line[0].set()
            else:
                del self._waiting[key]
