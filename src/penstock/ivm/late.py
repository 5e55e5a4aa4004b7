"""Late: the changes of a table that came after the watermark had passed them by more than was allowed.

batch:  nothing: what was there from the beginning is not late
delta:  the rows of dR behind the watermark of before, with their weight as a column
reads:  the delta

The watermark was at 10 seconds, and 2 are allowed.

>>> from datetime import datetime, timezone
>>> from penstock.ivm.in_memory import change_of, table
>>> from penstock.plan.operators import Late, Scan
>>> rows = [(name, datetime.fromtimestamp(at, timezone.utc)) for name, at in (("late", 7), ("fair", 9), ("new", 12))]
>>> late = Late(Scan("t", (("name", "name"), ("at", "at"))), column("at"), allowed=2_000_000)
>>> change_of(late, (10_000_000, 12_000_000), t=table("name at", [rows[1]], new=rows))
+1  late  1970-01-01 00:00:07+00:00  1
"""

from __future__ import annotations

from dataclasses import replace

from penstock.frames.names import WEIGHT
from penstock.frames.zset import Delta, ZSet
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import CHANGE, Late
from penstock.sql.trees import column, columns, tree, whole_number


def evaluate(op: Late, context: Context, moment: Moment) -> ZSet:
    rows = rules.evaluate(op.child, context, moment)
    frame = rows.frame.nothing()
    return replace(rows, frame=frame.select([*columns(frame.columns), (CHANGE, whole_number(0))]))


def delta(op: Late, context: Context) -> Delta | None:
    change = rules.delta(op.child, context)
    passed = context.watermark("pre")
    if change is None or passed is None:
        return None
    late = change.frame.where(tree("t < TIMESTAMP_MICROS(n)", t=op.at, n=whole_number(passed - op.allowed)))
    beside = [(CHANGE, column(WEIGHT)), (WEIGHT, whole_number(1))]
    return Delta(late.select([*columns(op.child.columns), *beside]), append_only=True)
