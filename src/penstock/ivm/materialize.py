"""Computing a change once: a small one comes to the driver and goes on as a local relation, a large one is cached.

A local relation costs Spark no job when it is read again, and its size is known; so is that it is empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from penstock.storage.arrow import collected, fits_arrow, nullable
from penstock.storage.clock import phase

LOCAL_ROWS = 20_000


@dataclass(frozen=True)
class Materialized:
    frame: DataFrame
    table: pa.Table | None
    """The rows, when they are few."""

    @property
    def local(self) -> bool:
        return self.table is not None

    def any(self, column: str) -> bool:
        """Whether a boolean column is true anywhere."""
        if self.table is not None:
            return bool(pc.any(self.table.column(column)).as_py())
        return not self.frame.where(F.col(column)).isEmpty()

    def without(self, column: str) -> Materialized:
        table = None if self.table is None else self.table.drop_columns([column])
        return Materialized(self.frame.drop(column), table)

    def totals(self, weight: str) -> tuple[int, int]:
        """How many copies are added and how many removed."""
        if self.table is not None:
            weights = self.table.column(weight).to_pylist()
            return sum(w for w in weights if w > 0), -sum(w for w in weights if w < 0)
        row = self.frame.selectExpr(
            f"SUM(IF({weight} > 0, {weight}, 0)) AS added", f"SUM(IF({weight} < 0, -{weight}, 0)) AS removed"
        ).first()
        assert row is not None
        return row["added"] or 0, row["removed"] or 0


class Materializer:
    """Holds what an epoch has cached, to release it at the end."""

    def __init__(self) -> None:
        self._cached: list[DataFrame] = []

    def materialize(self, frame: DataFrame, *, small: bool = False) -> Materialized:
        """Compute a frame. ``small``: its rows are known to be few, so nothing needs to be cached to count them."""
        with phase("computing"):
            return self._materialized(frame, small)

    def _materialized(self, frame: DataFrame, small: bool) -> Materialized:
        if not fits_arrow(frame.schema):
            cached = frame.persist()
            self._cached.append(cached)
            return Materialized(cached, None)
        if small:
            table = collected(frame)
            return Materialized(_local(frame.sparkSession, frame.schema, table), table)
        cached = frame.persist()
        head = collected(cached.limit(LOCAL_ROWS + 1))
        if head.num_rows > LOCAL_ROWS:
            self._cached.append(cached)
            return Materialized(cached, None)
        local = _local(frame.sparkSession, frame.schema, head)
        cached.unpersist()
        return Materialized(local, head)

    def release(self) -> None:
        while self._cached:
            self._cached.pop().unpersist()


def _local(spark: SparkSession, schema: StructType, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table, StructType([StructField(f.name, nullable(f.dataType)) for f in schema.fields]))
