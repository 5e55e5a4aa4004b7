"""The one hierarchy of errors. A message names the object, says what went wrong, and says what to do next."""

from __future__ import annotations

import difflib
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.vocabulary import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MOST_NAMED = 20
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
"""How Spark's messages name what they tell of."""


def nearest(name: str, names: Iterable[str]) -> str:
    """What to say behind an unknown name: the known one that it is nearest to, or else all of them.

    >>> nearest("ordesr", ["Orders", "totals"])
    "Did you mean 'Orders'?"
    >>> nearest("sales", ["Orders", "totals"])
    'Known are: Orders, totals.'
    >>> nearest("orders", [])
    'Known are: none yet.'
    """
    spelled = {one.lower(): one for one in names}
    near = difflib.get_close_matches(name.lower(), spelled, 1)
    if near:
        return f"Did you mean {spelled[near[0]]!r}?"
    listed = list(spelled.values())
    more = ", .." if len(listed) > _MOST_NAMED else ""
    return f"Known are: {', '.join(listed[:_MOST_NAMED]) or 'none yet'}{more}."


class PenstockError(Exception):
    """The base of every error that Penstock raises on purpose."""


class SqlError(PenstockError):
    """A statement that cannot be read. Knows the line and column where reading stopped, when there is one."""

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None):
        super().__init__(message)
        self.line = line
        self.column = column


class NotSupportedError(PenstockError):
    """Something that Penstock understands but does not do (yet)."""


class QueryError(PenstockError):
    """Spark refused a query or failed while running it; the message is Spark's, without its stack."""


@contextmanager
def of_object(what: str) -> Iterator[None]:
    """Name the object in errors that know only its query.

    >>> with of_object("view 'totals'"):
    ...     raise QueryError("the query is not valid: no such column.")
    Traceback (most recent call last):
    penstock.errors.QueryError: view 'totals': the query is not valid: no such column.
    """
    try:
        yield
    except SqlError as problem:
        raise SqlError(f"{what}: {problem}", line=problem.line, column=problem.column) from None
    except QueryError as problem:
        raise QueryError(f"{what}: {problem}") from None


class NotFoundError(PenstockError):
    """A table or view that is not in the catalog."""

    @classmethod
    def of_path(cls, path: str) -> NotFoundError:
        """For a path where a name is needed."""
        return cls(
            f"{path!r} is a path, and tables are known by name. Register it first: "
            f"CREATE TABLE some_name LOCATION '{path}', or db.register_table('some_name', '{path}')."
        )


class AlreadyExistsError(PenstockError):
    """A name that is taken by another table or view."""


class DependencyError(PenstockError):
    """An operation that other views stand in the way of: a cycle, or a drop of something that is read."""


class DefinitionError(PenstockError):
    """A view or table definition that cannot be accepted."""


class NotIncrementalError(DefinitionError):
    """A view under INCREMENTAL STRICT whose query cannot be maintained incrementally."""

    def __init__(self, message: str, *, code: Reason):
        super().__init__(message)
        self.code = code


class WarehouseError(PenstockError):
    """A warehouse or catalog that cannot be opened, read or written."""


class StoreError(WarehouseError, OSError):
    """An object store that does not answer, or refuses what it is asked. Files of this machine have ``OSError``."""


class SourceError(PenstockError):
    """A source table whose data cannot be read: its directory is gone, or it is not a Delta table."""


class RetentionError(PenstockError):
    """A moment so long ago that it is no longer kept."""


class ConflictError(PenstockError):
    """Another writer was first, and what was asked for no longer means the same. Nothing has changed; try again."""


class SparkError(PenstockError):
    """Spark cannot be started, or the given session cannot be used."""


class BusyError(PenstockError):
    """Something that another process is changing or refreshing, for longer than a statement waits."""


class LeaseLostError(PenstockError):
    """Work that came too late to be published: its lease had run out, and another took over. Nothing was changed."""


class RefreshError(PenstockError):
    """At least one view failed to refresh. Everything that could be published was; ``report`` tells about each view."""

    def __init__(self, message: str, *, report: Mapping[str, Any]):
        super().__init__(message)
        self.report = report


class InternalError(PenstockError):
    """A broken promise inside Penstock. Please report it together with the message."""


def without_values(problem: BaseException) -> str:
    """What may be said of a problem in logs, alerts and events, where no value of a row may be.

    Messages of our own name tables, views and columns. Those of Spark and of libraries may quote values.

    >>> without_values(QueryError("[CAST_INVALID_INPUT] The value 'x' of the type STRING cannot be cast to INT."))
    'CAST_INVALID_INPUT'
    >>> without_values(SourceError("table 'orders' cannot be read: its directory is gone."))
    "table 'orders' cannot be read: its directory is gone."
    """
    cause = problem.__cause__
    if isinstance(problem, PenstockError) and not isinstance(problem, QueryError) and cause is None:
        return str(problem)
    conditions = ", ".join(dict.fromkeys(_CONDITION.findall(str(problem))))
    return conditions or ("a query failed" if isinstance(problem, QueryError) else type(cause or problem).__name__)
