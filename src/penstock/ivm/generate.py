"""Generate: each row as often as a generator (explode and its like) gives rows for it.

batch:  G(R)
delta:  G(dR)
reads:  the delta
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from penstock.frames.spark.frame import select
from penstock.frames.zset import WEIGHT, Delta, Rows
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Generate, render


def evaluate(op: Generate, context: Context, moment: Moment) -> Rows:
    rows = rules.evaluate(op.child, context, moment)
    return replace(rows, frame=_generated(op, rows.frame, weighted=rows.weighted))


def delta(op: Generate, context: Context) -> Delta | None:
    change = rules.delta(op.child, context)
    return None if change is None else replace(change, frame=_generated(op, change.frame, weighted=True))


def _generated(op: Generate, frame: DataFrame, *, weighted: bool) -> DataFrame:
    names = op.outputs[0] if len(op.outputs) == 1 else f"({', '.join(op.outputs)})"
    return select(frame, *op.child.columns, *([WEIGHT] if weighted else []), f"{render(op.generator)} AS {names}")
