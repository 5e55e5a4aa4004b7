"""Sources whose columns change under their views: what still holds is planned and filled again; nothing is stuck."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType

import penstock
from longer import varied
from oracle import assert_all_fresh, assert_fresh, rows

WIDE = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.columnMapping.mode' = 'name')"


@pytest.fixture
def t(db: penstock.Database) -> penstock.Database:
    db.sql(f"CREATE TABLE t (k INT, a INT, b INT) {WIDE}")
    db.sql("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (2, 3, 3)")
    return db


def test_a_column_that_is_widened(t: penstock.Database) -> None:
    """In a filter, below a hidden node, through a chain of views, and in one that recomputes; all in one epoch."""
    t.create_view("plain", "SELECT k, a FROM t WHERE a > 1")
    t.create_view("hidden", "SELECT g.k, g.s, t.a FROM (SELECT k, MAX(a) AS s FROM t GROUP BY k) g JOIN t ON t.k = g.k")
    t.create_view("reader", "SELECT MAX(a) AS m FROM plain")
    t.create_view("full", "SELECT a FROM t", policy="FULL")
    t.create_view("unconcerned", "SELECT k, SUM(b) AS b FROM t GROUP BY k")
    t.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    t.sql("INSERT INTO t VALUES (3, 3000000000, 3)")
    report = t.refresh()
    concerned = ("plain", "hidden", "reader", "full")
    assert {(report[name].action, report[name].reason) for name in concerned} <= {
        ("REINITIALIZE", "SCHEMA_CHANGED"), ("FULL", "INITIAL"),
    }  # fmt: skip
    assert report["unconcerned"].action == "INCREMENTAL"
    assert_all_fresh(t)
    assert dict(t.table("reader").dtypes) == {"m": "bigint"}
    t.sql("INSERT INTO t VALUES (3, 4000000000, 3)")
    t.sql("DELETE FROM t WHERE a = 1")
    t.refresh()
    for name in ("plain", "hidden", "reader", "unconcerned"):
        assert_fresh(t, name, "INCREMENTAL")
    t.sql("CREATE OR REPLACE MATERIALIZED VIEW hidden AS SELECT k, MAX(a) AS s FROM t GROUP BY k")
    assert_all_fresh(t)


def test_the_readers_of_a_widened_view_come_along_though_only_the_view_is_asked_for(t: penstock.Database) -> None:
    t.create_view("v", "SELECT k, MAX(a) AS a FROM t GROUP BY k")
    t.create_view("w", "SELECT a FROM v")
    t.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    report = t.refresh("v")
    assert {name: report[name].action for name in report} == {"v": "REINITIALIZE", "w": "REINITIALIZE"}
    assert_all_fresh(t)


def test_views_that_share_a_node_are_planned_again_one_by_one(t: penstock.Database) -> None:
    query = "SELECT g.k, g.s, t.a FROM (SELECT k, SUM(a) AS s FROM t GROUP BY k) g JOIN t ON t.k = g.k"
    t.create_view("v", query)
    t.create_view("w", f"SELECT k, s FROM ({query})")
    t.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    t.refresh("v")
    assert_fresh(t, "v")
    t.sql("INSERT INTO t VALUES (2, 3000000000, 3)")
    t.refresh()
    assert_all_fresh(t)
    t.sql("INSERT INTO t VALUES (2, 1, 3)")
    t.refresh()
    assert_all_fresh(t, "INCREMENTAL")


@pytest.mark.parametrize(
    "change",
    varied(
        ["DROP COLUMN b", "RENAME COLUMN b TO c", "ALTER COLUMN b FIRST", "ADD COLUMN c INT"],
        often=["DROP COLUMN b", "ADD COLUMN c INT"],
    ),
)
def test_columns_that_a_view_does_not_use_are_no_matter(t: penstock.Database, change: str) -> None:
    t.spark.udf.register("one_more", lambda value: value + 1, IntegerType())
    t.create_view("incremental", "SELECT k, SUM(a) AS s FROM t GROUP BY k")
    t.create_view("full", "SELECT k, a FROM t", policy="FULL")
    t.create_view("by_function", "SELECT one_more(a) AS a FROM t")
    t.sql(f"ALTER TABLE t {change}")
    t.sql("INSERT INTO t (k, a) VALUES (3, 3)")
    report = t.refresh()
    assert report["incremental"].action == "INCREMENTAL"
    assert {report["full"].action, report["by_function"].action} == {"FULL"}
    assert_all_fresh(t)


def test_all_columns_are_those_that_there_were(t: penstock.Database) -> None:
    t.create_view("v", "SELECT * FROM t")
    t.create_view("w", "SELECT k FROM t")
    t.sql("ALTER TABLE t ADD COLUMN c INT")
    t.sql("INSERT INTO t VALUES (2, 3, 3, 3)")
    report = t.refresh()
    assert report["v"].action == report["w"].action == "INCREMENTAL"
    assert "columns that came later are not in its SELECT *: c of t. CREATE OR REPLACE" in str(report["v"])
    assert report["w"].remark is None
    assert any("c of t" in sentence for sentence in t.explain("v").advice)
    t.sql("ALTER TABLE t ALTER COLUMN b TYPE BIGINT")
    t.sql("INSERT INTO t VALUES (3, 3, 3, 3)")
    assert t.refresh()["v"].action == "REINITIALIZE"
    assert t.table("v").columns == ["k", "a", "b"]
    assert rows(t.table("v")) == [(1, 1, 1), (2, 2, 2), (2, 3, 3), (2, 3, 3), (3, 3, 3)]
    t.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT * FROM t")
    assert t.table("v").columns == ["k", "a", "b", "c"]
    assert t.refresh()["v"].remark is None


@pytest.mark.parametrize("change", varied(["DROP COLUMN a", "RENAME COLUMN a TO c"], often=["RENAME COLUMN a TO c"]))
def test_a_query_that_no_longer_holds_says_so_and_holds_up_nobody_else(t: penstock.Database, change: str) -> None:
    t.create_view("v", "SELECT k, SUM(a) AS s FROM t GROUP BY k")
    t.create_view("reader", "SELECT MAX(s) AS m FROM v")
    t.create_view("other", "SELECT k, SUM(b) AS s FROM t GROUP BY k")
    before = rows(t.table("v"))
    t.sql(f"ALTER TABLE t {change}")
    t.sql("INSERT INTO t (k, b) VALUES (3, 3)")
    with pytest.raises(penstock.RefreshError, match=r"column 'a' of table 't' is gone.*CREATE OR REPLACE") as problem:
        t.refresh()
    report = problem.value.report
    assert (report["reader"].action, report["reader"].reason) == ("SKIP", "UPSTREAM_FAILED")
    assert_fresh(t, "other", "INCREMENTAL")
    assert rows(t.table("v")) == before
    t.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, SUM(b) AS s FROM t GROUP BY k")
    t.refresh()
    assert_all_fresh(t)
    t.sql("INSERT INTO t (k, b) VALUES (3, 3)")
    t.refresh()
    assert_all_fresh(t, "INCREMENTAL")


def test_a_strict_view_that_can_no_longer_be_incremental_fails_as_it_says(t: penstock.Database) -> None:
    t.create_view("v", "SELECT k, SUM(a) AS s FROM t GROUP BY k", policy="INCREMENTAL STRICT")
    t.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    said = r"incrementally this time \(SCHEMA_CHANGED: .*INCREMENTAL STRICT.*REFRESH MATERIALIZED VIEW v FULL"
    with pytest.raises(penstock.RefreshError, match=said):
        t.refresh()
    assert t.table("v").count() > 0, "its readers keep the rows of before"
    t.refresh("v", full=True)
    assert_fresh(t, "v", "REINITIALIZE")


def test_a_plan_of_another_version_is_made_again(t: penstock.Database) -> None:
    """What another Penstock would have written into the catalog."""
    query = "SELECT g.k, g.s, t.a FROM (SELECT k, SUM(a) AS s FROM t GROUP BY k) g JOIN t ON t.k = g.k"
    t.create_view("v", query, policy="INCREMENTAL STRICT")
    t.create_view("w", "SELECT SUM(s) AS s FROM v")
    from sqlalchemy import text

    with t._catalog.transaction(writes=True) as connection:
        connection.execute(text("PRAGMA defer_foreign_keys = ON"))
        for column in ("name", "fingerprint"):
            connection.execute(text(f"UPDATE nodes SET {column} = 'other ' || {column} WHERE hidden"))
        connection.execute(text("UPDATE view_nodes SET node = 'other ' || node WHERE node LIKE '__node%'"))
        connection.execute(text("UPDATE dependencies SET input = 'other ' || input WHERE input LIKE '__node%'"))
        for table in ("dependencies", "frontiers", "node_versions"):
            connection.execute(text(f"UPDATE {table} SET node = 'other ' || node WHERE node LIKE '__node%'"))
    t.sql("INSERT INTO t VALUES (2, 2, 2)")
    report = t.refresh()
    assert (report["v"].action, report["v"].reason) == ("REINITIALIZE", "PLAN_CHANGED")
    assert_all_fresh(t)
    t.sql("INSERT INTO t VALUES (2, 2, 2)")
    t.refresh()
    assert_all_fresh(t, "INCREMENTAL")


def test_a_view_is_created_over_one_that_must_be_planned_again(t: penstock.Database) -> None:
    t.create_view("v", "SELECT k, MAX(a) AS a FROM t GROUP BY k")
    t.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    t.create_view("w", "SELECT a FROM v")
    assert dict(t.table("w").dtypes) == {"a": "bigint"}
    assert_all_fresh(t)


def test_a_table_that_is_overwritten_with_other_types(db: penstock.Database, tmp_path: Path) -> None:
    place = f"delta.`{tmp_path / 'place'}`"
    db.spark.sql(f"CREATE TABLE {place} (k INT) USING delta")
    db.register_table("t", tmp_path / "place")
    db.create_view("v", "SELECT SUM(k) AS s FROM t")
    other = db.spark.sql("SELECT CAST(1.5 AS DECIMAL(10, 2)) AS k, 1 AS x")
    other.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(tmp_path / "place"))
    report = db.refresh()
    assert (report["v"].action, report["v"].reason) == ("REINITIALIZE", "SCHEMA_CHANGED")
    assert_fresh(db, "v")


# -- columns that only look the same ----------------------------------------------------------------------------------


def test_a_column_of_the_same_name_that_is_another_since_mapping_was_switched_on(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, a INT, b INT)")
    db.sql("INSERT INTO t VALUES (1, 1, 100), (2, 2, 200)")
    db.create_view("v", "SELECT id, a FROM t")
    db.create_view("w", "SELECT SUM(a) AS s FROM t")
    db.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    assert {view.action for view in db.refresh().values()} == {"NO_DATA"}
    db.sql("ALTER TABLE t DROP COLUMN a")
    db.sql("ALTER TABLE t RENAME COLUMN b TO a")
    report = db.refresh()
    assert {(view.action, view.reason) for view in report.values()} == {("REINITIALIZE", "SOURCE_REPLACED")}
    assert_all_fresh(db)
    db.sql("DELETE FROM t WHERE id = 1")
    db.refresh()
    assert_all_fresh(db, "INCREMENTAL")


def test_a_field_within_a_column_that_is_another(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, st STRUCT<x: INT, a: INT>) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    db.sql("INSERT INTO t VALUES (1, STRUCT(1, 100)), (2, STRUCT(2, 200))")
    db.create_view("v", "SELECT id, st.a AS a FROM t")
    db.create_view("whole", "SELECT id, st FROM t")
    assert_all_fresh(db)
    db.sql("ALTER TABLE t DROP COLUMN st.a")
    db.sql("ALTER TABLE t ADD COLUMNS (st.a INT)")
    report = db.refresh()
    assert {view.action for view in report.values()} == {"REINITIALIZE"}
    assert rows(db.table("v")) == [(1, None), (2, None)]
    assert_all_fresh(db)


def test_verify_after_an_unused_column_is_dropped(t: penstock.Database) -> None:
    t.create_view("v", "SELECT k, SUM(a) AS s FROM t GROUP BY k")
    t.sql("ALTER TABLE t DROP COLUMN b")
    t.sql("INSERT INTO t VALUES (5, 5)")
    t.refresh()
    assert [found.outcome for found in t.verify()] == ["EQUAL"]
