"""Values: rows that stand in the query itself.

batch:  the rows
delta:  none, ever
reads:  nothing
"""

from __future__ import annotations

from penstock.frames.zset import Delta, ZSet
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Values


def evaluate(op: Values, context: Context, moment: Moment) -> ZSet:
    return context.given(op)


def delta(op: Values, context: Context) -> Delta | None:
    return None
