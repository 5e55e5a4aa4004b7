"""TopK: the first rows in an order; rows that are equal in it come in the order of all their columns.

batch:  T(R)
delta:  T(stored + what was added) - stored, while no stored row was removed
        T(R.post) - stored, otherwise
reads:  the delta and the node's own table, which has few rows; the child when one of them was removed

>>> from penstock.ivm.in_memory import change, table
>>> bids = table("price", [(7,), (8,), (9,)], new=[(10,)])
>>> change("SELECT price FROM bids ORDER BY price DESC LIMIT 2", bids=bids)
+1  10
-1  8
"""

from __future__ import annotations

from sqlglot import exp

from penstock.frames.arrow.groups import can_tell_apart, gone
from penstock.frames.frame import Frame
from penstock.frames.mismatch import check_removed
from penstock.frames.names import WEIGHT
from penstock.frames.zset import ADDED, REMOVED, plain_rows, weighted
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment, Stored
from penstock.ivm.keyed import Keyed, replaced
from penstock.plan.nodes import NodePlan
from penstock.plan.operators import TopK
from penstock.sql.trees import Same, column, tree


def layout(plan: NodePlan) -> Keyed:
    return Keyed.of(plan, _body(plan).child.columns)


def evaluate(layout: Keyed, context: Context, moment: Moment) -> Frame:
    """The first rows at a moment, as the node's table stores them."""
    op = _body(layout.node)
    return layout.project(_first(op, plain_rows(rules.evaluate(op.child, context, moment))))


def delta(layout: Keyed, context: Context, stored: Stored) -> Frame | None:
    op = _body(layout.node)
    change = rules.delta(op.child, context)
    if change is None:
        return None
    known = stored.read().select([(name, column(stored_as)) for name, stored_as in layout.keys])
    rows = change.frame if change.append_only else change.frame.consolidated()
    # Where there is room for more, every row of the child is stored: one that is removed must be found.
    all_stored = op.offset == 0 and stored.count < op.limit
    stays = op.offset == 0 and (
        change.append_only or not _any_removed(known, rows.where(REMOVED), all_stored=all_stored)
    )
    if stays:
        candidates = known.union(rows.where(ADDED).copies().only(known.columns))
    else:
        candidates = plain_rows(rules.evaluate(op.child, context, "post"))
    return replaced(layout, context, stored, None, layout.project(_first(op, candidates)))


def _body(plan: NodePlan) -> TopK:
    assert isinstance(plan.body, TopK)
    return plan.body


def _first(op: TopK, rows: Frame) -> Frame:
    return rows.only(op.child.columns).first(op.order, op.limit, op.offset)


def _any_removed(known: Frame, removed: Frame, *, all_stored: bool) -> bool:
    """Whether one of the known rows is among the removed. ``all_stored``: all of the removed are known."""
    here, going = known.rows(), removed.rows()
    if (
        here is not None
        and going is not None
        and all(can_tell_apart(going.schema.field(c).type) for c in known.columns)
    ):
        found = int(gone(here, going, known.columns, WEIGHT).sum())
        if all_stored:
            check_removed(-int(going.column(WEIGHT).to_numpy().sum()), found)
        return found > 0
    others = removed.only(known.columns).renamed({name: f"__gone_{name}" for name in known.columns})
    same = [Same(this=column(name), expression=column(f"__gone_{name}")) for name in known.columns]
    if all_stored:
        mine = weighted(known, 1).consolidated().renamed({WEIGHT: _FOUND})
        both = others.join(mine, same, "left")
        (row,) = both.group([], _COUNTED).arrow().to_pylist()
        check_removed(row["wanted"], row["found"])
        return bool(row["found"])
    return known.join(others, same, "left_semi").any(_TRUE)


_FOUND, _TRUE = "__found", exp.Boolean(this=True)
_COUNTED = [("wanted", tree("COUNT(*)")), ("found", tree(f"COUNT({_FOUND})"))]
