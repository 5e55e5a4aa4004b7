"""TUMBLE and its companions, as in streaming SQL, spelled in Spark's own functions.

``TUMBLE(ts, INTERVAL ..)`` in GROUP BY and ``TUMBLE_START`` are the start of the window that holds ``ts``, counted from
the Unix epoch; ``TUMBLE_END`` is the start plus the width. In a query that groups by TUMBLE, ``FIRST_VALUE(x)`` and
``LAST_VALUE(x)`` are the values at the earliest and the latest event time of the group; among equal times the smallest
and the largest value win, so the result never depends on the order of rows.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import SqlError
from penstock.sql.intervals import microseconds

_FUNCTIONS = ("TUMBLE", "TUMBLE_START", "TUMBLE_END")


def uses_event_time(tree: exp.Expr) -> bool:
    return any(_name(node) in _FUNCTIONS for node in tree.find_all(exp.Anonymous))


def rewrite_event_time(tree: exp.Query) -> exp.Query:
    """The same query without TUMBLE, TUMBLE_START, TUMBLE_END, and first and last by event time as MIN and MAX.

    >>> import sqlglot
    >>> q = "SELECT FIRST_VALUE(p) AS o FROM t GROUP BY TUMBLE(ts, INTERVAL '1 second')"
    >>> print(rewrite_event_time(sqlglot.parse_one(q, dialect="spark")).sql(dialect="spark").split(" FROM ")[0])
    SELECT MIN(STRUCT(ts AS at, p AS value)).value AS o
    """
    tree = tree.copy()
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        for tumble in [n for n in (group.find_all(exp.Anonymous) if group else ()) if _name(n) == "TUMBLE"]:
            _order_by_event_time(select, tumble.expressions[0])
            break
    for node in list(tree.find_all(exp.Anonymous)):
        if _name(node) in _FUNCTIONS:
            node.replace(_window_bound(node))
    return tree


def _name(node: exp.Anonymous) -> str:
    return str(node.this).upper()


def _order_by_event_time(select: exp.Select, at: exp.Expr) -> None:
    for node in list(select.find_all(exp.FirstValue, exp.LastValue, exp.First, exp.Last)):
        if node.find_ancestor(exp.Select) is not select or isinstance(node.parent, exp.Window):
            continue
        if isinstance(node.parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter) or node.expressions:
            raise SqlError(
                f"{node.sql(dialect='spark')}: in a GROUP BY with TUMBLE, FIRST_VALUE and LAST_VALUE take one "
                "argument and nothing more"
            )
        extreme = exp.Min if isinstance(node, (exp.FirstValue, exp.First)) else exp.Max
        pair = exp.Struct(
            expressions=[
                exp.PropertyEQ(this=exp.to_identifier("at"), expression=at.copy()),
                exp.PropertyEQ(this=exp.to_identifier("value"), expression=node.this.copy()),
            ]
        )
        picked = exp.Dot(this=extreme(this=pair), expression=exp.to_identifier("value"))
        if isinstance(node.parent, exp.Select):
            picked_as: exp.Expr = exp.alias_(picked, node.sql(dialect="spark"), quoted=True)
            node.replace(picked_as)
        else:
            node.replace(picked)


def _window_bound(node: exp.Anonymous) -> exp.Expr:
    if len(node.expressions) != 2:
        raise SqlError(f"{_name(node)} takes a timestamp and an interval: {_name(node)}(ts, INTERVAL '1 minute')")
    at, width = node.expressions[0], _width(node, node.expressions[1])
    text = at.sql(dialect="spark")
    start = f"TIMESTAMPADD(MICROSECOND, -PMOD(UNIX_MICROS(CAST({text} AS TIMESTAMP)), {width}), {text})"
    bound = start if _name(node) != "TUMBLE_END" else f"TIMESTAMPADD(MICROSECOND, {width}, {start})"
    return exp.maybe_parse(bound, dialect="spark")


def _width(node: exp.Anonymous, interval: exp.Expr) -> int:
    text = interval.sql(dialect="spark") if isinstance(interval, exp.Interval) else ""
    total = microseconds(text.removeprefix("INTERVAL"))
    if not total:
        raise SqlError(
            f"{_name(node)} needs an interval of fixed length, such as INTERVAL '1 minute', "
            f"not {interval.sql(dialect='spark')}"
        )
    return total
