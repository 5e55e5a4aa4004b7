"""EMIT AFTER WATERMARK as a query: the windowed query with the end of each window beside it, and only what has ended.

The watermark moves, so its place in the text is taken by a value that stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp

from penstock.errors import DefinitionError
from penstock.sql.dialect import SparkSql
from penstock.sql.event_time import has_sets
from penstock.sql.intervals import microseconds
from penstock.sql.query import parse_written
from penstock.sql.rewriting import composed
from penstock.sql.trees import whole_number

WATERMARK = "__WATERMARK"
"""A function that stands for the watermark, in microseconds, in the query of a view that waits for it."""
END = "__window_end"
_UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_SHORT = {"DD": "DAY", "MON": "MONTH", "MM": "MONTH", "YY": "YEAR", "YYYY": "YEAR"}


def ended(query: str, names: Sequence[str], view: str) -> str:
    """A windowed query without the windows that have not ended; ``names`` are those of its columns.

    >>> text = ended("SELECT date_trunc('hour', ts) AS h, COUNT(*) AS n FROM t GROUP BY 1", ["h", "n"], "v")
    >>> text.split(" FROM ")[0], text.split(" WHERE ")[1]
    ('SELECT `h`, `n`', '__window_end <= TIMESTAMP_MICROS(__WATERMARK())')
    """
    tree = parse_written(query)
    end = _window_end(tree) if isinstance(tree, exp.Select) else None
    if end is None or not isinstance(tree, exp.Select):
        sets = isinstance(tree, exp.Select) and has_sets(tree.args.get("group"))
        raise DefinitionError(
            f"view {view!r}: EMIT AFTER WATERMARK needs windows that end: GROUP BY TUMBLE(ts, ..), HOP(ts, ..), "
            "SESSION(ts, ..), WINDOW(ts, ..) or DATE_TRUNC('..', ts), in the outermost SELECT"
            + (", not within ROLLUP, CUBE or GROUPING SETS, whose totals never end." if sets else ".")
        )
    _refuse_beyond_groups(tree, view)
    if len(tree.expressions) != len(names) or any(item.is_star for item in tree.expressions):
        raise DefinitionError(f"view {view!r}: with EMIT AFTER WATERMARK, write the columns out instead of a star.")
    inner = tree.copy()
    columns: list[exp.Expr] = []
    for number, item in enumerate(inner.expressions):
        taken = item.alias_or_name.lower() in {column.alias_or_name.lower() for column in columns}
        if taken or not isinstance(item, exp.Alias | exp.Column):
            item = exp.alias_(item.unalias().copy(), f"__column{number}", quoted=True)
        columns.append(item)
    inner.set("expressions", [*columns, exp.alias_(end, END)])
    shown = [
        f"`{item.alias_or_name}`" + ("" if item.alias_or_name == name else f" AS `{name}`")
        for item, name in zip(columns, names, strict=True)
    ]
    moment = f"TIMESTAMP_MICROS({WATERMARK}())"
    return f"SELECT {', '.join(shown)} FROM ({inner.sql(dialect=SparkSql)}) AS __windows WHERE {END} <= {moment}"


def at(text: str, watermark: int | None) -> str:
    """The query with the watermark in its place; None: no window has ended."""
    if WATERMARK not in text:
        return text
    return passed(sqlglot.parse_one(text, dialect=SparkSql), watermark).sql(dialect=SparkSql)


def passed(condition: exp.Expr, watermark: int | None) -> exp.Expr:
    """A condition with the watermark in its place."""
    now: exp.Expr = exp.Null() if watermark is None else whole_number(watermark)
    return condition.transform(lambda node: now.copy() if _is_watermark(node) else node)


def is_moving(condition: exp.Expr) -> bool:
    """Whether a condition compares with the watermark."""
    return any(_is_watermark(node) for node in condition.find_all(exp.Anonymous))


def _is_watermark(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() == WATERMARK


def _refuse_beyond_groups(select: exp.Select, view: str) -> None:
    """What is computed from several groups would be computed from windows that have not ended, too."""
    own = [node for node in select.find_all(exp.Window) if node.find_ancestor(exp.Select) is select]
    found = {
        "DISTINCT": select.args.get("distinct"), "QUALIFY": select.args.get("qualify"), "OVER (..)": own,
        "LIMIT": select.args.get("limit"), "OFFSET": select.args.get("offset"),
    }  # fmt: skip
    for construct, there in found.items():
        if there:
            raise DefinitionError(
                f"view {view!r}: EMIT AFTER WATERMARK does not go with {construct}, which would also see windows that "
                f"have not ended. Put the windows into a view with EMIT AFTER WATERMARK, and {construct} into a view "
                "that reads it."
            )


def _window_end(select: exp.Select) -> exp.Expr | None:
    for key in _keys(select):
        inner = key.unnest()
        kind = str(inner.this).upper().removesuffix("_START") if isinstance(inner, exp.Anonymous) else ""
        if kind in ("TUMBLE", "HOP"):
            return exp.Anonymous(this=f"{kind}_END", expressions=[e.copy() for e in inner.expressions])
        if kind == "WINDOW":
            return exp.Dot(this=inner.copy(), expression=exp.to_identifier("end", quoted=True))
        if kind in ("SESSION", "SESSION_WINDOW") and len(inner.expressions) == 2:
            return _session_end(*inner.expressions)
        if isinstance(inner, exp.TimestampTrunc | exp.DateTrunc):
            unit = str(inner.args["unit"].name).upper()
            unit = _SHORT.get(unit, unit)
            if unit in _UNITS:
                length = "3 MONTH" if unit == "QUARTER" else f"1 {unit}"
                return composed(f"CAST(x AS TIMESTAMP) + INTERVAL {length}", x=inner)
    return None


def _session_end(at: exp.Expr, gap: exp.Expr) -> exp.Expr | None:
    """The end of a session: a gap after its last row, and a moment later, since a row at the very end belongs to it.

    Not the function's own end: Spark would apply a condition on that to the rows, before they are sessions.
    """
    micros = microseconds(
        gap.name if isinstance(gap, exp.Literal) else gap.sql(dialect=SparkSql).removeprefix("INTERVAL")
    )
    if micros is None:
        return None
    return composed(f"TIMESTAMPADD(MICROSECOND, {micros + 1}, MAX(x))", x=at)


def _keys(select: exp.Select) -> list[exp.Expr]:
    """What a query groups by: also by the number or the name of a column, or by ALL that are no aggregates."""
    group = select.args.get("group")
    if group is None or any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets")):
        return []  # WITH ROLLUP and its like: the totals are of no window
    items = [item.unalias() for item in select.expressions]
    if group.args.get("all"):
        return [item for item in items if not item.find(exp.AggFunc)]
    by_name = {item.alias.lower(): item.unalias() for item in select.expressions if isinstance(item, exp.Alias)}
    keys = []
    for key in group.expressions:
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.this) <= len(items):
            key = items[int(key.this) - 1]
        elif isinstance(key, exp.Column) and not key.table:
            key = by_name.get(key.name.lower(), key)
        keys.append(key)
    return keys
