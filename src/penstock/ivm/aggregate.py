"""Aggregate and Distinct: one row for each group, kept in the node's table together with its state.

batch:  agg(R)
delta:  self-maintainable functions: merge the change's partials with the stored state of the touched groups;
        an extreme that was removed, and other functions: agg(R.post by touched groups) - stored rows of these groups
reads:  the delta and the touched groups of the table; the child's rows of the groups that must be recomputed

A removal and a new group: the stored rows of two groups are read, and no order but the changed ones.

>>> from penstock.ivm.in_memory import change, table
>>> orders = table("region amount", [("eu", 40), ("eu", 5), ("us", 20)], gone=[("eu", 5)], new=[("asia", 7)])
>>> change("SELECT region, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY region", orders=orders)
+1  asia  7  1
+1  eu  40  1
-1  eu  45  2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.frame import Frame
from penstock.frames.keys import can_look_through
from penstock.frames.names import LOCATED, WEIGHT
from penstock.frames.zset import Delta, ZSet, add, plain_rows, weighted
from penstock.ivm import document_arrays, rules
from penstock.ivm.accumulators import ROWS
from penstock.ivm.context import Context, Moment, Stored
from penstock.ivm.keyed import Keyed, replaced
from penstock.ivm.layout import Layout, MeasureLayout, as_aggregate
from penstock.ivm.touched import BY_ROW, Touched, key_values, reach_of, renamed, sought, touched
from penstock.plan.operators import Aggregate, Distinct, Filter, Project, Scan, names_in, walk
from penstock.sql.documents import JsonOrder
from penstock.sql.trees import Named, all_of, any_of, cast, column, columns, same, struct, tree, whole_number

_OLD, _STALE = "__old", "__stale"
_GONE, _STORED = "__gone", "__stored"


def evaluate(layout: Layout, context: Context, moment: Moment) -> Frame:
    """All groups at a moment, as the node's table stores them."""
    rows = rules.evaluate(_body(layout).child, context, moment)
    return _grouped(layout, _arguments(layout, plain_rows(rows)))


def delta(layout: Layout, context: Context, stored: Stored) -> Frame | None:
    """The change of the node's table: rows as stored, with weights, maybe with the places of those that go."""
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
        return _merge(layout, context, rows, stored)
    patched = document_arrays.delta(layout, context, stored, rows.rows)
    if patched is not None:
        return patched
    return _recompute(layout, context, rows, stored)


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


def _arguments(layout: Layout, frame: Frame, *extra: str) -> Frame:
    """Keys and arguments of each row of the child, and nothing else."""
    keys: list[Named] = [(name, e) for name, e, _ in layout.keys]
    if layout.mergeable:
        arguments = [(m.argument, m.argument_value) for m in layout.measures]
    else:
        arguments = columns(sorted(set().union(*(names_in(m.function) for m in layout.measures))))
    return frame.select([*keys, *arguments, *columns(extra)])


def _keys(layout: Layout) -> list[str]:
    return [name for name, _, _ in layout.keys]


# -- from scratch -----------------------------------------------------------------------------------------------------


def _grouped(layout: Layout, rows: Frame) -> Frame:
    """Rows of keys and arguments aggregated from scratch, as the table stores them."""
    if layout.mergeable:
        state = [(c.stored, cast(c.part.plain, c.part.type)) for c in layout.state]
        return _finalised(layout, rows.group(_keys(layout), [(ROWS, tree("COUNT(*)")), *state]))
    measures = [(m.name, m.function) for m in layout.measures]
    groups = rows.group(_keys(layout), [*measures, *_orders(layout)])
    return groups.select(document_arrays.stored_columns(layout) if layout.orders else _stored_columns(layout))


def _orders(layout: Layout) -> list[Named]:
    """What is kept of JSON arrays beside their texts."""
    if not layout.orders:
        return []
    return [(f"__o{i}", JsonOrder(**_arguments_of(m.function))) for i, m in enumerate(layout.measures)]


def _arguments_of(function: exp.Expr) -> dict[str, exp.Expr]:
    return {name: value.copy() for name, value in function.args.items()}


def _partials(layout: Layout) -> list[Named]:
    """What a change adds to a group: a number of rows, and the state columns."""
    state = [(c.stored, cast(c.part.partial, c.part.partial_type or c.part.type)) for c in layout.state]
    return [(ROWS, tree(f"COALESCE(SUM({WEIGHT}), 0L)")), *state]


