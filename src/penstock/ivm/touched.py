"""The keys that a change touches, and the rows that have them.

Rows are found by a semi-join. When the keys are few, a condition that files and pages can be skipped by goes before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.bounded import Span, exactly, superset
from penstock.frames.frame import Frame
from penstock.frames.keys import Anywhere, Place, floored
from penstock.frames.zset import Delta, matching
from penstock.plan.operators import (
    Filter,
    Generate,
    Join,
    Named,
    Operator,
    Project,
    Scan,
    SidedJoin,
    column,
)
from penstock.sql.window_start import WindowStart

_UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_WIDTHS = {"MINUTE": "30 MINUTE", "HOUR": "4 HOUR", "QUARTER": "6 MONTH"}
"""Clocks went back by 25 minutes in Dublin, and to the last minute of an hour in St. John's."""
_TIMES = ("timestamp", "timestamp_ntz", "date")


_EXACT = {
    "MICROSECOND": 1, "MILLISECOND": 10**3, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3_600 * 10**6,
    "DAY": 86_400 * 10**6,
}  # fmt: skip
"""Units that times are cut to by arithmetic, in microseconds; those above a second in UTC only."""

BY_ROW = (Scan, Project, Filter, Join, Generate)
"""Operators under which rows can be left out by the value of a column without a trace in other rows."""

_ORDERED = (pa.types.is_integer, pa.types.is_date32, pa.types.is_timestamp)
_LONGEST = {
    "MICROSECOND": 1, "MILLISECOND": 10**3, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3_600 * 10**6,
    "DAY": 86_400 * 10**6, "WEEK": 7 * 86_400 * 10**6, "MONTH": 31 * 86_400 * 10**6, "YEAR": 366 * 86_400 * 10**6,
}  # fmt: skip
"""Microseconds that a unit has at most."""


@dataclass(frozen=True, kw_only=True)
class Touched:
    keys: Frame
    names: tuple[str, ...]
    table: pa.Table | None
    """The keys, if they are on the driver."""
    reach: pa.Table | None = None
    """The least and the greatest of some keys, where the keys are few but were not computed apart."""
    known: pa.Table | None = None
    """The values of some keys, where they were not computed apart."""

    @property
    def few(self) -> bool:
        """Whether the driver holds all that need be known of them."""
        return self.table is not None or self.reach is not None

    @property
    def values(self) -> pa.Table | None:
        """What is known of the keys: some columns, maybe with more rows than really changed."""
        return self.table if self.table is not None else self.known

    def bounded(self, frame: Frame, expressions: Mapping[str, exp.Expr]) -> Frame:
        """The frame without rows that cannot have a touched key; the expressions say what the keys are over it."""
        if frame.rows() is not None:  # what is bounded is what is read, and this has been
            return frame
        plain = all(isinstance(e, exp.Column) for e in expressions.values())
        bounds = self.table if self.table is not None else self.reach
        if bounds is None or (plain and self._exact is not None):
            return frame
        spans = {}
        for name, expression in expressions.items():
            span = span_of(expression) if name in bounds.column_names else None
            # Text that is cast to a time has another order.
            if span is not None and (span.width is None or frame.types[span.column] in _TIMES):
                spans[name] = span
        bound = superset(bounds, spans, listed=bounds is not self.reach)
        return frame if bound is None else frame.where(bound)

    def around(self, expressions: Mapping[str, exp.Expr]) -> pa.Table | None:
        """Between which values of its columns the rows with a touched key lie; None if of no column that is known."""
        bounds = self.table if self.table is not None else self.reach
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

    def matching(self, frame: Frame) -> Frame:
        """The rows that have a touched key, under the keys' names. NULL matches NULL."""
        if self._exact is not None and frame.rows() is None:
            return frame.where(self._exact)
        return matching(frame, self.keys, self.names, known=self._without_null)

    @cached_property
    def _without_null(self) -> frozenset[str]:
        """Keys that are never NULL, as far as is known."""
        tables = [table for table in (self.table, self.reach, self.known) if table is not None]
        return frozenset(name for table in tables for name in table.column_names if not table.column(name).null_count)

    @cached_property
    def _exact(self) -> exp.Expr | None:
        """A condition that says the same as the join, which costs less if the keys are few."""
        return None if self.table is None else exactly(self.table.select(self.names))

    def of(self, frame: Frame) -> Frame:
        """Both, for a frame that has the keys as columns."""
        return self.matching(self.bounded(frame, {name: column(name) for name in self.names}))


