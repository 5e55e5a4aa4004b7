"""Two schemas with equal names in them, through all statements: each name means what it meant where it was written."""

from __future__ import annotations

from typing import Any

import pytest

import penstock
from oracle import after, assert_fresh, rows
from penstock.answering import Done
from penstock.errors import AlreadyExistsError, DependencyError, NotFoundError, NotSupportedError


def said(db: penstock.Database, text: str) -> str:
    done = db.sql(text)
    assert isinstance(done, Done)
    return str(done)


def found(db: penstock.Database, text: str) -> list[tuple[Any, ...]]:
    return rows(db.sql(text))  # type: ignore[arg-type]


@pytest.fixture
def lake(db: penstock.Database) -> penstock.Database:
    """``raw.orders`` and ``gold.orders``, and views of the same name over them."""
    for text in (
        "CREATE SCHEMA raw", "CREATE SCHEMA gold",
        "CREATE TABLE raw.orders (id INT, region STRING, amount INT)", "USE gold",
        "CREATE TABLE orders (id INT, region STRING, amount INT)",
        "INSERT INTO raw.orders VALUES (1, 'eu', 10), (2, 'us', 20)", "INSERT INTO orders VALUES (1, 'eu', 1000)",
        "CREATE MATERIALIZED VIEW totals AS SELECT region, SUM(amount) AS total FROM orders GROUP BY region",
        "CREATE MATERIALIZED VIEW raw.totals AS SELECT region, SUM(amount) AS total FROM raw.orders GROUP BY region",
        "CREATE MATERIALIZED VIEW both AS SELECT gold.totals.region, gold.totals.total, raw.totals.total AS other "
        "FROM gold.totals JOIN raw.totals ON gold.totals.region = raw.totals.region",
        "USE default",
    ):  # fmt: skip
        db.sql(text)
    return db


def test_a_name_means_what_it_meant_where_it_was_written(lake: penstock.Database) -> None:
    assert found(lake, "SELECT * FROM gold.totals") == [("eu", 1000)]
    assert found(lake, "SELECT * FROM raw.totals") == [("eu", 10), ("us", 20)]
    report = after(
        lake, "INSERT INTO raw.orders VALUES (3, 'eu', 5)", action="INCREMENTAL", **{"gold.totals": "NO_DATA"}
    )
    assert report["raw.totals"].action == "INCREMENTAL"
    assert found(lake, "SELECT * FROM gold.both") == [("eu", 1000, 15)]
    assert [status.name for status in lake.status()] == ["raw.totals", "gold.totals", "gold.both"]
    assert {edge for edge in lake.graph().edges if edge[1] == "gold.both"} == {
        ("gold.totals", "gold.both"), ("raw.totals", "gold.both"),
    }  # fmt: skip
    assert [record.view for record in lake.history("gold.both", 1)] == ["gold.both"]
    assert "raw.totals" in str(lake.explain("GOLD.both"))
    created = found(lake, "SHOW CREATE MATERIALIZED VIEW gold.totals")[0][0]
    assert "CREATE MATERIALIZED VIEW gold.totals (" in created
    assert "FROM `gold`.orders" in created


def test_queries(lake: penstock.Database) -> None:
    assert found(lake, "SELECT r.amount, g.amount FROM raw.orders r JOIN gold.orders g USING (id)") == [(10, 1000)]
    named = "SELECT raw.orders.amount, gold.orders.amount FROM raw.orders JOIN gold.orders USING (id)"
    assert found(lake, named) == [(10, 1000)]
    subquery = "SELECT id FROM raw.orders WHERE EXISTS (SELECT 1 FROM gold.orders WHERE gold.orders.id = raw.orders.id)"
    assert found(lake, subquery) == [(1,)]
    lake.sql("USE raw")
    shadowed = "WITH orders AS (SELECT 7 AS id) SELECT orders.id, gold.orders.id FROM orders, gold.orders"
    assert found(lake, shadowed) == [(7, 1)]
    assert found(lake, "SELECT id FROM orders WHERE amount > (SELECT MIN(amount) FROM orders)") == [(2,)]
    epoch = lake.refresh().epoch
    assert epoch is not None
    lake.sql("INSERT INTO orders VALUES (4, 'us', 1)")
    lake.refresh()
    past = (
        f"SELECT t.total, n.total FROM totals AS OF EPOCH {epoch} t "
        f"JOIN gold.totals AS OF EPOCH {epoch} n USING (region)"
    )
    assert found(lake, past) == [(10, 1000)]
    assert found(lake, f"SELECT raw.totals.total FROM totals AS OF EPOCH {epoch} WHERE region = 'us'") == [(20,)]
    assert rows(lake.snapshot(epoch).table("totals")) == [("eu", 10), ("us", 20)]
    assert rows(lake.snapshot(epoch).sql("SELECT total FROM totals WHERE region = 'us'")) == [(20,)]
    assert rows(lake.table("totals")) == [("eu", 10), ("us", 21)]
    assert rows(lake.table("gold.totals")) == [("eu", 1000)]
    assert ("# Name", "raw.totals", None) in found(lake, "DESCRIBE totals")
    assert found(lake, "SELECT name FROM penstock.views ORDER BY name") == [
        ("gold.both",),
        ("gold.totals",),
        ("raw.totals",),
    ]


