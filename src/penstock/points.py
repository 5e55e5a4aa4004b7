"""The moments at which another process may come between, or this one may end: where tests listen.

Whatever changes the catalog, a Delta log or files says so here first. Nobody listens but tests, which let other threads
go first, pause, or end the process. No code may depend on it.
"""

from __future__ import annotations

from collections.abc import Callable

TRANSACTION = "transaction"
"""A transaction on the catalog is about to begin."""
WRITTEN = "written"
"""A transaction has written all that it had to, and is about to be committed. Nobody else can write meanwhile."""
TRANSACTED = "transacted"
"""A transaction that wrote is committed."""
CLAIMED = "claimed"
"""A directory for a new table was made."""
FILES = "files"
"""Data files were written, and no version has them yet."""
COMMIT = "commit"
"""A version of a node's table is about to be made."""
COMMITTED = "committed"
"""A version of a node's table was made."""
DELETION = "deletion"
"""Files are about to be deleted."""
DELETED = "deleted"
"""A file of several was deleted."""
NAMING = "naming"
"""What is known in Spark's catalog is about to change."""
WAIT = "wait"
"""A statement finds a view held by another and is about to wait."""

listener: Callable[[str], None] | None = None


def reached(point: str) -> None:
    if listener is not None:
        listener(point)
