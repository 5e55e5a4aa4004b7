"""What Spark is asked to do with DataFrames, in SQL text: for rows that are its alone, as those it reads and writes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from penstock.frames.names import WEIGHT
from penstock.sql.dialect import quoted

_ALL = "__all"


def sql_over(spark: SparkSession, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """A query in which names mean frames.

    They are handed over with it: Spark Connect reads a query anew whenever it is computed, and by then a temporary view
    would be gone.
    """
    if not frames:
        return spark.sql(text)
    braced = text.replace("{", "{{").replace("}", "}}")
    given: dict[str, Any] = dict(frames)
    return spark.sql(re.sub("|".join(frames), lambda found: "{" + found[0] + "}", braced), **given)


def select(frame: DataFrame, *expressions: str) -> DataFrame:
    return frame.selectExpr(*expressions)


def grouped(frame: DataFrame, keys: Sequence[str], aggregates: Sequence[str]) -> DataFrame:
    """The keys, which are names of columns, and aggregates with their names."""
    made = frame.groupBy(*keys).agg(F.expr(f"STRUCT({', '.join(aggregates)}) AS {_ALL}"))
    return select(made, *keys, f"{_ALL}.*")


_WHOLE = (
    "MAP('timestampFormat', 'G yyyy-MM-dd HH:mm:ss.SSSSSSXXX', 'timestampNTZFormat', 'G yyyy-MM-dd HH:mm:ss.SSSSSS', "
    "'dateFormat', 'G yyyy-MM-dd', 'ignoreNullFields', 'false')"
)
"""Options for TO_JSON that lose nothing: by default it leaves out microseconds."""


def identity(field: StructField) -> str:
    """What a column's value is compared by, so that equal means the same value."""
    return identity_of(quoted(field.name), field.dataType)


def identity_of(value: str, data_type: DataType) -> str:
    """The same for any expression of a type."""
    if isinstance(data_type, FloatType | DoubleType):
        return f"CAST({value} AS STRING)"
    if isinstance(data_type, StringType) and is_special(data_type):
        return f"CAST({value} AS BINARY)"
    if not is_special(data_type):
        return value
    return f"TO_JSON({value if isinstance(data_type, StructType) else f'STRUCT({value} AS v)'}, {_WHOLE})"


def is_special(data_type: DataType) -> bool:
    """Maps cannot be compared; comparing floats would lose the sign of zero, and collated strings their case."""
    match data_type:
        case MapType() | FloatType() | DoubleType():
            return True
        case StringType():
            return " collate " in data_type.simpleString()
        case ArrayType(elementType=inner):
            return is_special(inner)
        case StructType(fields=fields):
            return any(is_special(f.dataType) for f in fields)
    return data_type.typeName() == "variant"


def has_order(data_type: DataType) -> bool:
    """Whether Spark can sort by values of the type."""
    match data_type:
        case MapType():
            return False
        case ArrayType(elementType=inner):
            return has_order(inner)
        case StructType(fields=fields):
            return all(has_order(f.dataType) for f in fields)
    return data_type.typeName() not in ("variant", "interval", "calendarinterval")


def weighted(frame: DataFrame, weight: int) -> DataFrame:
    """Every row with the same weight."""
    return select(frame, "*", f"{weight}L AS {WEIGHT}")


def total(frames: Sequence[DataFrame]) -> DataFrame:
    """The sum of Z-sets over the same columns."""
    found = frames[0]
    for frame in frames[1:]:
        found = found.unionByName(frame)
    return found
