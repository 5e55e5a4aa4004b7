"""Spark Declarative Pipelines, open source: every run empties its materialized views and computes them anew.

A run is what ``spark-pipelines run`` does once its processes are up: define the graph, start it, wait for its end. It
happens in the Java of the other contenders, through a Connect server. Its tables are Parquet, the default: with Delta
4.4.0 the second run fails (DELTA_CANNOT_CHANGE_PROVIDER).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.bench.contenders.contender import Contender
from penstock.bench.measure import PIPELINES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.bench.stage import Stage


class Pipelines(Contender):
    name: ClassVar[str] = PIPELINES

    def __init__(self, stage: Stage):
        super().__init__(stage)
        self._database = f"pipelines_{stage.scratch.name.replace('-', '_')}"
        self._remote: Any = None

    def missing(self) -> str | None:
        sparks = self.stage.bench.sparks
        return None if sparks.remote else sparks.no_remote

    def prepare(self) -> None:
        from pyspark.sql.connect.session import SparkSession as Remote

        spark = self.stage.database.spark
        spark.sql(f"CREATE DATABASE {self._database}")
        for table, path in self.stage.paths().items():
            spark.sql(f"CREATE TABLE {self._database}.{table} USING delta LOCATION '{path}'")
        remote = self.stage.bench.sparks.remote
        assert remote is not None
        self._remote = Remote(remote)

    def close(self) -> None:
        if self._remote is not None:
            self._remote.stop()
            self.stage.database.spark.sql(f"DROP DATABASE {self._database} CASCADE")

    def refresh(self, views: Sequence[str]) -> None:
        from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
        from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, start_run

        graph = create_dataflow_graph(self._remote, "spark_catalog", self._database, {})
        definitions = [f"CREATE MATERIALIZED VIEW {v} AS {self.stage.query(v)};" for v in views]
        registry = SparkConnectGraphElementRegistry(self._remote, graph)
        registry.register_sql("\n".join(definitions), Path("views.sql"))
        storage = (self.stage.scratch / "pipelines").as_uri()
        for _ in start_run(self._remote, graph, None, False, None, False, storage):
            pass

    def check(self, view: str, expected: DataFrame) -> None:
        from penstock.bench.stage import differing_rows

        spark = self.stage.database.spark
        name = f"{self._database}.{view}"
        spark.sql(f"REFRESH TABLE {name}")
        if differing := differing_rows(expected, spark.table(name)):
            self.remark = f"{view} differs from its query in {differing:,} rows"
