"""PARTITIONED BY, CLUSTER BY and BUCKETS: where the rows of a view lie, and that it stays right wherever they do."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock
from oracle import after, assert_all_fresh
from penstock.frames import limits
from penstock.storage import apply
from penstock.storage.data_files import partition_of
from penstock.storage.delta_log import Snapshot


@pytest.fixture
def orders(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE orders (id INT, region STRING, day DATE, amount INT)")
    db.sql(
        "INSERT INTO orders SELECT id, ELT(id % 5 + 1, 'eu', 'a b', 'x/y=1', '50%', NULL), "
        "DATE'2024-01-01' + CAST(id % 7 AS INT), id FROM range(100)"
    )
    return db


CHANGES = [
    "INSERT INTO orders VALUES (200, 'new', DATE'2024-02-01', 5), (201, NULL, NULL, NULL)",
    "UPDATE orders SET amount = amount + 1 WHERE id < 10",
    "UPDATE orders SET region = 'ü' WHERE id % 9 = 0",
    "DELETE FROM orders WHERE region = 'a b'",
]


def _table(db: penstock.Database, view: str) -> Snapshot:
    return Snapshot(f"{db.path}/views/{view}")


@pytest.mark.parametrize("strategy", ["OVERWRITE", "REWRITE", "PATCH"])
def test_a_partitioned_view(orders: penstock.Database, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if strategy != "OVERWRITE":
        monkeypatch.setattr(limits, "SMALL_TABLE_ROWS", 0)
        monkeypatch.setattr(apply, "cheaper", lambda **_: strategy)
    orders.sql(
        "CREATE MATERIALIZED VIEW totals PARTITIONED BY (region, day) AS "
        "SELECT region, day, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY region, day"
    )
    orders.sql("CREATE MATERIALIZED VIEW regions AS SELECT region, MAX(total) AS most FROM totals GROUP BY region")
    assert _table(orders, "totals").partition_columns == ["region", "day"]
    assert_all_fresh(orders)
    after(orders, *CHANGES[:2])
    report = after(orders, *CHANGES[2:])
    assert report["totals"].strategy == strategy
    theirs = orders.spark.read.format("delta").load(f"{orders.path}/views/totals")
    assert sorted(map(str, theirs.select("region", "total").collect())) == sorted(
        map(str, orders.table("totals").select("region", "total").collect())
    )


def test_rows_of_a_partition_lie_in_its_folder(orders: penstock.Database) -> None:
    orders.create_view("copy", "SELECT id, region FROM orders", partitioned_by=["region"])
    found = {partition_of(file.path)["region"] for file in _table(orders, "copy").files}
    assert {"eu", None} <= found
    assert len(found) == 5


def test_an_empty_text_is_no_partition(orders: penstock.Database) -> None:
    orders.create_view("copy", "SELECT id, region FROM orders", partitioned_by=["region"])
    orders.sql("INSERT INTO orders VALUES (300, '', NULL, 1)")
    with pytest.raises(penstock.RefreshError, match="empty text"):
        orders.refresh()
    orders.sql("DELETE FROM orders WHERE id = 300")
    orders.refresh()
    assert_all_fresh(orders)


def test_a_clustered_view_is_sorted(orders: penstock.Database) -> None:
    orders.sql("CREATE MATERIALIZED VIEW copy CLUSTER BY (amount, id) AS SELECT id, amount FROM orders WHERE id >= 0")
    files = [f"{orders.path}/views/copy/{file.path}" for file in _table(orders, "copy").files]
    contents = sorted(pq.read_table(file).column("amount").to_pylist() for file in files)
    assert [amount for content in contents for amount in content] == list(range(100))
    after(orders, *CHANGES)
    assert "CLUSTER BY (amount, id)" in str(orders.sql("DESCRIBE MATERIALIZED VIEW copy").collect())


def test_a_change_of_one_key_rewrites_one_bucket(orders: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SMALL_TABLE_ROWS", 0)
    orders.sql("CREATE MATERIALIZED VIEW ids AS SELECT id, SUM(amount) AS total FROM orders GROUP BY id BUCKETS 4")
    before = {file.path for file in _table(orders, "ids").files}
    assert len(before) == 4
    report = after(orders, "UPDATE orders SET amount = 7 WHERE id = 3")
    assert report["ids"].strategy == "REWRITE"
    assert len(before & {file.path for file in _table(orders, "ids").files}) == 3
    after(orders, *CHANGES)


def test_the_placement_stays_when_the_policy_changes(orders: penstock.Database) -> None:
    orders.create_view("copy", "SELECT id, region FROM orders", partitioned_by=["region"], buckets=2)
    orders.sql("ALTER MATERIALIZED VIEW copy REFRESH POLICY FULL")
    assert "PARTITIONED BY (region) BUCKETS 2" in str(orders.sql("DESCRIBE MATERIALIZED VIEW copy").collect())
    after(orders, *CHANGES, action="FULL")


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("PARTITIONED BY (nothing)", "none of its columns"),
        ("PARTITIONED BY (id, region, amount)", "leaves no column"),
        ("PARTITIONED BY (share)", "Use CLUSTER BY"),
        ("CLUSTER BY (id, ID)", "twice"),
        ("CLUSTER BY (tags)", "cannot sort"),
    ],
)
def test_a_placement_that_cannot_be(orders: penstock.Database, clause: str, message: str) -> None:
    query = "SELECT id, region, amount FROM orders"
    query = "SELECT id, amount / 2.5D AS share FROM orders" if "share" in clause else query
    query = "SELECT id, MAP(id, 1) AS tags FROM orders" if "tags" in clause else query
    with pytest.raises(penstock.DefinitionError, match=message):
        orders.sql(f"CREATE MATERIALIZED VIEW v {clause} AS {query}")


@pytest.mark.parametrize(
    ("options", "message"), [({"buckets": 0}, "from 1"), ({"partitioned_by": ["id"], "cluster_by": ["id"]}, "not both")]
)
def test_options_that_sql_would_not_take(orders: penstock.Database, options: dict[str, Any], message: str) -> None:
    with pytest.raises(penstock.DefinitionError, match=message):
        orders.create_view("v", "SELECT id, region FROM orders", **options)
