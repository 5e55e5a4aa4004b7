"""Conditions over rows on the driver, and what is chosen by them: the rules of ``values`` for truth and NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.frames.arrow.expressions.casts import converted
from penstock.frames.arrow.expressions.clocks import LOCAL
from penstock.frames.arrow.expressions.types import DIGITS, Value, cast, has_floats, widest_of
from penstock.frames.arrow.expressions.values import TIME, Rows, column, function, rule, spread, value
from penstock.frames.arrow.groups import Numbers, codes, ranks
from penstock.frames.frame import NotHere
from penstock.frames.settings import ANSI

_TEXTS = (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR)

_COMPARISONS = {
    exp.EQ: pc.equal, exp.NEQ: pc.not_equal, exp.LT: pc.less, exp.LTE: pc.less_equal, exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}  # fmt: skip


@rule(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
def _comparison(node: exp.Binary, rows: Rows) -> Value:
    left, right = _alike(node, rows)
    compare = _COMPARISONS[type(node)]
    if pa.types.is_struct(left.type):
        return _compared_structs(compare, spread(left, rows.count), spread(right, rows.count))
    _check_comparable(left, right)
    return compare(left, right)


def _is_float(data_type: pa.DataType) -> bool:
    return pa.types.is_floating(data_type)


def _alike(node: exp.Binary, rows: Rows) -> tuple[Value, Value]:
    """Both operands as values of one type, without loss."""
    left, right = value(node.left, rows), value(node.right, rows)
    if left.type == right.type:
        return left, right
    if pa.types.is_null(left.type):
        return left.cast(right.type), right
    if pa.types.is_null(right.type):
        return left, right.cast(left.type)
    if pa.string() in (left.type, right.type):
        common = _beside_text(right.type if left.type == pa.string() else left.type, rows)
    else:
        common = common_type([left.type, right.type])
    return in_common(left, common, rows), in_common(right, common, rows)


def _beside_text(kind: pa.DataType, rows: Rows) -> pa.DataType:
    """The type that text is read as to be compared with a value of another type."""
    if kind in DIGITS:
        return pa.int64() if rows.settings[ANSI] == "true" else kind
    if _is_temporal(kind) or pa.types.is_float64(kind):
        return kind
    raise NotHere


def common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type in which values of several meet: numbers beside doubles are doubles, dates beside times are times."""
    known = [kind for kind in types if not pa.types.is_null(kind)]
    if pa.float64() in known and all(_is_number(kind) for kind in known):
        return pa.float64()
    if len(set(known)) > 1 and all(_is_temporal(kind) for kind in known):
        return TIME if TIME in known else LOCAL
    return widest_of(types)


def in_common(found: Value, kind: pa.DataType, rows: Rows) -> Value:
    """A value in a type where it meets others."""
    if pa.types.is_float64(kind) or _is_temporal(kind) or found.type == pa.string():
        return converted(found, kind, rows)
    return cast(found, kind)


def _is_number(kind: pa.DataType) -> bool:
    return kind in DIGITS or pa.types.is_decimal128(kind) or pa.types.is_float64(kind)


def _is_temporal(kind: pa.DataType) -> bool:
    return pa.types.is_date32(kind) or pa.types.is_timestamp(kind)


def _check_comparable(*values: Value) -> None:
    for found in values:
        if pa.types.is_nested(found.type) or pa.types.is_null(found.type):
            raise NotHere
        if _is_float(found.type) and bool(pc.any(pc.is_nan(found)).as_py() if isinstance(found, pa.Array) else False):
            raise NotHere


def _compared_structs(compare: Callable[[Any, Any], Value], left: pa.Array, right: pa.Array) -> pa.Array:
    order = ranks(pa.concat_arrays([left, right]))
    found = compare(pa.array(order[: len(left)]), pa.array(order[len(left) :]))
    return pc.if_else(pc.or_(left.is_null(), right.is_null()), pa.scalar(None, pa.bool_()), found)


@rule(exp.NullSafeEQ)
def _same(node: exp.NullSafeEQ | exp.NullSafeNEQ, rows: Rows) -> Value:
    """NULL is the same as NULL. Text of floats, by which rows are told apart, is not made: their bits are compared."""
    texts = [_float_as_text(side, rows) for side in (node.left, node.right)]
    if texts[0] is not None and texts[1] is not None:
        left, right = texts[0], texts[1]
    else:
        left, right = _alike(node, rows)
        if has_floats(left.type):
            raise NotHere
    left, right = spread(left, rows.count), spread(right, rows.count)
    number = codes(pa.concat_arrays([left, right]))
    return pa.array(number[: len(left)] == number[len(left) :])


def _float_as_text(node: exp.Expr, rows: Rows) -> Value | None:
    if isinstance(node, exp.Cast) and node.to.this in _TEXTS:
        found = value(node.this, rows)
        return found if _is_float(found.type) else None
    return None


@rule(exp.And)
def _and(node: exp.And, rows: Rows) -> Value:
    return pc.and_kleene(*_truths(node, rows))


@rule(exp.Or)
def _or(node: exp.Or, rows: Rows) -> Value:
    return pc.or_kleene(*_truths(node, rows))


def _truths(node: exp.Binary, rows: Rows) -> list[Value]:
    return [truth(value(side, rows)) for side in (node.left, node.right)]


def truth(found: Value) -> Value:
    if pa.types.is_null(found.type):
        return found.cast(pa.bool_())
    if not pa.types.is_boolean(found.type):
        raise NotHere
    return found


