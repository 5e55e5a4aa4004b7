"""Transactions as users have them: ``with db.transaction() as tx``, and BEGIN, COMMIT, ROLLBACK in a session."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from penstock.answering import Answering, Done
from penstock.engine.transactions import Transaction, clear_left
from penstock.errors import NotSupportedError, PenstockError
from penstock.sql import statements as s

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.engine.here import Found
    from penstock.warehouse import Warehouse


def begin(at: Warehouse) -> Transaction:
    clear_left(at.path)
    return Transaction(at.catalog, at.engine.committing, at.path)


class OpenTransaction:
    """Several statements, all or nothing. Leaving the ``with`` commits; an exception rolls back."""

    def __init__(self, at: Warehouse):
        self._at = at
        self._own = begin(at)

    def sql(self, text: str) -> DataFrame | Done:
        """Run a statement in the transaction: it sees what those before it have written."""
        from penstock.sql.parser import parse

        self._at.check_open()
        statement = parse(text, self._at.current)
        if isinstance(statement, s.Begin | s.Commit | s.Rollback):
            raise NotSupportedError(
                "this transaction ends with its 'with' block: leave that to commit, or raise an exception to roll back."
            )
        return Answering(self._at, self._own).answer(statement)

    def read_here(self, text: str) -> Found | None:
        """The rows of a query as the transaction sees it, if it needs no Spark."""
        return Answering(self._at, self._own).read_here(text)

    def table(self, name: str) -> DataFrame:
        """A table as the transaction sees it, or a view as it was when that began."""
        return Answering(self._at, self._own).table(name)

    def __enter__(self) -> OpenTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._own.rollback()
        elif not self._own.over:
            Answering(self._at, self._own).commit()


def bounded(at: Warehouse, statement: s.Begin | s.Commit | s.Rollback) -> Done:
    """BEGIN, COMMIT or ROLLBACK of the session."""
    current = at.transaction
    if isinstance(statement, s.Begin):
        if current is not None:
            raise PenstockError("a transaction has begun already. COMMIT or ROLLBACK it first.")
        at.transaction = begin(at)
        return Done("BEGIN: nobody else sees what follows until COMMIT")
    if current is None:
        raise PenstockError(f"there is no transaction to {statement.text.split()[0].upper()}. BEGIN one first.")
    at.transaction = None
    if isinstance(statement, s.Rollback):
        current.rollback()
        return Done("ROLLBACK: nothing of the transaction was done")
    return Answering(at, current).commit()
