"""Bounded reads: touched keys become a predicate that Delta's and Parquet's statistics can skip files and pages by.

The predicate keeps every row with a touched key and may keep others: each column is bounded on its own, by a list of
its values when they are few and else by the smallest and the largest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.frames import limits
from penstock.sql.dialect import quoted


@dataclass(frozen=True)
class Span:
    """Where the rows of a key lie: in a column of this name, from the key up to the key plus a width, if any.

    The width is a Spark interval: rows of the second 12:00:01 have times from 12:00:01 up to 12:00:01 + 1 second.
    """

    column: str
    width: str | None = None


def superset(keys: pa.Table, spans: Mapping[str, Span], *, listed: bool = True) -> str | None:
    """A condition that all rows with these keys fulfil; None when no key can be bounded.

    Without ``listed``, the keys stand for all that lies between them.

    >>> superset(pa.table({"k": ["a", "b", "a", None]}), {"k": Span("region")})
    "(`region` IN ('a', 'b') OR `region` IS NULL)"
    >>> superset(pa.table({"k": [date(2024, 5, 1)]}), {"k": Span("at", "1 MONTH")})
    "(`at` >= DATE'2024-05-01' AND `at` < DATE'2024-05-01' + INTERVAL 1 MONTH)"
    >>> superset(pa.table({"k": [1, 9]}), {"k": Span("n")}, listed=False)
    '(`n` >= 1 AND `n` <= 9)'
    """
    parts = [_bound(keys.column(key), span, listed) for key, span in spans.items()]
    return " AND ".join(part for part in parts if part is not None) or None


def exactly(keys: pa.Table) -> str | None:
    """A condition that just the rows with these keys fulfil; None when the keys are many or cannot be written down.

    >>> exactly(pa.table({"k": ["a", "b", None]}))
    "(`k` IN ('a', 'b') OR `k` IS NULL)"
    >>> exactly(pa.table({"k": ["a", "a"], "n": [1, None]}))
    "(`k` <=> 'a' AND `n` <=> 1) OR (`k` <=> 'a' AND `n` <=> NULL)"
    """
    if keys.num_columns == 1:
        condition = _one_of(keys.column(0), quoted(keys.column_names[0]))
        missing = f" OR {quoted(keys.column_names[0])} IS NULL" if keys.column(0).null_count else ""
        return None if condition is None else f"({condition}{missing})"
    if keys.num_rows > limits.CONDITION_COMBINATIONS or not all(_is_bounded(t, _LISTED) for t in keys.schema.types):
        return None
    columns = [_literals(column) for column in keys.columns]
    if any(literals is None for literals in columns):
        return None
    names = [quoted(name) for name in keys.column_names]
    rows = dict.fromkeys(zip(*(literals or () for literals in columns), strict=True))
    pairs = [[f"{name} <=> {text}" for name, text in zip(names, row, strict=True)] for row in rows]
    return " OR ".join(f"({' AND '.join(row)})" for row in pairs) or "false"


def _bound(values: pa.ChunkedArray, span: Span, listed: bool) -> str | None:
    column = quoted(span.column)
    condition = _one_of(values, column) if listed and span.width is None else None
    condition = condition or _between(values, column, span.width)
    if condition is None:
        return None
    missing = f" OR {column} IS NULL" if values.null_count else ""
    return f"({condition}{missing})"


def _one_of(values: pa.ChunkedArray, column: str) -> str | None:
    if not _is_bounded(values.type, _LISTED):
        return None
    distinct = pc.unique(values).drop_null()
    literals = _literals(distinct) if len(distinct) <= limits.CONDITION_VALUES else None
    if literals is None:
        return None
    return f"{column} IN ({', '.join(literals)})" if literals else "false"


def _between(values: pa.ChunkedArray, column: str, width: str | None) -> str | None:
    """Not for strings: Spark may sort them by a collation."""
    if not _is_bounded(values.type, _ORDERED):
        return None
    try:
        extremes = pc.min_max(values).as_py()
    except (ValueError, OverflowError):  # a year that Python does not know
        return None
    literals = _literals(pa.array([extremes["min"], extremes["max"]], values.type).drop_null())
    if literals is None:
        return None
    if not literals:
        return "false"
    low, high = literals
    end = f"<= {high}" if width is None else f"< {high} + INTERVAL {width}"
    return f"{column} >= {low} AND {column} {end}"


_ORDERED = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_date, pa.types.is_timestamp)
_LISTED = (*_ORDERED, pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean)


def _is_bounded(data_type: pa.DataType, kinds: tuple[Any, ...]) -> bool:
    return any(kind(data_type) for kind in kinds)


def _literals(values: pa.Array | pa.ChunkedArray) -> list[str] | None:
    try:
        found = [literal(v) for v in values.to_pylist()]
    except (ValueError, OverflowError):  # a year that Python does not know
        return None
    return None if None in found else [text for text in found if text is not None]


def literal(value: Any) -> str | None:
    """A value as Spark SQL text, or None for a type that is better compared by a join."""
    match value:
        case None:
            return "NULL"
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
        case datetime(tzinfo=None):
            return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        case datetime():
            micros = (value - datetime(1970, 1, 1, tzinfo=timezone.utc)) // datetime.resolution
            return f"TIMESTAMP_MICROS({micros})"
        case date():
            return f"DATE'{value.isoformat()}'"
    return None
