"""UPDATE and DELETE of a few rows on the driver: the rows that are meant, and what is to be in their place."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from penstock.catalog import TableRecord
from penstock.engine.answered import answered
from penstock.engine.assignment import Target
from penstock.engine.seen import Scope, Seen, only, resolved, rows_where
from penstock.engine.sought import sought_by
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.frame import NotHere
from penstock.frames.names import FILE, LOCATED, PLACE
from penstock.storage.patch import Places, by_file
from penstock.storage.reader import schema_of
from penstock.storage.row_change import RowChange, are_counted


def changed(tree: exp.Update | exp.Delete, table: TableRecord, seen: Seen) -> RowChange:
    """What an UPDATE or a DELETE changes."""
    only(tree, "this", "where", "expressions")
    if not isinstance(tree.this, exp.Table):
        raise NotHere("a form that only Spark reads")
    only(tree.this, "this", "alias", "db", "catalog")
    target = Target(seen, seen.table(table), marking=True)
    scopes = [Scope.of(tree.this, target.names)]
    where = tree.args.get("where")
    condition = None if where is None else resolved(answered(where.this, seen), scopes)
    values = target.assigned(_pairs(tree, seen), scopes[0].name, scopes)
    rows = _meant(seen, target, condition)
    places = places_of(target, rows)
    old = rows.table.drop_columns(list(LOCATED))
    if isinstance(tree, exp.Delete):
        return RowChange(table=target.table, operation="DELETE", gone=places, deleted=old)
    new = target.written(rows, values, {name: field.name for name, field in target.fields.items()})
    return RowChange(table=target.table, operation="UPDATE", gone=places, before=old, after=new)


def _pairs(tree: exp.Update | exp.Delete, seen: Seen) -> Sequence[tuple[exp.Expr, exp.Expr]]:
    """What SET says."""
    if isinstance(tree, exp.Delete):
        return []
    if not tree.expressions or not all(isinstance(pair, exp.EQ) for pair in tree.expressions):
        raise NotHere("a form of SET that only Spark reads")
    return [(pair.this, answered(pair.expression, seen)) for pair in tree.expressions]


def _meant(seen: Seen, target: Target, condition: exp.Expr | None) -> ArrowFrame:
    """The rows of the table that fulfil a condition, with their places."""
    if condition is None:
        return rows_where(seen, target.table, None)
    wanted = sought_by(condition, schema_of(target.table), seen.settings)
    return true_rows(rows_where(seen, target.table, wanted), condition)[0]


def true_rows(rows: ArrowFrame, condition: exp.Expr) -> tuple[ArrowFrame, ArrowFrame]:
    """The rows for which a condition is true, and the others."""
    found = rows.value_of(condition)
    if not pa.types.is_boolean(found.type):
        raise NotHere("a condition that is not BOOLEAN")
    true = found.fill_null(False)
    return rows.kept(true), rows.kept(pc.invert(true))


def places_of(target: Target, rows: ArrowFrame) -> Places:
    """Where rows lie, file by file."""
    places = by_file(target.table, rows.table.select([FILE, PLACE]))
    if not are_counted(target.table, places):
        raise NotHere("the log does not say how many rows a file has")
    return places
