"""Functions of numbers over rows on the driver: the rules of ``values`` that round, compare and take apart numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames.arrow.expressions.casts import converted
from penstock.frames.arrow.expressions.conditions import common_type, in_common
from penstock.frames.arrow.expressions.floats import same_rounded
from penstock.frames.arrow.expressions.types import DIGITS, WIDEST, Value, cast, widest
from penstock.frames.arrow.expressions.values import Rows, by_row, column, each, function, rule, spread, value
from penstock.frames.frame import NotHere

_EXACT_DOUBLE = 2**53
_INTEGER = pa.int32()
_NEGATED = 34
"""Digits of decimals whose sign Spark changes without rounding."""


# -- rounding ----------------------------------------------------------------------------------------------------------


@rule(exp.Round, reads=("this", "decimals"))
def _rounded(node: exp.Round, rows: Rows) -> Value:
    return _to_places(node.this, node.args.get("decimals"), ROUND_HALF_UP, rows)


@function("BROUND", takes=(1, 2))
def _rounded_to_even(arguments: list[exp.Expr], rows: Rows) -> Value:
    return _to_places(arguments[0], arguments[1] if len(arguments) > 1 else None, ROUND_HALF_EVEN, rows)


def _to_places(node: exp.Expr, decimals: exp.Expr | None, how: str, rows: Rows) -> pa.Array:
    """Numbers rounded to some places behind the point, or before it."""
    found, places = column(node, rows), _places(decimals, rows)
    if found.type in DIGITS:
        return found if places >= 0 else each(found, lambda n: int(_at(Decimal(n), places, how)), found.type)
    if pa.types.is_decimal128(found.type):
        to = _rounded_type(found.type, places)
        return each(found, lambda n: _at(n, min(places, found.type.scale), how), to)
    if pa.types.is_float64(found.type):
        return each(found, lambda n: _double_at(n, places, how), found.type)
    raise NotHere


def _places(node: exp.Expr | None, rows: Rows) -> int:
    """Places that are written down."""
    found = pa.scalar(0, _INTEGER) if node is None else value(node, rows)
    if not isinstance(found, pa.Scalar) or found.type != _INTEGER or not found.is_valid or abs(found.as_py()) > WIDEST:
        raise NotHere
    return int(found.as_py())


def _at(number: Decimal, places: int, how: str) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-places), context=Context(prec=200, rounding=how))


def _rounded_type(kind: pa.DataType, places: int) -> pa.DataType:
    whole = kind.precision - kind.scale + 1
    if places < 0:
        return pa.decimal128(min(max(whole, 1 - places), WIDEST), 0)
    scale = min(kind.scale, places)
    return pa.decimal128(min(whole + scale, WIDEST), scale)


def _double_at(number: float, places: int, how: str) -> float:
    if not math.isfinite(number):
        return number
    return float(same_rounded(number, lambda exact: _at(exact, places, how))) + 0.0  # never -0.0


@rule(exp.Floor, exp.Ceil, reads=("this",))
def _whole(node: exp.Floor | exp.Ceil, rows: Rows) -> Value:
    found = column(node.this, rows)
    how = ROUND_FLOOR if isinstance(node, exp.Floor) else ROUND_CEILING
    if found.type in DIGITS:
        return found.cast(pa.int64())
    if pa.types.is_decimal128(found.type):
        precision = min(found.type.precision - found.type.scale + (found.type.scale > 0), WIDEST)
        return each(found, lambda n: _at(n, 0, how), pa.decimal128(precision, 0))
    if pa.types.is_float64(found.type) and not pc.any(pc.invert(pc.is_finite(found))).as_py():
        return (pc.floor if how == ROUND_FLOOR else pc.ceil)(found).cast(pa.int64())
    raise NotHere


# -- signs and powers --------------------------------------------------------------------------------------------------


@rule(exp.Abs, reads=("this",))
def _absolute(node: exp.Abs, rows: Rows) -> Value:
    found = value(node.this, rows)
    if found.type not in DIGITS and not pa.types.is_decimal128(found.type) and not pa.types.is_float64(found.type):
        raise NotHere
    if pa.types.is_decimal128(found.type) and found.type.precision > _NEGATED:
        raise NotHere
    return pc.abs_checked(found)


@rule(exp.Sign, reads=("this",))
def _sign(node: exp.Sign, rows: Rows) -> Value:
    found = column(node.this, rows)
    if not (found.type in DIGITS or pa.types.is_floating(found.type) or pa.types.is_decimal128(found.type)):
        raise NotHere
    if pa.types.is_float32(found.type):
        raise NotHere
    kept = pa.types.is_float64(found.type)
    return each(found, lambda n: float(n) if kept and (n == 0 or n != n) else float((n > 0) - (n < 0)), pa.float64())


@rule(exp.Sqrt, reads=("this",))
def _root(node: exp.Sqrt, rows: Rows) -> Value:
    found = spread(_double(value(node.this, rows), rows), rows.count)
    missing = found.is_null().to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        return pa.array(np.sqrt(found.fill_null(0.0).to_numpy()), mask=missing)


def _double(found: Value, rows: Rows) -> Value:
    if not (found.type in DIGITS or pa.types.is_float64(found.type) or pa.types.is_decimal128(found.type)):
        raise NotHere
    return converted(found, pa.float64(), rows)


@rule(exp.Pow)
def _power(node: exp.Pow, rows: Rows) -> Value:
    """Of whole numbers, as far as doubles hold them: Java is exact there."""
    sides = [column(side, rows) for side in (node.this, node.expression)]
    return by_row([spread(_double(side, rows), rows.count) for side in sides], _exact_power, pa.float64())


def _exact_power(base: float, exponent: float) -> float:
    if not (base.is_integer() and exponent.is_integer()) or not 0 <= exponent <= 53 or abs(base) > _EXACT_DOUBLE:
        raise NotHere
    found = int(base) ** int(exponent)
    if abs(found) > _EXACT_DOUBLE or base == 0:
        raise NotHere
    return float(found)


# -- remainders --------------------------------------------------------------------------------------------------------


@function("PMOD", takes=(2,))
def _positive_remainder(arguments: list[exp.Expr], rows: Rows) -> Value:
    left, right = (value(argument, rows) for argument in arguments)
    if left.type not in DIGITS or right.type not in DIGITS:
        raise NotHere
    common = widest(left.type, right.type)
    one, other = (spread(cast(side, common), rows.count) for side in (left, right))
    if not pc.any(pc.less_equal(other, pa.scalar(0, common))).as_py():  # nothing can overflow
        missing = pc.or_(one.is_null(), other.is_null()).to_numpy(zero_copy_only=False)
        return pa.array(np.mod(one.fill_null(0).to_numpy(), other.fill_null(1).to_numpy()), common, mask=missing)
    return _of_pairs(one, other, lambda a, n: np.where(np.fmod(a, n) < 0, np.fmod(np.fmod(a, n) + n, n), np.fmod(a, n)))


@rule(exp.IntDiv)
def _whole_quotient(node: exp.IntDiv, rows: Rows) -> Value:
    left, right = value(node.this, rows), value(node.expression, rows)
    if left.type not in DIGITS or right.type not in DIGITS:
        raise NotHere
    one, other = (spread(cast(side, pa.int64()), rows.count) for side in (left, right))
    return _of_pairs(one, other, lambda a, n: (a - np.fmod(a, n)) // n)


def _of_pairs(left: pa.Array, right: pa.Array, made: Callable[[Any, Any], Any]) -> pa.Array:
    """A number of two each. By nothing is Spark's, and so are numbers whose half is no number of the type."""
    missing = (pc.or_(left.is_null(), right.is_null())).to_numpy(zero_copy_only=False)
    one, other = left.fill_null(0).to_numpy(), right.fill_null(1).to_numpy()
    half = 2 ** (left.type.bit_width - 2)
    if (other == 0).any() or ((np.maximum(one, other) > half) | (np.minimum(one, other) < -half)).any():
        raise NotHere
    return pa.array(made(one, other).astype(one.dtype), left.type, mask=missing)


