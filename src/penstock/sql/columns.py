"""The columns of CREATE TABLE, where they are plain: a name, a type of one word, and maybe NOT NULL.

Other columns (nested types, defaults, generated ones, comments) are read by Spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import SqlError
from penstock.sql.cursor import Cursor

_TYPES = {
    "BOOLEAN": "boolean", "TINYINT": "byte", "BYTE": "byte", "SMALLINT": "short", "SHORT": "short", "INT": "integer",
    "INTEGER": "integer", "BIGINT": "long", "LONG": "long", "FLOAT": "float", "REAL": "float", "DOUBLE": "double",
    "STRING": "string", "BINARY": "binary", "DATE": "date", "TIMESTAMP": "timestamp",
}  # fmt: skip
"""Types by Spark's words, in Delta's."""
_DECIMAL = ("DECIMAL", "DEC", "NUMERIC")
_MOST_DIGITS = 38
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_NO_NAMES = ("CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "CHECK", "NOT")


@dataclass(frozen=True)
class PlainColumn:
    """``kind`` is the type as Delta's schema has it."""

    name: str
    kind: str
    nullable: bool


def plain_columns(text: str) -> list[PlainColumn] | None:
    """The columns, if all of them are plain.

    >>> plain_columns("id BIGINT NOT NULL, amount DECIMAL(12, 2)")[1]
    PlainColumn(name='amount', kind='decimal(12,2)', nullable=True)
    >>> plain_columns("id INT DEFAULT 1"), plain_columns("a INT, A INT"), plain_columns("tags ARRAY<STRING>")
    (None, None, None)
    """
    try:
        cursor = Cursor(text)
    except SqlError:
        return None
    found: list[PlainColumn] = []
    while True:
        column = _column(cursor)
        if column is None:
            return None
        found.append(column)
        if cursor.token is None:
            return found if len({column.name.lower() for column in found}) == len(found) else None
        if not cursor.take(","):
            return None


def _column(cursor: Cursor) -> PlainColumn | None:
    token = cursor.token
    if token is None or token.kind not in ("word", "quoted") or token.upper in _NO_NAMES:
        return None
    name = token.text.strip("`")
    cursor.index += 1
    kind = _kind(cursor)
    if kind is None or not _NAME.fullmatch(name):
        return None
    return PlainColumn(name, kind, not cursor.take("NOT", "NULL"))


def _kind(cursor: Cursor) -> str | None:
    word = cursor.token.upper if cursor.token is not None else ""
    cursor.index += 1
    return _decimal(cursor) if word in _DECIMAL else _TYPES.get(word)


def _decimal(cursor: Cursor) -> str | None:
    if not cursor.at("("):
        return "decimal(10,0)"
    start, end = cursor.group()
    digits = [part.strip() for part in cursor.text[start:end].split(",")]
    if len(digits) > 2 or not all(re.fullmatch("[0-9]{1,2}", part) for part in digits):
        return None
    precision, scale = int(digits[0]), int(digits[1]) if len(digits) == 2 else 0
    return f"decimal({precision},{scale})" if scale <= precision <= _MOST_DIGITS and precision else None
