"""DuckDB: the same queries from scratch, from Parquet copies of the tables into Parquet files, on as many threads."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.bench.contenders.contender import Contender
from penstock.bench.measure import DUCKDB
from penstock.bench.session import INSTALL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.bench.stage import Stage


class DuckDb(Contender):
    name: ClassVar[str] = DUCKDB

    def __init__(self, stage: Stage):
        super().__init__(stage)
        self._copied: dict[str, int] = {}
        self._refused: dict[str, str] = {}
        self._database: Any = None

    def missing(self) -> str | None:
        return None if importlib.util.find_spec("duckdb") else f"duckdb not installed: {INSTALL}"

    def prepare(self) -> None:
        import duckdb

        self._place = self.stage.scratch / "duckdb"
        self._place.mkdir()
        self._database = duckdb.connect(config={"threads": os.cpu_count() or 2})
        self._database.execute("SET TimeZone = 'UTC'")
        self._database.execute("SET preserve_insertion_order = false")
        self.follow()
        for view in self.stage.views:
            try:
                self._compute(view)
            except duckdb.Error as problem:
                self._refused[view] = str(problem).splitlines()[0]
                self.remark = "; ".join(f"cannot run {name} ({why})" for name, why in self._refused.items())

    def follow(self) -> None:
        """Copy the rows of the tables that changed."""
        from deltalake import DeltaTable

        spark = self.stage.database.spark
        for table, path in self.stage.paths().items():
            version = DeltaTable(path).version()
            if self._copied.get(table) != version:
                copy = self._place / table
                spark.read.format("delta").load(path).write.mode("overwrite").parquet(str(copy))
                self._name(table, f"{copy}/*.parquet")
                self._copied[table] = version

    def refuses(self, views: Sequence[str]) -> str | None:
        return next((self._refused[view] for view in views if view in self._refused), None)

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def refresh(self, views: Sequence[str]) -> None:
        for view in views:
            self._compute(view)

    def check(self, view: str, expected: DataFrame) -> None:
        """Only the number of rows: some types and roundings are not those of Spark."""
        mine, theirs = self._database.execute(f'SELECT COUNT(*) FROM "{view}"').fetchone()[0], expected.count()
        if mine != theirs:
            self.remark = f"{view} has {mine:,} rows instead of {theirs:,}"

    def _compute(self, view: str) -> None:
        file = self._place / f"{view}.parquet"
        self._database.execute(f"COPY ({_translated(self.stage.query(view))}) TO '{file}' (FORMAT parquet)")
        self._name(view, str(file))

    def _name(self, relation: str, files: str) -> None:
        self._database.execute(f"CREATE OR REPLACE VIEW \"{relation}\" AS SELECT * FROM read_parquet('{files}')")


def _translated(query: str) -> str:
    import sqlglot

    return sqlglot.transpile(query, read="spark", write="duckdb")[0]
