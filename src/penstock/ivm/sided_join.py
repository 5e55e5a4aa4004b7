"""Sided joins: left, full, semi, anti and mark. Written L o R; for a given R each is linear in L.

batch:  L o R
delta:  dL o R.post  +  A o R.post  -  A o R.pre,   where A are the rows of L.pre that match some row of dR
        full: the same for left, and the delta of the anti join of R with L beside NULLs
reads:  the deltas; of L the rows that match dR; of R the rows that match dL or A

A row of L finds other rows in R after the epoch than before only if some row of dR matches it: nothing but A and dL
has to be looked up, and it does not matter that A may hold rows for which nothing changes: they cancel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp

from penstock.frames.arrow.tables import loosened
from penstock.frames.spark.frame import join, select
from penstock.frames.zset import WEIGHT, Delta, Rows, add, consolidate, with_weight
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.ivm.touched import joined_by, joining, sought
from penstock.plan.operators import Kind, Operator, SidedJoin, names_in, render

_RIGHT_WEIGHT = "__weight_of_right"
_HOW = {"left": "left", "full": "full", "semi": "left_semi", "anti": "left_anti"}


def evaluate(op: SidedJoin, context: Context, moment: Moment) -> Rows:
    left, right = (rules.evaluate(side, context, moment) for side in (op.left, op.right))
    sides = _Sides(op.kind, op.left, op.right, op.conditions, op.mark)
    if op.kind == "full":
        left = _present(left)
    frame = _joined(sides, with_weight(left) if left.weighted or right.weighted else left.frame, _present(right))
    equal = any(isinstance(c.unnest(), exp.EQ | exp.NullSafeEQ) for c in op.conditions)
    small, light = (
        equal and mine and theirs for mine, theirs in ((left.small, right.small), (left.light, right.light))
    )
    return Rows(frame, weighted=left.weighted or right.weighted, small=small, light=light)


def delta(op: SidedJoin, context: Context) -> Delta | None:
    left, right = rules.delta(op.left, context), rules.delta(op.right, context)
    if left is None and right is None:
        return None
    kind: Kind = "left" if op.kind == "full" else op.kind
    change = _delta(_Sides(kind, op.left, op.right, op.conditions, op.mark), left, right, context)
    frame, light = change.frame, change.light
    if op.kind == "full":
        alone = _delta(_Sides("anti", op.right, op.left, op.conditions, None), right, left, context)
        types = rules.evaluate(op.left, context, "pre").frame.schema
        nulls = [f"CAST(NULL AS {types[name].dataType.simpleString()}) AS {name}" for name in op.left.columns]
        frame = add([frame, select(alone.frame, *nulls, *op.right.columns, WEIGHT)])
        light = light and alone.light
    grows = op.kind != "full" and right is None and left is not None and left.append_only
    few = all(change is None or change.small or change.few for change in (left, right))
    return Delta(frame.select(*op.columns, WEIGHT), append_only=grows, few=few, little=light)


@dataclass(frozen=True)
class _Sides:
    kind: Kind
    left: Operator
    right: Operator
    conditions: tuple[exp.Expr, ...]
    mark: str | None

    @property
    def on(self) -> str:
        return " AND ".join(f"({render(c)})" for c in self.conditions) or "true"

    def compared(self, side: Operator) -> list[str]:
        """The columns of a side that the conditions read; one at least, for Spark's sake."""
        names = set().union(*(names_in(c) for c in self.conditions))
        return [name for name in side.columns if name in names] or list(side.columns[:1])


def _delta(sides: _Sides, left: Delta | None, right: Delta | None, context: Context) -> Rows:
    if right is None:
        assert left is not None
        return _look_up(sides, _Few(left.frame, left.known, left.small, left.little), context, "pre")
    found = right.frame.select(*sides.compared(sides.right))
    before = _bounded(sides.left, right.known, sides, context, "pre")
    affected = join(with_weight(before), found, sides.on, "left_semi", sent="right" if right.small else "")
    kept = context.keep(affected, few=right.small, little=right.little and before.light)
    old = _look_up(sides, _Few(kept.frame, kept.table, kept.local, kept.little), context, "pre")
    changed = kept.frame if left is None else add([kept.frame, left.frame.select(*kept.frame.columns)])
    small = kept.local and (left is None or left.small)
    little = kept.little and (left is None or left.little)
    new = _look_up(sides, _Few(changed, _both(kept.table, left), small, little), context, "post")
    frame = add(
        [new.frame, select(old.frame, *[c for c in old.frame.columns if c != WEIGHT], f"-{WEIGHT} AS {WEIGHT}")]
    )
    return Rows(frame, weighted=True, light=old.light and new.light)


@dataclass(frozen=True)
class _Few:
    """Rows of one side to be looked up in the other: what is known of them, and whether they are as few as hoped."""

    frame: DataFrame
    known: pa.Table | None
    small: bool
    little: bool


def _both(kept: pa.Table | None, left: Delta | None) -> pa.Table | None:
    """What is known of the rows to look up: those that are kept, and those of a change."""
    if left is None or kept is None:
        return kept
    if left.known is None:
        return None
    columns = [name for name in left.known.column_names if name in kept.column_names]
    return pa.concat_tables([loosened(kept.select(columns)), loosened(left.known.select(columns))])


def _look_up(sides: _Sides, left: _Few, context: Context, moment: Moment) -> Rows:
    """L o R for rows of L: if they are few, only what they match is read of R."""
    if not left.small:
        right = rules.evaluate(sides.right, context, moment)
        return Rows(_joined(sides, left.frame, _present(right)), weighted=True)
    wanted = left.frame.select(*sides.compared(sides.left))
    near = _bounded(sides.right, left.known, sides, context, moment)
    right = Rows(join(near.frame, wanted, sides.on, "left_semi", sent="right"), near.weighted)
    return Rows(_joined(sides, left.frame, _present(right)), weighted=True, light=left.little and near.light)


def _bounded(side: Operator, known: pa.Table | None, sides: _Sides, context: Context, moment: Moment) -> Rows:
    """Of one side, the rows that can match the known ones of the other, and maybe more."""
    keys = sought(side, known, joined_by(known, sides.conditions, side), utc=context.utc)
    rows = rules.evaluate(side, context if keys is None else context.near(None, keys), moment)
    return rows if rows.small else replace(rows, frame=joining(rows.frame, known, sides.conditions))


def _present(rows: Rows) -> Rows:
    """A relation whose rows are really there: weights added up, what is gone left out."""
    if not rows.weighted:
        return rows
    return Rows(consolidate(rows.frame, small=rows.small).where(f"{WEIGHT} > 0"), weighted=True)


def _joined(sides: _Sides, left: DataFrame, right: Rows) -> DataFrame:
    if sides.kind in ("semi", "anti"):
        return join(left, right.frame, sides.on, _HOW[sides.kind])
    if sides.kind == "mark":
        found = select(join(left, right.frame, sides.on, "left_semi"), "*", f"true AS {sides.mark}")
        return add([found, select(join(left, right.frame, sides.on, "left_anti"), "*", f"false AS {sides.mark}")])
    frame = right.frame.withColumnRenamed(WEIGHT, _RIGHT_WEIGHT) if right.weighted else right.frame
    pairs = join(left, frame, sides.on, _HOW[sides.kind])
    columns = [*sides.left.columns, *sides.right.columns]
    if WEIGHT not in left.columns:
        return pairs.select(*columns)
    times = f" * COALESCE({_RIGHT_WEIGHT}, 1L)" if right.weighted else ""
    return select(pairs, *columns, f"COALESCE({WEIGHT}, 1L){times} AS {WEIGHT}")
