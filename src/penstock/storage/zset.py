"""Z-sets: rows with an integer weight, +n for n copies added, -n for n removed.

A relation at a moment is a Z-set too; where every weight is one, the weight column is left out (``Rows.weighted``).
Two rows are the same row when all their values are: NULL equals NULL, NaN equals NaN, and 0.0 is not -0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructType

from penstock.storage.reader import quoted

WEIGHT = "__weight"
SIGN = "__sign"


@dataclass(frozen=True)
class Rows:
    """A relation at a moment: its columns, and a weight column if some weight may differ from one."""

    frame: DataFrame
    weighted: bool = False


@dataclass(frozen=True)
class Delta:
    """A change. ``append_only``: no weight is negative. ``small``: few enough rows to be sent everywhere."""

    frame: DataFrame
    append_only: bool = False
    small: bool = False

    @property
    def columns(self) -> list[str]:
        return [c for c in self.frame.columns if c != WEIGHT]


def identity(data_type: DataType, name: str) -> Column:
    """What a column's value is compared by, so that equal means the same value."""
    value = F.col(quoted(name))
    if isinstance(data_type, FloatType | DoubleType):
        return value.cast("string")
    if not _needs_json(data_type):
        return value
    return F.to_json(value if isinstance(data_type, StructType) else F.struct(value))


def _needs_json(data_type: DataType) -> bool:
    """Maps cannot be compared, and floats inside other values would lose the sign of zero."""
    match data_type:
        case MapType() | FloatType() | DoubleType():
            return True
        case ArrayType(elementType=inner):
            return _needs_json(inner)
        case StructType(fields=fields):
            return any(_needs_json(f.dataType) for f in fields)
    return data_type.typeName() == "variant"


def consolidate(frame: DataFrame) -> DataFrame:
    """One row for each distinct row, its weights added up, zeros dropped.

    {a: +1, a: +1, b: +1, b: -1}  ->  {a: +2}
    """
    fields = [f for f in frame.schema.fields if f.name != WEIGHT]
    keys = [
        identity(f.dataType, f.name).alias(f"__identity{i}" if _needs_json(f.dataType) else f.name)
        for i, f in enumerate(fields)
    ]
    kept = [F.any_value(quoted(f.name)).alias(f.name) for f in fields if _needs_json(f.dataType)]
    grouped = frame.groupBy(*keys).agg(F.sum(WEIGHT).alias(WEIGHT), *kept)
    return grouped.where(F.col(WEIGHT) != 0).select(*[quoted(f.name) for f in fields], WEIGHT)


def add(deltas: Sequence[DataFrame]) -> DataFrame:
    """The sum of Z-sets over the same columns."""
    total = deltas[0]
    for frame in deltas[1:]:
        total = total.unionByName(frame)
    return total


def with_weight(rows: Rows) -> DataFrame:
    return rows.frame if rows.weighted else rows.frame.withColumn(WEIGHT, F.lit(1).cast("bigint"))


def copies(frame: DataFrame) -> DataFrame:
    """Each row as many times as its (positive) weight says, without the weight."""
    return signed_copies(frame).drop(SIGN)


def signed_copies(frame: DataFrame) -> DataFrame:
    """Each row as many times as the size of its weight, with a column that says +1 or -1."""
    times = F.array_repeat(F.signum(WEIGHT).cast("int"), F.abs(F.col(WEIGHT)).cast("int"))
    return frame.withColumn(SIGN, F.explode(times)).drop(WEIGHT)


def plain_rows(rows: Rows) -> DataFrame:
    """A relation without weights: identical rows stand separately."""
    return copies(consolidate(rows.frame)) if rows.weighted else rows.frame


def matching(frame: DataFrame, keys: DataFrame, columns: Sequence[str], *, small: bool) -> DataFrame:
    """The rows whose values in ``columns`` occur in ``keys``; NULL matches NULL."""
    if not columns:
        return frame
    return frame.join(*_matched(frame, keys, columns, small), "left_semi")


def not_matching(frame: DataFrame, keys: DataFrame, columns: Sequence[str], *, small: bool) -> DataFrame:
    """The rows whose values in ``columns`` do not occur in ``keys``; NULL matches NULL."""
    return frame.join(*_matched(frame, keys, columns, small), "left_anti")


def _matched(frame: DataFrame, keys: DataFrame, columns: Sequence[str], small: bool) -> tuple[DataFrame, Column]:
    renamed = keys.select(*[F.col(quoted(c)).alias(f"__match{i}") for i, c in enumerate(columns)])
    condition = F.lit(True)
    for i, c in enumerate(columns):
        condition = condition & F.col(quoted(c)).eqNullSafe(F.col(f"__match{i}"))
    return (F.broadcast(renamed) if small else renamed), condition
