"""Window functions where rows come at the end of a partition's order: the last rows of it are enough.

delta:  W(T + dR) - the stored rows of T that see dR,   where T are the last stored rows of the touched partitions
reads:  the delta, and T of the node's own table: rows that see new ones, rows that all of these see, the row before; of
        the child only what a function needs of T and the table does not have

How far that is, ``plan.window_reach`` tells. A row in the middle of the order only makes T longer. All is computed
where the rows are, on the driver; whatever is not certain there gives None, and the partitions are made anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.frame import Frame
from penstock.frames.names import LOCATED
from penstock.frames.zset import REMOVED, Delta, ZSet, add, matching, plain_rows, weighted
from penstock.ivm import rules
from penstock.ivm.context import Context, Stored
from penstock.ivm.keyed import Keyed, holding
from penstock.ivm.touched import Touched, sought, touched
from penstock.ivm.window_order import tie_breakers
from penstock.ivm.window_resumed import CUT, LAST, NEW, PLACE, START, Ending, Uncertain, over, valued, was
from penstock.sql.trees import all_of, any_of, column, columns, tree, whole_number

_PEER, _TIED, _COUNT = "__tail_peer", "__tail_tied", "__tail_count"
_FOUND_BY = (pa.types.is_integer, pa.types.is_date32, pa.types.is_timestamp, pa.types.is_string)
"""Types of keys by which rows are found in a large table; what else is in the order tells them apart afterwards."""

_TOUCHED = tree("p >= s", p=column(PLACE), s=column(START))
_STORED = tree("NOT n", n=column(NEW))


def delta(layout: Keyed, context: Context, stored: Stored, change: Delta) -> Frame | None:
    """The change of the node's table, given that of its child; None if more than the end matters, or may matter."""
    if stored.count < limits.TAIL_LEAST_ROWS:
        return None
    ending, new = Ending.of(layout), _inserted(change)
    if ending is None or new is None or any("<" in kind for kind in new.types.values()):
        return None
    groups = touched(change, ending.partition, context.keep)
    if groups is not None and groups.table is None:
        return None
    try:
        return context.keep(_Tail(ending, context, stored, groups, new).change())
    except Uncertain:
        return None


def _inserted(change: Delta) -> Frame | None:
    """The rows of a change that only inserts, if they are few and on the driver."""
    rows = change.frame.rows()
    if rows is None or not 0 < rows.num_rows <= limits.LOCAL_ROWS:
        return None
    if not change.append_only and change.frame.consolidated().any(REMOVED):
        return None
    return plain_rows(ZSet(change.frame, weighted=True))


