"""Whether anybody has written to the catalog since the last look: a question that reads none of its tables.

For SQLite a connection of its own is told by ``PRAGMA data_version``. PostgreSQL says which transactions have begun and
which have ended: of all its databases, so it may say yes where nothing of the catalog has changed.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

_SERVERS = text("SELECT CAST(pg_current_snapshot() AS TEXT)")
"""The whole of it: a transaction has its number when it begins to write, and is to be noticed when it ends."""


class Pulse:
    def __init__(self, engine: Engine):
        self._engine = engine
        self._held: Any = None

    def beat(self) -> object:
        """A value that differs from the last one if something may have been written meanwhile."""
        try:
            if self._engine.dialect.name == "sqlite":
                if self._held is None:
                    self._held = self._engine.raw_connection()
                return self._held.cursor().execute("PRAGMA data_version").fetchone()[0]
            with self._engine.connect() as connection:
                return connection.execute(_SERVERS).scalar()
        except SQLAlchemyError:
            return object()  # who cannot be asked may have anything to say

    def close(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None
