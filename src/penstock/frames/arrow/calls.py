"""Calls of aggregates and window functions as they were written: what the parser calls them becomes Spark's one name.

A call that says more than is looked at here (a form that nobody knows) is ``NotHere``.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.frames.arrow.expressions.values import check_arguments
from penstock.frames.frame import NotHere
from penstock.sql.documents import JsonAgg, JsonOrder

_NAMES: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.CountIf: "count_if", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max",
    exp.First: "first", exp.FirstValue: "first", exp.AnyValue: "first", exp.Last: "last", exp.LastValue: "last",
    exp.NthValue: "nth_value", exp.LogicalAnd: "bool_and", exp.LogicalOr: "bool_or", exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseOrAgg: "bit_or", exp.BitwiseXorAgg: "bit_xor", exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp", exp.StddevPop: "stddev_pop", exp.Variance: "var_samp", exp.VariancePop: "var_pop",
    exp.ArrayAgg: "collect_list", exp.ArrayUniqueAgg: "collect_set", exp.Quantile: "percentile", exp.Median: "median",
    exp.RegrCount: "regr_count", exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank",
    exp.PercentRank: "percent_rank", exp.CumeDist: "cume_dist", exp.Ntile: "ntile", exp.Lag: "lag", exp.Lead: "lead",
}  # fmt: skip

_SAME = {
    "every": "bool_and", "some": "bool_or", "any": "bool_or", "mean": "avg", "std": "stddev_samp", "try_sum": "sum",
    "try_avg": "avg", "percentile": "percentile", "collect_list": "collect_list", "collect_set": "collect_set",
    "array_agg": "collect_list",
}  # fmt: skip
"""Functions that the parser knows by their names only. What TRY_SUM would make NULL is not computed here anyway."""

_BY_PLACE = ("first", "last", "nth_value", "lag", "lead")
"""Functions that IGNORE NULLS and RESPECT NULLS are known of."""

_OPERANDS = ("this", "expression", "quantile", "offset", "default")
_SAID = (*_OPERANDS, "expressions", "big_int", "nulls_excluded")

CALLS = (*_NAMES, JsonAgg, JsonOrder, exp.IgnoreNulls, exp.RespectNulls, exp.Filter, exp.WithinGroup)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A function and what it is called with. ``where``: the condition that a row must fulfil to count."""

    name: str
    arguments: tuple[exp.Expr, ...] = ()
    distinct: bool = False
    ignores_nulls: bool = False
    where: exp.Expr | None = None
    order: tuple[exp.Ordered, ...] = ()


def is_call(node: exp.Expr) -> bool:
    """Whether it is the call of an aggregate, with whatever stands around it."""
    return isinstance(node, CALLS) or (isinstance(node, exp.Anonymous) and str(node.this).lower() in _SAME)


def call_of(node: exp.Expr) -> Call:
    """
    >>> from penstock.frames.arrow.expressions.values import parsed
    >>> call_of(parsed("STD(DISTINCT x) FILTER (WHERE y)")).name
    'stddev_samp'
    """
    where, nulls = None, None
    while isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        check_arguments(node)
        if isinstance(node, exp.Filter):
            where = node.expression.this
        else:
            nulls = type(node)
        node = node.this
    if isinstance(node, JsonAgg) and nulls is None:
        name = "json_order" if isinstance(node, JsonOrder) else "json_agg"
        return Call(name=name, arguments=(node.this,), where=where, order=tuple(node.keys))
    if isinstance(node, exp.WithinGroup):
        name, arguments, distinct = *_within_group(node), False
    else:
        name, (arguments, distinct) = _name_of(node), _arguments_of(node)
    if nulls is not None and name not in _BY_PLACE:
        raise NotHere
    return Call(name=name, arguments=arguments, distinct=distinct, ignores_nulls=nulls is exp.IgnoreNulls, where=where)


def _name_of(node: exp.Expr) -> str:
    name = _SAME.get(str(node.this).lower()) if isinstance(node, exp.Anonymous) else _NAMES.get(type(node))
    if name is None:
        raise NotHere
    return name


def _arguments_of(node: exp.Expr) -> tuple[tuple[exp.Expr, ...], bool]:
    """The arguments, and whether only distinct ones count."""
    check_arguments(node, _SAID)
    operands = [] if isinstance(node, exp.Anonymous) else [node.args.get(name) for name in _OPERANDS]
    given = [argument for argument in (*operands, *node.expressions) if argument is not None]
    if isinstance(given[0] if given else None, exp.Distinct):
        (only,) = given
        check_arguments(only, ("expressions",))
        return tuple(only.expressions), True
    return tuple(given), False


def _within_group(node: exp.WithinGroup) -> tuple[str, tuple[exp.Expr, ...]]:
    """PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x) is PERCENTILE(x, p)."""
    check_arguments(node)
    check_arguments(node.expression, ("expressions",))
    (key,) = node.expression.expressions
    if not isinstance(node.this, exp.PercentileCont) or key.args.get("desc"):
        raise NotHere
    check_arguments(node.this, ("this",))
    return "percentile", (key.this, node.this.this)


def whole_number(node: exp.Expr) -> int:
    """A whole number that is written down."""
    sign = 1
    if isinstance(node, exp.Neg):
        node, sign = node.this, -1
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdigit():
        raise NotHere
    return sign * int(node.this)
