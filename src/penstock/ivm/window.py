"""Window: window functions over one partitioning.

batch:  W(R)
delta:  W(R.post by P) - the stored rows of P,   where P are the partitions with any change
reads:  the delta, all rows of the touched partitions, and the stored rows of them

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

from collections.abc import Sequence
from functools import partial

from sqlglot import exp

from penstock.frames.frame import Frame
from penstock.frames.zset import ZSet, plain_rows
from penstock.ivm import partitions
from penstock.ivm.context import Context, Moment, Stored
from penstock.ivm.keyed import Keyed
from penstock.plan.aggregates import name_of
from penstock.plan.nodes import NodePlan
from penstock.plan.operators import Window, column

_BY_PLACE = frozenset("row_number ntile lag lead".split())
_BY_FRAME = frozenset("rank dense_rank percent_rank cume_dist".split())


def layout(plan: NodePlan) -> Keyed:
    return Keyed.of(plan, _body(plan).partition)


def evaluate(layout: Keyed, context: Context, moment: Moment) -> Frame:
    op = _body(layout.node)
    return partitions.evaluate(layout, op.child, partial(_computed, op), context, moment)


def delta(layout: Keyed, context: Context, stored: Stored) -> Frame | None:
    op = _body(layout.node)
    return partitions.delta(layout, op.child, op.partition, partial(_computed, op), context, stored, every_row=True)


def _body(plan: NodePlan) -> Window:
    assert isinstance(plan.body, Window)
    return plan.body


def _computed(op: Window, rows: ZSet) -> Frame:
    frame = plain_rows(rows)
    ties = frame.sortable(op.child.columns)
    return frame.windows([(name, _with_ties(f, ties)) for name, f in op.functions])


def _with_ties(function: exp.Expr, ties: Sequence[str]) -> exp.Expr:
    """The function with its order made total, if the place of equal rows matters to it."""
    assert isinstance(function, exp.Window)
    name, order, spec = name_of(function.this), function.args.get("order"), function.args.get("spec")
    if order is None or name in _BY_FRAME:
        return function
    by_rows = spec is not None and spec.args.get("kind") == "ROWS"
    first = name in ("first", "first_value") and spec is None and not isinstance(function.this, exp.IgnoreNulls)
    if not (name in _BY_PLACE or by_rows or first):
        return function
    total = function.copy()
    used = {e.this.name for e in order.expressions if isinstance(e.this, exp.Column)}
    partition = {e.name for e in function.args.get("partition_by") or ()}
    more = [exp.Ordered(this=column(c), nulls_first=True) for c in ties if c not in used | partition]
    total.args["order"].set("expressions", [*total.args["order"].expressions, *more])
    if first:  # the first of all rows is the same for every row, so the frame may count rows
        total.set("spec", exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"))
    return total
