"""Casts over rows on the driver: the rules of ``values`` that give a value another type, as Spark does.

Where Spark would say that a value does not fit, it is NULL for TRY_CAST; under ANSI it is an error, which is Spark's.
Without ANSI it is NULL for text, and for numbers something else, which is Spark's again.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames.arrow.expressions import reading
from penstock.frames.arrow.expressions.clocks import DAY, LOCAL, SECOND, as_time, at_clock, clock, dates, stored, times
from penstock.frames.arrow.expressions.decimals import rounded
from penstock.frames.arrow.expressions.floats import java_text, same_rounded
from penstock.frames.arrow.expressions.types import DIGITS, Value, cast
from penstock.frames.arrow.expressions.values import TIME, Rows, check_arguments, each, function, rule, spread, value
from penstock.frames.frame import NotHere
from penstock.frames.settings import ANSI, ZONE

_TYPE = exp.DataType.Type
_PLAIN_TYPES = {
    _TYPE.BOOLEAN: pa.bool_(), _TYPE.TINYINT: pa.int8(), _TYPE.SMALLINT: pa.int16(), _TYPE.INT: pa.int32(),
    _TYPE.BIGINT: pa.int64(), _TYPE.DOUBLE: pa.float64(), _TYPE.FLOAT: pa.float32(), _TYPE.TEXT: pa.string(),
    _TYPE.VARCHAR: pa.string(), _TYPE.DATE: pa.date32(), _TYPE.TIMESTAMP: TIME, _TYPE.TIMESTAMPTZ: TIME,
    _TYPE.TIMESTAMPLTZ: TIME, _TYPE.TIMESTAMPNTZ: LOCAL, _TYPE.BINARY: pa.binary(),
}  # fmt: skip
_DEFAULT_DECIMAL = (10, 0)
_NAMED = {
    "BIGINT": pa.int64(), "DECIMAL": pa.decimal128(*_DEFAULT_DECIMAL), "TINYINT": pa.int8(), "SMALLINT": pa.int16(),
}  # fmt: skip
"""Casts that are written as functions, and that the parser does not know as such."""


class Mode(Enum):
    """How a cast takes a value that does not fit."""

    ANSI = "an error"
    TRY = "NULL"
    LEGACY = "NULL for text"


def type_of(kind: exp.DataType) -> pa.DataType:
    check_arguments(kind, ("this", "expressions", "nested"))
    if kind.this == _TYPE.DECIMAL:
        precision, scale = (*(int(e.name) for e in kind.expressions), *_DEFAULT_DECIMAL[len(kind.expressions) :])
        return pa.decimal128(precision, scale)
    if kind.this == _TYPE.STRUCT:
        return pa.struct([pa.field(e.name, type_of(e.args["kind"])) for e in kind.expressions])
    if kind.this not in _PLAIN_TYPES or kind.expressions:
        raise NotHere
    return _PLAIN_TYPES[kind.this]


@rule(exp.Cast, reads=("this", "to"))
@rule(exp.TryCast, reads=("this", "to", "safe"))
def _cast(node: exp.Cast, rows: Rows) -> Value:
    mode = Mode.TRY if node.args.get("safe") else mode_of(rows)
    return converted(value(node.this, rows), type_of(node.to), rows, mode)


for _name, _kind in _NAMED.items():

    def _named(arguments: list[exp.Expr], rows: Rows, kind: pa.DataType = _kind) -> Value:
        return converted(value(arguments[0], rows), kind, rows)

    function(_name, takes=(1,))(_named)


def mode_of(rows: Rows) -> Mode:
    return Mode.ANSI if rows.settings[ANSI] == "true" else Mode.LEGACY


def converted(found: Value, to: pa.DataType, rows: Rows, mode: Mode | None = None) -> Value:
    """A value in another type, as a cast gives it."""
    mode = mode or mode_of(rows)
    if found.type == to or pa.types.is_null(found.type):
        return cast(found, to)
    if isinstance(found, pa.Scalar):
        return _converted(pa.array([found.as_py()], found.type), to, rows, mode)[0]
    return _converted(found, to, rows, mode)


def _converted(found: pa.Array, to: pa.DataType, rows: Rows, mode: Mode) -> pa.Array:
    kind = found.type
    if to == pa.string():
        return _to_text(found, rows)
    if kind == pa.string():
        return _read(found, to, rows, mode)
    if _is_temporal(kind) or _is_temporal(to):
        return _temporal(found, to, rows, mode)
    if pa.types.is_boolean(kind):
        return _number_of_truth(found, to)
    if pa.types.is_boolean(to):
        return _truth_of_number(found)
    if _is_number(kind) and _is_number(to):
        return _number(found, to, mode)
    return cast(found, to)


def _is_temporal(kind: pa.DataType) -> bool:
    return pa.types.is_date32(kind) or pa.types.is_timestamp(kind)


def _is_number(kind: pa.DataType) -> bool:
    return kind in DIGITS or pa.types.is_decimal128(kind) or pa.types.is_floating(kind)


# -- text --------------------------------------------------------------------------------------------------------------


def as_text(found: Value, rows: Rows) -> Value:
    """A value as text, as Spark takes it where a function wants text."""
    return converted(found, pa.string(), rows)


def _to_text(found: pa.Array, rows: Rows) -> pa.Array:
    kind = found.type
    if kind in DIGITS:
        return found.cast(pa.string())
    if pa.types.is_boolean(kind):
        return pc.if_else(found, "true", "false")
    if pa.types.is_decimal128(kind):
        return each(found, _plain(rows), pa.string())
    if pa.types.is_float64(kind):
        return each(found, java_text, pa.string())
    if pa.types.is_date32(kind):
        return found.cast(pa.string())
    if pa.types.is_timestamp(kind):
        shown, missing = clock(found, rows)
        return each(pa.array(shown, mask=missing), reading.text_of_micros, pa.string())
    raise NotHere


def _plain(rows: Rows) -> Callable[[Any], str]:
    """Decimals in digits. Without ANSI, Java writes those near zero with an exponent."""

    def text(number: Any) -> str:
        if mode_of(rows) is Mode.LEGACY and number.adjusted() < -6:
            raise NotHere
        return f"{number:f}"

    return text


def _read(found: pa.Array, to: pa.DataType, rows: Rows, mode: Mode) -> pa.Array:
    """Values that text says. What no cast accepts is NULL, or an error."""
    read = each(found, _reader(to, rows, mode), pa.int64() if pa.types.is_timestamp(to) else to)
    if mode is Mode.ANSI and read.null_count > found.null_count:
        raise NotHere
    if pa.types.is_timestamp(to):
        missing = read.is_null().to_numpy(zero_copy_only=False)
        return times(read.fill_null(0).to_numpy(), missing, to)
    return read


def _reader(to: pa.DataType, rows: Rows, mode: Mode) -> Callable[[str], Any]:
    if to in DIGITS:
        return lambda text: reading.whole(text, to, fractions=mode is Mode.LEGACY)
    if pa.types.is_decimal128(to):
        return lambda text: reading.decimal(text, to)
    if pa.types.is_timestamp(to):
        name = rows.settings[ZONE] if to == TIME else None
        return lambda text: reading.moment(text, name)
    readers = {pa.float64(): reading.double, pa.bool_(): reading.truth, pa.date32(): reading.day}
    if to not in readers:
        raise NotHere
    return readers[to]


# -- dates and times ---------------------------------------------------------------------------------------------------


def _temporal(found: pa.Array, to: pa.DataType, rows: Rows, mode: Mode) -> pa.Array:
    kind = found.type
    if not _is_temporal(to):
        return _seconds(found, to)
    if not _is_temporal(kind):
        return _of_seconds(found, to)
    shown, missing = clock(found, rows)
    if pa.types.is_date32(to):
        return dates(shown // DAY, missing)
    return at_clock(shown, missing, rows) if to == TIME else times(shown, missing, LOCAL)


def _seconds(found: pa.Array, to: pa.DataType) -> pa.Array:
    """Seconds since 1970 of times."""
    if found.type != TIME:
        raise NotHere
    micros, missing = stored(found)
    if pa.types.is_float64(to):
        return pa.array(micros / float(SECOND), mask=missing)
    if to not in DIGITS:
        raise NotHere
    return pa.array(np.where(missing, 0, micros // SECOND), mask=missing).cast(to)


def _of_seconds(found: pa.Array, to: pa.DataType) -> pa.Array:
    if to != TIME or found.type not in DIGITS:
        raise NotHere
    return pc.multiply_checked(_within(found.cast(pa.int64())), SECOND).cast(TIME)


def _within(seconds: pa.Array) -> pa.Array:
    extremes = pc.min_max(seconds)
    if any(abs(extremes[side].as_py() or 0) > 50_000_000_000 for side in ("min", "max")):
        raise NotHere
    return seconds


def as_date(found: Value, rows: Rows) -> pa.Array:
    """A date for each row, of dates, times or text."""
    return spread(converted(found, pa.date32(), rows), rows.count)


def as_moment(found: Value, rows: Rows) -> pa.Array:
    """A time with a zone for each row, of dates, times or text."""
    found = spread(found, rows.count)
    return converted(found, TIME, rows) if found.type == pa.string() else as_time(found, rows)


# -- numbers -----------------------------------------------------------------------------------------------------------


def _number_of_truth(found: pa.Array, to: pa.DataType) -> pa.Array:
    if to in DIGITS or pa.types.is_float64(to):
        return found.cast(pa.int8()).cast(to)
    if pa.types.is_decimal128(to):
        return cast(found.cast(pa.int8()), to)
    raise NotHere


def _truth_of_number(found: pa.Array) -> pa.Array:
    if found.type in DIGITS or pa.types.is_decimal128(found.type):
        return each(found, bool, pa.bool_())
    raise NotHere


def _number(found: pa.Array, to: pa.DataType, mode: Mode) -> pa.Array:
    kind = found.type
    if pa.types.is_float64(kind) and to in DIGITS and mode is not Mode.TRY:
        return _whole_of_doubles(found, to)
    if pa.types.is_float64(kind) and pa.types.is_decimal128(to):
        return each(found, lambda number: _decimal_of_double(number, to), to)
    if pa.types.is_decimal128(kind) and pa.types.is_float64(to):
        return each(found, float, to)
    if mode is Mode.TRY and to in DIGITS:
        return each(found, lambda number: _room_for(int(number), to), to)
    if pa.types.is_decimal128(kind) and to in DIGITS:
        return each(found, int, pa.decimal128(38, 0)).cast(to)
    if pa.types.is_decimal128(kind) and pa.types.is_decimal128(to) and mode is not Mode.ANSI:
        return each(found, lambda number: reading.fitting(number, to), to)
    if pa.types.is_decimal128(kind) and pa.types.is_decimal128(to) and to.scale < kind.scale:
        return rounded(found, to)
    if kind in DIGITS and pa.types.is_float64(to):  # to the nearest, as in Java
        numbers = found.cast(pa.int64()).fill_null(0).to_numpy().astype(np.float64)
        return pa.array(numbers, mask=found.is_null().to_numpy(zero_copy_only=False))
    return cast(found, to)


def _room_for(number: int, to: pa.DataType) -> int | None:
    limit = 2 ** (to.bit_width - 1)
    return number if -limit <= number < limit else None


def _whole_of_doubles(found: pa.Array, to: pa.DataType) -> pa.Array:
    """Without what is behind the point."""
    if pc.any(pc.invert(pc.is_finite(found))).as_py():
        raise NotHere
    return pc.trunc(found).cast(to)


def _decimal_of_double(number: float, to: pa.DataType) -> Any:
    found = same_rounded(number, lambda exact: reading.fitting(exact, to)) if np.isfinite(number) else None
    if found is None:
        raise NotHere
    return found
