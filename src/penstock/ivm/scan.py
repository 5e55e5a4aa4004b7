"""Scan: an input under its internal column names.

batch:  the input at the moment
delta:  the input's change
reads:  the change

>>> from penstock.ivm.in_memory import change_of, table
>>> from penstock.plan.operators import Scan
>>> change_of(Scan("t", (("internal", "v"),)), t=table("v", [(1,), (2,)], gone=[(1,)], new=[(3,)]))
-1  1
+1  3
"""

from __future__ import annotations

from penstock.frames.zset import Delta, ZSet
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Scan


def evaluate(op: Scan, context: Context, moment: Moment) -> ZSet:
    return context.read(op, moment)


def delta(op: Scan, context: Context) -> Delta | None:
    return context.delta(op)
