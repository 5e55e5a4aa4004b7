"""Window: window functions over one partitioning.

batch:  W(R)
delta:  W(R.post by P) - the stored rows of P,   where P are the partitions with any change
reads:  the delta, all rows of the touched partitions, and the stored rows of them

Rows that are equal in a window's ORDER BY come in the order of all their other columns where their place matters
(ROW_NUMBER, NTILE, LAG, LEAD, ROWS frames), so a result never depends on how Spark happened to read the rows.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType
from sqlglot import exp

from penstock.frames.spark.frame import select
from penstock.frames.zset import WEIGHT, Rows, plain_rows
from penstock.ivm import partitions
from penstock.ivm.context import Context, Moment
from penstock.ivm.keyed import Keyed, Stored
from penstock.ivm.materialize import Materialized, Materializer
from penstock.plan.aggregates import name_of
from penstock.plan.operators import Window, column, render

_BY_PLACE = frozenset("row_number ntile lag lead".split())
_BY_FRAME = frozenset("rank dense_rank percent_rank cume_dist".split())


def evaluate(layout: Keyed, context: Context, moment: Moment) -> DataFrame:
    op = _body(layout)
    return partitions.evaluate(layout, op.child, partial(_computed, op), context, moment)


def delta(layout: Keyed, context: Context, stored: Stored, materializer: Materializer) -> Materialized | None:
    op = _body(layout)
    computed = partial(_computed, op)
    return partitions.delta(layout, op.child, op.partition, computed, context, stored, materializer, every_row=True)


def _body(layout: Keyed) -> Window:
    body = layout.node.body
    assert isinstance(body, Window)
    return body


def _computed(op: Window, rows: Rows) -> DataFrame:
    frame = plain_rows(rows)
    frame = frame.coalesce(1) if rows.small else frame
    ties = orderable(frame, op.child.columns)
    return select(frame, "*", *[f"{render(_with_ties(f, ties))} AS {name}" for name, f in op.functions])


def orderable(frame: DataFrame, columns: tuple[str, ...]) -> list[str]:
    """The columns that Spark can sort by."""
    return [name for name in columns if name != WEIGHT and has_order(frame.schema[name].dataType)]


def has_order(data_type: DataType) -> bool:
    """Whether Spark can sort by values of the type."""
    match data_type:
        case MapType():
            return False
        case ArrayType(elementType=inner):
            return has_order(inner)
        case StructType(fields=fields):
            return all(has_order(f.dataType) for f in fields)
    return data_type.typeName() not in ("variant", "interval", "calendarinterval")


def _with_ties(function: exp.Expr, ties: list[str]) -> exp.Expr:
    """The function with its order made total, if the place of equal rows matters to it."""
    assert isinstance(function, exp.Window)
    name, order, spec = name_of(function.this), function.args.get("order"), function.args.get("spec")
    if order is None or name in _BY_FRAME:
        return function
    by_rows = spec is not None and spec.args.get("kind") == "ROWS"
    first = name in ("first", "first_value") and spec is None and not isinstance(function.this, exp.IgnoreNulls)
    if not (name in _BY_PLACE or by_rows or first):
        return function
    total = function.copy()
    used = {e.this.name for e in order.expressions if isinstance(e.this, exp.Column)}
    partition = {e.name for e in function.args.get("partition_by") or ()}
    more = [exp.Ordered(this=column(c), nulls_first=True) for c in ties if c not in used | partition]
    total.args["order"].set("expressions", [*total.args["order"].expressions, *more])
    if first:  # the first of all rows is the same for every row, so the frame may count rows
        total.set("spec", exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"))
    return total
