"""A place in a list of tokens, with the few moves that a hand-written parser needs."""

from __future__ import annotations

from penstock.errors import NotSupportedError, SqlError
from penstock.sql.lexer import Token, error_at, identifier, tokenize, unquote
from penstock.sql.names import DEFAULT, FORMATS, QualifiedName


class Cursor:
    def __init__(self, text: str, current: str = DEFAULT):
        """``current``: the schema of names that say none."""
        self.text = text
        self.current = current
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
        name = self._part(what)
        if self.at("."):
            raise self.error(f"expected {what}, which has one part")
        return name

    def relation(self, what: str = "the name of a table or view") -> str:
        """The name of a table or view, with its schema or in the current one."""
        start = self.offset
        parts = [self._part(what)]
        while self.take("."):
            if self.token is not None and "/" in self.token.text and parts[0].lower() in FORMATS:
                raise self.error("a path is no name: register it first, with CREATE TABLE some_name LOCATION '..'")
            parts.append(self._part(what))
        end = self.tokens[self.index - 1].end
        try:
            return str(QualifiedName.of(parts, self.text[start:end], self.current))
        except NotSupportedError as problem:
            raise error_at(self.text, start, str(problem)) from None

    def _part(self, what: str) -> str:
        token = self.token
        if token is None or token.kind not in ("word", "quoted"):
            raise self.error(f"expected {what}")
        self.index += 1
        return identifier(token)

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
