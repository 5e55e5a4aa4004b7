"""ALLOW LATENESS in a plan: a table that rows come late to is read without them.

A table t with a watermark becomes two hidden nodes. ``late`` keeps the changes of t that came too late; ``accepted`` is
t without them, as Z-sets: t - late. The view reads ``accepted`` wherever it read t. Views never share these nodes: what
is late for one may have been in the table already when the other was created.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.plan.build import Plan
from penstock.plan.nodes import NodePlan, fingerprint
from penstock.plan.operators import CHANGE, Accepted, Late, Operator, Scan, column, mapped, walk


@dataclass(frozen=True)
class Lateness:
    """How late the rows of a table may be: by this column, this many microseconds behind the watermark."""

    table: str
    column: str
    allowed: int
    owner: str = ""
    """Of which view, and of which making of it: one that is replaced begins without late rows."""


def without_late_rows(plan: Plan, tables: Iterable[Lateness]) -> tuple[tuple[NodePlan, ...], Plan]:
    """The nodes that keep late rows away, and the plan that reads through them."""
    nodes: list[NodePlan] = []
    for late in tables:
        scans = [op for op in walk(plan.root) if isinstance(op, Scan) and op.relation == late.table]
        if scans:
            stored = sorted({name for scan in scans for _, name in scan.stored} | {late.column})
            pair = _nodes(late, tuple(stored))
            nodes += pair
            plan = replace(plan, root=_reading(plan.root, late.table, pair[1].name))
    return tuple(nodes), plan


def _nodes(late: Lateness, stored: tuple[str, ...]) -> tuple[NodePlan, NodePlan]:
    table = Scan(late.table, tuple((f"__t{i}", name) for i, name in enumerate(stored)))
    at = next(internal for internal, name in table.stored if name == late.column)
    kept = Late(table, column(at), late.allowed)
    outputs = tuple((name, column(internal)) for internal, name in table.stored)
    changes = (*outputs, (CHANGE, column(CHANGE)))
    first = NodePlan(
        name=f"__late_{_digest(fingerprint(kept, changes), late.owner)}", body=kept, outputs=changes, hidden=True
    )
    rejected = Scan(first.name, (*((f"__l{i}", name) for i, name in enumerate(stored)), ("__change", CHANGE)))
    accepted = Accepted(table, rejected)
    return first, NodePlan(
        name=f"__accepted_{fingerprint(accepted, outputs)[:16]}", body=accepted, outputs=outputs, hidden=True
    )


def _digest(computes: str, owner: str) -> str:
    return hashlib.sha256(f"{computes} {owner}".encode()).hexdigest()[:16]


def _reading(op: Operator, table: str, instead: str) -> Operator:
    """The plan with another relation in the place of a table."""
    if isinstance(op, Scan):
        return replace(op, relation=instead) if op.relation == table else op
    return mapped(op, lambda child: _reading(child, table, instead))