def touched(
    change: Delta,
    keys: Sequence[str],
    keep: Callable[[Frame], Frame],
    reach: pa.Table | None = None,
    values: pa.Table | None = None,
) -> Touched | None:
    """The keys that a change touches; None when there is one group of everything.

    ``reach``, if known, bounds them: then they need not be computed before what is read for them. ``values``: what is
    known of them.
    """
    if not keys:
        return None
    names, rows, known = tuple(keys), change.frame, change.known
    if rows.size.surely_on_driver:  # more keys than really changed do no harm, they cost a little
        chosen = rows.only(keys)
        if chosen.rows() is not None:
            return Touched(keys=chosen, names=names, table=chosen.rows())
        if known is not None and known.num_rows <= limits.KNOWN_KEYS and set(keys) <= set(known.column_names):
            return Touched(keys=chosen, names=names, table=known.select(list(keys)))
        if reach is not None:
            return Touched(keys=chosen, names=names, table=None, reach=reach, known=values)
        kept = keep(chosen)
    else:
        rows = rows if change.append_only else rows.consolidated()
        kept = keep(rows.only(keys).group(list(keys), []))
    return Touched(keys=kept, names=names, table=kept.rows())


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


def key_values(known: pa.Table | None, keys: Iterable[Named], *, utc: bool) -> pa.Table | None:
    """What is known of a change's keys: columns, and units of time that times are cut to; None if nothing is."""
    found: dict[str, pa.Array] = {}
    for name, expression in keys if known is not None else ():
        place = place_of(expression, utc=utc)
        if place is None or known is None or place.column not in known.column_names:
            continue
        values = known.column(place.column).combine_chunks()
        if place.unit is None:
            found[name] = values
        elif pa.types.is_timestamp(values.type) and values.type.tz is not None and values.type.unit == "us":
            found[name] = floored(values.cast(pa.int64()), place.unit).cast(values.type)
    return pa.table(found) if found else None


def place_of(expression: exp.Expr, *, utc: bool) -> Place | None:
    """Where a key is found exactly: in a column, or by cutting times. Longer units depend on the zone."""
    match expression:
        case exp.Column():
            return Place(expression.name)
        case exp.TimestampTrunc(this=exp.Column() as at, unit=unit) if str(unit).upper() in _EXACT:
            length = _EXACT[str(unit).upper()]
            return Place(at.name, length) if utc or length <= _EXACT["SECOND"] else None
        case WindowStart(this=exp.Column() as at) if not expression.args.get("offset"):
            return Place(at.name, expression.width, local=utc)
    return None


def sought(
    child: Operator, keys: pa.Table | None, expressions: Mapping[str, exp.Expr], *, utc: bool
) -> Anywhere | None:
    """Which rows of the scans under an operator can have the keys; None if that cannot be told."""
    places: dict[str, list[Place]] = {}
    for name, expression in expressions.items():
        place = place_of(expression, utc=utc) if keys is not None and name in keys.column_names else None
        found = origins(child, place.column) if place is not None else []
        if place is not None and found:
            places[name] = [replace(place, column=scanned) for scanned in found]
    return Anywhere(keys.select(list(places)), places) if keys is not None and places else None


