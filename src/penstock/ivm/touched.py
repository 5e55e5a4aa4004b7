"""The keys that a change touches, and the rows that have them.

Rows are found by a semi-join. When the keys are few, a condition that files and pages can be skipped by goes before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
from sqlglot import exp

from penstock.ivm.materialize import Materialized, Materializer
from penstock.plan.operators import Named, column, render
from penstock.storage.bounded import Span, exactly, superset
from penstock.storage.zset import Delta, consolidate, matching

_UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_WIDTHS = {"MINUTE": "30 MINUTE", "HOUR": "4 HOUR", "QUARTER": "6 MONTH"}
"""Clocks went back by 25 minutes in Dublin, and to the last minute of an hour in St. John's."""
_TIMES = ("timestamp", "timestamp_ntz", "date")
_TUMBLE = re.compile(r"\w+\(MICROSECOND, -PMOD\(UNIX_MICROS\(CAST\((\w+) AS TIMESTAMP\)\), (\d+)\), \1\)")


_ORDERED = (pa.types.is_integer, pa.types.is_date32, pa.types.is_timestamp)
_LONGEST = {
    "MICROSECOND": 1, "MILLISECOND": 10**3, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3_600 * 10**6,
    "DAY": 86_400 * 10**6, "WEEK": 7 * 86_400 * 10**6, "MONTH": 31 * 86_400 * 10**6, "YEAR": 366 * 86_400 * 10**6,
}  # fmt: skip
"""Microseconds that a unit has at most."""

_MOST_KNOWN = 1_000
"""Changed rows whose keys are taken as they are; of more, Spark finds those that really changed."""


@dataclass(frozen=True)
class Touched:
    keys: Materialized
    names: tuple[str, ...]
    reach: pa.Table | None = None
    """The least and the greatest of some keys, where the keys are few but were not computed apart."""
    known: pa.Table | None = None
    """The values of some keys, where others were not computed apart."""

    @property
    def local(self) -> bool:
        """Whether there are few."""
        return self.keys.local or self.reach is not None

    def bounded(self, frame: DataFrame, expressions: Mapping[str, exp.Expr]) -> DataFrame:
        """The frame without rows that cannot have a touched key; the expressions say what the keys are over it."""
        plain = all(isinstance(e, exp.Column) for e in expressions.values())
        bounds = self.keys.table if self.keys.table is not None else self.reach
        if bounds is None or (plain and self._exact is not None):
            return frame
        spans = {}
        for name, expression in expressions.items():
            span = span_of(expression) if name in bounds.column_names else None
            if span is not None and (span.width is None or _is_time(frame, span.column)):
                spans[name] = span
        bound = superset(bounds, spans, listed=bounds is not self.reach)
        return frame if bound is None else frame.where(bound)

    def around(self, expressions: Mapping[str, exp.Expr]) -> pa.Table | None:
        """Between which values of its columns the rows with a touched key lie; None if of no column that is known."""
        bounds = self.keys.table if self.keys.table is not None else self.reach
        found: dict[str, pa.Array] = {}
        for name, expression in expressions.items() if bounds is not None else ():
            span = span_of(expression)
            if span is None or bounds is None or name not in bounds.column_names:
                continue
            values = bounds.column(name)
            if len(values) and not values.null_count and any(kind(values.type) for kind in _ORDERED):
                ends = _bounds(values, span, forward=True)
                if ends is not None:
                    found[span.column] = ends
        return pa.table(found) if found else None

    def matching(self, frame: DataFrame, *, many: bool = True) -> DataFrame:
        """The rows that have a touched key, under the keys' names. NULL matches NULL. ``many`` rows are looked at."""
        if self._exact is not None:
            return frame.where(self._exact)
        known = self._without_null
        return matching(frame, self.keys.frame, self.names, small=self.local, many=many, known=known)

    @cached_property
    def _without_null(self) -> frozenset[str]:
        """Keys that are never NULL, as far as is known."""
        tables = [table for table in (self.keys.table, self.reach, self.known) if table is not None]
        return frozenset(name for table in tables for name in table.column_names if not table.column(name).null_count)

    @cached_property
    def _exact(self) -> str | None:
        """A condition that says the same as the join, which costs less if the keys are few."""
        return None if self.keys.table is None else exactly(self.keys.table.select(self.names))

    def of(self, frame: DataFrame, *, many: bool = True) -> DataFrame:
        """Both, for a frame that has the keys as columns."""
        return self.matching(self.bounded(frame, {name: column(name) for name in self.names}), many=many)


def touched(
    change: Delta, keys: Sequence[str], materializer: Materializer, reach: pa.Table | None = None
) -> Touched | None:
    """The keys that a change touches; None when there is one group of everything.

    ``reach``, if known, bounds them: then they need not be computed before what is read for them.
    """
    if not keys:
        return None
    names, known = tuple(keys), change.known
    if change.small:  # more keys than really changed do no harm, they cost a little
        if known is not None and known.num_rows <= _MOST_KNOWN and set(keys) <= set(known.column_names):
            return Touched(Materialized(change.frame.select(*keys), known.select(keys)), names)
        if reach is not None:
            return Touched(Materialized(change.frame.select(*keys), None), names, reach, known)
        return Touched(materializer.materialize(change.frame.select(*keys), few=True, little=change.little), names)
    rows = change.frame if change.append_only else consolidate(change.frame)
    return Touched(materializer.materialize(rows.select(*keys).distinct(), few=change.few), names)