def _stored_columns(layout: Layout) -> list[Named]:
    """The table's columns over keys, measures and (as ``__s0``, ..) state."""
    found = dict(layout.node.outputs)
    for name, _, stored in layout.keys:
        found.setdefault(stored, column(name))
    for i, stored in enumerate(_state_names(layout)):
        found.setdefault(stored, column(f"__s{i}"))
    return [(name, found[name]) for name in layout.stored]


def _state_names(layout: Layout) -> list[str]:
    return [ROWS, *(c.stored for c in layout.state)]


def _finalised(layout: Layout, groups: Frame) -> Frame:
    """Stored columns from keys and state: measures get their values, then the outputs are projected."""
    return groups.select(_values(layout)).select(_stored_columns(layout))


def _values(layout: Layout) -> list[Named]:
    """Keys, the measures' values, and the state as ``__s0``, .."""
    values = [(m.name, m.value) for m in layout.measures]
    state = [(f"__s{i}", column(name)) for i, name in enumerate(_state_names(layout))]
    return [*columns(_keys(layout)), *values, *state]


# -- by merging -------------------------------------------------------------------------------------------------------


def _merge(layout: Layout, context: Context, known_change: _Change, stored: Stored) -> Frame:
    change, names = known_change.rows, {stored_as: name for name, _, stored_as in layout.keys}
    extremes = _extremes(layout, change)
    partials = _partials_of(layout, change, extremes)
    here = change.frame.rows() is not None
    few = change.frame.size.on_driver and not here
    beside = LOCATED if (few or here) and stored.worth_locating else ()
    near = stored.within(known_change.reach, names) if few else stored
    if few and near.expected <= limits.NEARBY_ROWS:
        before = _under_keys(layout, near.read(located=bool(beside)))
        result = _merged(layout, partials, before, extremes, beside)
        result = context.keep(result.expecting(replace(change.frame.size.guess(), read=result.size.read)))
    else:
        partials = context.keep(partials)
        groups = Touched(keys=partials, names=tuple(_keys(layout)), table=partials.rows())
        if not layout.keys or _are_many(groups, stored):
            before = _under_keys(layout, stored.read(located=bool(beside)))
        else:
            before = groups.of(_under_keys(layout, stored.near(groups.table, names).read(located=bool(beside))))
        result = _merged(layout, partials, before, extremes, beside)
        size = replace(partials.size.guess(), read=result.size.read) if groups.few else result.size
        result = context.keep(result.expecting(size))
    if (extremes or _wide(layout)) and result.any(column(_STALE)):
        return _with_stale(layout, context, result, beside)
    return result.only([name for name in result.columns if name != _STALE])


def _are_many(groups: Touched, stored: Stored) -> bool:
    """Whether reading all groups takes less than finding those; what a change does not touch merges to what it was."""
    if groups.table is None or stored.count > limits.READ_ROWS:
        return False
    return bool(groups.table.num_rows * limits.MANY_TOUCHED >= stored.count)


def _with_stale(layout: Layout, context: Context, result: Frame, beside: Sequence[str]) -> Frame:
    """The change with the new rows of groups that could not be merged."""
    groups = _stale_groups(layout, result) if layout.keys else None
    anew = _from_child(layout, context, groups)
    new = anew.select([*columns(anew.columns), *((name, exp.Null()) for name in beside)]) if beside else anew
    merged = result.only([name for name in result.columns if name != _STALE])
    total = add([merged, weighted(new, 1)]).consolidated(beside)
    return context.keep(total.expecting((merged.size + anew.size).guess() if result.rows() is not None else total.size))


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
    group = rows / max(stored.count, 1)
    touched_rows = min(change.most, stored.count) * group
    if change.most * len(extremes) < 2 * group:
        return False
    keys = {name: e for name, e, _ in layout.keys}
    if sought(_body(layout).child, change.values, keys, utc=context.utc) is None or not can_look_through(rows):
        return touched_rows <= limits.SCANNED_GROUP_ROWS
    # Few groups are looked up in much less time than it takes to scan for them: then only the lost ones are.
    return touched_rows <= limits.LOOKED_UP_GROUP_ROWS or 2 * len(extremes) >= group


def _stale_groups(layout: Layout, result: Frame) -> Touched:
    """The keys of the groups that must be recomputed, under their internal names."""
    keys = result.where(column(_STALE)).select([(name, column(stored)) for name, _, stored in layout.keys])
    return Touched(keys=keys, names=tuple(_keys(layout)), table=keys.rows())


