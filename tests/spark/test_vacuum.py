"""What expired epochs leave is deleted; what can still be asked for is not."""

from __future__ import annotations

import os
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

import penstock
from oracle import assert_fresh

QUERY = "SELECT region, SUM(amount) AS total FROM orders GROUP BY region"


@pytest.fixture
def sales(db: penstock.Database) -> penstock.Database:
    """Epochs 1 to 5: the total of eu is 10 times as much as the epoch."""
    db.sql("CREATE TABLE orders (id INT, region STRING, amount INT)")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10)")
    db.sql(f"CREATE MATERIALIZED VIEW totals AS {QUERY}")
    for _ in range(4):
        add_ten(db)
    return db


def add_ten(db: penstock.Database) -> None:
    db.sql("INSERT INTO orders VALUES (2, 'eu', 10)")
    db.refresh()


def age(db: penstock.Database, days: int, upto: int = 1_000) -> None:
    """As if these epochs, and whatever happened in them, were older by some days."""
    with sqlite3.connect(f"{db.path}/catalog.sqlite") as catalog:
        earlier = "strftime('%Y-%m-%d %H:%M:%f', published_at, ?)"
        catalog.execute(f"UPDATE epochs SET published_at = {earlier} WHERE id <= ?", (f"-{days} days", upto))
        catalog.execute("DELETE FROM settings WHERE name = 'vacuumed_at'")
    for file in Path(db.path, "views").rglob("*"):
        then = file.stat().st_mtime - days * 86_400
        os.utime(file, (then, then))


def total(db: penstock.Database, epoch: int | None = None) -> int:
    row = db.table("totals", epoch=epoch).first()
    assert row is not None
    return int(row["total"])


def data_files(db: penstock.Database) -> set[Path]:
    folder = Path(db.path) / "views" / "totals"
    return {file for file in folder.rglob("*") if file.is_file() and "_delta_log" not in file.parts}


def kept_by_epoch(db: penstock.Database) -> list[tuple[int]]:
    with sqlite3.connect(f"{db.path}/catalog.sqlite") as catalog:
        return catalog.execute("SELECT epoch FROM node_versions ORDER BY epoch").fetchall()


def test_a_refresh_frees_what_expired_epochs_have_left(sales: penstock.Database) -> None:
    assert len({file for file in data_files(sales) if file.suffix == ".parquet"}) == 5
    age(sales, 8, upto=3)
    add_ten(sales)  # epoch 3 was current until epoch 4, which is young
    assert [total(sales, epoch) for epoch in (3, 4, 5, 6)] == [30, 40, 50, 60]
    assert len({file for file in data_files(sales) if file.suffix == ".parquet"}) == 4
    assert kept_by_epoch(sales) == [(3,), (4,), (5,), (6,)]
    with pytest.raises(penstock.RetentionError, match="epoch 2 is too old to be read"):
        total(sales, 2)
    changes = sales.changes("totals", since=3).collect()
    assert sorted((row["total"], row["__weight"]) for row in changes) == [(30, -1), (60, 1)]
    add_ten(sales)
    assert_fresh(sales, "totals", "INCREMENTAL")


def test_only_the_newest_is_left_when_nothing_else_can_be_asked_for(sales: penstock.Database) -> None:
    orphan = Path(sales.path) / "views" / "totals" / "run-9-dead" / "part-0.snappy.parquet"
    orphan.parent.mkdir()
    orphan.write_bytes(b"left by a crash")
    age(sales, 8)
    done = sales.sql("VACUUM totals")
    assert str(done).startswith("VACUUM: ")
    assert len({file for file in data_files(sales) if file.suffix == ".parquet"}) == 1
    assert not orphan.parent.exists()
    assert total(sales) == 50
    assert str(sales.sql("VACUUM")) == "VACUUM: 0 files, 0 bytes deleted"
    add_ten(sales)
    assert_fresh(sales, "totals", "INCREMENTAL")


def test_what_was_replaced_within_the_hour_stays(sales: penstock.Database) -> None:
    sales.set("retention", "0 seconds")
    before = data_files(sales)
    assert sales.vacuum().files == 0
    assert data_files(sales) == before


def test_a_checkpoint_keeps_its_files(sales: penstock.Database) -> None:
    sales.checkpoint("five")
    for _ in range(3):
        add_ten(sales)
    age(sales, 40)
    add_ten(sales)
    assert len({file for file in data_files(sales) if file.suffix == ".parquet"}) == 3
    assert total(sales, 5) == 50
    sales.restore("five")
    assert total(sales) == 50
    assert sales.refresh()["totals"].action == "INCREMENTAL"
    assert total(sales) == 90


def test_a_view_that_lags_behind_keeps_what_it_has_not_read(sales: penstock.Database) -> None:
    sales.sql("CREATE MATERIALIZED VIEW doubled AS SELECT region, 2 * total AS twice FROM totals")
    for _ in range(3):
        sales.sql("INSERT INTO orders VALUES (2, 'eu', 10)")
        sales.refresh("totals")
    age(sales, 8)
    sales.vacuum()
    report = sales.refresh()
    assert report["doubled"].action == "INCREMENTAL"
    assert_fresh(sales, "doubled", "INCREMENTAL")


def test_vectors_are_kept_as_long_as_their_files(db: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.apply.cheaper", lambda **_: "PATCH")
    monkeypatch.setattr("penstock.frames.limits.SMALL_TABLE_ROWS", 1)
    monkeypatch.setattr("penstock.storage.deletion_vectors.LARGEST_INLINE", 1)
    db.sql("CREATE TABLE orders AS SELECT id, id % 3000 AS region, 1 AS amount FROM range(9000)")
    db.sql(f"CREATE MATERIALIZED VIEW totals AS {QUERY}")
    for number in range(3):
        db.sql(f"INSERT INTO orders VALUES ({number}, {number}, 5)")
        assert db.refresh()["totals"].strategy == "PATCH"
    vectors = {file for file in data_files(db) if file.suffix == ".bin"}
    assert len(vectors) == 3
    age(db, 8)
    db.vacuum()
    assert len({file for file in data_files(db) if file.suffix == ".bin"}) == 1
    assert_fresh(db, "totals", "INCREMENTAL")
    db.sql("INSERT INTO orders VALUES (9, 9, 5)")
    assert db.refresh()["totals"].strategy == "PATCH"
    assert_fresh(db, "totals", "INCREMENTAL")


def test_the_log_of_expired_versions_goes_too(sales: penstock.Database) -> None:
    from deltalake import DeltaTable

    folder = Path(sales.path) / "views" / "totals"
    DeltaTable(str(folder)).create_checkpoint()
    add_ten(sales)
    age(sales, 8)
    sales.vacuum()
    log = sorted(file.name for file in (folder / "_delta_log").glob("*.json"))
    assert [int(name[:20]) for name in log] == [5, 6]
    add_ten(sales)
    assert_fresh(sales, "totals", "INCREMENTAL")


def test_a_reader_of_a_view_that_goes_reads_it_to_the_end(
    sales: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropped or replaced, its files are deleted when no query can be reading them any more."""
    before, place = sales.table("totals"), Path(sales.path) / "views" / "totals"
    sales.sql("CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS total FROM orders")
    assert [row["total"] for row in before.collect()] == [50]
    again = sales.table("totals")
    sales.sql("DROP MATERIALIZED VIEW totals")
    sales.sql("VACUUM")
    assert len(again.collect()) == 1
    assert place.exists()
    monkeypatch.setattr("penstock.engine.vacuum._LEAST", timedelta(0))
    assert sales.vacuum().files > 0
    assert not list(place.parent.iterdir())
