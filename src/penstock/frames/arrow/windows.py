"""Places of rows among others, on the driver: ROW_NUMBER, RANK and DENSE_RANK over partitions and orders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.frames.arrow.expressions.types import has_floats
from penstock.frames.arrow.expressions.values import Rows, check_arguments, computed
from penstock.frames.arrow.groups import Groups, Numbers, ranks, together
from penstock.frames.frame import NotHere


def placed(window: exp.Window, rows: Rows) -> pa.Array:
    """The value of a window function for each row."""
    function, order = window.this, window.args.get("order")
    if not isinstance(function, exp.RowNumber | exp.Rank | exp.DenseRank) or order is None:
        raise NotHere
    check_arguments(window, ("this", "partition_by", "order", "over"))
    check_arguments(function, ())
    check_arguments(order, ("expressions",))
    partition = [computed(e, rows) for e in window.args.get("partition_by") or ()]
    if any(has_floats(values.type) for values in partition):
        raise NotHere
    group = Groups(partition, rows.count).of
    by = together(ordered(order.expressions, rows))
    sequence = np.lexsort((by, group))
    first = _begins(group[sequence])
    place = np.arange(rows.count) - np.maximum.accumulate(np.where(first, np.arange(rows.count), 0))
    if not isinstance(function, exp.RowNumber):
        new = first | _begins(by[sequence])
        if isinstance(function, exp.Rank):
            place = place[np.maximum.accumulate(np.where(new, np.arange(rows.count), 0))] if rows.count else place
        else:
            count = np.cumsum(new)
            place = (
                count - count[np.maximum.accumulate(np.where(first, np.arange(rows.count), 0))] if rows.count else place
            )
    found = np.empty(rows.count, np.int32)
    found[sequence] = place + 1
    return pa.array(found)


def ordered(keys: Sequence[exp.Expr], rows: Rows) -> list[Numbers]:
    """Numbers in the order that ORDER BY gives the rows, one for each key."""
    return [_ordered(key, rows) for key in keys]


def _ordered(key: exp.Expr, rows: Rows) -> Numbers:
    if not isinstance(key, exp.Ordered):
        raise NotHere
    check_arguments(key, ("this", "desc", "nulls_first"))
    number = ranks(computed(key.this, rows))  # NULL has 0, and comes before all others
    down, first = bool(key.args.get("desc")), bool(key.args.get("nulls_first"))
    signed = -number if down else number
    if first == (not down):
        return signed
    far = int(number.max(initial=0)) + 1
    return np.where(number == 0, -far if first else far, signed)


def _begins(values: Numbers) -> Numbers:
    """Whether another value stands before each."""
    return np.concatenate([np.ones(min(len(values), 1), np.bool_), values[1:] != values[:-1]])