def reach_of(known: pa.Table | None, keys: Iterable[Named]) -> pa.Table | None:
    """The least and the greatest that some keys can be, told by what is known of a change; None if of no key.

    A window of time begins before the times in it, by its length at most.
    """
    found: dict[str, pa.Array] = {}
    for name, expression in keys if known is not None and known.num_rows else ():
        span = span_of(expression)
        if span is None or known is None or span.column not in known.column_names:
            continue
        values = known.column(span.column)
        bounds = _bounds(values, span) if any(kind(values.type) for kind in _ORDERED) else None
        if bounds is not None:
            found[name] = bounds
    length = max((len(values) for values in found.values()), default=0)
    padded = {
        name: pa.concat_arrays([v, v.take(pa.array([0] * (length - len(v)), pa.int32()))]) for name, v in found.items()
    }
    return pa.table(padded) if padded else None


def _bounds(values: pa.ChunkedArray, span: Span, *, forward: bool = False) -> pa.Array | None:
    """The least and the greatest value, and NULL, if it is among them.

    The width of a span is taken from the least: what begins before times that are known. Or, ``forward``, it is added
    to the greatest: times in what is known to begin there.
    """
    if values.null_count == len(values):
        return None
    numbers = pa.int32() if pa.types.is_date32(values.type) else values.type
    numbers = pa.int64() if pa.types.is_timestamp(values.type) else numbers  # Spark knows years that Python does not
    extremes = pc.min_max(values.cast(numbers))
    first, last = extremes["min"].as_py(), extremes["max"].as_py()
    if span.width is not None:
        if not pa.types.is_timestamp(values.type) or values.type.tz is None:
            return None
        amount, unit = span.width.split()
        width = int(amount) * _LONGEST[unit]
        first, last = (first, min(last + width, 2**63 - 1)) if forward else (max(first - width, -(2**63)), last)
    return pa.array([first, last, *([None] if values.null_count else [])], numbers).cast(values.type)


def renamed(known: pa.Table | None, outputs: Iterable[Named]) -> pa.Table | None:
    """What is known of a change's columns after a projection: those that keep their values, under their new names."""
    if known is None:
        return None
    kept = {name: e.name for name, e in outputs if isinstance(e, exp.Column) and e.name in known.column_names}
    return pa.table({name: known.column(old) for name, old in kept.items()})


def joining(frame: DataFrame, known: pa.Table | None, conditions: Iterable[exp.Expr]) -> DataFrame:
    """The frame without rows that cannot be joined to the known ones, told by the equalities of columns."""
    if known is None:
        return frame
    types = {f.name: f.dataType for f in frame.schema.fields}
    bounds = []
    for equality in conditions:
        inner = equality.unnest()
        if not isinstance(inner, exp.EQ | exp.NullSafeEQ):
            continue
        for mine, theirs in ((inner.left.unnest(), inner.right.unnest()), (inner.right.unnest(), inner.left.unnest())):
            columns = isinstance(mine, exp.Column) and isinstance(theirs, exp.Column)
            if columns and mine.name in types and theirs.name in known.column_names:
                values = known.column(theirs.name)
                if _comparable(types[mine.name], values.type):
                    bounds.append(superset(known, {theirs.name: Span(mine.name)}))
    for bound in bounds:
        frame = frame if bound is None else frame.where(bound)
    return frame


def _comparable(data_type: DataType, other: pa.DataType) -> bool:
    """Whether values of the two types are compared as they are: Spark would cast a number to compare it with text."""
    match data_type:
        case IntegralType():
            return pa.types.is_integer(other)
        case StringType():
            return pa.types.is_string(other) and data_type == StringType()
        case DateType():
            return pa.types.is_date(other)
        case DecimalType():
            return pa.types.is_decimal(other)
        case TimestampType():
            return pa.types.is_timestamp(other) and other.tz is not None
        case TimestampNTZType():
            return pa.types.is_timestamp(other) and other.tz is None
    return False


def _is_time(frame: DataFrame, name: str) -> bool:
    """Text that is cast to a time has another order."""
    return frame.schema[name].dataType.typeName() in _TIMES


def span_of(expression: exp.Expr) -> Span | None:
    """The column that a key is, or is cut from; more than the unit's width, since clocks are turned back."""
    match expression:
        case exp.Column():
            return Span(expression.name)
        case exp.TimestampTrunc(this=exp.Column() as at, unit=unit) if str(unit).upper() in _UNITS:
            return Span(at.name, _WIDTHS.get(str(unit).upper(), f"2 {str(unit).upper()}"))
        case exp.Cast(this=exp.Column() as at, to=kind) if kind.this == exp.DataType.Type.DATE:
            return Span(at.name, "2 DAY")
    tumble = _TUMBLE.fullmatch(render(expression))
    return Span(tumble[1], f"{2 * int(tumble[2])} MICROSECOND") if tumble else None
