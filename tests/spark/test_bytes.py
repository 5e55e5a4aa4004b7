"""What a refresh says that it read."""

from __future__ import annotations

import pytest

import penstock
from oracle import assert_fresh

TABLES = {
    "plain": "",
    "partitioned": "PARTITIONED BY (region)",
    "mapped": "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
}
VIEWS = {
    "totals": "SELECT region, SUM(amount) AS total FROM orders GROUP BY region",
    "copied": "SELECT id, region FROM orders",
    "windowed": "SELECT id, NTILE(2) OVER (ORDER BY amount) AS half FROM orders",
}


@pytest.mark.parametrize("table", TABLES)
def test_a_recomputed_view_says_how_much_it_read(db: penstock.Database, table: str) -> None:
    db.sql(f"CREATE TABLE orders (id INT, region STRING, amount INT) {TABLES[table]}")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20), (3, 'us', 30)")
    db.sql("DELETE FROM orders WHERE id = 3")
    for name, query in VIEWS.items():
        db.create_view(name, query)
    db.create_view("full", VIEWS["totals"], policy="FULL")
    db.sql("INSERT INTO orders VALUES (4, 'eu', 7)")
    size = sum(row["sizeInBytes"] for row in db.sql("DESCRIBE DETAIL orders").collect())  # type: ignore[union-attr]
    report = db.refresh(full=True)
    for name in (*VIEWS, "full"):
        assert_fresh(db, name, "FULL")
        assert report[name].bytes_read >= size, f"{name} reads all of its table"
        assert f"{report[name].bytes_read:,} bytes read" in str(db.explain(name))
