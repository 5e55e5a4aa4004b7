"""Failures, crashes and reopening: what was published stays, what was not leaves nothing to repair."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import penstock
from catalogs import catalog_of, connected
from oracle import assert_all_fresh, assert_fresh, rows
from penstock.catalog.leases import Leases


@pytest.fixture
def t(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE t (k INT, x INT)")
    db.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    return db


@pytest.mark.catalogs
def test_a_view_that_fails_does_not_stop_the_others(t: penstock.Database) -> None:
    t.create_view("fine", "SELECT k, SUM(x) AS s FROM t GROUP BY k")
    t.create_view("fragile", "SELECT k, 10 DIV x AS q FROM t")
    t.create_view("downstream", "SELECT q FROM fragile")
    t.sql("INSERT INTO t VALUES (3, 0)")
    with pytest.raises(penstock.RefreshError, match="fragile") as failed:
        t.refresh()
    report = failed.value.report
    assert (report["fragile"].status, report["fine"].action) == ("FAILED", "INCREMENTAL")
    assert "DIVIDE_BY_ZERO" in str(report["fragile"].error)
    assert (report["downstream"].action, report["downstream"].reason) == ("SKIP", "UPSTREAM_FAILED")
    assert_fresh(t, "fine", "INCREMENTAL")
    assert rows(t.table("fragile")) == [(1, 10), (2, 5)]
    t.sql("UPDATE t SET x = 5 WHERE k = 3")
    t.refresh()
    assert_all_fresh(t)
    assert t.history("fragile", 1)[0].action == "INCREMENTAL"


def test_a_failure_in_a_hidden_node_fails_its_view(t: penstock.Database) -> None:
    t.create_view("v", "SELECT k FROM (SELECT k, SUM(10 DIV x) AS s FROM t GROUP BY k) WHERE s > 1")
    t.sql("INSERT INTO t VALUES (3, 0)")
    with pytest.raises(penstock.RefreshError) as failed:
        t.refresh()
    assert failed.value.report["v"].status == "FAILED"
    assert "DIVIDE_BY_ZERO" in str(failed.value.report["v"].error)


def test_a_warehouse_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "a b%20c?d#e"
    for _ in range(2):
        with penstock.connect(path) as db:
            assert db.status() == []
    assert (path / "catalog.sqlite").exists()


@pytest.mark.catalogs
def test_reopening_shows_the_same_views_rows_and_history(t: penstock.Database, warehouse: Path) -> None:
    t.create_view("v", "SELECT k, SUM(x) AS s FROM t GROUP BY k HAVING SUM(x) > 0")
    for change in ("INSERT INTO t VALUES (3, 3)", "UPDATE t SET x = 7 WHERE k = 1", "DELETE FROM t WHERE k = 2"):
        t.sql(change)
        t.refresh()
        with connected(warehouse) as other:
            assert rows(other.table("v")) == rows(t.table("v"))
            assert other.history("v") == t.history("v")
            assert other.status() == t.status()
            assert_fresh(other, "v", "INCREMENTAL")


CRASH = """
    import os, sys
    import penstock, penstock.engine.engine, penstock.storage.apply
    from penstock.catalog import Catalog

    def die(*args, **kwargs):
        os._exit(9)

    if sys.argv[3] == "commit":
        penstock.storage.apply.commit = die
    else:
        Catalog.publish = die
    db = penstock.connect(sys.argv[1], catalog=sys.argv[2] or None)
    db.sql("INSERT INTO t VALUES (3, 3), (1, 5)")
    db.refresh()
