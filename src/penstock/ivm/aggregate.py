"""Aggregate and Distinct: one row for each group, kept in the node's table together with its state.

batch:  agg(R)
delta:  self-maintainable functions: merge the change's partials with the stored state of the touched groups;
        an extreme that was removed, and other functions: agg(R.post by touched groups) - stored rows of these groups
reads:  the delta and the touched groups of the table; the child's rows of the groups that must be recomputed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.ivm import rules
from penstock.ivm.accumulators import ROWS
from penstock.ivm.context import Context, Moment
from penstock.ivm.keyed import Keyed, Stored, replaced
from penstock.ivm.layout import Layout, MeasureLayout, as_aggregate
from penstock.ivm.materialize import Materialized, Materializer
from penstock.ivm.touched import Touched, reach_of, renamed, touched
from penstock.plan.operators import Aggregate, Distinct, names_in, render
from penstock.storage.frames import grouped, select
from penstock.storage.reader import quoted
from penstock.storage.zset import WEIGHT, Delta, Rows, add, consolidate, identity_of, plain_rows, weighted

_OLD, _STALE = "__old", "__stale"


def evaluate(layout: Layout, context: Context, moment: Moment) -> DataFrame:
    """All groups at a moment, as the node's table stores them."""
    rows = rules.evaluate(_body(layout).child, context, moment)
    return _grouped(layout, _arguments(layout, plain_rows(rows)), small=rows.small)


def delta(layout: Layout, context: Context, stored: Stored, materializer: Materializer) -> Materialized | None:
    """The change of the node's table: rows as stored, with weights."""
    change = rules.delta(_body(layout).child, context)
    if change is None:
        return None
    keys = [(name, e) for name, e, _ in layout.keys]
    rows = replace(change, frame=_arguments(layout, change.frame, WEIGHT), known=renamed(change.known, keys))
    reach = reach_of(change.known, keys)
    if layout.mergeable:
        return _merge(layout, context, rows, reach, stored, materializer)
    return _recompute(layout, context, rows, reach, stored, materializer)


def _body(layout: Layout) -> Aggregate:
    body = layout.node.body
    assert isinstance(body, Aggregate | Distinct)
    return as_aggregate(body)


def _arguments(layout: Layout, frame: DataFrame, *extra: str) -> DataFrame:
    """Keys and arguments of each row of the child, and nothing else."""
    keys = [f"{render(e)} AS {name}" for name, e, _ in layout.keys]
    if layout.mergeable:
        arguments = [f"{m.argument_sql()} AS {m.argument}" for m in layout.measures]
    else:
        arguments = sorted(set().union(*(names_in(m.function) for m in layout.measures)))
    return select(frame, *keys, *arguments, *extra)


def _keys(layout: Layout) -> list[str]:
    return [name for name, _, _ in layout.keys]


# -- from scratch -----------------------------------------------------------------------------------------------------


def _grouped(layout: Layout, rows: DataFrame, *, small: bool) -> DataFrame:
    """Rows of keys and arguments aggregated from scratch, as the table stores them."""
    rows = rows.coalesce(1) if small else rows
    if layout.mergeable:
        state = [f"CAST({c.part.plain} AS {c.part.type}) AS {quoted(c.stored)}" for c in layout.state]
        groups = grouped(rows, _keys(layout), [f"COUNT(*) AS {ROWS}", *state])
        return _finalised(layout, groups)
    values = [f"{render(m.function)} AS {m.name}" for m in layout.measures]
    groups = grouped(rows, _keys(layout), values)
    return select(groups, *[_stored_columns(layout)[name] for name in layout.stored])


def _partials(layout: Layout) -> list[str]:
    """What a change adds to a group: a number of rows, and the state columns."""
    state = [
        f"CAST({c.part.partial} AS {c.part.partial_type or c.part.type}) AS {quoted(c.stored)}" for c in layout.state
    ]
    return [f"COALESCE(SUM({WEIGHT}), 0L) AS {ROWS}", *state]


def _stored_columns(layout: Layout) -> dict[str, str]:
    """The table's columns over keys, measures and (as ``__s0``, ..) state."""
    columns = {name: f"{render(e)} AS {quoted(name)}" for name, e in layout.node.outputs}
    for name, _, stored in layout.keys:
        columns.setdefault(stored, f"{name} AS {quoted(stored)}")
    for i, stored in enumerate(_state_names(layout)):
        columns.setdefault(stored, f"__s{i} AS {quoted(stored)}")
    return columns


