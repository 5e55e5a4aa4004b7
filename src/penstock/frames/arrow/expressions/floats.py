"""Doubles as Java writes them.

Java writes a double with the fewest digits that tell it from its neighbours, but before Java 19 sometimes with one
more. So a double is written here only if it has few digits, and one that is rounded by its digits must have the same
result whichever are written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from penstock.frames.frame import NotHere

_SURE = 15
_LEAST, _MOST = 1e-12, 1e15
"""Digits and sizes of doubles that every Java writes alike: Java 17 writes 1.0E23 as 9.999999999999999E22."""
_EXACT = Context(prec=2000)


def is_short(number: float) -> bool:
    """Whether all versions of Java write the number with the same digits."""
    return len(Decimal(repr(number)).as_tuple().digits) <= _SURE and (number == 0 or _LEAST < abs(number) < _MOST)


def java_text(number: float) -> str:
    """A double as Java writes it."""
    if math.isnan(number) or math.isinf(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if not is_short(number):
        raise NotHere
    sign, digits, _ = Decimal(repr(number)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    exponent = Decimal(repr(number)).adjusted() if number else 0
    return "-" * sign + (_scientific(text, exponent) if exponent < -3 or exponent > 6 else _plain(text, exponent))


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    digits = digits.ljust(exponent + 1, "0")
    return f"{digits[: exponent + 1]}.{digits[exponent + 1 :] or '0'}"


def _scientific(digits: str, exponent: int) -> str:
    return f"{digits[0]}.{digits[1:] or '0'}E{exponent}"


def same_rounded(number: float, rounded: Callable[[Decimal], Any]) -> Any:
    """What is made of a double's digits, if it is the same for all that Java may write for it."""
    if is_short(number):
        return rounded(Decimal(repr(number)))
    step = Decimal(math.ulp(number))
    around = {rounded(_EXACT.add(Decimal(number), step * sign)) for sign in (-1, 1)}
    if len(around) > 1:
        raise NotHere
    return around.pop()
