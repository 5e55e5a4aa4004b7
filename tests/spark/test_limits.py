"""LIMIT without ORDER BY: the first rows in the order of all columns, so that there is one answer."""

from __future__ import annotations

import random

import pytest

import penstock
from oracle import after, assert_fresh, rows

VIEWS = {
    "some": "SELECT * FROM t LIMIT 5",
    "skipped": "SELECT g, x FROM t LIMIT 4 OFFSET 2",
    "filtered": "SELECT x, id FROM t WHERE g > 0 LIMIT 3",
    "groups": "SELECT g, COUNT(*) AS n FROM t GROUP BY g LIMIT 2",
    "values_": "SELECT DISTINCT x FROM t LIMIT 2",
    "stacked": "SELECT id FROM t UNION ALL SELECT g FROM t LIMIT 6",
    "bracketed": "(SELECT x FROM t) LIMIT 2",
    "below": "SELECT g, COUNT(*) AS n FROM (SELECT g, x FROM t LIMIT 7) GROUP BY g ORDER BY n",
    "in_cte": "WITH first AS (SELECT id, x FROM t LIMIT 4) SELECT t.g, first.x FROM first JOIN t ON t.id = first.id",
    "among": "SELECT id FROM t WHERE x IN (SELECT x FROM t WHERE x > 0 LIMIT 3)",
    "value": "SELECT id, (SELECT x FROM t LIMIT 1) AS x FROM t",
    "nothing": "SELECT id FROM t LIMIT 0",
    "ordered": "SELECT g, id FROM t ORDER BY ALL DESC LIMIT 3",
    "array": "SELECT ARRAY(g, x) AS a, STRUCT(x, id) AS s FROM t LIMIT 3",
}


def _row(random_: random.Random) -> str:
    group, value = random_.choice(["NULL", "0", "1", "2"]), random_.choice(["NULL", "1", "2", "3"])
    return f"({random_.randrange(9)}, {group}, {value})"


@pytest.fixture
def t(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE t (id INT, g INT, x INT)")
    return db


def test_the_first_rows(t: penstock.Database) -> None:
    random_ = random.Random(3)
    for name, query in VIEWS.items():
        t.create_view(name, query, policy="INCREMENTAL STRICT", initialize=False)
    t.create_view("reader", "SELECT SUM(x) AS s FROM some", initialize=False)
    actions = ("INCREMENTAL", "NO_DATA")
    after(t, f"INSERT INTO t VALUES {', '.join(_row(random_) for _ in range(14))}", action="FULL")
    after(t, f"INSERT INTO t VALUES {_row(random_)}, (0, 0, 0), (NULL, NULL, NULL)", action=actions)
    after(t, "DELETE FROM t WHERE id IS NULL OR id = 0", action=actions)
    after(t, "UPDATE t SET x = x - 3, g = 2 WHERE id % 3 = 1", f"INSERT INTO t VALUES {_row(random_)}", action=actions)
    after(t, "DELETE FROM t WHERE g = 2 OR g IS NULL", action=actions)
    after(t, "DELETE FROM t", action=actions)
    after(t, "INSERT INTO t VALUES (1, 1, 1), (1, 1, 1)", action=actions)


def test_a_recomputation_gives_the_same_rows(t: penstock.Database) -> None:
    """Whether by rule, by REFRESH .. FULL, or by the user's own text under the policy FULL."""
    t.sql("INSERT INTO t SELECT id, id % 3, 50 - id FROM RANGE(0, 50, 1, 7)")
    query = "SELECT x, g FROM t LIMIT 4"
    t.create_view("by_rule", query)
    t.create_view("by_text", query, policy="FULL")
    assert rows(t.table("by_rule")) == [(1, 1), (2, 0), (3, 2), (4, 1)] == rows(t.table("by_text"))
    t.sql("INSERT INTO t VALUES (90, 5, 0)")
    t.refresh()
    assert rows(t.table("by_rule")) == [(0, 5), (1, 1), (2, 0), (3, 2)] == rows(t.table("by_text"))
    t.refresh("by_rule", full=True)
    assert_fresh(t, "by_rule", action="FULL")
    assert all(checked.outcome == "EQUAL" for checked in t.verify())


def test_columns_without_an_order(db: penstock.Database) -> None:
    """Any rows are right; those that Spark happens to give are not known before, so the view recomputes."""
    db.sql("CREATE TABLE t (id INT, m MAP<STRING, INT>)")
    db.sql("INSERT INTO t VALUES (1, MAP('a', 1)), (2, NULL), (3, MAP('b', 2))")
    db.create_view("v", "SELECT id, m FROM t LIMIT 2")
    assert db.explain("v").reason_code == "LIMIT"
    assert db.table("v").count() == 2
    db.sql("INSERT INTO t VALUES (4, NULL)")
    assert db.refresh()["v"].action == "FULL"
    assert db.table("v").count() == 2
    with pytest.raises(penstock.NotIncrementalError, match="no order"):
        db.create_view("w", "SELECT m FROM t LIMIT 2", policy="INCREMENTAL STRICT")


def test_rows_that_are_sorted_before_they_are_limited(t: penstock.Database) -> None:
    """Whoever writes that expects the first rows of that order, which Spark gives, though SQL does not promise them."""
    t.sql("INSERT INTO t VALUES (1, 1, 5), (2, 1, 7), (3, 1, 6)")
    t.create_view("v", "SELECT id FROM (SELECT * FROM t ORDER BY x DESC) LIMIT 1")
    assert t.explain("v").reason_code == "LIMIT"
    assert rows(t.table("v")) == [(2,)]


def test_a_query_that_is_no_view_is_not_sorted(t: penstock.Database) -> None:
    t.sql("INSERT INTO t VALUES (3, 1, 5), (1, 1, 7)")
    plan = t.sql("EXPLAIN SELECT * FROM t LIMIT 1").collect()[0][0]
    assert "Sort" not in plan
    assert "TakeOrdered" not in plan
