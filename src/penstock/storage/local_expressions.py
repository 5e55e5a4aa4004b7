"""Expressions over rows on the driver: what Arrow computes exactly as Spark would.

An expression is the Spark SQL text that Spark would be given. Only what is known to have the same value here and there
is computed; anything else, and any value that would be an error or a NULL by a setting of Spark (an overflow, a
division by zero), raises ``NotHere``, and Spark is asked. So nothing here decides what an expression means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.sql.dialect import SparkSql
from penstock.storage.arrow import NotHere
from penstock.storage.local_decimals import quotient, remainder, rounded
from penstock.storage.local_groups import Groups, Numbers, codes, ranks
from penstock.storage.local_types import DIGITS, WIDEST, Value, cast, digits, widest, widest_of

_UNITS = {
    "MICROSECOND": 1, "MILLISECOND": 10**3, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3_600 * 10**6,
    "DAY": 86_400 * 10**6,
}  # fmt: skip
"""Units that times are cut to by arithmetic, in microseconds; those above a second in UTC only."""

_LEAST_SCALE = 6
_CALENDAR = {"MONTH": "M8[M]", "YEAR": "M8[Y]"}
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Rows:
    """Columns of equal length; ``utc``: whether the session's hours and days are those of UTC."""

    columns: Mapping[str, pa.Array]
    count: int
    utc: Callable[[], bool] = lambda: True

    def column(self, name: str) -> pa.Array:
        """A column by its name, whatever its case."""
        if name in self.columns:
            return self.columns[name]
        found = [column for own, column in self.columns.items() if own.lower() == name.lower()]
        if len(found) != 1:
            raise NotHere
        return found[0]

    def some(self, kept: Numbers) -> Rows:
        """The rows at some places."""
        places = pa.array(kept)
        return Rows({name: column.take(places) for name, column in self.columns.items()}, len(kept), self.utc)


@lru_cache(maxsize=20_000)
def parsed(text: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, dialect=SparkSql)
    except (SqlglotError, RecursionError):
        raise NotHere from None


def computed(expression: exp.Expr, rows: Rows) -> pa.Array:
    """The value of an expression for each row."""
    try:
        return spread(value(expression, rows), rows.count)
    except (pa.ArrowException, OverflowError, ValueError, RecursionError):
        raise NotHere from None


def spread(found: Value, count: int) -> pa.Array:
    """One value for each row."""
    return pa.repeat(found, count) if isinstance(found, pa.Scalar) else found


def value(node: exp.Expr, rows: Rows) -> Value:
    rule = _RULES.get(type(node))
    if rule is None:
        raise NotHere
    return rule(node, rows)


# -- leaves -----------------------------------------------------------------------------------------------------------


def _column(node: exp.Column, rows: Rows) -> Value:
    if node.args.get("db") or isinstance(node.this, exp.Star):
        raise NotHere
    return _field_of(rows.column(node.table), node.name) if node.table else rows.column(node.name)


def _dot(node: exp.Dot, rows: Rows) -> Value:
    return _field_of(value(node.this, rows), node.expression.name)


def _field_of(parent: Value, name: str) -> Value:
    if not pa.types.is_struct(parent.type):
        raise NotHere
    found = [i for i, field in enumerate(parent.type) if field.name.lower() == name.lower()]
    if len(found) != 1:
        raise NotHere
    return pc.struct_field(parent, found)


def _literal(node: exp.Literal, rows: Rows) -> Value:
    text = str(node.this)
    if node.is_string:
        if "\\" in text:
            raise NotHere
        return pa.scalar(text, pa.string())
    if text.isdigit():
        number = int(text)
        return pa.scalar(number, pa.int32() if number < 2**31 else pa.int64())
    if not re.fullmatch(r"\d*\.\d+", text):
        raise NotHere
    return _decimal_literal(text)


def _decimal_literal(text: str) -> Value:
    """A number with a point, or one that says that it is a decimal."""
    whole, _, fraction = text.partition(".")
    digits = len((whole + fraction).lstrip("0"))
    scale = len(fraction)
    return pa.scalar(Decimal(text), pa.decimal128(max(digits, scale, 1), scale))


