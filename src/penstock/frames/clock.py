"""Where the time of a refresh goes, how many bytes it moves, and what of it is left to Spark.

What runs without a clock is not measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

PHASES = ("planning", "reading", "computing", "writing", "committing")
_MOST_NOTED, _LONGEST = 10, 160


@dataclass(frozen=True)
class Span:
    """When something was worked on, in seconds since 1970; of that it ``waited`` for its turn, in seconds."""

    begun: float
    ended: float
    waited: float


class Clock:
    """Seconds by phase; what is in no other phase is planning, so they add up to the whole. Phases do not nest."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.bytes_read = 0
        """The size of the files that were opened; what statistics let a reader skip of them is not subtracted."""
        self.bytes_written = 0
        self.by_spark: list[str] = []
        """What could not be done on the driver, though its rows were there or might have been."""
        self._phase = "planning"
        self._since = time.perf_counter()
        self._begun = self._ended = time.time()
        self._waited = 0.0

    def _pass(self) -> None:
        now = time.perf_counter()
        self.seconds[self._phase] += now - self._since
        self._since = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        if name not in self.seconds:  # what is not part of the refresh, such as starting Spark
            self._pass()
            yield
            self._since = time.perf_counter()
            return
        if self._phase != "planning":  # computing what is read is reading
            yield
            return
        self._pass()
        self._phase = name
        try:
            yield
        finally:
            self._pass()
            self._phase = "planning"

    def start(self) -> None:
        self._since = time.perf_counter()
        self._waited += time.time() - self._ended

    def stop(self) -> None:
        self._pass()
        self._ended = time.time()

    @property
    def span(self) -> Span:
        """From the making of the clock until it was last stopped; it waited whenever it did not run."""
        return Span(self._begun, self._ended, self._waited)


_running: ContextVar[Clock | None] = ContextVar("clock", default=None)


@contextmanager
def timing(clock: Clock) -> Iterator[Clock]:
    """Measure what happens inside with this clock; it may be run again."""
    clock.start()
    token = _running.set(clock)
    try:
        yield clock
    finally:
        clock.stop()
        _running.reset(token)


def current() -> Clock | None:
    """The clock that measures what happens here."""
    return _running.get()


@contextmanager
def phase(name: str) -> Iterator[None]:
    """What happens inside belongs to a phase, if a clock is running."""
    clock = _running.get()
    if clock is None:
        yield
    else:
        with clock.phase(name):
            yield


def moved(*, read: int = 0, written: int = 0) -> None:
    clock = _running.get()
    if clock is not None:
        clock.bytes_read += read
        clock.bytes_written += written


def left_to_spark(what: str, problem: object = "") -> None:
    """Spark must do what the driver would have done; a problem may say why."""
    clock = _running.get()
    if clock is None or len(clock.by_spark) == _MOST_NOTED:
        return
    what = what if len(what) <= _LONGEST else f"{what[: _LONGEST - 2]}.."
    note = f"{what}: {problem}" if str(problem) else what
    if note not in clock.by_spark:
        clock.by_spark.append(note)
