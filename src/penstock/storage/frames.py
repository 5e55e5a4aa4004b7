"""Selecting and grouping columns of a frame in a few round trips to the JVM.

PySpark hands every expression over on its own, and Spark analyses every step as soon as it is taken, which for a tiny
change costs more than all else that is done with it. A ``Query`` is a chain of steps that is analysed once, at its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.group import GroupedData

_BETWEEN = "\0"


def select(frame: DataFrame, *expressions: str) -> DataFrame:
    """As ``frame.selectExpr``."""
    if not expressions or any(_BETWEEN in text for text in expressions):
        return frame.selectExpr(*expressions)
    texts = _splitter(frame.sparkSession.sparkContext._gateway).split(_BETWEEN.join(expressions))
    return ClassicDataFrame(frame._jdf.selectExpr(texts), frame.sparkSession)


_ALL = "__all"


def grouped(frame: DataFrame, keys: Sequence[str], aggregates: Sequence[str]) -> DataFrame:
    """As ``frame.groupBy(..).agg(..)``: the keys, which are names of columns, and aggregates with their names."""
    together = f"STRUCT({', '.join(aggregates)}) AS {_ALL}"
    if not keys:
        return select(select(frame, together), f"{_ALL}.*")
    first, *others = keys
    texts = _splitter(frame.sparkSession.sparkContext._gateway).split(_BETWEEN.join(others)) if others else None
    groups = frame._jdf.groupBy(first, texts) if others else frame.groupBy(first)._jgd
    made = GroupedData(groups, frame).agg(F.expr(together))
    return select(made, *keys, f"{_ALL}.*")


_numbers = count(1)


@dataclass(frozen=True)
class Query:
    """Steps over frames, as one text: ``source`` is what stands behind FROM."""

    source: str
    inputs: Mapping[str, DataFrame]

    @classmethod
    def of(cls, frame: DataFrame) -> Query:
        name = f"__frame_{next(_numbers)}"
        # A view that is dropped takes what is cached of its plan along, unless the plan is another.
        return cls(name, {name: frame.where("true") if frame.is_cached else frame})

    def select(self, *expressions: str, where: str | None = None, hint: str = "") -> Query:
        condition = "" if where is None else f" WHERE {where}"
        return replace(self, source=f"(SELECT {hint}{', '.join(expressions)} FROM {self.source}{condition})")

    def where(self, condition: str) -> Query:
        return self.select("*", where=condition)

    def in_one(self) -> Query:
        """In one partition, so that grouping needs no shuffle."""
        return self.select("*", hint="/*+ COALESCE(1) */ ")

    def grouped(self, keys: Sequence[str], aggregates: Sequence[str]) -> Query:
        """The keys, which are names of columns, and aggregates with their names."""
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        return replace(self, source=f"(SELECT {', '.join([*keys, *aggregates])} FROM {self.source}{by})")

    def followed_by(self, other: Query) -> Query:
        """The rows of both, whose columns are the same."""
        both = f"(SELECT * FROM {self.source} UNION ALL SELECT * FROM {other.source})"
        return Query(both, {**self.inputs, **other.inputs})

    @property
    def frame(self) -> DataFrame:
        """The result, analysed."""
        spark = next(iter(self.inputs.values())).sparkSession
        for name, frame in self.inputs.items():
            frame.createOrReplaceTempView(name)
        try:
            # Spark would take ${..} for a variable, even inside quotes.
            return spark.sql(f"SELECT * FROM {self.source}".replace("${", "\\u0024{"))
        finally:
            for name in self.inputs:
                spark.catalog.dropTempView(name)


@lru_cache(maxsize=1)
def _splitter(gateway: Any) -> Any:
    """Turns one text into an array of texts on the JVM's side."""
    return gateway.jvm.java.util.regex.Pattern.compile(_BETWEEN)
