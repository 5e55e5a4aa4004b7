"""TopK: the first rows in an order; rows that are equal in it come in the order of all their columns.

batch:  T(R)
delta:  T(stored + what was added) - stored, while no stored row was removed
        T(R.post) - stored, otherwise
reads:  the delta and the node's own table, which has few rows; the child when one of them was removed
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from penstock.frames import limits
from penstock.frames.arrow.frame import as_local, table_of
from penstock.frames.arrow.tables import NotHere
from penstock.frames.clock import left_to_spark
from penstock.frames.mismatch import check_removed
from penstock.frames.spark.frame import select
from penstock.frames.zset import WEIGHT, Rows, consolidate, copies, identity, plain_rows
from penstock.ivm import rules
from penstock.ivm.context import Context, Moment
from penstock.ivm.keyed import Keyed, Stored, replaced
from penstock.ivm.materialize import Materialized, Materializer
from penstock.ivm.window import orderable
from penstock.plan.operators import TopK, render
from penstock.sql.dialect import quoted
from penstock.storage.table_rows import can_tell, gone


def evaluate(layout: Keyed, context: Context, moment: Moment) -> DataFrame:
    """The first rows at a moment, as the node's table stores them."""
    op = _body(layout)
    return layout.project(_first(op, plain_rows(rules.evaluate(op.child, context, moment))))


def delta(layout: Keyed, context: Context, stored: Stored, materializer: Materializer) -> Materialized | None:
    op = _body(layout)
    change = rules.delta(op.child, context)
    if change is None:
        return None
    known = select(stored.frame, *[f"{quoted(stored)} AS {name}" for name, stored in layout.keys])
    rows = change.frame if change.append_only else consolidate(change.frame, small=change.small)
    # Where there is room for more, every row of the child is stored: one that is removed must be found.
    all_stored = op.offset == 0 and stored.snapshot.rows < op.limit
    stays = op.offset == 0 and (
        change.append_only or not _any_removed(known, rows.where(f"{WEIGHT} < 0"), all_stored=all_stored)
    )
    if stays:
        candidates = known.unionByName(copies(rows.where(f"{WEIGHT} > 0")).select(*known.columns))
        small = change.small and stored.small
    else:
        child = rules.evaluate(op.child, context, "post")
        candidates, small = plain_rows(child), child.small
    candidates = candidates.coalesce(1) if small else candidates
    anew = Rows(layout.project(_first(op, candidates)), small=op.limit <= limits.SMALL_TABLE_ROWS, light=stays)
    return replaced(layout, stored, None, anew, materializer)


def _body(layout: Keyed) -> TopK:
    body = layout.node.body
    assert isinstance(body, TopK)
    return body


def _any_removed(known: DataFrame, removed: DataFrame, *, all_stored: bool) -> bool:
    """Whether one of the known rows is among the removed. ``all_stored``: all of the removed are known."""
    here, going = table_of(known), table_of(removed)
    if here is not None and going is not None and can_tell(going, known.columns):
        found = int(gone(here, going, known.columns).sum())
        if all_stored:
            check_removed(-int(going.column(WEIGHT).to_numpy().sum()), found)
        return found > 0
    mine = select(known, *[f"{identity(f)} AS __here{i}" for i, f in enumerate(known.schema.fields)])
    others = removed.select(*known.columns)
    theirs = select(others, *[f"{identity(f)} AS __gone{i}" for i, f in enumerate(others.schema.fields)])
    same = F.expr(" AND ".join(f"__here{i} <=> __gone{i}" for i in range(len(known.columns))))
    if all_stored:
        both = theirs.join(select(mine.distinct(), "*", "true AS __found"), same, "left")
        row = select(both, "COUNT(*) AS wanted", "COUNT(__found) AS found").first()
        assert row is not None
        check_removed(row["wanted"], row["found"])
        return bool(row["found"])
    return not mine.join(theirs, same, "left_semi").isEmpty()


def _first(op: TopK, frame: DataFrame) -> DataFrame:
    rows = as_local(frame)
    if rows is not None:
        try:
            return rows.first_rows(op.order, orderable(frame, op.child.columns), op.limit, op.offset)
        except NotHere as problem:
            left_to_spark(f"ORDER BY {', '.join(render(key) for key in op.order)}", problem)
    ties = [F.expr(name) for name in orderable(frame, op.child.columns)]
    sorted_rows = frame.orderBy(*[_ordered(key) for key in op.order], *ties)
    return (sorted_rows.offset(op.offset) if op.offset else sorted_rows).limit(op.limit)


def _ordered(key: exp.Expr) -> Column:
    assert isinstance(key, exp.Ordered)
    by = F.expr(render(key.this))
    match bool(key.args.get("desc")), bool(key.args.get("nulls_first")):
        case True, True:
            return by.desc_nulls_first()
        case True, False:
            return by.desc_nulls_last()
        case False, True:
            return by.asc_nulls_first()
    return by.asc_nulls_last()
