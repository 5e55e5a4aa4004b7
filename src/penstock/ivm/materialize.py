"""Computing a change once: a small one comes to the driver and goes on as a local relation, a large one is cached.

A local relation costs Spark no job when it is read again, and its size is known; so is that it is empty.
"""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.frames import limits
from penstock.frames.arrow.frame import is_local, on_driver, table_of
from penstock.frames.arrow.tables import collected, fits_arrow
from penstock.frames.clock import phase
from penstock.frames.spark.frame import select, spark_frame
from penstock.frames.spark.interpreted import running
from penstock.frames.spark.problems import SPARK_PROBLEMS
from penstock.storage.delta_log import Snapshot
from penstock.storage.patch import Places, places_in
from penstock.storage.reader import FILE, PLACE


class Materialized:
    """A frame that was computed. ``table`` has its rows when they are few; the frame is then made when asked for."""

    def __init__(self, source: DataFrame, table: pa.Table | None, places: Places | None = None):
        self._source = source
        self.table = table
        self.places = places
        """Where the rows that are removed lie, if that is known: file to places."""

    @cached_property
    def frame(self) -> DataFrame:
        if self.table is None or is_local(self._source):
            return self._source
        return on_driver(self._source.sparkSession, self.table, self._source.schema)

    @property
    def local(self) -> bool:
        return self.table is not None

    @property
    def little(self) -> bool:
        """Whether it is so few rows that compiling a query of them would not pay."""
        return self.table is not None and self.table.num_rows <= limits.LITTLE_ROWS

    def any(self, column: str) -> bool:
        """Whether a boolean column is true anywhere."""
        if self.table is not None:
            return bool(pc.any(self.table.column(column)).as_py())
        return not self.frame.where(F.col(column)).isEmpty()

    def without(self, *columns: str) -> Materialized:
        table = None if self.table is None else self.table.drop_columns(list(columns))
        return Materialized(self._source.drop(*columns), table, self.places)

    def placed(self, snapshot: Snapshot) -> Materialized:
        """Without the columns that say where removed rows lie, but with their places."""
        plain = self.without(FILE, PLACE)
        plain.places = None if self.table is None else places_in(snapshot, self.table)
        return plain

    def totals(self, weight: str) -> tuple[int, int]:
        """How many copies are added and how many removed."""
        if self.table is not None:
            weights = self.table.column(weight).to_numpy()
            return int(weights[weights > 0].sum()), -int(weights[weights < 0].sum())
        row = select(
            self.frame,
            f"SUM(IF({weight} > 0, {weight}, 0)) AS added",
            f"SUM(IF({weight} < 0, -{weight}, 0)) AS removed",
        ).first()
        assert row is not None
        return row["added"] or 0, row["removed"] or 0


class Materializer:
    """Holds what an epoch has cached, to release it at the end."""

    def __init__(self) -> None:
        self._cached: list[DataFrame] = []

    def materialize(self, frame: DataFrame, *, few: bool = False, little: bool = False) -> Materialized:
        """Compute a frame. ``few`` rows are expected: they are collected at once, and cached only if they are many.

        ``little`` is read for it, so that compiling the query would not pay.
        """
        table = table_of(frame)
        if table is not None:
            return Materialized(frame, table)
        frame = spark_frame(frame)
        with phase("computing"), running(frame.sparkSession, interpreted=little):
            if not fits_arrow(frame.schema):
                return self._cache(frame)
            table = _collected_if_few(frame) if few else None
            if table is not None:
                return Materialized(frame, table)
            cached = self._cache(frame)
            head = collected(cached.frame.limit(limits.LOCAL_ROWS + 1))
            if head.num_rows > limits.LOCAL_ROWS:
                return cached
            self._cached.remove(cached.frame)
            cached.frame.unpersist()
            return Materialized(frame, head)

    def _cache(self, frame: DataFrame) -> Materialized:
        self._cached.append(frame.persist())
        return Materialized(self._cached[-1], None)

    def release(self) -> None:
        while self._cached:
            self._cached.pop().unpersist()


def _collected_if_few(frame: DataFrame) -> pa.Table | None:
    """The rows; None if there are more than a driver should hold. Spark stops sending when there are far more."""
    try:
        table = collected(frame)
    except SPARK_PROBLEMS as problem:
        if "maxResultSize" not in str(problem):
            raise
        return None
    return table if table.num_rows <= limits.LOCAL_ROWS else None
