"""How a view stands after a refresh: the states and their transitions, as a table."""

from __future__ import annotations

import errno
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from penstock import errors
from penstock.catalog.states import ACTIVE, SUSPENDED, ViewState
from penstock.engine.faults import after_error, after_success, fault_of, state_of, wait_after
from penstock.vocabulary import Fault, State

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


PAGE = Path(__file__).parents[2] / "docs" / "scheduling.md"
EVENTS: dict[str, Callable[[ViewState], ViewState]] = {
    "`CREATE`": after_success,
    "`CREATE .. WITH NO DATA`": lambda state: state,
    "a refresh succeeds": after_success,
    "a refresh fails": lambda state: failed(state, most=9),
    "a refresh fails, one time too many": lambda state: failed(state, most=1),
    "its process is killed": lambda state: state,
    "`SUSPEND`": lambda state: SUSPENDED,
    "`RESUME`": lambda state: ACTIVE,
    "`CREATE OR REPLACE`": after_success,
}
STATES = {"INITIALIZING": ACTIVE, "ACTIVE": ACTIVE, "ERROR": TWICE, "SUSPENDED": SUSPENDED, "": ACTIVE}
FILLING = ("`CREATE`", "a refresh succeeds", "`CREATE OR REPLACE`")


def failed(state: ViewState, most: int) -> ViewState:
    return after_error(state, Fault.USER, NOW, VERSIONS, most=most)


def transitions() -> list[tuple[str, str, str, bool]]:
    """The table of the page: before, what happens, after, and whether the view has rows."""
    lines = PAGE.read_text().partition("| before | what happens | after |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [
        (before.strip("`"), event, after.split(",")[0].strip("`"), "without rows" not in after)
        for before, event, after in rows
    ]


@pytest.mark.parametrize(("before", "event", "after", "filled"), transitions())
def test_the_page_tells_what_becomes_of_a_state(before: str, event: str, after: str, filled: bool) -> None:
    has_rows = (filled and before not in ("INITIALIZING", "")) or event in FILLING
    assert state_of(STATES[before], filled=before != "INITIALIZING") == (before or State.ACTIVE)
    assert state_of(EVENTS[event](STATES[before]), filled=has_rows) == after


def test_the_page_leaves_no_state_and_no_event_out() -> None:
    told = transitions()
    assert {before for before, *_ in told} - {""} == set(State) == {after for _, _, after, _ in told}
    assert {event for _, event, _, _ in told} == set(EVENTS)
    assert len({(before, event, filled) for before, event, _, filled in told}) == len(told)


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
