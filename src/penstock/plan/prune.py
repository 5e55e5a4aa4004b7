"""Reads only what is used: a Scan keeps the columns that some expression of the plan names."""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.operators import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Operator,
    Project,
    Scan,
    Union,
    expressions,
    names_in,
    walk,
)


def prune(root: Operator) -> Operator:
    """The same plan over narrower scans. Internal names are unique, so one set of used names serves the whole plan."""
    used = set(root.columns)
    for op in walk(root):
        for expression in expressions(op):
            used |= names_in(expression)
        if isinstance(op, Union):
            for child in op.inputs:
                used |= set(child.columns)
        if isinstance(op, Distinct):
            used |= set(op.columns)
    return _narrow(root, used)


def _narrow(op: Operator, used: set[str]) -> Operator:
    match op:
        case Scan(stored=stored):
            kept = tuple(pair for pair in stored if pair[0] in used)
            return replace(op, stored=kept or stored[:1])
        case Project(child=child) | Filter(child=child) | Distinct(child=child) | Aggregate(child=child):
            return replace(op, child=_narrow(child, used))
        case Join(inputs=inputs) | Union(inputs=inputs):
            return replace(op, inputs=tuple(_narrow(child, used) for child in inputs))
