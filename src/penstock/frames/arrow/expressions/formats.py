"""Dates and times in text of a pattern, over rows on the driver: the rules of ``values`` that write and read them.

The parser gives a pattern in its own letters. What it spells in one way though Spark has several has one meaning for
years of four digits, and only those are written and read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.expressions.calendar import english
from penstock.frames.arrow.expressions.casts import Mode, as_moment, converted, mode_of
from penstock.frames.arrow.expressions.clocks import LOCAL, SECOND, at_clock, clock, stored, times
from penstock.frames.arrow.expressions.types import DIGITS, Value
from penstock.frames.arrow.expressions.values import TIME, Rows, column, each, function, rule, value
from penstock.frames.arrow.expressions.zones import zone
from penstock.frames.frame import NotHere
from penstock.frames.settings import DEFAULTS
from penstock.sql.dialect import SparkSql

_EPOCH = datetime(1970, 1, 1)
_POLICY = "spark.sql.legacy.timeParserPolicy"
_LETTERS: dict[str, Callable[[datetime], str]] = {
    "%Y": lambda at: f"{at.year:04d}",
    "%y": lambda at: f"{at.year % 100:02d}",
    "%mstrict": lambda at: f"{at.month:02d}",
    "%-m": lambda at: str(at.month),
    "%dstrict": lambda at: f"{at.day:02d}",
    "%-d": lambda at: str(at.day),
    "%Hstrict": lambda at: f"{at.hour:02d}",
    "%-H": lambda at: str(at.hour),
    "%Istrict": lambda at: f"{at.hour % 12 or 12:02d}",
    "%-I": lambda at: str(at.hour % 12 or 12),
    "%Mstrict": lambda at: f"{at.minute:02d}",
    "%-M": lambda at: str(at.minute),
    "%Sstrict": lambda at: f"{at.second:02d}",
    "%-S": lambda at: str(at.second),
    "%f": lambda at: f"{at.microsecond:06d}",
    "SSS": lambda at: f"{at.microsecond // 1000:03d}",
    "%p": lambda at: "AM" if at.hour < 12 else "PM",
    **{name: lambda at, name=name: english(at, name) for name in ("%a", "%A", "%b", "%B")},  # type: ignore[misc]
}
_READ = {
    "%Y": ("year", r"\d{4}"), "%mstrict": ("month", r"\d\d"), "%-m": ("month", r"\d{1,2}"),
    "%dstrict": ("day", r"\d\d"), "%-d": ("day", r"\d{1,2}"), "%Hstrict": ("hour", r"\d\d"),
    "%Mstrict": ("minute", r"\d\d"), "%Sstrict": ("second", r"\d\d"), "%f": ("microsecond", r"\d{6}"),
}  # fmt: skip
_PIECE = re.compile(r"%-?[A-Za-z](?:strict)?|SSS|'T'|[-/:., _]")
_USUAL = "%Y-%mstrict-%dstrict %Hstrict:%Mstrict:%Sstrict"


def _pieces(node: exp.Expr | None, rows: Rows) -> list[str]:
    """The parts of a pattern that is written down."""
    if not isinstance(node, exp.Literal) or not node.is_string or rows.settings[_POLICY] != DEFAULTS[_POLICY]:
        raise NotHere
    pattern = str(node.this)
    found = _PIECE.findall(pattern)
    if "".join(found) != pattern or not found or any(p[0] == "%" and p not in _LETTERS for p in found):
        raise NotHere
    return found


# -- writing -----------------------------------------------------------------------------------------------------------


@rule(exp.TimeToStr, reads=("this", "format"))
def _written(node: exp.TimeToStr, rows: Rows) -> Value:
    inner = node.this.this if isinstance(node.this, exp.TimeStrToTime) else node.this
    return _text(as_moment(value(inner, rows), rows), _pieces(node.args.get("format"), rows), rows)


def _text(found: pa.Array, pieces: list[str], rows: Rows) -> pa.Array:
    shown, missing = clock(found, rows)
    return each(pa.array(shown, mask=missing), lambda micros: _formatted(micros, pieces), pa.string())


def _formatted(micros: int, pieces: list[str]) -> str:
    at = _EPOCH + timedelta(microseconds=micros)
    if not 1000 <= at.year <= 9999:
        raise NotHere
    return "".join(_LETTERS[piece](at) if piece in _LETTERS else piece.strip("'") for piece in pieces)


@rule(exp.UnixToStr, reads=("this", "format"))
def _written_seconds(node: exp.UnixToStr, rows: Rows) -> Value:
    """FROM_UNIXTIME."""
    found = column(node.this, rows)
    if found.type not in DIGITS:
        raise NotHere
    return _text(converted(found, TIME, rows), _pieces(node.args.get("format"), rows), rows)


# -- reading -----------------------------------------------------------------------------------------------------------


def _reader(pieces: list[str], rows: Rows) -> Callable[[str], datetime | None]:
    names = [_READ[piece][0] for piece in pieces if piece in _READ]
    known = all(piece in _READ or piece not in _LETTERS for piece in pieces)
    if not known or not {"year", "month", "day"} <= set(names) or len(set(names)) < len(names):
        raise NotHere
    parts = (f"({_READ[p][1]})" if p in _READ else re.escape(p.strip("'")) for p in pieces)
    pattern = re.compile("".join(parts), re.ASCII)

    def read(text: str) -> datetime | None:
        found = pattern.fullmatch(text)
        if found is None or mode_of(rows) is Mode.TRY:
            raise NotHere
        try:
            return datetime(**{name: int(part) for name, part in zip(names, found.groups(), strict=True)})  # type: ignore[arg-type]
        except ValueError:
            if mode_of(rows) is Mode.ANSI or found[1 + names.index("year")] == "0000":
                raise NotHere from None
            return None

    return read


def _micros(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // timedelta(microseconds=1)


@rule(exp.TsOrDsToDate, reads=("this", "safe", "format"))
def _date(node: exp.TsOrDsToDate, rows: Rows) -> Value:
    """What the parser puts around the argument of YEAR and others; TO_DATE, too."""
    found = value(node.this, rows)
    if node.args.get("format") is None:
        return converted(found, pa.date32(), rows)
    return _days_written(found, node.args["format"], rows)


@function("TO_DATE", takes=(2,))
def _date_by(arguments: list[exp.Expr], rows: Rows) -> Value:
    pattern = arguments[1]
    if "Y" in pattern.name:  # years of weeks, which Spark refuses
        raise NotHere
    return _days_written(value(arguments[0], rows), SparkSql.format_time(pattern), rows)


def _days_written(found: Value, pattern: exp.Expr | None, rows: Rows) -> pa.Array:
    read = _reader(_pieces(pattern, rows), rows)

    def day(text: str) -> date | None:
        at = read(text)
        return None if at is None else at.date()

    return each(_as_written(found, rows), day, pa.date32())


def _as_written(found: Value, rows: Rows) -> pa.Array:
    if found.type != pa.string():
        raise NotHere
    return found if isinstance(found, pa.Array) else pa.repeat(found, rows.count)


@rule(exp.StrToTime, reads=("this", "format"))
def _moment(node: exp.StrToTime, rows: Rows) -> Value:
    """TO_TIMESTAMP."""
    return _moments(value(node.this, rows), node.args.get("format"), rows)


def _moments(found: Value, pattern: exp.Expr | None, rows: Rows) -> pa.Array:
    read = _reader(_pieces(pattern, rows), rows)
    shown = each(_as_written(found, rows), lambda text: _micros(read(text)), pa.int64())
    missing = shown.is_null().to_numpy(zero_copy_only=False)
    return at_clock(shown.fill_null(0).to_numpy(), missing, rows)


@rule(exp.StrToUnix, reads=("this", "format"))
def _seconds(node: exp.StrToUnix, rows: Rows) -> Value:
    """UNIX_TIMESTAMP. A time needs no pattern."""
    return _since_1970(node.this, node.args.get("format"), rows)


@function("TO_UNIX_TIMESTAMP", takes=(1,))
def _to_seconds(arguments: list[exp.Expr], rows: Rows) -> Value:
    return _since_1970(arguments[0], exp.Literal.string(_USUAL), rows)


def _since_1970(node: exp.Expr, pattern: exp.Expr | None, rows: Rows) -> pa.Array:
    found = column(node, rows)
    if found.type == LOCAL:
        raise NotHere
    moments = _moments(found, pattern, rows) if found.type == pa.string() else as_moment(found, rows)
    micros, missing = stored(moments)
    return pa.array(np.sign(micros) * (np.abs(micros) // SECOND), mask=missing)


# -- zones -------------------------------------------------------------------------------------------------------------


@function("FROM_UTC_TIMESTAMP", takes=(2,))
def _from_utc(arguments: list[exp.Expr], rows: Rows) -> Value:
    found, name = _in_zone(arguments, rows)
    micros, missing = stored(found)
    return times(zone(name).clock(micros), missing, TIME)


@function("TO_UTC_TIMESTAMP", takes=(2,))
def _to_utc(arguments: list[exp.Expr], rows: Rows) -> Value:
    found, name = _in_zone(arguments, rows)
    micros, missing = stored(found)
    return times(np.asarray(zone(name).times(micros)), missing, TIME)


def _in_zone(arguments: list[exp.Expr], rows: Rows) -> tuple[pa.Array, str]:
    found, name = column(arguments[0], rows), arguments[1]
    if found.type != TIME or not isinstance(name, exp.Literal) or not name.is_string:
        raise NotHere
    return found, str(name.this)
