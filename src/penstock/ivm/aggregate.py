"""Aggregate and Distinct: one row for each group, kept in the node's table together with its state.

batch:  agg(R)
delta:  self-maintainable functions: merge the change's partials with the stored state of the touched groups;
        an extreme that was removed, and other functions: agg(R.post by touched groups) - stored rows of these groups
reads:  the delta and the touched groups of the table; the child's rows of the groups that must be recomputed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.frames import limits
from penstock.frames.arrow.frame import is_local
from penstock.frames.spark.frame import Query, grouped, select
from penstock.frames.zset import WEIGHT, Delta, Rows, add, consolidate, identity_of, plain_rows, weighted
from penstock.ivm import rules
from penstock.ivm.accumulators import ROWS
from penstock.ivm.context import Context, Moment
from penstock.ivm.keyed import Keyed, Stored, replaced
from penstock.ivm.layout import Layout, MeasureLayout, as_aggregate
from penstock.ivm.materialize import Materialized, Materializer
from penstock.ivm.touched import BY_ROW, Touched, key_values, reach_of, renamed, sought, touched
from penstock.plan.operators import Aggregate, Distinct, Filter, Project, Scan, names_in, render, walk
from penstock.sql.dialect import quoted
from penstock.storage.lookup import can_look_through
from penstock.storage.reader import LOCATED

_OLD, _STALE = "__old", "__stale"
_GONE, _STORED = "__gone", "__stored"


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
    rows = _Change(
        replace(change, frame=_arguments(layout, change.frame, WEIGHT), known=renamed(change.known, keys)),
        reach_of(change.known, keys),
        key_values(change.known, keys, utc=context.utc),
        change.known.num_rows if change.known is not None else None,
    )
    if layout.mergeable and not _is_lost_cause(layout, context, rows, stored):
        return _merge(layout, context, rows, stored, materializer)
    return _recompute(layout, context, rows, stored, materializer)


@dataclass(frozen=True)
class _Change:
    """A change of keys and arguments: its rows, and what is known of its keys: between what they lie, and their values.

    ``most``: how many rows it has at most.
    """

    rows: Delta
    reach: pa.Table | None
    values: pa.Table | None
    most: int | None


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
    return select(select(groups, *_values(layout)), *[columns[name] for name in layout.stored])


def _values(layout: Layout) -> list[str]:
    """Keys, the measures' values, and the state as ``__s0``, .."""
    values = [f"{m.value()} AS {m.name}" for m in layout.measures]
    return [*_keys(layout), *values, *(f"{quoted(name)} AS __s{i}" for i, name in enumerate(_state_names(layout)))]


# -- by merging -------------------------------------------------------------------------------------------------------


def _merge(
    layout: Layout, context: Context, known_change: _Change, stored: Stored, materializer: Materializer
) -> Materialized:
    change = known_change.rows
    extremes = _extremes(layout, change)
    partials = _partials_of(layout, change, extremes)
    few = change.small or change.few
    beside = LOCATED if few and stored.worth_locating else ()
    near = stored.within(known_change.reach, {stored_as: name for name, _, stored_as in layout.keys}) if few else stored
    if few and near.tiny and not is_local(change.frame):
        before = _under_keys(layout, near.located if beside else near.frame)
        merged = _merged(layout, partials, before, extremes, beside, one=change.small)
        result = materializer.materialize(merged.frame, few=True, little=change.little and near.light)
    else:
        known = materializer.materialize(partials.frame, few=few, little=change.little)
        groups = Touched(known, tuple(_keys(layout)))
        if layout.keys:
            stored = stored.near(groups.keys.table, {stored_as: name for name, _, stored_as in layout.keys})
        table = stored.located if beside else stored.frame
        before = groups.of(_under_keys(layout, table), many=not stored.small) if layout.keys else table
        merged = _merged(layout, Query.of(known.frame), before, extremes, beside, one=known.local and stored.small)
        result = materializer.materialize(merged.frame, few=known.local, little=known.little and stored.light)
    if (extremes or _wide(layout)) and result.any(_STALE):
        stale = Touched(_stale_groups(layout, result), tuple(_keys(layout))) if layout.keys else None
        anew = _from_child(layout, context, stale)
        new = select(anew.frame, "*", *(f"NULL AS {name}" for name in beside)) if beside else anew.frame
        total = add([result.frame.drop(_STALE), weighted(new, 1)])
        change_of = consolidate(total, small=result.local and anew.small, beside=beside)
        result = materializer.materialize(change_of, few=result.local, little=result.little and anew.light)
    else:
        result = result.without(_STALE)
    return result.placed(stored.snapshot) if beside else result


def _extremes(layout: Layout, change: Delta) -> list[MeasureLayout]:
    """The measures that a removed row may leave without a value."""
    if change.append_only:
        return []
    return [m for m in layout.measures if m.accumulator and m.accumulator.removed]


