"""Sources that are other tables than they were: made again under a name, or put back from a backup."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

import penstock
from oracle import assert_fresh, rows


def append(db: penstock.Database, path: Path, *values: int) -> None:
    frame = db.spark.createDataFrame([(value,) for value in values], "k INT")
    frame.write.format("delta").mode("append").save(str(path))


@pytest.fixture
def source(db: penstock.Database, tmp_path: Path) -> Path:
    """An external table of two commits, a backup of the first, and a view."""
    path = tmp_path / "source"
    append(db, path, 1)
    shutil.copytree(path, tmp_path / "backup")
    append(db, path, 2)
    db.register_table("t", path)
    db.create_view("v", "SELECT k FROM t")
    return path


def put_back(path: Path) -> None:
    shutil.rmtree(path)
    shutil.copytree(path.parent / "backup", path)


def test_a_source_from_a_backup_that_came_to_the_same_version(db: penstock.Database, source: Path) -> None:
    put_back(source)
    append(db, source, 3)
    report = db.refresh()
    assert_fresh(db, "v", "REINITIALIZE")
    assert report["v"].reason == "SOURCE_REPLACED"
    assert rows(db.table("v")) == [(1,), (3,)]
    db.refresh()
    assert_fresh(db, "v", "NO_DATA")
    append(db, source, 4)
    db.refresh()
    assert_fresh(db, "v", "INCREMENTAL")


def test_a_source_from_a_backup_that_came_further(db: penstock.Database, source: Path) -> None:
    put_back(source)
    for value in (3, 4, 5):
        append(db, source, value)
    assert db.refresh()["v"].reason == "SOURCE_REPLACED"
    assert_fresh(db, "v", "REINITIALIZE")


def test_what_a_cleaned_up_log_cannot_tell_is_computed_anew_once(db: penstock.Database, source: Path) -> None:
    for value in (3, 4):
        append(db, source, value)
    db.refresh()
    assert_fresh(db, "v", "INCREMENTAL")
    DeltaTable(str(source)).create_checkpoint()
    for commit in (source / "_delta_log").glob("*.json"):
        commit.unlink()
    assert db.refresh()["v"].reason == "HISTORY_GONE"
    assert_fresh(db, "v", "REINITIALIZE")
    db.refresh()
    assert_fresh(db, "v", "NO_DATA")


def test_a_snapshot_does_not_read_a_table_at_the_version_of_another(db: penstock.Database) -> None:
    db.sql("CREATE TABLE s (k INT)")
    db.sql("CREATE TABLE t (k INT)")
    db.sql("INSERT INTO s VALUES (1)")
    db.create_view("v", "SELECT COUNT(*) AS n FROM s")
    old = db.refresh().epoch
    db.create_view("w", "SELECT COUNT(*) AS n FROM t")
    db.drop_view("v")
    db.sql("DROP TABLE s")
    db.sql("CREATE TABLE s (k INT)")
    for value in range(4):
        db.sql(f"INSERT INTO s VALUES ({value})")
    db.sql("INSERT INTO t VALUES (1)")
    db.refresh()
    assert rows(db.snapshot().table("s")) == [(0,), (1,), (2,), (3,)]
    with pytest.raises(penstock.NotFoundError, match=r"'s' was not there at epoch 1: it was created or replaced later"):
        db.snapshot(old).table("s")


def test_a_snapshot_of_a_source_that_was_put_back(db: penstock.Database, source: Path) -> None:
    epoch = db.refresh().epoch
    assert rows(db.snapshot(epoch).table("t")) == [(1,), (2,)]
    put_back(source)
    append(db, source, 3)
    # The commits of the backup are older than the epoch: what is there now is what it was at that time.
    assert rows(db.snapshot(epoch).table("t")) == [(1,)]
    assert rows(db.snapshot(db.refresh().epoch).table("t")) == [(1,), (3,)]
