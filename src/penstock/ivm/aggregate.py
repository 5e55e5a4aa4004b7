"""Aggregate and Distinct: one row for each group, kept in the node's table together with its state.

batch:  agg(R)
delta:  self-maintainable functions: merge the change's partials with the stored state of the touched groups;
        an extreme that was removed, and other functions: agg(R.post by touched groups) - stored rows of these groups
reads:  the delta and the touched groups of the table; the child's rows of the groups that must be recomputed
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.ivm import rules
from penstock.ivm.accumulators import ROWS
from penstock.ivm.context import Context, Moment
from penstock.ivm.layout import Layout, as_aggregate
from penstock.ivm.materialize import Materializer
from penstock.storage.zset import WEIGHT, SIGN, Delta, consolidate, matching, plain_rows, signed_copies
from penstock.plan.operators import Aggregate, Distinct, render
from penstock.storage.reader import quoted

_OLD, _STALE = "__old", "__stale"


def evaluate(layout: Layout, context: Context, moment: Moment) -> DataFrame:
    """All groups at a moment, as the node's table stores them."""
    rows = rules.evaluate(_body(layout).child, context, moment)
    return _grouped(layout, _arguments(layout, plain_rows(rows)))


def delta(layout: Layout, context: Context, stored: DataFrame, materializer: Materializer) -> DataFrame | None:
    """The change of the node's table: rows as stored, with weights. ``stored`` is the table before the epoch."""
    change = rules.delta(_body(layout).child, context)
    if change is None:
        return None
    rows = _arguments(layout, change.frame, WEIGHT)
    if not change.append_only:
        rows = consolidate(rows)
    if layout.mergeable:
        return _merge(layout, context, change, rows, stored, materializer)
    return _recompute(layout, context, change, rows, stored, materializer)


def _body(layout: Layout) -> Aggregate:
    body = layout.node.body
    assert isinstance(body, Aggregate | Distinct)
    return as_aggregate(body)


def _arguments(layout: Layout, frame: DataFrame, *extra: str) -> DataFrame:
    """Keys and arguments of each row of the child, and nothing else."""
    keys = [F.expr(render(e)).alias(name) for name, e, _ in layout.keys]
    arguments = [F.expr(m.argument_sql()).alias(m.argument) for m in layout.measures]
    return frame.select(*keys, *arguments, *extra)


def _key_columns(layout: Layout) -> list[str]:
    return [name for name, _, _ in layout.keys]


def _grouped(layout: Layout, rows: DataFrame) -> DataFrame:
    """Rows of keys and arguments aggregated from scratch, as the table stores them."""
    groups = rows.groupBy(*_key_columns(layout))
    if layout.mergeable:
        signed = rows.withColumn(SIGN, F.lit(1))
        partials = signed.groupBy(*_key_columns(layout)).agg(*_partials(layout))
        return _finalised(layout, partials.withColumn(ROWS, F.coalesce(ROWS, F.lit(0).cast("bigint"))))
    values = [F.expr(_call(m.function, m.argument)).alias(m.name) for m in layout.measures]
    return _finalised(layout, groups.agg(*values), computed=True)


def _call(function: object, argument: str) -> str:
    """The aggregate function over the column that holds its argument."""
    from sqlglot import exp

    assert isinstance(function, exp.Expression)
    if isinstance(function.this, exp.Star):
        return render(function)
    call = function.copy()
    call.set("this", exp.column(argument))
    return render(call)


def _partials(layout: Layout) -> list[Column]:
    state = [F.expr(c.part.partial).cast(c.part.type).alias(c.stored) for c in layout.state]
    return [F.sum(SIGN).cast("bigint").alias(ROWS), *state]


def _finalised(layout: Layout, groups: DataFrame, *, computed: bool = False, extra: tuple[str, ...] = ()) -> DataFrame:
    """Stored columns from keys and state: measures get their values, then the outputs are projected."""
    if not computed:
        state = [ROWS, *(quoted(c.stored) for c in layout.state)]
        values = [F.expr(m.value()).alias(m.name) for m in layout.measures]
        groups = groups.select(*_key_columns(layout), *values, *[F.col(c).alias(f"__s{i}") for i, c in enumerate(state)], *extra)
    visible = {name: F.expr(render(e)).alias(name) for name, e in layout.node.outputs}
    columns: dict[str, Column] = dict(visible)
    for name, _, stored in layout.keys:
        columns.setdefault(stored, F.col(name).alias(stored))
    if layout.mergeable:
        for i, stored in enumerate([ROWS, *(c.stored for c in layout.state)]):
            columns.setdefault(stored, F.col(f"__s{i}").alias(stored))
    return groups.select(*[columns[name] for name in layout.stored], *extra)


