"""Aggregates of rows on the driver, group by group."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.expressions.conditions import truth
from penstock.frames.arrow.expressions.values import Rows, check_arguments, computed, spread, value
from penstock.frames.arrow.groups import Groups
from penstock.frames.frame import NotHere


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
        return computed(over, Rows({**keys, **found}, groups.count, rows.settings))
    except (pa.ArrowException, OverflowError, ValueError, RecursionError):
        raise NotHere from None


def _aggregate(node: exp.Expr, rows: Rows, groups: Groups) -> pa.Array:
    def argument(of: exp.Expr) -> pa.Array:
        return spread(value(of, rows), rows.count)

    check_arguments(node, ("this", "big_int") if isinstance(node, exp.Count) else ("this",))
    match node:
        case exp.Count(this=exp.Star() | exp.Literal()):
            return groups.sizes()
        case exp.Count():
            return groups.number_of(argument(node.this).is_valid().to_numpy(zero_copy_only=False))
        case exp.CountIf():
            return groups.number_of(truth(argument(node.this)).fill_null(False).to_numpy(zero_copy_only=False))
        case exp.Sum():
            return groups.sum(argument(node.this))
        case exp.Min() | exp.Max():
            return groups.extreme(argument(node.this), "MIN" if isinstance(node, exp.Min) else "MAX")
        case exp.IgnoreNulls(this=exp.First(this=inner)):
            return groups.any_value(argument(inner))
    raise NotHere
