"""Values: rows that stand in the query itself.

batch:  the rows
delta:  none, ever
reads:  nothing

What they are joined with may change; they do not.

>>> from penstock.ivm.in_memory import change, table
>>> named = "(VALUES (1, 'one'), (2, 'two')) AS named (n, name)"
>>> change(f"SELECT t.n, name FROM t JOIN {named} ON t.n = named.n", t=table("n", [(1,)], new=[(2,), (3,)]))
+1  2  two
"""

from __future__ import annotations

from penstock.frames.zset import Delta, ZSet
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Values


def evaluate(op: Values, context: Context, moment: Moment) -> ZSet:
    return context.given(op)


def delta(op: Values, context: Context) -> Delta | None:
    return None
