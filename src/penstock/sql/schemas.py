"""The statements about schemas: CREATE and DROP SCHEMA, USE, and SHOW of what one of them has."""

from __future__ import annotations

from collections.abc import Callable

from penstock.sql import statements as s
from penstock.sql.cursor import Cursor


def create_schema(cursor: Cursor) -> s.Statement:
    cursor.expect("CREATE", "SCHEMA")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name("the name of the schema")
    cursor.end()
    return s.CreateSchema(cursor.text, name, if_not_exists)


def drop_schema(cursor: Cursor) -> s.Statement:
    cursor.expect("DROP", "SCHEMA")
    if_exists = cursor.take("IF", "EXISTS")
    name = cursor.name("the name of the schema")
    cascade = cursor.take("CASCADE")
    if not cascade:
        cursor.take("RESTRICT")
    cursor.end()
    return s.DropSchema(cursor.text, name, if_exists, cascade)


def use(cursor: Cursor) -> s.Statement:
    cursor.expect("USE")
    if len(cursor.tokens) > cursor.index + 1:
        cursor.take("SCHEMA")
    name = cursor.name("the name of a schema")
    cursor.end()
    return s.UseSchema(cursor.text, name)


_Listed = s.ShowTables | s.ShowViews | s.ShowPlainViews | s.ShowModels


def listed(kind: type[_Listed], *words: str) -> Callable[[Cursor], s.Statement]:
    """SHOW TABLES and its like, of all schemas or IN one."""

    def read(cursor: Cursor) -> s.Statement:
        cursor.expect(*words)
        schema = cursor.name("the name of a schema") if cursor.take("IN") or cursor.take("FROM") else None
        cursor.end()
        return kind(cursor.text, schema)

    return read
