"""Rows that stand in the query: VALUES in FROM, and SELECT without FROM. They never change."""

from __future__ import annotations

import pytest

import penstock
from oracle import after, assert_fresh, rows, types

ALONE = {
    "one": "SELECT 1 AS a",
    "typed": "SELECT 1L AS a, 2.50 AS b, 'x' AS c, DATE'2024-02-29' AS d, TIMESTAMP'2024-02-29 01:02:03' AS e, "
    "NULL::INT AS f",
    "none": "SELECT 1 AS a WHERE 1 > 2",
    "counted": "SELECT COUNT(*) AS n, MAX(7) AS m",
    "spread": "SELECT EXPLODE(ARRAY(1, 2, 2)) AS e",
    "stacked": "SELECT 1 AS a UNION ALL SELECT 2L UNION ALL SELECT NULL",
    "apart": "SELECT 1 AS a UNION SELECT 1 UNION SELECT 2",
    "given": "VALUES (1, 'a'), (2, NULL), (2, NULL)",
    "named": "SELECT b, a + 1 AS a FROM VALUES (1, 'a'), (2, 'b') AS v(a, b) WHERE a > 1",
    "bracketed": "SELECT y.a FROM (VALUES (1), (2) AS x(a)) y",
    "mixed": "SELECT * FROM VALUES (1, 1.5, NULL, ARRAY(1)), (3L, 2, 'x', NULL), "
    "(NULL, 0.25, 'y', ARRAY(NULL, 2)) AS v(a, b, c, d)",
    "nested": "SELECT s.p, m['k'] AS k FROM VALUES (NAMED_STRUCT('p', 1, 'q', 'z'), MAP('k', 2)) AS v(s, m)",
    "summed": "SELECT a, SUM(b) AS s FROM VALUES ('x', 1), ('y', 2), ('x', 3) AS v(a, b) GROUP BY a",
    "in_cte": "WITH v AS (VALUES (3), (1)), w AS (SELECT 5 AS five) SELECT v.col1 * w.five AS n FROM v, w",
    "windowed": "SELECT a, RANK() OVER (ORDER BY a) AS r FROM VALUES (3), (1), (3) AS v(a)",
}  # fmt: skip
WITH_TABLES = {
    "labelled": "SELECT t.id, l.label FROM t JOIN (VALUES (0, 'nil'), (1, 'one'), (1, 'eins')) "
    "AS l(g, label) ON t.g = l.g",
    "all_labels": "SELECT l.label, COUNT(t.id) AS n FROM VALUES (0, 'nil'), (1, 'one'), (9, 'none') AS l(g, label) "
    "LEFT JOIN t ON t.g = l.g GROUP BY l.label",
    "unlabelled": "SELECT t.id, l.label FROM t LEFT JOIN (VALUES (0, 'nil'), (NULL, '?')) "
    "AS l(g, label) ON t.g <=> l.g",
    "either": "SELECT t.id, l.g FROM t FULL JOIN VALUES (0), (7), (7) AS l(g) ON t.g = l.g",
    "with_total": "SELECT CAST(g AS STRING) AS g, COUNT(*) AS n FROM t GROUP BY g UNION ALL SELECT 'total', 100",
    "headed": "SELECT 0 AS id, 0 AS g UNION ALL SELECT id, g FROM t UNION ALL VALUES (-1, -1)",
    "without": "SELECT g FROM t EXCEPT ALL VALUES (0), (0)",
    "some": "SELECT id FROM t WHERE g IN (SELECT a FROM VALUES (0), (2) AS v(a))",
    "others": "SELECT id FROM t WHERE g NOT IN (SELECT a FROM VALUES (0), (2) AS v(a))",
    "exists_": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM VALUES (0), (2) AS v(a) WHERE v.a = t.g)",
    "beyond": "SELECT id, (SELECT 5) AS five FROM t WHERE g < (SELECT 2) AND EXISTS (SELECT 1)",
    "looked_up": "SELECT (SELECT MAX(id) FROM t) AS most, (SELECT COUNT(*) FROM t WHERE g = 1) AS ones",
    "settings": "WITH bounds AS (SELECT 1 AS low, 3 AS high) "
    "SELECT t.id FROM t, bounds WHERE t.id BETWEEN low AND high",
    "distinct_": "SELECT DISTINCT v.a, t.g FROM t CROSS JOIN VALUES (1), (1), (2) AS v(a)",
}  # fmt: skip


