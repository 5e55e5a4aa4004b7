"""Statements that write little, without Spark: CREATE TABLE, INSERT of values that are written down, UPDATE and DELETE.

What is not surely the same here and there gives None, and Spark does it: expressions that the driver does not know,
subqueries, tables that ask more of their writers (constraints, generated columns, partitions), and many rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import sqlglot
from pyspark.sql.types import DataType, StructType
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.catalog import TableRecord
from penstock.errors import ConflictError, NotFoundError
from penstock.frames.arrow.expressions import written_rows
from penstock.frames.arrow.frame import ArrowFrame
from penstock.frames.arrow.tables import spark_name
from penstock.frames.frame import Frame, NotHere
from penstock.frames.names import FILE, LOCATED, PLACE
from penstock.frames.settings import Own, Settings, under
from penstock.frames.spark.session import SparkOnDemand
from penstock.sql.columns import plain_columns
from penstock.sql.dialect import SparkSql
from penstock.sql.statements import CreateTable, TableStatement
from penstock.sql.trees import Named, cast, column
from penstock.storage.appending import append, can_append
from penstock.storage.delta_log import Snapshot, is_table
from penstock.storage.log_writer import TableGone, VersionTaken, can_write, held_log, is_held
from penstock.storage.new_table import create_with_changes
from penstock.storage.parquet import table_frame
from penstock.storage.patch import by_file
from penstock.storage.reader import schema_of
from penstock.storage.replacing import are_counted, can_mark, replace_rows

_TRIES = 20

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "double")
_TAKEN = {
    **dict.fromkeys(_NUMBERS, _NUMBERS), "string": ("string",), "boolean": ("boolean",), "date": ("date", "string"),
    "timestamp": ("timestamp", "string"), "timestamp_ntz": ("timestamp_ntz",),
}  # fmt: skip
"""Types of columns, and which values go into them without a word."""


def create(statement: CreateTable, path: str, session: Own) -> bool:
    """CREATE TABLE of plain columns, in a directory that is ours; False if Spark must do it."""
    if statement.query is not None or statement.options or not can_write(path):
        return False
    columns = plain_columns(statement.columns) if session.settings.here and not session.tables else None
    if columns is not None:
        create_with_changes(path, columns)
    return columns is not None


def insert(statement: TableStatement, table: TableRecord, settings: Settings) -> int | None:
    """INSERT INTO .. VALUES of values that are written down; gives the number of rows, None if Spark must do it."""
    if statement.verb != "INSERT" or table.external:
        return None
    given = _written(statement.text)
    if given is None:
        return None
    with _held(table) as log:
        snapshot = Snapshot(table.path)
        rows = _typed(given, schema_of(snapshot), settings) if can_append(snapshot) else None
        if rows is None:
            return None
        append(snapshot, rows, table.name, log)
        return rows.num_rows


@contextmanager
def _held(table: TableRecord) -> Iterator[int]:
    """The log of a table, which is written to as long as it is there."""
    try:
        with held_log(table.path) as log:
            try:
                yield log
            except FileNotFoundError:
                if is_held(table.path, log):
                    raise
                raise TableGone(table.path) from None
    except TableGone:
        if is_table(table.path):
            raise NotFoundError(
                f"table {table.name!r} was dropped and created again meanwhile. Nothing was changed; try again."
            ) from None
        raise NotFoundError(f"table {table.name!r} was dropped meanwhile, or its directory is gone.") from None


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


def change(statement: TableStatement, table: TableRecord, spark: SparkOnDemand, settings: Settings) -> int | None:
    """UPDATE and DELETE of a few rows; gives how many, None if Spark must do it."""
    if statement.verb not in ("UPDATE", "DELETE") or table.external:
        return None
    told = _told(statement)
    if told is None:
        return None
    with _held(table) as log:
        return _change(statement, table, spark, settings, told, log)


def _change(
    statement: TableStatement,
    table: TableRecord,
    spark: SparkOnDemand,
    settings: Settings,
    told: tuple[exp.Expr | None, Sequence[Named]],
    log: int,
) -> int | None:
    condition, values = told
    for _ in range(_TRIES):
        snapshot = Snapshot(table.path)
        if not can_append(snapshot) or not can_mark(snapshot):
            return None
        try:
            with under(spark, settings):
                found = _changed(spark, snapshot, condition, values)
        except NotHere:
            return None
        if found is None:
            return None
        old, new = found
        if not old.num_rows:
            return 0
        rows, places = old.drop_columns(list(LOCATED)), by_file(snapshot, old.select([FILE, PLACE]))
        if not are_counted(snapshot, places):
            return None
        try:
            replace_rows(snapshot, places, rows, new, statement.verb, log)
            return old.num_rows
        except VersionTaken:
            continue
    raise ConflictError(
        f"table {table.name!r} is being written by others all the time. Nothing was changed; try again."
    )


def _told(statement: TableStatement) -> tuple[exp.Expr | None, Sequence[Named]] | None:
    """The condition, and the columns of an UPDATE with their new values; None if it says more, or another thing."""
    try:
        tree = sqlglot.parse_one(statement.text, dialect=SparkSql)
    except (SqlglotError, RecursionError):
        return None
    if not isinstance(tree, exp.Update | exp.Delete) or not isinstance(tree.this, exp.Table) or tree.find(exp.Query):
        return None
    if {name for name, given in tree.args.items() if given} - {"this", "where", "expressions"}:
        return None
    own = {tree.this.alias_or_name.lower()}
    where = tree.args.get("where")
    condition = None if where is None else _plain(where.this, own)
    values = []
    for assigned in tree.expressions if isinstance(tree, exp.Update) else ():
        if not isinstance(assigned, exp.EQ) or not isinstance(assigned.this, exp.Column):
            return None
        target, value = _plain(assigned.this, own), _plain(assigned.expression, own)
        if target is None or value is None:
            return None
        values.append((target.name, value))
    if (where is not None and condition is None) or (isinstance(tree, exp.Update) and not values):
        return None
    return condition, values


def _plain(tree: exp.Expr, own: set[str]) -> exp.Expr | None:
    """An expression with plain names of columns; None if some are another table's, or fields of structs."""
    tree = tree.copy()
    for found in list(tree.find_all(exp.Column)):
        if found.args.get("db") or (found.table and found.table.lower() not in own):
            return None
        if found.name.lower() == "default" and not found.this.quoted:
            return None
        found.set("table", None)
    return None if tree.find(exp.Placeholder, exp.Parameter, exp.Star) else tree


