"""Union: UNION ALL, by position, in the types that Spark gives the whole.

batch:  A + B
delta:  dA + dB
reads:  the deltas

The delta is taken over all inputs, unchanged ones as empty, so that its types are those of the batch form.

>>> from penstock.ivm.in_memory import change, table
>>> old, new = table("id", [(1,), (2,)], gone=[(1,)]), table("id", [(3,)], new=[(3,), (4,)])
>>> change("SELECT id FROM old UNION ALL SELECT id FROM new", old=old, new=new)
-1  1
+1  3
+1  4
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.frames.frame import Frame
from penstock.frames.names import WEIGHT
from penstock.frames.zset import Delta, ZSet, add, with_weight
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Union


def evaluate(op: Union, context: Context, moment: Moment) -> ZSet:
    inputs = [rules.evaluate(child, context, moment) for child in op.inputs]
    weighted = any(rows.weighted for rows in inputs)
    frames = [with_weight(rows) if weighted else rows.frame for rows in inputs]
    return ZSet(_stack(frames, op, weighted), weighted)


def delta(op: Union, context: Context) -> Delta | None:
    changes = [rules.delta(child, context) for child in op.inputs]
    present = [change for change in changes if change is not None]
    if not present:
        return None
    frames = [
        change.frame if change is not None else with_weight(rules.evaluate(child, context, "pre")).nothing()
        for change, child in zip(changes, op.inputs, strict=True)
    ]
    return Delta(_stack(frames, op, weighted=True), append_only=all(change.append_only for change in present))


def _stack(frames: Sequence[Frame], op: Union, weighted: bool) -> Frame:
    extra = [WEIGHT] if weighted else []
    return add(
        [
            frame.only([*child.columns, *extra]).renamed(dict(zip(child.columns, op.columns, strict=True)))
            for frame, child in zip(frames, op.inputs, strict=True)
        ]
    )
