"""What is said to be going on, for a display of progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Said:
    """Hands a few words on to whoever wants to know, and remembers the last."""

    def __init__(self, listener: Callable[[str], None] | None = None):
        self._listener = listener or (lambda text: None)
        self._last = ""

    def __call__(self, text: str) -> None:
        self._last = text
        self._listener(text)

    @contextmanager
    def instead(self, text: str) -> Iterator[None]:
        """Something else happens for a while; then what was said before is true again.

        >>> said = Said(print)
        >>> said("refreshing totals")
        refreshing totals
        >>> with said.instead("starting Spark"):
        ...     pass
        starting Spark
        refreshing totals
        """
        self._listener(text)
        try:
            yield
        finally:
            if self._last:
                self._listener(self._last)