def test_rows_that_never_change(db: penstock.Database) -> None:
    for name, query in ALONE.items():
        db.create_view(name, query, policy="INCREMENTAL STRICT")
        assert_fresh(db, name, action="FULL")
    db.create_view("reader", "SELECT b, COUNT(*) AS n FROM typed GROUP BY b")
    report = db.refresh()
    assert {report[name].action for name in (*ALONE, "reader")} == {"NO_DATA"}
    db.refresh("stacked", full=True)
    for name in ALONE:
        assert_fresh(db, name)


def test_beside_tables(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, g INT)")
    db.sql("INSERT INTO t VALUES (1, 0), (2, 0), (3, 1), (4, NULL), (5, 2), (5, 2)")
    for name, query in WITH_TABLES.items():
        db.create_view(name, query, policy="INCREMENTAL STRICT")
        assert_fresh(db, name, action="FULL")
    db.create_view("reader", "SELECT label, SUM(id) AS s FROM labelled GROUP BY label")
    actions = ("INCREMENTAL", "NO_DATA")
    after(db, "INSERT INTO t VALUES (6, 1), (7, 9), (8, NULL)", action=actions)
    after(db, "UPDATE t SET g = 0 WHERE g = 2", "DELETE FROM t WHERE id = 1", action=actions)
    after(db, "UPDATE t SET g = 7 WHERE g IS NULL", "INSERT INTO t VALUES (9, 0)", action=actions)
    after(db, "DELETE FROM t", action=actions)
    after(db, "INSERT INTO t VALUES (1, 1), (1, 1), (2, NULL)", action=actions)
    assert db.explain("headed").nodes[-1].rule == "union"


def test_types_are_those_of_spark(db: penstock.Database) -> None:
    db.create_view("v", "SELECT * FROM VALUES (1, 2.5, NULL), (3L, 1, 'x') AS v(a, b, c)")
    assert types(db.table("v")) == ["bigint", "decimal(11,1)", "string"]
    assert [str(value) for value in rows(db.table("v"))[0]] == ["1", "2.5", "None"]


def test_values_depend_on_the_settings_of_their_view(db: penstock.Database) -> None:
    """A moment written without a zone is one of the session that created the view."""
    db.sql("CREATE TABLE t (id INT)")
    db.sql("INSERT INTO t VALUES (1)")
    zone = "spark.sql.session.timeZone"
    query = "SELECT t.id, v.at FROM t, VALUES (TIMESTAMP'2024-01-01 00:00:00') AS v(at)"
    before = db.spark.conf.get(zone)
    try:
        db.spark.conf.set(zone, "Asia/Tokyo")
        db.create_view("tokyo", query)
    finally:
        db.spark.conf.set(zone, before)
    db.create_view("here", query)
    db.sql("INSERT INTO t VALUES (2)")
    db.refresh()
    late = "SELECT DISTINCT UNIX_SECONDS(here.at) - UNIX_SECONDS(tokyo.at) AS s FROM here, tokyo"
    assert rows(db.sql(late)) == [(9 * 3600,)]
    assert {db.history(name, 1)[0].action for name in ("here", "tokyo")} == {"INCREMENTAL"}


def test_what_changes_by_itself_is_refused(db: penstock.Database) -> None:
    for query in ("SELECT RAND() AS r", "SELECT * FROM VALUES (CURRENT_TIMESTAMP()) AS v(at)"):
        with pytest.raises(penstock.DefinitionError, match="changes by itself"):
            db.create_view("v", query)