def _changed(
    spark: SparkOnDemand, snapshot: Snapshot, condition: exp.Expr | None, values: Sequence[Named]
) -> tuple[pa.Table, pa.Table | None] | None:
    """The rows that a statement means, with their places, and what is to be in their place (None: nothing)."""
    schema = schema_of(snapshot)
    known = {field.name.lower(): field for field in schema.fields}
    names = [name.lower() for name, _ in values]
    read = {c.name.lower() for tree in (condition, *(v for _, v in values)) if tree for c in tree.find_all(exp.Column)}
    if (
        known.keys() & set(LOCATED)
        or len(known) < len(schema.fields)
        or len(set(names)) < len(names)
        or not {*names, *read} <= set(known)
    ):
        return None
    rows: Frame = table_frame(spark, snapshot, schema.names, located=True)
    if not isinstance(rows, ArrowFrame) or rows.rows() is None:
        return None
    assigned = {name.lower(): value for name, value in values}
    if condition is not None:
        if _type_of(rows, condition) != "boolean":
            return None
        rows = rows.where(condition)
    if not all(_fits(rows, value, known[name].dataType) for name, value in assigned.items()):
        return None
    old = rows.rows() if isinstance(rows, ArrowFrame) else None
    if old is None or not values or not old.num_rows:
        return None if old is None else (old, None)
    made = rows.select(
        [(f.name, cast(assigned[key], f.dataType.simpleString()) if key in assigned else column(f.name))
         for key, f in known.items()]
    )  # fmt: skip
    new = made.rows() if isinstance(made, ArrowFrame) else None
    if new is None or any(new.column(f.name).null_count for f in schema.fields if not f.nullable):
        return None
    return old, new


def _fits(rows: Frame, value: exp.Expr, kind: DataType) -> bool:
    """Whether a value goes into a column without a word."""
    if isinstance(value.unnest(), exp.Null):
        return True
    found = _type_of(rows, value)
    return found is not None and _goes_into(found, kind)


def _type_of(rows: Frame, value: exp.Expr) -> str | None:
    """Spark's name for the type of an expression; None if Spark must say it."""
    found = rows.select([("v", value)])
    return found.types["v"] if isinstance(found, ArrowFrame) else None