"""


@pytest.mark.catalogs
@pytest.mark.parametrize("moment", ["commit", "publish"])
def test_a_process_killed_in_an_epoch_leaves_nothing_to_repair(
    t: penstock.Database, warehouse: Path, moment: str
) -> None:
    t.create_view("v", "SELECT k, SUM(x) AS s FROM t GROUP BY k")
    t.create_view("w", "SELECT s FROM v WHERE s > 1")
    before = rows(t.table("v"))
    command = [sys.executable, "-c", textwrap.dedent(CRASH), str(warehouse), catalog_of(warehouse) or "", moment]
    child = subprocess.run(command, check=False)
    assert child.returncode == 9
    with connected(warehouse) as db:
        assert rows(db.table("v")) == before
        db.refresh()
        assert_all_fresh(db, "INCREMENTAL")
        db.sql("DELETE FROM t WHERE k = 3")
        db.refresh()
        assert_all_fresh(db, "INCREMENTAL")


@pytest.mark.catalogs
def test_a_view_that_another_process_refreshes_is_skipped(t: penstock.Database, warehouse: Path) -> None:
    t.create_view("v", "SELECT k FROM t")
    t.sql("INSERT INTO t VALUES (4, 4)")
    with connected(warehouse) as other, Leases(other._catalog, ["v"]):
        skipped = t.refresh()["v"]
        assert (skipped.action, skipped.reason) == ("SKIP", "HELD_BY_ANOTHER")
    assert t.refresh()["v"].action == "INCREMENTAL"
    assert_fresh(t, "v")


def test_a_source_whose_directory_is_gone(db: penstock.Database, tmp_path: Path) -> None:
    place = tmp_path / "place"
    db.sql(f"CREATE TABLE away (a INT) LOCATION '{place}'")
    db.sql("INSERT INTO away VALUES (1)")
    db.create_view("v", "SELECT a FROM away")
    shutil.move(place, tmp_path / "elsewhere")
    with pytest.raises(penstock.RefreshError, match=r"table 'away'.*directory is gone"):
        db.refresh()
    with pytest.raises(penstock.SourceError, match="directory is gone"):
        db.sql("SELECT * FROM away")
    assert rows(db.table("v")) == [(1,)]
    shutil.move(tmp_path / "elsewhere", place)
    assert db.refresh()["v"].action == "NO_DATA"


def test_bad_input_loses_nothing_and_prints_nothing(t: penstock.Database, capfd: pytest.CaptureFixture[str]) -> None:
    t.create_view("v", "SELECT k FROM t")
    capfd.readouterr()
    for statement, message in {
        "SELECT nope FROM t": "nope",
        "INSERT INTO t VALUES ('x', 1)": "CAST_INVALID_INPUT",
        "INSERT INTO t VALUES (1)": "not enough data columns",
        "UPDATE t SET nope = 1": "nope",
        "CREATE MATERIALIZED VIEW w AS SELECT k + s FROM t": "`s`",
        "CREATE MATERIALIZED VIEW w AS SELECT COUNT(*) FROM t": "AS some_name",
        "SELECT k FROM t WHERE (k > 1": "line 1, column",
    }.items():
        with pytest.raises(penstock.PenstockError) as problem:
            t.sql(statement)
        assert message in str(problem.value)
        assert "\n\tat " not in str(problem.value)
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")
    assert t.refresh()["v"].action == "NO_DATA"
    assert rows(t.table("v")) == [(1,), (2,)]


def test_a_column_that_a_view_needs_is_dropped(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k INT, x INT) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    db.sql("INSERT INTO t VALUES (1, 1)")
    db.create_view("v", "SELECT x FROM t")
    db.create_view("other", "SELECT k FROM t")
    db.sql("ALTER TABLE t DROP COLUMN x")
    db.sql("INSERT INTO t VALUES (2)")
    with pytest.raises(penstock.RefreshError, match="column 'x' of table 't' is gone"):
        db.refresh()
    assert_fresh(db, "other", "INCREMENTAL")


def test_warehouses_that_cannot_be_opened(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(penstock.WarehouseError, match="cannot be created"):
        penstock.connect(blocker / "warehouse")
    newer = tmp_path / "newer"
    penstock.connect(newer).close()
    with sqlite3.connect(newer / "catalog.sqlite") as catalog:
        catalog.execute("UPDATE settings SET value = '999' WHERE name = 'schema_version'")
    with pytest.raises(penstock.WarehouseError, match="newer Penstock"):
        penstock.connect(newer)
    assert os.path.exists(newer / "catalog.sqlite")
