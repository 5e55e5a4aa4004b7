"""What the server keeps for itself, in a small SQLite file: tokens, and which requests were done already.

Of a token only a hash is kept. The file is shared by all servers on it; a token that is revoked is refused at once.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from urllib.parse import quote

from penstock.errors import AlreadyExistsError, NotFoundError, WarehouseError, nearest
from penstock.serve.roles import Role

FILE = "server.sqlite"
"""In the first warehouse, unless another place is named."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tokens (
    name TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, role TEXT NOT NULL, databases TEXT NOT NULL,
    created_at TEXT NOT NULL, expires_at TEXT, revoked_at TEXT
);
CREATE TABLE IF NOT EXISTS requests (
    key BLOB PRIMARY KEY, body BLOB NOT NULL, at TEXT NOT NULL, server TEXT NOT NULL, status INTEGER, type TEXT,
    answer BLOB
);
CREATE INDEX IF NOT EXISTS requests_at ON requests (at);
"""
KEPT = timedelta(hours=24)
MOST_REQUESTS = 10_000
_PREFIX = "pst_"


@dataclass(frozen=True, kw_only=True)
class Token:
    name: str
    role: Role
    databases: tuple[str, ...]
    """Empty: all."""
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def holds(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True)
class Answer:
    """What came of a request: its status, and its body if that is kept."""

    status: int
    type: str
    body: bytes | None


class State:
    def __init__(self, path: str | None):
        """Without a path it is forgotten with the process."""
        self._lock = threading.Lock()
        self.path = path
        target = ":memory:" if path is None else f"file:{quote(os.path.abspath(path))}"
        try:
            if path is not None and not os.path.exists(path):
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            self._db = sqlite3.connect(
                target, uri=path is not None, timeout=30, isolation_level=None, check_same_thread=False
            )
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as problem:
            raise WarehouseError(
                f"the server's file {path!r} cannot be opened: {problem}. Name another with --state FILE."
            ) from None

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    # -- tokens -------------------------------------------------------------------------------------------------------

    def create(
        self, name: str, role: Role, databases: tuple[str, ...] = (), expires: timedelta | None = None
    ) -> tuple[Token, str]:
        """A new token, and its text, which is known to nobody afterwards."""
        text = _PREFIX + secrets.token_urlsafe(32)
        now = _now()
        until = None if expires is None else now + expires
        token = Token(name=name, role=role, databases=databases, created_at=now, expires_at=until)
        row = (name, _hash(text), role.word, " ".join(databases), _text(now), _text(until))
        try:
            with self._writing() as db:
                db.execute(
                    "INSERT INTO tokens (name, hash, role, databases, created_at, expires_at) VALUES (?,?,?,?,?,?)", row
                )
        except sqlite3.IntegrityError:
            raise AlreadyExistsError(f"there is a token {name!r} already. Choose another name.") from None
        return token, text

    def tokens(self) -> list[Token]:
        return self._tokens("ORDER BY created_at")

    def _tokens(self, where: str, *values: object) -> list[Token]:
        columns = "name, role, databases, created_at, expires_at, revoked_at"
        with self._lock:
            rows = self._db.execute(f"SELECT {columns} FROM tokens {where}", values).fetchall()
        return [
            Token(name=name, role=Role.of(role), databases=tuple(databases.split()), created_at=_time(created),
                  expires_at=expires and _time(expires), revoked_at=revoked and _time(revoked))
            for name, role, databases, created, expires, revoked in rows
        ]  # fmt: skip

    def token(self, text: str) -> Token | None:
        """The token of a text, if it is one that holds."""
        found = self._tokens("WHERE hash = ?", _hash(text))
        return found[0] if found and found[0].holds(_now()) else None

    @property
    def has_tokens(self) -> bool:
        """Whether there ever was a token: revoking the last one does not open the door."""
        with self._lock:
            return self._db.execute("SELECT 1 FROM tokens LIMIT 1").fetchone() is not None

    def revoke(self, name: str) -> None:
        known = [token.name for token in self.tokens()]
        if name not in known:
            raise NotFoundError(f"there is no token {name!r}. {nearest(name, known)}")
        with self._writing() as db:
            db.execute("UPDATE tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL", (_text(_now()), name))

    # -- requests that were done --------------------------------------------------------------------------------------

    def begin(self, key: bytes, body: bytes, server: str) -> tuple[bytes, str, Answer | None] | None:
        """Note that a request is begun; None if it is new, else the body's hash, the server and the answer of then."""
        with self._writing() as db:
            db.execute("DELETE FROM requests WHERE at < ?", (_text(_now() - KEPT),))
            found = db.execute(
                "SELECT body, server, status, type, answer FROM requests WHERE key = ?", (key,)
            ).fetchone()
            if found is not None:
                answer = None if found[2] is None else Answer(found[2], found[3], found[4])
                return found[0], found[1], answer
            db.execute(
                "DELETE FROM requests WHERE key IN (SELECT key FROM requests ORDER BY at DESC LIMIT -1 OFFSET ?)",
                (MOST_REQUESTS - 1,),
            )
            db.execute(
                "INSERT INTO requests (key, body, at, server) VALUES (?,?,?,?)", (key, body, _text(_now()), server)
            )
            return None

    def done(self, key: bytes, answer: Answer) -> None:
        with self._writing() as db:
            db.execute(
                "UPDATE requests SET status = ?, type = ?, answer = ? WHERE key = ?",
                (answer.status, answer.type, answer.body, key),
            )

    def forget(self, key: bytes) -> None:
        """A request that was refused before it did anything may be sent again."""
        with self._writing() as db:
            db.execute("DELETE FROM requests WHERE key = ?", (key,))


def _hash(text: str) -> bytes:
    """A token has 256 random bits, so a plain hash cannot be turned back."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(timespec="microseconds")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
