"""Joins, set operations and views over views, changed on several sides at once."""

from __future__ import annotations

import pytest

import penstock
from oracle import assert_all_fresh, assert_fresh, rows

CHANGED = ("INCREMENTAL", "NO_DATA")


@pytest.fixture
def shop(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE customers (id INT, name STRING, region STRING)")
    db.sql("CREATE TABLE orders (id INT, customer INT, amount DECIMAL(10,2))")
    db.sql("CREATE TABLE items (order_id INT, product STRING, n INT)")
    db.sql("INSERT INTO customers VALUES (1, 'ann', 'eu'), (2, 'bob', 'us'), (NULL, 'nobody', NULL)")
    db.sql("INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 2, 9), (13, NULL, 1), (10, 1, 5)")
    db.sql("INSERT INTO items VALUES (10, 'pen', 1), (10, 'ink', 2), (12, 'pen', 3)")
    return db


def test_both_sides_of_a_join_change_on_one_key_in_one_refresh(shop: penstock.Database) -> None:
    shop.create_view("named", "SELECT c.name, o.amount FROM orders o JOIN customers c ON o.customer = c.id")
    shop.sql("UPDATE customers SET name = 'anna' WHERE id = 1")
    shop.sql("DELETE FROM orders WHERE id = 11")
    shop.sql("INSERT INTO orders VALUES (14, 1, 3), (15, 2, 4)")
    shop.refresh()
    assert_fresh(shop, "named", "INCREMENTAL")


def test_a_three_way_join_with_deletes_on_several_sides(shop: penstock.Database) -> None:
    shop.create_view(
        "sold",
        "SELECT c.region, i.product, o.amount, i.n FROM customers c, orders o, items i "
        "WHERE c.id = o.customer AND o.id = i.order_id AND i.n > 0",
    )
    shop.create_view("by_region", "SELECT region, SUM(n) AS pieces, MAX(amount) AS dearest FROM sold GROUP BY region")
    shop.sql("DELETE FROM items WHERE product = 'ink'")
    shop.sql("DELETE FROM orders WHERE id = 12")
    shop.sql("INSERT INTO items VALUES (11, 'pad', 4)")
    shop.refresh()
    assert_all_fresh(shop, "INCREMENTAL")
    shop.sql("DELETE FROM customers WHERE id = 1")
    shop.sql("TRUNCATE TABLE items")
    shop.refresh()
    assert_all_fresh(shop, "INCREMENTAL")


def test_a_self_join_and_a_range_join(shop: penstock.Database) -> None:
    shop.create_view("pairs", "SELECT a.id AS x, b.id AS y FROM orders a JOIN orders b ON a.customer = b.customer")
    shop.create_view("less", "SELECT a.id AS x, b.id AS y FROM orders a JOIN orders b ON a.amount < b.amount")
    shop.sql("INSERT INTO orders VALUES (16, 2, 6)")
    shop.sql("DELETE FROM orders WHERE id = 12")
    shop.refresh()
    assert_all_fresh(shop, "INCREMENTAL")


def test_identical_rows_are_removed_one_at_a_time(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k INT, x INT, n INT)")
    db.sql("INSERT INTO t VALUES (1, 1, 1), (1, 1, 2), (1, 1, 3), (2, 5, 4)")
    db.create_view("keyless", "SELECT x FROM t")
    db.create_view("different", "SELECT DISTINCT x FROM t")
    for n in (1, 2, 3):
        db.sql(f"DELETE FROM t WHERE n = {n}")
        db.refresh()
        assert_all_fresh(db, CHANGED)
        assert rows(db.table("keyless")).count((1,)) == 3 - n
    assert rows(db.table("different")) == [(5,)]


def test_unions_having_and_derived_tables(shop: penstock.Database) -> None:
    shop.create_view("ids", "SELECT id FROM orders UNION ALL SELECT order_id FROM items")
    shop.create_view("distinct_ids", "SELECT id FROM orders UNION SELECT order_id FROM items")
    shop.create_view(
        "busy",
        "WITH per AS (SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer) "
        "SELECT c.name, per.n FROM per JOIN customers c ON c.id = per.customer WHERE per.total > 5",
    )
    shop.create_view("many", "SELECT id, COUNT(*) AS n FROM ids GROUP BY id HAVING COUNT(*) > 1 AND MIN(id) > 0")
    assert_all_fresh(shop)
    shop.sql("DELETE FROM orders WHERE id = 10")
    shop.sql("INSERT INTO items VALUES (13, 'cap', 1), (13, 'cap', 1)")
    shop.refresh()
    assert_all_fresh(shop, "INCREMENTAL")
    shop.sql("MERGE INTO orders o USING (SELECT 13 AS id) s ON o.id = s.id WHEN MATCHED THEN UPDATE SET customer = 2")
    shop.refresh()
    assert_all_fresh(shop, CHANGED)


def test_equal_sub_plans_of_two_views_share_one_hidden_node(shop: penstock.Database) -> None:
    inner = "(SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer)"
    shop.create_view("rich", f"SELECT customer FROM {inner} WHERE total > 10")
    shop.create_view("poor", f"SELECT customer FROM {inner} WHERE total <= 10")
    hidden = [node for node in shop.explain("poor").nodes if node.hidden]
    assert [node.shared_with for node in hidden] == [("rich",)]
    shop.sql("INSERT INTO orders VALUES (17, 2, 100)")
    shop.refresh("rich")
    shop.refresh()
    assert_all_fresh(shop, CHANGED)
    shop.drop_view("rich")
    shop.sql("DELETE FROM orders WHERE id = 17")
    shop.refresh()
    assert_fresh(shop, "poor", "INCREMENTAL")


def test_a_reader_that_lags_behind_catches_up_from_its_inputs_table(shop: penstock.Database) -> None:
    shop.create_view("totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    shop.create_view("large", "SELECT customer FROM totals WHERE total > 8")
    shop.sql("INSERT INTO orders VALUES (20, 3, 50)")
    assert list(shop.refresh("totals")) == ["totals"]
    shop.sql("DELETE FROM orders WHERE customer = 2")
    shop.refresh("totals")
    shop.refresh("large")
    assert_all_fresh(shop)
    assert shop.history("large", 1)[0].action == "INCREMENTAL"
