"""Statements that write little, without Spark: CREATE TABLE of plain columns, INSERT, UPDATE, DELETE and MERGE.

A statement is first computed, which gives a value (``RowChange``) and changes nothing, and then committed; a
transaction keeps the value until its own end. What is not surely the same here and there raises ``NotHere`` with the
reason, and Spark does it: expressions that the driver does not know, tables that ask more of their writers, many rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from sqlglot import exp

from penstock.catalog import TableRecord
from penstock.engine.seen import Seen, parsed
from penstock.engine.small_changes import changed
from penstock.engine.small_inserts import inserted
from penstock.engine.small_merges import merged
from penstock.errors import NotFoundError
from penstock.frames.frame import NotHere
from penstock.frames.settings import Own, under
from penstock.sql.columns import plain_columns
from penstock.sql.statements import CreateTable, TableStatement
from penstock.storage.delta_log import HistoryGone, is_table
from penstock.storage.files import Held
from penstock.storage.log_writer import TableGone, held_log
from penstock.storage.new_table import create_with_changes
from penstock.storage.row_change import RowChange
from penstock.storage.vacuum import leave


def create(statement: CreateTable, path: str, session: Own) -> bool:
    """CREATE TABLE of plain columns, in a directory that is ours; False if Spark must do it."""
    if statement.query is not None or statement.options:
        return False
    columns = plain_columns(statement.columns) if session.settings.here and not session.tables else None
    if columns is not None:
        leave(path)  # who is killed leaves it to be deleted; what the catalog knows never is
        create_with_changes(path, columns)
    return columns is not None


def compute(statement: TableStatement, table: TableRecord, seen: Seen) -> RowChange:
    """What a statement changes in a table, as it is seen. Nothing is written."""
    tree = parsed(statement.text)
    try:
        with under(seen.spark, seen.settings):
            match tree:
                case exp.Insert():
                    return inserted(tree, table, seen)
                case exp.Update() | exp.Delete():
                    return changed(tree, table, seen)
                case exp.Merge():
                    return merged(tree, table, seen)
    except HistoryGone as problem:
        raise NotHere(str(problem)) from None
    except pa.ArrowException as problem:
        raise NotHere(f"rows that Arrow does not take ({problem})") from None
    raise NotHere(f"{statement.verb} is Spark's")


@contextmanager
def held(table: TableRecord) -> Iterator[Held]:
    """The log of a table, which is written to as long as it is there."""
    try:
        with held_log(table.path) as log:
            try:
                yield log
            except FileNotFoundError:
                if log.is_there:
                    raise
                raise TableGone(table.path) from None
    except TableGone:
        if is_table(table.path):
            raise NotFoundError(
                f"table {table.name!r} was dropped and created again meanwhile. Nothing was changed; try again."
            ) from None
        raise NotFoundError(f"table {table.name!r} was dropped meanwhile, or its directory is gone.") from None