def _state_names(layout: Layout) -> list[str]:
    return [ROWS, *(c.stored for c in layout.state)]


def _finalised(layout: Layout, groups: DataFrame) -> DataFrame:
    """Stored columns from keys and state: measures get their values, then the outputs are projected."""
    columns = _stored_columns(layout)
    return select(_valued(layout, groups), *[columns[name] for name in layout.stored])


def _valued(layout: Layout, groups: DataFrame, *more: str) -> DataFrame:
    """Keys, the measures' values, the state as ``__s0``, .., and ``more``."""
    values = [f"{m.value()} AS {m.name}" for m in layout.measures]
    state = [f"{quoted(name)} AS __s{i}" for i, name in enumerate(_state_names(layout))]
    return select(groups, *_keys(layout), *values, *state, *more)


# -- by merging -------------------------------------------------------------------------------------------------------


def _merge(
    layout: Layout,
    context: Context,
    change: Delta,
    reach: pa.Table | None,
    stored: Stored,
    materializer: Materializer,
) -> Materialized:
    extremes = [m for m in layout.measures if m.accumulator and m.accumulator.removed] if not change.append_only else []
    partials = _partials_of(layout, change, extremes)
    few = change.small or change.few
    near = stored.within(reach, {stored_as: name for name, _, stored_as in layout.keys}) if few else stored
    if few and near.tiny:
        merged = _merged(layout, partials, _under_keys(layout, near.frame), extremes, one=change.small)
        result = materializer.materialize(merged, few=True, little=change.little)
    else:
        known = materializer.materialize(partials, few=few, little=change.little)
        groups = Touched(known, tuple(_keys(layout)))
        if layout.keys:
            stored = stored.near(groups.keys.table, {stored_as: name for name, _, stored_as in layout.keys})
        before = groups.of(_under_keys(layout, stored.frame)) if layout.keys else stored.frame
        merged = _merged(layout, known.frame, before, extremes, one=known.local and stored.small)
        result = materializer.materialize(merged, few=known.local, little=known.little and stored.small)
    if not (extremes and result.any(_STALE)):
        return result.without(_STALE)
    stale = Touched(_stale_groups(layout, result), tuple(_keys(layout))) if layout.keys else None
    anew = _from_child(layout, context, stale)
    total = add([result.frame.drop(_STALE), weighted(anew.frame, 1)])
    change_of = consolidate(total, small=result.local and anew.small)
    return materializer.materialize(change_of, few=result.local, little=result.little and anew.small)


def _stale_groups(layout: Layout, result: Materialized) -> Materialized:
    """The keys of the groups that must be recomputed, under their internal names."""
    names = {name: stored for name, _, stored in layout.keys}
    frame = select(result.frame.where(_STALE), *[f"{quoted(stored)} AS {name}" for name, stored in names.items()])
    if result.table is None:
        return Materialized(frame, None)
    rows = result.table.filter(result.table.column(_STALE))
    return Materialized(frame, pa.table({name: rows.column(stored) for name, stored in names.items()}))


def _under_keys(layout: Layout, table: DataFrame) -> DataFrame:
    """The table with its keys under their internal names too."""
    return select(table, "*", *[f"{quoted(stored)} AS {name}" for name, _, stored in layout.keys])


def _partials_of(layout: Layout, change: Delta, extremes: Sequence[MeasureLayout]) -> DataFrame:
    """The change by group: what it adds to the state, and the extremes of what it removes."""
    rows = change.frame if change.append_only else consolidate(change.frame, small=change.small)
    texts = _partials(layout) + [_removed(m) for m in extremes]
    return grouped(rows.coalesce(1) if change.small else rows, _keys(layout), texts)


