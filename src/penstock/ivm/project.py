"""Project: expressions of a row.

batch:  P(R)
delta:  P(dR)
reads:  the delta

>>> from penstock.ivm.in_memory import change, table
>>> change("SELECT a + b AS c FROM t", t=table("a b", [(1, 2)], gone=[(1, 2)], new=[(3, 4), (5, 2)]))
-1  3
+2  7
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.frames.frame import Frame
from penstock.frames.names import WEIGHT
from penstock.frames.zset import Delta, ZSet
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.ivm.touched import renamed
from penstock.plan.operators import Project
from penstock.sql.trees import Named, columns


def evaluate(op: Project, context: Context, moment: Moment) -> ZSet:
    rows = rules.evaluate(op.child, context, moment)
    return replace(rows, frame=apply(rows.frame, op.outputs, weighted=rows.weighted))


def delta(op: Project, context: Context) -> Delta | None:
    change = rules.delta(op.child, context)
    if change is None:
        return None
    frame = apply(change.frame, op.outputs, weighted=True)
    return replace(change, frame=frame, known=renamed(change.known, op.outputs))


def apply(frame: Frame, outputs: Sequence[Named], *, weighted: bool) -> Frame:
    """The named expressions of each row; the weight goes along."""
    return frame.select([*outputs, *(columns([WEIGHT]) if weighted else [])])
