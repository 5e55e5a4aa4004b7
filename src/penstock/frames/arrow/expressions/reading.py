"""Text that is read as numbers, dates and times, as Spark's casts read it.

Each function gives a value, or ``None`` for what no cast would accept, or raises ``NotHere`` for what Spark may read
in some way of its own.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa

from penstock.frames.arrow.expressions.zones import zone
from penstock.frames.frame import NotHere

_BLANK = " \t\n\r\x0b\x0c"
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_WITH_FRACTION = re.compile(r"([+-]?\d+)\.\d*", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,5})?", re.ASCII)
_ODD_NUMBER = re.compile(r"[+-]?(nan|inf|infinity|0x.*|[\d.e+-]+[df])", re.IGNORECASE)
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})([ T].*)?", re.ASCII)
_SOME_DAY = re.compile(r"[+-].*|\d{4}(-\d{1,2})?|\d{5,7}(-\d{1,2}(-\d{1,2}([ T].*)?)?)?|0000.*", re.ASCII)
_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1)
_DIGITS = Context(prec=200, rounding=ROUND_HALF_UP)
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")


def trimmed(text: str) -> str:
    """Text without what is blank around it; what is blank to Java but not here is Spark's."""
    if not all(" " <= c < "\x7f" or c in _BLANK or (c > "\x7f" and c.isalpha()) for c in text):
        raise NotHere
    return text.strip(_BLANK)


def whole(text: str, kind: pa.DataType, *, fractions: bool) -> int | None:
    """A whole number of a type; with ``fractions``, what is behind a point is cut off."""
    text = trimmed(text)
    if "." in text and fractions:
        cut = _WITH_FRACTION.fullmatch(text)
        if cut is None:
            raise NotHere
        text = cut[1]
    if not _WHOLE.fullmatch(text):
        return None
    limit = 2 ** (kind.bit_width - 1)
    return number if -limit <= (number := int(text)) < limit else None


def decimal(text: str, kind: pa.DataType) -> Decimal | None:
    text = trimmed(text)
    if not _NUMBER.fullmatch(text):
        return None
    return fitting(Decimal(text), kind)


def fitting(number: Decimal, kind: pa.DataType) -> Decimal | None:
    """A decimal rounded half up to a type, if it has room for it."""
    if number and number.adjusted() > 60:
        return None
    found = number.quantize(Decimal(1).scaleb(-kind.scale), context=_DIGITS)
    return found if abs(found.scaleb(kind.scale, context=_DIGITS)) < 10**kind.precision else None


def double(text: str) -> float | None:
    text = trimmed(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    if _ODD_NUMBER.fullmatch(text):
        raise NotHere
    return None


def truth(text: str) -> bool | None:
    text = trimmed(text).lower()
    return True if text in _TRUE else False if text in _FALSE else None


def day(text: str) -> date | None:
    text = trimmed(text)
    if _SOME_DAY.fullmatch(text):
        raise NotHere
    found = _DAY.fullmatch(text)
    try:
        return date(*(int(part) for part in found.groups()[:3])) if found else None
    except ValueError:
        return None


def moment(text: str, zone_name: str | None) -> int | None:
    """Microseconds of a time that a clock in a zone shows, unless the text names another; without zone, any clock."""
    text = trimmed(text)
    if not text or (text[0].isalpha() and text[0] != "T"):
        return None
    found = _TIME.fullmatch(text)
    if found is None or found[1] == "0000":
        raise NotHere
    try:
        shown = datetime(*(int(part or 0) for part in found.groups()[:6]))  # type: ignore[arg-type]
    except ValueError:
        return None
    micros = (shown - _EPOCH) // timedelta(microseconds=1) + int((found[7] or "").ljust(6, "0")[:6])
    if found[8]:
        return micros - _ahead(found[8], zone_name)
    return micros if zone_name is None else int(zone(zone_name).times(np.array([micros]))[0])


def _ahead(offset: str, zone_name: str | None) -> int:
    if zone_name is None:
        raise NotHere
    if offset == "Z":
        return 0
    hours, minutes = int(offset[1:3]), int(offset[4:])
    if hours > 17 or minutes > 59:
        raise NotHere
    return (hours * 60 + minutes) * 60_000_000 * (1 if offset[0] == "+" else -1)


def text_of_micros(micros: int) -> str:
    """A time as a cast writes it: a fraction without zeros at its end."""
    shown = _EPOCH.replace(tzinfo=timezone.utc) + timedelta(microseconds=micros)
    text = shown.strftime("%Y-%m-%d %H:%M:%S").zfill(19)
    fraction = f".{shown.microsecond:06d}".rstrip("0").rstrip(".")
    return text + fraction
