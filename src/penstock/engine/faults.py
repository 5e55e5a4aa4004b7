"""Whose fault an error of a refresh is, and how a view stands after a refresh: pure functions, tested as tables.

A user's error comes again until the query or its data change, so it is not tried again before. A system's error may be
over in a moment: it is tried again, later each time. Whoever fails too often in a row is suspended until a person says
RESUME.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from penstock.catalog.states import ACTIVE, ViewState
from penstock.errors import (
    BusyError,
    ConflictError,
    DefinitionError,
    DependencyError,
    LeaseLostError,
    NotFoundError,
    QueryError,
    SourceError,
    SparkError,
    WarehouseError,
)
from penstock.vocabulary import Fault, State

_SYSTEMS = (WarehouseError, BusyError, ConflictError, LeaseLostError, SparkError, OSError)
_SCHEMAS = (SourceError, DefinitionError, NotFoundError, DependencyError)
_OF_THE_MACHINE = re.compile(
    r"no space left|disk quota|read-only file system|too many open files|connection (refused|reset|timed out)"
    r"|lost executor|executorlost|fetchfailed|outofmemory|stage cancelled|job \d+ cancelled|permission denied"
    r"|input/output error|broken pipe|cannot be reached|refresh again",
    re.IGNORECASE,
)
"""What Spark's own messages say when neither the query nor its data are to blame."""
_OF_THE_SCHEMA = re.compile(r"unresolved_column|unresolved_routine|is not known to this spark session", re.IGNORECASE)

_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=10), timedelta(minutes=15)
_JITTER = 0.25


def fault_of(problem: BaseException | None) -> Fault:
    """
    >>> fault_of(QueryError("[DIVIDE_BY_ZERO] Division by zero.")), fault_of(QueryError("No space left on device"))
    ('USER', 'SYSTEM')
    >>> fault_of(SourceError("there is no Delta table at '/t'")), fault_of(OSError(28, "full"))
    ('SCHEMA', 'SYSTEM')
    """
    if problem is not None and problem.__cause__ is not None:
        problem = problem.__cause__
    if problem is None or isinstance(problem, _SYSTEMS) or _OF_THE_MACHINE.search(str(problem)):
        return Fault.SYSTEM
    if isinstance(problem, _SCHEMAS) or _OF_THE_SCHEMA.search(str(problem)):
        return Fault.SCHEMA
    return Fault.USER if isinstance(problem, QueryError | ArithmeticError | ValueError) else Fault.SYSTEM


def wait_after(errors: int, jitter: Callable[[], float] = random.random) -> timedelta:
    """How long to wait after so many errors in a row: twice as long each time, and never at the same moment as others.

    >>> [round(wait_after(n, lambda: 0.0).total_seconds()) for n in (1, 2, 3, 10)]
    [10, 20, 40, 900]
    """
    wait = min(_FIRST_WAIT * 2 ** min(errors - 1, 20), _LONGEST_WAIT)
    return wait * (1 + _JITTER * jitter())


def state_of(state: ViewState, *, filled: bool) -> State:
    """How a view stands, in one word."""
    if state.suspended:
        return State.SUSPENDED
    if state.errors:
        return State.ERROR
    return State.ACTIVE if filled else State.INITIALIZING


def after_success(state: ViewState) -> ViewState:
    """A view that a person has suspended stays so, though it was refreshed by hand."""
    return ViewState(suspended=True) if state.suspended else ACTIVE


def after_error(
    state: ViewState,
    fault: Fault,
    now: datetime,
    versions: Mapping[str, int | None],
    most: int,
    jitter: Callable[[], float] = random.random,
) -> ViewState:
    """``versions``: of the sources that it failed on; ``most``: errors in a row that are too many."""
    errors = state.errors + 1
    return ViewState(
        suspended=state.suspended or errors >= most,
        errors=errors,
        kind=fault,
        not_before=now + wait_after(errors, jitter) if fault == Fault.SYSTEM else None,
        failed_on=None if fault == Fault.SYSTEM else dict(versions),
    )
