"""Join: the inner join of any number of inputs.

batch:  A x B x .. x Z, filtered by all conditions, weights multiplied
delta:  for each changed input i:  A.post x .. x (i-1).post x dI x (i+1).pre x .. x Z.pre, summed
reads:  the deltas, and of the other inputs the rows that join them

Every term starts from the delta and goes on to an input that a condition connects, so the delta bounds what follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.plan.operators import Join, names_in, render
from penstock.storage.zset import WEIGHT, Delta, Rows, add


def evaluate(op: Join, context: Context, moment: Moment) -> Rows:
    inputs = [rules.evaluate(child, context, moment) for child in op.inputs]
    return _joined(inputs[0], list(inputs[1:]), op.conditions, list(op.columns), broadcast=False)


def delta(op: Join, context: Context) -> Delta | None:
    changes = [rules.delta(child, context) for child in op.inputs]
    terms = []
    for i, change in enumerate(changes):
        if change is None:
            continue
        others = [
            rules.evaluate(child, context, "post" if j < i and changes[j] is not None else "pre")
            for j, child in enumerate(op.inputs)
            if j != i
        ]
        start = Rows(change.frame, weighted=True)
        terms.append(_joined(start, others, op.conditions, list(op.columns), broadcast=change.small).frame)
    present = [change for change in changes if change is not None]
    if not present:
        return None
    return Delta(add(terms), append_only=all(change.append_only for change in present))


def _joined(
    start: Rows, others: list[Rows], conditions: Sequence[exp.Expr], columns: list[str], *, broadcast: bool
) -> Rows:
    """Join the others to the start one by one, each condition applied as soon as its columns are there.

    ``broadcast``: the start has few rows, and what it joins is taken to be few too, so the others are not shuffled.
    """
    pending = [(condition, names_in(condition)) for condition in conditions]
    frame, weighted = _numbered(start, 0)
    known = {c for c in frame.columns if c != _weight(0)}
    weights = [_weight(0)] if weighted else []
    for number in range(1, len(others) + 1):
        place = _next_input(others, known, pending)
        other, other_weighted = _numbered(others.pop(place), number)
        known |= {c for c in other.columns if c != _weight(number)}
        ready = [condition for condition, names in pending if names <= known]
        pending = [(condition, names) for condition, names in pending if not names <= known]
        left = F.broadcast(frame) if broadcast else frame
        on = F.expr(" AND ".join(f"({render(c)})" for c in ready)) if ready else None
        frame = left.crossJoin(other) if on is None else left.join(other, on)
        weights += [_weight(number)] if other_weighted else []
    if not weights:
        return Rows(frame.select(*columns), weighted=False)
    product = f"{' * '.join(weights)} AS {WEIGHT}"
    return Rows(frame.selectExpr(*columns, product), weighted=True)


def _weight(number: int) -> str:
    return f"__weight{number}"


def _numbered(rows: Rows, number: int) -> tuple[DataFrame, bool]:
    """The frame with its weight under a name of its own, since both sides of a join may have one."""
    if not rows.weighted:
        return rows.frame, False
    return rows.frame.withColumnRenamed(WEIGHT, _weight(number)), True


def _next_input(others: list[Rows], known: set[str], pending: list[tuple[exp.Expr, set[str]]]) -> int:
    """The first input that an equality connects to what is joined already, else any condition, else the first."""
    for kind in (exp.EQ | exp.NullSafeEQ, exp.Expr):
        for place, other in enumerate(others):
            columns = set(other.frame.columns)
            for condition, names in pending:
                connects = names & known and names & columns and names <= known | columns
                if connects and isinstance(condition.unnest(), kind):
                    return place
    return 0
