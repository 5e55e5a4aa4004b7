"""Filter: the rows for which a condition is true.

batch:  F(R)
delta:  F(dR)
reads:  the delta
"""

from __future__ import annotations

from dataclasses import replace

from penstock.frames.zset import Delta, Rows
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Filter, render


def evaluate(op: Filter, context: Context, moment: Moment) -> Rows:
    rows = rules.evaluate(op.child, context, moment)
    return replace(rows, frame=rows.frame.where(render(op.condition)))


def delta(op: Filter, context: Context) -> Delta | None:
    change = rules.delta(op.child, context)
    return None if change is None else replace(change, frame=change.frame.where(render(op.condition)))