def _wide(layout: Layout) -> list[MeasureLayout]:
    """The measures of which a changed value may be too large to be added up."""
    return [m for m in layout.measures if m.accumulator and m.accumulator.spilled]


def _is_lost_cause(layout: Layout, context: Context, change: _Change, stored: Stored) -> bool:
    """Whether some group will surely have lost an extreme, so that merging would only come before recomputing.

    An extreme of a group of n rows is the one that was removed once in n times.
    """
    extremes = _extremes(layout, change.rows)
    if not extremes or change.most is None or not layout.keys:
        return False
    below = list(walk(_body(layout).child))
    if not all(isinstance(op, Scan | Project | Filter) for op in below):
        return False
    rows = sum(context.count(op) for op in below if isinstance(op, Scan))
    group = rows / max(stored.snapshot.rows, 1)
    touched_rows = min(change.most, stored.snapshot.rows) * group
    if change.most * len(extremes) < 2 * group:
        return False
    keys = {name: e for name, e, _ in layout.keys}
    if sought(_body(layout).child, change.values, keys, utc=context.utc) is None or not can_look_through(rows):
        return touched_rows <= limits.SCANNED_GROUP_ROWS
    # Few groups are looked up in much less time than it takes to scan for them: then only the lost ones are.
    return touched_rows <= limits.LOOKED_UP_GROUP_ROWS or 2 * len(extremes) >= group


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


def _partials_of(layout: Layout, change: Delta, extremes: Sequence[MeasureLayout]) -> Query:
    """The change by group: what it adds to the state, and the extremes of what it removes."""
    rows = Query.of(change.frame if change.append_only else consolidate(change.frame, small=change.small))
    texts = _partials(layout) + [_removed(m) for m in extremes]
    texts += [f"{m.accumulator.spilled} AS __spilled_{m.name}" for m in _wide(layout) if m.accumulator]
    texts.append(f"{'0L' if change.append_only else f'COALESCE(SUM(IF({WEIGHT} < 0, {WEIGHT}, 0L)), 0L)'} AS {_GONE}")
    return (rows.in_one() if change.small else rows).grouped(_keys(layout), texts)


def _merged(
    layout: Layout,
    partials: Query,
    before: DataFrame,
    extremes: Sequence[MeasureLayout],
    beside: Sequence[str],
    *,
    one: bool,
) -> Query:
    """The rows of the groups that change: the old with weight -1, the new with +1; stale ones get no new row here.

    Columns ``beside`` of the old rows go with them.
    """
    state = _state_names(layout)
    old = f"STRUCT({', '.join(map(quoted, [*layout.stored, *beside]))}) AS {_OLD}"
    types = before.schema
    spilled = [f"__spilled_{m.name}" for m in _wide(layout)]
    removed = [*(f"__removed_{m.name}" for m in extremes), *spilled]
    changes = partials.select(*_keys(layout), *map(quoted, state), f"NULL AS {_OLD}", *removed, _GONE)
    present = Query.of(before).select(
        *_keys(layout), *map(quoted, state), old, *(f"NULL AS {name}" for name in removed), f"0L AS {_GONE}"
    )
    both = changes.followed_by(present)
    merges = [f"COALESCE(SUM({ROWS}), 0L) AS {ROWS}"]
    merges += [f"CAST({c.part.merge}({quoted(c.stored)}) AS {c.part.type}) AS {quoted(c.stored)}" for c in layout.state]
    for m in extremes:
        value = quoted(m.state[0].stored)
        merges.append(f"{_kind(m)}(IF({_OLD} IS NULL, {value}, NULL)) AS __added_{m.name}")
        merges.append(f"{_kind(m)}(__removed_{m.name}) AS __removed_{m.name}")
    merges += [f"COALESCE(SUM({name}), 0L) AS {name}" for name in spilled]
    merges += [f"FIRST({_OLD}, true) AS {_OLD}", f"COUNT({_OLD}) AS {_STORED}", f"SUM({_GONE}) AS {_GONE}"]
    same = " AND ".join(
        f"{identity_of(quoted(name), types[name].dataType)} <=> "
        f"{identity_of(f'{_OLD}.{quoted(name)}', types[name].dataType)}"
        for name in state
    )
    groups = (both.in_one() if one else both).grouped(_keys(layout), merges)
    groups = groups.sound(_is_sound(layout, extremes), "a group is not stored as its rows were before the change")
    # A removed extreme may leave the merged state as it was: whether a group is stale is asked before it is left out.
    marked = groups.select(*_keys(layout), *map(quoted, state), _OLD, f"{_stale(layout, extremes)} AS {_STALE}")
    changed = marked.where(f"{_STALE} OR {_OLD} IS NULL OR NOT ({same})")
    exists = f"{ROWS} > 0 AND NOT {_STALE}" if layout.keys else f"NOT {_STALE}"
    columns = _stored_columns(layout)
    was = [f"{_OLD}.{quoted(name)} AS {quoted(name)}" for name in layout.stored]
    now = [columns[name] for name in layout.stored]
    places, nowhere = [f"{_OLD}.{name} AS {name}" for name in beside], [f"NULL AS {name}" for name in beside]
    valued = changed.select(*_values(layout), ROWS, _OLD, _STALE)
    return valued.each(
        (f"{_OLD} IS NOT NULL", [*was, f"-1L AS {WEIGHT}", _STALE, *places]),
        (exists, [*now, f"1L AS {WEIGHT}", _STALE, *nowhere]),
    )