def test_spark_writes_too(lake: penstock.Database) -> None:
    """What the driver leaves to Spark: functions that it does not know."""
    lake.sql("USE raw")
    lake.sql("INSERT INTO orders SELECT id + 100, SOUNDEX(region), gold.orders.amount FROM gold.orders")
    lake.sql("UPDATE orders SET region = SOUNDEX(region), amount = raw.orders.amount + 1 WHERE raw.orders.id = 101")
    merged = lake.sql(
        "MERGE INTO gold.orders USING orders ON gold.orders.id = raw.orders.id "
        "WHEN MATCHED THEN UPDATE SET gold.orders.region = SOUNDEX(raw.orders.region) "
        "WHEN NOT MATCHED THEN INSERT (id, region, amount) VALUES (raw.orders.id, 'x', 0)"
    )
    assert isinstance(merged, Done)
    assert merged.rows == 3
    assert found(lake, "SELECT * FROM orders WHERE id > 100") == [(101, "E000", 1001)]
    assert found(lake, "SELECT id, amount FROM gold.orders") == [(1, 1000), (101, 0), (2, 0)]
    after(lake, action=("INCREMENTAL", "FULL"))


def test_plain_views_and_read_models(lake: penstock.Database) -> None:
    lake.sql("USE raw")
    lake.sql("CREATE VIEW big AS SELECT id, amount FROM orders WHERE amount >= 20")
    lake.sql("CREATE VIEW gold.big AS SELECT id, amount FROM gold.orders WHERE amount >= 20")
    lake.sql("CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n FROM big")
    lake.sql("CREATE TABLE tv_order AS SELECT id AS pk_order, jsonb_build_object('amount', amount) AS data FROM orders")
    lake.sql("CREATE TABLE gold.tv_order AS SELECT id AS pk_order, "
             "jsonb_build_object('amount', amount, 'raw', raw.v_order.data) AS data FROM gold.orders "
             "JOIN raw.v_order ON raw.v_order.pk_order = gold.orders.id")  # fmt: skip
    lake.sql("USE default")
    assert found(lake, "SELECT * FROM gold.big") == [(1, 1000)]
    assert found(lake, "SELECT * FROM raw.counted") == [(1,)]
    assert found(lake, "SELECT data FROM gold.v_order") == [('{"amount":1000,"raw":{"amount":10}}',)]
    lake.sql("UPDATE raw.orders SET amount = 11 WHERE id = 1")
    assert_fresh(lake, "gold.tv_order")
    document = lake.get("gold.tv_order", pk_order=1)
    assert document is not None
    assert document["data"] == {"amount": 1000, "raw": {"amount": 11}}
    assert [row[:3] for row in found(lake, "SHOW READ MODELS IN gold")] == [("order", "gold.v_order", "gold.tv_order")]
    assert [row[0] for row in found(lake, "SHOW VIEWS IN raw")] == ["raw.big", "raw.v_order"]
    gold = [row[0] for row in found(lake, "SHOW MATERIALIZED VIEWS IN gold")]
    assert gold == ["gold.both", "gold.totals", "gold.tv_order"]
    said(lake, "CREATE OR REPLACE VIEW raw.big AS SELECT id, amount FROM raw.orders")
    assert found(lake, "SELECT * FROM raw.counted") == [(2,)]
    lake.sql("CREATE VIEW gold.outside AS SELECT * FROM raw.big")
    with pytest.raises(DependencyError, match=r"'gold\.outside', outside of it, reads .*DROP VIEW gold\.outside"):
        lake.sql("DROP SCHEMA raw CASCADE")
    lake.sql("DROP VIEW gold.outside")
    lake.sql("CREATE MATERIALIZED VIEW of_view AS SELECT COUNT(*) AS n FROM raw.big")
    gone = said(lake, "DROP SCHEMA raw CASCADE").partition("with it ")[2].split(", ")
    assert set(gone) == {
        "of_view", "raw.counted", "raw.big", "gold.both", "gold.tv_order", "raw.tv_order", "raw.totals", "raw.orders",
    }  # fmt: skip
    assert {node.name for node in lake.graph().nodes} == {"gold.orders", "gold.totals", "gold.big"}


