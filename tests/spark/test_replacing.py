"""A view keeps its place for life: replacing it is a commit there, and what earlier epochs showed can still be read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import penstock
from connect_server import opened
from oracle import assert_all_fresh, assert_fresh, rows

REPLACE = "CREATE OR REPLACE MATERIALIZED VIEW"


@pytest.fixture
def t(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE t (k INT, at TIMESTAMP_NTZ)")
    db.sql("INSERT INTO t VALUES (1, TIMESTAMP_NTZ'2024-01-01 10:00:00'), (2, NULL), (2, NULL)")
    db.create_view("v", "SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    return db


def place(db: penstock.Database, view: str) -> Path:
    return Path(db._catalog.world().nodes[view].path)


def by_path(db: penstock.Database, view: str, *columns: str) -> list[tuple[object, ...]]:
    """What another engine reads in the view's directory."""
    return rows(db.spark.read.format("delta").load(str(place(db, view))).select(*columns))


@pytest.mark.parametrize(
    "definition",
    [
        "SELECT k, 10 * COUNT(*) AS n FROM t GROUP BY k",
        "SELECT k FROM t",
        "SELECT at, MAX(k) AS k FROM t GROUP BY at",
        "SELECT COLLECT_LIST(k) AS ks FROM t",
        "SELECT k, rand() AS r FROM t REFRESH POLICY FULL",
    ],
)
def test_a_view_that_is_replaced_stays_where_it_is(t: penstock.Database, definition: str) -> None:
    before, old = place(t, "v"), t.history("v", 1)[0].epoch
    t.sql(f"{REPLACE} v AS {definition}")
    assert place(t, "v") == before
    columns = [name for name, _, _ in t._catalog.world().views["v"].columns]
    assert by_path(t, "v", *columns) == rows(t.table("v"))
    if "rand()" not in definition:
        assert_fresh(t, "v", "FULL")
        t.sql("INSERT INTO t VALUES (3, NULL)")
        t.refresh()
        assert_fresh(t, "v", "INCREMENTAL")
        assert by_path(t, "v", *columns) == rows(t.table("v"))
    assert rows(t.table("v", epoch=old)) == [(1, 1), (2, 2)]
    assert t.table("v", epoch=old).columns == ["k", "n"]


def test_partitions_and_order_of_a_view_can_be_replaced(t: penstock.Database) -> None:
    query = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    for clauses in ("PARTITIONED BY (k)", "CLUSTER BY (n)", ""):
        t.sql(f"{REPLACE} v {clauses} AS {query}")
        t.sql("INSERT INTO t VALUES (3, NULL)")
        t.refresh()
        assert_fresh(t, "v", "INCREMENTAL")
        found = t.spark.sql(f"DESCRIBE DETAIL delta.`{place(t, 'v')}`").collect()[0]
        assert found["partitionColumns"] == (["k"] if "PARTITIONED" in clauses else [])
        assert ("penstock.clusterBy" in found["properties"]) == ("CLUSTER" in clauses)


def test_a_view_that_is_replaced_without_rows_is_empty_for_all(t: penstock.Database) -> None:
    old = t.history("v", 1)[0].epoch
    t.sql(f"{REPLACE} v AS SELECT k AS j FROM t WITH NO DATA")
    with pytest.raises(penstock.DefinitionError, match="has no rows yet"):
        t.table("v")
    assert by_path(t, "v", "j") == []
    assert rows(t.table("v", epoch=old)) == [(1, 1), (2, 2)]
    with pytest.raises(penstock.NotFoundError, match="no rows at epoch"):
        t.snapshot().table("v")
    t.refresh()
    assert_fresh(t, "v", "FULL")


def test_what_reads_a_replaced_view_follows_it(t: penstock.Database) -> None:
    t.create_view("w", "SELECT SUM(n) AS n FROM v")
    t.sql(f"{REPLACE} v AS SELECT k, 10 * COUNT(*) AS n FROM t GROUP BY k")
    t.refresh()
    assert rows(t.table("w")) == [(30,)]
    assert_all_fresh(t)