def _merged(
    layout: Layout, partials: DataFrame, before: DataFrame, extremes: Sequence[MeasureLayout], *, one: bool
) -> DataFrame:
    """The rows of the groups that change: the old with weight -1, the new with +1; stale ones get no new row here."""
    state = _state_names(layout)
    old = f"STRUCT({', '.join(map(quoted, layout.stored))}) AS {_OLD}"
    before = select(before, *_keys(layout), *map(quoted, state), old)
    both = partials.unionByName(before, allowMissingColumns=True)
    merges = [f"COALESCE(SUM({ROWS}), 0L) AS {ROWS}"]
    merges += [f"CAST({c.part.merge}({quoted(c.stored)}) AS {c.part.type}) AS {quoted(c.stored)}" for c in layout.state]
    for m in extremes:
        value = quoted(m.state[0].stored)
        merges.append(f"{_kind(m)}(IF({_OLD} IS NULL, {value}, NULL)) AS __added_{m.name}")
        merges.append(f"{_kind(m)}(__removed_{m.name}) AS __removed_{m.name}")
    merges.append(f"FIRST({_OLD}, true) AS {_OLD}")
    types = before.schema
    same = " AND ".join(
        f"{identity_of(quoted(name), types[name].dataType)} <=> "
        f"{identity_of(f'{_OLD}.{quoted(name)}', types[name].dataType)}"
        for name in state
    )
    groups = grouped(both.coalesce(1) if one else both, _keys(layout), merges)
    # A removed extreme may leave the merged state as it was: whether a group is stale is asked before it is left out.
    marked = select(groups, *_keys(layout), *map(quoted, state), _OLD, f"{_stale(layout, extremes)} AS {_STALE}")
    changed = marked.where(f"{_STALE} OR {_OLD} IS NULL OR NOT ({same})")
    exists = f"{ROWS} > 0 AND NOT {_STALE}" if layout.keys else f"NOT {_STALE}"
    columns = _stored_columns(layout)
    new = ", ".join(columns[name] for name in layout.stored)
    old = ", ".join(f"{_OLD}.{quoted(name)} AS {quoted(name)}" for name in layout.stored)
    sides = (
        f"IF({_OLD} IS NULL, NULL, STRUCT({old}, -1L AS {WEIGHT}, {_STALE})), "
        f"IF({exists}, STRUCT({new}, 1L AS {WEIGHT}, {_STALE}), NULL)"
    )
    return select(_valued(layout, changed, ROWS, _OLD, _STALE), f"INLINE(ARRAY_COMPACT(ARRAY({sides})))")


def _kind(measure: MeasureLayout) -> str:
    """MIN or MAX."""
    return measure.state[0].part.merge


def _removed(measure: MeasureLayout) -> str:
    assert measure.accumulator is not None
    assert measure.accumulator.removed is not None
    part = measure.accumulator.removed
    return f"CAST({part.partial} AS {part.type}) AS __removed_{measure.name}"


def _stale(layout: Layout, extremes: Sequence[MeasureLayout]) -> str:
    """Whether a group's extreme may have been removed and nothing as extreme came in: it must be recomputed."""
    conditions = []
    for m in extremes:
        removed, added, old = f"__removed_{m.name}", f"__added_{m.name}", f"{_OLD}.{quoted(m.state[0].stored)}"
        reaches, short = ("<=", ">") if _kind(m) == "MIN" else (">=", "<")
        if "float" in m.state[0].part.type or "double" in m.state[0].part.type:
            short += "="  # 0.0 does not stand in for -0.0, though they are equal
        conditions.append(f"({removed} {reaches} {old} AND ({added} IS NULL OR {added} {short} {removed}))")
    if not conditions:
        return "false"
    # A group without rows goes; but the one group of an aggregate without keys stays and must lose its extreme.
    exists = f" AND {ROWS} > 0" if layout.keys else ""
    return f"COALESCE({' OR '.join(conditions)}, false){exists}"


# -- by recomputing groups --------------------------------------------------------------------------------------------


def _from_child(layout: Layout, context: Context, groups: Touched | None) -> Rows:
    """These groups (all without) computed anew from the child after the epoch."""
    rows = rules.evaluate(_body(layout).child, context, "post")
    frame = rows.frame if groups is None else groups.bounded(rows.frame, {name: e for name, e, _ in layout.keys})
    narrow = _arguments(layout, frame, *([WEIGHT] if rows.weighted else []))
    if groups is not None:
        narrow = groups.matching(narrow)
    plain = plain_rows(replace(rows, frame=narrow))
    return Rows(_grouped(layout, plain, small=rows.small), small=rows.small)


def _recompute(
    layout: Layout,
    context: Context,
    change: Delta,
    reach: pa.Table | None,
    stored: Stored,
    materializer: Materializer,
) -> Materialized:
    keyed = Keyed(layout.node, tuple((name, table_name) for name, _, table_name in layout.keys))
    groups = touched(change, keyed.names, materializer, reach)
    return replaced(keyed, stored, groups, _from_child(layout, context, groups), materializer)
