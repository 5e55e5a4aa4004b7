"""Intervals of fixed length, in microseconds."""

from __future__ import annotations

import re
from collections.abc import Sequence

MICROSECONDS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
    "day": 86_400_000_000, "week": 7 * 86_400_000_000,
}  # fmt: skip
LONGEST = 36_525 * MICROSECONDS["day"]
"""A century: what is added to a moment of today is still a date."""


def microseconds(text: str) -> int | None:
    """How long an interval is; None when it is not one, of no fixed length, or longer than a calendar goes.

    >>> microseconds("1 hour 30 minutes"), microseconds("0.5 seconds"), microseconds("1 month")
    (5400000000, 500000, None)
    >>> microseconds("5000 weeks"), microseconds("6000 weeks")
    (3024000000000000, None)
    """
    return _total(text.replace("'", " ").split())


def _total(words: Sequence[str]) -> int | None:
    if not words or len(words) % 2:
        return None
    total = 0
    for amount, unit in zip(words[::2], words[1::2], strict=True):
        scale = MICROSECONDS.get(unit.lower().removesuffix("s"))
        if scale is None or not re.fullmatch(r"\d+(\.\d+)?", amount):
            return None
        total += round(float(amount) * scale)
    return total if total <= LONGEST else None


def described(micros: int) -> str:
    """The same in words.

    >>> described(5_400_000_000), described(0), described(1_500_000)
    ('90 minutes', '0 seconds', '1500 milliseconds')
    """
    for unit in ("week", "day", "hour", "minute", "second", "millisecond", "microsecond"):
        if micros and micros % MICROSECONDS[unit] == 0:
            count = micros // MICROSECONDS[unit]
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "0 seconds"
