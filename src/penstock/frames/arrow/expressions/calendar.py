"""Parts of dates and times over rows on the driver: the rules of ``values`` for calendars."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.expressions.casts import Mode, as_date, as_moment, converted, mode_of
from penstock.frames.arrow.expressions.clocks import HOUR, MINUTE, SECOND, clock, dates, stored
from penstock.frames.arrow.expressions.times import begin_of
from penstock.frames.arrow.expressions.types import DIGITS, Value
from penstock.frames.arrow.expressions.values import Rows, by_row, column, each, function, rule, value
from penstock.frames.arrow.groups import Numbers
from penstock.frames.frame import NotHere

_NAMES = {
    "YEAR": ("Y", "YEARS", "YR", "YRS"), "YEAROFWEEK": (), "QUARTER": ("QTR",), "MONTH": ("MON", "MONS", "MONTHS"),
    "WEEK": ("W", "WEEKS"), "DAY": ("D", "DAYS"), "DAYOFWEEK": ("DOW",), "DAYOFWEEK_ISO": ("DOW_ISO",), "DOY": (),
    "HOUR": ("H", "HOURS", "HR", "HRS"), "MINUTE": ("M", "MIN", "MINS", "MINUTES"),
    "SECOND": ("S", "SEC", "SECONDS", "SECS"),
}  # fmt: skip
"""The parts that EXTRACT knows, and their other names."""
_USUAL = {other: name for name, others in _NAMES.items() for other in (name, *others)}
_WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_LONG = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")


def _months(days: Numbers) -> Numbers:
    return np.asarray(days.astype("M8[D]").astype("M8[M]").astype(np.int64))


def _year(days: Numbers) -> Numbers:
    return np.asarray(_months(days) // 12 + 1970)


def _week_year(days: Numbers) -> Numbers:
    """The year of a week: that of its Thursday."""
    return _year(days - (days + 3) % 7 + 3)


def _first_day(years: Numbers) -> Numbers:
    return begin_of((years - 1970) * 12)


def _week(days: Numbers) -> Numbers:
    thursday = days - (days + 3) % 7 + 3
    return np.asarray((thursday - _first_day(_year(thursday))) // 7 + 1)


_PARTS: dict[str, Callable[[Numbers], Numbers]] = {
    "YEAR": _year,
    "YEAROFWEEK": _week_year,
    "QUARTER": lambda days: _months(days) % 12 // 3 + 1,
    "MONTH": lambda days: _months(days) % 12 + 1,
    "WEEK": _week,
    "DAY": lambda days: days - begin_of(_months(days)) + 1,
    "DAYOFWEEK": lambda days: (days + 4) % 7 + 1,
    "DAYOFWEEK_ISO": lambda days: (days + 3) % 7 + 1,
    "WEEKDAY": lambda days: (days + 3) % 7,
    "DOY": lambda days: days - _first_day(_year(days)) + 1,
}
_HOURS = {"HOUR": (HOUR, 24), "MINUTE": (MINUTE, 60), "SECOND": (SECOND, 60)}
_NODES: dict[type[exp.Expr], str] = {
    exp.Year: "YEAR", exp.Month: "MONTH", exp.Quarter: "QUARTER", exp.WeekOfYear: "WEEK",
    exp.Day: "DAY", exp.DayOfMonth: "DAY", exp.DayOfWeek: "DAYOFWEEK", exp.DayOfYear: "DOY", exp.Hour: "HOUR",
    exp.Minute: "MINUTE", exp.Second: "SECOND",
}  # fmt: skip


@rule(*_NODES, reads=("this",))
def _part(node: exp.Expr, rows: Rows) -> Value:
    return _part_of(value(node.this, rows), _NODES[type(node)], rows)


@function("WEEKDAY", takes=(1,))
def _weekday(arguments: list[exp.Expr], rows: Rows) -> Value:
    return _part_of(value(arguments[0], rows), "WEEKDAY", rows)


@rule(exp.Extract)
def _extracted(node: exp.Extract, rows: Rows) -> Value:
    return _extracted_from(node.name, value(node.expression, rows), rows)


@function("DATE_PART", "DATEPART", takes=(2,))
def _named_part(arguments: list[exp.Expr], rows: Rows) -> Value:
    if not isinstance(arguments[0], exp.Literal):
        raise NotHere
    return _extracted_from(arguments[0].name, value(arguments[1], rows), rows)


def _extracted_from(name: str, found: Value, rows: Rows) -> Value:
    part = _USUAL.get(name.upper())
    if part is None or found.type == pa.string():
        raise NotHere
    return _part_of(found, part, rows) if part != "SECOND" else _seconds(found, rows)


def _seconds(found: Value, rows: Rows) -> pa.Array:
    """Seconds with their fraction."""
    shown, missing = clock(_with_time(found, rows), rows)
    return _in_millionths(pa.array(shown % MINUTE, mask=missing))


def _in_millionths(numbers: pa.Array) -> pa.Array:
    wide = numbers.cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(pa.decimal128(8, 6), len(wide), wide.buffers(), offset=wide.offset)


def _part_of(found: Value, part: str, rows: Rows) -> pa.Array:
    if part in _HOURS:
        unit, count = _HOURS[part]
        shown, missing = clock(_with_time(found, rows), rows)
        numbers = shown // unit % count
    else:
        days, missing = stored(as_date(found, rows))
        numbers = _PARTS[part](days)
    return pa.array(numbers.astype(np.int32), mask=missing)


def _with_time(found: Value, rows: Rows) -> pa.Array:
    return found if found.type == pa.timestamp("us") and isinstance(found, pa.Array) else as_moment(found, rows)


@rule(exp.Dayname, exp.Monthname, reads=("this",))
def _name(node: exp.Expr, rows: Rows) -> Value:
    form = "%a" if isinstance(node, exp.Dayname) else "%b"
    return each(as_date(value(node.this, rows), rows), lambda day: english(day, form), pa.string())


def english(day: date, form: str) -> str:
    """The name of a day or a month, whatever the language of the machine."""
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    months = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
              "November", "December")  # fmt: skip
    name = days[day.weekday()] if form in ("%a", "%A") else months[day.month - 1]
    return name if form in ("%A", "%B") else name[:3]


@rule(exp.LastDay, reads=("this",))
def _last_day(node: exp.LastDay, rows: Rows) -> Value:
    days, missing = stored(as_date(value(node.this, rows), rows))
    return dates(begin_of(_months(days) + 1) - 1, missing)


@rule(exp.NextDay)
def _next_day(node: exp.NextDay, rows: Rows) -> Value:
    name = str(node.expression.this).upper() if isinstance(node.expression, exp.Literal) else ""
    known = [i for i, short in enumerate(_WEEKDAYS) if name in (short, _LONG[i][:3], _LONG[i])]
    if not known:
        raise NotHere
    days, missing = stored(as_date(value(node.this, rows), rows))
    return dates(days + 1 + (known[0] - 5 - days) % 7, missing)


@function("MAKE_DATE", takes=(3,))
def _made(arguments: list[exp.Expr], rows: Rows) -> Value:
    parts = [column(argument, rows) for argument in arguments]
    if any(part.type not in DIGITS for part in parts):
        raise NotHere
    return by_row([converted(part, pa.int32(), rows) for part in parts], lambda *ymd: _day(ymd, rows), pa.date32())


def _day(parts: tuple[int, ...], rows: Rows) -> date | None:
    year, month, day = parts
    if not 1 <= year <= 9999:
        raise NotHere
    try:
        return date(year, month, day)
    except ValueError:
        if mode_of(rows) is Mode.ANSI:
            raise NotHere from None
        return None
