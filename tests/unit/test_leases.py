"""Leases: two refreshes never work on one node; a dead owner's lease is free at once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from sqlalchemy import insert, select, text, update

from penstock.catalog import Catalog, leases
from penstock.catalog import tables as t
from penstock.catalog.catalog import now, utc
from penstock.catalog.leases import Leases, Patience
from penstock.errors import BusyError

HOLD = """
import sys
from penstock.catalog import Catalog
from penstock.catalog.leases import Leases
leases = Leases(Catalog(sys.argv[1]), ["v"])
leases.__enter__()
print("held", flush=True)
sys.stdin.readline()
if sys.argv[2] == "exit":
    import os
    os._exit(1)
leases.__exit__()
"""


@pytest.fixture
def catalog(url: str) -> Catalog:
    return Catalog(url)


@contextmanager
def another_process(url: str, way: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lease of ``v`` until it is told to go on."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, url, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def held(catalog: Catalog) -> list[str]:
    with catalog.transaction(writes=False) as connection:
        return sorted(connection.execute(select(t.leases.c.node)).scalars())


def test_a_lease_is_taken_and_given_back(catalog: Catalog) -> None:
    with Leases(catalog, ["v", "w"]) as others:
        assert others == set()
        assert held(catalog) == ["v", "w"]
    assert held(catalog) == []


def test_a_lease_is_given_back_after_a_failure(catalog: Catalog) -> None:
    with pytest.raises(ZeroDivisionError), Leases(catalog, ["v"]):
        1 / 0  # noqa: B018
    assert held(catalog) == []


def test_a_second_refresh_of_this_process_does_not_get_it(catalog: Catalog) -> None:
    with Leases(catalog, ["v"]):
        with Leases(catalog, ["v", "w"]) as others:
            assert others == {"v"}
        assert held(catalog) == ["v"], "the loser gives back only what it had"


def test_a_live_process_keeps_it_and_a_clean_exit_frees_it(catalog: Catalog, url: str) -> None:
    with another_process(url, "leave") as process:
        with Leases(catalog, ["v"]) as others:
            assert others == {"v"}
        process.communicate("go on\n")
        with Leases(catalog, ["v"]) as others:
            assert others == set()


def test_a_dead_process_frees_it_at_once(catalog: Catalog, url: str) -> None:
    with another_process(url, "exit") as process:
        process.communicate("go on\n")
        assert held(catalog) == ["v"], "it died without giving it back"
        with Leases(catalog, ["v"]) as others:
            assert others == set()
    assert held(catalog) == []


@pytest.mark.parametrize(("left", "others"), [(timedelta(seconds=30), {"v"}), (timedelta(seconds=-1), set())])
def test_of_another_host_only_the_clock_is_known(catalog: Catalog, left: timedelta, others: set[str]) -> None:
    with catalog.transaction(writes=True) as connection:
        connection.execute(
            insert(t.leases).values(node="v", owner="x", host="elsewhere", pid=1, expires_at=now() + left)
        )
    with Leases(catalog, ["v"]) as found:
        assert found == others


def test_a_heartbeat_that_fails_is_tried_again(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(leases, "_HEARTBEAT", 0.02)

    def run(statement: str) -> None:
        with catalog.transaction(writes=True) as connection:
            connection.execute(text(statement))

    with Leases(catalog, ["v"]):
        run("ALTER TABLE leases RENAME TO away")  # the catalog cannot be asked for a while
        wait_until(lambda: "could not be prolonged" in caplog.text)
        run("ALTER TABLE away RENAME TO leases")
        run("UPDATE leases SET expires_at = '2020-01-01 00:00:00'")
        wait_until(lambda: expiry(catalog) > now())


def wait_until(true: Callable[[], bool]) -> None:
    for _ in range(3_000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it never came true")


def expiry(catalog: Catalog) -> datetime:
    with catalog.transaction(writes=False) as connection:
        return utc(connection.execute(select(t.leases.c.expires_at)).scalar_one())


def test_vacuum_takes_no_lease_of_a_process_that_may_live(catalog: Catalog, url: str) -> None:
    """Though it has run out; a refresh takes it over."""
    with another_process(url, "leave"):
        with catalog.transaction(writes=True) as connection:
            connection.execute(update(t.leases).values(expires_at=now() - timedelta(seconds=1)))
        with Leases(catalog, ["v"], expired=False) as others:
            assert others == {"v"}
        with Leases(catalog, ["v"]) as others:
            assert others == set()


def test_all_or_none_waits_and_then_says_for_whom(url: str, catalog: Catalog) -> None:
    said: list[str] = []
    patience = Patience(timedelta(0), said.append)
    with another_process(url, "leave"):
        with (
            pytest.raises(BusyError, match="'v' is being changed or refreshed by process"),
            Leases(catalog, ["w", "v"], patience),
        ):
            pass
        assert held(catalog) == ["v"], "it took nothing"
    with Leases(catalog, ["w", "v"], patience):
        assert held(catalog) == ["v", "w"]


def test_nobody_waits_for_the_call_that_it_was_made_from(catalog: Catalog) -> None:
    """A callback that changes what its own refresh is working on: it would wait for ever."""
    said: list[str] = []
    with (
        Leases(catalog, ["v"]),
        pytest.raises(BusyError, match="'v' is being changed or refreshed by the call that this one was made from"),
        Leases(catalog, ["w", "v"], Patience(timedelta(hours=1), said.append)),
    ):
        pass
    assert said == []
    with Leases(catalog, ["v"], Patience(timedelta(0), said.append)):
        assert held(catalog) == ["v"]
