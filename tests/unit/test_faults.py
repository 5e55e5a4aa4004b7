"""How a view stands after a refresh: the states and their transitions, as a table."""

from __future__ import annotations

import errno
from datetime import datetime, timedelta, timezone

import pytest

from penstock import errors
from penstock.catalog.states import ACTIVE, SUSPENDED, ViewState
from penstock.engine.faults import after_error, after_success, fault_of, wait_after
from penstock.vocabulary import Fault

NOW = datetime(2026, 11, 18, 12, tzinfo=timezone.utc)
VERSIONS = {"t": 7, "gone": None}
ONCE = ViewState(errors=1, kind=Fault.SYSTEM, not_before=NOW - timedelta(seconds=1))
TWICE = ViewState(errors=2, kind=Fault.USER, failed_on={"t": 6})


def waiting(errors: int, seconds: float, *, suspended: bool = False) -> ViewState:
    until = NOW + timedelta(seconds=seconds)
    return ViewState(suspended=suspended, errors=errors, kind=Fault.SYSTEM, not_before=until)


def stuck(errors: int, kind: Fault = Fault.USER, *, suspended: bool = False) -> ViewState:
    return ViewState(suspended=suspended, errors=errors, kind=kind, failed_on=VERSIONS)


TABLE = [
    (ACTIVE, "success", ACTIVE),
    (ONCE, "success", ACTIVE),
    (TWICE, "success", ACTIVE),
    (SUSPENDED, "success", SUSPENDED),
    (stuck(3, suspended=True), "success", SUSPENDED),
    (ACTIVE, Fault.SYSTEM, waiting(1, 10)),
    (ONCE, Fault.SYSTEM, waiting(2, 20)),
    (TWICE, Fault.SYSTEM, waiting(3, 40, suspended=True)),
    (ACTIVE, Fault.USER, stuck(1)),
    (ONCE, Fault.USER, stuck(2)),
    (TWICE, Fault.USER, stuck(3, suspended=True)),
    (ACTIVE, Fault.SCHEMA, stuck(1, Fault.SCHEMA)),
    (TWICE, Fault.SCHEMA, stuck(3, Fault.SCHEMA, suspended=True)),
    (SUSPENDED, Fault.SYSTEM, waiting(1, 10, suspended=True)),
]


@pytest.mark.parametrize(("before", "outcome", "after"), TABLE)
def test_what_becomes_of_a_state(before: ViewState, outcome: str | Fault, after: ViewState) -> None:
    if outcome == "success":
        assert after_success(before) == after
    else:
        assert after_error(before, Fault(outcome), NOW, VERSIONS, most=3, jitter=lambda: 0.0) == after


def test_waits_grow_up_to_a_bound_and_differ() -> None:
    waits = [wait_after(n, lambda: 0.0) for n in range(1, 40)]
    assert waits == sorted(waits)
    assert waits[-1] == timedelta(minutes=15)
    assert wait_after(1, lambda: 1.0) == timedelta(seconds=12.5)


@pytest.mark.parametrize(
    ("problem", "fault"),
    [
        (errors.QueryError("[DIVIDE_BY_ZERO] Division by zero."), Fault.USER),
        (errors.QueryError("[CAST_INVALID_INPUT] The value 'x' cannot be cast to INT"), Fault.USER),
        (errors.QueryError("Job aborted: java.io.IOException: No space left on device"), Fault.SYSTEM),
        (errors.QueryError("ExecutorLostFailure (executor 1 exited)"), Fault.SYSTEM),
        (errors.QueryError("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `a` cannot be resolved"), Fault.SCHEMA),
        (errors.QueryError("the function `twice` is not known to this Spark session."), Fault.SCHEMA),
        (errors.DefinitionError("view 'v' reads column 'a', which table 't' no longer has"), Fault.SCHEMA),
        (errors.SourceError("there is no Delta table at '/t'"), Fault.SCHEMA),
        (errors.SourceError("table 't' was written and vacuumed while it was read. Refresh again."), Fault.SYSTEM),
        (errors.WarehouseError("the catalog cannot be reached"), Fault.SYSTEM),
        (errors.BusyError("view 'v' is being changed"), Fault.SYSTEM),
        (errors.SparkError("Spark did not start"), Fault.SYSTEM),
        (OSError(errno.EROFS, "Read-only file system"), Fault.SYSTEM),
        (OverflowError("too large"), Fault.USER),
        (RuntimeError("whatever it is, it may be over in a moment"), Fault.SYSTEM),
        (None, Fault.SYSTEM),
    ],
)
def test_whose_fault_an_error_is(problem: BaseException | None, fault: Fault) -> None:
    assert fault_of(problem) == fault
    if problem is not None:
        told = errors.PenstockError(f"{type(problem).__name__}: {problem}")
        told.__cause__ = problem
        assert fault_of(told) == fault
