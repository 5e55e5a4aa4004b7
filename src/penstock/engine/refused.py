"""Statements of Spark on a table that is not to have them."""

from __future__ import annotations

from penstock.catalog import World
from penstock.errors import NotSupportedError
from penstock.sql.cursor import Cursor
from penstock.sql.statements import TableStatement
from penstock.storage.locations import spark_commits_safely


def check_commits_here(world: World, key: str, statement: TableStatement) -> None:
    if not spark_commits_safely(world.tables[key].path):
        raise NotSupportedError(
            f"{statement.verb} on {statement.target!r}: a table in an object store is only changed by INSERT, UPDATE, "
            "DELETE, MERGE and TRUNCATE, since Spark's own commits there may overwrite others. Make another one, "
            f"such as CREATE TABLE .. AS SELECT * FROM {statement.target}."
        )


def refuse_rename(statement: TableStatement) -> None:
    rest = Cursor(statement.text[statement.target_span[1] :])
    if rest.at("RENAME", "TO"):
        raise NotSupportedError(
            f"table {statement.target!r} cannot be renamed: views know it by its name. Make a table of the new name, "
            f"such as CREATE TABLE .. AS SELECT * FROM {statement.target}."
        )
