"""Late: the changes of a table that came after the watermark had passed them by more than was allowed.

batch:  nothing: what was there from the beginning is not late
delta:  the rows of dR behind the watermark of before, with their weight as a column
reads:  the delta
"""

from __future__ import annotations

from dataclasses import replace

from penstock.frames.spark.frame import select
from penstock.frames.zset import WEIGHT, Delta, Rows
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import CHANGE, Late, render


def evaluate(op: Late, context: Context, moment: Moment) -> Rows:
    rows = rules.evaluate(op.child, context, moment)
    return replace(rows, frame=select(rows.frame.where("false"), "*", f"0L AS {CHANGE}"))


def delta(op: Late, context: Context) -> Delta | None:
    change = rules.delta(op.child, context)
    passed = context.watermark("pre")
    if change is None or passed is None:
        return None
    late = change.frame.where(f"{render(op.at)} < TIMESTAMP_MICROS({passed - op.allowed})")
    rows = select(late, *op.child.columns, f"{WEIGHT} AS {CHANGE}", f"1L AS {WEIGHT}")
    return replace(change, frame=rows, append_only=True, table=None, known=None)
