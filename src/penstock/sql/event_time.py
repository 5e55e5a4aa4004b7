"""TUMBLE and its companions, as in streaming SQL, and Spark's own windows, spelled in plain functions.

``TUMBLE(ts, INTERVAL ..)`` in GROUP BY and ``TUMBLE_START`` are the start of the window that holds ``ts``, counted from
the Unix epoch; ``TUMBLE_END`` is the start plus the width. In a query that groups by TUMBLE, ``FIRST_VALUE(x)`` and
``LAST_VALUE(x)`` are the values at the earliest and the latest event time of the group; among equal times the smallest
and the largest value win, so the result never depends on the order of rows.

``HOP(ts, slide, size)`` is for windows of one size that begin every ``slide``: a row is in each that holds its time. It
becomes a row for each of its windows, and they are grouped by the start. A row without a time is in none.

Spark's ``window(ts, size, slide, offset)`` in GROUP BY is one of these two, with a struct of start and end for a value.

``SESSION(ts, gap)`` is for rows that follow each other within the gap; it is Spark's ``session_window``, which the plan
knows as it is.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import SqlError
from penstock.sql.dialect import SparkSql
from penstock.sql.intervals import microseconds
from penstock.sql.rewriting import Rewriting, composed, operands, read
from penstock.sql.window_start import WindowStart

_TUMBLES = ("TUMBLE", "TUMBLE_START", "TUMBLE_END")
_HOPS = ("HOP", "HOP_START", "HOP_END")
_SESSIONS = ("SESSION", "SESSION_START", "SESSION_END")
_OF_SPARK = ("WINDOW", "SESSION_WINDOW")
_GROUPED = ("TUMBLE", "HOP", "SESSION", *_OF_SPARK)
_BY_TIME = (exp.FirstValue, exp.LastValue, exp.First, exp.Last)
_HOP = "__hop_start"
_MOST_WINDOWS = 1_000
_WAS, _LENGTHS, _ADDED = "was", "lengths", "added"


def uses_event_time(tree: exp.Expr) -> bool:
    """Whether a query uses what Spark does not know, or leaves open."""
    return (uses_windows(tree) and tree.find(*_BY_TIME) is not None) or uses_our_windows(tree)


def uses_our_windows(tree: exp.Expr) -> bool:
    """Whether a query calls functions that only Penstock has, so that Spark cannot judge it as it is written."""
    return any(_name(node) in _TUMBLES + _HOPS + _SESSIONS for node in tree.find_all(exp.Anonymous))


def uses_windows(tree: exp.Expr) -> bool:
    """Whether a query uses Spark's own windows."""
    return bool(times_of_windows(tree))


def times_of_windows(tree: exp.Expr) -> list[str]:
    """What the windows of a query are windows of, if they are Spark's own."""
    windows = [node for node in tree.find_all(exp.Anonymous) if _name(node) in _OF_SPARK]
    return [node.expressions[0].sql(dialect=SparkSql) if node.expressions else "nothing" for node in windows]


def rewrite_event_time(rewriting: Rewriting) -> None:
    """TUMBLE, HOP, SESSION and their companions in Spark's functions, and first and last by event time as MIN and MAX.

    >>> from penstock.sql.query import parse_query
    >>> q = parse_query("SELECT FIRST_VALUE(p) AS o FROM t GROUP BY TUMBLE(ts, INTERVAL 1 SECOND)")
    >>> print(q.sql(dialect=SparkSql).split(" FROM ")[0])
    SELECT MIN(STRUCT(ts AS at, p AS value)).value AS o
    """
    for select in rewriting.find(exp.Select):
        group = select.args.get("group")
        windows = [node for node in _own(select) if _name(node) in _GROUPED] if group is not None else []
        for window in windows[:1]:
            if window.expressions:
                _order_by_event_time(rewriting, select, window)
        _spread(rewriting, select, [window for window in windows if _name(window) == "HOP"])
        _as_sessions(rewriting, select)
    for node in rewriting.find(exp.Anonymous):
        if _name(node) in _TUMBLES:
            rewriting.replace(node, _window_bound(node))


