"""The catalog in SQL: what ``penstock.views`` and its like tell, and who may read them."""

from __future__ import annotations

import pytest

import penstock
from oracle import rows


@pytest.fixture
def shop(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE orders (id INT COMMENT 'the number', region STRING, amount INT)")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20)")
    db.create_view("totals", "SELECT region, SUM(amount) AS total FROM orders GROUP BY region", comment="by region")
    db.create_view("best", "SELECT MAX(total) AS most FROM totals", target_lag="5 minutes")
    db.sql("INSERT INTO orders VALUES (3, 'eu', 5)")
    db.refresh()
    db.refresh()
    return db


def test_views(shop: penstock.Database) -> None:
    found = shop.sql(
        "SELECT name, comment, incremental, state, refreshes, incremental_refreshes, full_refreshes, "
        "refreshes_without_change, skips, errors, target_lag_seconds FROM penstock.views ORDER BY name"
    )
    assert rows(found) == [
        ("best", None, True, "ACTIVE", 3, 1, 1, 1, 0, 0, 300.0),
        ("totals", "by region", True, "ACTIVE", 4, 1, 1, 2, 0, 0, None),
    ]
    measured = shop.sql("SELECT seconds, rows_inserted, rows_deleted, largest_lag_seconds FROM penstock.views")
    assert all(row[0] > 0 and row[1] > 0 and row[3] > 0 for row in measured.collect())


def test_history_epochs_and_dependencies(shop: penstock.Database) -> None:
    did = shop.sql("SELECT view, action, COUNT(*) AS n FROM penstock.history GROUP BY ALL")
    assert sorted(rows(did)) == [
        ("best", "FULL", 1), ("best", "INCREMENTAL", 1), ("best", "NO_DATA", 1),
        ("totals", "FULL", 1), ("totals", "INCREMENTAL", 1), ("totals", "NO_DATA", 2),
    ]  # fmt: skip
    epochs = shop.sql("SELECT epoch, views, source_versions, rows_inserted FROM Penstock.Epochs AS e ORDER BY epoch")
    first, second, third = rows(epochs)
    assert first[:3] == (1, "totals", "orders 1")
    assert second[:3] == (2, "totals, best", "orders 1")
    assert third[:3] == (3, "totals, best", "orders 2")
    newest = shop.read_here("SELECT work, phases, due, run FROM penstock.epochs WHERE epoch = 3")
    assert newest is not None
    (told,) = newest.rows.table.to_pylist()
    assert [line.split(",")[0] for line in told["c0"].split("; ")] == [
        "totals: INCREMENTAL (CHANGED)", "best: INCREMENTAL (CHANGED)",
    ]  # fmt: skip
    assert "computing" in told["c1"]
    assert told["c2"] is None, "by hand"
    assert len(told["c3"]) == 12
    reads = shop.sql("SELECT d.* FROM penstock.dependencies d")
    assert sorted(rows(reads)) == [("best", "totals", "view"), ("totals", "orders", "table")]


def test_columns_and_alerts(shop: penstock.Database) -> None:
    found = shop.sql("SELECT * FROM penstock.columns WHERE name IN ('orders', 'best') ORDER BY name, position")
    assert rows(found) == [
        ("best", "view", 1, "most", "bigint", None),
        ("orders", "table", 1, "id", "int", "the number"),
        ("orders", "table", 2, "region", "string", None),
        ("orders", "table", 3, "amount", "int", None),
    ]
    assert shop.table("penstock.alerts").count() == 0


def test_columns_come_from_columns(shop: penstock.Database) -> None:
    shop.create_view("renamed", "SELECT upper(Region), total * 2, 7 FROM totals", columns=["r", "twice", "seven"])
    shop.create_view("mixed", "SELECT r.twice + o.amount AS sum, o.id FROM renamed r JOIN orders o ON r.r = o.region")
    shop.create_view("unplanned", "SELECT region AS r, MODE(amount) AS m FROM orders GROUP BY region")
    shop.create_view("behind", "SELECT r, m + 1 AS m FROM unplanned")
    found = shop.read_here("SELECT * FROM penstock.column_lineage")
    assert found is not None
    told = [tuple(row.values()) for row in found.rows.table.to_pylist()]
    assert [row for row in told if row[0] == "best"] == [
        ("best", "most", "totals", "total", "view", "AGGREGATION", True),
        ("best", "most", "orders", "amount", "table", "AGGREGATION", False),
    ]
    assert [row for row in told if row[0] in ("mixed", "unplanned", "behind")] == [
        ("mixed", "sum", "orders", "amount", "table", "TRANSFORMATION", True),
        ("mixed", "sum", "renamed", "twice", "view", "TRANSFORMATION", True),
        ("mixed", "id", "orders", "id", "table", "IDENTITY", True),
        ("behind", "r", "unplanned", "r", "view", "IDENTITY", True),
        ("behind", "m", "unplanned", "m", "view", "TRANSFORMATION", True),
    ], "of a query without a plan nothing is known"
    assert shop.column_lineage("unplanned") == {"r": None, "m": None}
    renamed = shop.column_lineage("RENAMED")
    assert [(one.name, one.column, one.change) for one in renamed["r"] or ()] == [
        ("totals", "region", "TRANSFORMATION"), ("orders", "region", "TRANSFORMATION"),
    ]  # fmt: skip
    assert renamed["seven"] == []


