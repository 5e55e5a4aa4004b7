"""Sessions: groups of rows that follow each other within a gap, apart for each value of the other keys.

batch:  S(R)
delta:  S(R.post by K) - the stored rows of K,   where K are the other keys of the rows that changed
reads:  the delta, all rows with the touched keys, and the stored rows of them

Where sessions begin and end depends on their neighbours, so a touched key's sessions are all made anew.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.frames.spark.frame import select
from penstock.frames.zset import Rows, plain_rows
from penstock.ivm import partitions
from penstock.ivm.context import Context, Moment
from penstock.ivm.keyed import Keyed, Stored
from penstock.ivm.materialize import Materialized, Materializer
from penstock.plan.operators import Sessions, render
from penstock.sql.dialect import quoted


def evaluate(layout: Keyed, context: Context, moment: Moment) -> DataFrame:
    op = _body(layout)
    return partitions.evaluate(layout, op.child, partial(_computed, op), context, moment)


def delta(layout: Keyed, context: Context, stored: Stored, materializer: Materializer) -> Materialized | None:
    op = _body(layout)
    return partitions.delta(layout, op.child, op.partition, partial(_computed, op), context, stored, materializer)


def _body(layout: Keyed) -> Sessions:
    body = layout.node.body
    assert isinstance(body, Sessions)
    return body


def _computed(op: Sessions, rows: Rows) -> DataFrame:
    """The sessions of some rows: their keys under the names of the columns below too, and their measures."""
    frame = plain_rows(rows)
    frame = frame.coalesce(1) if rows.small else frame
    below = [name for name in op.partition if name not in {key for key, _ in op.keys}]
    keys = [F.expr(render(e)).alias(name) for name, e in op.keys]
    measures = [F.expr(render(e)).alias(name) for name, e in op.measures] or [F.count("*").alias("__count")]
    groups = frame.groupBy(*below, *keys).agg(*measures)
    # Spark marks the column, and would join sessions again wherever it is grouped by.
    session = op.keys[-1][0]
    plain = f"NAMED_STRUCT('start', {session}.start, 'end', {session}.`end`) AS {session}"
    return select(groups, *[plain if name == session else quoted(name) for name in groups.columns])