@rule(exp.Not)
def _not(node: exp.Not, rows: Rows) -> Value:
    return pc.invert(truth(value(node.this, rows)))


@rule(exp.NullSafeNEQ)
def _other(node: exp.NullSafeNEQ, rows: Rows) -> Value:
    return pc.invert(_same(node, rows))


@rule(exp.EqualNull)
def _equal_null(node: exp.EqualNull, rows: Rows) -> Value:
    return _same(exp.NullSafeEQ(this=node.this, expression=node.expression), rows)


@rule(exp.Is)
def _is(node: exp.Is, rows: Rows) -> Value:
    if isinstance(node.expression, exp.Boolean):
        true = truth(value(node.this, rows))
        return pc.fill_null(true if node.expression.this else pc.invert(true), False)
    if not isinstance(node.expression, exp.Null):
        raise NotHere
    return pc.is_null(value(node.this, rows))


@function("ISNULL", takes=(1,))
def _is_null(arguments: list[exp.Expr], rows: Rows) -> Value:
    return pc.is_null(value(arguments[0], rows))


@function("ISNOTNULL", takes=(1,))
def _is_not_null(arguments: list[exp.Expr], rows: Rows) -> Value:
    return pc.is_valid(value(arguments[0], rows))


@rule(exp.IsNan, reads=("this",))
def _is_nan(node: exp.IsNan, rows: Rows) -> Value:
    found = value(node.this, rows)
    if not _is_float(found.type):
        raise NotHere
    return pc.fill_null(pc.is_nan(found), False)


@rule(exp.In, reads=("this", "expressions"))
def _in(node: exp.In, rows: Rows) -> Value:
    if not node.expressions:
        raise NotHere
    found: Value = pa.scalar(False)
    for option in node.expressions:
        found = pc.or_kleene(found, _comparison(exp.EQ(this=node.this, expression=option), rows))
    return found


@rule(exp.Between, reads=("this", "low", "high"))
def _between(node: exp.Between, rows: Rows) -> Value:
    low, high = node.args["low"], node.args["high"]
    return pc.and_kleene(
        _comparison(exp.GTE(this=node.this, expression=low), rows),
        _comparison(exp.LTE(this=node.this, expression=high), rows),
    )


# -- choices -----------------------------------------------------------------------------------------------------------


@rule(exp.If, reads=("this", "true", "false"))
def _if(node: exp.If, rows: Rows) -> Value:
    return _chosen([(node.this, node.args["true"])], node.args.get("false") or exp.Null(), rows)


@rule(exp.Case, reads=("this", "ifs", "default"))
def _case(node: exp.Case, rows: Rows) -> Value:
    of, otherwise = node.args.get("this"), node.args.get("default") or exp.Null()
    conditions = [i.this if of is None else exp.EQ(this=of, expression=i.this) for i in node.args["ifs"]]
    return _chosen(list(zip(conditions, [i.args["true"] for i in node.args["ifs"]], strict=True)), otherwise, rows)


@rule(exp.Nullif)
def _nullif(node: exp.Nullif, rows: Rows) -> Value:
    """The type is that of the first, and so is NULL."""
    found = column(node.this, rows)
    same = spread(_comparison(exp.EQ(this=node.this, expression=node.expression), rows), rows.count)
    return pc.if_else(same.fill_null(False), pa.scalar(None, found.type), found)


@rule(exp.Nvl2, reads=("this", "true", "false"))
def _nvl2(node: exp.Nvl2, rows: Rows) -> Value:
    there = exp.Not(this=exp.Is(this=node.this, expression=exp.Null()))
    return _chosen([(there, node.args["true"])], node.args["false"], rows)


@function("ZEROIFNULL", takes=(1,))
def _zero_if_null(arguments: list[exp.Expr], rows: Rows) -> Value:
    return _coalesce(exp.Coalesce(this=arguments[0], expressions=[exp.Literal.number(0)]), rows)


@function("NULLIFZERO", takes=(1,))
def _null_if_zero(arguments: list[exp.Expr], rows: Rows) -> Value:
    return _nullif(exp.Nullif(this=arguments[0], expression=exp.Literal.number(0)), rows)


@rule(exp.Coalesce, reads=("this", "expressions"))
def _coalesce(node: exp.Coalesce, rows: Rows) -> Value:
    options = [node.this, *node.expressions]
    choices = [(exp.Not(this=exp.Is(this=o, expression=exp.Null())), o) for o in options[:-1]]
    return _chosen(choices, options[-1], rows)


def _chosen(choices: Sequence[tuple[exp.Expr, exp.Expr]], otherwise: exp.Expr, rows: Rows) -> Value:
    """Each value is computed for its own rows only: what is not chosen is no error."""
    left = np.arange(rows.count)
    parts: list[tuple[Numbers, pa.Array]] = []
    for condition, chosen in choices:
        here = rows if len(left) == rows.count else rows.some(left)
        true = spread(truth(value(condition, here)), here.count).fill_null(False).to_numpy(zero_copy_only=False)
        parts.append((left[true], _part(chosen, rows, left[true])))
        left = left[~true]
    parts.append((left, _part(otherwise, rows, left)))
    kind = common_type([part.type for _, part in parts])
    together = pa.concat_arrays([spread(in_common(part, kind, rows), len(places)) for places, part in parts])
    order = np.argsort(np.concatenate([places for places, _ in parts]), kind="stable")
    return together.take(pa.array(order))


def _part(node: exp.Expr, rows: Rows, places: Numbers) -> pa.Array:
    return spread(value(node, rows if len(places) == rows.count else rows.some(places)), len(places))