def test_they_can_be_joined_with_tables_and_each_other(shop: penstock.Database) -> None:
    found = shop.sql(
        "WITH views AS (SELECT 1 AS one) SELECT v.name, COUNT(*) FROM penstock.views v JOIN penstock.history h "
        "ON h.view = v.name CROSS JOIN views CROSS JOIN (SELECT 1 FROM orders LIMIT 1) GROUP BY v.name"
    )
    assert sorted(rows(found)) == [("best", 3), ("totals", 4)], "a name of two parts is no CTE"


def test_plain_questions_need_no_spark(shop: penstock.Database) -> None:
    found = shop.read_here("SELECT name, state AS s FROM penstock.views WHERE incremental AND name = 'best'")
    assert found is not None
    assert found.names == ["name", "s"]
    assert found.rows.table.to_pylist() == [{"c0": "best", "c1": "ACTIVE"}]
    for statement in ("SHOW ALERTS", "SHOW MATERIALIZED VIEWS", "SHOW REFRESH HISTORY", "SHOW SETTINGS",
                      "SHOW TABLES", "DESCRIBE MATERIALIZED VIEW best", "DESCRIBE best", "SHOW CONSISTENCY GROUPS",
                      "EXPLAIN MATERIALIZED VIEW best", "SELECT * FROM penstock.views"):  # fmt: skip
        here, there = shop.read_here(statement), shop.sql(statement)
        assert here is not None, statement
        assert here.names == there.columns, statement
        assert here.rows.table.num_rows == there.count(), statement


def test_few_rows_in_an_order_need_no_spark(shop: penstock.Database) -> None:
    shop.sql("INSERT INTO orders VALUES (4, NULL, 7), (5, 'us', NULL), (6, 'ümlaut', -1), (7, 'Zürich', 7)")
    for query in (
        "SELECT * FROM orders ORDER BY region, id",
        "SELECT region AS r, amount FROM orders ORDER BY amount DESC, id",
        "SELECT id FROM orders ORDER BY amount NULLS LAST, region DESC NULLS FIRST, id LIMIT 3",
        "SELECT id FROM orders WHERE id > 1 ORDER BY 1 DESC LIMIT 2 OFFSET 1",
        "SELECT id FROM orders ORDER BY id LIMIT 0",
        "SELECT name, state FROM penstock.views ORDER BY name DESC",
        "SELECT action, rows_inserted FROM penstock.history WHERE view = 'totals' ORDER BY started_at DESC LIMIT 2",
        "SELECT total FROM totals ORDER BY region OFFSET 1",
    ):
        found = shop.read_here(query)
        assert found is not None, query
        there = [tuple(row) for row in shop.sql(query).collect()]
        assert [tuple(row.values()) for row in found.rows.table.to_pylist()] == there, query
    for query, count in {"SELECT id FROM orders LIMIT 2": 2, "SELECT id FROM orders LIMIT 9 OFFSET 5": 2}.items():
        found = shop.read_here(query)
        assert found is not None, query
        assert found.rows.table.num_rows == count
    for query in ("SELECT id FROM orders LIMIT 1 + 1", "SELECT id FROM orders ORDER BY rand()"):
        assert shop.read_here(query) is None, query


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM penstock.history",
        "INSERT INTO orders SELECT 1, name, 2 FROM penstock.views",
        "DELETE FROM orders WHERE region IN (SELECT name FROM penstock.views)",
    ],
)
def test_views_and_writes_cannot_read_them(shop: penstock.Database, statement: str) -> None:
    with pytest.raises(penstock.NotSupportedError, match="tells of Penstock itself"):
        shop.sql(statement)


def test_an_unknown_one(shop: penstock.Database) -> None:
    with pytest.raises(penstock.NotFoundError, match=r"no table 'penstock.view'. Did you mean 'penstock.views'"):
        shop.sql("SELECT * FROM penstock.view")


def test_history_is_not_kept_for_ever(shop: penstock.Database) -> None:
    assert len(shop.history("best")) == 3
    shop.set("history_retention", "0 seconds")
    shop.vacuum()
    (last,) = shop.history("best")
    assert last.action == "NO_DATA"
    assert all(view.data_time is not None for view in shop.status())
    assert shop.statistics()["best"].refreshes == 1
