"""What to say of a text that begins like no statement: which one is meant, where that can be told."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

from penstock.errors import SqlError
from penstock.sql.cursor import Cursor
from penstock.sql.lexer import error_at

_ALMOST: dict[tuple[str, ...], str] = {
    ("REFRESH",): "REFRESH MATERIALIZED VIEW", ("CREATE", "VIEW"): "CREATE MATERIALIZED VIEW",
    ("CREATE", "OR", "REPLACE", "VIEW"): "CREATE OR REPLACE MATERIALIZED VIEW",
    ("DROP", "VIEW"): "DROP MATERIALIZED VIEW", ("ALTER", "VIEW"): "ALTER MATERIALIZED VIEW",
    ("SHOW", "VIEWS"): "SHOW MATERIALIZED VIEWS", ("SHOW", "HISTORY"): "SHOW REFRESH HISTORY",
}  # fmt: skip
_ALIKE = 0.8
"""How much of the first words of a statement must be the same for it to be what was meant."""


def no_statement(cursor: Cursor, known: Iterable[tuple[str, ...]]) -> SqlError:
    """The error for first words that no statement has; ``known`` are those that statements begin with."""
    almost = [instead for words, instead in _ALMOST.items() if cursor.at(*words)]
    meant = almost[0] if almost else _nearest(cursor, known)
    if meant:
        found = cursor.tokens[0].text
        problem = f"expected a statement that Penstock has, found {found!r}. Did you mean {meant}?"
        return error_at(cursor.text, cursor.offset, problem)
    return cursor.error("expected a query, or a statement on tables or materialized views")


def _nearest(cursor: Cursor, known: Iterable[tuple[str, ...]]) -> str | None:
    """The first words of a statement that the text's are nearest to; of equally near ones the longest."""
    found = []
    for words in {*known, ("SELECT",)}:
        said = " ".join(token.upper for token in cursor.tokens[: len(words)])
        found.append((SequenceMatcher(None, said, " ".join(words)).ratio(), len(words), " ".join(words)))
    likeness, _, nearest = max(found)
    return nearest if likeness >= _ALIKE else None
