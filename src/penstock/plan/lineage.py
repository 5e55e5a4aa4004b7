"""Column lineage: which columns of tables and views a query's columns come from, and what else decides its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from sqlglot import exp

from penstock.plan.build import Plan
from penstock.plan.operators import (
    Accepted,
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    Late,
    Operator,
    Project,
    Scan,
    SidedJoin,
    TopK,
    Union,
    Values,
    Window,
    expressions,
    names_in,
    walk,
)

Origin = tuple[str, str]
"""A relation and a column of it."""


class Change(IntEnum):
    """What becomes of a value on its way; of several steps the most is told."""

    IDENTITY = 0
    TRANSFORMATION = 1
    AGGREGATION = 2


Origins = Mapping[Origin, Change]


@dataclass(frozen=True)
class Lineage:
    columns: tuple[tuple[str, Origins], ...]
    """For each column of the query, where its values come from."""
    rows: Mapping[Origin, frozenset[str]]
    """What decides which rows there are, and by what: FILTER, JOIN, GROUP_BY, SORT, WINDOW."""


def lineage(plan: Plan) -> Lineage:
    """
    >>> from penstock.plan import build
    >>> from penstock.sql.query import parse_query
    >>> query = "SELECT a AS k, SUM(b + 1) AS total FROM t WHERE c > 0 GROUP BY a"
    >>> found = lineage(build(parse_query(query), {"t": ("a", "b", "c")}))
    >>> {name: {origin: change.name for origin, change in come.items()} for name, come in found.columns}
    {'k': {('t', 'a'): 'IDENTITY'}, 'total': {('t', 'b'): 'AGGREGATION'}}
    >>> {origin: sorted(by) for origin, by in found.rows.items()}
    {('t', 'a'): ['GROUP_BY'], ('t', 'c'): ['FILTER']}
    """
    rows: dict[Origin, frozenset[str]] = {}
    for op in walk(plan.root):
        for by, names in _decides(op):
            known = [_origins(child) for child in op.children]
            for origin in {origin for name in names for of in known for origin in of.get(name, {})}:
                rows[origin] = rows.get(origin, frozenset()) | {by}
    found = _origins(plan.root)
    return Lineage(tuple((name, found[internal]) for name, internal in plan.outputs), dict(sorted(rows.items())))


def _decides(op: Operator) -> Iterable[tuple[str, set[str]]]:
    """What an operator decides rows by: columns of its inputs."""
    match op:
        case Filter(condition=condition):
            return [("FILTER", names_in(condition))]
        case Join() | SidedJoin():
            return [("JOIN", _names(expressions(op)))]
        case Distinct():
            return [("GROUP_BY", set(op.columns))]
        case Aggregate(keys=keys):
            return [("GROUP_BY", _names(e for _, e in keys))]
        case Window(functions=functions, partition=partition):
            beside = [part for _, e in functions for part in _beside(e)]
            return [("WINDOW", _names(beside) | set(partition))]
        case TopK(order=order):
            return [("SORT", _names(order))]
    return []


def _names(found: Iterable[exp.Expr]) -> set[str]:
    return {name for expression in found for name in names_in(expression)}


def _beside(function: exp.Expr) -> list[exp.Expr]:
    """What a window function is told about its rows: their partition and their order."""
    over = function.find(exp.Window)
    return [] if over is None else [e for e in over.iter_expressions() if e is not over.this]


def _origins(op: Operator) -> dict[str, Origins]:
    """Where the values of each column of an operator come from."""
    match op:
        case Scan(relation=relation, stored=stored):
            return {name: {(relation, column): Change.IDENTITY} for name, column in stored}
        case Values(columns=columns):
            return {name: {} for name in columns}
        case Project(child=child, outputs=outputs):
            below = _origins(child)
            return {name: _of(e, below, Change.TRANSFORMATION) for name, e in outputs}
        case Aggregate(child=child, keys=keys, measures=measures):
            below = _origins(child)
            grouped = {name: _of(e, below, Change.TRANSFORMATION) for name, e in keys}
            return grouped | {name: _of(e, below, Change.AGGREGATION) for name, e in measures}
        case Window(child=child, functions=functions):
            below = _origins(child)
            return below | {name: _of(_function(e), below, Change.AGGREGATION) for name, e in functions}
        case Generate(child=child, generator=generator, outputs=outputs):
            below = _origins(child)
            return below | {name: _of(generator, below, Change.TRANSFORMATION) for name in outputs}
        case Union(inputs=inputs, columns=columns):
            sides = [list(_in_order(child)) for child in inputs]
            return {name: _together(side[place] for side in sides) for place, name in enumerate(columns)}
        case SidedJoin(left=left, right=right, conditions=conditions, mark=mark):
            below = _origins(left) | _origins(right)
            told = {} if mark is None else {mark: _of(exp.and_(*conditions), below, Change.TRANSFORMATION)}
            return {name: (below | told)[name] for name in op.columns}
        case Late() | Accepted():
            return {name: _origins(op.child).get(name, {}) for name in op.columns}
    return {name: of for child in op.children for name, of in _origins(child).items()}


def _in_order(op: Operator) -> Iterable[Origins]:
    found = _origins(op)
    return (found[name] for name in op.columns)


def _function(expression: exp.Expr) -> exp.Expr:
    """A window function without what it is told about its rows."""
    over = expression.find(exp.Window)
    return expression if over is None else over.this


def _of(expression: exp.Expr, below: Mapping[str, Origins], change: Change) -> Origins:
    """Where the value of an expression comes from."""
    if isinstance(expression, exp.Column):
        return below[expression.name]
    found = _together(below[name] for name in sorted(names_in(expression)))
    return {origin: max(known, change) for origin, known in found.items()}


def _together(several: Iterable[Origins]) -> Origins:
    found: dict[Origin, Change] = {}
    for origins in several:
        for origin, change in origins.items():
            found[origin] = max(change, found.get(origin, Change.IDENTITY))
    return found