def _under_keys(layout: Layout, table: Frame) -> Frame:
    """The table with its keys under their internal names too."""
    return table.select([*columns(table.columns), *((name, column(stored)) for name, _, stored in layout.keys)])


def _partials_of(layout: Layout, change: Delta, extremes: Sequence[MeasureLayout]) -> Frame:
    """The change by group: what it adds to the state, and the extremes of what it removes."""
    rows = change.frame if change.append_only else change.frame.consolidated()
    measures = _partials(layout) + [_removed(m) for m in extremes]
    for m in _wide(layout):
        assert m.accumulator is not None
        assert m.accumulator.spilled is not None
        measures.append((f"__spilled_{m.name}", m.accumulator.spilled))
    gone = "0L" if change.append_only else f"COALESCE(SUM(IF({WEIGHT} < 0, {WEIGHT}, 0L)), 0L)"
    return rows.group(_keys(layout), [*measures, (_GONE, tree(gone))])


def _merged(
    layout: Layout, partials: Frame, before: Frame, extremes: Sequence[MeasureLayout], beside: Sequence[str]
) -> Frame:
    """The rows of the groups that change: the old with weight -1, the new with +1; stale ones get no new row here.

    Columns ``beside`` of the old rows go with them.
    """
    names = _state_names(layout)
    groups = _both(layout, partials, before, extremes, beside).group(_keys(layout), _merges(layout, extremes))
    groups = groups.sound(_is_sound(layout, extremes), "a group is not stored as its rows were before the change")
    # A removed extreme may leave the merged state as it was: whether a group is stale is asked before it is left out.
    stale = (_STALE, _stale(layout, extremes))
    marked = groups.select([*columns(_keys(layout)), *columns(names), *columns([_OLD]), stale])
    alike = all_of(same(column(name), column(name, _OLD)) for name in names)
    changed = marked.where(tree(f"{_STALE} OR {_OLD} IS NULL OR NOT s", s=alike))
    exists = tree(f"{ROWS} > 0 AND NOT {_STALE}" if layout.keys else f"NOT {_STALE}")
    was: list[Named] = [(name, column(name, _OLD)) for name in layout.stored]
    places: list[Named] = [(name, column(name, _OLD)) for name in beside]
    nowhere: list[Named] = [(name, exp.Null()) for name in beside]
    mark = columns([_STALE])
    return changed.select([*_values(layout), *columns([ROWS, _OLD, _STALE])]).each(
        [
            (tree(f"{_OLD} IS NOT NULL"), [*was, (WEIGHT, whole_number(-1)), *mark, *places]),
            (exists, [*_stored_columns(layout), (WEIGHT, whole_number(1)), *mark, *nowhere]),
        ]
    )


def _both(
    layout: Layout, partials: Frame, before: Frame, extremes: Sequence[MeasureLayout], beside: Sequence[str]
) -> Frame:
    """What the change adds to each group, and the group as it is stored, as rows of the same columns."""
    names = [*_keys(layout), *_state_names(layout)]
    removed = [f"__removed_{m.name}" for m in extremes] + [f"__spilled_{m.name}" for m in _wide(layout)]
    changes = partials.select([*columns(names), (_OLD, exp.Null()), *columns([*removed, _GONE])])
    old = struct(columns([*layout.stored, *beside]))
    none: list[Named] = [(name, exp.Null()) for name in removed]
    present = before.select([*columns(names), (_OLD, old), *none, (_GONE, whole_number(0))])
    return changes.union(present)


def _merges(layout: Layout, extremes: Sequence[MeasureLayout]) -> list[Named]:
    """What becomes of the rows of a group."""
    merges: list[Named] = [(ROWS, tree(f"COALESCE(SUM({ROWS}), 0L)"))]
    merges += [(c.stored, cast(tree(f"{c.part.merge}(x)", x=column(c.stored)), c.part.type)) for c in layout.state]
    for m in extremes:
        added = tree(f"{_kind(m)}(IF({_OLD} IS NULL, x, NULL))", x=column(m.state[0].stored))
        merges.append((f"__added_{m.name}", added))
        merges.append((f"__removed_{m.name}", tree(f"{_kind(m)}(x)", x=column(f"__removed_{m.name}"))))
    for m in _wide(layout):
        merges.append((f"__spilled_{m.name}", tree("COALESCE(SUM(x), 0L)", x=column(f"__spilled_{m.name}"))))
    counted = [(_OLD, f"FIRST({_OLD}, true)"), (_STORED, f"COUNT({_OLD})"), (_GONE, f"SUM({_GONE})")]
    return merges + [(name, tree(text)) for name, text in counted]