def test_changes_across_a_replacement(t: penstock.Database) -> None:
    old = t.history("v", 1)[0].epoch
    t.sql(f"{REPLACE} v AS SELECT k, 10 * COUNT(*) AS n FROM t GROUP BY k")
    assert rows(t.changes("v", since=old)) == [(1, 1, -1), (1, 10, 1), (2, 2, -1), (2, 20, 1)]
    t.sql(f"{REPLACE} v AS SELECT k FROM t")
    with pytest.raises(penstock.DefinitionError, match="was replaced since epoch"):
        t.changes("v", since=old)


def test_a_checkpoint_from_before_a_replacement_brings_back_its_columns(t: penstock.Database) -> None:
    t.checkpoint("then")
    t.sql(f"{REPLACE} v AS SELECT at, MAX(k) AS k FROM t GROUP BY at")
    between = t.history("v", 1)[0].epoch
    t.restore("then")
    assert rows(t.table("v")) == by_path(t, "v", "k", "n") == [(1, 1), (2, 2)]
    assert t.table("v", epoch=between).columns == ["at", "k"], "an epoch that was seen can be seen again"
    t.sql("INSERT INTO t VALUES (1, NULL)")
    t.refresh()
    assert_fresh(t, "v", "INCREMENTAL")


def test_a_replacement_that_fails_changes_nothing(t: penstock.Database) -> None:
    with pytest.raises(penstock.PenstockError, match=r"(?i)divi"):
        t.sql(f"{REPLACE} v AS SELECT k, at, 1 DIV (k - k) AS z FROM t")
    assert rows(t.table("v")) == [(1, 1), (2, 2)]
    t.sql("INSERT INTO t VALUES (1, NULL)")
    t.refresh()
    assert_fresh(t, "v", "INCREMENTAL")


# -- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "definition",
    [
        "SELECT k, COUNT(*) AS n FROM t GROUP BY k REFRESH EVERY 5 MINUTES COMMENT 'how many'",
        "select  k,count(*) as n -- the same in other words\n from t group by k TARGET LAG '1 minute' PRIORITY 3",
        "SELECT k, COUNT(*) AS n FROM t GROUP BY k REFRESH POLICY INCREMENTAL",
    ],
)
def test_an_equal_plan_is_no_rebuild(t: penstock.Database, definition: str) -> None:
    t.create_view("w", "SELECT SUM(n) AS s FROM v")
    before, made = by_path(t, "v", "k", "n"), t._catalog.world()
    done = t.sql(f"{REPLACE} v AS {definition}")
    assert "its rows are kept" in str(done)
    after = t._catalog.world()
    assert after.nodes["v"].version == made.nodes["v"].version, "not a commit"
    assert after.views["v"].created_at == made.views["v"].created_at
    assert after.views["v"] != made.views["v"], "the rest is taken in place"
    assert before == by_path(t, "v", "k", "n")
    t.sql("INSERT INTO t VALUES (1, NULL)")
    assert t.sql(f"{REPLACE} v AS {definition}").report["v"].action == "INCREMENTAL", "and it is fresh"
    t.refresh()
    assert_all_fresh(t)


@pytest.mark.parametrize(
    "definition",
    [
        "SELECT k, COUNT(at) AS n FROM t GROUP BY k",
        "SELECT k, CAST(COUNT(*) AS INT) AS n FROM t GROUP BY k",
        "SELECT k, COUNT(*) AS m FROM t GROUP BY k",
        "SELECT k, COUNT(*) AS n FROM t GROUP BY k REFRESH POLICY FULL",
        "SELECT k, COUNT(*) AS n FROM t WHERE k IS NOT NULL GROUP BY k",
    ],
)
def test_another_plan_is_a_rebuild(t: penstock.Database, definition: str) -> None:
    assert_rebuilt(t, f"{REPLACE} v AS {definition}")


def test_another_place_of_its_rows_is_a_rebuild(t: penstock.Database) -> None:
    assert_rebuilt(t, f"{REPLACE} v CLUSTER BY (k) AS SELECT k, COUNT(*) AS n FROM t GROUP BY k")


def assert_rebuilt(t: penstock.Database, statement: str) -> None:
    done = t.sql(statement)
    assert "its rows are kept" not in str(done)
    assert_fresh(t, "v", "FULL")
    t.sql("INSERT INTO t VALUES (2, NULL)")
    t.refresh()
    assert_all_fresh(t)


