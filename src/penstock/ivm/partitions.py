"""Operators that are computed partition by partition: window functions and sessions.

batch:  f(R)
delta:  f(R.post by P) - the stored rows of P,   where P are the partitions with any change
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.frames.frame import Frame
from penstock.frames.zset import Delta, ZSet
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment, Stored
from penstock.ivm.keyed import Keyed, replaced
from penstock.ivm.touched import sought, touched
from penstock.plan.operators import Operator, column

Computed = Callable[[ZSet], Frame]
"""The operator itself: its columns from the rows of its child."""


def evaluate(layout: Keyed, child: Operator, computed: Computed, context: Context, moment: Moment) -> Frame:
    """All rows at a moment, as the node's table stores them."""
    return layout.project(computed(rules.evaluate(child, context, moment)))


def delta(
    layout: Keyed,
    child: Operator,
    partition: Sequence[str],
    computed: Computed,
    context: Context,
    stored: Stored,
    *,
    every_row: bool = False,
) -> Frame | None:
    """``every_row``: there is no row below without one here."""
    change = rules.delta(child, context)
    if change is None:
        return None
    return made_anew(layout, child, partition, computed, context, stored, change, every_row=every_row)


def made_anew(
    layout: Keyed,
    child: Operator,
    partition: Sequence[str],
    computed: Computed,
    context: Context,
    stored: Stored,
    change: Delta,
    *,
    every_row: bool = False,
) -> Frame:
    """The change of the table, given that of the child."""
    groups = touched(change, partition, context.keep)
    if groups is not None:
        places = {name: column(name) for name in partition}
        context = context.near(None, sought(child, groups.values, places, utc=context.utc))
    rows = rules.evaluate(child, context, "post")
    if groups is not None:
        rows = replace(rows, frame=groups.of(rows.frame))
    anew = layout.project(computed(rows))
    return replaced(layout, context, stored, groups, anew, change if every_row else None)
