"""Z-sets: rows with an integer weight, +n for n copies added, -n for n removed.

A relation at a moment is a Z-set too; where every weight is one, the weight column is left out (``ZSet.weighted``).
Two rows are the same row when all their values are: NULL equals NULL, NaN equals NaN, and 0.0 is not -0.0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.groups import consolidated
from penstock.frames.frame import Frame, How, NotHere
from penstock.frames.names import WEIGHT
from penstock.sql.trees import Named, column, columns, tree, whole_number

REMOVED, ADDED = tree(f"{WEIGHT} < 0"), tree(f"{WEIGHT} > 0")
"""Conditions on the rows of a change."""


@dataclass(frozen=True)
class ZSet:
    """A relation at a moment: its columns, and a weight column if some weight may differ from one."""

    frame: Frame
    weighted: bool = False


@dataclass(frozen=True)
class Delta:
    """A change. ``append_only``: no weight is negative."""

    frame: Frame
    append_only: bool = False
    known: pa.Table | None = None
    """Some columns of the change, maybe with more rows than it has: enough to bound what is read for it."""


def at_hand(change: Delta) -> Delta:
    """A change with all that is known of it, if its rows are on the driver."""
    table = change.frame.rows()
    return change if table is None else replace(change, known=table)


def narrowed(table: pa.Table, names: Sequence[str]) -> pa.Table | None:
    """Some columns of a change on the driver, consolidated; None when Arrow cannot compare the values."""
    try:
        return consolidated(table.select([*names, WEIGHT]), WEIGHT)
    except NotHere:
        return None


def add(frames: Sequence[Frame]) -> Frame:
    """The sum of Z-sets over the same columns."""
    return reduce(lambda total, frame: total.union(frame), frames)


def weighted(frame: Frame, weight: int) -> Frame:
    """Every row with the same weight."""
    return frame.select([*columns(frame.columns), (WEIGHT, whole_number(weight))])


def negated(frame: Frame) -> Frame:
    """What takes a change back."""
    names = [name for name in frame.columns if name != WEIGHT]
    return frame.select([*columns(names), (WEIGHT, tree(f"-{WEIGHT}"))])


def with_weight(rows: ZSet) -> Frame:
    return rows.frame if rows.weighted else weighted(rows.frame, 1)


def plain_rows(rows: ZSet) -> Frame:
    """A relation without weights: identical rows stand separately."""
    return rows.frame.consolidated().copies() if rows.weighted else rows.frame


def totals(change: Frame) -> tuple[int, int]:
    """How many copies a change adds and how many it removes."""
    rows = change.rows()
    if rows is None:
        (found,) = change.group([], _TOTALS).arrow().to_pylist()
        return found["added"] or 0, found["removed"] or 0
    weights = rows.column(WEIGHT).to_numpy()
    return int(weights[weights > 0].sum()), -int(weights[weights < 0].sum())


_TOTALS: list[Named] = [
    ("added", tree(f"SUM(IF({WEIGHT} > 0, {WEIGHT}, 0))")),
    ("removed", tree(f"SUM(IF({WEIGHT} < 0, -{WEIGHT}, 0))")),
]


def matching(frame: Frame, keys: Frame, names: Sequence[str], *, known: Collection[str] = ()) -> Frame:
    """The rows whose values in some columns occur in ``keys``; NULL matches NULL, of which ``known`` columns have none.

    Spark looks up a single number much faster than several values, so many rows are told apart by one first.
    """
    if not names:
        return frame
    if known and len(names) > 1 and frame.rows() is None and not frame.size.in_one_task:
        types = frame.types
        number = next((name for name in names if name in known and types[name] in _NUMBERS), None)
        if number is not None:
            frame = _matched(frame, keys, [number], "left_semi", [number])
    return _matched(frame, keys, names, "left_semi", known)


_NUMBERS = ("bigint", "timestamp", "timestamp_ntz", "int", "date")


def not_matching(frame: Frame, keys: Frame, names: Sequence[str]) -> Frame:
    """The rows whose values in some columns do not occur in ``keys``; NULL matches NULL."""
    return _matched(frame, keys, names, "left_anti")


def _matched(frame: Frame, keys: Frame, names: Sequence[str], how: How, known: Collection[str] = ()) -> Frame:
    sought = keys.select([(f"__match{i}", column(name)) for i, name in enumerate(names)])
    pairs: list[exp.Expr] = []
    for i, name in enumerate(names):
        equal = exp.EQ if name in known else exp.NullSafeEQ
        pairs.append(equal(this=column(name), expression=column(f"__match{i}")))
    return frame.join(sought, pairs, how)
