"""Names, dependencies, policies, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from oracle import assert_all_fresh, assert_fresh, rows


@pytest.fixture
def t(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE t (k INT, x INT)")
    db.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    return db


def test_names_are_unique_and_unknown_ones_refused(t: penstock.Database) -> None:
    t.create_view("v", "SELECT k FROM T")
    for statement in (
        "CREATE TABLE V (a INT)",
        "CREATE MATERIALIZED VIEW t AS SELECT 1 AS a",
        "CREATE TABLE t (a INT)",
    ):
        with pytest.raises(penstock.AlreadyExistsError, match=r"taken|exists already"):
            t.sql(statement)
    with pytest.raises(penstock.AlreadyExistsError):
        t.create_view("V", "SELECT x FROM t")
    assert "exists already" in str(t.sql("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT x FROM t"))
    with pytest.raises(penstock.NotFoundError, match="no table or view 'nothing'"):
        t.create_view("w", "SELECT a FROM nothing")
    with pytest.raises(penstock.NotFoundError, match="no materialized view 'w'"):
        t.refresh("w")


def test_an_unknown_name_is_told_the_nearest_known_one(t: penstock.Database) -> None:
    t.create_view("Totals", "SELECT k, SUM(x) AS s FROM t GROUP BY k")
    t.checkpoint("january")
    for statement, meant in (
        ("SELECT * FROM total", "Totals"),
        ("REFRESH MATERIALIZED VIEW tootals", "Totals"),
        ("CREATE MATERIALIZED VIEW v AS SELECT * FROM Totls", "Totals"),
        ("SET retension = '3 days'", "retention"),
        ("RESTORE CHECKPOINT januray", "january"),
        ("CREATE MATERIALIZED VIEW v PARTITIONED BY (key) AS SELECT k AS keys, x FROM t", "keys"),
        ("ALTER TABLE t SET WATERMARK FOR kk AS kk - INTERVAL 1 SECOND", "k"),
    ):
        with pytest.raises(penstock.PenstockError, match=f"Did you mean '{meant}'\\?"):
            t.sql(statement)
    with pytest.raises(penstock.NotFoundError, match=r"no table or view 'customers'\. Known are: Totals, t\.$"):
        t.table("customers")


def test_statements_of_spark_that_are_not_ours_are_refused_with_the_next_step(t: penstock.Database) -> None:
    t.create_view("v", "SELECT k FROM t")
    for statement, told in (
        ("ALTER MATERIALIZED VIEW v RENAME TO w", "SHOW CREATE MATERIALIZED VIEW v prints its statement"),
        ("ALTER TABLE t RENAME TO u", "CREATE TABLE .. AS SELECT"),
        ("SET spark.sql.ansi.enabled = false", r"penstock\.connect\(path, spark=session\)"),
        ("SET TIME ZONE 'Europe/Berlin'", r"penstock\.connect\(path, spark=session\)"),
        ("DESCRIBE HISTORY v", "SHOW REFRESH HISTORY FOR v"),
        ("SHOW TBLPROPERTIES v", "DESCRIBE MATERIALIZED VIEW v"),
    ):
        with pytest.raises(penstock.NotSupportedError, match=told):
            t.sql(statement)


def test_describe_extended_tells_where_a_table_or_view_lies(t: penstock.Database, warehouse: Path) -> None:
    t.create_view("v", "SELECT k FROM t")
    for statement in ("DESCRIBE EXTENDED {}", "DESC TABLE EXTENDED {}", "describe formatted {}"):
        for name, place in (("t", warehouse / "tables" / "t"), ("V", warehouse / "views" / "v")):
            told = {row[0]: row[1] for row in t.sql(statement.format(name)).collect()}
            assert str(place) in (told.get("Location"), told.get("# Location"))
    assert t.sql("DESC HISTORY t").count() == 2


def test_drop_respects_readers(t: penstock.Database, warehouse: Path) -> None:
    t.create_view("a", "SELECT k, SUM(x) AS s FROM t GROUP BY k HAVING SUM(x) > 0")
    t.create_view("b", "SELECT s FROM a")
    t.create_view("c", "SELECT s FROM b")
    with pytest.raises(penstock.DependencyError, match="'b' reads it"):
        t.sql("DROP MATERIALIZED VIEW a")
    with pytest.raises(penstock.DependencyError, match="'a' reads it"):
        t.sql("DROP TABLE t")
    assert str(t.sql("DROP MATERIALIZED VIEW a CASCADE")) == "dropped a, b, c"
    assert t.status() == []
    left = [*(warehouse / "views").iterdir(), *(warehouse / "nodes").iterdir()]
    assert all((table / "_left").exists() for table in left), "to be deleted when nobody reads them any more"
    t.sql("DROP TABLE t")
    assert not list((warehouse / "tables").iterdir())


def test_replacing_keeps_the_graph_sound(t: penstock.Database) -> None:
    t.create_view("a", "SELECT k, x FROM t")
    t.create_view("b", "SELECT k, x AS y FROM a")
    with pytest.raises(penstock.DependencyError, match="'a' would read itself, which makes a cycle: a -> b -> a"):
        t.sql("CREATE OR REPLACE MATERIALIZED VIEW a AS SELECT k, y AS x FROM b")
    for create in (
        "CREATE MATERIALIZED VIEW c",
        "CREATE OR REPLACE MATERIALIZED VIEW A",
        "EXPLAIN CREATE MATERIALIZED VIEW c",
    ):
        name = create[-1]
        with pytest.raises(penstock.DependencyError, match=f"'{name}' would read itself.* cycle: {name} -> {name}"):
            t.sql(f"{create} AS SELECT k FROM t UNION ALL SELECT k FROM {name.upper()}")
    assert t.sql("EXPLAIN CREATE MATERIALIZED VIEW c AS WITH c AS (SELECT k FROM t) SELECT k FROM c").count() > 0
    with pytest.raises(penstock.DependencyError, match="'b' reads its column 'x'"):
        t.sql("CREATE OR REPLACE MATERIALIZED VIEW a AS SELECT k FROM t")
    with pytest.raises(penstock.PenstockError, match="not created"):
        t.sql("CREATE OR REPLACE MATERIALIZED VIEW a AS SELECT k, CAST(x / (x - 1) AS INT) AS x FROM t")
    assert rows(t.table("a")) == [(1, 1), (2, 2)]
    t.sql("CREATE OR REPLACE MATERIALIZED VIEW a AS SELECT k, x + 10 AS x FROM t")
    t.refresh()
    assert_fresh(t, "b", "INCREMENTAL")
    t.sql("INSERT INTO t VALUES (3, 3)")
    t.refresh()
    assert_all_fresh(t, "INCREMENTAL")


def test_a_view_is_written_by_its_refresh_only(t: penstock.Database) -> None:
    t.create_view("v", "SELECT k FROM t")
    for statement in ("INSERT INTO v VALUES (1)", "DELETE FROM v", "UPDATE v SET k = 1", "TRUNCATE TABLE v"):
        with pytest.raises(penstock.NotSupportedError, match="materialized view"):
            t.sql(statement)
    with pytest.raises(penstock.NotFoundError, match="DROP MATERIALIZED VIEW"):
        t.sql("DROP TABLE v")


def test_policies(t: penstock.Database) -> None:
    ranked = "SELECT k, MODE(x) AS place FROM t GROUP BY k"
    with pytest.raises(penstock.NotIncrementalError, match="MODE") as refused:
        t.sql(f"CREATE MATERIALIZED VIEW strict AS {ranked} REFRESH POLICY INCREMENTAL STRICT")
    assert refused.value.code == "AGGREGATE_FUNCTION"
    with pytest.raises(penstock.DefinitionError, match="REFRESH POLICY FULL"):
        t.create_view("random", "SELECT k, RAND() AS r FROM t")
    t.create_view("random", "SELECT k, RAND() AS r FROM t", policy="FULL")
    t.create_view("ranked", ranked)
    t.create_view("always", "SELECT k FROM t", policy="FULL")
    t.create_view("strict", "SELECT k FROM ranked", policy="INCREMENTAL STRICT")
    assert {r.action for r in t.refresh().values()} == {"FULL", "NO_DATA"}
    assert [t.history(v, 1)[0].action for v in ("ranked", "always", "random")] == ["NO_DATA", "FULL", "FULL"]
    t.sql("INSERT INTO t VALUES (0, 0)")
    t.refresh()
    assert_fresh(t, "always", "FULL")
    assert_fresh(t, "ranked", "FULL")
    assert t.history("ranked", 1)[0].reason == "AGGREGATE_FUNCTION"
    assert_fresh(t, "strict", "INCREMENTAL")


def test_a_view_without_data_is_filled_by_its_first_refresh(t: penstock.Database) -> None:
    t.sql("CREATE MATERIALIZED VIEW v COMMENT 'later' AS SELECT k FROM t WITH NO DATA")
    with pytest.raises(penstock.DefinitionError, match="WITH NO DATA"):
        t.table("v")
    t.sql("REFRESH MATERIALIZED VIEW v")
    assert_fresh(t, "v", "FULL")
    t.sql("REFRESH MATERIALIZED VIEW v FULL")
    assert t.history("v", 1)[0].reason == "REQUESTED"


def test_show_describe_and_explain(t: penstock.Database) -> None:
    t.sql("CREATE MATERIALIZED VIEW v (a COMMENT 'the key', n) COMMENT 'c' TBLPROPERTIES ('p' = 'q') "
          "AS SELECT k, COUNT(*) FROM t GROUP BY k")  # fmt: skip
    assert t.table("v").columns == ["a", "n"]
    shown = {name: t.sql(f"{text}").collect() for name, text in {  # type: ignore[union-attr]
        "views": "SHOW MATERIALIZED VIEWS", "deps": "SHOW DEPENDENCIES FOR v", "tables": "SHOW TABLES",
        "history": "SHOW REFRESH HISTORY FOR v LIMIT 1", "describe": "DESCRIBE MATERIALIZED VIEW v",
        "explain": "EXPLAIN MATERIALIZED VIEW v",
        "planned": "EXPLAIN CREATE MATERIALIZED VIEW w AS SELECT DISTINCT x FROM t",
    }.items()}  # fmt: skip
    assert [r["name"] for r in shown["views"]] == ["v"]
    assert [(r["direction"], r["other"]) for r in shown["deps"]] == [("reads", "t")]
    assert [r["name"] for r in shown["tables"]] == ["t"]
    assert [r["action"] for r in shown["history"]] == ["FULL"]
    assert tuple(shown["describe"][0]) == ("a", "int", "the key")
    assert "maintained incrementally" in shown["explain"][0][0]
    assert any("distinct x of t" in r[0] for r in shown["planned"])
    assert [v.name for v in t.status()] == ["v"]


def test_explain_says_what_to_switch_on(db: penstock.Database, tmp_path: Path) -> None:
    db.sql(f"CREATE TABLE outside (k INT) LOCATION '{tmp_path / 'outside'}'")
    db.create_view("w", "SELECT k FROM outside")
    assert "advice: table outside has neither deletion vectors nor a change feed" in str(db.explain("w"))
    db.sql("ALTER TABLE outside SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    assert db.explain("w").advice == ()
    full = db.explain("CREATE MATERIALIZED VIEW x AS SELECT FIRST(k) AS k FROM outside")
    assert full.advice == ("Use MIN, MAX, MIN_BY, MAX_BY or PERCENTILE, which do not depend on the order of rows.",)
