"""Groups: given rows, views and a change, every view equals its query and was maintained incrementally."""

from __future__ import annotations

import pytest

import penstock
from oracle import after, assert_fresh, rows

EVERY_AGGREGATE = (
    "COUNT(*) AS n, COUNT(amount) AS known, COUNT_IF(amount > 5) AS large, SUM(amount) AS total, AVG(amount) AS mean, "
    "MIN(amount) AS low, MAX(amount) AS high, MIN(day) AS first, MAX(region) AS last"
)
CHANGES = {
    "insert": "INSERT INTO orders VALUES (5, 'eu', 1, NULL), (6, 'asia', 2, DATE'2024-02-29')",
    "update": "UPDATE orders SET amount = amount + 1 WHERE region = 'eu'",
    "delete": "DELETE FROM orders WHERE id = 1",
    "an update that changes the key": "UPDATE orders SET region = 'us' WHERE id = 5",
    "a group is emptied": "DELETE FROM orders WHERE region = 'asia'",
    "a group comes back": "INSERT INTO orders VALUES (7, 'asia', 3, DATE'2024-01-01')",
    "a whole group moves to the NULL key": "UPDATE orders SET region = NULL WHERE region = 'us'",
    "all amounts become NULL": "UPDATE orders SET amount = NULL",
    "one of them is known again": "UPDATE orders SET amount = 4 WHERE id = 3",
    "everything goes": "DELETE FROM orders",
    "and something comes": "INSERT INTO orders VALUES (1, NULL, NULL, NULL), (1, NULL, NULL, NULL), (2, 'eu', 0, NULL)",
    "two groups swap": "UPDATE orders SET region = IF(region = 'eu', NULL, 'eu')",
}


def test_changes_of_a_grouped_table(db: penstock.Database) -> None:
    db.sql("CREATE TABLE orders (id INT, region STRING, amount DECIMAL(10,2), day DATE)")
    db.sql(
        "INSERT INTO orders VALUES (1, 'eu', 10, NULL), (2, 'us', 20, NULL), (3, 'eu', NULL, NULL), (4, NULL, 5, NULL)"
    )
    db.create_view("by_region", f"SELECT region, {EVERY_AGGREGATE} FROM orders GROUP BY region")
    db.create_view("overall", f"SELECT {EVERY_AGGREGATE} FROM orders")
    db.create_view("hidden_key", "SELECT SUM(amount) AS total FROM orders GROUP BY region, day IS NULL")
    for view in ("by_region", "overall", "hidden_key"):
        assert_fresh(db, view, "FULL")
    for what, change in CHANGES.items():
        try:
            after(db, change)
        except AssertionError as problem:
            raise AssertionError(f"{what}: {problem}") from problem


def test_insert_then_delete_between_refreshes_is_no_change(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k INT, x INT)")
    db.sql("INSERT INTO t VALUES (1, 1)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, SUM(x) AS s FROM t GROUP BY k")
    report = after(db, "INSERT INTO t VALUES (9, 9)", "DELETE FROM t WHERE k = 9", action="NO_DATA")
    assert (report["v"].rows_inserted, report["v"].rows_deleted, report["v"].strategy) == (0, 0, None)
    after(db, "UPDATE t SET x = 5", "UPDATE t SET x = 1", action="NO_DATA")
    assert rows(db.table("v")) == [(1, 1)]


def test_an_ungrouped_aggregate_has_one_row_also_over_nothing(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (x INT)")
    query = "SELECT COUNT(*) AS n, COUNT(x) AS m, COUNT_IF(x > 1) AS c, SUM(x) AS s, AVG(x) AS a, MIN(x) AS low FROM t"
    empty = [(0, 0, 0, None, None, None)]
    db.create_view("v", query)
    db.create_view("filtered", f"{query} WHERE x > 100")
    assert rows(db.table("v")) == rows(db.table("filtered")) == empty
    after(db, "INSERT INTO t VALUES (1), (2), (NULL)")
    after(db, "TRUNCATE TABLE t")
    assert rows(db.table("v")) == rows(db.table("filtered")) == empty
    after(db, "INSERT INTO t VALUES (NULL)", "INSERT INTO t VALUES (NULL)")
    after(db, "DELETE FROM t")
    assert rows(db.table("v")) == empty
    db.refresh(full=True)
    assert_fresh(db, "v", "FULL")


def test_the_extreme_goes_with_and_without_ties(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, k STRING, x INT)")
    db.sql(
        "INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 5), (3, 'a', 5), (4, 'b', 7), (5, 'c', NULL), (6, 'c', 2), (7, 'd', 3)"  # noqa: E501
    )
    db.sql("CREATE MATERIALIZED VIEW lows AS SELECT k, MIN(x) AS low FROM t GROUP BY k")
    db.sql("CREATE MATERIALIZED VIEW highs AS SELECT k, MAX(x) AS high FROM t GROUP BY k")
    db.sql("CREATE MATERIALIZED VIEW span AS SELECT MIN(x) AS low, MAX(x) AS high FROM t")
    after(db, "DELETE FROM t WHERE id = 2")  # 5 is still there
    assert tuple(r for r in rows(db.table("highs")) if r[0] == "a") == (("a", 5),)
    after(db, "DELETE FROM t WHERE id = 3")  # now it is not
    after(db, "UPDATE t SET x = 6 WHERE id = 4")  # the only row of its group becomes smaller
    after(db, "UPDATE t SET x = 9 WHERE id = 4")  # and larger
    after(db, "DELETE FROM t WHERE id = 6")  # the group has only NULL left
    after(
        db, "DELETE FROM t WHERE id = 4", "INSERT INTO t VALUES (8, 'b', 9), (9, 'd', 9)"
    )  # one as large comes instead
    after(db, "DELETE FROM t WHERE x = 9", "INSERT INTO t VALUES (10, 'd', 4)")  # something smaller comes instead
    after(db, "DELETE FROM t WHERE id IN (1, 10)")
    after(db, "UPDATE t SET x = NULL")
    after(db, "DELETE FROM t")
    assert rows(db.table("span")) == [(None, None)]


@pytest.mark.parametrize("change", ["UPDATE t SET x = 3", "INSERT OVERWRITE t VALUES (1, 3)"])
def test_an_extreme_goes_and_nothing_else_of_its_group_changes(db: penstock.Database, change: str) -> None:
    db.sql("CREATE TABLE t (k INT, x INT)")
    db.sql("INSERT INTO t VALUES (1, 5)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, MAX(x) AS high FROM t GROUP BY k")
    after(db, change)
    assert rows(db.table("v")) == [(1, 3)]


def test_identical_rows_go_one_at_a_time(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, x STRING, f DOUBLE)")
    db.sql("INSERT INTO t SELECT id, 'same', double('NaN') FROM range(4) AS r(id)")
    db.sql("CREATE MATERIALIZED VIEW dropped_key AS SELECT x, f FROM t")
    db.sql("CREATE MATERIALIZED VIEW once AS SELECT DISTINCT x, f FROM t")
    db.sql("CREATE MATERIALIZED VIEW counted AS SELECT x, COUNT(*) AS n FROM dropped_key GROUP BY x")
    for id in range(3):
        report = after(db, f"DELETE FROM t WHERE id = {id}")
        assert report["dropped_key"].rows_deleted == 1
        assert len(rows(db.table("once"))) == 1
        assert rows(db.table("counted")) == [("same", 3 - id)]
    after(db, "DELETE FROM t WHERE id = 3")
    assert rows(db.table("once")) == rows(db.table("counted")) == []
