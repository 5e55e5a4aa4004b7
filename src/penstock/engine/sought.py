"""What a condition says of the rows that it can be true for: keys that are looked up, and bounds of columns.

Only what is certain: an equality, IN or a comparison of a column with written values of its own kind, which all of the
condition depends on. The rows that are found are asked the whole condition afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import pyarrow as pa
from pyspark.sql.types import DataType, DateType, IntegralType, StringType, StructType, TimestampNTZType, TimestampType
from sqlglot import exp

from penstock.frames.arrow.expressions import Rows, computed
from penstock.frames.frame import NotHere
from penstock.frames.keys import Place, Sought
from penstock.frames.settings import Settings
from penstock.storage.row_ranges import LEAST, MOST, Range

_MOST_KEYS = 10_000
"""Combinations of values of several columns; of more, those of one column are sought."""
_COMPARED = (exp.GT, exp.GTE, exp.LT, exp.LTE)


@dataclass(frozen=True)
class Wanted:
    """``keys`` that the rows have, and between which numbers their columns lie (dates and times as numbers, too)."""

    keys: Sought | None
    bounds: Mapping[str, Range]


def sought_by(condition: exp.Expr, schema: StructType, settings: Settings) -> Wanted:
    """What a condition wants of rows whose columns have their plain names."""
    kinds = {field.name: field.dataType for field in schema.fields}
    listed: dict[str, pa.Array] = {}
    bounds: dict[str, Range] = {}
    for part in conjuncts(condition):
        name, values = _values(part, kinds, settings)
        if values is not None:
            if name not in listed or len(values) < len(listed[name]):
                listed[name] = values
        else:
            for bounded, (low, high) in _bounds(part, kinds, settings):
                known = bounds.get(bounded, (LEAST, MOST))
                bounds[bounded] = max(low, known[0]), min(high, known[1])
    return Wanted(_keys(listed), bounds)


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that must all be true."""
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    else:
        yield condition


def _keys(listed: Mapping[str, pa.Array]) -> Sought | None:
    if not listed:
        return None
    names = sorted(listed, key=lambda name: len(listed[name]))
    kept, count = names[:1], len(listed[names[0]])
    for name in names[1:]:
        if count * len(listed[name]) <= _MOST_KEYS:
            kept, count = [*kept, name], count * len(listed[name])
    rows = list(product(*(listed[name] for name in kept)))
    columns = [pa.array([row[i].as_py() for row in rows], listed[name].type) for i, name in enumerate(kept)]
    keys = pa.table(columns, names=kept) if len(kept) > 1 else pa.table({kept[0]: listed[kept[0]]})
    return Sought(keys, {name: Place(name) for name in kept})


def _values(part: exp.Expr, kinds: Mapping[str, DataType], settings: Settings) -> tuple[str, pa.Array | None]:
    """A column and the values that it may have."""
    match part:
        case exp.EQ(this=exp.Column() as column, expression=value):
            given: Sequence[exp.Expr] = [value]
        case exp.EQ(this=value, expression=exp.Column() as column):
            given = [value]
        case exp.In(this=exp.Column() as column) if part.expressions and not part.args.get("query"):
            given = part.expressions
        case _:
            return "", None
    kind = kinds.get(column.name)
    found = [] if kind is None else [_constant(value, kind, settings) for value in given]
    if not found or any(value is None for value in found):
        return "", None
    return column.name, pa.concat_arrays([value for value in found if value is not None])


def _bounds(part: exp.Expr, kinds: Mapping[str, DataType], settings: Settings) -> Iterator[tuple[str, Range]]:
    """Columns that a comparison bounds."""

    def number(column: exp.Expr, value: exp.Expr) -> int | None:
        kind = kinds.get(column.name) if isinstance(column, exp.Column) else None
        if kind is None or isinstance(kind, StringType):
            return None
        found = _constant(value, kind, settings)
        return None if found is None or found.null_count else int(_as_numbers(found)[0].as_py())

    if isinstance(part, exp.Between):
        low, high = number(part.this, part.args["low"]), number(part.this, part.args["high"])
        if low is not None and high is not None and not part.args.get("symmetric"):
            yield part.this.name, (low, high)
    elif isinstance(part, _COMPARED):
        turned = not isinstance(part.left, exp.Column)
        column, value = (part.right, part.left) if turned else (part.left, part.right)
        found = number(column, value)
        if found is not None:
            below = isinstance(part, exp.LT | exp.LTE) != turned
            yield column.name, ((LEAST, found) if below else (found, MOST))


def _constant(value: exp.Expr, kind: DataType, settings: Settings) -> pa.Array | None:
    """A written value, if it is compared with a column of a kind as it is."""
    if value.find(exp.Column, exp.Query):
        return None
    try:
        found = computed(value, Rows({}, 1, settings))
    except (NotHere, pa.ArrowException):
        return None
    return comparable(found, kind)


def comparable(values: pa.Array, kind: DataType) -> pa.Array | None:
    """Values as they are looked up in a column; None if they are of another kind."""
    if pa.types.is_integer(values.type) and isinstance(kind, IntegralType):
        return values.cast(pa.int64())
    return values if _is_of(values.type, kind) else None


def _is_of(found: pa.DataType, kind: DataType) -> bool:
    match kind:
        case StringType():
            return bool(pa.types.is_string(found))
        case DateType():
            return bool(pa.types.is_date32(found))
        case TimestampType():
            return bool(pa.types.is_timestamp(found)) and found.tz is not None
        case TimestampNTZType():
            return bool(pa.types.is_timestamp(found)) and found.tz is None
    return False


def _as_numbers(values: pa.Array) -> pa.Array:
    return (values.cast(pa.int32()) if pa.types.is_date32(values.type) else values).cast(pa.int64())