def rewrite_windows(tree: exp.Query) -> exp.Query:
    """Spark's own windows in the functions that the plan knows, in GROUP BY where nothing else could be meant.

    ``session_window`` stays.
    """
    tree = tree.copy()
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        if group is not None and not _is_name(tree):
            _name_fields(select)
        if group is not None and not has_sets(group):
            _as_structs(select, [window for window in _own(select) if _name(window) == "WINDOW"])
    return tree


def windows_put_back(tree: exp.Query) -> exp.Query:
    """What ``rewrite_windows`` gave, with Spark's windows again wherever they were spelled otherwise.

    If nothing else was changed, Spark sees the query that was written.
    """
    tree = tree.copy()
    for node in [n for n in tree.walk() if _WAS in n.meta]:
        node.replace(node.meta[_WAS].copy())
    for node in [n for n in tree.walk() if _ADDED in n.meta]:
        above = node.parent
        if isinstance(above, exp.And):
            above.replace(above.right if above.left is node else above.left)
        elif isinstance(above, exp.Where):
            above.pop()
        else:
            node.pop()
    return tree


def lengths_of_windows(tree: exp.Query) -> list[str]:
    """The length, slide and offset of each of Spark's windows that ``rewrite_windows`` spelled otherwise."""
    return list(dict.fromkeys(node.meta[_LENGTHS] for node in tree.walk() if _LENGTHS in node.meta))


def _instead(value: exp.Expr, was: exp.Expr, window: exp.Anonymous | None = None) -> exp.Expr:
    """A copy of a value that remembers what stood in its place, and of which window it is made."""
    made = value.copy()
    made.meta[_WAS] = was.meta.get(_WAS, was).copy()
    if window is not None:
        made.meta[_LENGTHS] = ", ".join(e.sql(dialect=SparkSql) for e in window.expressions[1:])
    return made


def _is_name(tree: exp.Expr) -> bool:
    """Whether something else in a query is called as Spark's windows are."""
    given = (exp.Alias, exp.Aliases, exp.TableAlias, exp.CTE)
    names = {
        i.name.lower() for node in tree.find_all(*given) for i in node.find_all(exp.Identifier) if i.parent is node
    }
    return not names.isdisjoint(("window", "session_window"))


def has_sets(group: exp.Group | None) -> bool:
    """ROLLUP and its like, in whose totals a window is NULL as a whole."""
    if group is None:
        return False
    sets = (exp.Rollup, exp.Cube, exp.GroupingSets)
    return any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets")) or group.find(*sets) is not None


def _own(select: exp.Select) -> list[exp.Anonymous]:
    """The functions of a query that are not those of a query inside it."""
    return [node for node in select.find_all(exp.Anonymous) if node.find_ancestor(exp.Select) is select]


def _name_fields(select: exp.Select) -> None:
    """What Spark calls ``window`` and ``session_window`` behind a GROUP BY of them, as the functions themselves."""
    for name in ("window", "session_window"):
        made = [node for node in _own(select) if _name(node) == name.upper()]
        if not made or not any(isinstance(node.parent, exp.Group) for node in made):
            continue
        for used in [c for c in select.find_all(exp.Column) if c.find_ancestor(exp.Select) is select]:
            if used.table.lower() == name and not used.args.get("db"):
                value: exp.Expr = exp.Dot(this=made[0].copy(), expression=used.this.copy())
            elif used.name.lower() == name and not used.table:
                value = made[0].copy()
            else:
                continue
            named = exp.alias_(value, used.name, quoted=True) if used.parent is select else value
            used.replace(_instead(named, used))


