"""Running a query without compiling it: for a few rows, Java code takes longer to make than to run.

The setting belongs to the session, so queries that are compiled and queries that are not take turns; of either kind
many may run at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Lock
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from penstock.frames.spark.problems import LOST_PROBLEMS

_SETTINGS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


class _Turns:
    """Who is running: how many, and whether compiled."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._running = 0
        self._interpreted = False
        self._usual: dict[str, str | None] = {}

    def begin(self, spark: SparkSession, interpreted: bool) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._running == 0 or self._interpreted == interpreted)
            if interpreted and self._running == 0:
                self._usual = {name: spark.conf.get(name, None) for name in _SETTINGS}
                for name, value in _SETTINGS.items():
                    spark.conf.set(name, value)
            self._interpreted = interpreted
            self._running += 1

    def end(self, spark: SparkSession) -> None:
        with self._changed:
            self._running -= 1
            if self._running == 0:
                if self._interpreted:
                    with suppress(*LOST_PROBLEMS):  # a session whose JVM has ended has no settings
                        for name, value in self._usual.items():
                            spark.conf.unset(name) if value is None else spark.conf.set(name, value)
                self._changed.notify_all()


_turns: WeakKeyDictionary[SparkSession, _Turns] = WeakKeyDictionary()
_opening = Lock()


def _turns_of(spark: SparkSession) -> _Turns:
    with _opening:
        return _turns.setdefault(spark, _Turns())


@contextmanager
def in_turn(spark: SparkSession, *, interpreted: bool) -> Iterator[None]:
    """While a query runs. It must not begin another one of the other kind."""
    turns = _turns_of(spark)
    turns.begin(spark, interpreted)
    try:
        yield
    finally:
        turns.end(spark)
