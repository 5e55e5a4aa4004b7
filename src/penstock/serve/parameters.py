"""Values for the ``:name`` and ``?`` of a statement: each becomes one literal of its tree, whatever is in it.

The text is cut into tokens first, so a marker in a string or a comment is none. Afterwards it is cut again: if a value
were anything but one literal, the tokens would not be the same, and the statement is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from sqlglot import exp

from penstock.errors import SqlError
from penstock.sql.dialect import SparkSql
from penstock.sql.lexer import Token, error_at, tokenize

Value: TypeAlias = str | int | float | bool | None
Parameters: TypeAlias = Mapping[str, Value] | Sequence[Value]

_MOST_DIGITS = 38
"""Digits of Spark's longest decimal."""


def bound(text: str, given: Parameters | None) -> str:
    """The statement with its values.

    >>> bound("SELECT * FROM t WHERE name = :name AND n > ? -- what?", {"name": "x"})
    Traceback (most recent call last):
      ...
    penstock.errors.SqlError: line 1, column 44: this ? has no value: give params as a list, or write :name
      SELECT * FROM t WHERE name = :name AND n > ? -- what?
                                                 ^
    >>> print(bound("SELECT * FROM t WHERE name = :name", {"name": "O'Brien' OR 1 = 1 --"}))
    SELECT * FROM t WHERE name = 'O\\'Brien\\' OR 1 = 1 --'
    >>> bound("SELECT ':a', ?", [1.5])
    "SELECT ':a', 1.5"
    """
    tokens = tokenize(text)
    places = list(_markers(text, tokens))
    values = _values(text, places, given)
    if places and ("$" in (t.text for t in tokens) or re.search(r"\r(?!\n)", text)):
        raise SqlError("with params, a statement cannot have $ outside of texts, nor a carriage return alone.")
    pieces, copied = [], 0
    for (start, end, _), value in zip(places, values, strict=True):
        pieces += [text[copied:start], value]
        copied = end
    made = "".join([*pieces, text[copied:]])
    _check(tokens, places, values, tokenize(made))
    return made


_Place = tuple[int, int, str | None]
"""From, to, and the name; None for a question mark."""


def _markers(text: str, tokens: Sequence[Token]) -> Iterator[_Place]:
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.text == "?" and token.kind == "symbol":
            yield token.start, token.end, None
        elif token.text == ":" and token.kind == "symbol" and following is not None and following.kind == "word":
            before = tokens[index - 1] if index else None
            glued = before is not None and before.end == token.start and _is_value(before)
            if token.end == following.start and not glued:  # a::INT and a:b are none
                yield token.start, following.end, following.text


def _is_value(token: Token) -> bool:
    """Whether a colon right behind it takes something out of it, or casts it."""
    return token.kind != "symbol" or token.text in (")", "]", ":", "?")


def _values(text: str, places: Sequence[_Place], given: Parameters | None) -> list[str]:
    """The literals, in the order of the markers; every value that was given must be wanted."""
    names = {name for _, _, name in places if name is not None}
    marks = [start for start, _, name in places if name is None]
    named = given if isinstance(given, Mapping) else {}
    listed = [] if given is None or isinstance(given, Mapping) else list(given)
    unused = sorted(set(named) - names)
    if unused:
        raise SqlError(f"the statement has no :{unused[0]}. Write :{unused[0]} where its value is to stand.")
    if len(listed) > len(marks):
        raise SqlError(f"there are {len(listed)} values in params and {len(marks)} question marks in the statement.")
    if len(listed) < len(marks):
        raise error_at(text, marks[len(listed)], "this ? has no value: give params as a list, or write :name")
    positional, found = iter(listed), []
    for start, _, name in places:
        if name is not None and name not in named:
            raise error_at(text, start, f":{name} has no value: give it in params")
        found.append(literal(next(positional) if name is None else named[name]))
    return found


def literal(value: Value) -> str:
    """A value in SQL, as one literal of Spark's.

    >>> [literal(value) for value in (None, True, 3, -3, "a'b", 1.5, 1e300)]
    ['NULL', 'TRUE', '3', '(-3)', "'a\\\\'b'", '1.5', '1e300D']
    """
    match value:
        case None:
            tree: exp.Expr = exp.Null()
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return _number(str(value))
        case float():
            return _number(_written(value))
        case str():
            tree = exp.Literal.string(_text(value))
    return tree.sql(dialect=SparkSql)


def _number(text: str) -> str:
    """In brackets below zero: two minus signs would begin a comment."""
    if sum(c.isdigit() for c in text.partition("e")[0]) > _MOST_DIGITS:
        raise SqlError(f"a number in params has more than {_MOST_DIGITS} digits. Give it as text, and CAST it.")
    return f"({text})" if text.startswith("-") else text


def _written(value: float) -> str:
    if not math.isfinite(value):
        raise SqlError("a number in params is not finite. Write CAST('NaN' AS DOUBLE) in the statement.")
    text = repr(value)
    return f"{text.replace('+', '')}D" if "e" in text else text


def _text(value: str) -> str:
    if re.search("[\ud800-\udfff]", value):
        raise SqlError("a text in params has half of a character in it (a lone surrogate), which SQL cannot hold.")
    if "\0" in value:
        raise SqlError("a text in params has the character of number zero in it.")
    return value


def _check(before: Sequence[Token], places: Sequence[_Place], values: Sequence[str], after: Sequence[Token]) -> None:
    """Whether the statement has the tokens that it had, with those of each value, cut by itself, in its place."""
    literals = {start: value for (start, _, _), value in zip(places, values, strict=True)}
    names = {end for _, end, name in places if name is not None}
    wanted: list[tuple[str, str]] = []
    for token in before:
        if token.start in literals:
            wanted += [(t.kind, t.text) for t in tokenize(literals[token.start])]
        elif token.end not in names:
            wanted.append((token.kind, token.text))
    if wanted != [(token.kind, token.text) for token in after]:
        raise SqlError("a value in params would run into the word beside it. Leave a space around each marker.")


_SHOWN = 2_000
"""Characters of a statement that are written down."""


def without_values(text: str) -> str:
    """A statement for the audit log: what was done, without what may be a row's, or a secret.

    >>> without_values("INSERT INTO t VALUES (1, 'secret') -- why")
    'INSERT INTO t VALUES (?, ?)'
    """
    try:
        tokens = tokenize(text[: 2 * _SHOWN])
    except SqlError:
        return "(cannot be read)"
    pieces, end = list[str](), tokens[0].start if tokens else 0
    for token in tokens:
        pieces += [" " if token.start > end else "", "?" if token.kind in ("string", "number") else token.text]
        end = token.end
    return "".join(pieces)[:_SHOWN]
