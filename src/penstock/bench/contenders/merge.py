"""MERGE by hand: what a good Spark engineer writes instead. The change feed, an aggregated change, a MERGE per view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.bench.contenders.contender import Contender, GaveUp
from penstock.bench.measure import MERGE
from penstock.errors import InternalError
from penstock.frames.spark.problems import clean_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.bench.stage import Stage


@dataclass(frozen=True)
class HandWritten:
    """A pipeline for some views: the queries that make their tables at first, and the statements that follow changes.

    A table may have more columns than its view: what the MERGE needs to know beside them.
    """

    targets: Mapping[str, str]
    follow: Callable[[Feed], None]


@dataclass
class Feed:
    """What a pipeline reads: changes since it last ran, the tables, and its own tables."""

    spark: SparkSession
    tables: Mapping[str, str]
    """Paths of the tables."""
    targets: Mapping[str, str]
    """Paths of what it keeps."""
    consumed: dict[str, int]
    """The newest version of each table that it has seen."""

    def changes(self, table: str) -> DataFrame:
        """The change feed since the last run, with ``_change_type``; an update gives its old and its new row."""
        return (
            self.spark.read.format("delta").option("readChangeFeed", "true")
            .option("startingVersion", self.consumed[table] + 1)
            .load(self.tables[table])
        )  # fmt: skip

    def table(self, name: str) -> DataFrame:
        path = self.tables.get(name) or self.targets[name]
        return self.spark.read.format("delta").load(path)

    def merge(self, view: str, change: DataFrame, on: str, clauses: str) -> None:
        """MERGE a change, named ``d``, into a table, named ``t``."""
        change.createOrReplaceTempView("__change")
        self.spark.sql(f"MERGE INTO delta.`{self.targets[view]}` t USING __change d ON {on} {clauses}").collect()


class Merges(Contender):
    name: ClassVar[str] = MERGE

    def __init__(self, stage: Stage, pipelines: Sequence[HandWritten]):
        super().__init__(stage)
        self._pipelines = pipelines
        self._feeds: list[Feed] = []
        self._broken: set[str] = set()

    def prepare(self) -> None:
        from penstock.sql.query import spark_text

        spark, tables = self.stage.database.spark, self.stage.paths()
        for table, path in tables.items():
            spark.read.format("delta").load(path).createOrReplaceTempView(table)
        for pipeline in self._pipelines:
            targets = {view: str(self.stage.scratch / "merged" / view) for view in pipeline.targets}
            for view, query in pipeline.targets.items():
                spark.sql(spark_text(query)).write.format("delta").save(targets[view])
                spark.read.format("delta").load(targets[view]).createOrReplaceTempView(view)
            self._feeds.append(Feed(spark, tables, targets, _versions(tables)))

    def refuses(self, views: Sequence[str]) -> str | None:
        written = {view for pipeline in self._pipelines for view in pipeline.targets}
        missing = [view for view in views if view not in written]
        if missing:
            return f"no MERGE was written for {', '.join(missing)}"
        return "it failed before" if self._broken & set(views) else None

    def refresh(self, views: Sequence[str]) -> None:
        for pipeline, feed in zip(self._pipelines, self._feeds, strict=True):
            newest = _versions(feed.tables) if set(pipeline.targets) & set(views) else feed.consumed
            if newest != feed.consumed:
                try:
                    pipeline.follow(feed)
                except Exception as problem:  # Delta cannot read every feed that it writes
                    self._broken |= set(pipeline.targets)
                    raise GaveUp(clean_message(problem, {}).splitlines()[0]) from problem
                feed.consumed = newest

    def check(self, view: str, expected: DataFrame) -> None:
        from penstock.bench.stage import differing_rows

        feed = next(f for f in self._feeds if view in f.targets)
        if differing := differing_rows(expected, feed.table(view).select(*expected.columns)):
            raise InternalError(
                f"the MERGE by hand of {view!r} differs from the query in {differing:,} rows. Its times mean nothing."
            )


def _versions(tables: Mapping[str, str]) -> dict[str, int]:
    from deltalake import DeltaTable

    return {name: DeltaTable(path).version() for name, path in tables.items()}