def _null(node: exp.Expr, rows: Rows) -> Value:
    return pa.scalar(None)


def _boolean(node: exp.Boolean, rows: Rows) -> Value:
    return pa.scalar(bool(node.this))


def _inner(node: exp.Expr, rows: Rows) -> Value:
    return value(node.this, rows)


# -- types ------------------------------------------------------------------------------------------------------------


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
    common = widest(left.type, right.type)
    if common is None:
        if pa.types.is_float64(left.type):
            return left, _as_double(node.right, right)
        if pa.types.is_float64(right.type):
            return _as_double(node.left, left), right
        raise NotHere
    return cast(left, common), cast(right, common)


def _as_double(node: exp.Expr, found: Value) -> Value:
    """A number as a double: a whole one, or one that is written down."""
    node = node.unnest()
    if found.type in DIGITS:
        return cast(found, pa.float64())
    if not isinstance(node, exp.Literal) or node.is_string:
        raise NotHere
    return pa.scalar(float(node.this), pa.float64())


_TYPE = exp.DataType.Type
_PLAIN_TYPES = {
    _TYPE.BOOLEAN: pa.bool_(), _TYPE.TINYINT: pa.int8(), _TYPE.SMALLINT: pa.int16(), _TYPE.INT: pa.int32(),
    _TYPE.BIGINT: pa.int64(), _TYPE.DOUBLE: pa.float64(), _TYPE.FLOAT: pa.float32(), _TYPE.TEXT: pa.string(),
    _TYPE.VARCHAR: pa.string(), _TYPE.DATE: pa.date32(), _TYPE.TIMESTAMPTZ: _TIME, _TYPE.TIMESTAMPLTZ: _TIME,
    _TYPE.TIMESTAMPNTZ: pa.timestamp("us"), _TYPE.BINARY: pa.binary(),
}  # fmt: skip


def _type(kind: exp.DataType) -> pa.DataType:
    if kind.this == _TYPE.DECIMAL and len(kind.expressions) == 2:
        precision, scale = (int(e.name) for e in kind.expressions)
        return pa.decimal128(precision, scale)
    if kind.this == _TYPE.STRUCT:
        return pa.struct([pa.field(e.name, _type(e.args["kind"])) for e in kind.expressions])
    if kind.this not in _PLAIN_TYPES or kind.expressions:
        raise NotHere
    return _PLAIN_TYPES[kind.this]


