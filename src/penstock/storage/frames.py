"""Selecting and grouping columns of a frame in a few round trips to the JVM.

PySpark hands every expression over on its own, which for a tiny change costs more than all else that is done with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
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


@lru_cache(maxsize=1)
def _splitter(gateway: Any) -> Any:
    """Turns one text into an array of texts on the JVM's side."""
    return gateway.jvm.java.util.regex.Pattern.compile(_BETWEEN)
