"""Bounded reads: touched keys become a condition that Delta's and Parquet's statistics can skip files and pages by.

The condition keeps every row with a touched key and may keep others: each column is bounded on its own, by a list of
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
from sqlglot import exp

from penstock.frames import limits
from penstock.sql.trees import all_of, any_of, column, data_type, tree, whole_number


@dataclass(frozen=True)
class Span:
    """Where the rows of a key lie: in a column of this name, from the key up to the key plus a width, if any.

    The width is a Spark interval: rows of the second 12:00:01 have times from 12:00:01 up to 12:00:01 + 1 second.
    """

    column: str
    width: str | None = None


def superset(keys: pa.Table, spans: Mapping[str, Span], *, listed: bool = True) -> exp.Expr | None:
    """A condition that all rows with these keys fulfil; None when no key can be bounded.

    Without ``listed``, the keys stand for all that lies between them.

    >>> print(superset(pa.table({"k": ["a", "b", "a", None]}), {"k": Span("region")}).sql("spark"))
    `region` IN ('a', 'b') OR `region` IS NULL
    >>> print(superset(pa.table({"k": [1, 9]}), {"k": Span("n")}, listed=False).sql("spark"))
    `n` >= 1 AND `n` <= 9
    """
    found = [_bound(keys.column(key), span, listed) for key, span in spans.items()]
    parts = [part for part in found if part is not None]
    return all_of(parts) if parts else None


def exactly(keys: pa.Table) -> exp.Expr | None:
    """A condition that just the rows with these keys fulfil; None when the keys are many or cannot be written down.

    >>> print(exactly(pa.table({"k": ["a", "b", None]})).sql("spark"))
    `k` IN ('a', 'b') OR `k` IS NULL
    """
    if keys.num_columns == 1:
        name = column(keys.column_names[0])
        condition = _one_of(keys.column(0), name)
        return None if condition is None else _or_null(condition, name, keys.column(0))
    if keys.num_rows > limits.CONDITION_COMBINATIONS or not all(_is_bounded(t, _LISTED) for t in keys.schema.types):
        return None
    values = [_literals(of) for of in keys.columns]
    if any(literals is None for literals in values):
        return None
    names = [column(name) for name in keys.column_names]
    rows = dict.fromkeys(zip(*(literals or () for literals in values), strict=True))
    pairs = [zip(names, row, strict=True) for row in rows]
    return any_of(all_of(exp.NullSafeEQ(this=n.copy(), expression=v.copy()) for n, v in row) for row in pairs)


def _bound(values: pa.ChunkedArray, span: Span, listed: bool) -> exp.Expr | None:
    name = column(span.column)
    condition = _one_of(values, name) if listed and span.width is None else None
    condition = condition or _between(values, name, span.width)
    return None if condition is None else _or_null(condition, name, values)


def _or_null(condition: exp.Expr, name: exp.Expr, values: pa.ChunkedArray) -> exp.Expr:
    return tree("c OR n IS NULL", c=condition, n=name) if values.null_count else condition


def _one_of(values: pa.ChunkedArray, name: exp.Expr) -> exp.Expr | None:
    if not _is_bounded(values.type, _LISTED):
        return None
    distinct = pc.unique(values).drop_null()
    literals = _literals(distinct) if len(distinct) <= limits.CONDITION_VALUES else None
    if literals is None:
        return None
    return exp.In(this=name.copy(), expressions=literals) if literals else exp.Boolean(this=False)


def _between(values: pa.ChunkedArray, name: exp.Expr, width: str | None) -> exp.Expr | None:
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
        return exp.Boolean(this=False)
    low, high = literals
    if width is None:
        return tree("n >= low AND n <= high", n=name, low=low, high=high)
    return tree(f"n >= low AND n < high + INTERVAL {width}", n=name, low=low, high=high)


_ORDERED = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_date, pa.types.is_timestamp)
_LISTED = (*_ORDERED, pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean)


def _is_bounded(data_type: pa.DataType, kinds: tuple[Any, ...]) -> bool:
    return any(kind(data_type) for kind in kinds)


def _literals(values: pa.Array | pa.ChunkedArray) -> list[exp.Expr] | None:
    try:
        found = [literal(v) for v in values.to_pylist()]
    except (ValueError, OverflowError):  # a year that Python does not know
        return None
    return None if None in found else [value for value in found if value is not None]


def literal(value: Any) -> exp.Expr | None:
    """A value as an expression, or None for one that is better compared by a join."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int() if -(2**31) < value < 2**31:
            number: exp.Expr = exp.Literal.number(abs(value))
            return exp.Neg(this=number) if value < 0 else number
        case int():
            return whole_number(value) if value > -(2**63) else None
        case str() if "${" in value or "\\" in value:  # Spark would take the one for a variable, even inside quotes
            return None
        case str():
            return exp.Literal.string(value)
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = max(-int(exponent), 0)
            return _written(f"{value:f}", f"decimal({max(len(digits), scale, 1)},{scale})")
        case datetime(tzinfo=None):
            return _written(value.isoformat(sep=" "), "timestamp_ntz")
        case datetime():
            micros = (value - datetime(1970, 1, 1, tzinfo=timezone.utc)) // datetime.resolution
            return tree("TIMESTAMP_MICROS(n)", n=whole_number(micros))
        case date():
            return _written(value.isoformat(), "date")
    return None


def _written(text: str, kind: str) -> exp.Expr:
    """A literal of a type."""
    return exp.Cast(this=exp.Literal.string(text), to=data_type(kind).copy())
