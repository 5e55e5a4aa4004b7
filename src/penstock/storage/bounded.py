"""Bounded reads: a few touched keys become a predicate that Delta's and Parquet's statistics can skip files by.

The predicate keeps every row with a touched key and may keep others: each column is bounded on its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.storage.reader import quoted

MOST_VALUES = 500


def superset(keys: pa.Table, columns: Mapping[str, str]) -> str | None:
    """A condition on the columns (key column to stored column); None when some key cannot be written down.

    >>> superset(pa.table({"k": ["a", "b", "a", None]}), {"k": "region"})
    "(`region` IN ('a', 'b') OR `region` IS NULL)"
    """
    parts = []
    for key, stored in columns.items():
        part = _bound(keys.column(key), quoted(stored))
        if part is None:
            return None
        parts.append(part)
    return " AND ".join(parts)


def _bound(values: pa.ChunkedArray, column: str) -> str | None:
    if pa.types.is_floating(values.type) or pa.types.is_nested(values.type) or pa.types.is_binary(values.type):
        return None
    try:
        distinct = [v for v in pc.unique(values).to_pylist() if v is not None]
    except (ValueError, OverflowError):  # a year that Python does not know
        return None
    if len(distinct) > MOST_VALUES:
        return None
    literals = [literal(v) for v in distinct]
    if any(text is None for text in literals):
        return None
    conditions = [f"{column} IN ({', '.join(t for t in literals if t)})"] if literals else []
    if values.null_count:
        conditions.append(f"{column} IS NULL")
    return "(" + " OR ".join(conditions or ["false"]) + ")"


def literal(value: Any) -> str | None:
    """A value as Spark SQL text, or None for a type that is better compared by a join."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value}L" if value < -(2**31) or value >= 2**31 else str(value)
        case str() if "${" in value:  # Spark would take it for a variable, even inside quotes
            return None
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case Decimal():
            return f"{value:f}BD"
        case datetime():
            at = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
            micros = (at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // _MICROSECOND
            exact = f"TIMESTAMP_MICROS({micros})"
            return exact if value.tzinfo else None
        case date():
            return f"DATE'{value.isoformat()}'"
    return None


_MICROSECOND = datetime.resolution
