"""The text of a statement on a table as Spark runs it."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import SqlError
from penstock.sql.cursor import Cursor
from penstock.sql.dialect import quoted
from penstock.sql.names import QualifiedName
from penstock.sql.query import substitute_tables
from penstock.sql.statements import TableStatement


def for_spark(
    statement: TableStatement, target: str, replace: Callable[[str], str | None]
) -> tuple[str, SqlError | None]:
    """The statement for Spark: the target by its path, other tables by temporary views.

    With the syntax error when the statement could not be read here; Spark may still know it.
    """
    start, end = statement.target_span
    if statement.verb == "TRUNCATE":
        return f"DELETE FROM {target}", None
    if statement.verb not in ("INSERT", "UPDATE", "DELETE", "MERGE"):
        return statement.text[:start] + target + statement.text[end:], None
    # The target is hidden behind a name of its own while the other tables' names are replaced.
    marker = "__penstock_target"
    text = statement.text[:start] + marker + statement.text[end:]
    alias = (
        ""
        if statement.verb == "INSERT" or _has_alias(statement)
        else f" AS {quoted(QualifiedName.read(statement.target).name)}"
    )
    try:
        substitute_tables(statement.text, lambda name: name)  # a syntax error must point into the user's own text
        text = substitute_tables(text, lambda name: marker if name == marker else replace(name))
    except SqlError as problem:
        return text.replace(marker, target), problem
    return text.replace(f"{marker} AS `{marker}`", marker).replace(marker, target + alias), None


def _has_alias(statement: TableStatement) -> bool:
    """Whether a name follows the target, as in UPDATE t AS x or MERGE INTO t x."""
    cursor = Cursor(statement.text)
    after = next((t for t in cursor.tokens if t.start >= statement.target_span[1]), None)
    if after is None or after.kind not in ("word", "quoted"):
        return False
    return after.upper not in ("SET", "WHERE", "USING")
