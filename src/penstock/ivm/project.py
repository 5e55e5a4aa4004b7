"""Project: expressions of a row.

batch:  P(R)
delta:  P(dR)
reads:  the delta
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from penstock.frames.spark.frame import select
from penstock.frames.zset import WEIGHT, Delta, Rows
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.ivm.touched import renamed
from penstock.plan.operators import Named, Project, render
from penstock.sql.dialect import quoted


def evaluate(op: Project, context: Context, moment: Moment) -> Rows:
    rows = rules.evaluate(op.child, context, moment)
    return replace(rows, frame=apply(rows.frame, op.outputs, weighted=rows.weighted))


def delta(op: Project, context: Context) -> Delta | None:
    change = rules.delta(op.child, context)
    if change is None:
        return None
    return replace(
        change, frame=apply(change.frame, op.outputs, weighted=True), known=renamed(change.known, op.outputs)
    )


def apply(frame: DataFrame, outputs: tuple[Named, ...], *, weighted: bool) -> DataFrame:
    """The named expressions of each row; the weight goes along."""
    columns = [f"{render(e)} AS {quoted(name)}" for name, e in outputs]
    return select(frame, *columns, *([WEIGHT] if weighted else []))
