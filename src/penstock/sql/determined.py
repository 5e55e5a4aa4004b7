"""Aggregates whose result depends on the order of rows, spelled so that it does not.

COLLECT_LIST, COLLECT_SET and ARRAY_AGG give their values sorted. MIN_BY and MAX_BY choose, among rows that tie, the
smallest and the largest value. Spark leaves both open, so the answer is one that Spark could have given.
"""

from __future__ import annotations

from sqlglot import exp

_LISTS = (exp.ArrayAgg, exp.ArrayUniqueAgg)
_PICKS = (exp.ArgMax, exp.ArgMin)


def is_open(tree: exp.Expr) -> bool:
    """Whether a query uses such an aggregate."""
    return any(_is_grouped(node) for node in tree.find_all(*_LISTS, *_PICKS))


def determine(tree: exp.Query) -> exp.Query:
    """The same query with these aggregates written so that the order of rows does not matter.

    >>> import sqlglot
    >>> tree = sqlglot.parse_one("SELECT COLLECT_LIST(x) AS l, MAX_BY(x, y) AS m FROM t", dialect="spark")
    >>> print(determine(tree).sql(dialect="spark"))
    SELECT ARRAY_SORT(COLLECT_LIST(x)) AS l, MAX(IF(NOT y IS NULL, STRUCT(y AS by, x AS value), NULL)).value AS m FROM t
    """
    tree = tree.copy()
    for node in [n for n in tree.find_all(*_LISTS, *_PICKS) if _is_grouped(n)]:
        whole = node.parent if isinstance(node.parent, exp.Filter) else node
        holder, name = whole.parent, whole.sql(dialect="spark")
        marker = exp.Placeholder()
        whole.replace(marker)
        new = _sorted(whole) if isinstance(node, _LISTS) else _picked(node, whole)
        marker.replace(exp.alias_(new, name, quoted=True) if isinstance(holder, exp.Select) else new)
    return tree


def _is_grouped(node: exp.Expr) -> bool:
    """Whether it is an aggregate of a group; over a window the user gave an order."""
    above = node.parent
    while isinstance(above, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        above = above.parent
    return not isinstance(above, exp.Window)


def _sorted(whole: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="ARRAY_SORT", expressions=[whole])


def _picked(node: exp.Expr, whole: exp.Expr) -> exp.Expr:
    by, value = node.expression, node.this
    pair = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier("by"), expression=by.copy()),
            exp.PropertyEQ(this=exp.to_identifier("value"), expression=value.copy()),
        ]
    )
    counts: exp.Expr = exp.Not(this=exp.Is(this=by.copy(), expression=exp.Null()))
    if isinstance(whole, exp.Filter):
        counts = exp.and_(whole.expression.this.copy(), counts)
    extreme = exp.Max if isinstance(node, exp.ArgMax) else exp.Min
    return exp.Dot(
        this=extreme(this=exp.If(this=counts, true=pair, false=exp.Null())), expression=exp.to_identifier("value")
    )
