"""Union: UNION ALL, by position, in the types that Spark gives the whole.

batch:  A + B
delta:  dA + dB
reads:  the deltas

The delta is taken over all inputs, unchanged ones as empty, so that its types are those of the batch form.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock.frames.zset import WEIGHT, Delta, Rows, with_weight
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Union


def evaluate(op: Union, context: Context, moment: Moment) -> Rows:
    inputs = [rules.evaluate(child, context, moment) for child in op.inputs]
    weighted = any(rows.weighted for rows in inputs)
    frames = [with_weight(rows) if weighted else rows.frame for rows in inputs]
    return Rows(
        _stack(frames, op, weighted), weighted, small=all(r.small for r in inputs), light=all(r.light for r in inputs)
    )


def delta(op: Union, context: Context) -> Delta | None:
    changes = [rules.delta(child, context) for child in op.inputs]
    present = [change for change in changes if change is not None]
    if not present:
        return None
    frames = [
        change.frame if change is not None else with_weight(rules.evaluate(child, context, "pre")).where("false")
        for change, child in zip(changes, op.inputs, strict=True)
    ]
    return Delta(
        _stack(frames, op, weighted=True),
        append_only=all(change.append_only for change in present),
        small=all(change.small for change in present),
        few=all(change.small or change.few for change in present),
        little=all(change.little for change in present),
    )


def _stack(frames: list[DataFrame], op: Union, weighted: bool) -> DataFrame:
    extra = [WEIGHT] if weighted else []
    ordered = [
        frame.select(*child.columns, *extra).toDF(*op.columns, *extra)
        for frame, child in zip(frames, op.inputs, strict=True)
    ]
    total = ordered[0]
    for frame in ordered[1:]:
        total = total.unionAll(frame)
    return total