def test_a_source_that_was_replaced_meanwhile_is_noticed(t: penstock.Database) -> None:
    t.sql("DELETE FROM t WHERE k = 2")
    path = t._catalog.world().tables["t"].path
    replace = f"CREATE OR REPLACE TABLE delta.`{path}` USING delta AS SELECT * FROM delta.`{path}` WHERE false"
    t.spark.sql(replace)  # without AS, Delta leaves a table of the same columns as it is
    t.sql(f"{REPLACE} v AS SELECT k, COUNT(*) AS n FROM t GROUP BY k REFRESH ON COMMIT")
    assert_fresh(t, "v")
    assert rows(t.table("v")) == []


# -- tables that go with their readers --------------------------------------------------------------------------------


def test_drop_table_cascade(t: penstock.Database) -> None:
    t.create_view("w", "SELECT SUM(n) AS s FROM v")
    t.sql("CREATE TABLE other (k INT)")
    t.create_view("u", "SELECT * FROM other")
    for statement in ("DROP TABLE t", "DROP TABLE t RESTRICT"):
        with pytest.raises(penstock.DependencyError, match=r"'v' reads it.*DROP TABLE .. CASCADE"):
            t.sql(statement)
    assert str(t.sql("DROP TABLE t CASCADE")) == "table t dropped, and with it v, w"
    assert [view.name for view in t.status()] == ["u"]
    assert str(t.sql("DROP TABLE IF EXISTS t CASCADE")) == "table t does not exist"
    t.sql("CREATE TABLE t (k INT, at TIMESTAMP_NTZ)")
    t.create_view("v", "SELECT k FROM t")
    assert_all_fresh(t)


# -- readers that are planned again -----------------------------------------------------------------------------------


def test_cascade_plans_the_readers_again(t: penstock.Database) -> None:
    t.create_view("w", "SELECT SUM(n) AS s FROM v")
    t.create_view("x", "SELECT s + 1 AS s FROM w")
    other = "SELECT CAST(k AS STRING) AS k, CAST(COUNT(*) AS DECIMAL(20, 2)) AS n FROM t GROUP BY k"
    with pytest.raises(penstock.DependencyError, match=r"'w' reads its column 'n' \(bigint\).*CASCADE"):
        t.sql(f"{REPLACE} v AS {other}")
    t.sql(f"{REPLACE} v AS {other} CASCADE")
    assert {r.epoch for name in ("v", "w", "x") for r in t.history(name, 1)} == {t._catalog.world().epoch}
    assert dict(t.table("x").dtypes) == {"s": "decimal(31,2)"}
    assert_fresh(t, "v", "FULL")
    for name in ("w", "x"):
        assert_fresh(t, name, "REINITIALIZE")
    t.sql("INSERT INTO t VALUES (1, NULL)")
    t.refresh()
    assert_all_fresh(t, "INCREMENTAL")


def test_cascade_with_a_reader_that_cannot_follow_changes_nothing(t: penstock.Database) -> None:
    t.create_view("w", "SELECT SUM(n) AS s FROM v")
    with pytest.raises(
        penstock.DependencyError, match=r"'v' cannot be replaced: 'w' reads it.*column 'n' of view 'v' is gone"
    ):
        t.sql(f"{REPLACE} v AS SELECT k FROM t CASCADE")
    assert rows(t.table("v")) == [(1, 1), (2, 2)]
    assert_all_fresh(t)


# -- warehouses that move ---------------------------------------------------------------------------------------------


def test_a_warehouse_that_is_copied_is_one_of_its_own(t: penstock.Database, tmp_path: Path) -> None:
    t.checkpoint("then")
    before = rows(t.table("v"))
    shutil.copytree(t.path, tmp_path / "copy")
    with opened(tmp_path / "copy", t.spark) as copy:
        copy.sql("INSERT INTO t VALUES (7, NULL)")
        copy.refresh()
        assert_fresh(copy, "v", "INCREMENTAL")
        assert place(copy, "v") == tmp_path / "copy" / "views" / "v"
        copy.restore("then")
        assert rows(copy.table("v")) == before
    assert t.table("t").count() == 3
    assert t.refresh()["v"].action == "NO_DATA"
    assert rows(t.table("v")) == before


def test_an_epoch_that_no_column_holds(t: penstock.Database) -> None:
    for epoch in (2**70, -1):
        with pytest.raises(penstock.NotFoundError, match="there is no published epoch"):
            t.table("v", epoch=epoch)
