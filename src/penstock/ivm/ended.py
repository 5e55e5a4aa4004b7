"""Ended: the rows whose window the watermark has passed.

batch:  F(R) with the watermark of the moment
delta:  F(dR) with the new watermark, and of R.pre the rows that only the new watermark lets through
reads:  the delta, and the rows of the windows that have ended since

The watermark moves from 10 to 20: a row that waited comes, and so does a new one that need not wait.

>>> from penstock.ivm.in_memory import change_of, table
>>> from penstock.plan.operators import Ended, Scan
>>> windows = table("ends n", [(15, 4), (25, 6)], new=[(20, 1)])
>>> passed = Ended(Scan("windows", (("ends", "ends"), ("n", "n"))), tree("ends <= __WATERMARK()"))
>>> change_of(passed, (10, 20), windows=windows)
+1  15  4
+1  20  1
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.frames.zset import Delta, ZSet, add, with_weight
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Ended
from penstock.sql import emission
from penstock.sql.trees import tree


def evaluate(op: Ended, context: Context, moment: Moment) -> ZSet:
    rows = rules.evaluate(op.child, context, moment)
    return replace(rows, frame=rows.frame.where(_condition(op, context.watermark(moment))))


def delta(op: Ended, context: Context) -> Delta | None:
    change = rules.delta(op.child, context)
    before, now = context.watermark("pre"), context.watermark("post")
    shown = _condition(op, now)
    parts = [] if change is None else [change.frame.where(shown)]
    released = now is not None and (before is None or before < now)
    if released:
        stored = rules.evaluate(op.child, context, "pre")
        waited = stored.frame.where(shown)
        if before is not None:
            waited = waited.where(tree("NOT c", c=_condition(op, before)))
        parts.append(with_weight(replace(stored, frame=waited)))
    if not parts:
        return None
    if not released:
        assert change is not None
        return replace(change, frame=parts[0])
    return Delta(add(parts), append_only=change is None or change.append_only)


def _condition(op: Ended, watermark: int | None) -> exp.Expr:
    return emission.passed(op.condition, watermark)
