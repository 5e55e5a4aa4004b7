"""How many cores Spark has. It is asked for now and then, since a cluster grows and shrinks."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY = 60.0
"""Seconds for which an answer holds."""


class Cores:
    """Of one session."""

    def __init__(self) -> None:
        self._found: int | None = None
        self._asked: float | None = None

    def of(self, session: SparkSession) -> int | None:
        """So many tasks run at once; None if the session does not tell."""
        now = time.monotonic()
        if self._asked is None or now - self._asked > _EVERY:
            self._found, self._asked = _asked(session), now
        return self._found


def _asked(session: SparkSession) -> int | None:
    from penstock.frames.spark.problems import LOST_PROBLEMS, SPARK_PROBLEMS
    from penstock.frames.spark.session import over_connect

    problems: tuple[type[Exception], ...] = (*SPARK_PROBLEMS, *LOST_PROBLEMS, AttributeError)
    try:
        if not over_connect(session):
            return session.sparkContext.defaultParallelism
        return told_by(dict(session.conf.getAll))
    except problems:  # a session that was stopped says so when it is needed
        return None


def told_by(settings: Mapping[str, str]) -> int | None:
    """What a session's settings tell of its cores, which is all that Spark Connect lets one ask.

    >>> told_by({"spark.master": "local[4]"}), told_by({"spark.master": "spark://host:7077", "spark.cores.max": "64"})
    (4, 64)
    >>> told_by({"spark.executor.instances": "10", "spark.executor.cores": "4"}), told_by({"spark.master": "yarn"})
    (40, None)
    """
    local = re.match(r"local\[(\d+)", settings.get("spark.master", ""))
    if local:
        return int(local[1])
    for name in ("spark.default.parallelism", "spark.cores.max"):
        if settings.get(name, "").isdigit():
            return int(settings[name])
    each, many = settings.get("spark.executor.cores", ""), settings.get("spark.executor.instances", "")
    return int(each) * int(many) if each.isdigit() and many.isdigit() else None
