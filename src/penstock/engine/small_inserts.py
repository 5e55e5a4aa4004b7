"""INSERT of a few rows on the driver: of values that are written down, or of a query that needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from penstock.catalog import TableRecord
from penstock.engine.assignment import Target, check_goes_into
from penstock.engine.query_here import read_query
from penstock.engine.seen import Scope, Seen, is_default, only
from penstock.frames import limits
from penstock.frames.arrow.expressions import Rows, computed
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.arrow.tables import spark_name
from penstock.frames.frame import NotHere
from penstock.sql.trees import cast, column
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
    places = {name: place for place, name in enumerate(wanted)}
    one = Rows({}, 1, seen.settings)
    found = {}
    for name, field in target.fields.items():
        given = [row[places[name]] if name in places else target.default(name) for row in rows]
        given = [target.default(name) if is_default(value) else value for value in given]
        found[field.name] = _values(given, name, target, one)
    return target.checked(ArrowFrame.of(seen.spark, pa.table(found)))


def _values(given: Sequence[exp.Expr], name: str, target: Target, one: Rows) -> pa.Array:
    """Values in the type of a column, if each of them goes there without a word."""
    field = target.fields[name]
    kind = field.dataType.simpleString()
    made, kinds = [], set()
    for value in given:
        if value.find(exp.Column, exp.Query, exp.Placeholder, exp.Parameter):
            raise NotHere("values that are not just written down")
        if not isinstance(value.unnest(), exp.Null):
            own = computed(value, one).type
            check_goes_into(spark_name(own), field)
            kinds.add(own)
        made.append(computed(cast(value, kind), one))
    _check_common(kinds)
    return pa.concat_arrays(made)


def _check_common(kinds: set[pa.DataType]) -> None:
    """Spark gives the values of a column one type first. Whether that changes one of them, it must say itself."""
    if len(kinds) > 1 and (
        any(map(pa.types.is_floating, kinds)) or any(map(pa.types.is_string, kinds)) or _digits(kinds) > _MOST_DIGITS
    ):
        raise NotHere(f"values of types {', '.join(sorted(map(spark_name, kinds)))} in one column")


_MOST_DIGITS = 38


def _digits(kinds: set[pa.DataType]) -> int:
    """How many digits it takes to hold the values of several exact types."""
    shapes = [(k.precision, k.scale) if pa.types.is_decimal(k) else (20, 0) for k in kinds if not pa.types.is_date(k)]
    return max((p - s for p, s in shapes), default=0) + max((s for _, s in shapes), default=0)
