"""Computing a frame once, for several readers: on the driver if its rows are few, else in Spark's memory."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql.types import StructType

from penstock.frames import limits
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.clock import phase
from penstock.frames.frame import Frame
from penstock.frames.sizes import UNKNOWN
from penstock.frames.spark.conversion import on_driver
from penstock.frames.spark.frame import SparkFrame, as_spark
from penstock.frames.spark.interpreted import in_turn
from penstock.frames.spark.problems import LOST_PROBLEMS, SPARK_PROBLEMS
from penstock.frames.spark.session import SparkOnDemand, is_spread
from penstock.frames.spark.types import collected, fits_arrow


class Keeper:
    """Holds what Spark has cached for an epoch, to release it at the end."""

    def __init__(self, spark: SparkOnDemand) -> None:
        self._spark = spark
        self._cached: list[SparkFrame] = []

    def keep(self, frame: Frame) -> Frame:
        """The frame, computed. Few rows are collected at once, and cached only if they turn out to be many."""
        if isinstance(frame, ArrowFrame) and frame.rows() is not None:
            return frame
        found = as_spark(frame)
        with phase("computing"), in_turn(self._spark.session(), interpreted=found.size.not_compiled):
            if not fits_arrow(found.schema):
                return self._cache(found)
            if not found.size.on_driver:
                return self._few_or_cached(found)
            table = _collected_if_few(found)
            return self._cache(found) if table is None else on_driver(self._spark, table, found.schema)

    def _few_or_cached(self, found: SparkFrame) -> Frame:
        cached = self._cache(found)
        table = _collected_if_few(cached)
        if table is None:
            return cached
        self._cached.remove(cached)
        cached.frame.unpersist()
        return on_driver(self._spark, table, found.schema)

    def _cache(self, found: SparkFrame) -> SparkFrame:
        twice = _may_differ(found.schema) and is_spread(self._spark.session())
        level = _TWICE if twice else StorageLevel.MEMORY_AND_DISK_DESER
        cached = SparkFrame.of_frame(self._spark, found.frame.persist(level), UNKNOWN)
        self._cached.append(cached)
        return cached

    def release(self) -> None:
        while self._cached:
            with suppress(*LOST_PROBLEMS):  # a JVM that has ended keeps nothing
                self._cached.pop().frame.unpersist()


def _collected_if_few(found: SparkFrame) -> pa.Table | None:
    """The rows; None if there are more than a driver should hold. Of those, it is sent no more than tell that."""
    try:
        rows = found.frame if found.size.surely_on_driver else found.frame.limit(limits.LOCAL_ROWS + 1)
        table = collected(rows)
    except SPARK_PROBLEMS as problem:
        if "maxResultSize" not in str(problem):
            raise
        return None
    return table if table.num_rows <= limits.LOCAL_ROWS and table.nbytes <= limits.LOCAL_BYTES else None


_TWICE = StorageLevel(True, True, False, True, 2)


def _may_differ(schema: StructType) -> bool:
    """Whether rows may be others when Spark computes them again, which it does if an executor is lost that kept them.

    All is read from the same files. But the sum of doubles depends, in its last bits, on the order in which they come
    from other executors; and what was written to the table and what readers are handed must be one. So these have two
    copies.
    """
    return any(kind in schema.json() for kind in ('"double"', '"float"'))
