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
from penstock.sql.intervals import microseconds

_TUMBLES = ("TUMBLE", "TUMBLE_START", "TUMBLE_END")
_HOPS = ("HOP", "HOP_START", "HOP_END")
_SESSIONS = ("SESSION", "SESSION_START", "SESSION_END")
_OF_SPARK = ("WINDOW", "SESSION_WINDOW")
_GROUPED = ("TUMBLE", "HOP", "SESSION", *_OF_SPARK)
_BY_TIME = (exp.FirstValue, exp.LastValue, exp.First, exp.Last)
_HOP = "__hop_start"
_MOST_WINDOWS = 1_000


def uses_event_time(tree: exp.Expr) -> bool:
    """Whether a query uses what Spark does not know, or leaves open."""
    if uses_windows(tree) and tree.find(*_BY_TIME):
        return True
    return any(_name(node) in _TUMBLES + _HOPS + _SESSIONS for node in tree.find_all(exp.Anonymous))


def uses_windows(tree: exp.Expr) -> bool:
    """Whether a query uses Spark's own windows."""
    return any(_name(node) in _OF_SPARK for node in tree.find_all(exp.Anonymous))


def rewrite_event_time(tree: exp.Query, *, windows_too: bool) -> exp.Query:
    """The same query without TUMBLE, HOP and their companions, and first and last by event time as MIN and MAX.

    ``windows_too``: also Spark's own windows, where they are in GROUP BY and nothing else could be meant.
    ``session_window`` stays.

    >>> import sqlglot
    >>> q = sqlglot.parse_one("SELECT FIRST_VALUE(p) AS o FROM t GROUP BY TUMBLE(ts, INTERVAL 1 SECOND)")
    >>> print(rewrite_event_time(q, windows_too=True).sql(dialect="spark").split(" FROM ")[0])
    SELECT MIN(STRUCT(ts AS at, p AS value)).value AS o
    """
    tree = tree.copy()
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        if group is not None and windows_too and not _is_name(tree):
            _name_fields(select)
        windows = [node for node in _own(select) if _name(node) in _GROUPED] if group is not None else []
        for window in windows[:1]:
            if window.expressions:
                _order_by_event_time(select, window.expressions[0], _name(window) in _OF_SPARK)
        if windows_too and group is not None and not has_sets(group):
            _as_structs(select, [window for window in windows if _name(window) == "WINDOW"])
        _spread(select, [window for window in windows if _name(window) == "HOP"])
        _as_sessions(select)
    for node in list(tree.find_all(exp.Anonymous)):
        if _name(node) in _TUMBLES:
            node.replace(_window_bound(node))
    return tree


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
            used.replace(exp.alias_(value, used.name, quoted=True) if used.parent is select else value)


def _as_structs(select: exp.Select, windows: list[exp.Anonymous]) -> None:
    """Spark's ``window`` in a query that groups: TUMBLE or HOP, and a struct of start and end where both are seen."""
    if len({", ".join(e.sql(dialect="spark") for e in window.expressions) for window in windows}) != 1:
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
        start = _start(at, slide, offset)
        select.where(exp.Not(this=exp.Is(this=at.copy(), expression=exp.Null())), copy=False)
    else:
        _add_windows(select, at, slide, size, offset)
        start = exp.column(_HOP)
    end = _parsed(f"TIMESTAMPADD(MICROSECOND, {size}, {start.sql(dialect='spark')})")
    for window in windows:
        above = window.parent
        if isinstance(above, exp.Group):
            window.replace(start.copy())
        elif isinstance(above, exp.Dot) and above.name.lower() in ("start", "end"):
            value = start if above.name.lower() == "start" else end
            outer = above.parent is select
            above.replace(exp.alias_(value.copy(), f"window.{above.name}", quoted=True) if outer else value.copy())
        else:
            both = _parsed(f"NAMED_STRUCT('start', {start.sql(dialect='spark')}, 'end', {end.sql(dialect='spark')})")
            window.replace(exp.alias_(both, "window", quoted=True) if above is select else both)


def _as_sessions(select: exp.Select) -> None:
    """SESSION and its companions as Spark's ``session_window``."""
    for node in _own(select):
        if _name(node) not in _SESSIONS:
            continue
        if len(node.expressions) != 2:
            raise SqlError(f"{_name(node)} takes a timestamp and an interval: {_name(node)}(ts, INTERVAL '5 minutes')")
        if select.args.get("group") is None:
            raise SqlError(f"{_name(node)} goes with GROUP BY SESSION(ts, INTERVAL '5 minutes')")
        gap = exp.Literal.string(f"{_width(node, node.expressions[1])} microseconds")
        made: exp.Expr = exp.Anonymous(this="SESSION_WINDOW", expressions=[node.expressions[0].copy(), gap])
        field = {"SESSION_START": "start", "SESSION_END": "end"}.get(_name(node))
        node.replace(made if field is None else exp.Dot(this=made, expression=exp.to_identifier(field, quoted=True)))