class _Tail:
    """The new rows of some partitions, and as many of the stored ones before and behind them as matter."""

    def __init__(self, ending: Ending, context: Context, stored: Stored, groups: Touched | None, new: Frame):
        self._ending = ending
        self._context = context
        self._layout = ending.layout
        self._stored = stored
        self._groups = groups
        self._new = new.select([*columns(ending.below), (NEW, exp.Boolean(this=True))])
        self._beside: Sequence[str] = ()

    def change(self) -> Frame:
        ending = self._ending
        old = self._old()
        was_there = [name for name in old.columns if name not in (*ending.below, NEW)]
        both = self._placed(old.union(self._new.with_nulls(old, was_there)), ties=ending.ties)
        self._check(both)
        rows = valued(ending, both).where(_TOUCHED)
        gone = rows.where(_STORED).select(
            [*((name, column(was(name))) for name in self._layout.stored), *columns(self._beside)]
        )
        anew = self._layout.project(rows)
        beside = [(name, exp.Null()) for name in self._beside]
        come = anew.select([*columns(anew.columns), *beside]) if beside else anew
        return add([weighted(gone, -1), weighted(come, 1)]).consolidated(self._beside)

    # -- reading ------------------------------------------------------------------------------------------------------

    def _old(self) -> Frame:
        """The stored rows that may matter, under the names of the child's columns and under those of the table."""
        ending, keys = self._ending, self._last_keys()
        found = self._of_partitions(self._stored) if keys is None else self._nearby(keys)
        if found.worth_locating and found.expected <= limits.LOCATED_ROWS:
            self._beside = LOCATED
        table = _here(found.read(located=bool(self._beside)))
        named = table.select([
            *((name, column(stored)) for name, stored in ending.shown.items()),
            *((was(name), column(name)) for name in self._layout.stored), *columns(self._beside),
            (NEW, exp.Boolean(this=False)),
        ])  # fmt: skip
        if keys is not None:
            named = self._having(keys, named)  # others may be among them, of which the neighbours were not read
        elif self._groups is not None:
            named = self._groups.of(named)
        return _here(self._completed(named) if ending.missing else named)

    def _of_partitions(self, stored: Stored) -> Stored:
        return stored if self._groups is None else holding(stored, self._groups, self._layout.stored_keys)

    def _nearby(self, keys: Frame) -> Stored:
        found = keys.rows()
        if found is None or not found.num_rows:  # where no stored row matters, new ones find none
            found = self._keys_of(self._new).rows()
        names = self._ending.order_columns
        kinds = {name: found.schema.field(name).type for name in names.values()} if found is not None else {}
        by = {stored: name for stored, name in names.items() if any(is_a(kinds[name]) for is_a in _FOUND_BY)}
        return self._stored.near(found, by)

    def _last_keys(self) -> Frame | None:
        """The partition and order of the last rows, told by a look at these columns alone; None if that is no use."""
        names = self._ending.order_columns
        if self._groups is None or not names or self._stored.count < limits.LOOKUP_LEAST_ROWS:
            return None
        narrow = self._stored.only(tuple(names)).looked_up(self._groups.table, self._layout.stored_keys)
        return None if narrow is None else self._last_of(self._groups.of(narrow.read().renamed(names)))

    def _last_of(self, old: Frame) -> Frame:
        """The partition and order of those of the rows that matter."""
        names = list(self._ending.order_columns.values())
        stored = _here(old).select([*columns(names), (NEW, exp.Boolean(this=False))])
        return self._keys_of(self._placed(stored.union(self._new.only([*names, NEW])), ties=None).where(_STORED))

    def _keys_of(self, rows: Frame) -> Frame:
        names = list(self._ending.order_columns.values())
        return _here(rows.only(names).group(names, []))

    def _having(self, keys: Frame, rows: Frame) -> Frame:
        return matching(rows, keys, tuple(self._ending.order_columns.values()))

    def _completed(self, old: Frame) -> Frame:
        """The stored rows with the columns of the child that the table does not have; NULL, if these do not matter."""
        ending = self._ending
        if not ending.reads_child:
            return old.with_nulls(self._new, ending.missing)
        keys = self._last_of(old)
        old, names = self._having(keys, old), tuple(ending.order_columns.values())
        places = sought(ending.op.child, keys.rows(), {name: column(name) for name in names}, utc=self._context.utc)
        below = plain_rows(rules.evaluate(ending.op.child, self._context.near(None, places), "pre"))
        theirs = {name: f"__tail_below{i}" for i, name in enumerate(names)}
        beside = _here(self._having(keys, _here(below))).select(
            [*columns(ending.missing), *((theirs[name], column(name)) for name in names)]
        )
        equal = [exp.NullSafeEQ(this=column(name), expression=column(other)) for name, other in theirs.items()]
        return old.join(beside, equal, few=True).only([*old.columns, *ending.missing])

    # -- order --------------------------------------------------------------------------------------------------------

    def _placed(self, rows: Frame, ties: Sequence[str] | None) -> Frame:
        """Those of the rows that matter, each with its place, and that of the first whose value may be another.

        Without ``ties``, rows that are equal in the order may be in any order: then all of them matter alike.
        """
        ending = self._ending
        by, edges = ending.order, [f for f in ending.functions if f.by_amount]
        total = [*by, *tie_breakers(ending.functions[0].window, ties or ()), exp.Ordered(this=column(NEW))]
        rows = rows.windows([
            (PLACE, over(exp.RowNumber(), ending.partition, total)),
            (LAST, over(tree("COUNT(*)"), ending.partition, by)),
            (_PEER, over(exp.Rank(), ending.partition, by)),
        ])  # fmt: skip
        first = tree("MIN(IF(n, p, NULL))", n=column(NEW), p=column(_PEER if ties is None else PLACE))
        rows = rows.windows([(CUT, over(first, ending.partition)), *(named for f in edges for named in f.edges)])
        rows = rows.windows([(name, over(value, ending.partition)) for name, value in ending.starts])
        back = [tree("s - n", s=column(START), n=whole_number(ending.rows_before))]
        if edges:
            rows = rows.windows([(f.needed, over(f.needs, ending.partition)) for f in edges])
            back += [column(f.needed) for f in edges]
        return _here(rows.where(any_of(tree("last >= b", last=column(LAST), b=b) for b in back)))

    def _check(self, rows: Frame) -> None:
        """Whether the order is certain: each row has one place, as far as places matter."""
        ending = self._ending
        if ending.missing and rows.any(all_of([_STORED, tree("l > p", l=column(LAST), p=column(_PEER))])):
            raise Uncertain
        if ending.missing and not ending.reads_child:
            behind = [tree("a > c", a=column(PLACE), c=column(CUT)), *([_TOUCHED] if ending.shows_missing else [])]
            if rows.any(all_of([_STORED, any_of(behind)])):
                raise Uncertain
        table = rows.rows()
        zeros = table is not None and any(map(_has_minus_zero, table.select(list(ending.below)).columns))
        if ending.ties and zeros and self._has_equal_rows(rows):
            raise Uncertain

    def _has_equal_rows(self, rows: Frame) -> bool:
        """Whether rows that are not the same have one place: 0.0 and -0.0 are equal in every order."""
        ending = self._ending
        total = [*ending.order, *tie_breakers(ending.functions[0].window, ending.ties)]
        tied = rows.windows([(_TIED, over(exp.Rank(), ending.partition, total))]).only([*ending.below, _TIED])
        distinct = weighted(tied, 1).consolidated()
        counted = distinct.windows([(_COUNT, over(tree("COUNT(*)"), (*ending.partition, _TIED)))])
        return counted.any(tree("c > 1", c=column(_COUNT)))


def _has_minus_zero(values: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(values.type):
        return False
    number = values.drop_null().to_numpy()
    return bool((np.signbit(number) & (number == 0)).any())


def _here(frame: Frame) -> Frame:
    if frame.rows() is None:
        raise Uncertain
    return frame
