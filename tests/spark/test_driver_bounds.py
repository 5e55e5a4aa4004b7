"""What a refresh brings to the driver is bounded: of a large change, only what tells that it is too large."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from oracle import assert_fresh
from penstock.frames import limits
from penstock.frames.keeping import Keeper
from penstock.frames.sizes import Size
from penstock.frames.spark.frame import SparkFrame
from penstock.frames.spark.session import Running
from penstock.storage.files import LocalFiles

MOST = 150
VIEWS = {
    "named": "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON c.id = o.customer",
    "totals": "SELECT customer, SUM(amount) AS total, COUNT(*) AS n, MAX(amount) AS most FROM orders GROUP BY customer",
    "large": "SELECT customer, total FROM totals WHERE total > 1000",
    "means": "SELECT customer, AVG(weight) AS mean FROM orders GROUP BY customer",
    "places": "SELECT id, customer, RANK() OVER (PARTITION BY customer ORDER BY amount, id) AS place FROM orders",
    "first": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 5",
    "without": "SELECT id, name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
    "kinds": "SELECT DISTINCT customer, amount % 100 AS kind FROM orders",
}


@pytest.fixture
def brought(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each question to Spark brings to the driver."""
    kind: Any = type(spark.range(1))
    found: list[int] = []
    for name in ("toArrow", "collect", "toPandas", "toLocalIterator"):
        usual = getattr(kind, name)

        def counted(self: Any, *given: Any, usual: Any = usual, **named: Any) -> Any:
            rows = usual(self, *given, **named)
            found.append(len(rows))
            return rows

        monkeypatch.setattr(kind, name, counted)
    return found


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that takes few rows, and looks none up; what it could otherwise do with these tables is Spark's."""
    for name in ("LOCAL_ROWS", "ASKED_ROWS", "CHANGE_ROWS", "READ_ROWS", "LOCATED_ROWS", "LOCAL_TABLE_ROWS",
                 "SMALL_TABLE_ROWS", "COMPACTED_ROWS", "NEARBY_ROWS"):  # fmt: skip
        monkeypatch.setattr(limits, name, MOST)
    monkeypatch.setattr(limits, "LOOKUP_MOST_ROWS", 0)


def test_a_large_change_stays_with_spark(db: penstock.Database, brought: list[int], little_room: None) -> None:
    db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT, weight DOUBLE)")
    db.sql("CREATE TABLE customers (id BIGINT, name STRING)")
    db.sql("INSERT INTO orders SELECT id, id % 500, id * 7 % 1009, id / 7 FROM range(0, 5000, 1, 4)")
    db.sql("INSERT INTO customers SELECT id, CONCAT('c', id) FROM range(600)")
    for view, query in VIEWS.items():
        db.create_view(view, query, policy="INCREMENTAL STRICT")
    db.sql("UPDATE orders SET amount = amount + 3, weight = weight + 0.1, customer = customer + 1 WHERE id % 3 = 0")
    db.sql("DELETE FROM orders WHERE id % 11 = 5")
    db.sql("INSERT INTO orders SELECT id, id % 450, id % 997, id / 3 FROM range(5000, 7000, 1, 4)")
    brought.clear()
    report = db.refresh()
    assert max(brought) <= MOST + 1, "one more tells that there are more"
    for view in VIEWS:
        assert_fresh(db, view, "INCREMENTAL")
    moved = [view for view in report.values() if view.rows_inserted + view.rows_deleted > MOST]
    assert len(moved) >= len(VIEWS) - 2, "the change is meant to be a large one"


def test_a_guess_that_was_too_low_costs_no_more_than_that(
    spark: SparkSession, brought: list[int], little_room: None
) -> None:
    """Each row of a change was expected to find few others, and finds a thousand."""
    keeper = Keeper(Running(spark))
    many = SparkFrame.of_frame(Running(spark), spark.range(0, 10_000, 1, 4).toDF("x"), Size(10, 10))
    kept = keeper.keep(many)
    assert isinstance(kept, SparkFrame)
    assert kept.frame.is_cached
    assert brought == [MOST + 1]
    few = SparkFrame.of_frame(Running(spark), spark.range(0, MOST, 1, 4).toDF("x"), Size())
    here = keeper.keep(few).rows()
    assert here is not None
    assert here.num_rows == MOST
    keeper.release()


def test_a_directory_that_shows_files_late(
    db: penstock.Database, little_room: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors write where the driver looks, on a mounted directory perhaps not at once: no row is lost silently."""
    db.sql("CREATE TABLE t (id BIGINT)")
    db.create_view("doubled", "SELECT id, id * 2 AS twice FROM t", policy="INCREMENTAL STRICT")
    db.sql("INSERT INTO t SELECT id FROM range(0, 5000, 1, 4)")
    with monkeypatch.context() as late:
        late.setattr(LocalFiles, "listing", lambda self, folder="", after="": [])
        with pytest.raises(penstock.RefreshError, match=r"was to write 5,000 rows to .* files with 0 are there"):
            db.refresh()
    db.refresh()
    assert_fresh(db, "doubled", "INCREMENTAL", "APPEND")


def test_few_rows_that_are_large_stay_with_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCAL_BYTES", 100_000)
    keeper = Keeper(Running(spark))
    for size in (Size(10, 10), Size()):
        wide = SparkFrame.of_frame(Running(spark), spark.range(10).selectExpr("REPEAT('x', 20000) AS x"), size)
        assert isinstance(keeper.keep(wide), SparkFrame)
    keeper.release()
