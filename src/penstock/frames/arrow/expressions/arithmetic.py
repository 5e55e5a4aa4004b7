"""Expressions over rows on the driver: what Arrow computes exactly as Spark would.

An expression is the Spark SQL text that Spark would be given. Only what is known to have the same value here and there
is computed; anything else, and any value that would be an error or a NULL by a setting of Spark (an overflow, a
division by zero), raises ``NotHere``, and Spark is asked. So nothing here decides what an expression means.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames.arrow.expressions.casts import converted
from penstock.frames.arrow.expressions.decimals import quotient, remainder
from penstock.frames.arrow.expressions.times import DAYS, days_later, moved
from penstock.frames.arrow.expressions.types import DIGITS, WIDEST, Value, cast, digits, widest
from penstock.frames.arrow.expressions.values import Rows, numbers, rule, spread, value
from penstock.frames.frame import NotHere
from penstock.frames.settings import ANSI

_LEAST_SCALE = 6
_NEGATED = 34
"""Digits of decimals whose sign Spark changes without rounding."""


# -- leaves ------------------------------------------------------------------------------------------------------------


@rule(exp.Column, reads=("this", "table"))
def _column(node: exp.Column, rows: Rows) -> Value:
    if isinstance(node.this, exp.Star):
        raise NotHere
    return _field_of(rows.column(node.table), node.name) if node.table else rows.column(node.name)


@rule(exp.Dot)
def _dot(node: exp.Dot, rows: Rows) -> Value:
    if not isinstance(node.expression, exp.Identifier):
        raise NotHere
    return _field_of(value(node.this, rows), node.expression.name)


def _field_of(parent: Value, name: str) -> Value:
    if not pa.types.is_struct(parent.type):
        raise NotHere
    found = [i for i, field in enumerate(parent.type) if field.name.lower() == name.lower()]
    if len(found) != 1:
        raise NotHere
    return pc.struct_field(parent, found)


@rule(exp.Literal, reads=("this", "is_string"))
def _literal(node: exp.Literal, rows: Rows) -> Value:
    text = str(node.this)
    if node.is_string:
        return pa.scalar(text, pa.string())
    if text.isdigit():
        number = int(text)
        return pa.scalar(number, pa.int32() if number < 2**31 else pa.int64())
    if re.fullmatch(r"\d+(\.\d*)?[eE][+-]?\d{1,3}", text):
        if math.isinf(double := float(text)):  # more than a DOUBLE holds: Spark refuses it as it reads it
            raise NotHere
        return pa.scalar(double, pa.float64())
    if not re.fullmatch(r"\d*\.\d+", text):
        raise NotHere
    return _decimal_literal(text)


def _decimal_literal(text: str) -> Value:
    """A number with a point, or one that says that it is a decimal."""
    whole, _, fraction = text.partition(".")
    digits = len((whole + fraction).lstrip("0"))
    scale = len(fraction)
    return pa.scalar(Decimal(text), pa.decimal128(max(digits, scale, 1), scale))


@rule(exp.RawString, reads=("this",))
def _raw(node: exp.RawString, rows: Rows) -> Value:
    return pa.scalar(str(node.this), pa.string())


@rule(exp.Null)
def _null(node: exp.Expr, rows: Rows) -> Value:
    return pa.scalar(None)


@rule(exp.Boolean)
def _boolean(node: exp.Boolean, rows: Rows) -> Value:
    return pa.scalar(bool(node.this))


@rule(exp.Paren)
@rule(exp.Alias, reads=("this", "alias"))
def _inner(node: exp.Expr, rows: Rows) -> Value:
    if isinstance(node.args.get("alias"), exp.Placeholder):  # x:a, a field of a variant
        raise NotHere
    return value(node.this, rows)


# -- arithmetic --------------------------------------------------------------------------------------------------------


_OPERATIONS = {exp.Add: pc.add_checked, exp.Sub: pc.subtract_checked, exp.Mul: pc.multiply_checked}


@rule(exp.Add, exp.Sub, exp.Mul)
def _arithmetic(node: exp.Binary, rows: Rows) -> Value:
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.right, exp.Interval):
        return moved(value(node.left, rows), node.right, 1 if isinstance(node, exp.Add) else -1, rows)
    if isinstance(node, exp.Add) and isinstance(node.left, exp.Interval):
        return moved(value(node.right, rows), node.left, 1, rows)
    left, right = value(node.left, rows), value(node.right, rows)
    if pa.types.is_date32(left.type) and right.type in DAYS and isinstance(node, exp.Add | exp.Sub):
        return days_later(left, right, 1 if isinstance(node, exp.Add) else -1, rows)
    operation = _OPERATIONS[type(node)]
    if left.type in DIGITS and right.type in DIGITS:
        common = widest(left.type, right.type)
        return operation(cast(left, common), cast(right, common))
    if pa.types.is_float64(left.type) or pa.types.is_float64(right.type):
        return operation(_as_double(left, rows), _as_double(right, rows))
    if not (pa.types.is_decimal128(left.type) or pa.types.is_decimal128(right.type)):
        raise NotHere
    left, right = _as_decimal(node.left, left), _as_decimal(node.right, right)
    (p1, s1), (p2, s2) = digits(left.type), digits(right.type)
    if isinstance(node, exp.Mul):
        precision, scale = p1 + p2 + 1, s1 + s2
    else:
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    if precision > WIDEST:  # Spark takes digits from what is behind the point, down to six; then values must be small
        if not isinstance(node, exp.Mul) or scale > _LEAST_SCALE or WIDEST - p2 - 1 < s1:
            raise NotHere
        left, precision = cast(left, pa.decimal128(WIDEST - p2 - 1, s1)), WIDEST
    return cast(operation(left, right), pa.decimal128(precision, scale))


def _as_double(found: Value, rows: Rows) -> Value:
    """A number as the double that Spark takes it for beside a double."""
    if found.type not in DIGITS and not pa.types.is_decimal128(found.type) and not pa.types.is_float64(found.type):
        raise NotHere
    return converted(found, pa.float64(), rows)


def _as_decimal(node: exp.Expr, found: Value) -> Value:
    """A number as the decimal that Spark takes it for beside a decimal: a literal has just its digits."""
    if pa.types.is_decimal128(found.type):
        return found
    if found.type not in DIGITS:
        raise NotHere
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return cast(found, pa.decimal128(DIGITS[found.type], 0)).cast(pa.decimal128(len(str(int(node.this))), 0))
    within = node
    while isinstance(within, exp.Cast | exp.Neg | exp.Paren):  # -2L, of which Spark may count the digits
        within = within.this
    if isinstance(within, exp.Literal):
        raise NotHere
    return cast(found, pa.decimal128(DIGITS[found.type], 0))


@rule(exp.Neg)
def _negated(node: exp.Neg, rows: Rows) -> Value:
    if isinstance(node.this, exp.Literal) and not node.this.is_string and str(node.this.this) == str(2**31):
        return pa.scalar(-(2**31), pa.int32())
    found = value(node.this, rows)
    if pa.types.is_decimal128(found.type) and found.type.precision > _NEGATED:
        raise NotHere
    if found.type not in DIGITS and not pa.types.is_decimal128(found.type) and not pa.types.is_float64(found.type):
        raise NotHere
    return pc.negate_checked(found)


@rule(exp.Mod)
def _remainder(node: exp.Mod, rows: Rows) -> Value:
    left, right = value(node.left, rows), value(node.right, rows)
    if pa.types.is_decimal128(left.type) and pa.types.is_decimal128(right.type):
        return remainder(spread(left, rows.count), spread(right, rows.count))
    if left.type not in DIGITS or right.type not in DIGITS:
        raise NotHere
    common = widest(left.type, right.type)
    one, missing = numbers(spread(cast(left, common), rows.count))
    other, absent = numbers(spread(cast(right, common), rows.count), fill=1)
    if np.isin(other, (0, -1)).any():
        raise NotHere
    return pa.array(np.fmod(one, other), common, mask=missing | absent)


@rule(exp.Div, reads=("this", "expression", "typed", "safe"))
def _quotient(node: exp.Div, rows: Rows) -> Value:
    """Of decimals; else of doubles, which Spark makes of whole numbers."""
    left, right = value(node.left, rows), value(node.right, rows)
    floats = pa.types.is_float64(left.type) or pa.types.is_float64(right.type)
    if not floats and (pa.types.is_decimal128(left.type) or pa.types.is_decimal128(right.type)):
        left, right = _as_decimal(node.left, left), _as_decimal(node.right, right)
        return quotient(spread(left, rows.count), spread(right, rows.count), loss=rows.settings.precision_loss)
    return _double_quotient(left, right, rows, nothing=rows.settings[ANSI] != "true")


@rule(exp.SafeDivide)
def _safe_quotient(node: exp.SafeDivide, rows: Rows) -> Value:
    """TRY_DIVIDE of what is no decimal."""
    left, right = value(node.this, rows), value(node.expression, rows)
    if pa.types.is_decimal128(left.type) or pa.types.is_decimal128(right.type):
        raise NotHere
    return _double_quotient(left, right, rows, nothing=True)


def _double_quotient(left: Value, right: Value, rows: Rows, *, nothing: bool) -> Value:
    """``nothing``: by zero is NULL; else it is an error, which is Spark's."""
    one, other = (spread(_as_double(side, rows), rows.count) for side in (left, right))
    zero = pc.equal(other, 0.0)
    if pc.any(zero).as_py() and not nothing:
        raise NotHere
    return pc.divide(one, pc.if_else(zero, pa.scalar(None, pa.float64()), other))


@rule(exp.SafeAdd, exp.SafeSubtract, exp.SafeMultiply)
def _safe(node: exp.Expr, rows: Rows) -> Value:
    """TRY_ADD and others, as long as nothing overflows."""
    kinds: dict[type[exp.Expr], type[exp.Binary]]
    kinds = {exp.SafeAdd: exp.Add, exp.SafeSubtract: exp.Sub, exp.SafeMultiply: exp.Mul}
    if any(value(side, rows).type not in DIGITS for side in (node.this, node.expression)):
        raise NotHere
    return value(kinds[type(node)](this=node.this, expression=node.expression), rows)
