"""Bugs that were found once, each by its smallest case: tables, views, and changes after which the views were wrong."""

from __future__ import annotations

import pytest

import penstock
from oracle import after, assert_all_fresh

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
    "CREATE TABLE names (id INT, g INT, s STRING, at TIMESTAMP)",
    "INSERT INTO names VALUES (1, 1, 'it\\'s', TIMESTAMP'2024-03-31 01:30:00')",
    "INSERT INTO names VALUES (2, 1, 'its', NULL), (3, 2, 'a\"b', NULL)",
    "CREATE TABLE lists (g INT, v INT, a ARRAY<INT>)",
    "INSERT INTO lists VALUES (1, NULL, NULL), (2, 5, ARRAY(1, 2))",
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
    "doubled_quotes": "SELECT id, 'it''s' AS c FROM names WHERE s = 'it''s' OR s = \"a\"\"b\"",
    "having_a_key": "SELECT g + 10 AS g, COUNT(*) AS n FROM names GROUP BY g HAVING g > 1",
    "having_an_alias": "SELECT g, MAX(id) + 10 AS id FROM names GROUP BY g HAVING id > 12",
    "qualify_a_column": "SELECT -id AS id, s FROM names QUALIFY ROW_NUMBER() OVER (ORDER BY id) = 1",
    "interval_of_two_units": "SELECT id, at - INTERVAL 1 YEAR 2 MONTHS AS then FROM names",
    "exists_a_generated_row": "SELECT id FROM names "
    "WHERE EXISTS (SELECT EXPLODE(l.a) FROM lists l WHERE l.g = names.g)",
    "in_as_a_value": "SELECT id, id IN (SELECT v FROM lists l WHERE l.g = names.g) AS a, "
    "NOT (id IN (SELECT v FROM lists l WHERE l.g = names.g)) AS b, "
    "NOT (id > 0 AND id IN (SELECT v FROM lists l WHERE l.g = names.g)) AS c FROM names",
    "missing_struct": "SELECT id, IF(id > 1, STRUCT(1 AS one, id AS own), NULL) AS p FROM names",
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
        "INSERT INTO names VALUES (0, 3, 'it\\'s', TIMESTAMP'2024-05-31 00:00:00'), (4, 2, 'a\"b', NULL)",
        "UPDATE lists SET a = ARRAY(), v = NULL WHERE g = 2",
        "UPDATE lists SET a = ARRAY(3), v = 1 WHERE g = 1",
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
        db.create_view(name, query, policy="INCREMENTAL STRICT", initialize=False)
    db.refresh()
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


@pytest.mark.parametrize("value", ["GET_JSON_OBJECT(j, 'a')", "ARRAYS_ZIP(xs, xs)"])
def test_what_the_parser_reads_otherwise_than_spark_is_recomputed(db: penstock.Database, value: str) -> None:
    db.sql("CREATE TABLE t (d DATE, j STRING, xs ARRAY<INT>)")
    with pytest.raises(penstock.NotIncrementalError, match="PLAN_MISMATCH"):
        db.create_view("v", f"SELECT {value} AS a FROM t", policy="INCREMENTAL STRICT")


@pytest.mark.parametrize("value", ["MAX_BY(m, k)", "COLLECT_LIST(m)"])
def test_values_without_an_order_are_refused_in_words(db: penstock.Database, value: str) -> None:
    db.sql("CREATE TABLE t (k INT, m MAP<STRING, INT>)")
    with pytest.raises(penstock.DefinitionError, match="have no order"):
        db.create_view("v", f"SELECT {value} AS a FROM t")