def _spread(select: exp.Select, hops: list[exp.Anonymous]) -> None:
    """A row for each window of the one HOP that the query groups by, and its functions as columns of that row."""
    used = [node for node in _own(select) if _name(node) in _HOPS]
    if not used:
        return
    texts = {", ".join(e.sql(dialect="spark") for e in node.expressions) for node in used}
    if len(texts) != 1 or not hops:
        raise SqlError("HOP_START and HOP_END go with one HOP(ts, slide, size) in GROUP BY, with the same arguments")
    if len(used[0].expressions) != 3:
        raise SqlError("HOP takes a timestamp and two intervals: HOP(ts, INTERVAL '1 minute', INTERVAL '5 minutes')")
    slide, size = (_width(used[0], e) for e in used[0].expressions[1:])
    _add_windows(select, used[0].expressions[0], slide, size)
    for node in used:
        end = _parsed(f"TIMESTAMPADD(MICROSECOND, {size}, {_HOP})")
        node.replace(end if _name(node) == "HOP_END" else exp.column(_HOP))


def _add_windows(select: exp.Select, at: exp.Expr, slide: int, size: int, offset: int = 0) -> None:
    """A row for each window that holds the row's time, with the window's start in a column."""
    count = -(-size // slide)
    if count > _MOST_WINDOWS:
        raise SqlError(f"HOP with {count} windows for each row: {_MOST_WINDOWS} are the most")
    time, first = at.sql(dialect="spark"), _start(at, slide, offset).sql(dialect="spark")
    starts = [f"TIMESTAMPADD(MICROSECOND, -{slide * number}, {first})" for number in range(count)]
    if size % slide:  # the earliest of them may have ended
        starts[-1] = f"IF(TIMESTAMPADD(MICROSECOND, {size}, {starts[-1]}) > {time}, {starts[-1]}, NULL)"
    windows = f"EXPLODE(ARRAY_COMPACT(ARRAY({', '.join(starts)})))"
    made = _parsed(f"SELECT 1 FROM t LATERAL VIEW {windows} __hops AS {_HOP}")
    select.set("laterals", [*select.args.get("laterals", []), *made.args["laterals"]])


def _name(node: exp.Anonymous) -> str:
    return str(node.this).upper()


def _order_by_event_time(select: exp.Select, at: exp.Expr, of_spark: bool) -> None:
    """``of_spark``: the windows are Spark's own, whose other ways to say first and last are left to Spark."""
    for node in list(select.find_all(*_BY_TIME)):
        above = node.parent
        while isinstance(above, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            above = above.parent
        if node.find_ancestor(exp.Select) is not select or isinstance(above, exp.Window):
            continue
        if above is not node.parent or node.expressions:
            if of_spark:
                continue
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
    start = _start(at, width)
    if _name(node) != "TUMBLE_END":
        return start
    return _parsed(f"TIMESTAMPADD(MICROSECOND, {width}, {start.sql(dialect='spark')})")


def _start(at: exp.Expr, width: int, offset: int = 0) -> exp.Expr:
    """The start of the latest window of the width, counted from the Unix epoch, that holds a time."""
    text = at.sql(dialect="spark")
    micros = f"UNIX_MICROS(CAST({text} AS TIMESTAMP))" + (f" - {offset}" if offset else "")
    return _parsed(f"TIMESTAMPADD(MICROSECOND, -PMOD({micros}, {width}), {text})")


def _parsed(text: str) -> exp.Expr:
    return exp.maybe_parse(text, dialect="spark")


def _length(e: exp.Expr) -> int | None:
    """A length as Spark's windows take it: a text, or a number of microseconds."""
    if not isinstance(e, exp.Literal):
        return None
    if e.is_string:
        return microseconds(e.this.lower().removeprefix("interval "))
    return int(e.this) if e.is_int else None


def _width(node: exp.Anonymous, interval: exp.Expr) -> int:
    text = interval.sql(dialect="spark") if isinstance(interval, exp.Interval) else ""
    total = microseconds(text.removeprefix("INTERVAL"))
    if not total:
        raise SqlError(
            f"{_name(node)} needs an interval of fixed length, such as INTERVAL '1 minute', "
            f"not {interval.sql(dialect='spark')}"
        )
    return total
