"""Accepted: a table without the changes that came late.

batch:  R - late
delta:  dR - dlate
reads:  the deltas

>>> from penstock.ivm.in_memory import change_of, table
>>> from penstock.plan.operators import Accepted, Scan
>>> taken = Accepted(Scan("t", (("v", "v"),)), Scan("late", (("w", "v"), ("n", "n"))))
>>> change_of(taken, t=table("v", [(1,)], new=[(2,), (3,)]), late=table("v n", [(0, 1)], new=[(2, 1)]))
+1  3
"""

from __future__ import annotations

from penstock.frames.frame import Frame
from penstock.frames.names import WEIGHT
from penstock.frames.zset import Delta, ZSet, add, with_weight
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Accepted
from penstock.sql.trees import column, tree


def evaluate(op: Accepted, context: Context, moment: Moment) -> ZSet:
    rows, late = (rules.evaluate(child, context, moment) for child in op.children)
    return ZSet(add([with_weight(rows), _taken_out(op, with_weight(late))]), weighted=True)


def delta(op: Accepted, context: Context) -> Delta | None:
    change, late = (rules.delta(child, context) for child in op.children)
    if late is None:
        return change
    parts = [] if change is None else [change.frame]
    return Delta(add([*parts, _taken_out(op, late.frame)]))


def _taken_out(op: Accepted, late: Frame) -> Frame:
    *names, changed = op.late.columns
    kept = [(name, column(mine)) for mine, name in zip(names, op.columns, strict=True)]
    return late.select([*kept, (WEIGHT, tree("-c * w", c=column(changed), w=column(WEIGHT)))])
