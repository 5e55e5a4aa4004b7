"""Carries only what is used: scans read, and projections compute, the columns that something above them names."""

from __future__ import annotations

from dataclasses import replace

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
    column,
    expressions,
    names_in,
)


def prune(root: Operator) -> Operator:
    """The same plan, narrower below its root."""
    return _narrow(root, set(root.columns))


def _narrow(op: Operator, needed: set[str]) -> Operator:
    """The operator with at least the needed columns."""
    match op:
        case Values() | Late() | Accepted():  # few columns, or those that are needed
            return op
        case Scan(stored=stored):
            kept = tuple(pair for pair in stored if pair[0] in needed)
            return replace(op, stored=kept or stored[:1])
        case Project(child=child, outputs=outputs):
            kept_outputs = tuple(pair for pair in outputs if pair[0] in needed) or outputs[:1]
            narrower = replace(op, outputs=kept_outputs)
            return replace(narrower, child=_narrow(child, _used(narrower)))
        case Aggregate(child=child):  # with all its measures, so that views which use other ones share it
            return replace(op, child=_narrow(child, _used(op)))
        case Distinct(child=child):
            return replace(op, child=_narrow(child, set(op.columns)))
        case Union(inputs=inputs):
            places = [i for i, name in enumerate(op.columns) if name in needed] or [0]
            return Union(
                tuple(_only(_narrow(child, {child.columns[i] for i in places}), child, places) for child in inputs),
                tuple(op.columns[i] for i in places),
            )
        case Window(child=child, functions=functions):
            kept_functions = tuple(pair for pair in functions if pair[0] in needed)
            if not kept_functions:
                return _narrow(child, needed)
            fewer = replace(op, functions=kept_functions)
            below = (needed & set(child.columns)) | _used(fewer) | set(op.partition)
            return replace(fewer, child=_exactly(_narrow(child, below), below))
        case TopK(child=child):
            below = (needed & set(child.columns)) | _used(op)
            return replace(op, child=_exactly(_narrow(child, below), below))
        case Filter(child=child) | Generate(child=child):
            return replace(op, child=_narrow(child, needed | _used(op)))
        case Join(inputs=inputs):
            return replace(op, inputs=tuple(_narrow(child, needed | _used(op)) for child in inputs))
        case SidedJoin(left=left, right=right):
            below = needed | _used(op)
            return replace(op, left=_narrow(left, below), right=_narrow(right, below))


def _used(op: Operator) -> set[str]:
    return set().union(*(names_in(e) for e in expressions(op)))


def _exactly(op: Operator, wanted: set[str]) -> Operator:
    """The operator with no columns but these: rows that are equal in an order are told apart by what is used."""
    if set(op.columns) <= wanted:
        return op
    return Project(op, tuple((name, column(name)) for name in op.columns if name in wanted))


def _only(op: Operator, before: Operator, places: list[int]) -> Operator:
    """An input of a union with the columns at these places, in order."""
    wanted = tuple(before.columns[i] for i in places)
    return op if op.columns == wanted else Project(op, tuple((name, column(name)) for name in wanted))
