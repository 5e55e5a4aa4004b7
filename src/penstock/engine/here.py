"""Statements that need no Spark: a few rows inserted as they are written down, and a few rows read of a table or view.

What is not surely the same here and there gives None, and Spark does it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from pyspark.sql.types import DataType, StructType
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.catalog import TableRecord, World
from penstock.errors import PenstockError
from penstock.frames.arrow.expressions import written_rows
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.arrow.tables import spark_name
from penstock.frames.frame import Frame
from penstock.frames.settings import Settings
from penstock.frames.spark.session import SparkOnDemand
from penstock.plan import Unsupported, build
from penstock.plan.operators import Filter, Operator, Project, Scan
from penstock.sql.dialect import SparkSql
from penstock.sql.query import parse_query
from penstock.sql.statements import TableStatement
from penstock.sql.trees import cast, column
from penstock.storage.appending import append, can_append
from penstock.storage.delta_log import Snapshot
from penstock.storage.pinned import Pinned
from penstock.storage.reader import schema_of

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "double")
_TAKEN = {
    **dict.fromkeys(_NUMBERS, _NUMBERS), "string": ("string",), "boolean": ("boolean",), "date": ("date", "string"),
    "timestamp": ("timestamp", "string"), "timestamp_ntz": ("timestamp_ntz",),
}  # fmt: skip
"""Types of columns, and which values go into them without a word."""


def insert(statement: TableStatement, table: TableRecord, settings: Settings) -> int | None:
    """INSERT INTO .. VALUES of values that are written down; gives the number of rows, None if Spark must do it."""
    if statement.verb != "INSERT" or table.external:
        return None
    given = _written(statement.text)
    snapshot = Snapshot(table.path)
    if given is None or not can_append(snapshot):
        return None
    rows = _typed(given, schema_of(snapshot), settings)
    if rows is None:
        return None
    append(snapshot, rows, table.name)
    return rows.num_rows


def _written(text: str) -> tuple[list[str] | None, list[list[exp.Expr]]] | None:
    """The columns that are named, if any are, and the rows."""
    try:
        tree = sqlglot.parse_one(text, dialect=SparkSql)
    except (SqlglotError, RecursionError):
        return None
    if not isinstance(tree, exp.Insert) or not isinstance(tree.expression, exp.Values):
        return None
    if any(tree.args.get(name) for name in tree.args if name not in ("this", "expression")):
        return None
    rows = [list(row.expressions) for row in tree.expression.expressions if isinstance(row, exp.Tuple)]
    if len(rows) != len(tree.expression.expressions) or tree.expression.args.get("alias"):
        return None
    names = [e.name for e in tree.this.expressions] if isinstance(tree.this, exp.Schema) else None
    return names, rows


def _typed(
    given: tuple[list[str] | None, list[list[exp.Expr]]], schema: StructType, settings: Settings
) -> pa.Table | None:
    """The rows in the types of the table; columns that are not named are NULL."""
    known = {field.name.lower(): field for field in schema.fields}
    names = [name.lower() for name in given[0]] if given[0] is not None else list(known)
    rows = given[1]
    if len(set(names)) < len(names) or not set(names) <= set(known) or any(len(row) != len(names) for row in rows):
        return None
    places = {name: place for place, name in enumerate(names)}
    columns = []
    for name, field in known.items():
        values = [row[places[name]] if name in places else exp.Null() for row in rows]
        made = [_value(value, field.dataType, settings) for value in values]
        if any(one is None for one in made):
            return None
        columns.append(pa.concat_arrays([one for one in made if one is not None]))
        if columns[-1].null_count and not field.nullable:
            return None
    return pa.table(columns, names=schema.names)


def _value(value: exp.Expr, kind: DataType, settings: Settings) -> pa.Array | None:
    """A value in the type of a column, if it goes there without a word."""
    if value.find(exp.Column, exp.Query):
        return None
    null = isinstance(value.unnest(), exp.Null)
    own = None if null else written_rows([[value]], ["v"], settings)
    if not null and (own is None or not _goes_into(spark_name(own.schema.field(0).type), kind)):
        return None
    found = written_rows([[cast(value, kind.simpleString())]], ["v"], settings)
    return None if found is None else found.column("v").combine_chunks()


def _goes_into(own: str, kind: DataType) -> bool:
    return own.partition("(")[0] in _TAKEN.get(kind.simpleString().partition("(")[0], ())


@dataclass(frozen=True)
class Found:
    """Rows that were read here: the columns' names, and the rows, whose columns are ``c0``, ``c1``, .."""

    names: list[str]
    rows: ArrowFrame

    def as_text(self) -> pa.Table | None:
        """Every value as Spark writes it; None if only Spark knows how."""
        shown = self.rows.select([(name, cast(column(name), "string")) for name in self.rows.columns])
        return shown.rows()


def read(text: str, world: World, spark: SparkOnDemand) -> Found | None:
    """A query that only chooses rows and columns of one small table or view; None if Spark must do it."""
    try:
        tree = parse_query(text)
        if not isinstance(tree, exp.Select) or tree.args.get("order") or tree.find(exp.Limit, exp.Offset):
            return None
        names = {table.name for table in tree.find_all(exp.Table)}
        plainly = all(isinstance(e, exp.Alias | exp.Column | exp.Star) for e in tree.expressions)
        if len(names) != 1 or not plainly:  # what an expression without a name is called, only Spark knows
            return None
        key = world.resolve(names.pop())
        snapshot = _newest(world, key)
        plan = None if snapshot is None else build(tree, {key: _columns(world, key, snapshot)})
    except (PenstockError, Unsupported, SqlglotError):
        return None
    found = None if plan is None or snapshot is None else _evaluated(plan.root, snapshot, spark)
    if plan is None or found is None:
        return None
    rows = found.select([(f"c{i}", column(internal)) for i, (_, internal) in enumerate(plan.outputs)])
    return Found([name for name, _ in plan.outputs], rows) if isinstance(rows, ArrowFrame) else None


def _newest(world: World, key: str) -> Snapshot | None:
    if key in world.tables:
        return Snapshot(world.tables[key].path)
    node = world.nodes.get(key)
    return Snapshot(node.path, node.version) if key in world.views and node is not None and node.version else None


def _columns(world: World, key: str, snapshot: Snapshot) -> tuple[str, ...]:
    if key in world.views:
        return tuple(name for name, _, _ in world.views[key].columns)
    return tuple(schema_of(snapshot).names)


def _evaluated(op: Operator, snapshot: Snapshot, spark: SparkOnDemand) -> Frame | None:
    """Rows on the driver, or none if a step is Spark's."""
    match op:
        case Scan():
            pinned = Pinned(spark=spark, snapshot=snapshot, columns=tuple(stored for _, stored in op.stored))
            frame: Frame | None = pinned.read().renamed({stored: name for name, stored in op.stored})
        case Filter(child=child, condition=condition):
            below = _evaluated(child, snapshot, spark)
            frame = None if below is None else below.where(condition)
        case Project(child=child, outputs=outputs):
            below = _evaluated(child, snapshot, spark)
            frame = None if below is None else below.select(outputs)
        case _:
            return None
    return frame if isinstance(frame, ArrowFrame) and frame.rows() is not None else None