def _is_sound(layout: Layout, extremes: Sequence[MeasureLayout]) -> exp.Expr:
    """Whether a group's stored state can be that of the rows that the change found there.

    There is at most one, of as many rows as are removed at least; no number of rows goes below zero; and no value that
    is removed lies beyond the stored extreme.
    """
    conditions = [
        tree(f"{_STORED} {'<=' if layout.keys else '='} 1"),
        tree(f"COALESCE({_OLD}.{ROWS}, 0L) + {_GONE} >= 0"),
        *(tree("x >= 0", x=column(c.stored)) for c in layout.state if c.part.counts),
    ]
    for m in extremes:
        within = ">=" if _kind(m) == "MIN" else "<="
        conditions.append(tree(f"COALESCE(removed {within} old, removed IS NULL)", **_ends(m)))
    return all_of(conditions)


def _ends(measure: MeasureLayout) -> dict[str, exp.Expr]:
    """The extremes of a group: what was removed, what was added, what was stored."""
    return {
        "removed": column(f"__removed_{measure.name}"), "added": column(f"__added_{measure.name}"),
        "old": column(measure.state[0].stored, _OLD),
    }  # fmt: skip


def _kind(measure: MeasureLayout) -> str:
    """MIN or MAX."""
    return measure.state[0].part.merge


def _removed(measure: MeasureLayout) -> Named:
    assert measure.accumulator is not None
    assert measure.accumulator.removed is not None
    part = measure.accumulator.removed
    return f"__removed_{measure.name}", cast(part.partial, part.type)


def _stale(layout: Layout, extremes: Sequence[MeasureLayout]) -> exp.Expr:
    """Whether a group must be recomputed.

    Its extreme may have been removed and nothing as extreme came in, or a changed value was too large to be added up,
    or the sum was or is: without ANSI that is NULL, which a sum of no values is, too.
    """
    conditions = []
    for m in extremes:
        reaches, short = ("<=", ">") if _kind(m) == "MIN" else (">=", "<")
        if "float" in m.state[0].part.type or "double" in m.state[0].part.type:
            short += "="  # 0.0 does not stand in for -0.0, though they are equal
        lost = f"removed {reaches} old AND (added IS NULL OR added {short} removed)"
        conditions.append(tree(lost, **_ends(m)))
    for m in _wide(layout):
        conditions.append(tree("x > 0", x=column(f"__spilled_{m.name}")))
        conditions += [_overflowed(m, None), _overflowed(m, _OLD)]
    if not conditions:
        return exp.Boolean(this=False)
    # A group without rows goes; but the one group of an aggregate without keys stays and must lose its extreme.
    return tree(f"COALESCE(c, false){f' AND {ROWS} > 0' if layout.keys else ''}", c=any_of(conditions))


def _overflowed(measure: MeasureLayout, of: str | None) -> exp.Expr:
    """Whether a sum is NULL though there are values; of the merged state, or of the old row."""
    stored = {f"s_{c.part.suffix}": column(c.stored, of) for c in measure.state}
    return tree("s_sum IS NULL AND s_count > 0", **stored)


# -- by recomputing groups --------------------------------------------------------------------------------------------


def _from_child(layout: Layout, context: Context, groups: Touched | None) -> Frame:
    """These groups (all without) computed anew from the child after the epoch."""
    child, keys = _body(layout).child, {name: e for name, e, _ in layout.keys}
    if groups is not None:
        bounds = groups.around(keys) if all(isinstance(op, BY_ROW) for op in walk(child)) else None
        context = context.near(bounds, sought(child, groups.values, keys, utc=context.utc))
    rows = rules.evaluate(child, context, "post")
    frame = rows.frame if groups is None else groups.bounded(rows.frame, keys)
    narrow = _arguments(layout, frame, *([WEIGHT] if rows.weighted else []))
    if groups is not None:
        narrow = groups.matching(narrow)
    return _grouped(layout, plain_rows(ZSet(narrow, rows.weighted)))


def _recompute(layout: Layout, context: Context, change: _Change, stored: Stored) -> Frame:
    keyed = Keyed(layout.node, tuple((name, table_name) for name, _, table_name in layout.keys), layout.stored)
    groups = touched(change.rows, keyed.names, context.keep, change.reach, change.values)
    anew = _from_child(layout, context, groups)
    return replaced(keyed, context, stored, groups, anew, change.rows)