def _as_structs(select: exp.Select, windows: list[exp.Anonymous]) -> None:
    """Spark's ``window`` in a query that groups: TUMBLE or HOP, and a struct of start and end where both are seen."""
    if len({", ".join(e.sql(dialect=SparkSql) for e in window.expressions) for window in windows}) != 1:
        return  # none, or what Spark itself refuses
    if not windows[0].expressions or any(window.find_ancestor(exp.Where) for window in windows):
        return  # in WHERE, it stands for other rows than in GROUP BY
    at, *lengths = windows[0].expressions
    widths = [_length(e) for e in lengths]
    if not 1 <= len(widths) <= 3 or None in widths:
        return
    size = widths[0] or 0
    slide, offset = widths[1] if len(widths) > 1 else size, widths[2] if len(widths) > 2 else 0
    if slide is None or offset is None or not 0 < slide <= size or offset >= slide or size > _MOST_WINDOWS * slide:
        return
    if slide == size:
        start: exp.Expr = WindowStart.of(at, slide, offset)
        timed = exp.Not(this=exp.Is(this=at.copy(), expression=exp.Null()))
        timed.meta[_ADDED] = True
        select.where(timed, copy=False)
    else:
        hops = _hops(at, slide, size, offset)
        for hop in hops:
            hop.meta[_ADDED] = True
        select.set("laterals", [*select.args.get("laterals", []), *hops])
        start = exp.column(_HOP)
    end = _later(start, size)
    for window in windows:
        above = window.parent
        if isinstance(above, exp.Group):
            window.replace(_instead(start, window, window))
        elif isinstance(above, exp.Dot) and above.name.lower() in ("start", "end"):
            value = start if above.name.lower() == "start" else end
            outer = above.parent is select
            named = exp.alias_(value.copy(), f"window.{above.name}", quoted=True) if outer else value
            above.replace(_instead(named, above, window))
        else:
            both = composed("NAMED_STRUCT('start', x, 'end', y)", x=start, y=end)
            named = exp.alias_(both, "window", quoted=True) if above is select else both
            window.replace(_instead(named, window, window))


def _as_sessions(rewriting: Rewriting, select: exp.Select) -> None:
    """SESSION and its companions as Spark's ``session_window``."""
    for node in _own(select):
        if _name(node) not in _SESSIONS:
            continue
        if len(node.expressions) != 2:
            raise SqlError(f"{_name(node)} takes a timestamp and an interval: {_name(node)}(ts, INTERVAL '5 minutes')")
        if select.args.get("group") is None:
            raise SqlError(f"{_name(node)} goes with GROUP BY SESSION(ts, INTERVAL '5 minutes')")
        gap = exp.Literal.string(f"{_width(node, node.expressions[1])} microseconds")
        at, _ = operands(node, node.expressions)
        made: exp.Expr = exp.Anonymous(this="SESSION_WINDOW", expressions=[at, gap])
        field = {"SESSION_START": "start", "SESSION_END": "end"}.get(_name(node))
        if field is not None:
            made = exp.Dot(this=made, expression=exp.to_identifier(field, quoted=True))
        rewriting.replace(node, made)


def _spread(rewriting: Rewriting, select: exp.Select, hops: list[exp.Anonymous]) -> None:
    """A row for each window of the one HOP that the query groups by, and its functions as columns of that row."""
    used = [node for node in _own(select) if _name(node) in _HOPS]
    if not used:
        return
    texts = {", ".join(read(e).sql(dialect=SparkSql) for e in node.expressions) for node in used}
    if len(texts) != 1 or not hops:
        raise SqlError("HOP_START and HOP_END go with one HOP(ts, slide, size) in GROUP BY, with the same arguments")
    if len(used[0].expressions) != 3:
        raise SqlError("HOP takes a timestamp and two intervals: HOP(ts, INTERVAL '1 minute', INTERVAL '5 minutes')")
    slide, size = (_width(used[0], e) for e in used[0].expressions[1:])
    at, _, _ = operands(used[0], used[0].expressions)
    rewriting.add_laterals(select, _hops(at, slide, size))
    for node in used:
        start = exp.column(_HOP)
        rewriting.replace(node, _later(start, size) if _name(node) == "HOP_END" else start)


