"""GROUP BY: keys, measures, DISTINCT inside aggregates, GROUPING SETS with ROLLUP and CUBE."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan import aggregates
from penstock.plan.build import only
from penstock.plan.check import is_session
from penstock.plan.operators import (
    Aggregate,
    Distinct,
    Generate,
    Join,
    Named,
    Operator,
    Project,
    Sessions,
    column,
    render,
)
from penstock.plan.unsupported import Unsupported
from penstock.vocabulary import Reason

if TYPE_CHECKING:
    from penstock.plan.build import Builder

Sets = list[tuple[exp.Expr, ...]]


def aggregated(builder: Builder, source: Operator, keys: list[Named], measures: list[Named]) -> Operator:
    """The measures of each group. Those of distinct values are aggregates over the distinct rows, joined by key."""
    plain = [(name, e) for name, e in measures if aggregates.distinct_arguments(e) is None]
    by_arguments: dict[str, list[Named]] = {}
    for name, function in measures:
        arguments = aggregates.distinct_arguments(function)
        if arguments is not None:
            by_arguments.setdefault(", ".join(render(a) for a in arguments), []).append((name, function))
    parts: list[Aggregate] = []
    if plain or not by_arguments:
        parts.append(Aggregate(source, tuple(keys), tuple(plain)))
    for functions in by_arguments.values():
        own = keys if not parts else [(builder.fresh(), e) for _, e in keys]
        parts.append(_over_distinct(builder, source, own, functions))
    if len(parts) == 1:
        return parts[0]
    same = [
        exp.NullSafeEQ(this=column(a), expression=column(b))
        for part in parts[1:]
        for (a, _), (b, _) in zip(keys, part.keys, strict=True)
    ]
    names = tuple(name for name, _ in keys + measures)
    return only(Join(tuple(parts), tuple(same)), names)


def _over_distinct(builder: Builder, source: Operator, keys: list[Named], functions: list[Named]) -> Aggregate:
    arguments = aggregates.distinct_arguments(functions[0][1])
    assert arguments is not None
    below = [(builder.fresh(), e) for _, e in keys]
    values = [(builder.fresh(), e) for e in arguments]
    rows = Distinct(Project(source, (*below, *values)))
    own = tuple((name, column(old)) for (name, _), (old, _) in zip(keys, below, strict=True))
    columns = [column(name) for name, _ in values]
    return Aggregate(rows, own, tuple((name, aggregates.of_distinct(f, columns)) for name, f in functions))


def in_sessions(builder: Builder, source: Operator, keys: list[Named], measures: list[Named]) -> Operator:
    """The measures of each session."""
    sessions = [(name, e.unnest()) for name, e in keys if is_session(e.unnest())]
    others = [(builder.fresh(), name, e) for name, e in keys if not is_session(e.unnest())]
    plain = [*(e for _, _, e in others), *(e for _, e in measures)]
    if len(sessions) != 1 or any(is_session(node) for e in plain for node in e.walk()):
        raise Unsupported(Reason.TIME_WINDOW, "SESSION_WINDOW inside another expression")
    session = sessions[0]
    at, gap = session[1].expressions
    time = builder.fresh()
    computed: list[Named] = [*((below, e) for below, _, e in others), (time, at)]
    rows = Project(source, (*((name, column(name)) for name in source.columns), *computed))
    window = exp.Anonymous(this="SESSION_WINDOW", expressions=[column(time), gap.copy()])
    by = (*((name, column(below)) for below, name, _ in others), (session[0], window))
    return Sessions(rows, by, tuple(measures))


# -- grouping sets ----------------------------------------------------------------------------------------------------


def grouping_sets(group: exp.Group) -> Sets | None:
    """The sets of key expressions, as written; None for a plain GROUP BY."""
    if group.args.get("totals"):
        raise Unsupported(Reason.GROUPING_SETS, "GROUP BY WITH TOTALS")
    plain: list[Sets] = []
    found = False
    for item in group.expressions:
        sets = _sets_of(item)
        found = found or sets is not None
        plain.append(sets if sets is not None else [_members(item)])
    trailing = [(key, value) for key in ("rollup", "cube", "grouping_sets") for value in group.args.get(key) or ()]
    if trailing and not all(v.expressions for _, v in trailing):  # GROUP BY a, b WITH ROLLUP
        keys = [_members(item) for item in group.expressions]
        return _rolled_up(keys) if trailing[0][0] == "rollup" else _cubed(keys)
    for _, value in trailing:
        sets = _sets_of(value)
        assert sets is not None
        if isinstance(value, exp.GroupingSets):  # GROUP BY a, b GROUPING SETS (..): the sets alone count
            return sets
        plain.append(sets)
        found = True
    if not found:
        return None
    return [tuple(e for part in parts for e in part) for parts in product(*plain)]


def _members(item: exp.Expr) -> tuple[exp.Expr, ...]:
    if isinstance(item, exp.Tuple):
        return tuple(item.expressions)
    return (item.unnest(),)


def _sets_of(item: exp.Expr) -> Sets | None:
    match item:
        case exp.Rollup():
            return _rolled_up([_members(e) for e in item.expressions])
        case exp.Cube():
            return _cubed([_members(e) for e in item.expressions])
        case exp.GroupingSets():
            return [s for e in item.expressions for s in (_sets_of(e) or [_members(e)])]
    return None


def _rolled_up(keys: Sets) -> Sets:
    return [tuple(e for part in keys[:n] for e in part) for n in range(len(keys), -1, -1)]


def _cubed(keys: Sets) -> Sets:
    choices = product((True, False), repeat=len(keys))
    return [tuple(e for part, wanted in zip(keys, chosen, strict=True) if wanted for e in part) for chosen in choices]


def grouped_by_sets(
    builder: Builder, source: Operator, keys: list[Named], measures: list[Named], sets: list[set[str]]
) -> Operator:
    """Each row once for every set, under the set's number, and one aggregate by that number and the set's keys.

    ``sets`` are names of keys; a key is NULL in the sets that it is not in. GROUPING and GROUPING_ID among the measures
    are constants of a set. A set without keys has no row when there are no rows, since its number is a key; but one set
    alone is a GROUP BY of its keys, so GROUPING SETS (()) always has a row.
    """
    constants = [(name, e) for name, e in measures if aggregates.name_of(e) in ("grouping", "grouping_id")]
    real = [(name, e) for name, e in measures if (name, e) not in constants]
    if len(sets) == 1:
        outputs: list[Named] = [(name, column(name)) for name, _ in keys + real]
        outputs += [(name, _grouping(e, keys, sets[0])) for name, e in constants]
        return Project(aggregated(builder, source, keys, real), tuple(outputs))
    number = builder.fresh()
    every = ", ".join(str(i) for i in range(len(sets)))
    repeated = Generate(source, exp.maybe_parse(f"EXPLODE(ARRAY({every}))", dialect="spark"), (number,))
    by = builder.fresh()
    own = [(name, _where_grouped(name, e, column(number), sets)) for name, e in keys]
    grouped = aggregated(builder, repeated, [(by, column(number)), *own], real)
    outputs = [(name, column(name)) for name, _ in keys + real]
    for name, e in constants:
        outputs.append((name, _in_each(column(by), [_grouping(e, keys, members) for members in sets])))
    return Project(grouped, tuple(outputs))


def _where_grouped(name: str, key: exp.Expr, number: exp.Expr, sets: list[set[str]]) -> exp.Expr:
    """The key in the sets that have it."""
    having = [i for i, members in enumerate(sets) if name in members]
    if len(having) == len(sets):
        return key
    return exp.If(this=number.isin(*having), true=key.copy(), false=exp.Null())


def _in_each(number: exp.Expr, values: list[exp.Expr]) -> exp.Expr:
    """The value that belongs to the number of a set."""
    if all(value == values[0] for value in values):
        return values[0]
    chosen = exp.Case(this=number)
    for i, value in enumerate(values):
        chosen = chosen.when(exp.Literal.number(i), value)
    return chosen


def _grouping(function: exp.Expr, keys: list[Named], members: set[str]) -> exp.Expr:
    """1 for a key that a set leaves out, 0 for one that it has; the same of several keys as the bits of a number."""
    arguments = [aggregates.bare(e) for e in function.iter_expressions()]
    positions = [name for name, _ in keys] if not arguments else []
    for argument in arguments:
        found = [name for name, e in keys if aggregates.bare(e) == argument]
        if not found:
            raise Unsupported(Reason.GROUPING_SETS, "GROUPING of something that is not grouped by")
        positions.append(found[0])
    bits = 0
    for name in positions:
        bits = bits * 2 + (name not in members)
    kind = "TINYINT" if aggregates.name_of(function) == "grouping" else "BIGINT"
    return exp.maybe_parse(f"CAST({bits} AS {kind})", dialect="spark")
