"""Z-sets: rows with an integer weight, +n for n copies added, -n for n removed.

A relation at a moment is a Z-set too; where every weight is one, the weight column is left out (``Rows.weighted``).
Two rows are the same row when all their values are: NULL equals NULL, NaN equals NaN, and 0.0 is not -0.0.

Expressions are handed to Spark as text: each Column object would cost several round trips to the JVM.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.frames import limits
from penstock.frames.arrow.frame import as_local, is_local, table_of
from penstock.frames.arrow.groups import consolidated
from penstock.frames.arrow.tables import NotHere
from penstock.frames.clock import left_to_spark
from penstock.frames.spark.frame import grouped, join, select
from penstock.sql.dialect import quoted

WEIGHT = "__weight"


@dataclass(frozen=True)
class Rows:
    """A relation at a moment: its columns, and a weight column if some weight may differ from one.

    ``small``: few rows are expected, so that grouping them needs no shuffle. ``light``: few rows are looked at for it.
    """

    frame: DataFrame
    weighted: bool = False
    small: bool = False
    light: bool = False


@dataclass(frozen=True)
class Delta:
    """A change. ``append_only``: no weight is negative. ``small``: few rows, and local to the driver.

    ``few``: made from small changes, so that few rows are expected; what they are joined with may be large.
    """

    frame: DataFrame
    append_only: bool = False
    small: bool = False
    few: bool = False
    table: pa.Table | None = None
    """The rows of a small change, where it is at hand."""
    little: bool = False
    """So few rows that compiling a query of them would not pay."""
    known: pa.Table | None = None
    """Some columns of a small change, maybe with more rows than it has: enough to bound what is read for it."""


def at_hand(change: Delta) -> Delta:
    """A change with all that is known of it, if its rows are on the driver."""
    table = table_of(change.frame)
    if table is None:
        return change
    if table.num_rows > limits.LOCAL_ROWS:
        return replace(change, known=table)
    return replace(change, small=True, few=True, little=table.num_rows <= limits.LITTLE_ROWS, known=table)


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
    if isinstance(data_type, StringType) and _is_special(data_type):
        return f"CAST({value} AS BINARY)"
    if not _is_special(data_type):
        return value
    return f"TO_JSON({value if isinstance(data_type, StructType) else f'STRUCT({value} AS v)'}, {_WHOLE})"


def _is_special(data_type: DataType) -> bool:
    """Maps cannot be compared; comparing floats would lose the sign of zero, and collated strings their case."""
    match data_type:
        case MapType() | FloatType() | DoubleType():
            return True
        case StringType():
            return " collate " in data_type.simpleString()
        case ArrayType(elementType=inner):
            return _is_special(inner)
        case StructType(fields=fields):
            return any(_is_special(f.dataType) for f in fields)
    return data_type.typeName() == "variant"


def consolidate(frame: DataFrame, *, small: bool = False, beside: Sequence[str] = ()) -> DataFrame:
    """One row for each distinct row, its weights added up, zeros dropped.

    {a: +1, a: +1, b: +1, b: -1}  ->  {a: +2}

    Few rows are grouped in one partition, which spares Spark a shuffle. Columns ``beside`` are no part of a row: of
    what comes together, those of one row stay, which are not NULL if any are.
    """
    rows = as_local(frame)
    if rows is not None:
        try:
            return rows.consolidated(WEIGHT, beside)
        except NotHere as problem:
            left_to_spark(f"adding up rows of {', '.join(frame.columns)}", problem)
            frame = rows.frame
    fields = [f for f in frame.schema.fields if f.name != WEIGHT and f.name not in beside]
    special = {f.name: f"__identity{i}" for i, f in enumerate(fields) if _is_special(f.dataType)}
    if special:
        frame = select(frame, "*", *[f"{identity(f)} AS {special[f.name]}" for f in fields if f.name in special])
    if small:
        frame = frame.coalesce(1)
    kept = [f"ANY_VALUE({quoted(name)}) AS {quoted(name)}" for name in special]
    kept += [f"MAX(STRUCT({', '.join(beside)})) AS __beside"] if beside else []
    keys = [special.get(f.name, quoted(f.name)) for f in fields]
    found = grouped(frame, keys, [f"SUM({WEIGHT}) AS {WEIGHT}", *kept]).where(f"{WEIGHT} <> 0")
    if not special and not beside:
        return found
    return select(found, *[quoted(f.name) for f in fields], WEIGHT, *(f"__beside.{name} AS {name}" for name in beside))


def narrowed(table: pa.Table, columns: Sequence[str]) -> pa.Table | None:
    """Some columns of a local change, consolidated; None when Arrow cannot compare the values."""
    try:
        return consolidated(table.select([*columns, WEIGHT]), WEIGHT)
    except NotHere:
        return None


def add(frames: Sequence[DataFrame]) -> DataFrame:
    """The sum of Z-sets over the same columns."""
    total = frames[0]
    for frame in frames[1:]:
        total = total.unionByName(frame)
    return total


def weighted(frame: DataFrame, weight: int) -> DataFrame:
    """Every row with the same weight."""
    return select(frame, "*", f"{weight}L AS {WEIGHT}")


def with_weight(rows: Rows) -> DataFrame:
    return rows.frame if rows.weighted else weighted(rows.frame, 1)


def copies(frame: DataFrame) -> DataFrame:
    """Each row as many times as its weight says, without the weight; none if that is below one."""
    rows = as_local(frame)
    if rows is not None:
        try:
            return rows.copied(WEIGHT)
        except NotHere:
            frame = rows.frame
    there = frame.where(f"{WEIGHT} > 0")  # a sequence down from one would be copies too
    return select(there, "*", f"EXPLODE(SEQUENCE(1L, {WEIGHT})) AS __copy").drop("__copy", WEIGHT)


def plain_rows(rows: Rows) -> DataFrame:
    """A relation without weights: identical rows stand separately."""
    return copies(consolidate(rows.frame, small=rows.small)) if rows.weighted else rows.frame


def matching(
    frame: DataFrame,
    keys: DataFrame,
    columns: Sequence[str],
    *,
    small: bool,
    many: bool = False,
    known: Collection[str] = (),
) -> DataFrame:
    """The rows whose values in ``columns`` occur in ``keys``; NULL matches NULL, of which ``known`` columns have none.

    Spark looks up a single number much faster than several values, so ``many`` rows are told apart by one first.
    """
    if not columns:
        return frame
    several = many and known and len(columns) > 1 and not is_local(frame)
    types = {field.name: field.dataType for field in frame.schema.fields} if several else {}
    number = next((c for c in columns if c in known and isinstance(types.get(c), _NUMBERS)), None)
    if number is not None:
        frame = _matched(frame, keys, [number], "left_semi", small, [number])
    return _matched(frame, keys, columns, "left_semi", small, known)


_NUMBERS = (LongType, TimestampType, TimestampNTZType, IntegerType, DateType)


def not_matching(frame: DataFrame, keys: DataFrame, columns: Sequence[str], *, small: bool) -> DataFrame:
    """The rows whose values in ``columns`` do not occur in ``keys``; NULL matches NULL."""
    return _matched(frame, keys, columns, "left_anti", small)


def _matched(
    frame: DataFrame, keys: DataFrame, columns: Sequence[str], how: str, small: bool, known: Collection[str] = ()
) -> DataFrame:
    renamed = select(keys, *[f"{quoted(c)} AS __match{i}" for i, c in enumerate(columns)])
    pairs = [f"{quoted(c)} {'=' if c in known else '<=>'} __match{i}" for i, c in enumerate(columns)]
    return join(frame, renamed, " AND ".join(pairs), how, sent="right" if small else "")
