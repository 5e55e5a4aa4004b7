"""Types of values on the driver: which one holds the values of two, and a value in another type if it stays equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.frames.arrow.groups import has_floats
from penstock.frames.frame import NotHere

__all__ = ["DIGITS", "WIDEST", "Value", "cast", "digits", "has_floats", "widest", "widest_of"]

Value = Any
"""An array, or a scalar that stands for as many."""

DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""Whole numbers, and the digits that Spark gives them as decimals."""

WIDEST = 38
_EXACT_DOUBLE = 2**53


def widest(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type of numbers that holds all values of two; None if there is none."""
    if one == other:
        return one
    if one in DIGITS and other in DIGITS:
        return max(one, other, key=lambda t: DIGITS[t])
    if (one in DIGITS or pa.types.is_decimal128(one)) and (other in DIGITS or pa.types.is_decimal128(other)):
        (p1, s1), (p2, s2) = digits(one), digits(other)
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale
        return pa.decimal128(precision, scale) if precision <= WIDEST else None
    return None


def widest_of(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type that holds all values of several; what is only ever NULL has any."""
    known = [t for t in types if not pa.types.is_null(t)]
    common: pa.DataType | None = known[0] if known else pa.null()
    for kind in known[1:]:
        common = widest(common, kind) if common is not None else None
    if common is None:
        raise NotHere
    return common


def digits(data_type: pa.DataType) -> tuple[int, int]:
    return (DIGITS[data_type], 0) if data_type in DIGITS else (data_type.precision, data_type.scale)


def cast(found: Value, to: pa.DataType) -> Value:
    """A value in another type, if it stays the same value."""
    kind = found.type
    if kind == to:
        return found
    if pa.types.is_null(kind):
        return found.cast(to)
    if kind in DIGITS and (to in DIGITS or pa.types.is_decimal128(to)):
        if pa.types.is_decimal128(to):  # Arrow asks for room for all values of the type
            found = found.cast(pa.decimal128(DIGITS[kind], 0))
        return found.cast(to)
    if pa.types.is_decimal128(kind) and (to in DIGITS or pa.types.is_decimal128(to)):
        return found.cast(to)
    if kind in DIGITS and pa.types.is_float64(to):
        return _whole_double(found.cast(pa.int64()))
    if pa.types.is_decimal128(kind) and kind.scale == 0 and pa.types.is_float64(to):
        return _whole_double(found.cast(pa.int64()))
    if pa.types.is_float32(kind) and pa.types.is_float64(to):
        return found.cast(to)
    if not pa.types.is_struct(kind) or not pa.types.is_struct(to) or not isinstance(found, pa.Array):
        raise NotHere
    if [f.name.lower() for f in kind] != [f.name.lower() for f in to]:
        raise NotHere
    parts = [cast(pc.struct_field(found, [i]), field.type) for i, field in enumerate(to)]
    return pa.StructArray.from_arrays(parts, fields=list(to), mask=found.is_null())


def _whole_double(found: Value) -> Value:
    extremes = pc.min_max(found) if isinstance(found, pa.Array) else {"min": found, "max": found}
    if any(abs(extremes[side].as_py() or 0) > _EXACT_DOUBLE for side in ("min", "max")):
        raise NotHere
    return found.cast(pa.float64())
