"""SHOW CREATE: what it prints creates the same table or view again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock
from oracle import assert_fresh, rows

VIEWS = (
    "CREATE MATERIALIZED VIEW totals AS SELECT region, SUM(amount) AS total FROM orders GROUP BY region",
    """CREATE MATERIALIZED VIEW Dressed (area COMMENT 'where it''s at', größe COMMENT 'back\\\\slash')
       COMMENT 'two\nlines, "quoted"' PARTITIONED BY (area) TBLPROPERTIES ('team' = 'it''s us', 'cost centre' = '7')
       AS -- a remark; with a semicolon
       WITH sums AS (SELECT region, SUM(amount) AS total FROM orders GROUP BY region) SELECT region, total FROM sums
       REFRESH POLICY INCREMENTAL STRICT CONSISTENCY NONE SCHEDULE POLICY SLOWEST BUCKETS 3""",
    "CREATE MATERIALIZED VIEW clustered CLUSTER BY (region, id) AS SELECT * FROM orders WHERE note LIKE '%;%'",
    """CREATE MATERIALIZED VIEW timely AS SELECT TUMBLE_START(ts, INTERVAL '1 minute') AS at, COUNT(*) AS n FROM orders
       GROUP BY TUMBLE(ts, INTERVAL '1 minute') EMIT AFTER WATERMARK ALLOW LATENESS INTERVAL 90 SECONDS""",
    "CREATE MATERIALIZED VIEW whole AS SELECT id FROM orders REFRESH POLICY FULL",
)
TABLES = (
    """CREATE TABLE orders (id INT NOT NULL COMMENT 'it''s the key', region VARCHAR(10), amount DECIMAL(10,2),
       note STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS) COMMENT 'all of them'""",
    """CREATE TABLE parts (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2), `odd name` STRING,
       twice BIGINT GENERATED ALWAYS AS (CAST(n AS BIGINT) * 2), n INT, day DATE,
       nested STRUCT<a: INT NOT NULL, b: ARRAY<MAP<STRING, BIGINT>> COMMENT 'deep'>)
       PARTITIONED BY (day) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'team' = 'us')""",
    """CREATE TABLE defaults (a INT DEFAULT 7, b STRING)
       TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', 'delta.enableDeletionVectors' = 'false')""",
)


def shown(db: penstock.Database, statement: str) -> str:
    return str(db.sql(statement).first()[0])  # type: ignore[union-attr]


def described(db: penstock.Database, name: str) -> list[tuple[Any, ...]]:
    changing = ("# Location", "# Created", "Location", "Table")
    return [tuple(row) for row in db.sql(f"DESCRIBE EXTENDED {name}").collect() if row[0] not in changing]  # type: ignore[union-attr]


@pytest.mark.parametrize("view", VIEWS, ids=lambda text: text.split()[3])
def test_a_view_is_created_again(db: penstock.Database, view: str) -> None:
    db.sql(TABLES[0])
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10, 'a;b', TIMESTAMP '2026-01-01 10:00:00'), (2, 'us', 5, NULL, NULL)")
    db.sql(view)
    name = view.split()[3]
    before, found, statement = described(db, name), rows(db.table(name)), shown(db, f"SHOW CREATE TABLE {name}")
    assert statement == shown(db, f"SHOW CREATE MATERIALIZED VIEW {name}")
    db.sql(f"DROP MATERIALIZED VIEW {name}")
    db.sql(statement)
    assert described(db, name) == before
    assert rows(db.table(name)) == found
    assert shown(db, f"SHOW CREATE TABLE {name}") == statement
    db.sql("INSERT INTO orders VALUES (3, 'eu', 1, 'c;', TIMESTAMP '2026-01-01 11:00:00')")
    db.refresh()
    if name != "timely":  # whose late rows the oracle does not know
        assert_fresh(db, name, "FULL" if name == "whole" else "INCREMENTAL")


@pytest.mark.parametrize("table", TABLES, ids=lambda text: text.split()[2])
def test_a_table_is_created_again(db: penstock.Database, table: str) -> None:
    db.sql(table)
    name = table.split()[2]
    before, statement = described(db, name), shown(db, f"SHOW CREATE TABLE {name}")
    db.sql(f"DROP TABLE {name}")
    db.sql(statement)
    assert described(db, name) == before
    assert shown(db, f"SHOW CREATE TABLE {name}") == statement


def test_an_external_table_is_registered_again(db: penstock.Database, tmp_path: Path) -> None:
    place = tmp_path / "it's outside"
    db.sql(f'CREATE TABLE o (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS) LOCATION "{place}"')
    db.sql("INSERT INTO o VALUES (TIMESTAMP '2026-01-01 10:00:00')")
    statement = shown(db, "SHOW CREATE TABLE o")
    db.sql("DROP TABLE o")
    db.sql(statement)
    assert len(rows(db.table("o"))) == 1
    assert [tuple(row)[:3] for row in db.sql("SHOW WATERMARKS").collect()] == [  # type: ignore[union-attr]
        ("o", "table", "WATERMARK FOR ts AS ts - INTERVAL 5 seconds")
    ]


def test_what_cannot_be_told_is_refused_by_name(db: penstock.Database) -> None:
    db.sql("CREATE TABLE checked (a INT)")
    db.sql("ALTER TABLE checked ADD CONSTRAINT positive CHECK (a > 0)")
    with pytest.raises(penstock.NotSupportedError, match="'checked' has a CHECK constraint"):
        db.sql("SHOW CREATE TABLE checked")
    db.sql("CREATE TABLE lying (a INT, b INT) CLUSTER BY (a)")
    with pytest.raises(penstock.NotSupportedError, match="'lying' has a CLUSTER BY"):
        db.sql("SHOW CREATE TABLE lying")
    with pytest.raises(penstock.NotFoundError, match="'lying' is a table, not a materialized view"):
        db.sql("SHOW CREATE MATERIALIZED VIEW lying")
