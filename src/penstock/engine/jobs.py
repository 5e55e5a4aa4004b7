"""How many Spark jobs a piece of work took.

Jobs are counted by their group, which a classic session keeps for each thread: the caller's, if this thread has one,
else one made for this. Spark Connect does not tell the jobs of an operation, so over it the number is not known.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from penstock.frames.spark.session import over_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GROUP = "spark.jobGroup.id"


class _Tally:
    """The jobs of one thread, from the moment at which it asks for a session: who never does, runs none."""

    def __init__(self) -> None:
        self._session: SparkSession | None = None
        self._given: str | None = None
        self._group, self._before = "", 0

    def begin(self, session: SparkSession) -> None:
        if self._session is not None:
            return
        self._session = session
        if not over_connect(session):
            self._given = session.sparkContext.getLocalProperty(_GROUP)
            self._group = self._given or f"penstock-{uuid.uuid4().hex}"
            self._before = self._jobs(session) if self._given else 0
            session.sparkContext.setLocalProperty(_GROUP, self._group)

    def count(self) -> int | None:
        if self._session is None:
            return 0
        try:
            return self._jobs(self._session) - self._before if self._group else None
        except _lost():
            return None

    def end(self) -> None:
        if not self._group or self._session is None:
            return
        with suppress(*_lost()):
            self._session.sparkContext.setLocalProperty(_GROUP, self._given)  # type: ignore[arg-type]  # None: no group

    def _jobs(self, session: SparkSession) -> int:
        return len(session.sparkContext.statusTracker().getJobIdsForGroup(self._group))


def _lost() -> tuple[type[Exception], ...]:
    """What a session raises whose JVM has ended."""
    from penstock.frames.spark.problems import LOST_PROBLEMS  # late: who counts no jobs needs no Spark

    return LOST_PROBLEMS


_open: ContextVar[_Tally | None] = ContextVar("jobs", default=None)


def noticed(session: SparkSession) -> None:
    """A session was asked for in this thread: what it does from now on is counted, if anyone counts."""
    tally = _open.get()
    if tally is not None:
        tally.begin(session)


@contextmanager
def counting_jobs() -> Iterator[Callable[[], int | None]]:
    """Gives a function that says how many Spark jobs this thread ran inside; None where Spark does not tell."""
    tally = _Tally()
    token = _open.set(tally)
    try:
        yield tally.count
    finally:
        _open.reset(token)
        tally.end()
