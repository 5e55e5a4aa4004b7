"""How many rows a node will hold, guessed from the sizes of what it reads. It is shown, never relied on."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from sqlglot import exp

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
)


def estimated_rows(op: Operator, sizes: Mapping[str, int]) -> int:
    """A number that is seldom exceeded: filters and groups may make it smaller, joins seldom make it larger.

    >>> estimated_rows(TopK(Scan("t", (("__c1", "a"),)), (), 10), {"t": 500})
    10
    """
    match op:
        case Scan(relation=relation):
            return sizes.get(relation, 0)
        case Values(rows=rows_):
            return len(rows_)
        case Aggregate(keys=()):
            return 1
        case Late():
            return 0
        case Accepted(child=child):
            return estimated_rows(child, sizes)
        case TopK(child=child, limit=limit):
            return min(limit, estimated_rows(child, sizes))
        case Union(inputs=inputs):
            return sum(estimated_rows(child, sizes) for child in inputs)
        case Join(inputs=inputs, conditions=conditions):
            rows = [estimated_rows(child, sizes) for child in inputs]
            connected = any(c.find(exp.EQ, exp.NullSafeEQ) for c in conditions)
            return max(rows) if connected else prod(rows)
        case SidedJoin(kind=kind, left=left, right=right):
            mine = estimated_rows(left, sizes)
            return mine + estimated_rows(right, sizes) if kind == "full" else mine
        case (
            Project(child=child)
            | Filter(child=child)
            | Generate(child=child)
            | Distinct(child=child)
            | Aggregate(child=child)
            | Window(child=child)
        ):
            return estimated_rows(child, sizes)