def _cast(node: exp.Cast, rows: Rows) -> Value:
    inner, to = node.this, _type(node.to)
    if isinstance(inner, exp.Literal) and inner.is_string:
        text = str(inner.this)
        if pa.types.is_decimal128(to) and re.fullmatch(r"\d+(\.\d+)?", text):
            return cast(_decimal_literal(text), to)
        if pa.types.is_date32(to) and re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            return pa.scalar(text).cast(to)
    found = value(inner, rows)
    if pa.types.is_date32(to) and found.type == _TIME and rows.utc() and isinstance(found, pa.Array):
        micros, missing = _numbers(found)
        return pa.array((micros // _UNITS["DAY"]).astype(np.int32), mask=missing).cast(to)
    if pa.types.is_decimal128(to) and pa.types.is_decimal128(found.type) and to.scale < found.type.scale:
        return rounded(spread(found, rows.count), to)
    return cast(found, to)


# -- arithmetic -------------------------------------------------------------------------------------------------------

_OPERATIONS = {exp.Add: pc.add_checked, exp.Sub: pc.subtract_checked, exp.Mul: pc.multiply_checked}


def _arithmetic(node: exp.Binary, rows: Rows) -> Value:
    left, right = value(node.left, rows), value(node.right, rows)
    operation = _OPERATIONS[type(node)]
    if left.type in DIGITS and right.type in DIGITS:
        common = widest(left.type, right.type)
        return operation(cast(left, common), cast(right, common))
    if pa.types.is_float64(left.type) and pa.types.is_float64(right.type):
        return operation(left, right)
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


def _as_decimal(node: exp.Expr, found: Value) -> Value:
    """A number as the decimal that Spark takes it for beside a decimal: a literal has just its digits."""
    if pa.types.is_decimal128(found.type):
        return found
    if found.type not in DIGITS:
        raise NotHere
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return cast(found, pa.decimal128(DIGITS[found.type], 0)).cast(pa.decimal128(len(str(int(node.this))), 0))
    if isinstance(node, exp.Cast | exp.Neg) and isinstance(node.this, exp.Literal):
        raise NotHere
    return cast(found, pa.decimal128(DIGITS[found.type], 0))


def _negated(node: exp.Neg, rows: Rows) -> Value:
    found = value(node.this, rows)
    if found.type not in DIGITS and not pa.types.is_decimal128(found.type) and not pa.types.is_float64(found.type):
        raise NotHere
    return pc.negate_checked(found)


def _remainder(node: exp.Mod, rows: Rows) -> Value:
    left, right = value(node.left, rows), value(node.right, rows)
    if pa.types.is_decimal128(left.type) and pa.types.is_decimal128(right.type):
        return remainder(spread(left, rows.count), spread(right, rows.count))
    if left.type not in DIGITS or right.type not in DIGITS:
        raise NotHere
    common = widest(left.type, right.type)
    one, missing = _numbers(spread(cast(left, common), rows.count))
    other, absent = _numbers(spread(cast(right, common), rows.count), fill=1)
    if np.isin(other, (0, -1)).any():
        raise NotHere
    return pa.array(np.fmod(one, other), common, mask=missing | absent)


def _quotient(node: exp.Div, rows: Rows) -> Value:
    """Of decimals; else of doubles, which Spark makes of whole numbers."""
    left, right = value(node.left, rows), value(node.right, rows)
    if pa.types.is_decimal128(left.type) or pa.types.is_decimal128(right.type):
        left, right = _as_decimal(node.left, left), _as_decimal(node.right, right)
        return quotient(spread(left, rows.count), spread(right, rows.count))
    left, right = cast(left, pa.float64()), cast(right, pa.float64())
    if pc.any(pc.equal(spread(right, rows.count), 0.0)).as_py():
        raise NotHere
    return pc.divide(left, right)


def _numbers(found: pa.Array, fill: int = 0) -> tuple[Numbers, Numbers]:
    """Whole numbers (times as microseconds), and which of them are NULL."""
    missing = found.is_null().to_numpy(zero_copy_only=False)
    whole = found.cast(pa.int64()) if pa.types.is_timestamp(found.type) else found
    return whole.fill_null(fill).to_numpy(), missing


# -- conditions -------------------------------------------------------------------------------------------------------

_COMPARISONS = {
    exp.EQ: pc.equal, exp.NEQ: pc.not_equal, exp.LT: pc.less, exp.LTE: pc.less_equal, exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}  # fmt: skip


def _comparison(node: exp.Binary, rows: Rows) -> Value:
    left, right = _alike(node, rows)
    compare = _COMPARISONS[type(node)]
    if pa.types.is_struct(left.type):
        return _compared_structs(compare, spread(left, rows.count), spread(right, rows.count))
    _check_comparable(left, right)
    return compare(left, right)


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


def _same(node: exp.NullSafeEQ, rows: Rows) -> Value:
    """NULL is the same as NULL. Text of floats, by which rows are told apart, is not made: their bits are compared."""
    texts = [_float_as_text(side, rows) for side in (node.left, node.right)]
    if texts[0] is not None and texts[1] is not None:
        left, right = texts[0], texts[1]
    else:
        left, right = _alike(node, rows)
        if _is_float(left.type):
            raise NotHere
    left, right = spread(left, rows.count), spread(right, rows.count)
    number = codes(pa.concat_arrays([left, right]))
    return pa.array(number[: len(left)] == number[len(left) :])


def _float_as_text(node: exp.Expr, rows: Rows) -> Value | None:
    if isinstance(node, exp.Cast) and node.to.this in (_TYPE.TEXT, _TYPE.VARCHAR):
        found = value(node.this, rows)
        return found if _is_float(found.type) else None
    return None


def _and(node: exp.And, rows: Rows) -> Value:
    return pc.and_kleene(*_truths(node, rows))


def _or(node: exp.Or, rows: Rows) -> Value:
    return pc.or_kleene(*_truths(node, rows))


def _truths(node: exp.Binary, rows: Rows) -> list[Value]:
    return [_truth(value(side, rows)) for side in (node.left, node.right)]


def _truth(found: Value) -> Value:
    if pa.types.is_null(found.type):
        return found.cast(pa.bool_())
    if not pa.types.is_boolean(found.type):
        raise NotHere
    return found


def _not(node: exp.Not, rows: Rows) -> Value:
    return pc.invert(_truth(value(node.this, rows)))


def _is(node: exp.Is, rows: Rows) -> Value:
    if not isinstance(node.expression, exp.Null):
        raise NotHere
    return pc.is_null(value(node.this, rows))


def _in(node: exp.In, rows: Rows) -> Value:
    if node.args.get("query") or node.args.get("unnest") or not node.expressions:
        raise NotHere
    found: Value = pa.scalar(False)
    for option in node.expressions:
        found = pc.or_kleene(found, _comparison(exp.EQ(this=node.this, expression=option), rows))
    return found


def _like(node: exp.Like, rows: Rows) -> Value:
    found, pattern = value(node.this, rows), node.expression
    if found.type != pa.string() or not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise NotHere
    if "\\" in str(pattern.this):  # which takes the meaning from what follows it
        raise NotHere
    true = pc.match_like(found, str(pattern.this))
    return pc.invert(true) if node.args.get("negate") else true


def _between(node: exp.Between, rows: Rows) -> Value:
    low, high = node.args["low"], node.args["high"]
    if node.args.get("symmetric"):
        raise NotHere
    return pc.and_kleene(
        _comparison(exp.GTE(this=node.this, expression=low), rows),
        _comparison(exp.LTE(this=node.this, expression=high), rows),
    )


# -- choices ----------------------------------------------------------------------------------------------------------


def _if(node: exp.If, rows: Rows) -> Value:
    return _chosen([(node.this, node.args["true"])], node.args.get("false") or exp.Null(), rows)


def _case(node: exp.Case, rows: Rows) -> Value:
    if node.this is not None:
        raise NotHere
    return _chosen([(i.this, i.args["true"]) for i in node.args["ifs"]], node.args.get("default") or exp.Null(), rows)


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
        true = spread(_truth(value(condition, here)), here.count).fill_null(False).to_numpy(zero_copy_only=False)
        parts.append((left[true], _part(chosen, rows, left[true])))
        left = left[~true]
    parts.append((left, _part(otherwise, rows, left)))
    kind = widest_of([part.type for _, part in parts])
    together = pa.concat_arrays([spread(cast(part, kind), len(places)) for places, part in parts])
    order = np.argsort(np.concatenate([places for places, _ in parts]), kind="stable")
    return together.take(pa.array(order))


def _part(node: exp.Expr, rows: Rows, places: Numbers) -> pa.Array:
    return spread(value(node, rows if len(places) == rows.count else rows.some(places)), len(places))


# -- aggregates -------------------------------------------------------------------------------------------------------


def aggregated(expression: exp.Expr, rows: Rows, groups: Groups, keys: Mapping[str, pa.Array]) -> pa.Array:
    """The value of an expression of aggregates for each group; it may use the groups' keys too."""
    try:
        found: dict[str, pa.Array] = {}

        def leaf(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.AggFunc | exp.IgnoreNulls | exp.Filter):
                name = f"__leaf{len(found)}"
                found[name] = _aggregate(node, rows, groups)
                return exp.column(name)
            return node

        over = expression.copy().transform(leaf, copy=False)
        return computed(over, Rows({**keys, **found}, groups.count, rows.utc))
    except (pa.ArrowException, OverflowError, ValueError, RecursionError):
        raise NotHere from None


def _aggregate(node: exp.Expr, rows: Rows, groups: Groups) -> pa.Array:
    def argument(of: exp.Expr) -> pa.Array:
        return spread(value(of, rows), rows.count)

    match node:
        case exp.Count(this=exp.Star() | exp.Literal()) if not node.expressions:
            return groups.sizes()
        case exp.Count() if not node.expressions:
            return groups.number_of(argument(node.this).is_valid().to_numpy(zero_copy_only=False))
        case exp.CountIf():
            return groups.number_of(_truth(argument(node.this)).fill_null(False).to_numpy(zero_copy_only=False))
        case exp.Sum():
            return groups.sum(argument(node.this))
        case exp.Min() | exp.Max() if not node.expressions:
            return groups.extreme(argument(node.this), "MIN" if isinstance(node, exp.Min) else "MAX")
        case exp.IgnoreNulls(this=exp.First(this=inner)):
            return groups.any_value(argument(inner))
    raise NotHere


# -- functions --------------------------------------------------------------------------------------------------------


def _cut(node: exp.TimestampTrunc, rows: Rows) -> Value:
    name = str(node.args["unit"]).upper()
    found = value(node.this, rows)
    if found.type != _TIME or not isinstance(found, pa.Array):
        raise NotHere
    if _UNITS.get(name, _UNITS["DAY"]) > _UNITS["SECOND"] and not rows.utc():
        raise NotHere
    micros, missing = _numbers(found)
    if name in _CALENDAR:
        begins = micros.astype("M8[us]").astype(_CALENDAR[name]).astype("M8[us]").astype(np.int64)
    elif name in _UNITS:
        begins = micros - micros % _UNITS[name]
    elif name == "WEEK":  # it begins on Monday, and the epoch on a Thursday
        begins = micros - (micros + 3 * _UNITS["DAY"]) % (7 * _UNITS["DAY"])
    else:
        raise NotHere
    return pa.array(begins, mask=missing).cast(_TIME)


def _struct(node: exp.Struct, rows: Rows) -> Value:
    names, parts = [], []
    for field in node.expressions:
        if not isinstance(field, exp.PropertyEQ):
            raise NotHere
        names.append(field.name)
        parts.append(spread(value(field.expression, rows), rows.count))
    if len({name.lower() for name in names}) < len(names):
        raise NotHere
    return pa.StructArray.from_arrays(parts, fields=[pa.field(n, p.type) for n, p in zip(names, parts, strict=True)])


def _function(node: exp.Anonymous, rows: Rows) -> Value:
    """TIMESTAMP_MICROS of a number, and windows that ``TUMBLE`` was made into."""
    name, arguments = str(node.this).upper(), node.expressions
    if name == "TIMESTAMP_MICROS" and len(arguments) == 1:
        return cast(value(arguments[0], rows), pa.int64()).cast(_TIME)
    if name == "PMOD" and len(arguments) == 2:
        left, right = (value(argument, rows) for argument in arguments)
        if left.type not in DIGITS or right.type not in DIGITS or not isinstance(right, pa.Scalar):
            raise NotHere
        common, by = widest(left.type, right.type), right.as_py()
        if by is None or by <= 0:
            raise NotHere
        number, missing = _numbers(spread(cast(left, common), rows.count))
        return pa.array(number % by, common, mask=missing)
    raise NotHere


def _micros(node: exp.UnixMicros, rows: Rows) -> Value:
    found = value(node.this, rows)
    if found.type != _TIME:
        raise NotHere
    return found.cast(pa.int64())


_RULES: dict[type[exp.Expr], Callable[[Any, Rows], Value]] = {
    exp.Column: _column, exp.Dot: _dot, exp.Literal: _literal, exp.Null: _null, exp.Boolean: _boolean,
    exp.Paren: _inner, exp.Alias: _inner, exp.Cast: _cast, exp.TryCast: _cast,
    exp.Add: _arithmetic, exp.Sub: _arithmetic, exp.Mul: _arithmetic, exp.Neg: _negated, exp.Mod: _remainder,
    exp.Div: _quotient,
    exp.EQ: _comparison, exp.NEQ: _comparison, exp.LT: _comparison, exp.LTE: _comparison, exp.GT: _comparison,
    exp.GTE: _comparison, exp.NullSafeEQ: _same, exp.And: _and, exp.Or: _or, exp.Not: _not, exp.Is: _is, exp.In: _in,
    exp.Between: _between,
    exp.Like: _like, exp.If: _if, exp.Case: _case, exp.Coalesce: _coalesce,
    exp.TimestampTrunc: _cut, exp.Struct: _struct, exp.Anonymous: _function, exp.UnixMicros: _micros,
}  # fmt: skip
