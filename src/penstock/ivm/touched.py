"""The keys that a change touches, and the rows that have them.

Rows are found by a semi-join. When the keys are few, a condition that files and pages can be skipped by goes before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
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
_TIMES = ("timestamp", "timestamp_ntz", "date")
_TUMBLE = re.compile(r"\w+\(MICROSECOND, -PMOD\(UNIX_MICROS\(CAST\((\w+) AS TIMESTAMP\)\), (\d+)\), \1\)")


_MOST_KNOWN = 1_000
"""Changed rows whose keys are taken as they are; of more, Spark finds those that really changed."""


@dataclass(frozen=True)
class Touched:
    keys: Materialized
    names: tuple[str, ...]

    @property
    def local(self) -> bool:
        return self.keys.local

    def bounded(self, frame: DataFrame, expressions: Mapping[str, exp.Expr]) -> DataFrame:
        """The frame without rows that cannot have a touched key; the expressions say what the keys are over it."""
        plain = all(isinstance(e, exp.Column) for e in expressions.values())
        if self.keys.table is None or (plain and self._exact is not None):
            return frame
        spans = {}
        for name, expression in expressions.items():
            span = span_of(expression)
            if span is not None and (span.width is None or _is_time(frame, span.column)):
                spans[name] = span
        bound = superset(self.keys.table, spans)
        return frame if bound is None else frame.where(bound)

    def matching(self, frame: DataFrame) -> DataFrame:
        """The rows that have a touched key, under the keys' names. NULL matches NULL."""
        if self._exact is not None:
            return frame.where(self._exact)
        return matching(frame, self.keys.frame, self.names, small=self.local)

    @cached_property
    def _exact(self) -> str | None:
        """A condition that says the same as the join, which costs less if the keys are few."""
        return None if self.keys.table is None else exactly(self.keys.table.select(self.names))

    def of(self, frame: DataFrame) -> DataFrame:
        """Both, for a frame that has the keys as columns."""
        return self.matching(self.bounded(frame, {name: column(name) for name in self.names}))


def touched(change: Delta, keys: Sequence[str], materializer: Materializer) -> Touched | None:
    """The keys that a change touches; None when there is one group of everything."""
    if not keys:
        return None
    names, known = tuple(keys), change.known
    if change.small:  # more keys than really changed do no harm, they cost a little
        if known is not None and known.num_rows <= _MOST_KNOWN and set(keys) <= set(known.column_names):
            return Touched(Materialized(change.frame.select(*keys), known.select(keys)), names)
        return Touched(materializer.materialize(change.frame.select(*keys), few=True, little=change.little), names)
    rows = change.frame if change.append_only else consolidate(change.frame)
    return Touched(materializer.materialize(rows.select(*keys).distinct(), few=change.few), names)


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
    """The column that a key is, or is cut from; twice the unit's width, since clocks are turned back."""
    match expression:
        case exp.Column():
            return Span(expression.name)
        case exp.TimestampTrunc(this=exp.Column() as at, unit=unit) if str(unit).upper() in _UNITS:
            return Span(at.name, f"2 {str(unit).upper()}".replace("2 QUARTER", "6 MONTH"))
        case exp.Cast(this=exp.Column() as at, to=kind) if kind.this == exp.DataType.Type.DATE:
            return Span(at.name, "2 DAY")
    tumble = _TUMBLE.fullmatch(render(expression))
    return Span(tumble[1], f"{2 * int(tumble[2])} MICROSECOND") if tumble else None
