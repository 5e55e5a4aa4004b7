"""Small stories: given rows, a view and a change, the view equals its query and the action was INCREMENTAL."""

from __future__ import annotations

import pytest
from oracle import assert_fresh, rows

import penstock


@pytest.fixture
def orders(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE orders (id INT, region STRING, amount DECIMAL(10,2))")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20), (3, 'eu', NULL), (4, NULL, 5)")
    db.sql(
        "CREATE MATERIALIZED VIEW totals AS SELECT region, SUM(amount) AS total, COUNT(*) AS n, AVG(amount) AS mean, "
        "MIN(amount) AS low, MAX(amount) AS high FROM orders GROUP BY region"
    )
    return db


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO orders VALUES (5, 'eu', 1), (6, 'asia', 2)",
        "UPDATE orders SET amount = amount + 1 WHERE region = 'eu'",
        "DELETE FROM orders WHERE id = 1",
        "UPDATE orders SET region = 'us' WHERE id = 1",
        "DELETE FROM orders WHERE region = 'us'",
        "UPDATE orders SET amount = NULL",
        "UPDATE orders SET region = NULL WHERE region = 'eu'",
        "DELETE FROM orders",
    ],
)
def test_a_change_of_a_grouped_table(orders: penstock.Database, change: str) -> None:
    assert_fresh(orders, "totals", "FULL")
    orders.sql(change)
    orders.refresh()
    assert_fresh(orders, "totals", "INCREMENTAL")


def test_insert_then_delete_between_refreshes_is_no_change(orders: penstock.Database) -> None:
    orders.sql("INSERT INTO orders VALUES (9, 'eu', 0.01)")
    orders.sql("DELETE FROM orders WHERE id = 9")
    orders.refresh()
    assert_fresh(orders, "totals", "NO_DATA")


def test_ungrouped_aggregate_of_an_emptied_table_keeps_its_one_row(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (x INT)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a, MIN(x) AS low FROM t")
    assert rows(db.table("v")) == [(0, None, None, None)]
    db.sql("INSERT INTO t VALUES (1), (2), (NULL)")
    db.refresh()
    assert_fresh(db, "v", "INCREMENTAL")
    db.sql("TRUNCATE TABLE t")
    db.refresh()
    assert_fresh(db, "v", "INCREMENTAL")
    assert rows(db.table("v")) == [(0, None, None, None)]