def test_altering_refreshing_and_dropping(lake: penstock.Database) -> None:
    assert said(lake, "REFRESH MATERIALIZED VIEW gold.both").startswith("gold.both: NO_DATA")
    assert said(lake, "ALTER MATERIALIZED VIEW gold.totals SUSPEND") == "view gold.totals suspended"
    lake.resume("gold.totals")
    lake.alter_view("gold.totals", target_lag="5 minutes")
    assert lake.refresh("gold.both", "raw.totals")["gold.both"].name == "gold.both"
    with pytest.raises(DependencyError, match=r"'gold\.totals' cannot be dropped: 'gold\.both' reads it"):
        lake.sql("DROP MATERIALIZED VIEW gold.totals")
    with pytest.raises(AlreadyExistsError, match=r"'gold\.totals' exists already"):
        lake.create_view("gold.totals", "SELECT 1 AS x FROM raw.orders")
    with pytest.raises(NotFoundError, match=r"no schema 'silver'\. CREATE SCHEMA silver makes it"):
        lake.create_view("silver.totals", "SELECT id FROM raw.orders")
    with pytest.raises(NotSupportedError, match="catalog of the Spark session"):
        lake.create_view("a.b.c", "SELECT id FROM raw.orders")
    assert said(lake, "DROP MATERIALIZED VIEW gold.totals CASCADE") == "dropped gold.totals, gold.both"
    assert said(lake, "DROP TABLE raw.orders CASCADE") == "table raw.orders dropped, and with it raw.totals"


def test_immediate_views_and_transactions(lake: penstock.Database) -> None:
    lake.sql("ALTER MATERIALIZED VIEW raw.totals REFRESH IMMEDIATE")
    lake.sql("USE raw")
    lake.sql("INSERT INTO orders VALUES (5, 'eu', 1)")
    assert found(lake, "SELECT * FROM totals") == [("eu", 11), ("us", 20)]
    with lake.transaction() as tx:
        tx.sql("UPDATE orders SET amount = 0")
        tx.sql("INSERT INTO gold.orders SELECT id, region, amount FROM orders WHERE id = 2")
    assert found(lake, "SELECT * FROM totals") == [("eu", 0), ("us", 0)]
    assert found(lake, "SELECT id, amount FROM gold.orders") == [(1, 1000), (2, 0)]


def test_checkpoints_know_schemas(lake: penstock.Database) -> None:
    lake.sql("CHECKPOINT before")
    lake.sql("DROP MATERIALIZED VIEW gold.totals CASCADE")
    lake.sql("CREATE MATERIALIZED VIEW gold.late AS SELECT id FROM gold.orders")
    lake.sql("RESTORE CHECKPOINT before")
    assert [status.name for status in lake.status()] == ["raw.totals", "gold.totals", "gold.both"]
    assert found(lake, "SELECT * FROM gold.both") == [("eu", 1000, 10)]


def test_a_schema_goes_with_its_readers_or_not_at_all(lake: penstock.Database) -> None:
    with pytest.raises(DependencyError, match=r"it has 'raw\.orders', 'raw\.totals'"):
        lake.sql("DROP SCHEMA raw")
    assert said(lake, "DROP SCHEMA raw CASCADE") == "schema raw dropped, and with it gold.both, raw.totals, raw.orders"
    assert [node.name for node in lake.graph().nodes] == ["gold.orders", "gold.totals"]
    assert [row[:4] for row in found(lake, "SHOW SCHEMAS")] == [("default", 0, 0, 0), ("gold", 1, 1, 0)]
    after(lake, "INSERT INTO gold.orders VALUES (9, 'eu', 1)")
    assert said(lake, "DROP SCHEMA gold CASCADE") == "schema gold dropped, and with it gold.totals, gold.orders"
    assert lake.status() == []


def test_names_of_any_characters(db: penstock.Database) -> None:
    db.sql("CREATE SCHEMA `we ird`")
    db.sql("CREATE TABLE `we ird`.`näme.1` (id INT, `x` INT)")
    db.sql("CREATE MATERIALIZED VIEW `we ird`.`tick``s` AS "
           "SELECT `näme.1`.id FROM `we ird`.`näme.1` WHERE `we ird`.`näme.1`.x > 0")  # fmt: skip
    db.sql("CREATE MATERIALIZED VIEW `a.b` AS SELECT id + 1 AS id FROM `we ird`.`tick``s`")
    report = after(db, "INSERT INTO `We Ird`.`NÄME.1` VALUES (1, 1), (2, 0)")
    assert list(report) == ["`we ird`.`tick``s`", "`a.b`"]
    assert rows(db.table("`we ird`.`tick``s`")) == [(1,)]
    assert found(db, "SELECT * FROM `a.b`") == [(2,)]
    assert db.refresh("`A.B`")["`a.b`"].action == "NO_DATA"
    assert said(db, "DROP SCHEMA `we ird` CASCADE") == (
        "schema we ird dropped, and with it `a.b`, `we ird`.`tick``s`, `we ird`.`näme.1`"
    )
