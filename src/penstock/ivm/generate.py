"""Generate: each row as often as a generator (explode and its like) gives rows for it.

batch:  G(R)
delta:  G(dR)
reads:  the delta

>>> from penstock.ivm.in_memory import change, table
>>> said = table("who text", [("ann", "a b")], new=[("bob", "b c")])
>>> change("SELECT who, word FROM said LATERAL VIEW EXPLODE(SPLIT(text, ' ')) AS word", said=said)
+1  bob  b
+1  bob  c
"""

from __future__ import annotations

from dataclasses import replace

from penstock.frames.frame import Frame
from penstock.frames.names import WEIGHT
from penstock.frames.zset import Delta, ZSet
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Generate


def evaluate(op: Generate, context: Context, moment: Moment) -> ZSet:
    rows = rules.evaluate(op.child, context, moment)
    return replace(rows, frame=_generated(op, rows.frame, weighted=rows.weighted))


def delta(op: Generate, context: Context) -> Delta | None:
    change = rules.delta(op.child, context)
    return None if change is None else replace(change, frame=_generated(op, change.frame, weighted=True))


def _generated(op: Generate, frame: Frame, *, weighted: bool) -> Frame:
    kept = [*op.child.columns, *([WEIGHT] if weighted else [])]
    return frame.generate(op.generator, op.outputs, kept).only([*op.columns, *([WEIGHT] if weighted else [])])
