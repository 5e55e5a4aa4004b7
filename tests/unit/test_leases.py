"""Leases: two refreshes never work on one node; a dead owner's lease is free at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from penstock.catalog import Catalog
from penstock.catalog import tables as t
from penstock.catalog.catalog import now
from penstock.catalog.leases import Leases

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
