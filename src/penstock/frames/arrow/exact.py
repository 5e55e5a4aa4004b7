"""Whole numbers and decimals as the whole numbers that are stored of them, added up and divided without loss."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.frames.arrow.expressions.types import DIGITS, WIDEST
from penstock.frames.arrow.groups import Numbers
from penstock.frames.frame import NotHere

_MORE_DIGITS = 10
"""Digits that Spark adds to a decimal for its sum."""

_AVERAGE_DIGITS = 4
_LARGEST_SCALE = 20
"""Up to this scale it makes no difference that Spark rounds an average twice, first to 39 digits behind the point."""

_EXACT_DOUBLE = 2**53
_EXACT_POWER = 22
"""The largest power of ten that a double holds."""


def is_exact(data_type: pa.DataType) -> bool:
    return data_type in DIGITS or pa.types.is_decimal128(data_type)


def sum_type(data_type: pa.DataType) -> pa.DataType:
    """Spark's type of a sum of exact values."""
    if pa.types.is_decimal128(data_type):
        return pa.decimal128(min(WIDEST, data_type.precision + _MORE_DIGITS), data_type.scale)
    return pa.int64()


def wholes(values: pa.Array) -> Numbers:
    """The number that is stored of each value, 0 for NULL: in 64 bits if all of them can be added up there.

    Raises ``NotHere`` if Spark may not be able to add them up.
    """
    number = stored(values)
    most = _largest(number) * len(number)
    if most < 2**63:
        return number.astype(np.int64)
    if most >= (10**WIDEST if pa.types.is_decimal128(values.type) else 2**63):
        raise NotHere("a sum may overflow")
    return number.astype(object)


def _largest(numbers: Numbers) -> int:
    return max(abs(int(numbers.min())), abs(int(numbers.max()))) if len(numbers) else 0


def stored(values: pa.Array) -> Numbers:
    """The number that is stored of each value, 0 for NULL: in 64 bits if all of them fit."""
    if not is_exact(values.type):
        raise NotHere
    missing = values.is_null().to_numpy(zero_copy_only=False)
    if not pa.types.is_decimal128(values.type):
        return np.asarray(values.cast(pa.int64()).fill_null(0).to_numpy())
    if not len(values):
        return np.zeros(0, np.int64)
    halves = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset :][: len(values)]
    halves = np.where(missing[:, None], 0, halves)
    low, high = halves[:, 0], halves[:, 1]
    if (high == low >> 63).all():
        return low
    return high.astype(object) * 2**64 + low.view(np.uint64).astype(object)


def exact_array(numbers: Numbers, kind: pa.DataType, missing: Numbers) -> pa.Array:
    """Values of the numbers that are stored of them; raises ``NotHere`` if one has too many digits."""
    if not pa.types.is_decimal128(kind):
        return pa.array(numbers.astype(np.int64), kind, mask=missing)
    limit = 10**kind.precision
    if len(numbers) and (int(numbers.max()) >= limit or int(numbers.min()) <= -limit):
        raise NotHere("too many digits")
    there = pa.array(~missing, pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(kind, len(numbers), [there, pa.py_buffer(_sixteen_bytes(numbers))])


def _sixteen_bytes(numbers: Numbers) -> bytes:
    if numbers.dtype == object:
        return b"".join(int(number).to_bytes(16, "little", signed=True) for number in numbers)
    return np.column_stack([numbers, numbers >> 63]).astype(np.int64).tobytes()


def averages(sums: Numbers, counts: Numbers, data_type: pa.DataType) -> pa.Array:
    """Sums of values of a type by their counts, as Spark types and rounds them; NULL where nothing is counted.

    Sums of decimals are numbers as ``stored``; others are what adding doubles gives.
    """
    missing = counts == 0
    counts = np.where(missing, 1, counts)
    if not pa.types.is_decimal128(data_type):
        return pa.array(sums.astype(np.float64) / counts, mask=missing)
    if data_type.scale > _LARGEST_SCALE:
        raise NotHere("an average of too many digits")
    kind = pa.decimal128(min(WIDEST, data_type.precision + _AVERAGE_DIGITS), data_type.scale + _AVERAGE_DIGITS)
    size = abs(sums).astype(object) if _needs_room(sums) else abs(sums)
    whole = (20_000 * size + counts) // (2 * counts)  # half up
    return exact_array(np.where(sums < 0, -whole, whole), kind, missing)


def _needs_room(sums: Numbers) -> bool:
    return _largest(sums) >= 2**63 // 50_000


def doubles(values: pa.Array) -> Numbers:
    """Numbers as Spark's doubles, each the nearest one, 0 for NULL."""
    if pa.types.is_floating(values.type):
        return np.asarray(values.cast(pa.float64()).fill_null(0.0).to_numpy())
    number = stored(values)
    scale = values.type.scale if pa.types.is_decimal128(values.type) else 0
    if scale == 0 and number.dtype != object:
        return number.astype(np.float64)
    if _largest(number) <= _EXACT_DOUBLE and scale <= _EXACT_POWER:
        return number.astype(np.float64) / 10.0**scale
    return np.array([int(n) / 10**scale for n in number], np.float64)  # which Python rounds once


def adds_up_exactly(numbers: Numbers) -> bool:
    """Whether doubles of these whole numbers have the same sum in any order."""
    return _largest(numbers) * len(numbers) <= _EXACT_DOUBLE
