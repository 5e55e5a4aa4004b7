"""Dates and times over rows on the driver: the rules of ``values`` for calendars."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.expressions.types import Value
from penstock.frames.arrow.expressions.values import TIME, Rows, check_arguments, numbers, rule, value
from penstock.frames.arrow.groups import Numbers
from penstock.frames.frame import NotHere

_UNITS = {
    "MICROSECOND": 1, "MILLISECOND": 10**3, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3_600 * 10**6,
    "DAY": 86_400 * 10**6,
}  # fmt: skip
"""Units that times are cut to by arithmetic, in microseconds; those above a second in UTC only."""

_CALENDAR = {"MONTH": "M8[M]", "YEAR": "M8[Y]"}

_MONTHS = {"MONTH": 1, "MONTHS": 1, "YEAR": 12, "YEARS": 12}
_FIRST, _LAST = (np.datetime64(day, "D").astype(np.int64) for day in ("0001-01-01", "9999-12-31"))


@rule(exp.TimestampTrunc, reads=("this", "unit"))
def _cut(node: exp.TimestampTrunc, rows: Rows) -> Value:
    name = str(node.args["unit"]).upper()
    found = value(node.this, rows)
    if found.type != TIME or not isinstance(found, pa.Array):
        raise NotHere
    if _UNITS.get(name, _UNITS["DAY"]) > _UNITS["SECOND"] and not rows.settings.utc:
        raise NotHere
    micros, missing = numbers(found)
    if name in _CALENDAR:
        begins = micros.astype("M8[us]").astype(_CALENDAR[name]).astype("M8[us]").astype(np.int64)
    elif name in _UNITS:
        begins = micros - micros % _UNITS[name]
    elif name == "WEEK":  # it begins on Monday, and the epoch on a Thursday
        begins = micros - (micros + 3 * _UNITS["DAY"]) % (7 * _UNITS["DAY"])
    else:
        raise NotHere
    return pa.array(begins, mask=missing).cast(TIME)


@rule(exp.UnixMicros)
def _micros(node: exp.UnixMicros, rows: Rows) -> Value:
    found = value(node.this, rows)
    if found.type != TIME:
        raise NotHere
    return found.cast(pa.int64())


def day_of(times: pa.Array) -> pa.Array:
    """The days that times are on, in UTC."""
    micros, missing = numbers(times)
    return pa.array((micros // _UNITS["DAY"]).astype(np.int32), mask=missing).cast(pa.date32())


def shifted(found: Value, interval: exp.Interval, sign: int) -> Value:
    """Dates some days, months or years later or earlier; what is no day of a month becomes its last one."""
    check_arguments(interval, ("this", "unit"))
    amount, unit = interval.this, interval.args.get("unit")
    if not pa.types.is_date32(found.type) or not isinstance(amount, exp.Literal) or not isinstance(unit, exp.Var):
        raise NotHere
    if not re.fullmatch(r"\d{1,5}", str(amount.this)):
        raise NotHere
    by, name = sign * int(amount.this), str(unit.this).upper()
    if name not in _MONTHS and name not in ("DAY", "DAYS"):
        raise NotHere
    days, missing = _days(pa.array([found.as_py()], found.type) if isinstance(found, pa.Scalar) else found)
    later = days + by if name not in _MONTHS else _months_later(days, by * _MONTHS[name])
    if ((later < _FIRST) | (later > _LAST))[~missing].any():
        raise NotHere
    moved = pa.array(later.astype(np.int32), mask=missing).cast(pa.date32())
    return moved[0] if isinstance(found, pa.Scalar) else moved


def _months_later(days: Numbers, by: int) -> Numbers:
    months = days.astype("M8[D]").astype("M8[M]")
    in_month = days - months.astype("M8[D]").astype(np.int64)
    begin, end = ((months + by + i).astype("M8[D]").astype(np.int64) for i in (0, 1))
    return np.asarray(np.minimum(begin + in_month, end - 1))


def _days(dates: pa.Array) -> tuple[Numbers, Numbers]:
    missing = dates.is_null().to_numpy(zero_copy_only=False)
    return dates.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64), missing


@rule(exp.TsOrDsToDate, reads=("this",))
def _date(node: exp.TsOrDsToDate, rows: Rows) -> Value:
    """What the parser puts around the argument of YEAR and others."""
    found = value(node.this, rows)
    if not pa.types.is_date32(found.type):
        raise NotHere
    return found


@rule(exp.Year, exp.Month, reads=("this",))
def _part(node: exp.Year | exp.Month, rows: Rows) -> Value:
    return _part_of(value(node.this, rows), "YEAR" if isinstance(node, exp.Year) else "MONTH")


@rule(exp.Extract)
def _extracted(node: exp.Extract, rows: Rows) -> Value:
    return _part_of(value(node.expression, rows), node.name.upper())


def _part_of(dates: Value, part: str) -> Value:
    if not pa.types.is_date32(dates.type) or not isinstance(dates, pa.Array):
        raise NotHere
    days, missing = _days(dates)
    months = days.astype("M8[D]").astype("M8[M]")
    match part:
        case "YEAR":
            found = months.astype("M8[Y]").astype(np.int64) + 1970
        case "MONTH":
            found = months.astype(np.int64) % 12 + 1
        case "DAY":
            found = days - months.astype("M8[D]").astype(np.int64) + 1
        case _:
            raise NotHere
    return pa.array(found.astype(np.int32), mask=missing)