def _is_sound(layout: Layout, extremes: Sequence[MeasureLayout]) -> str:
    """Whether a group's stored state can be that of the rows that the change found there.

    There is at most one, of as many rows as are removed at least; no number of rows goes below zero; and no value that
    is removed lies beyond the stored extreme.
    """
    conditions = [f"{_STORED} {'<=' if layout.keys else '='} 1", f"COALESCE({_OLD}.{ROWS}, 0L) + {_GONE} >= 0"]
    conditions += [f"{quoted(c.stored)} >= 0" for c in layout.state if c.part.counts]
    for m in extremes:
        removed, old = f"__removed_{m.name}", f"{_OLD}.{quoted(m.state[0].stored)}"
        within = ">=" if _kind(m) == "MIN" else "<="
        conditions.append(f"COALESCE({removed} {within} {old}, {removed} IS NULL)")
    return " AND ".join(f"({condition})" for condition in conditions)


def _kind(measure: MeasureLayout) -> str:
    """MIN or MAX."""
    return measure.state[0].part.merge


def _removed(measure: MeasureLayout) -> str:
    assert measure.accumulator is not None
    assert measure.accumulator.removed is not None
    part = measure.accumulator.removed
    return f"CAST({part.partial} AS {part.type}) AS __removed_{measure.name}"


def _stale(layout: Layout, extremes: Sequence[MeasureLayout]) -> str:
    """Whether a group must be recomputed.

    Its extreme may have been removed and nothing as extreme came in, or a changed value was too large to be added up,
    or the sum was or is: without ANSI that is NULL, which a sum of no values is, too.
    """
    conditions = []
    for m in extremes:
        removed, added, old = f"__removed_{m.name}", f"__added_{m.name}", f"{_OLD}.{quoted(m.state[0].stored)}"
        reaches, short = ("<=", ">") if _kind(m) == "MIN" else (">=", "<")
        if "float" in m.state[0].part.type or "double" in m.state[0].part.type:
            short += "="  # 0.0 does not stand in for -0.0, though they are equal
        conditions.append(f"({removed} {reaches} {old} AND ({added} IS NULL OR {added} {short} {removed}))")
    for m in _wide(layout):
        conditions += [f"__spilled_{m.name} > 0", _overflowed(m, ""), _overflowed(m, f"{_OLD}.")]
    if not conditions:
        return "false"
    # A group without rows goes; but the one group of an aggregate without keys stays and must lose its extreme.
    exists = f" AND {ROWS} > 0" if layout.keys else ""
    return f"COALESCE({' OR '.join(conditions)}, false){exists}"


def _overflowed(measure: MeasureLayout, of: str) -> str:
    """Whether a sum is NULL though there are values; of the merged state, or of the old row."""
    stored = {c.part.suffix: f"{of}{quoted(c.stored)}" for c in measure.state}
    return f"({stored['sum']} IS NULL AND {stored['count']} > 0)"


# -- by recomputing groups --------------------------------------------------------------------------------------------


def _from_child(layout: Layout, context: Context, groups: Touched | None) -> Rows:
    """These groups (all without) computed anew from the child after the epoch."""
    child, keys = _body(layout).child, {name: e for name, e, _ in layout.keys}
    if groups is not None:
        bounds = groups.around(keys) if all(isinstance(op, BY_ROW) for op in walk(child)) else None
        context = context.near(bounds, sought(child, groups.values, keys, utc=context.utc))
    rows = rules.evaluate(child, context, "post")
    frame = rows.frame if groups is None else groups.bounded(rows.frame, keys)
    narrow = _arguments(layout, frame, *([WEIGHT] if rows.weighted else []))
    if groups is not None:
        narrow = groups.matching(narrow, many=not rows.small)
    plain = plain_rows(replace(rows, frame=narrow))
    return Rows(_grouped(layout, plain, small=rows.small), small=rows.small, light=rows.light)


def _recompute(
    layout: Layout, context: Context, change: _Change, stored: Stored, materializer: Materializer
) -> Materialized:
    keyed = Keyed(layout.node, tuple((name, table_name) for name, _, table_name in layout.keys), layout.stored)
    groups = touched(change.rows, keyed.names, materializer, change.reach, change.values)
    anew = _from_child(layout, context, groups)
    return replaced(keyed, stored, groups, anew, materializer, change.rows)
