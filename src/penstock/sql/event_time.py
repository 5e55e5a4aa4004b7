"""TUMBLE and its companions, as in streaming SQL, spelled in Spark's own functions.

``TUMBLE(ts, INTERVAL ..)`` in GROUP BY and ``TUMBLE_START`` are the start of the window that holds ``ts``, counted from
the Unix epoch; ``TUMBLE_END`` is the start plus the width. In a query that groups by TUMBLE, ``FIRST_VALUE(x)`` and
``LAST_VALUE(x)`` are the values at the earliest and the latest event time of the group; among equal times the smallest
and the largest value win, so the result never depends on the order of rows.

``HOP(ts, slide, size)`` is for windows of one size that begin every ``slide``: a row is in each that holds its time. It
becomes a row for each of its windows, and they are grouped by the start. A row without a time is in none.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import SqlError
from penstock.sql.intervals import microseconds

_TUMBLES = ("TUMBLE", "TUMBLE_START", "TUMBLE_END")
_HOPS = ("HOP", "HOP_START", "HOP_END")
_HOP = "__hop_start"
_MOST_WINDOWS = 1_000


def uses_event_time(tree: exp.Expr) -> bool:
    return any(_name(node) in _TUMBLES + _HOPS for node in tree.find_all(exp.Anonymous))


def rewrite_event_time(tree: exp.Query) -> exp.Query:
    """The same query without TUMBLE, HOP and their companions, and first and last by event time as MIN and MAX.

    >>> import sqlglot
    >>> q = "SELECT FIRST_VALUE(p) AS o FROM t GROUP BY TUMBLE(ts, INTERVAL '1 second')"
    >>> print(rewrite_event_time(sqlglot.parse_one(q, dialect="spark")).sql(dialect="spark").split(" FROM ")[0])
    SELECT MIN(STRUCT(ts AS at, p AS value)).value AS o
    """
    tree = tree.copy()
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        windows = [n for n in (group.find_all(exp.Anonymous) if group else ()) if _name(n) in ("TUMBLE", "HOP")]
        for window in windows[:1]:
            _order_by_event_time(select, window.expressions[0])
        _spread(select, [window for window in windows if _name(window) == "HOP"])
    for node in list(tree.find_all(exp.Anonymous)):
        if _name(node) in _TUMBLES:
            node.replace(_window_bound(node))
    return tree


def _spread(select: exp.Select, hops: list[exp.Anonymous]) -> None:
    """A row for each window of the one HOP that the query groups by, and its functions as columns of that row."""
    used = [n for n in select.find_all(exp.Anonymous) if _name(n) in _HOPS and n.find_ancestor(exp.Select) is select]
    if not used:
        return
    texts = {", ".join(e.sql(dialect="spark") for e in node.expressions) for node in used}
    if len(texts) != 1 or not hops:
        raise SqlError("HOP_START and HOP_END go with one HOP(ts, slide, size) in GROUP BY, with the same arguments")
    if len(used[0].expressions) != 3:
        raise SqlError("HOP takes a timestamp and two intervals: HOP(ts, INTERVAL '1 minute', INTERVAL '5 minutes')")
    at, slide, size = (
        used[0].expressions[0].sql(dialect="spark"),
        *(_width(used[0], e) for e in used[0].expressions[1:]),
    )
    count = -(-size // slide)
    if count > _MOST_WINDOWS:
        raise SqlError(f"HOP with {count} windows for each row: {_MOST_WINDOWS} are the most")
    first = f"TIMESTAMPADD(MICROSECOND, -PMOD(UNIX_MICROS(CAST({at} AS TIMESTAMP)), {slide}), {at})"
    starts = [f"TIMESTAMPADD(MICROSECOND, -{slide * number}, {first})" for number in range(count)]
    if size % slide:  # the earliest of them may have ended
        starts[-1] = f"IF(TIMESTAMPADD(MICROSECOND, {size}, {starts[-1]}) > {at}, {starts[-1]}, NULL)"
    windows = f"EXPLODE(ARRAY_COMPACT(ARRAY({', '.join(starts)})))"
    made: exp.Expr = exp.maybe_parse(f"SELECT 1 FROM t LATERAL VIEW {windows} __hops AS {_HOP}", dialect="spark")
    select.set("laterals", [*select.args.get("laterals", []), *made.args["laterals"]])
    for node in used:
        start = exp.column(_HOP)
        end: exp.Expr = exp.maybe_parse(f"TIMESTAMPADD(MICROSECOND, {size}, {_HOP})", dialect="spark")
        node.replace(end if _name(node) == "HOP_END" else start)


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
