"""The order that a window function sees rows in: made total where the place of equal rows matters to it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.plan.aggregates import name_of
from penstock.plan.operators import column

_BY_PLACE = frozenset("row_number ntile lag lead".split())
_BY_FRAME = frozenset("rank dense_rank percent_rank cume_dist".split())
_TO_HERE = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")


def is_by_place(function: exp.Expr) -> bool:
    """Whether the place of rows that are equal in the order matters."""
    name, order, spec = name_of(function.this), function.args.get("order"), function.args.get("spec")
    if order is None or name in _BY_FRAME:
        return False
    return name in _BY_PLACE or (spec is not None and spec.args.get("kind") == "ROWS") or _is_first_of_all(function)


def with_ties(function: exp.Expr, ties: Sequence[str]) -> exp.Expr:
    """The function with its order made total by some columns, if the place of equal rows matters to it."""
    if not is_by_place(function):
        return function
    return ordered_by(function, [*function.args["order"].expressions, *tie_breakers(function, ties)])


def tie_breakers(function: exp.Expr, ties: Sequence[str]) -> list[exp.Expr]:
    """What rows that are equal in a function's order are sorted by."""
    used = {e.this.name for e in function.args["order"].expressions if isinstance(e.this, exp.Column)}
    partition = {e.name for e in function.args.get("partition_by") or ()}
    return [exp.Ordered(this=column(c), nulls_first=True) for c in ties if c not in used | partition]


def ordered_by(function: exp.Expr, order: Sequence[exp.Expr]) -> exp.Expr:
    """A function by place in another order, in which no two rows are equal."""
    total = function.copy()
    total.args["order"].set("expressions", [key.copy() for key in order])
    if _is_first_of_all(function):  # the first of all rows is the same for every row, so the frame may count rows
        total.set("spec", _TO_HERE.copy())
    return total


def _is_first_of_all(function: exp.Expr) -> bool:
    first = name_of(function.this) in ("first", "first_value")
    return first and function.args.get("spec") is None and not isinstance(function.this, exp.IgnoreNulls)
