"""Recomputation: the same queries from scratch by plain Spark, each overwriting a Delta table the next may read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from penstock.bench.contenders.contender import Contender
from penstock.bench.measure import FULL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Recomputation(Contender):
    name: ClassVar[str] = FULL

    def refresh(self, views: Sequence[str]) -> None:
        spark = self.stage.database.spark
        for table, path in self.stage.paths().items():
            spark.read.format("delta").load(path).createOrReplaceTempView(table)
        for view in views:
            spark.sql(self.stage.query(view)).write.format("delta").mode("overwrite").save(self._path(view))
            self.rows(view).createOrReplaceTempView(view)

    def rows(self, view: str) -> DataFrame:
        return self.stage.database.spark.read.format("delta").load(self._path(view))

    def _path(self, view: str) -> str:
        return f"{self.stage.place}/recomputed/{view}"
