"""Operators that are computed partition by partition: window functions and sessions.

batch:  f(R)
delta:  f(R.post by P) - the stored rows of P,   where P are the partitions with any change
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from penstock.frames.zset import Rows
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.ivm.keyed import Keyed, Stored, replaced
from penstock.ivm.materialize import Materialized, Materializer
from penstock.ivm.touched import sought, touched
from penstock.plan.operators import Operator, column

Computed = Callable[[Rows], DataFrame]
"""The operator itself: its columns from the rows of its child."""


def evaluate(layout: Keyed, child: Operator, computed: Computed, context: Context, moment: Moment) -> DataFrame:
    """All rows at a moment, as the node's table stores them."""
    return layout.project(computed(rules.evaluate(child, context, moment)))


def delta(
    layout: Keyed,
    child: Operator,
    partition: Sequence[str],
    computed: Computed,
    context: Context,
    stored: Stored,
    materializer: Materializer,
    *,
    every_row: bool = False,
) -> Materialized | None:
    """``every_row``: there is no row below without one here."""
    change = rules.delta(child, context)
    if change is None:
        return None
    groups = touched(change, partition, materializer)
    if groups is not None:
        places = {name: column(name) for name in partition}
        context = context.near(None, sought(child, groups.values, places, utc=context.utc))
    rows = rules.evaluate(child, context, "post")
    if groups is not None:
        rows = replace(rows, frame=groups.of(rows.frame, many=not rows.small))
    anew = Rows(layout.project(computed(rows)), small=rows.small, light=rows.light)
    return replaced(layout, stored, groups, anew, materializer, change if every_row else None)