def origins(op: Operator, name: str) -> list[str]:
    """The columns of scans by which rows can be left out, when only some values of an operator's column are wanted.

    That is the column itself, and those that it must be equal to, as far as rows that go leave no trace in others.
    """
    match op:
        case Scan():
            return [name] if name in op.columns else []
        case Project(child=child, outputs=outputs):
            value = dict(outputs)[name]
            return origins(child, value.name) if isinstance(value, exp.Column) else []
        case Filter(child=child) | Generate(child=child):
            return origins(child, name) if name in child.columns else []
        case Join(inputs=inputs, conditions=conditions):
            names = _equal_to(name, conditions)
            return [found for child in inputs for n in names if n in child.columns for found in origins(child, n)]
        case SidedJoin(left=left, right=right, conditions=conditions, kind=kind) if kind != "full":
            if name not in left.columns:
                return []
            equal = {theirs.name for mine, theirs in _equal_columns(conditions) if mine.name == name}
            beside = [found for n in sorted(equal & set(right.columns)) for found in origins(right, n)]
            return [*origins(left, name), *beside]
    return []


def _equal_to(name: str, conditions: Sequence[exp.Expr]) -> list[str]:
    """A column and all that equalities make equal to it."""
    names = [name]
    for known in names:
        names += [o.name for mine, o in _equal_columns(conditions) if mine.name == known and o.name not in names]
    return names


def joined_by(known: pa.Table | None, conditions: Iterable[exp.Expr], child: Operator) -> dict[str, exp.Expr]:
    """The columns of an operator that are equal to known ones: those of what is known, and what each is equal to."""
    found: dict[str, exp.Expr] = {}
    for mine, theirs in _equal_columns(conditions):
        if known is not None and theirs.name in known.column_names and mine.name in child.columns:
            found[theirs.name] = mine
    return found


def _equal_columns(conditions: Iterable[exp.Expr]) -> Iterator[tuple[exp.Column, exp.Column]]:
    """The pairs of columns that are to be equal, each in both orders."""
    for equality in conditions:
        inner = equality.unnest()
        if isinstance(inner, exp.EQ | exp.NullSafeEQ):
            left, right = inner.left.unnest(), inner.right.unnest()
            if isinstance(left, exp.Column) and isinstance(right, exp.Column):
                yield from ((left, right), (right, left))


def joining(frame: Frame, known: pa.Table | None, conditions: Iterable[exp.Expr]) -> Frame:
    """The frame without rows that cannot be joined to the known ones, told by the equalities of columns."""
    if known is None or frame.rows() is not None:
        return frame
    for mine, theirs in _equal_columns(conditions):
        named = mine.name in frame.columns and theirs.name in known.column_names
        if named and _comparable(frame.types[mine.name], known.column(theirs.name).type):
            bound = superset(known, {theirs.name: Span(mine.name)})
            frame = frame if bound is None else frame.where(bound)
    return frame


def _comparable(kind: str, other: pa.DataType) -> bool:
    """Whether values of the two types are compared as they are: Spark would cast a number to compare it with text."""
    match kind.partition("(")[0]:
        case "tinyint" | "smallint" | "int" | "bigint":
            return pa.types.is_integer(other)
        case "string":
            return pa.types.is_string(other) and kind == "string"
        case "date":
            return pa.types.is_date(other)
        case "decimal":
            return pa.types.is_decimal(other)
        case "timestamp":
            return pa.types.is_timestamp(other) and other.tz is not None
        case "timestamp_ntz":
            return pa.types.is_timestamp(other) and other.tz is None
    return False


def span_of(expression: exp.Expr) -> Span | None:
    """The column that a key is, or is cut from; more than the unit's width, since clocks are turned back."""
    match expression:
        case exp.Column():
            return Span(expression.name)
        case exp.TimestampTrunc(this=exp.Column() as at, unit=unit) if str(unit).upper() in _UNITS:
            return Span(at.name, _WIDTHS.get(str(unit).upper(), f"2 {str(unit).upper()}"))
        case exp.Cast(this=exp.Column() as at, to=kind) if kind.this == exp.DataType.Type.DATE:
            return Span(at.name, "2 DAY")
        case WindowStart(this=exp.Column() as at):
            return Span(at.name, f"{2 * expression.width} MICROSECOND")
    return None