def _hops(at: exp.Expr, slide: int, size: int, offset: int = 0) -> list[exp.Expr]:
    """LATERAL VIEW: a row for each window that holds the row's time, with the window's start in a column."""
    count = -(-size // slide)
    if count > _MOST_WINDOWS:
        raise SqlError(f"HOP with {count} windows for each row: {_MOST_WINDOWS} are the most")
    first = WindowStart.of(at, slide, offset)
    starts = [_later(first, -slide * number) for number in range(count)]
    if size % slide:  # the earliest of them may have ended
        starts[-1] = composed("IF(y > x, s, NULL)", x=at, s=starts[-1], y=_later(starts[-1], size))
    view = composed(f"SELECT 1 FROM t LATERAL VIEW EXPLODE(ARRAY_COMPACT(x)) __hops AS {_HOP}", x=_array(starts))
    return list(view.args["laterals"])


def _array(values: list[exp.Expr]) -> exp.Expr:
    return exp.Anonymous(this="ARRAY", expressions=values)


def _name(node: exp.Anonymous) -> str:
    return str(node.this).upper()


def _order_by_event_time(rewriting: Rewriting, select: exp.Select, window: exp.Anonymous) -> None:
    """First and last by the time of the window that the rows are grouped by."""
    for node in list(select.find_all(*_BY_TIME)):
        above = node.parent
        while isinstance(above, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            above = above.parent
        if node.find_ancestor(exp.Select) is not select or isinstance(above, exp.Window):
            continue
        if above is not node.parent or node.expressions:
            if _name(window) in _OF_SPARK:  # whose other ways to say first and last are left to Spark
                continue
            raise SqlError(
                f"{node.sql(dialect=SparkSql)}: in a GROUP BY with TUMBLE, FIRST_VALUE and LAST_VALUE take one "
                "argument and nothing more"
            )
        extreme = exp.Min if isinstance(node, (exp.FirstValue, exp.First)) else exp.Max
        at, (value,) = operands(window, window.expressions)[0], operands(node, [node.this])
        picked = exp.Dot(this=extreme(this=pair("at", at, value)), expression=exp.to_identifier("value"))
        rewriting.replace(node, picked, name=read(node).sql(dialect=SparkSql))


def pair(name: str, by: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A value behind what it is sorted by."""
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name), expression=by),
            exp.PropertyEQ(this=exp.to_identifier("value"), expression=value),
        ]
    )


def _window_bound(node: exp.Anonymous) -> exp.Expr:
    if len(node.expressions) != 2:
        raise SqlError(f"{_name(node)} takes a timestamp and an interval: {_name(node)}(ts, INTERVAL '1 minute')")
    width = _width(node, node.expressions[1])
    start = WindowStart.of(operands(node, node.expressions)[0], width)
    return start if _name(node) != "TUMBLE_END" else _later(start, width)


def _later(time: exp.Expr, micros: int) -> exp.Expr:
    return composed(f"TIMESTAMPADD(MICROSECOND, {micros}, x)", x=time)


def _length(e: exp.Expr) -> int | None:
    """A length as Spark's windows take it: a text, or a number of microseconds."""
    if not isinstance(e, exp.Literal):
        return None
    if e.is_string:
        return microseconds(e.this.lower().removeprefix("interval "))
    return int(e.this) if e.is_int else None


def _width(node: exp.Anonymous, interval: exp.Expr) -> int:
    text = interval.sql(dialect=SparkSql) if isinstance(interval, exp.Interval) else ""
    total = microseconds(text.removeprefix("INTERVAL"))
    if not total:
        raise SqlError(
            f"{_name(node)} needs an interval of fixed length, such as INTERVAL '1 minute', "
            f"not {interval.sql(dialect=SparkSql)}"
        )
    return total
