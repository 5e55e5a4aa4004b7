"""Every way in which a source may change, and what is left when its history is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import penstock
from oracle import assert_all_fresh, assert_fresh
from penstock.frames import limits
from penstock.storage import changes


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small changes are read on the driver, as all other tests show; here Spark reads them, as it does larger ones."""
    monkeypatch.setattr(changes, "read_locally", lambda *_: None)


@pytest.fixture
def outside(db: penstock.Database, tmp_path: Path) -> str:
    """An external table without change data feed, and two views of it."""
    path = str(tmp_path / "outside")
    db.sql(f"CREATE TABLE t (k INT, x INT) LOCATION '{path}'")
    db.sql("INSERT INTO t VALUES (1, 1), (1, 1), (2, 2), (NULL, 3)")
    db.create_view("copy", "SELECT x, k FROM t WHERE x > 0")
    db.create_view("sums", "SELECT k, SUM(x) AS s, MAX(x) AS top FROM t GROUP BY k")
    return path


def test_files_are_compared_where_there_is_no_feed(db: penstock.Database, outside: str) -> None:
    statements = [
        "UPDATE t SET x = 9 WHERE k = 2",
        "DELETE FROM t WHERE x = 9",
        "INSERT OVERWRITE t SELECT 5, 5",
        "MERGE INTO t USING (SELECT 5 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET x = 6",
        "RESTORE TABLE t TO VERSION AS OF 1",
        "TRUNCATE TABLE t",
    ]
    for statement in statements:
        db.sql(statement)
        db.refresh()
        assert_all_fresh(db, "INCREMENTAL")


def test_several_commits_with_an_optimize_between_are_one_change(db: penstock.Database, outside: str) -> None:
    db.sql("INSERT INTO t VALUES (3, 3)")
    db.sql("OPTIMIZE t")
    db.sql("DELETE FROM t WHERE k = 1")
    db.sql("INSERT INTO t VALUES (1, 7)")
    db.sql("OPTIMIZE t")
    db.refresh()
    assert_all_fresh(db, "INCREMENTAL")
    db.sql("OPTIMIZE t")
    db.refresh()
    assert_all_fresh(db, "NO_DATA")


def test_a_partitioned_table_with_deletion_vectors_and_no_feed(db: penstock.Database, tmp_path: Path) -> None:
    db.sql(
        f"CREATE TABLE p (k INT, x INT) PARTITIONED BY (k) LOCATION '{tmp_path / 'p'}' "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    db.sql("INSERT INTO p SELECT id % 3, id FROM range(30)")
    db.create_view("copy", "SELECT k, x FROM p")
    db.sql("DELETE FROM p WHERE x IN (4, 5)")
    db.sql("INSERT INTO p VALUES (7, 70)")
    db.refresh()
    assert_fresh(db, "copy", "INCREMENTAL")
    db.sql("UPDATE p SET k = 2 WHERE x = 6")
    db.sql("OPTIMIZE p")
    db.refresh()
    assert_fresh(db, "copy", "INCREMENTAL")


def test_a_feed_over_all_kinds_of_statements(db: penstock.Database) -> None:
    db.sql("CREATE TABLE m (k INT, x INT)")
    db.sql("INSERT INTO m SELECT id % 4, id FROM range(40)")
    db.create_view("sums", "SELECT k, SUM(x) AS s, MIN(x) AS low FROM m GROUP BY k")
    db.sql("UPDATE m SET x = x + 1 WHERE k = 1")
    db.sql("DELETE FROM m WHERE x = 0")
    db.sql("INSERT INTO m VALUES (9, 9)")
    db.refresh()
    assert_fresh(db, "sums", "INCREMENTAL")
    db.sql("RESTORE TABLE m TO VERSION AS OF 1")
    db.refresh()
    assert_fresh(db, "sums", "INCREMENTAL")
    db.sql("ALTER TABLE m ADD COLUMN note STRING")
    db.sql("INSERT OVERWRITE m VALUES (1, 1, 'new')")
    db.refresh()
    assert_fresh(db, "sums", "INCREMENTAL")


def test_a_delete_of_so_many_rows_that_the_feed_cannot_be_read(db: penstock.Database) -> None:
    """A file with a vector, of which one row in nine goes: more places than Delta's own reader can hand on."""
    db.sql("CREATE TABLE t (x BIGINT)")
    db.sql("INSERT INTO t SELECT id FROM range(0, 500000, 1, 1)")
    db.sql("DELETE FROM t WHERE x = 7")
    db.create_view(
        "sums", "SELECT x % 10 AS k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY x % 10", policy="INCREMENTAL"
    )
    db.sql("DELETE FROM t WHERE pmod(hash(x), 9) = 0")
    db.sql("UPDATE t SET x = x + 1 WHERE x < 100")
    db.refresh()
    assert_all_fresh(db, "INCREMENTAL")


def test_a_table_made_anew_at_its_place_reinitializes(db: penstock.Database, outside: str) -> None:
    shutil.rmtree(outside)
    db.spark.sql("SELECT 8 AS k, 8 AS x").write.format("delta").save(outside)
    db.refresh()
    assert_all_fresh(db, "REINITIALIZE")
    assert db.history("copy", 1)[0].reason == "SOURCE_REPLACED"


def test_a_vacuumed_history_reinitializes(db: penstock.Database, outside: str) -> None:
    db.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    db.sql("UPDATE t SET x = 4 WHERE k = 2")
    db.sql("OPTIMIZE t")
    db.sql("VACUUM t RETAIN 0 HOURS")
    db.refresh()
    for view in ("copy", "sums"):
        last = db.history(view, 1)[0]
        assert (last.action, last.reason) == ("REINITIALIZE", "HISTORY_GONE")
        assert {tuple(r) for r in db.table(view).collect()} == {
            tuple(r)
            for r in db.sql(db._catalog.world().views[view].query).collect()  # type: ignore[union-attr]
        }


def test_large_changes_of_large_tables_take_the_other_paths(
    db: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOCAL_ROWS", 3)
    monkeypatch.setattr(limits, "SMALL_TABLE_ROWS", 5)
    monkeypatch.setattr("penstock.frames.limits.SMALL_CHANGE_BYTES", 0)
    monkeypatch.setattr("penstock.frames.limits.CHANGE_ROWS", 3)
    monkeypatch.setattr("penstock.frames.limits.READ_ROWS", -1)
    db.sql("CREATE TABLE big (k INT, x INT, d DOUBLE)")
    db.sql("INSERT INTO big SELECT id % 7, id, id / 4 FROM range(60)")
    db.create_view("copy", "SELECT k, d FROM big WHERE x > 3")
    db.create_view("sums", "SELECT k, SUM(x) AS s, MAX(d) AS top, SUM(d) AS f FROM big GROUP BY k")
    db.create_view("tops", "SELECT k, MAX(x) AS top, COUNT(*) AS n FROM big GROUP BY k")
    db.sql("INSERT INTO big SELECT id % 9, id, NULL FROM range(100, 130)")
    db.refresh()
    assert_all_fresh(db, "INCREMENTAL")
    db.sql("DELETE FROM big WHERE x % 5 = 0")
    db.sql("UPDATE big SET d = -0.0 WHERE x % 3 = 0")
    db.refresh()
    assert_all_fresh(db, "INCREMENTAL")
    assert {r.strategy for r in db.history(limit=3)} == {"REWRITE"}
