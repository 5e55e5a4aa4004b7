"""Dates and times over rows on the driver: the rules of ``values`` that cut, move and compare them."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.expressions.casts import as_date, as_moment
from penstock.frames.arrow.expressions.clocks import (
    DAY,
    HOUR,
    LOCAL,
    MINUTE,
    SECOND,
    at_clock,
    clock,
    dates,
    stored,
    times,
    zone_of,
)
from penstock.frames.arrow.expressions.types import DIGITS, Value
from penstock.frames.arrow.expressions.values import TIME, Rows, check_arguments, column, function, rule, spread, value
from penstock.frames.arrow.groups import Numbers
from penstock.frames.frame import NotHere
from penstock.sql.window_start import WindowStart

DAYS = (pa.int8(), pa.int16(), pa.int32())
"""Types of numbers of days."""
_FIXED = {
    "MICROSECOND": 1, "MILLISECOND": 10**3, "SECOND": SECOND, "MINUTE": MINUTE, "HOUR": HOUR, "DAY": DAY,
    "DAYOFYEAR": DAY, "WEEK": 7 * DAY,
}  # fmt: skip
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_UNITS = {"YYYY": "YEAR", "YY": "YEAR", "MM": "MONTH", "MON": "MONTH", "DD": "DAY"}
"""Other names of units to which times are cut."""
_MONDAY = 3
"""The epoch was a Thursday."""


# -- cutting -----------------------------------------------------------------------------------------------------------


@rule(exp.TimestampTrunc, reads=("this", "unit"))
def _cut(node: exp.TimestampTrunc, rows: Rows) -> Value:
    name = unit_of(node, rows)
    found = as_moment(value(node.this, rows), rows)
    micros, missing = stored(found)
    if name in ("MICROSECOND", "MILLISECOND", "SECOND"):
        return times(micros - micros % _FIXED[name], missing, TIME)
    shown, _ = clock(found, rows)
    if name in ("MINUTE", "HOUR"):
        return at_clock(shown - shown % _FIXED[name], missing, rows, before=micros)
    return at_clock(cut_days(shown // DAY, name) * DAY, missing, rows, before=micros if name == "DAY" else None)


@rule(exp.DateTrunc, reads=("this", "unit"))
def _cut_day(node: exp.DateTrunc, rows: Rows) -> Value:
    name = unit_of(node, rows)
    if name == "DAY":
        raise NotHere
    days, missing = stored(as_date(value(node.this, rows), rows))
    return dates(cut_days(days, name), missing)


def unit_of(node: exp.Expr, rows: Rows) -> str:
    """The unit of a node, by its usual name."""
    unit = node.args.get("unit")
    if not isinstance(unit, exp.Var | exp.Literal):
        raise NotHere
    name = str(unit.this).upper()
    return _UNITS.get(name, name)


def cut_days(days: Numbers, unit: str) -> Numbers:
    """The first days of weeks, months, quarters or years."""
    if unit == "DAY":
        return days
    if unit == "WEEK":
        return np.asarray(days - (days + _MONDAY) % 7)
    if unit not in _MONTHS:
        raise NotHere
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    return begin_of(months - months % _MONTHS[unit])


def begin_of(months: Numbers) -> Numbers:
    """The first days of months since 1970."""
    return np.asarray(months.astype("M8[M]").astype("M8[D]").astype(np.int64))


# -- moving ------------------------------------------------------------------------------------------------------------


@rule(exp.TimestampAdd, reads=("this", "expression", "unit"))
def _added(node: exp.TimestampAdd, rows: Rows) -> Value:
    """TIMESTAMPADD, which windows of time are made of."""
    found, by = column(node.this, rows), column(node.expression, rows)
    if by.type not in DIGITS:
        raise NotHere
    if found.type != LOCAL:
        found = as_moment(found, rows)
    amount, absent = _whole(by)
    return later(found, _amounts(unit_of(node, rows), amount), absent, rows)


@rule(WindowStart, reads=("this", "width", "offset"))
def _window_start(node: WindowStart, rows: Rows) -> Value:
    return value(node.spelled, rows)


def _whole(found: pa.Array) -> tuple[Numbers, Numbers]:
    return found.fill_null(0).to_numpy().astype(np.int64), found.is_null().to_numpy(zero_copy_only=False)


Amount = tuple[Numbers, Numbers, Numbers]
"""Months, days and microseconds."""


def _amounts(unit: str, amount: Numbers) -> Amount:
    """As many units."""
    none = np.zeros_like(amount)
    if unit in _FIXED and _FIXED[unit] >= DAY:
        return none, _few(amount) * (_FIXED[unit] // DAY), none
    if unit in _FIXED:
        return none, none, _times(amount, _FIXED[unit])
    if unit not in _MONTHS:
        raise NotHere
    return _few(amount) * _MONTHS[unit], none, none


def _times(amount: Numbers, by: int) -> Numbers:
    if len(amount) and max(-int(amount.min()), int(amount.max())) > 2**62 // by:
        raise NotHere
    return amount * by


def _few(amount: Numbers) -> Numbers:
    if len(amount) and max(-int(amount.min()), int(amount.max())) > 2**22:
        raise NotHere
    return amount


def later(found: pa.Array, by: Amount, absent: Numbers, rows: Rows) -> pa.Array:
    """Times later by months and days on the calendar of the zone, and then by microseconds."""
    micros, missing = stored(found)
    missing = missing | absent
    months, days, amount = by
    if months.any() or days.any():
        zone = zone_of(found, rows)
        shown = zone.clock(micros)
        moved_days = months_later(shown // DAY, months) + days
        micros = zone.times(np.where(missing, shown, moved_days * DAY + shown % DAY), before=micros)
    return times(micros + amount, missing, found.type)


def months_later(days: Numbers, by: Numbers | int) -> Numbers:
    """Days some months later; what is no day of a month becomes its last one."""
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    in_month = days - begin_of(months)
    return np.asarray(np.minimum(begin_of(months + by) + in_month, begin_of(months + by + 1) - 1))


def moved(found: Value, interval: exp.Interval, sign: int, rows: Rows) -> Value:
    """Dates and times later or earlier by an interval."""
    months, micros = interval_of(interval)
    found = spread(found, rows.count)
    none = np.zeros(rows.count, bool)
    if pa.types.is_date32(found.type):
        if months or _is_days(interval):
            days, missing = stored(found)
            return dates(months_later(days, sign * months) + sign * micros // DAY, missing)
        found = as_moment(found, rows)
    if not pa.types.is_timestamp(found.type):
        raise NotHere
    whole = micros // DAY if micros >= 0 else -(-micros // DAY)  # a day of an interval is one of the calendar
    amounts = (months, whole, micros - whole * DAY)
    return later(found, tuple(np.full(rows.count, sign * n) for n in amounts), none, rows)  # type: ignore[arg-type]


def interval_of(interval: exp.Interval) -> tuple[int, int]:
    """Months and microseconds of an interval that is written down."""
    check_arguments(interval, ("this", "unit"))
    amount, unit = interval.this, interval.args.get("unit")
    if isinstance(amount, exp.Neg):
        months, micros = interval_of(exp.Interval(this=amount.this, unit=unit))
        return -months, -micros
    if not isinstance(amount, exp.Literal) or not isinstance(unit, exp.Var):
        raise NotHere
    name, text = str(unit.this).upper().removesuffix("S"), str(amount.this)
    if not re.fullmatch(r"[+-]?\d{1,9}(\.\d{1,6})?", text) or ("." in text and name != "SECOND"):
        raise NotHere
    if name in _MONTHS and name != "QUARTER":
        return int(text) * _MONTHS[name], 0
    if name not in _FIXED or name == "DAYOFYEAR":
        raise NotHere
    return 0, int(Decimal(text) * _FIXED[name])


def _is_days(interval: exp.Interval) -> bool:
    return str(interval.args["unit"].this).upper().removesuffix("S") in ("DAY", "WEEK")


@rule(exp.TsOrDsAdd, reads=("this", "expression", "unit"))
def _days_added(node: exp.TsOrDsAdd, rows: Rows) -> Value:
    if unit_of(node, rows) != "DAY":
        raise NotHere
    return days_later(value(node.this, rows), value(node.expression, rows), 1, rows)


@function("DATE_SUB", takes=(2,))
def _days_taken(arguments: list[exp.Expr], rows: Rows) -> Value:
    found, by = (value(argument, rows) for argument in arguments)
    return days_later(found, by, -1, rows)


def days_later(found: Value, by: Value, sign: int, rows: Rows) -> pa.Array:
    """Dates some days later or earlier."""
    if by.type not in DAYS:
        raise NotHere
    amount, absent = _whole(spread(by, rows.count))
    days, missing = stored(as_date(found, rows))
    return dates(days + sign * amount, missing | absent)


@rule(exp.AddMonths)
def _months_added(node: exp.AddMonths, rows: Rows) -> Value:
    by = column(node.expression, rows)
    if by.type not in DAYS:
        raise NotHere
    amount, absent = _whole(by)
    days, missing = stored(as_date(value(node.this, rows), rows))
    return dates(months_later(days, _few(amount)), missing | absent)


# -- differences -------------------------------------------------------------------------------------------------------


@rule(exp.DateDiff, reads=("this", "expression", "unit"))
def _days_between(node: exp.DateDiff, rows: Rows) -> Value:
    end, begin = (_within(side) for side in (node.this, node.expression))
    if node.args.get("unit") is not None:
        return _between(end, begin, unit_of(node, rows), rows)
    (to, missing), (since, absent) = (stored(as_date(value(side, rows), rows)) for side in (end, begin))
    return pa.array((to - since).astype(np.int32), mask=missing | absent)


def _within(node: exp.Expr) -> exp.Expr:
    """What the parser puts a cast around."""
    plain = isinstance(node, exp.TsOrDsToDate) and not node.args.get("safe") and not node.args.get("format")
    return node.this if plain else node


@rule(exp.TimestampDiff, reads=("this", "expression", "unit"))
def _difference(node: exp.TimestampDiff, rows: Rows) -> Value:
    return _between(node.this, node.expression, unit_of(node, rows), rows)


def _between(end: exp.Expr, begin: exp.Expr, unit: str, rows: Rows) -> pa.Array:
    """Whole units between what clocks show."""
    sides = [column(side, rows) for side in (end, begin)]
    (to, missing), (since, absent) = (clock(s if s.type == LOCAL else as_moment(s, rows), rows) for s in sides)
    if unit in _MONTHS:
        apart = _month_and_rest(to) - _month_and_rest(since)
        size = 32 * DAY * _MONTHS[unit]
    elif unit in _FIXED and unit != "DAYOFYEAR":
        apart, size = to - since, _FIXED[unit]
    else:
        raise NotHere
    return pa.array(np.sign(apart) * (np.abs(apart) // size), mask=missing | absent)


def _month_and_rest(shown: Numbers) -> Numbers:
    """Months as if each had 32 days, and what of the month has passed."""
    days = shown // DAY
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    return np.asarray((months * 32 + days - begin_of(months)) * DAY + shown % DAY)


@rule(exp.MonthsBetween, reads=("this", "expression", "roundoff"))
def _months_between(node: exp.MonthsBetween, rows: Rows) -> Value:
    exact = node.args.get("roundoff")
    if exact is not None and not isinstance(exact, exp.Boolean):
        raise NotHere
    (one, whole_one, missing), (other, whole_other, absent) = (
        _days_of_month(as_moment(value(side, rows), rows), rows) for side in (node.this, node.expression)
    )
    apart = (one[0] - other[0]).astype(np.float64)
    seconds = (one[1] - other[1]) * 86_400 + one[2] - other[2]
    together = (one[1] == other[1]) | (whole_one & whole_other)
    found = np.where(together, apart, apart + seconds / float(31 * 86_400))
    if exact is None or exact.this:
        found = np.where(together, apart, _rounded(found * 1e8) / 1e8)
    return pa.array(found, mask=missing | absent)


def _days_of_month(found: pa.Array, rows: Rows) -> tuple[tuple[Numbers, Numbers, Numbers], Numbers, Numbers]:
    """Months, days in them and seconds of the day; whether the day is the last of its month; which are NULL."""
    shown, missing = clock(found, rows)
    days = shown // DAY
    months = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    in_month = days - begin_of(months)
    begin = stored(at_clock(days * DAY, missing, rows))[0]
    seconds = (stored(found)[0] - begin) // SECOND
    return (months, in_month, seconds), days == begin_of(months + 1) - 1, missing


def _rounded(numbers: Numbers) -> Numbers:
    """To the nearest whole number, half up."""
    below = np.floor(numbers)
    return np.asarray(below + (numbers - below >= 0.5))


# -- numbers -----------------------------------------------------------------------------------------------------------


@rule(exp.UnixMicros, exp.UnixMillis, exp.UnixSeconds, reads=("this",))
def _since_1970(node: exp.Expr, rows: Rows) -> Value:
    found = column(node.this, rows)
    if found.type != TIME:
        raise NotHere
    micros, missing = stored(found)
    unit = 1 if isinstance(node, exp.UnixMicros) else 1_000 if isinstance(node, exp.UnixMillis) else SECOND
    return pa.array(micros // unit, mask=missing)


def _of_number(by: int) -> None:
    """A rule for times of whole numbers of a unit."""

    def rule_of_call(arguments: list[exp.Expr], rows: Rows) -> Value:
        found = column(arguments[0], rows)
        if found.type not in DIGITS:
            raise NotHere
        amount, missing = _whole(found)
        return times(_times(amount, by), missing, TIME)

    function({1: "TIMESTAMP_MICROS", 1_000: "TIMESTAMP_MILLIS", SECOND: "TIMESTAMP_SECONDS"}[by], takes=(1,))(
        rule_of_call
    )


for _unit in (1, 1_000, SECOND):
    _of_number(_unit)


@rule(exp.UnixDate, reads=("this",))
def _day_number(node: exp.UnixDate, rows: Rows) -> Value:
    return _day_number_of([node.this], rows)


@function("UNIX_DATE", takes=(1,))
def _day_number_of(arguments: list[exp.Expr], rows: Rows) -> Value:
    found = value(arguments[0], rows)
    if not pa.types.is_date32(found.type):
        raise NotHere
    return found.cast(pa.int32())


@rule(exp.DateFromUnixDate, reads=("this",))
def _numbered_day(node: exp.DateFromUnixDate, rows: Rows) -> Value:
    found = column(node.this, rows)
    if found.type not in DAYS:
        raise NotHere
    return dates(*_whole(found))
