"""Subqueries in conditions and values: where they stand for themselves, what they give takes their place."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from penstock.engine.query_here import read_query
from penstock.engine.seen import Seen
from penstock.frames import limits
from penstock.frames.arrow.tables import spark_name
from penstock.frames.bounded import literal
from penstock.frames.frame import NotHere
from penstock.sql.trees import cast


def answered(tree: exp.Expr, seen: Seen) -> exp.Expr:
    """An expression without its subqueries; one that asks for values of the row around it is Spark's."""
    if not tree.find(exp.Query):
        return tree
    holder = exp.Paren(this=tree.copy())
    while (found := holder.find(exp.Query)) is not None:
        around = found.parent
        if isinstance(found, exp.Subquery) and isinstance(around, exp.In) and found.arg_key == "query":
            around.replace(_among(around, found.this, seen))
        elif isinstance(found, exp.Subquery):
            found.replace(_value(found.this, seen))
        else:
            raise NotHere("EXISTS, or a subquery of another form")
    return holder.this.pop()


def _among(test: exp.In, query: exp.Expr, seen: Seen) -> exp.Expr:
    """IN over a list of what a query gives."""
    values = _column(query, seen)
    distinct = values.unique()
    if len(distinct) > limits.CONDITION_VALUES:
        raise NotHere(f"more than {limits.CONDITION_VALUES} values of a subquery")
    if not len(distinct):
        return exp.Boolean(this=False)
    return exp.In(this=test.this.copy(), expressions=[_written(value) for value in distinct])


def _value(query: exp.Expr, seen: Seen) -> exp.Expr:
    """The one value that a query gives; NULL if it gives none."""
    values = _column(query, seen)
    if len(values) > 1:
        raise NotHere("a subquery of several rows")
    return _written(values[0]) if len(values) else cast(exp.Null(), spark_name(values.type))


def _column(query: exp.Expr, seen: Seen) -> pa.Array:
    rows = read_query(query, seen).rows.table
    if rows.num_columns != 1:
        raise NotHere("a subquery of several columns")
    return rows.column(0).combine_chunks() if rows.num_rows else pa.array([], rows.schema.field(0).type)


def _written(value: pa.Scalar) -> exp.Expr:
    """A value as an expression of its type."""
    try:
        found = literal(value.as_py())
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise NotHere(f"a subquery of type {spark_name(value.type)}")
    return cast(found, spark_name(value.type))
