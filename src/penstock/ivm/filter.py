"""Filter: the rows for which a condition is true.

batch:  F(R)
delta:  F(dR)
reads:  the delta

>>> from penstock.ivm.in_memory import change, table
>>> change("SELECT v FROM t WHERE v > 1", t=table("v", [(1,), (2,)], gone=[(2,)], new=[(0,), (3,)]))
-1  2
+1  3
"""

from __future__ import annotations

from dataclasses import replace

from penstock.frames.zset import Delta, ZSet
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Filter


def evaluate(op: Filter, context: Context, moment: Moment) -> ZSet:
    rows = rules.evaluate(op.child, context, moment)
    return replace(rows, frame=rows.frame.where(op.condition))


def delta(op: Filter, context: Context) -> Delta | None:
    change = rules.delta(op.child, context)
    return None if change is None else replace(change, frame=change.frame.where(op.condition))
