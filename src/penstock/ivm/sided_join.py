"""Sided joins: left, full, semi, anti and mark. Written L o R; for a given R each is linear in L.

batch:  L o R
delta:  dL o R.post  +  A o R.post  -  A o R.pre,   where A are the rows of L.pre that match some row of dR
        full: the same for left, and the delta of the anti join of R with L beside NULLs
reads:  the deltas; of L the rows that match dR; of R the rows that match dL or A

A row of L finds other rows in R after the epoch than before only if some row of dR matches it: nothing but A and dL
has to be looked up, and it does not matter that A may hold rows for which nothing changes: they cancel.

>>> from penstock.ivm.in_memory import change, table
>>> orders = table("item", [("pen",), ("ink",)])
>>> prices = table("item price", [("pen", 3)], new=[("ink", 9)])
>>> change("SELECT o.item, price FROM orders o LEFT JOIN prices p ON o.item = p.item", orders=orders, prices=prices)
+1  ink  9
-1  ink  NULL
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.tables import loosened
from penstock.frames.frame import Frame, How
from penstock.frames.names import WEIGHT
from penstock.frames.sizes import UNKNOWN, Size
from penstock.frames.zset import ADDED, Delta, ZSet, add, negated, with_weight
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.ivm.touched import joined_by, joining, sought
from penstock.plan.operators import Kind, Operator, SidedJoin, names_in
from penstock.sql.trees import column, columns, tree

_RIGHT_WEIGHT = "__weight_of_right"
_HOW: dict[Kind, How] = {"left": "left", "full": "full", "semi": "left_semi", "anti": "left_anti"}


def evaluate(op: SidedJoin, context: Context, moment: Moment) -> ZSet:
    left, right = (rules.evaluate(side, context, moment) for side in (op.left, op.right))
    sides = _Sides(kind=op.kind, left=op.left, right=op.right, conditions=op.conditions, mark=op.mark)
    if op.kind == "full":
        left = _present(left)
    weighted = left.weighted or right.weighted
    frame = _joined(sides, with_weight(left) if weighted else left.frame, _present(right))
    if not any(isinstance(c.unnest(), exp.EQ | exp.NullSafeEQ) for c in op.conditions):
        frame = frame.expecting(UNKNOWN)
    return ZSet(frame, weighted)


def delta(op: SidedJoin, context: Context) -> Delta | None:
    left, right = rules.delta(op.left, context), rules.delta(op.right, context)
    if left is None and right is None:
        return None
    kind: Kind = "left" if op.kind == "full" else op.kind
    frame = _delta(
        _Sides(kind=kind, left=op.left, right=op.right, conditions=op.conditions, mark=op.mark), left, right, context
    )
    if op.kind == "full":
        alone = _delta(
            _Sides(kind="anti", left=op.right, right=op.left, conditions=op.conditions, mark=None), right, left, context
        )
        shape = rules.evaluate(op.left, context, "pre").frame
        names = [*op.columns, WEIGHT]
        frame = add([frame.only(names), alone.with_nulls(shape, op.left.columns).only(names)])
    grows = op.kind != "full" and right is None and left is not None and left.append_only
    rows = frame.only([*op.columns, WEIGHT])
    if all(change is None or change.frame.size.on_driver for change in (left, right)):
        rows = rows.expecting(sum((c.frame.size for c in (left, right) if c is not None), Size.exactly(0)).guess())
    return Delta(rows, append_only=grows)


@dataclass(frozen=True, kw_only=True)
class _Sides:
    kind: Kind
    left: Operator
    right: Operator
    conditions: tuple[exp.Expr, ...]
    mark: str | None

    def compared(self, side: Operator) -> list[str]:
        """The columns of a side that the conditions read; one at least, for Spark's sake."""
        names = set().union(*(names_in(c) for c in self.conditions))
        return [name for name in side.columns if name in names] or list(side.columns[:1])


def _delta(sides: _Sides, left: Delta | None, right: Delta | None, context: Context) -> Frame:
    if right is None:
        assert left is not None
        return _look_up(sides, left.frame, left.known, context, "pre")
    found = right.frame.only(sides.compared(sides.right))
    before = _bounded(sides.left, right.known, sides, context, "pre")
    affected = with_weight(before).join(found, sides.conditions, "left_semi")
    if right.frame.size.surely_on_driver:
        affected = affected.expecting(replace(right.frame.size.guess(), read=affected.size.read))
    kept = context.keep(affected)
    old = _look_up(sides, kept, kept.rows(), context, "pre")
    changed = kept if left is None else add([kept, left.frame.only(kept.columns)])
    new = _look_up(sides, changed, _both(kept.rows(), left), context, "post")
    return add([new, negated(old)])


def _both(kept: pa.Table | None, left: Delta | None) -> pa.Table | None:
    """What is known of the rows to look up: those that are kept, and those of a change."""
    if left is None or kept is None:
        return kept
    if left.known is None:
        return None
    names = [name for name in left.known.column_names if name in kept.column_names]
    return pa.concat_tables([loosened(kept.select(names)), loosened(left.known.select(names))])


def _look_up(sides: _Sides, left: Frame, known: pa.Table | None, context: Context, moment: Moment) -> Frame:
    """L o R for rows of L: if they are few, only what they match is read of R. Some columns of them are ``known``."""
    if not left.size.surely_on_driver:
        return _joined(sides, left, _present(rules.evaluate(sides.right, context, moment)))
    wanted = left.only(sides.compared(sides.left))
    near = _bounded(sides.right, known, sides, context, moment)
    right = ZSet(near.frame.join(wanted, sides.conditions, "left_semi"), near.weighted)
    return _joined(sides, left, _present(right))


def _bounded(side: Operator, known: pa.Table | None, sides: _Sides, context: Context, moment: Moment) -> ZSet:
    """Of one side, the rows that can match the known ones of the other, and maybe more."""
    keys = sought(side, known, joined_by(known, sides.conditions, side), utc=context.utc)
    rows = rules.evaluate(side, context if keys is None else context.near(None, keys), moment)
    if rows.frame.size.in_one_task:
        return rows
    return replace(rows, frame=joining(rows.frame, known, sides.conditions))


def _present(rows: ZSet) -> ZSet:
    """A relation whose rows are really there: weights added up, what is gone left out."""
    return ZSet(rows.frame.consolidated().where(ADDED), weighted=True) if rows.weighted else rows


def _joined(sides: _Sides, left: Frame, right: ZSet) -> Frame:
    if sides.kind in ("semi", "anti"):
        return left.join(right.frame, sides.conditions, _HOW[sides.kind])
    if sides.kind == "mark":
        return add([_marked(sides, left, right, "left_semi"), _marked(sides, left, right, "left_anti")])
    frame = right.frame.renamed({WEIGHT: _RIGHT_WEIGHT}) if right.weighted else right.frame
    pairs = left.join(frame, sides.conditions, _HOW[sides.kind])
    names = [*sides.left.columns, *sides.right.columns]
    if WEIGHT not in left.columns:
        return pairs.only(names)
    weight = tree("COALESCE(w, 1L)", w=column(WEIGHT))
    if right.weighted:
        weight = tree("w * COALESCE(r, 1L)", w=weight, r=column(_RIGHT_WEIGHT))
    return pairs.select([*columns(names), (WEIGHT, weight)])


def _marked(sides: _Sides, left: Frame, right: ZSet, how: How) -> Frame:
    """The rows that find something, or nothing, with a column that says so."""
    assert sides.mark is not None
    found = left.join(right.frame, sides.conditions, how)
    return found.select([*columns(left.columns), (sides.mark, exp.Boolean(this=how == "left_semi"))])
