"""Selecting columns of a frame in two round trips to the JVM.

PySpark hands every expression over on its own, which for a tiny change costs more than all else that is done with it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

_BETWEEN = "\0"


def select(frame: DataFrame, *expressions: str) -> DataFrame:
    """As ``frame.selectExpr``."""
    if not expressions or any(_BETWEEN in text for text in expressions):
        return frame.selectExpr(*expressions)
    texts = _splitter(frame.sparkSession.sparkContext._gateway).split(_BETWEEN.join(expressions))
    return ClassicDataFrame(frame._jdf.selectExpr(texts), frame.sparkSession)


@lru_cache(maxsize=1)
def _splitter(gateway: Any) -> Any:
    """Turns one text into an array of texts on the JVM's side."""
    return gateway.jvm.java.util.regex.Pattern.compile(_BETWEEN)
