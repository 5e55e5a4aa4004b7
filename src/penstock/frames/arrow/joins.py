"""Joining rows on the driver: equal values meet by the numbers they get, other conditions are asked of the pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.expressions.types import cast as converted
from penstock.frames.arrow.expressions.types import widest_of
from penstock.frames.arrow.expressions.values import Rows, computed
from penstock.frames.arrow.groups import Groups, Numbers, pairs
from penstock.frames.frame import NotHere
from penstock.sql.trees import all_of

if TYPE_CHECKING:
    from penstock.frames.arrow.frame import ArrowFrame


def joined(left: ArrowFrame, right: ArrowFrame, conditions: Sequence[exp.Expr], how: str) -> ArrowFrame:
    """The pairs of two frames that fulfil all conditions; raises ``NotHere`` if that is Spark's work."""
    one, two = left.batch, right.batch
    mine, theirs, nulls, rest = [], [], [], []
    for condition in [part for given in conditions for part in _conjuncts(given)]:
        sides = _sides(condition, left.columns, right.columns)
        if sides is None:
            rest.append(condition)
            continue
        a, b = left.value_of(sides[0]), right.value_of(sides[1])
        kind = widest_of([a.type, b.type])
        mine.append(converted(a, kind))
        theirs.append(converted(b, kind))
        nulls.append(isinstance(condition, exp.NullSafeEQ))
    if how in ("left_semi", "left_anti") and not rest and theirs:
        kept = pa.array(Groups(theirs, two.count).first)
        theirs = [values.take(kept) for values in theirs]
        here, there = pairs(mine, theirs, nulls, (one.count, len(kept)))
    else:
        here, there = pairs(mine, theirs, nulls, (one.count, two.count))
    if rest:
        here, there = _met(left, one, two, here, there, rest)
    if how in ("left_semi", "left_anti"):
        found = np.zeros(one.count, np.bool_)
        found[here] = True
        return left.made(one.some(np.flatnonzero(found if how == "left_semi" else ~found)).columns)
    if how not in ("inner", "left"):
        raise NotHere
    absent = np.zeros(len(here), np.bool_)
    if how == "left":
        met = np.zeros(one.count, np.bool_)
        met[here] = True
        alone = np.flatnonzero(~met)
        here, there = np.concatenate([here, alone]), np.concatenate([there, np.zeros(len(alone), np.int64)])
        absent = np.concatenate([absent, np.ones(len(alone), np.bool_)])
    columns = {name: column.take(pa.array(here)) for name, column in one.columns.items()}
    places = pa.array(there, pa.int64(), mask=absent)
    columns |= {name: column.take(places) for name, column in two.columns.items()}
    if len(columns) < len(one.columns) + len(two.columns):
        raise NotHere
    return left.made(columns)


def _met(
    left: ArrowFrame, one: Rows, two: Rows, here: Numbers, there: Numbers, conditions: Sequence[exp.Expr]
) -> tuple[Numbers, Numbers]:
    """The pairs that fulfil conditions. Spark is asked last, all at once: one may guard the other from an error."""
    both = {name: column.take(pa.array(there)) for name, column in two.columns.items()}
    both |= {name: column.take(pa.array(here)) for name, column in one.columns.items()}
    pairs_met, asked = Rows(both, len(here), one.settings), []
    for condition in conditions:
        try:
            kept = _true(computed(condition, pairs_met))
        except NotHere:
            asked.append(condition)
            continue
        pairs_met, here, there = pairs_met.some(np.flatnonzero(kept)), here[kept], there[kept]
    if asked and len(here):
        if len(both) < len(one.columns) + len(two.columns):
            raise NotHere
        rows = left.made(pairs_met.columns)
        kept = _true(rows.asked([all_of(asked)])[0])
        here, there = here[kept], there[kept]
    return here, there


def _true(found: pa.Array) -> Numbers:
    if not pa.types.is_boolean(found.type):
        raise NotHere
    return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False))


def _conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [*_conjuncts(condition.left), *_conjuncts(condition.right)]
    return [] if isinstance(condition, exp.Boolean) and condition.this else [condition]


def _sides(condition: exp.Expr, left: Sequence[str], right: Sequence[str]) -> tuple[exp.Expr, exp.Expr] | None:
    """The two sides of an equality, the left one's first, if each is of one side only."""
    if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
        return None
    a, b = condition.left, condition.right
    of_a, of_b = (frozenset(c.table or c.name for c in side.find_all(exp.Column)) for side in (a, b))
    if not of_a or not of_b:
        return None
    if of_a <= set(left) and of_b <= set(right):
        return a, b
    return (b, a) if of_a <= set(right) and of_b <= set(left) else None
