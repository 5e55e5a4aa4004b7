"""LATERAL subqueries: computed for each row of what stands before them, and kept fresh."""

from __future__ import annotations

import random

import pytest

import penstock
from oracle import after, assert_fresh, rows

VIEWS = {
    # One row for each customer, with or without orders.
    "totals": "SELECT c.id, c.k, l.s, l.n, l.m FROM c JOIN LATERAL "
    "(SELECT SUM(x) AS s, COUNT(*) AS n, COUNT_IF(x > 2) AS m FROM o WHERE o.k = c.k) l ON TRUE",
    "commas": "SELECT c.id, l.most - l.least AS spread FROM c, LATERAL "
    "(SELECT MAX(x) AS most, MIN(x) AS least FROM o WHERE o.k = c.k AND o.g = c.g) AS l",
    "crossed": "SELECT c.id, n FROM c CROSS JOIN LATERAL (SELECT COUNT(DISTINCT x) AS n FROM o WHERE o.k = c.k)",
    "listed": "SELECT c.id, l.xs FROM c LEFT JOIN LATERAL "
    "(SELECT COLLECT_LIST(x) AS xs FROM o WHERE o.k = c.k) l ON TRUE",
    "having": "SELECT c.id, l.s FROM c JOIN LATERAL (SELECT SUM(x) AS s FROM o WHERE o.k = c.k HAVING COUNT(*) > 1) l",
    "having_or_null": "SELECT c.id, l.s FROM c LEFT JOIN LATERAL "
    "(SELECT SUM(x) AS s FROM o WHERE o.k = c.k HAVING COUNT(*) > 1) l ON TRUE",
    "some": "SELECT c.id, l.n FROM c LEFT JOIN LATERAL "
    "(SELECT COUNT(*) AS n FROM o WHERE o.k = c.k) l ON l.n > 1 AND c.g = 1",
    "below": "SELECT c.id, l.s, l.n FROM c JOIN LATERAL "
    "(SELECT SUM(x) AS s, COUNT(x) AS n FROM o WHERE o.x < c.g) l ON TRUE",
    # Groups, of which there may be none.
    "groups": "SELECT c.id, l.g, l.s FROM c JOIN LATERAL "
    "(SELECT g, SUM(x) AS s FROM o WHERE o.k = c.k GROUP BY g) l ON TRUE",
    "groups_or_null": "SELECT c.id, l.g, l.n FROM c LEFT JOIN LATERAL "
    "(SELECT g, COUNT(*) AS n FROM o WHERE o.k = c.k AND o.x >= c.g GROUP BY g HAVING COUNT(*) > 1) l ON TRUE",
    # The first rows of each.
    "top": "SELECT c.id, l.oid, l.x FROM c JOIN LATERAL "
    "(SELECT id AS oid, x FROM o WHERE o.k = c.k ORDER BY x DESC, id LIMIT 2) l ON TRUE",
    "top_or_null": "SELECT c.id, l.x FROM c LEFT JOIN LATERAL "
    "(SELECT x FROM o WHERE o.k = c.k ORDER BY x LIMIT 1) l ON TRUE",
    "second": "SELECT c.id, l.x FROM c, LATERAL "
    "(SELECT x FROM o WHERE o.k = c.k AND o.x <> c.g ORDER BY x, id LIMIT 1 OFFSET 1) l",
    "any_two": "SELECT c.id, l.id AS oid FROM c, LATERAL (SELECT o.id FROM o WHERE o.k = c.k LIMIT 2) l",
    "numbered": "SELECT c.id, l.x, l.n FROM c, LATERAL "
    "(SELECT x, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x, id) AS n FROM o WHERE o.k = c.k) l",
    "distinct_": "SELECT c.id, l.g FROM c, LATERAL (SELECT DISTINCT g FROM o WHERE UPPER(o.k) = UPPER(c.k)) l",
    # Rows.
    "plain": "SELECT c.id, l.v FROM c, LATERAL (SELECT o.x * c.g AS v FROM o WHERE o.k = c.k) l",
    "plain_or_null": "SELECT c.id, l.v, l.one FROM c LEFT JOIN LATERAL "
    "(SELECT o.x + c.g AS v, 1 AS one FROM o WHERE o.k = c.k) l ON l.v > 1",
    "computed": "SELECT c.id, a.twice, b.more FROM c, LATERAL "
    "(SELECT c.g * 2 AS twice) a, LATERAL (SELECT a.twice + 1 AS more) b",
    "turned": "SELECT c.id, l.name, l.v FROM c, LATERAL (SELECT 'id' AS name, c.id AS v UNION ALL SELECT 'g', c.g) l",
    "both": "SELECT c.id, l.v FROM c, LATERAL (SELECT c.g AS v UNION SELECT x FROM o WHERE o.k = c.k) l",
    "only_here": "SELECT c.id, l.v FROM c, LATERAL (SELECT x AS v FROM o WHERE o.k = c.k EXCEPT SELECT c.g) l",
    "exploded": "SELECT c.id, l.e FROM c, LATERAL (SELECT EXPLODE(SEQUENCE(1, c.g)) AS e) l WHERE c.g BETWEEN 1 AND 3",
    "unrelated": "SELECT c.id, l.n FROM c LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM o) l ON l.n > c.g",
    "nested": "SELECT c.id, l.s FROM c, LATERAL (SELECT SUM(y) AS s FROM "
    "(SELECT x AS y FROM o WHERE o.k = c.k ORDER BY x DESC, id LIMIT 2)) l",
    "chained": "SELECT c.id, a.x, b.n FROM c JOIN LATERAL (SELECT x FROM o WHERE o.k = c.k) a "
    "JOIN LATERAL (SELECT COUNT(*) AS n FROM o WHERE o.x < a.x) b",
    "exists_in": "SELECT c.id, l.n FROM c, LATERAL "
    "(SELECT COUNT(*) AS n FROM o WHERE o.k = c.k AND o.id IN (SELECT p.id FROM o p WHERE p.x > 1)) l",
    "grouped_behind": "SELECT l.n, COUNT(*) AS customers FROM c, LATERAL "
    "(SELECT COUNT(*) AS n FROM o WHERE o.k = c.k) l GROUP BY l.n",
}  # fmt: skip


