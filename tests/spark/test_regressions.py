"""Bugs that were found once, each by its smallest case: tables, views, and changes after which the views were wrong."""

from __future__ import annotations

import pytest

import penstock
from oracle import assert_all_fresh

TABLES = [
    "CREATE TABLE days (x DATE, at TIMESTAMP)",
    "INSERT INTO days VALUES (DATE'2020-01-01', TIMESTAMP'2020-01-01 00:00:00')",
    "CREATE TABLE nested (m MAP<STRING, TIMESTAMP>, s STRUCT<d: DOUBLE, t: TIMESTAMP>)",
    "INSERT INTO nested VALUES (MAP('a', TIMESTAMP'2024-01-01 00:00:00.000001'), "
    "STRUCT(1D, TIMESTAMP'2024-01-01 00:00:00.000001'))",
    "CREATE TABLE words (id INT, s STRING)",
    "INSERT INTO words VALUES (1, 'a'), (2, 'A'), (3, 'b')",
    "CREATE TABLE zeros (k INT, d DOUBLE)",
    "INSERT INTO zeros VALUES (1, 0.0D), (2, -0.0D)",
    "CREATE TABLE mapped (id INT, a INT, b INT) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "INSERT INTO mapped VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
    "CREATE TABLE heavy (k INT, v INT)",
    "INSERT INTO heavy SELECT 1, CAST(id AS INT) FROM RANGE(1200)",
    "CREATE TABLE heavy2 (k INT, v INT)",
    "INSERT INTO heavy2 SELECT 1, CAST(id AS INT) FROM RANGE(1200)",
]
VIEWS = {
    "day_rows": "SELECT x, at FROM days",
    "day_counts": "SELECT x, COUNT(*) AS n, MAX(at) AS at FROM days GROUP BY x",
    "maps": "SELECT m FROM nested",
    "structs": "SELECT s FROM nested",
    "collated": "SELECT s COLLATE UTF8_LCASE AS s FROM words",
    "brackets": "SELECT id, x AND id > 1 AS both, NOT x AS none FROM (SELECT id, s = 'a' OR s = 'b' AS x FROM words)",
    "signs": "SELECT k, CAST(MAX(d) AS STRING) AS high, CAST(MIN(d) AS STRING) AS low FROM zeros GROUP BY k",
    "unrelated": "SELECT id, a FROM mapped",
    "products": "SELECT a.k, COUNT(*) AS n, SUM(b.k) AS s, AVG(CAST(a.k AS DECIMAL(10,2))) AS m "
    "FROM heavy a JOIN heavy2 b ON a.k = b.k GROUP BY a.k",
}
CHANGES = [
    [
        "INSERT INTO days VALUES (DATE'1582-10-10', TIMESTAMP'1582-10-10 00:00:00'), (DATE'10000-01-01', NULL)",
        "UPDATE nested SET m = MAP('a', TIMESTAMP'2024-01-01 00:00:00.000002'), "
        "s = NAMED_STRUCT('d', 1D, 't', TIMESTAMP'2024-01-01 00:00:00.000002')",
        "UPDATE words SET s = 'A' WHERE id = 1",
        "UPDATE zeros SET d = -d",
        "DELETE FROM mapped WHERE id = 1",
        "ALTER TABLE mapped DROP COLUMN b",
        "ALTER TABLE mapped ADD COLUMN b STRING",
        "INSERT INTO mapped VALUES (4, 4, 'x')",
        "UPDATE heavy SET k = 2 WHERE v < 800",
        "UPDATE heavy2 SET k = 2 WHERE v < 400",
    ],
    [
        "DELETE FROM days WHERE x < DATE'2000-01-01' OR x > DATE'3000-01-01'",
        "UPDATE nested SET m = NULL",
        "DELETE FROM words WHERE id = 2",
    ],
]


def test_values_that_look_alike_years_out_of_range_and_large_weights(db: penstock.Database) -> None:
    for statement in TABLES:
        db.sql(statement)
    for name, query in VIEWS.items():
        db.create_view(name, query, policy="INCREMENTAL STRICT")
    for statements in CHANGES:
        for statement in statements:
            db.sql(statement)
        db.refresh()
        assert_all_fresh(db, ("INCREMENTAL", "NO_DATA"))


@pytest.mark.parametrize("value", ["DATE'today'", "TIMESTAMP'now'", "CAST('Tomorrow ' AS DATE)"])
def test_a_word_for_a_moment_is_no_constant(db: penstock.Database, value: str) -> None:
    db.sql("CREATE TABLE t (k INT)")
    with pytest.raises(penstock.DefinitionError, match="changes by itself"):
        db.create_view("v", f"SELECT k, {value} AS d FROM t")


def test_describe_knows_views_too(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k INT)")
    db.create_view("v", "SELECT k FROM t")
    assert db.sql("DESCRIBE v").collect() == db.sql("DESCRIBE MATERIALIZED VIEW v").collect()  # type: ignore[union-attr]
