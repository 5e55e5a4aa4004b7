"""refresh beside another process that refreshes: its exit codes, and waiting for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Run

import penstock
from oracle import assert_fresh
from penstock.catalog.leases import Leases


@pytest.fixture
def shop(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE orders (id INT, region STRING)")
    db.sql("INSERT INTO orders VALUES (1, 'eu')")
    db.create_view("totals", "SELECT region, COUNT(*) AS n FROM orders GROUP BY region")
    db.create_view("ids", "SELECT id FROM orders")
    db.sql("INSERT INTO orders VALUES (2, 'eu')")
    return db


@pytest.fixture
def elsewhere(shop: penstock.Database) -> Iterator[Leases]:
    """Another refresh of totals, which ends when it is told to."""
    leases = Leases(shop._catalog, ["totals"])
    with leases:
        yield leases


@pytest.mark.usefixtures("elsewhere")
def test_views_that_another_process_refreshes_have_an_exit_code_of_their_own(run: Run, warehouse: Path) -> None:
    alone = run("refresh", "totals", "--json", "-w", warehouse)
    assert alone.exit_code == 3
    assert [view["reason"] for view in json.loads(alone.stdout)["views"]] == ["HELD_BY_ANOTHER"]
    assert "not refreshed: 'totals'" in alone.stderr
    assert "--wait" in alone.stderr
    both = run("refresh", "-w", warehouse)
    assert both.exit_code == 3
    assert "INCREMENTAL" in both.stdout, "what nobody holds is refreshed"
    assert run("refresh", "ids", "-w", warehouse).exit_code == 0
    assert run("sql", "REFRESH MATERIALIZED VIEW totals", "-w", warehouse).exit_code == 3
    assert run("refresh", "totals", "--wait-for", "2 milliseconds", "-w", warehouse).exit_code == 3


@pytest.mark.usefixtures("shop")
def test_a_wait_that_is_no_time_is_refused(run: Run, warehouse: Path) -> None:
    refused = run("refresh", "--wait-for", "ages", "-w", warehouse)
    assert refused.exit_code == 2
    assert "a length of time" in " ".join(refused.stderr.replace("│", " ").split())


def test_a_failure_counts_for_more_than_a_view_that_is_held(run: Run, shop: penstock.Database, warehouse: Path) -> None:
    shop.create_view("numbers", "SELECT CAST(region AS INT) AS n FROM orders WHERE id > 2")
    shop.sql("INSERT INTO orders VALUES (3, 'none')")
    with Leases(shop._catalog, ["totals"]):
        assert run("refresh", "-w", warehouse).exit_code == 1


@pytest.mark.parametrize("wait", [True, "1 week"])
def test_a_refresh_that_waits_begins_when_the_other_is_through(
    shop: penstock.Database, elsewhere: Leases, warehouse: Path, wait: bool | str
) -> None:
    said: list[str] = []

    def progress(text: str) -> None:
        said.append(text)
        if text.startswith("waiting for another process"):
            elsewhere.__exit__()

    with penstock.connect(warehouse, progress=progress) as patient:
        report = patient.refresh("totals", wait=wait)
        assert report["totals"].action == "INCREMENTAL"
        assert [text for text in said if text.startswith("waiting")], said
    assert_fresh(shop, "totals", "INCREMENTAL")
    assert [record.action for record in shop.history("totals")] == ["INCREMENTAL", "FULL"], "waiting leaves no trace"


def test_progress_says_what_is_being_done_again_when_spark_has_started(
    shop: penstock.Database, warehouse: Path
) -> None:
    said: list[str] = []
    with penstock.connect(warehouse, progress=said.append) as other:
        other.refresh("totals", full=True)
        assert said == ["refreshing totals", "starting Spark", "refreshing totals"]
        other.sql("SELECT 1")
        assert said[-1] == "running the statement"
    assert_fresh(shop, "totals", "FULL")
