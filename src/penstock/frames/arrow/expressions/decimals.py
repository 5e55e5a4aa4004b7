"""Dividing decimals on the driver as Spark does: a quotient is rounded twice, half up, and so it is here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from penstock.frames import limits
from penstock.frames.frame import NotHere

_WIDEST = 38
_INTERMEDIATE = (38, 39)
"""Digits behind the point that Spark first rounds to: one more since Spark 4. Where it would matter, Spark is asked."""

_LEAST_SCALE = 6


def quotient(left: pa.Array, right: pa.Array, *, loss: bool = True) -> pa.Array:
    """The quotients, in Spark's type for them, which may lose digits or not. NULL by anything is NULL."""
    (p1, s1), (p2, s2) = ((a.type.precision, a.type.scale) for a in (left, right))
    scale = max(_LEAST_SCALE, s1 + p2 + 1)
    precision = p1 - s1 + s2 + scale
    if precision > _WIDEST and not loss:
        raise NotHere
    if precision > _WIDEST:
        scale = max(_WIDEST - (precision - scale), min(scale, _LEAST_SCALE))
        precision = _WIDEST

    def divided(one: int, other: int) -> int:
        found = {_rounded(_divided(one, other, s2 - s1 + k), k, scale) for k in _INTERMEDIATE}
        if len(found) > 1:
            raise NotHere
        return found.pop()

    return _by_row(left, right, divided, pa.decimal128(precision, scale))


def remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """What a division leaves, with the sign of what was divided."""
    (p1, s1), (p2, s2) = ((a.type.precision, a.type.scale) for a in (left, right))
    scale = max(s1, s2)
    precision = min(p1 - s1, p2 - s2) + scale

    def left_over(one: int, other: int) -> int:
        one, other = one * 10 ** (scale - s1), abs(other) * 10 ** (scale - s2)
        if abs(one) // other >= 10 ** (_WIDEST - 1):  # Java counts the digits of the quotient
            raise NotHere
        return abs(one) % other * (1 if one >= 0 else -1)

    return _by_row(left, right, left_over, pa.decimal128(precision, scale))


def rounded(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Decimals with fewer digits behind the point, rounded half up."""
    scale = values.type.scale
    return _decimals([_checked(_rounded(n, scale, to.scale), to) if n is not None else None for n in _few(values)], to)


def _divided(one: int, other: int, shift: int) -> int:
    """one * 10^shift / other, rounded half up."""
    if shift < 0:
        other *= 10**-shift
    else:
        one *= 10**shift
    sign = 1 if (one >= 0) == (other > 0) else -1
    whole, rest = divmod(abs(one), abs(other))
    return sign * (whole + (2 * rest >= abs(other)))


def _rounded(number: int, digits: int, scale: int) -> int:
    """A number with some digits behind the point, with fewer or more."""
    return number * 10 ** (scale - digits) if scale >= digits else _divided(number, 10 ** (digits - scale), 0)


def _by_row(left: pa.Array, right: pa.Array, operation: Callable[[int, int], int], to: pa.DataType) -> pa.Array:
    found: list[int | None] = []
    for one, other in zip(_few(left), _few(right), strict=True):
        if one is None or other is None:
            found.append(None)
            continue
        if other == 0:
            raise NotHere
        found.append(_checked(operation(one, other), to))
    return _decimals(found, to)


def _checked(number: int, to: pa.DataType) -> int:
    if abs(number) >= 10**to.precision:
        raise NotHere
    return number


def _few(values: pa.Array) -> list[int | None]:
    """Decimals as the whole numbers that are stored."""
    if len(values) > limits.DECIMAL_ROWS:
        raise NotHere
    halves = np.frombuffer(values.buffers()[1], np.dtype([("low", "<u8"), ("high", "<i8")]))
    here = halves[values.offset : values.offset + len(values)]
    there = values.is_valid().to_pylist()
    pairs = zip(here["low"].tolist(), here["high"].tolist(), there, strict=True)
    return [(high << 64) + low if valid else None for low, high, valid in pairs]


def _decimals(numbers: Sequence[int | None], to: pa.DataType) -> pa.Array:
    data = b"".join((number or 0).to_bytes(16, "little", signed=True) for number in numbers)
    valid = pa.array([number is not None for number in numbers], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(to, len(numbers), [valid, pa.py_buffer(data)])
