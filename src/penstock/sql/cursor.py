"""A place in a list of tokens, with the few moves that a hand-written parser needs."""

from __future__ import annotations

from penstock.errors import SqlError
from penstock.sql.lexer import Token, error_at, tokenize, unquote


class Cursor:
    def __init__(self, text: str):
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0

    @property
    def token(self) -> Token | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    @property
    def offset(self) -> int:
        """Where the current token starts in the text; the end of the text after the last."""
        return self.token.start if self.token else len(self.text.rstrip())

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words."""
        ahead = self.tokens[self.index : self.index + len(words)]
        return len(ahead) == len(words) and all(t.upper == w for t, w in zip(ahead, words, strict=True))

    def take(self, *words: str) -> bool:
        """Step over these words if they come next."""
        found = self.at(*words)
        if found:
            self.index += len(words)
        return found

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            raise self.error(f"expected {' '.join(words)}")

    def name(self, what: str = "a name") -> str:
        """A plain or quoted identifier."""
        token = self.token
        if token is None or token.kind not in ("word", "quoted"):
            raise self.error(f"expected {what}")
        self.index += 1
        if self.at("."):
            if any("/" in ahead.text for ahead in self.tokens[self.index + 1 : self.index + 2]):
                raise self.error("a path is no name: register it first, with CREATE TABLE some_name LOCATION '..'")
            raise self.error("names have one part: Penstock's catalog has no schemas or databases")
        return unquote(token) if token.kind == "quoted" else token.text

    def string(self, what: str = "a quoted string") -> str:
        token = self.token
        if token is None or token.kind != "string":
            raise self.error(f"expected {what}")
        self.index += 1
        return unquote(token)

    def integer(self, what: str = "a whole number") -> int:
        token = self.token
        if token is None or not token.text.isdigit():
            raise self.error(f"expected {what}")
        self.index += 1
        return int(token.text)

    def group(self) -> tuple[int, int]:
        """Step over a group in brackets; gives the offsets of its inside."""
        start = self.token
        self.expect("(")
        assert start is not None
        while self.token is not None and not (self.token.upper == ")" and self.token.depth == start.depth):
            self.index += 1
        inside = (start.end, self.offset)
        self.expect(")")
        return inside

    def end(self) -> None:
        if self.token is not None:
            raise self.error("this does not belong here")

    def error(self, problem: str) -> SqlError:
        found = f", found {self.token.text!r}" if self.token else ", found the end of the statement"
        return error_at(self.text, self.offset, problem + found)
