"""Values: rows that stand in the query itself.

batch:  the rows
delta:  none, ever
reads:  nothing
"""

from __future__ import annotations

from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Values
from penstock.storage.zset import Delta, Rows


def evaluate(op: Values, context: Context, moment: Moment) -> Rows:
    return context.given(op)


def delta(op: Values, context: Context) -> Delta | None:
    return None
