"""The least and greatest values of a column in each file of a version, as the log tells them.

What a log does not tell, or not in a way that is known here, is NULL: such a file may hold anything. delta-rs is asked
only about a log that was not read here, since it would open the table once more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    DataType,
    DateType,
    IntegralType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.frames.spark.types import to_arrow_schema
from penstock.storage.delta_log import Snapshot
from penstock.storage.log_replay import Action
from penstock.storage.reader import columns_by_name, schema_of

Bounds = tuple[pa.ChunkedArray, pa.ChunkedArray]


def bounds_of(snapshot: Snapshot, column: str) -> Bounds | None:
    """The bounds of a column in the order of ``files``; None if the log has none that are known here."""
    stored = columns_by_name(snapshot) if "delta.columnMapping.mode" in snapshot.configuration else {}
    physical = stored.get(column.lower(), column)
    if snapshot.short is None:
        return _told_by_delta_rs(snapshot, column, physical)
    field = next((field for field in schema_of(snapshot).fields if field.name == column), None)
    if field is None or not isinstance(field.dataType, IntegralType | DateType | TimestampType | TimestampNTZType):
        return None
    adds = list(snapshot.short.adds.values())
    if column in snapshot.partition_columns:
        told = _arrow([_partition(add, physical, field.dataType) for add in adds], field)
        return None if told is None else (told, told)
    low, high = ([_statistics(add, kind).get(physical) for add in adds] for kind in ("minValues", "maxValues"))
    lows, highs = (_arrow([_value(value, field.dataType) for value in values], field) for values in (low, high))
    return None if lows is None or highs is None else (lows, highs)


def _told_by_delta_rs(snapshot: Snapshot, column: str, physical: str) -> Bounds | None:
    low, high = f"min.{physical}", f"max.{physical}"
    if column in snapshot.partition_columns:
        low = high = f"partition.{column}"
    names = snapshot.bounds.column_names
    return (snapshot.bounds.column(low), snapshot.bounds.column(high)) if low in names and high in names else None


def _arrow(values: Sequence[Any], field: StructField) -> pa.ChunkedArray | None:
    kind = to_arrow_schema(StructType([StructField(field.name, field.dataType)])).field(0).type
    try:
        return pa.chunked_array([pa.array(values, kind)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # not what the column can hold
        return None


def _statistics(add: Action, kind: str) -> dict[str, Any]:
    found = _parsed(add.get("stats") or "{}").get(kind)
    return found if isinstance(found, dict) else {}


@lru_cache(maxsize=10_000)
def _parsed(stats: str) -> dict[str, Any]:
    """A file stays in many versions of its table."""
    found = json.loads(stats)
    return found if isinstance(found, dict) else {}


def _partition(add: Action, name: str, kind: DataType) -> Any:
    text = (add.get("partitionValues") or {}).get(name)
    if isinstance(kind, IntegralType):
        return int(text) if text and text.lstrip("-").isdecimal() else None
    return _value(text, kind)


def _value(told: Any, kind: DataType) -> Any:
    """A value as the log's statistics tell it.

    >>> _value("2024-05-01T10:00:00.123Z", TimestampType()).isoformat(), _value("2024-05-01", DateType()).day
    ('2024-05-01T10:00:00.123000+00:00', 1)
    >>> _value("2024-05-01T10:00:00.123", TimestampType()), _value("+12024-05-01", DateType()), _value(True, DateType())
    (None, None, None)
    """
    if isinstance(kind, IntegralType):
        return told if type(told) is int else None
    if not isinstance(told, str):
        return None
    try:
        if isinstance(kind, DateType):
            return date.fromisoformat(told)
        moment = datetime.fromisoformat(f"{told[:-1]}+00:00" if told.endswith("Z") else told)
    except ValueError:
        return None
    return moment if (moment.tzinfo is not None) == isinstance(kind, TimestampType) else None