@rule(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
def _bits(node: exp.Binary, rows: Rows) -> Value:
    left, right = value(node.left, rows), value(node.right, rows)
    if left.type not in DIGITS or right.type not in DIGITS:
        raise NotHere
    common = widest(left.type, right.type)
    operation = {exp.BitwiseAnd: pc.bit_wise_and, exp.BitwiseOr: pc.bit_wise_or, exp.BitwiseXor: pc.bit_wise_xor}
    return operation[type(node)](cast(left, common), cast(right, common))


@rule(exp.BitwiseNot, reads=("this",))
def _other_bits(node: exp.BitwiseNot, rows: Rows) -> Value:
    found = value(node.this, rows)
    if found.type not in DIGITS:
        raise NotHere
    return pc.bit_wise_not(found)


# -- comparing ---------------------------------------------------------------------------------------------------------


@rule(exp.Greatest, exp.Least, reads=("this", "expressions", "ignore_nulls"))
def _extreme(node: exp.Greatest | exp.Least, rows: Rows) -> Value:
    """Of several values, NULL not among them."""
    options = [column(option, rows) for option in (node.this, *node.expressions)]
    kind = common_type([option.type for option in options])
    options = [in_common(option, kind, rows) for option in options]
    if pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_binary(kind) or pa.types.is_boolean(kind):
        raise NotHere
    if pa.types.is_floating(kind) and any(_is_odd(option) for option in options):
        raise NotHere
    if kind == pa.string():
        return _extreme_text(options, greatest=isinstance(node, exp.Greatest))
    extreme = pc.max_element_wise if isinstance(node, exp.Greatest) else pc.min_element_wise
    if pa.types.is_timestamp(kind):
        return extreme(*(option.cast(pa.int64()) for option in options)).cast(kind)
    return extreme(*options)


def _is_odd(numbers: pa.Array) -> bool:
    """Whether there are numbers that Java orders otherwise: NaN, and -0.0."""
    floats = numbers.drop_null().to_numpy()
    return bool(np.isnan(floats).any() or (np.signbit(floats) & (floats == 0)).any())


def _extreme_text(options: list[pa.Array], *, greatest: bool) -> pa.Array:
    found = options[0]
    for option in options[1:]:
        better = (pc.greater if greatest else pc.less)(option, found)
        better = pc.or_kleene(pc.and_kleene(better.fill_null(False), option.is_valid()), found.is_null())
        found = pc.if_else(better, option, found)
    return found


@rule(exp.Negative, reads=("this",))
def _negative(node: exp.Expr, rows: Rows) -> Value:
    return value(exp.Neg(this=node.this.copy()), rows)


@function("POSITIVE", takes=(1,))
def _positive(arguments: list[exp.Expr], rows: Rows) -> Value:
    found = value(arguments[0], rows)
    if found.type not in DIGITS and not pa.types.is_decimal128(found.type) and not pa.types.is_float64(found.type):
        raise NotHere
    return found