def test_describe_knows_views_too(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (k INT)")
    db.create_view("v", "SELECT k FROM t")
    assert db.sql("DESCRIBE v").collect() == db.sql("DESCRIBE MATERIALIZED VIEW v").collect()  # type: ignore[union-attr]


@pytest.mark.parametrize("query", ["SELECT id FROM t WHERE c = 'ab'", "SELECT __weight AS w FROM t GROUP BY __weight"])
def test_columns_that_a_change_cannot_carry_make_a_view_recompute(db: penstock.Database, query: str) -> None:
    db.sql("CREATE TABLE t (id INT, c CHAR(5), v VARCHAR(5), __weight INT)")
    db.sql("INSERT INTO t VALUES (1, 'ab', 'ab', 1), (2, 'abc', 'ab ', 2)")
    with pytest.raises(penstock.NotIncrementalError, match="SOURCE_COLUMN"):
        db.create_view("v", query, policy="INCREMENTAL STRICT")
    db.create_view("v", query)
    db.create_view("others", "SELECT id, v FROM t WHERE v = 'ab'", policy="INCREMENTAL STRICT")
    after(db, "INSERT INTO t VALUES (3, 'ab', 'ab', 2)", "DELETE FROM t WHERE id = 1", v="FULL")


def test_a_column_that_takes_the_name_of_another(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, a INT, b INT) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    db.sql("INSERT INTO t VALUES (1, 10, 1), (2, 20, 2)")
    db.create_view("sums", "SELECT id, SUM(a) AS s FROM t GROUP BY id")
    db.create_view("others", "SELECT id, b FROM t")
    db.sql("ALTER TABLE t RENAME COLUMN a TO old")
    db.sql("ALTER TABLE t ADD COLUMN a INT")
    after(db, "INSERT INTO t VALUES (3, 30, 3, 33)", sums="REINITIALIZE")
    after(db, "UPDATE t SET a = 1 WHERE id = 1", others="NO_DATA")


def test_zeros_of_both_signs_within_structs_are_equal(db: penstock.Database) -> None:
    db.sql("CREATE TABLE a (id INT, d DOUBLE)")
    db.sql("INSERT INTO a VALUES (1, 0.0D), (2, -0.0D), (3, 1D)")
    db.create_view("groups", "SELECT COUNT(*) AS n FROM a GROUP BY STRUCT(d AS d)")
    db.create_view("places", "SELECT id, ROW_NUMBER() OVER (PARTITION BY STRUCT(d AS d) ORDER BY id) AS r FROM a")
    db.create_view("pairs", "SELECT a.id, b.id AS other FROM a JOIN a b ON STRUCT(a.d AS d) = STRUCT(b.d AS d)")
    db.create_view(
        "left_pairs", "SELECT a.id, b.id AS other FROM a LEFT JOIN a b ON STRUCT(a.d AS d) <=> STRUCT(b.d AS d)"
    )
    db.create_view("compared", "SELECT id, STRUCT(d AS d) <=> STRUCT(-d AS d) AS same FROM a")
    assert_all_fresh(db)
    after(db, "INSERT INTO a VALUES (4, -0.0D), (5, 0.0D)", "DELETE FROM a WHERE id = 1")
    after(db, "UPDATE a SET d = -d")


def test_a_condition_that_guards_the_key_of_a_join(db: penstock.Database) -> None:
    db.sql("CREATE TABLE a (id INT, x INT)")
    db.sql("CREATE TABLE b (id INT, n INT)")
    db.sql("INSERT INTO a VALUES (1, 5), (2, 2)")
    db.sql("INSERT INTO b VALUES (1, 1), (2, 2), (4, 5)")
    db.create_view("inside", "SELECT a.id, b.id AS other FROM a JOIN b ON b.n <> 0 AND a.x = 10 DIV b.n")
    db.create_view("left_of", "SELECT a.id, b.id AS other FROM a LEFT JOIN b ON b.n <> 0 AND a.x = 10 DIV b.n")
    db.create_view("behind", "SELECT a.id, b.id AS other FROM a JOIN b ON a.x = 10 DIV b.n WHERE b.n <> 0")
    after(db, "INSERT INTO b VALUES (3, 0)")
    after(db, "INSERT INTO a VALUES (3, 10), (4, NULL)", "UPDATE b SET n = 5 WHERE id = 3")


def test_numbers_at_the_edge_of_their_types(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, x INT, z DECIMAL(38,18))")
    db.create_view("least", "SELECT id, COALESCE(x, -2147483648) AS x, IF(x > 0, x, -2147483648) + 1 AS y FROM t")
    db.create_view("negated", "SELECT id, -z AS z FROM t WHERE -z <> 1")
    after(db, "INSERT INTO t VALUES (1, NULL, -50588458462963336989.049813713758529949), (2, 5, 1)")
    after(db, "UPDATE t SET z = z + 0.000000000000000001 WHERE id = 1", least="NO_DATA")


def test_texts_with_line_ends_that_are_none_in_the_log(db: penstock.Database) -> None:
    """The least and greatest texts of a file stand in the log; Unicode knows more ends of lines than JSON does."""
    db.sql("CREATE TABLE t (id INT, x STRING)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT x, COUNT(*) AS n FROM t GROUP BY x")
    odd = "a\u2028b\u2029c\x85d\x1ce"
    after(db, f"INSERT INTO t SELECT id, '{odd}' FROM range(3)")
    after(
        db,
        "UPDATE t SET id = id + 1 WHERE id = 1",
        f"INSERT INTO t VALUES (7, '{odd}')",
    )
    after(db, "DELETE FROM t WHERE id = 7")
