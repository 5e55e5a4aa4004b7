"""How long a thread stood in line for a processor: time of the wall clock that is the machine's, not the refresh's.

Linux says so for each thread. Elsewhere nothing is known, and the wall clock stands as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STATISTICS = "/proc/thread-self/schedstat"
"""Nanoseconds that the thread ran, nanoseconds that it could have run and did not, and how often it ran."""


@contextmanager
def standing_in_line() -> Iterator[Callable[[], float]]:
    """Gives a function that says, also afterwards, for how many seconds this thread could have run and was not let.

    What other threads and processes wait for is not counted: it is the caller's waiting for them, as any other.
    """
    before, waited = _waited(), 0.0
    try:
        yield lambda: waited
    finally:
        waited = (_waited() - before) / 1e9


def _waited() -> int:
    try:
        with open(_STATISTICS, encoding="ascii") as statistics:
            return int(statistics.read().split()[1])
    except (OSError, IndexError, ValueError):  # another system, or a kernel that does not count it
        return 0
