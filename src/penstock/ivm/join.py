"""Join: the inner join of any number of inputs.

batch:  A x B x .. x Z, filtered by all conditions, weights multiplied
delta:  for each changed input i:  A.post x .. x (i-1).post x dI x (i+1).pre x .. x Z.pre, summed
reads:  the deltas, and of the other inputs the rows that join them

Every term starts from the delta and goes on to an input that a condition connects, so the delta bounds what follows.

>>> from penstock.ivm.in_memory import change, table
>>> orders = table("item n", [("pen", 2), ("ink", 1)], new=[("pen", 5)])
>>> prices = table("item price", [("pen", 3), ("ink", 9)], gone=[("ink", 9)], new=[("ink", 8)])
>>> change("SELECT item, n, price FROM orders JOIN prices USING (item)", orders=orders, prices=prices)
+1  ink  1  8
-1  ink  1  9
+1  pen  5  3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.frame import Frame
from penstock.frames.names import WEIGHT
from penstock.frames.sizes import UNKNOWN
from penstock.frames.zset import Delta, ZSet, add
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.ivm.touched import joined_by, joining, sought
from penstock.plan.operators import Join, Operator, Scan, names_in, walk
from penstock.sql.trees import column, columns, product


def evaluate(op: Join, context: Context, moment: Moment) -> ZSet:
    start = rules.evaluate(op.inputs[0], context, moment)
    return _Term(op, start, [_Input(child, context, moment) for child in op.inputs[1:]]).joined()


def delta(op: Join, context: Context) -> Delta | None:
    changes = [rules.delta(child, context) for child in op.inputs]
    terms = []
    for i, change in enumerate(changes):
        if change is None:
            continue
        others = [
            _Input(child, context, "post" if j < i and changes[j] is not None else "pre")
            for j, child in enumerate(op.inputs)
            if j != i
        ]
        terms.append(_Term(op, ZSet(change.frame, weighted=True), others, change, context).joined())
    present = [change for change in changes if change is not None]
    if not present:
        return None
    return Delta(add([term.frame for term in terms]), append_only=all(change.append_only for change in present))


@dataclass(frozen=True)
class _Input:
    """An input at a moment."""

    operator: Operator
    context: Context
    moment: Moment

    def rows(self) -> ZSet:
        return rules.evaluate(self.operator, self.context, self.moment)

    @property
    def large(self) -> bool:
        """Whether it reads so many rows that it pays to know which of them are wanted."""
        scans = [op for op in walk(self.operator) if isinstance(op, Scan)]
        return any(self.context.count(scan) > limits.SMALL_TABLE_ROWS for scan in scans)

    def joining(self, known: pa.Table | None, conditions: Sequence[exp.Expr]) -> ZSet:
        """Of a large input, the rows that can be joined to the known ones, and maybe others."""
        equal = joined_by(known, conditions, self.operator)
        keys = sought(self.operator, known, equal, utc=self.context.utc)
        near = self.rows() if keys is None else replace(self, context=self.context.near(None, keys)).rows()
        return near if near.frame.size.in_one_task else replace(near, frame=joining(near.frame, known, conditions))


class _Term:
    """One product: the others are joined to the start one by one, each condition applied as soon as it can be.

    From a change on the driver on, what is joined so far is taken to be few rows: it is sent to all executors, and
    before it meets a large input it is computed, so that its keys can bound what is read of that.
    """

    def __init__(
        self, op: Join, start: ZSet, others: Sequence[_Input], change: Delta | None = None,
        context: Context | None = None,
    ):  # fmt: skip
        self._columns = list(op.columns)
        self._pending = [(condition, names_in(condition)) for condition in op.conditions]
        self._others = list(others)
        self._frame, weighted = _numbered(start, 0)
        self._weights = [_weight(0)] if weighted else []
        self._known = {c for c in self._frame.columns if c != _weight(0)}
        self._context = context if change is not None and change.frame.size.surely_on_driver else None
        self._rows = change.known if change is not None else None

    def joined(self) -> ZSet:
        for number in range(1, len(self._others) + 1):
            self._join(self._others.pop(_next_input(self._others, self._known, self._pending)), number)
        if not self._weights:
            return ZSet(self._frame.only(self._columns))
        weight = product(column(name) for name in self._weights)
        return ZSet(self._frame.select([*columns(self._columns), (WEIGHT, weight)]), weighted=True)

    def _join(self, other: _Input, number: int) -> None:
        self._known |= set(other.operator.columns)
        ready = [condition for condition, names in self._pending if names <= self._known]
        self._pending = [(condition, names) for condition, names in self._pending if not names <= self._known]
        equal = any(isinstance(c.unnest(), exp.EQ | exp.NullSafeEQ) for c in ready)
        rows = other.joining(self._rows_so_far(), ready) if equal and other.large else other.rows()
        frame, weighted = _numbered(rows, number)
        self._frame = self._frame.join(frame, ready, few=self._context is not None)
        if not equal:  # the product of few rows may be many
            self._frame = self._frame.expecting(self._frame.size if self._context is not None else UNKNOWN)
        self._weights += [_weight(number)] if weighted else []
        self._rows = None

    def _rows_so_far(self) -> pa.Table | None:
        """What is joined so far, computed; None when that is not on the driver."""
        if self._context is None or self._rows is not None:
            return self._rows
        self._frame = self._context.keep(self._frame)
        found = self._frame.rows()
        if found is None:
            self._context = None
        return found


def _weight(number: int) -> str:
    return f"__weight{number}"


def _numbered(rows: ZSet, number: int) -> tuple[Frame, bool]:
    """The frame with its weight under a name of its own, since both sides of a join may have one."""
    if not rows.weighted:
        return rows.frame, False
    return rows.frame.renamed({WEIGHT: _weight(number)}), True


def _next_input(others: list[_Input], known: set[str], pending: list[tuple[exp.Expr, set[str]]]) -> int:
    """The first input that an equality connects to what is joined already, else any condition, else the first."""
    for kind in (exp.EQ | exp.NullSafeEQ, exp.Expr):
        for place, other in enumerate(others):
            columns = set(other.operator.columns)
            for condition, names in pending:
                connects = names & known and names & columns and names <= known | columns
                if connects and isinstance(condition.unnest(), kind):
                    return place
    return 0
