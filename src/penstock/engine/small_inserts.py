"""INSERT of a few rows on the driver: of values that are written down, or of a query that needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from penstock.catalog import TableRecord
from penstock.engine.assignment import Target
from penstock.engine.query_here import read_query
from penstock.engine.seen import Scope, Seen, is_default, only
from penstock.engine.written_values import written_columns
from penstock.frames import limits
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.frame import NotHere
from penstock.sql.trees import column
from penstock.storage.row_change import RowChange


def inserted(tree: exp.Insert, table: TableRecord, seen: Seen) -> RowChange:
    """The rows that an INSERT adds."""
    only(tree, "this", "expression", "by_name")
    named = isinstance(tree.this, exp.Schema)
    only(tree.this.this if named else tree.this, "this", "db", "catalog")
    names = [part.name for part in tree.this.expressions] if named else None
    target = Target(seen, seen.table(table), marking=False)
    if isinstance(tree.expression, exp.Values) and not tree.args.get("by_name"):
        rows = _written(target, tree.expression, names, seen)
        return RowChange(table=target.table, operation="WRITE", inserted=rows, blind=True)
    if not isinstance(tree.expression, exp.Query) or (named and tree.args.get("by_name")):
        raise NotHere("a form of INSERT that only Spark reads")
    found = read_query(tree.expression, seen)
    if found.rows.table.num_rows > limits.LOCAL_ROWS:
        raise NotHere(f"more than {limits.LOCAL_ROWS:,} rows are inserted")
    if tree.args.get("by_name"):
        names = found.sure_names()
    rows = _of_query(target, found.rows, list(target.fields) if names is None else names)
    blind = table.key not in found.reads
    return RowChange(table=target.table, operation="WRITE", inserted=rows, blind=blind)


def _of_query(target: Target, rows: ArrowFrame, names: Sequence[str]) -> pa.Table:
    scope = Scope("", {name: name for name in rows.columns})
    values = target.inserted(names, [column(name) for name in rows.columns], [scope])
    return target.written(rows, values)


def _written(target: Target, values: exp.Values, names: Sequence[str] | None, seen: Seen) -> pa.Table:
    """The rows in the types of the table; columns that are not named have their defaults."""
    rows = [list(row.expressions) for row in values.expressions if isinstance(row, exp.Tuple)]
    if len(rows) != len(values.expressions) or values.args.get("alias"):
        raise NotHere("a form of VALUES that only Spark reads")
    wanted = list(target.fields) if names is None else [name.lower() for name in names]
    if len(set(wanted)) < len(wanted) or not set(wanted) <= set(target.fields):
        raise NotHere("columns that the table does not have, or twice")
    if any(len(row) != len(wanted) for row in rows):
        raise NotHere("rows of another length than the columns")
    given = [[target.default(n) if is_default(v) else v for n, v in zip(wanted, row, strict=True)] for row in rows]
    columns = written_columns(given, seen.settings)
    frame = ArrowFrame.of(seen.spark, pa.table(columns, names=[f"v{place}" for place in range(len(columns))]))
    nothing = {place for place, values in enumerate(columns) if pa.types.is_null(values.type)}
    named = [exp.Null() if place in nothing else column(name) for place, name in enumerate(frame.columns)]
    return target.written(frame, target.inserted(wanted, named, [Scope("", {name: name for name in frame.columns})]))
