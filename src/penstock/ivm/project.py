"""Project: expressions of a row.

batch:  P(R)
delta:  P(dR)
reads:  the delta
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp

from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Named, Project, render
from penstock.storage.reader import quoted
from penstock.storage.zset import WEIGHT, Delta, Rows


def evaluate(op: Project, context: Context, moment: Moment) -> Rows:
    rows = rules.evaluate(op.child, context, moment)
    return replace(rows, frame=apply(rows.frame, op.outputs, weighted=rows.weighted))


def delta(op: Project, context: Context) -> Delta | None:
    change = rules.delta(op.child, context)
    if change is None:
        return None
    return replace(change, frame=apply(change.frame, op.outputs, weighted=True), known=_known(change.known, op.outputs))


def _known(table: pa.Table | None, outputs: tuple[Named, ...]) -> pa.Table | None:
    """The columns that keep their values, under their new names."""
    if table is None:
        return None
    kept = {name: e.name for name, e in outputs if isinstance(e, exp.Column) and e.name in table.column_names}
    return pa.table({name: table.column(old) for name, old in kept.items()})


def apply(frame: DataFrame, outputs: tuple[Named, ...], *, weighted: bool) -> DataFrame:
    """The named expressions of each row; the weight goes along."""
    columns = [f"{render(e)} AS {quoted(name)}" for name, e in outputs]
    return frame.selectExpr(*columns, *([WEIGHT] if weighted else []))
