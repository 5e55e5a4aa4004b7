"""Window: window functions over one partitioning.

batch:  W(R)
delta:  W(T + dR) - the stored rows of T,        if dR only inserts, and T, the last stored rows of the touched
                                                 partitions, are enough to tell (``window_tail``); else
        W(R.post by P) - the stored rows of P,   where P are the partitions with any change
reads:  the delta, and T of the node's own table; else all rows of the touched partitions, and the stored rows of them

Rows that are equal in a window's ORDER BY come in the order of all their other columns where their place matters
(ROW_NUMBER, NTILE, LAG, LEAD, ROWS frames), so a result never depends on how Spark happened to read the rows.

>>> from penstock.ivm.in_memory import change, table
>>> races = table("race time", [("a", 12), ("b", 30)], new=[("a", 11)])
>>> change("SELECT race, time, RANK() OVER (PARTITION BY race ORDER BY time) AS place FROM races", races=races)
+1  a  11  1
-1  a  12  1
+1  a  12  2
"""

from __future__ import annotations

from functools import partial

from penstock.frames.frame import Frame
from penstock.frames.zset import ZSet, plain_rows
from penstock.ivm import partitions, rules, window_tail
from penstock.ivm.context import Context, Moment, Stored
from penstock.ivm.keyed import Keyed
from penstock.ivm.window_order import with_ties
from penstock.plan.nodes import NodePlan
from penstock.plan.operators import Window


def layout(plan: NodePlan) -> Keyed:
    return Keyed.of(plan, _body(plan).partition)


def evaluate(layout: Keyed, context: Context, moment: Moment) -> Frame:
    op = _body(layout.node)
    return partitions.evaluate(layout, op.child, partial(_computed, op), context, moment)


def delta(layout: Keyed, context: Context, stored: Stored) -> Frame | None:
    op = _body(layout.node)
    change = rules.delta(op.child, context)
    if change is None:
        return None
    found = window_tail.delta(layout, context, stored, change)
    if found is not None:
        return found
    computed = partial(_computed, op)
    return partitions.made_anew(layout, op.child, op.partition, computed, context, stored, change, every_row=True)


def _body(plan: NodePlan) -> Window:
    assert isinstance(plan.body, Window)
    return plan.body


def _computed(op: Window, rows: ZSet) -> Frame:
    frame = plain_rows(rows)
    ties = frame.sortable(op.child.columns)
    return frame.windows([(name, with_ties(f, ties)) for name, f in op.functions])
