"""Accepted: a table without the changes that came late.

batch:  R - late
delta:  dR - dlate
reads:  the deltas
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from penstock.frames.spark.frame import select
from penstock.frames.zset import WEIGHT, Delta, Rows, add, with_weight
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Accepted


def evaluate(op: Accepted, context: Context, moment: Moment) -> Rows:
    rows, late = (rules.evaluate(child, context, moment) for child in op.children)
    both = add([with_weight(rows), _taken_out(op, with_weight(late))])
    return Rows(both, weighted=True, small=rows.small, light=rows.light and late.light)


def delta(op: Accepted, context: Context) -> Delta | None:
    change, late = (rules.delta(child, context) for child in op.children)
    if late is None:
        return change
    parts = [] if change is None else [change.frame]
    few = (change is None or change.small or change.few) and (late.small or late.few)
    return Delta(add([*parts, _taken_out(op, late.frame)]), few=few)


def _taken_out(op: Accepted, late: DataFrame) -> DataFrame:
    *columns, changed = op.late.columns
    names = [f"{mine} AS {name}" for mine, name in zip(columns, op.columns, strict=True)]
    return select(late, *names, f"-{changed} * {WEIGHT} AS {WEIGHT}")
