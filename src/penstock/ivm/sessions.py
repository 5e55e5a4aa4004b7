"""Sessions: groups of rows that follow each other within a gap, apart for each value of the other keys.

batch:  S(R)
delta:  S(R.post by K) - the stored rows of K,   where K are the other keys of the rows that changed
reads:  the delta, all rows with the touched keys, and the stored rows of them

Where sessions begin and end depends on their neighbours, so a touched key's sessions are all made anew.

A click at minute 4 goes into the session that began at minute 0.

>>> from datetime import datetime, timezone
>>> from penstock.ivm.in_memory import change, table
>>> at = {minute: datetime(2024, 1, 1, 9, minute, tzinfo=timezone.utc) for minute in range(60)}
>>> clicks = table("who at", [("ann", at[0]), ("ann", at[20]), ("bob", at[2])], new=[("ann", at[4])])
>>> sessions = "SELECT who, SESSION_WINDOW(at, '5 minutes') AS w, COUNT(*) AS n FROM clicks GROUP BY who, w"
>>> change(f"SELECT who, MINUTE(w.start) AS began, n FROM ({sessions})", clicks=clicks)
-1  ann  0  1
+1  ann  0  2
"""

from __future__ import annotations

from functools import partial

from penstock.frames.frame import Frame
from penstock.frames.zset import ZSet, plain_rows
from penstock.ivm import partitions
from penstock.ivm.context import Context, Moment, Stored
from penstock.ivm.keyed import Keyed
from penstock.plan.nodes import NodePlan
from penstock.plan.operators import Sessions
from penstock.sql.trees import tree


def layout(plan: NodePlan) -> Keyed:
    return Keyed.of(plan, _body(plan).partition)


def evaluate(layout: Keyed, context: Context, moment: Moment) -> Frame:
    op = _body(layout.node)
    return partitions.evaluate(layout, op.child, partial(_computed, op), context, moment)


def delta(layout: Keyed, context: Context, stored: Stored) -> Frame | None:
    op = _body(layout.node)
    return partitions.delta(layout, op.child, op.partition, partial(_computed, op), context, stored)


def _body(plan: NodePlan) -> Sessions:
    assert isinstance(plan.body, Sessions)
    return plan.body


def _computed(op: Sessions, rows: ZSet) -> Frame:
    """The sessions of some rows: their keys under the names of the columns below too, and their measures."""
    below = [name for name in op.partition if name not in {key for key, _ in op.keys}]
    return plain_rows(rows).sessions(below, op.keys, op.measures or [("__count", tree("COUNT(*)"))])
