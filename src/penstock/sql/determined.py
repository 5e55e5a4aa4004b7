"""What depends on the order of rows, spelled so that it does not.

COLLECT_LIST, COLLECT_SET and ARRAY_AGG give their values sorted. MIN_BY and MAX_BY choose, among rows that tie, the
smallest and the largest value. LIMIT without ORDER BY takes the first rows in the order of all columns. Spark leaves
all of it open, so the answer is one that Spark could have given.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.event_time import pair
from penstock.sql.rewriting import Rewriting, condition_of, operands, read, whole_call

_LISTS = (exp.ArrayAgg, exp.ArrayUniqueAgg)
_PICKS = (exp.ArgMax, exp.ArgMin)
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def is_open(tree: exp.Expr) -> bool:
    """Whether a query uses such an aggregate."""
    return any(_is_left_open(node) for node in tree.find_all(*_LISTS, *_PICKS))


def determine(rewriting: Rewriting) -> None:
    """These aggregates written so that the order of rows does not matter.

    >>> from penstock.sql.query import spark_text
    >>> print(spark_text("SELECT COLLECT_LIST(x) AS l FROM t"), spark_text("SELECT MAX_BY(x, NOT y) AS m FROM t"), sep="; ")
    SELECT ARRAY_SORT((COLLECT_LIST(x))) AS l FROM t; SELECT MAX(IF((NOT y) IS NOT NULL, STRUCT((NOT y) AS by, x AS value), NULL)).value AS m FROM t
    """  # noqa: E501
    for node in [n for n in rewriting.find(*_LISTS, *_PICKS) if _is_left_open(n)]:
        around = node
        while isinstance(around.parent, _AROUND):
            around = around.parent
        new = _sorted(node, around) if isinstance(node, _LISTS) else _picked(node, around)
        rewriting.replace(node, new, around=around, name=read(around).sql(dialect="spark"))


_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery)
_BEFORE_LIMIT = ("order", "sort", "cluster", "distribute", "windows")


def has_open_limits(tree: exp.Expr) -> bool:
    """Whether a query has a LIMIT without ORDER BY that can be settled."""
    return any(_is_open_limit(node) for node in tree.find_all(*_QUERIES))


def determine_limits(rewriting: Rewriting) -> None:
    """ORDER BY ALL before a LIMIT that has no order.

    >>> from penstock.sql.query import spark_text
    >>> print(spark_text("SELECT a, b FROM t LIMIT 3"))
    SELECT a, b FROM t  ORDER BY ALL LIMIT 3
    """
    for node in [n for n in rewriting.find(*_QUERIES) if _is_open_limit(n)]:
        key = exp.Ordered(this=exp.Var(this="ALL"), nulls_first=True)
        rewriting.add_order(node, exp.Order(expressions=[key]))


def _is_open_limit(node: exp.Expr) -> bool:
    if not isinstance(node.args.get("limit"), exp.Limit) or any(node.args.get(key) for key in _BEFORE_LIMIT):
        return False
    if isinstance(node.parent, exp.Exists):  # of which only matters whether there is a row
        return False
    return not any(_is_ordered(other) and not _is_around(other, node) for other in node.root().find_all(*_QUERIES))


def _is_ordered(node: exp.Expr) -> bool:
    """Whether a query is sorted without a LIMIT: who then limits it elsewhere expects the first rows of that order."""
    return bool(node.args.get("order") and not node.args.get("limit"))


def _is_around(query: exp.Expr, node: exp.Expr) -> bool:
    above = node.parent
    while above is not None and above is not query:
        above = above.parent
    return above is query


def _is_left_open(node: exp.Expr) -> bool:
    """Whether it is an aggregate of a group (over a window the user gave an order), of a form settled here."""
    return _is_grouped(node) and (isinstance(node, _LISTS) or _is_plain(node))


def _is_plain(node: exp.Expr) -> bool:
    """MAX_BY(x, y) and no more, but for a FILTER; MAX_BY(x, y, 3) is a list."""
    arguments = [value for value in node.args.values() if value]
    return (
        len(arguments) == 2
        and not any(isinstance(value, exp.Distinct) for value in arguments)
        and not isinstance(node.parent, exp.IgnoreNulls | exp.RespectNulls)
    )


def _is_grouped(node: exp.Expr) -> bool:
    """Whether it is an aggregate of a group; over a window the user gave an order."""
    above = node.parent
    while isinstance(above, _AROUND):
        above = above.parent
    return not isinstance(above, exp.Window)


def _sorted(node: exp.Expr, around: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="ARRAY_SORT", expressions=[whole_call(node, around)])


def _picked(node: exp.Expr, around: exp.Expr) -> exp.Expr:
    value, by = operands(node, [node.this, node.expression])
    counts: exp.Expr = exp.Not(this=exp.Is(this=by.copy(), expression=exp.Null()))
    if isinstance(around, exp.Filter):
        counts = exp.And(this=condition_of(node, around.expression.this), expression=counts)
    extreme = exp.Max if isinstance(node, exp.ArgMax) else exp.Min
    return exp.Dot(
        this=extreme(this=exp.If(this=counts, true=pair("by", by, value), false=exp.Null())),
        expression=exp.to_identifier("value"),
    )
