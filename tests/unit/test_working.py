"""What the history says of refreshes that go on, were killed, or came to nothing."""

from __future__ import annotations

import socket
import subprocess
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from sqlalchemy import insert, select

from penstock.catalog import Catalog, HistoryRecord, working
from penstock.catalog import tables as t
from penstock.catalog.leases import Leases
from penstock.observe.statistics import statistics
from penstock.vocabulary import Action, Reason, Status

NOON = datetime(2026, 11, 18, 12, tzinfo=timezone.utc)


@pytest.fixture
def catalog(url: str) -> Catalog:
    found = Catalog(url)
    with found.transaction(writes=True) as connection:
        connection.execute(
            insert(t.views).values(
                key="v", name="v", query="", columns=[], properties={}, refresh="", policy="AUTO", reads=[],
                created_at=NOON,
            )
        )  # fmt: skip
    return found


def record(minute: float, action: Action = Action.NO_DATA, **other: object) -> HistoryRecord:
    usual = HistoryRecord(
        epoch=1, view="v", status=Status.SUCCEEDED, action=action, strategy=None, reason=Reason.NO_CHANGE,
        rows_inserted=0, rows_deleted=0, seconds=2.0, started_at=NOON + timedelta(minutes=minute),
        details={"due": "its target lag"},
    )  # fmt: skip
    return replace(usual, **other)  # type: ignore[arg-type]


def gone_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def leased(catalog: Catalog, node: str, host: str, pid: int, *, began: datetime | None, minutes: float = 1) -> None:
    now = datetime.now(timezone.utc)
    values = {"owner": f"of {node}", "host": host, "pid": pid, "expires_at": now + timedelta(minutes=minutes)}
    with catalog.transaction(writes=True) as connection:
        connection.execute(insert(t.leases).values(node=node, began=began, **values))


def test_refreshes_that_came_to_nothing_are_one_line(catalog: Catalog) -> None:
    changed = record(0, Action.INCREMENTAL, reason=Reason.CHANGED)
    for each in (changed, record(1), record(2), record(5), record(6)):
        catalog.record([each])
    last, first = catalog.history("v")
    assert (last.times, last.since, last.started_at) == (4, NOON + timedelta(minutes=1), NOON + timedelta(minutes=6))
    assert (first.times, first.since, last.seconds) == (1, None, 8.0)
    told = statistics(catalog)["v"]
    assert (told.refreshes, told.without_change, told.seconds) == (5, 4, 10.0)
    assert told.largest_lag == timedelta(minutes=3, seconds=2), "between the third and the fourth"
    assert catalog.last_refreshes(that_saw_sources=True)["v"].started_at == last.started_at, "its data time moves on"
    for each in (record(7, details={}), record(8)):
        catalog.record([each])
    assert [each.times for each in catalog.history("v")] == [1, 1, 4, 1], "what somebody asked for is an answer"


def test_a_view_that_another_holds_is_one_line_for_each_episode(catalog: Catalog) -> None:
    held = {"action": Action.SKIP, "status": Status.SKIPPED, "reason": Reason.HELD_BY_ANOTHER}
    for minute in range(5):
        catalog.record([record(minute, **held)])
    catalog.record([record(6, Action.INCREMENTAL, reason=Reason.CHANGED)])
    catalog.record([record(7, **held)])
    catalog.record([record(8, Action.SKIP, status=Status.SKIPPED, reason=Reason.UPSTREAM_FAILED)])
    assert [(each.reason, each.times) for each in catalog.history("v")] == [
        ("UPSTREAM_FAILED", 1), ("HELD_BY_ANOTHER", 1), ("CHANGED", 1), ("HELD_BY_ANOTHER", 5),
    ]  # fmt: skip
    assert statistics(catalog)["v"].skips == 7


def test_a_refresh_goes_on_until_it_is_written_down(catalog: Catalog) -> None:
    began = datetime.now(timezone.utc)
    with Leases(catalog, ["v", "hidden"], began=began):
        (running,) = catalog.history()
        assert (running.view, running.status, running.started_at) == ("v", "RUNNING", began)
        assert catalog.leased() == {"v", "hidden"}
        catalog.record([record(0, started_at=began)])
        assert [each.status for each in catalog.history()] == ["SUCCEEDED"], "though its leases are not given back yet"
    with Leases(catalog, ["v"]):
        assert catalog.leased() == set(), "this is no refresh"


def test_a_refresh_whose_process_was_killed_failed(catalog: Catalog) -> None:
    began = datetime.now(timezone.utc) - timedelta(seconds=20)
    leased(catalog, "v", socket.gethostname(), gone_pid(), began=began)
    leased(catalog, "hidden", socket.gethostname(), gone_pid(), began=began)
    assert catalog.leased() == set()
    for look in range(3):
        (failed,) = catalog.history("v")
        assert (failed.status, failed.reason, failed.started_at) == ("FAILED", "INTERRUPTED", began), look
        assert "ended before anything of it was published. Refresh again" in str(failed.error)
        catalog.end_what_was_killed()
    with catalog.transaction(writes=False) as connection:
        assert connection.execute(select(t.leases)).all() == []


def test_whoever_takes_over_writes_down_what_another_host_did_not_end(catalog: Catalog) -> None:
    leased(catalog, "v", "elsewhere", 1, began=datetime.now(timezone.utc), minutes=1)
    assert catalog.history()[0].status == "RUNNING"
    with Leases(catalog, ["v"]) as held:
        assert held == {"v"}
    with catalog.transaction(writes=True) as connection:
        connection.execute(t.leases.update().values(expires_at=datetime.now(timezone.utc) - timedelta(seconds=1)))
    assert catalog.history()[0].status == "FAILED"
    with Leases(catalog, ["v"]) as held:
        assert held == set()
    assert [each.reason for each in catalog.history()] == ["INTERRUPTED"]


def test_a_process_that_has_the_number_of_the_one_before_it(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that is started again: what another owner of our number has left is nobody's."""
    import os

    leased(catalog, "v", socket.gethostname(), os.getpid(), began=datetime.now(timezone.utc))
    assert not working.owners
    with Leases(catalog, ["v"]) as held:
        assert held == set()
    assert catalog.history()[0].reason == "INTERRUPTED"