@pytest.fixture
def shop(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE c (id INT, k STRING, g INT)")
    db.sql("CREATE TABLE o (id INT, k STRING, g INT, x INT)")
    return db


def _customer(random_: random.Random) -> str:
    key = random_.choice(["'a'", "'b'", "'B'", "'c'", "NULL"])
    return f"({random_.randrange(6)}, {key}, {random_.choice(['NULL', '0', '1', '2', '3'])})"


def _order(random_: random.Random, number: int) -> str:
    key = random_.choice(["'a'", "'a'", "'b'", "'B'", "'d'", "NULL"])
    return (
        f"({number}, {key}, {random_.choice(['NULL', '0', '1'])}, {random_.choice(['NULL', '0', '1', '2', '3', '4'])})"
    )


def test_lateral_subqueries(shop: penstock.Database) -> None:
    """Random rows with NULLs, duplicates and ties; some customers appear twice, and some have no orders."""
    random_ = random.Random(2)
    for name, query in VIEWS.items():
        shop.create_view(name, query, policy="INCREMENTAL STRICT", initialize=False)
    shop.create_view("readers", "SELECT n, SUM(s) AS s FROM totals GROUP BY n", initialize=False)
    orders = ", ".join(_order(random_, i) for i in range(18))
    customers = ", ".join(_customer(random_) for _ in range(9))
    actions = ("INCREMENTAL", "NO_DATA")
    after(shop, f"INSERT INTO c VALUES {customers}", f"INSERT INTO o VALUES {orders}", action="FULL")
    for statements in (
        [f"INSERT INTO o VALUES {_order(random_, 30)}, {_order(random_, 31)}"],
        [f"INSERT INTO c VALUES {_customer(random_)}, (7, 'a', 1), (7, 'a', 1)", "DELETE FROM o WHERE id % 4 = 0"],
        [
            "UPDATE o SET x = x + 1, k = 'b' WHERE id % 3 = 1",
            "UPDATE c SET k = 'd' WHERE k = 'c'",
            "DELETE FROM c WHERE k = 'a' AND g = 1",
            "UPDATE o SET k = 'a' WHERE k IS NULL",
            "UPDATE c SET g = 2 WHERE id < 2",
        ],
        ["DELETE FROM o WHERE k = 'b'", "DELETE FROM o", f"INSERT INTO c VALUES {_customer(random_)}"],
        [f"INSERT INTO o VALUES {_order(random_, 40)}, (41, 'a', 1, 3), (42, 'd', 0, NULL)"],
    ):
        after(shop, *statements, action=actions)


def test_values_that_are_equal_only_after_a_cast(db: penstock.Database) -> None:
    """'1' and '01' are one number: an aggregate for the number is of the rows of both."""
    db.sql("CREATE TABLE c (n INT)")
    db.sql("CREATE TABLE o (t STRING, x INT)")
    db.sql("INSERT INTO c VALUES (1), (2)")
    db.sql("INSERT INTO o VALUES ('1', 1), ('01', 2), ('2', 3)")
    db.create_view("v", "SELECT c.n, l.s FROM c, LATERAL (SELECT SUM(x) AS s FROM o WHERE o.t = c.n) l")
    db.create_view(
        "first", "SELECT c.n, l.x FROM c, LATERAL (SELECT x FROM o WHERE o.t = c.n ORDER BY x DESC LIMIT 1) l"
    )
    assert rows(db.table("v")) == [(1, 3), (2, 3)]
    after(db, "INSERT INTO o VALUES ('001', 10), ('02', -1)")
    assert rows(db.table("first")) == [(1, 10), (2, 3)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT c.n, (SELECT SUM(x) FROM o WHERE o.t = c.n) AS s FROM c",
        "SELECT n FROM c WHERE EXISTS (SELECT SUM(x) FROM o WHERE o.t = c.n GROUP BY x > 0 HAVING COUNT(*) > 1)",
    ],
)
def test_subqueries_that_group_by_such_values_are_recomputed(db: penstock.Database, query: str) -> None:
    db.sql("CREATE TABLE c (n INT)")
    db.sql("CREATE TABLE o (t STRING, x INT)")
    db.sql("INSERT INTO c VALUES (1), (2)")
    db.sql("INSERT INTO o VALUES ('1', 1), ('01', 2), ('2', 3)")
    db.create_view("v", query)
    assert db.explain("v").reason_code == "CORRELATED_SUBQUERY"
    assert_fresh(db, "v", action="FULL")
    after(db, "INSERT INTO o VALUES ('001', 10)", action="FULL")
    db.create_view("same", query.replace("o.t = c.n", "o.x = c.n"))
    assert db.explain("same").reason_code is None


