"""``name AS OF EPOCH n``, ``name AS OF TIMESTAMP '..'`` and ``table VERSION AS OF n`` in queries.

The clause is cut out of the text before anything else reads it; the table's name becomes one that says the moment too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.sql.cursor import Cursor
from penstock.sql.dialect import quoted
from penstock.sql.lexer import Token, error_at, identifier
from penstock.sql.names import DEFAULT, QualifiedName

_VERSION, _DELTA_TIME = ("VERSION", "AS", "OF"), ("TIMESTAMP", "AS", "OF")
_NO_ALIAS = frozenset(
    "WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY UNION INTERSECT EXCEPT MINUS ON "
    "USING JOIN INNER LEFT RIGHT FULL CROSS SEMI ANTI NATURAL LATERAL PIVOT UNPIVOT TABLESAMPLE".split()
)


@dataclass(frozen=True)
class Past:
    """A table or view at an earlier moment: an epoch, or the epoch that was published at a time; or a version of a
    table, as Delta counts them.
    """

    name: str
    epoch: int | None = None
    timestamp: str | None = None
    version: int | None = None


def find_past(text: str) -> tuple[str, dict[str, Past]]:
    """The text without the clauses, and what the names in their place mean.

    >>> find_past("SELECT b.x FROM bars AS OF EPOCH 3 b")
    ('SELECT b.x FROM `bars@1` b', {'bars@1': Past(name='bars', epoch=3, timestamp=None, version=None)})
    >>> find_past("SELECT x FROM bars AS OF EPOCH 3")[0]
    'SELECT x FROM `bars@1` AS `bars`'
    """
    found: dict[str, Past] = {}
    pieces, copied = [], 0
    for cursor, named, past in _clauses(text):
        meant = QualifiedName.read(past.name)
        place = QualifiedName(DEFAULT, f"{past.name}@{len(found) + 1}")
        found[place.key] = past
        alias = "" if _has_alias(cursor) else f" AS {quoted(meant.name)}"
        pieces += [text[copied : named.start], f"{place.sql}{alias}"]
        copied = cursor.tokens[cursor.index - 1].end
    return "".join([*pieces, text[copied:]]), found


def clauses_of_past(text: str) -> Iterator[tuple[int, int]]:
    """Where the clauses stand in a text, without the names before them."""
    if _OF.search(text) is None:
        return
    for cursor, named, _ in _clauses(text):
        begins = next(i for i, token in enumerate(cursor.tokens) if token.start == named.start)
        begins = _behind_name(cursor.tokens, begins)
        yield cursor.tokens[begins].start, cursor.tokens[cursor.index - 1].end


def _clauses(text: str) -> Iterator[tuple[Cursor, Token, Past]]:
    """Each clause, with a cursor behind it, and the token that the name before it begins with."""
    cursor = Cursor(text)
    while cursor.token is not None:
        if not _begins(cursor) or cursor.index == 0:
            cursor.index += 1
            continue
        last = cursor.index - (2 if cursor.tokens[cursor.index - 1].upper == "FOR" else 1)
        if cursor.tokens[last].kind not in ("word", "quoted"):
            raise cursor.error("AS OF stands behind the name of a table or view")
        first = last
        while first >= 2 and cursor.tokens[first - 1].text == "." and cursor.tokens[first - 2].kind != "symbol":
            first -= 2
        named = cursor.tokens[first]
        parts = [identifier(token) for token in cursor.tokens[first : last + 1 : 2]]
        name = QualifiedName.of(parts, text[named.start : cursor.tokens[last].end])
        yield cursor, named, _moment(cursor, str(name))


def _behind_name(tokens: list[Token], index: int) -> int:
    while tokens[index + 1].text == ".":
        index += 2
    return index + 1


def _moment(cursor: Cursor, name: str) -> Past:
    if cursor.take(*_VERSION):
        return Past(name, version=cursor.integer("the number of a version"))
    if cursor.at(*_DELTA_TIME):
        raise cursor.error("write AS OF TIMESTAMP '..': the moment of an epoch, in which tables and views are together")
    cursor.expect("AS", "OF")
    if cursor.take("EPOCH"):
        return Past(name, epoch=cursor.integer("the number of an epoch"))
    cursor.expect("TIMESTAMP")
    return Past(name, timestamp=cursor.string("a time in quotes"))


def _has_alias(cursor: Cursor) -> bool:
    token = cursor.token
    if token is None or token.kind not in ("word", "quoted"):
        return False
    return token.kind == "quoted" or token.upper not in _NO_ALIAS


VIEWS_ARE_CURRENT = "a view cannot read AS OF: it always reads what is current"
FOR_QUERIES = (
    "AS OF is for queries, and this statement writes. Run the query alone, keep its rows with "
    "db.sql(..).write.format('delta').save(path), and read them here after CREATE TABLE .. LOCATION 'path'"
)


_OF = re.compile(r"\bOF\b", re.IGNORECASE)
"""A word of all that could be refused: most texts do not have it, and may be long."""


def refuse_past(text: str, start: int, stop: int, why: str = VIEWS_ARE_CURRENT) -> None:
    """A part of the text that must not read AS OF, such as a view's query: the moment will be forgotten."""
    if _OF.search(text) is None:
        return
    cursor = Cursor(text[:stop])
    while cursor.token is not None:
        if cursor.offset > start and (_is_ours(cursor) or (why == VIEWS_ARE_CURRENT and _begins(cursor))):
            raise error_at(text, cursor.offset, why)
        cursor.index += 1


def _is_ours(cursor: Cursor) -> bool:
    return cursor.at("AS", "OF", "EPOCH") or cursor.at("AS", "OF", "TIMESTAMP")


def _begins(cursor: Cursor) -> bool:
    """Whether here is a clause of ours, or one of Delta's, which Spark reads in statements that write."""
    if _is_ours(cursor):
        return True
    ahead = cursor.tokens[cursor.index + 3 : cursor.index + 4]
    if not ahead or ahead[0].kind not in ("number", "string") or cursor.tokens[cursor.index - 1].upper == "TO":
        return False  # a column of that name, or RESTORE .. TO
    return cursor.at(*_VERSION) or cursor.at(*_DELTA_TIME)
