"""status: data as of when, what a view has not seen yet, and where it is."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from command import Run

import penstock
from penstock.catalog.leases import Leases


@pytest.fixture
def shop(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE Orders (id INT, region STRING)")
    db.sql("INSERT INTO Orders VALUES (1, 'eu')")
    db.create_view("totals", "SELECT region, COUNT(*) AS n FROM orders GROUP BY region")
    db.create_view("large", "SELECT region FROM totals WHERE n > 1")
    return db


def status(db: penstock.Database) -> dict[str, Any]:
    return {view.name: view for view in db.status()}


def test_a_view_is_behind_by_the_commits_that_it_has_not_seen(shop: penstock.Database) -> None:
    assert [view.behind for view in shop.status()] == [{}, {}]
    shop.sql("INSERT INTO orders VALUES (2, 'eu')")
    shop.sql("INSERT INTO orders VALUES (3, 'us')")
    assert [view.behind for view in shop.status()] == [{"Orders": 2}, {"Orders": 2}]
    with Leases(shop._catalog, ["large"]):
        shop.refresh()
    assert [view.behind for view in shop.status()] == [{}, {"Orders": 2, "totals": 1}]
    shop.refresh()
    assert [view.behind for view in shop.status()] == [{}, {}]


def test_data_is_as_of_the_refresh_that_looked_at_the_sources_last(shop: penstock.Database) -> None:
    created = status(shop)["totals"].data_time
    moment = datetime.now(timezone.utc)
    assert created < moment
    with Leases(shop._catalog, ["totals"]):
        shop.refresh()
    assert status(shop)["totals"].data_time == created, "it was skipped"
    shop.refresh()
    assert status(shop)["totals"].data_time > moment, "there was nothing new, and it knows"
    shop.checkpoint("before")
    seen = status(shop)["totals"].data_time
    shop.sql("INSERT INTO orders VALUES (2, 'eu')")
    shop.refresh()
    assert status(shop)["totals"].data_time > seen
    shop.restore("before")
    assert (status(shop)["totals"].data_time, status(shop)["totals"].behind) == (seen, {"Orders": 1})


def test_a_view_without_rows_has_no_data_time(shop: penstock.Database) -> None:
    shop.sql("CREATE OR REPLACE MATERIALIZED VIEW large AS SELECT region FROM totals WHERE n > 2 WITH NO DATA")
    assert (status(shop)["large"].data_time, status(shop)["large"].behind) == (None, {})


def test_a_source_that_is_gone_or_replaced_is_told(shop: penstock.Database, warehouse: Path, run: Run) -> None:
    shutil.rmtree(warehouse / "tables" / "orders")
    shown = run("status", "-w", warehouse)
    assert shown.exit_code == 0
    assert "Orders (gone or replaced)" in shown.stdout


def test_the_location_is_told(shop: penstock.Database, warehouse: Path, run: Run) -> None:
    shop.sql("INSERT INTO orders VALUES (2, 'eu')")
    views = {view["name"]: view for view in json.loads(run("status", "--json", "-w", warehouse).stdout)}
    assert views["totals"]["location"] == str(warehouse / "views" / "totals")
    assert views["totals"]["behind"] == {"Orders": 1}
    assert datetime.fromisoformat(views["totals"]["data_time"]) == status(shop)["totals"].data_time
    listed = {row["name"]: row for row in shop.sql("SHOW MATERIALIZED VIEWS").collect()}  # type: ignore[union-attr]
    assert listed["large"]["location"] == str(warehouse / "views" / "large")
    assert listed["large"]["behind"] == "Orders (1 commit)"
    header, first, *_ = run("status", "-w", warehouse).stdout.splitlines()
    assert header.split()[-3:] == ["as", "of", "behind"]
    assert "Orders (1 commit)" in first