def test_zeros_and_nans_are_one_value_each(db: penstock.Database) -> None:
    db.sql("CREATE TABLE c (id INT, d DOUBLE)")
    db.sql("CREATE TABLE o (d DOUBLE, x INT)")
    db.sql("INSERT INTO c VALUES (1, 0.0), (2, -0.0D), (3, DOUBLE('NaN')), (4, NULL)")
    db.sql("INSERT INTO o VALUES (0.0, 1), (-0.0D, 2), (DOUBLE('NaN'), 4), (NULL, 8)")
    db.create_view(
        "v", "SELECT c.id, l.s, l.n FROM c, LATERAL (SELECT SUM(x) AS s, COUNT(*) AS n FROM o WHERE o.d = c.d) l"
    )
    db.create_view("top", "SELECT c.id, l.x FROM c, LATERAL (SELECT x FROM o WHERE o.d = c.d ORDER BY x LIMIT 2) l")
    after(db, "INSERT INTO o VALUES (-0.0D, 16), (DOUBLE('NaN'), 32)", "INSERT INTO c VALUES (5, -0.0D)")
    after(db, "DELETE FROM o WHERE x = 1", "DELETE FROM c WHERE id = 1")


def test_what_stays_recomputed(shop: penstock.Database) -> None:
    shop.sql("INSERT INTO c VALUES (1, 'a', 1)")
    shop.sql("INSERT INTO o VALUES (1, 'a', 1, 2)")
    shop.create_view(
        "named", "SELECT c.id, l.x FROM c, LATERAL (WITH q AS (SELECT x FROM o WHERE o.k = c.k) SELECT * FROM q) l"
    )
    assert_fresh(shop, "named", action="FULL")
    assert shop.explain("named").reason_code == "UNRESOLVED_NAME"
    after(shop, "INSERT INTO o VALUES (2, 'a', 1, 3)", action="FULL")