def _merge(
    layout: Layout, context: Context, change: Delta, rows: DataFrame, stored: DataFrame, materializer: Materializer
) -> DataFrame:
    keys = _key_columns(layout)
    extremes = [m for m in layout.measures if m.accumulator and m.accumulator.removed] if not change.append_only else []
    removed = [
        F.expr(m.accumulator.removed.partial).cast(m.accumulator.removed.type).alias(f"__removed_{m.name}")
        for m in extremes
        if m.accumulator and m.accumulator.removed
    ]
    partials = signed_copies(rows).groupBy(*keys).agg(*_partials(layout), *removed)
    if keys:
        partials = materializer.hold(partials)
    touched = matching(_under_keys(layout, stored), partials, keys, small=change.small)
    before = touched.select(
        *keys, ROWS, *[quoted(c.stored) for c in layout.state],
        F.struct(*[quoted(c) for c in layout.stored]).alias(_OLD),
    )  # fmt: skip
    merged = partials.unionByName(before, allowMissingColumns=True).groupBy(*keys).agg(
        F.sum(ROWS).cast("bigint").alias(ROWS),
        *[F.expr(f"CAST({c.part.merge}({quoted(c.stored)}) AS {c.part.type})").alias(c.stored) for c in layout.state],
        *[F.expr(f"{_kind(m)}(IF({_OLD} IS NULL, {quoted(m.state[0].stored)}, NULL))").alias(f"__added_{m.name}") for m in extremes],
        *[F.expr(f"{_kind(m)}(__removed_{m.name})").alias(f"__removed_{m.name}") for m in extremes],
        F.first(_OLD, ignorenulls=True).alias(_OLD),
    )  # fmt: skip
    merged = merged.withColumn(ROWS, F.coalesce(ROWS, F.lit(0).cast("bigint"))).where(~_unchanged(layout))
    result = materializer.materialize(merged.withColumn(_STALE, _stale(layout, extremes)))
    groups = result.frame
    exists = F.col(ROWS) > 0 if keys else F.lit(True)
    old = groups.where(f"{_OLD} IS NOT NULL").select(f"{_OLD}.*", F.lit(-1).cast("bigint").alias(WEIGHT))
    new = _finalised(layout, groups.where(exists & ~F.col(_STALE)))
    parts = [old, new.withColumn(WEIGHT, F.lit(1).cast("bigint"))]
    if extremes and result.any(_STALE):
        stale = groups.where(_STALE).select(*keys)
        parts.append(_from_child(layout, context, stale, small=result.local))
    total = parts[0]
    for part in parts[1:]:
        total = total.unionByName(part)
    return consolidate(total) if len(parts) > 2 else total


def _under_keys(layout: Layout, stored: DataFrame) -> DataFrame:
    """The table with its keys also under their internal names."""
    keys = [F.col(quoted(stored_name)).alias(name) for name, _, stored_name in layout.keys]
    return stored.select(*keys, *[quoted(c) for c in layout.stored])


def _kind(measure: object) -> str:
    from penstock.ivm.layout import MeasureLayout

    assert isinstance(measure, MeasureLayout)
    return measure.state[0].part.merge


def _unchanged(layout: Layout) -> Column:
    """Whether a merged group has the state it had; a row that did not change is not written again."""
    same = F.col(_OLD).isNotNull()
    for name in [ROWS, *(c.stored for c in layout.state)]:
        same = same & F.col(quoted(name)).eqNullSafe(F.col(f"{_OLD}.{quoted(name)}"))
    return same


def _stale(layout: Layout, extremes: list) -> Column:  # type: ignore[type-arg]
    """Whether a group's extreme may have been removed and nothing as extreme came in: it must be recomputed."""
    stale = F.lit(False)
    for m in extremes:
        removed, added = f"__removed_{m.name}", f"__added_{m.name}"
        old = f"{_OLD}.{quoted(m.state[0].stored)}"
        reaches, short = ("<=", ">") if _kind(m) == "MIN" else (">=", "<")
        condition = f"{removed} IS NOT NULL AND {removed} {reaches} {old} AND ({added} IS NULL OR {added} {short} {removed})"
        stale = stale | F.coalesce(F.expr(condition), F.lit(False))
    # A group without rows goes; but the one group of an aggregate without keys stays and must lose its extreme.
    return stale & (F.col(ROWS) > 0) if layout.keys else stale


def _from_child(layout: Layout, context: Context, groups: DataFrame, *, small: bool) -> DataFrame:
    """These groups computed anew from the child after the epoch, with weight +1."""
    rows = rules.evaluate(_body(layout).child, context, "post")
    extra = (WEIGHT,) if rows.weighted else ()
    narrow = matching(_arguments(layout, rows.frame, *extra), groups, _key_columns(layout), small=small)
    plain = signed_copies(consolidate(narrow)).drop(SIGN) if rows.weighted else narrow
    return _grouped(layout, plain).withColumn(WEIGHT, F.lit(1).cast("bigint"))


def _recompute(
    layout: Layout, context: Context, change: Delta, rows: DataFrame, stored: DataFrame, materializer: Materializer
) -> DataFrame:
    keys = _key_columns(layout)
    groups = materializer.materialize(rows.select(*keys).distinct()) if keys else None
    touched = rows if groups is None else groups.frame
    small = groups is not None and groups.local
    old = matching(_under_keys(layout, stored), touched, keys, small=small)
    old = old.select(*[quoted(c) for c in layout.stored], F.lit(-1).cast("bigint").alias(WEIGHT))
    return consolidate(old.unionByName(_from_child(layout, context, touched, small=small)))
