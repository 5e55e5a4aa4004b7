"""Cuts SQL text into tokens that know their place, so that statements can be taken apart without losing a character.

Queries are read by sqlglot; this lexer serves the statements around them, whose words sqlglot does not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from penstock.errors import SqlError

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<number>\d+(?:\.\d+)?\w*)
    | (?P<word>[^\W\d]\w*)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENERS = {"'": "string", '"': "string", "`": "quoted name", "/*": "comment"}


@dataclass(frozen=True, kw_only=True)
class Token:
    kind: str
    text: str
    start: int
    end: int
    depth: int

    @property
    def upper(self) -> str:
        """The word in capitals; quoted names and strings are never keywords."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""


def tokenize(text: str) -> list[Token]:
    """The tokens of a text without white space and comments; ``depth`` counts the brackets around each."""
    return list(_tokens(text))


@lru_cache(maxsize=8)
def _tokens(text: str) -> tuple[Token, ...]:
    """A statement is looked at several times, and may be long."""
    tokens: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(text):
        kind, piece = match.lastgroup or "symbol", match.group()
        if kind == "space":
            continue
        if kind == "symbol" and (piece in _OPENERS or text.startswith("/*", match.start())):
            opener = "/*" if piece == "/" else piece
            raise error_at(text, match.start(), f"this {_OPENERS[opener]} is never closed")
        if piece == ")" and kind == "symbol":
            depth = max(depth - 1, 0)
        tokens.append(Token(kind=kind, text=piece, start=match.start(), end=match.end(), depth=depth))
        if piece == "(" and kind == "symbol":
            depth += 1
    return tuple(tokens)


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of an offset.

    >>> position("SELECT 1" + chr(10) + "FROM", 11)
    (2, 3)
    """
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def error_at(text: str, offset: int, problem: str) -> SqlError:
    """A syntax error that shows the line and points at the place."""
    line, column = position(text, offset)
    lines = text.splitlines() or [""]
    shown = lines[min(line, len(lines)) - 1]
    pointer = " " * (column - 1) + "^"
    return SqlError(f"line {line}, column {column}: {problem}\n  {shown}\n  {pointer}", line=line, column=column)


def identifier(token: Token) -> str:
    """The name that a word or a name in backticks is."""
    return unquote(token) if token.kind == "quoted" else token.text


def unquote(token: Token) -> str:
    """The value of a string or the name in backticks.

    >>> unquote(tokenize("'it''s'")[0])
    "it's"
    """
    if token.kind == "quoted":
        return token.text[1:-1].replace("``", "`")
    if token.text[0] in "rR":
        return token.text[2:-1]
    quote, body = token.text[0], token.text[1:-1].replace(token.text[0] * 2, token.text[0])
    escapes = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", quote: quote}
    return re.sub(r"\\(.)", lambda m: escapes.get(m.group(1), m.group(0)), body, flags=re.DOTALL)
