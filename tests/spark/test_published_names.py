"""Views that are known by name in Spark's catalog: exactly their columns, whatever becomes of them here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import event

import penstock
from oracle import after, assert_fresh, assert_same_rows, rows
from penstock import points
from penstock.errors import AlreadyExistsError, DefinitionError, DependencyError, NotFoundError, PenstockError
from penstock.storage.delta_log import latest_version
from penstock.vocabulary import Action, AlertKind
from races import between

TOTALS = "SELECT region, SUM(amount) AS total, COUNT(*) AS orders FROM orders GROUP BY region"


@pytest.fixture
def db(spark: SparkSession, warehouse: Path) -> Iterator[penstock.Database]:
    """With a session of the caller's: what the embedded one knows, nobody else does."""
    with penstock.connect(warehouse, spark=spark) as database:
        yield database


@pytest.fixture
def gold(spark: SparkSession, db: penstock.Database) -> Iterator[str]:
    """A schema of Spark's, and a table here."""
    spark.sql("DROP SCHEMA IF EXISTS team_gold CASCADE")
    spark.sql("CREATE SCHEMA team_gold")
    db.sql("CREATE TABLE orders (id INT, region STRING, amount INT)")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20)")
    yield "spark_catalog.team_gold"
    spark.sql("DROP SCHEMA team_gold CASCADE")


def told(spark: SparkSession, name: str) -> dict[str, tuple[str, str | None]]:
    """What Spark says of a view: its columns and their comments, and whatever else."""
    found = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    return {row["col_name"]: (row["data_type"], row["comment"]) for row in found}


def names(spark: SparkSession) -> set[str]:
    return {row["tableName"] for row in spark.sql("SHOW TABLES IN team_gold").collect() if not row["isTemporary"]}


def facts(db: penstock.Database, view: str) -> dict[str, str]:
    return {row[0]: row[1] for row in db.sql(f"DESCRIBE MATERIALIZED VIEW {view}").collect()}  # type: ignore[union-attr]


def test_a_view_is_read_by_name(spark: SparkSession, db: penstock.Database, gold: str) -> None:
    """It has the view's columns and comments and no others, follows the view, and goes with it."""
    db.sql(
        "CREATE MATERIALIZED VIEW totals (region COMMENT 'where it''s ${sold}', total, orders) COMMENT 'by region' "
        f"TBLPROPERTIES ('penstock.publish' = '{gold}.daily') AS {TOTALS}"
    )
    assert spark.table(f"{gold}.daily").columns == ["region", "total", "orders"]
    said = told(spark, f"{gold}.daily")
    assert said["region"] == ("string", "where it's ${sold}")
    assert (said["Type"][0], said["Comment"][0]) == ("VIEW", "by region")
    assert facts(db, "totals")["# Published"] == f"{gold}.daily (a view of Spark's catalog)"
    assert f"published as {gold}.daily (a view" in str(db.explain("totals"))
    assert [view.catalog_name for view in db.status()] == [f"{gold}.daily"]
    after(db, "INSERT INTO orders VALUES (3, 'us', 5)", "DELETE FROM orders WHERE id = 1", action="INCREMENTAL")
    assert_same_rows(spark.table("team_gold.daily"), db.table("totals"))
    db.create_view("large", f"SELECT region FROM {gold}.daily WHERE total > 1")  # by the name that others use
    assert facts(db, "large")["# Reads"] == "totals"
    db.drop_view("large")
    (left,) = db.import_tables(gold)
    assert (left.name, left.why_not) == ("totals", "it is the view totals of this warehouse already")

    db.sql("CREATE OR REPLACE MATERIALIZED VIEW totals COMMENT 'all in all' TBLPROPERTIES ('penstock.publish' = "
           "'team_gold.daily') AS SELECT SUM(amount) AS `all`, MAX(id) AS newest FROM orders")  # fmt: skip
    assert rows(spark.table("team_gold.daily")) == [(25, 3)]
    assert spark.table("team_gold.daily").columns == ["all", "newest"]
    assert told(spark, "team_gold.daily")["Comment"][0] == "all in all"

    db.sql("ALTER MATERIALIZED VIEW totals SET TBLPROPERTIES ('penstock.publish' = 'TEAM_GOLD.Other')")
    assert_fresh(db, "totals", action="NO_DATA")
    assert names(spark) == {"other"}
    assert rows(spark.table("team_gold.other")) == [(25, 3)]
    db.sql("ALTER MATERIALIZED VIEW totals UNSET TBLPROPERTIES ('penstock.publish')")
    assert names(spark) == set()
    db.sql("ALTER MATERIALIZED VIEW totals SET TBLPROPERTIES ('penstock.publish' = 'team_gold.daily')")
    db.sql("DROP TABLE orders CASCADE")
    assert names(spark) == set()
    assert db.alerts() == []


def test_a_name_that_cannot_be_had_is_refused(spark: SparkSession, db: penstock.Database, gold: str) -> None:
    """Before anything is done: the view is not there, or as it was, and what has the name too."""
    spark.sql("CREATE VIEW team_gold.theirs AS SELECT 1 AS a")
    spark.sql("CREATE TABLE team_gold.table_of_theirs (a INT) USING delta")
    for name, error, words in (
        ("theirs", AlreadyExistsError, "there is a view of that name already, and it stays"),
        ("table_of_theirs", AlreadyExistsError, "there is a table of that name already"),
        ("nowhere.daily", NotFoundError, r"CREATE SCHEMA spark_catalog\.nowhere"),
        ("no_catalog.gold.daily", NotFoundError, "no schema gold in a catalog no_catalog"),
        ("a.b.c.d", DefinitionError, r"is a name of Spark's catalog, such as 'spark_catalog\.gold\.daily'"),
    ):
        published = name if "." in name else f"team_gold.{name}"
        with pytest.raises(error, match=words):
            db.create_view("totals", TOTALS, properties={"penstock.publish": published})
        assert db.status() == []
    db.create_view("totals", TOTALS, properties={"penstock.publish": "team_gold.daily"})
    with pytest.raises(AlreadyExistsError, match=r"view 'totals' is\. Choose another name"):
        db.create_view("copy", TOTALS, properties={"penstock.publish": "team_gold.DAILY"})
    with pytest.raises(AlreadyExistsError, match="it stays as it is"):
        db.sql("ALTER MATERIALIZED VIEW totals SET TBLPROPERTIES ('penstock.publish' = 'team_gold.theirs')")
    assert facts(db, "totals")["# Published"].startswith(f"{gold}.daily")
    with pytest.raises(DefinitionError, match=r"'penstock\.state' = 'beside'"):
        db.sql("ALTER MATERIALIZED VIEW totals SET TBLPROPERTIES ('penstock.publish.as' = 'table')")
    spark.sql("CREATE OR REPLACE VIEW team_gold.daily AS SELECT 'mine now' AS a")
    db.sql("DROP MATERIALIZED VIEW totals")
    assert rows(spark.table("team_gold.daily")) == [("mine now",)], "what somebody else has put there is theirs"
    assert names(spark) == {"theirs", "table_of_theirs", "daily"}


def test_all_views_by_a_setting(spark: SparkSession, db: penstock.Database, gold: str) -> None:
    db.create_view("totals", TOTALS)
    db.sql("CREATE SCHEMA team_gold")
    db.create_view("team_gold.ids", "SELECT id FROM orders")
    db.create_view("private", "SELECT id FROM orders", properties={"penstock.publish": "false"})
    spark.sql("CREATE VIEW team_gold.ids AS SELECT 1 AS a")
    with pytest.raises(AlreadyExistsError, match=r"view 'team_gold\.ids' cannot be known as spark_catalog\.team_gold"):
        db.sql(f"SET publish = '{gold}'")
    assert db.settings()["publish"] == ""
    spark.sql("DROP VIEW team_gold.ids")
    db.sql(f"SET publish = '{gold}'")
    db.create_view("empty", "SELECT id FROM orders", initialize=False)
    assert names(spark) == {"totals", "ids"}, "one that was never filled has nothing to show"
    db.refresh()
    assert names(spark) == {"totals", "ids", "empty"}
    db.checkpoint("before")
    db.drop_view("empty")
    db.sql("DROP SCHEMA team_gold CASCADE")
    assert names(spark) == {"totals"}
    db.restore("before")
    assert names(spark) == {"totals", "ids", "empty"}
    db.set("publish", "")
    assert names(spark) == set()


def test_what_a_crash_or_a_foreign_hand_left_undone(
    spark: SparkSession, db: penstock.Database, gold: str, warehouse: Path
) -> None:
    """It is done by the next refresh, whoever makes it, and until then it is told."""

    def killed() -> None:
        raise KeyboardInterrupt

    for number in (1, 2):
        with pytest.raises(KeyboardInterrupt), between(points.NAMING, number, killed):
            db.create_view(f"v{number}", TOTALS, properties={"penstock.publish": f"team_gold.v{number}"})
        assert names(spark) == {f"v{n}" for n in range(1, number)}
        with penstock.connect(warehouse, spark=spark) as other:
            other.refresh()
        assert_same_rows(spark.table(f"team_gold.v{number}"), db.table(f"v{number}"))
    with pytest.raises(KeyboardInterrupt), between(points.NAMING, 1, killed):
        db.drop_view("v2")
    assert names(spark) == {"v1", "v2"}
    db.create_view("v3", "SELECT id FROM orders")
    assert names(spark) == {"v1"}

    with between(points.NAMING, 1, lambda: spark.sql("CREATE VIEW team_gold.v4 AS SELECT 1 AS a")):
        done = db.sql("CREATE MATERIALIZED VIEW v4 TBLPROPERTIES ('penstock.publish' = 'team_gold.v4') AS " + TOTALS)
    assert "there is a view of that name already" in str(done)
    assert [(alert.kind, alert.view, alert.cleared_at) for alert in db.alerts()] == [
        (AlertKind.NOT_PUBLISHED, "v4", None)
    ]
    spark.sql("DROP VIEW team_gold.v4")
    with penstock.connect(warehouse, spark=spark) as other:  # here it would be a minute until it is tried again
        other.refresh()
    assert_same_rows(spark.table("team_gold.v4"), db.table("v4"))
    assert [alert.cleared_at is None for alert in db.alerts()] == [False]

    for number in (1, 4):
        assert names(spark)
        with pytest.raises(KeyboardInterrupt), between(points.NAMING, 1, killed):
            db.drop_view(f"v{number}")
    with penstock.connect(warehouse, spark=spark) as other, reads_of_names(other) as read:
        other.refresh()
        assert names(spark) == set(), "the last name goes too, though no view says anything of names any more"
        read.clear()
        assert {view.action for view in other.refresh().values()} == {Action.NO_DATA}
        assert not read
    with penstock.connect(warehouse, spark=spark) as other, reads_of_names(other) as read:
        other.refresh()
        other.refresh()
        assert len(read) == 1, "who has published nothing looks once"


@contextmanager
def reads_of_names(db: penstock.Database) -> Iterator[list[str]]:
    """What a database asks its catalog about names in Spark's."""
    read = list[str]()

    def executed(connection: object, cursor: object, statement: str, *more: object) -> None:
        if "catalog_names" in statement:
            read.append(statement)

    event.listen(db._catalog._engine, "before_cursor_execute", executed)
    try:
        yield read
    finally:
        event.remove(db._catalog._engine, "before_cursor_execute", executed)


def test_a_name_in_sparks_catalog_means_the_view(spark: SparkSession, db: penstock.Database, gold: str) -> None:
    """In whatever is asked here: one cut, an edge, and no table over a directory of ours."""
    db.create_view("totals", TOTALS, properties={"penstock.publish": f"{gold}.daily"})
    said = {"penstock.publish": "team_gold.ids", "penstock.publish.as": "table"}
    db.create_view("ids", "SELECT id FROM orders", properties=said)
    places = {key: node.path for key, node in db._catalog.world().nodes.items()}
    for number, name in enumerate((f"{gold}.Daily", "team_gold.daily", f"delta.`{places['totals']}`")):
        db.create_view(f"v{number}", f"SELECT SUM(d.total) AS s FROM {name} d JOIN orders USING (region)")
        assert db._catalog.world().views[f"v{number}"].reads == ("totals", "orders")
    after(db, "INSERT INTO orders VALUES (3, 'us', 5)", action="INCREMENTAL")
    assert rows(db.sql(f"SELECT MAX(daily.total) FROM {gold}.daily, team_gold.ids")) == [(25,)]
    assert rows(db.sql("SELECT COUNT(*) FROM team_gold.daily AS OF EPOCH 1")) == [(2,)]
    found = db.read_here("SELECT id FROM team_gold.ids ORDER BY id LIMIT 1")
    assert found is not None
    assert found.rows.table.to_pylist() == [{"c0": 1}]
    done = db.sql(f"INSERT INTO orders SELECT 4, region, total FROM {gold}.daily WHERE region = 'eu'")
    assert (done.rows, done.by_spark) == (1, None)  # type: ignore[union-attr]
    db.refresh()
    spark.sql(f"CREATE VIEW team_gold.theirs AS SELECT region FROM delta.`{places['totals']}`")
    db.create_view("theirs_here", "SELECT region FROM team_gold.theirs")
    assert db._catalog.world().views["theirs_here"].reads == ("totals",)
    with pytest.raises(DependencyError, match="'v0', 'v1', 'v2', 'theirs_here' read it"):
        db.drop_view("totals")

    found_there = {one.source.rpartition(".")[2]: one for one in db.import_tables(gold)}
    assert {name: one.name for name, one in found_there.items()} == {
        "daily": "totals", "ids": "ids", "theirs": "team_gold.theirs",
    }  # fmt: skip
    assert found_there["daily"].why_not == "it is the view totals of this warehouse already"
    spark.sql(f"CREATE TABLE team_gold.same USING delta LOCATION '{db._catalog.world().tables['orders'].path}'")
    assert db.import_tables("team_gold.same")[0].why_not == "it is the table orders of this warehouse already"
    for name, what in (("totals", "the view totals"), ("orders", "the table orders")):
        place = places.get(name) or db._catalog.world().tables[name].path
        with pytest.raises(AlreadyExistsError, match=f"that is {what} of this warehouse. Use that name"):
            db.sql(f"CREATE TABLE copy LOCATION '{place}'")
    assert set(db._catalog.world().tables) == {"orders"}


def test_an_external_table_with_its_state_beside(spark: SparkSession, db: penstock.Database, gold: str) -> None:
    """What is published as a table has no columns of ours, and nothing but Penstock writes to it."""
    said = {"penstock.publish": f"{gold}.daily", "penstock.publish.as": "table", "penstock.state": "beside"}
    db.create_view("totals", TOTALS, properties=said)
    path = db._catalog.world().nodes["totals"].path
    assert latest_version(path) == 1
    assert spark.table("team_gold.daily").columns == ["region", "total", "orders"]
    assert told(spark, "team_gold.daily")["Type"][0] == "EXTERNAL"
    assert [each.name for each in db.import_tables(gold)] == ["totals"], "not a second table over its files"
    after(db, "INSERT INTO orders VALUES (3, 'us', 5)", action="INCREMENTAL")
    assert_same_rows(spark.table("team_gold.daily"), db.table("totals"))
    db.create_view("totals", "SELECT MAX(id) AS newest FROM orders", properties=said, or_replace=True)
    assert rows(spark.table("team_gold.daily")) == [(3,)]
    for moved in ("SET TBLPROPERTIES ('penstock.state' = 'within')", "UNSET TBLPROPERTIES ('penstock.state')"):
        with pytest.raises(DefinitionError, match="it would show the state that Penstock keeps"):
            db.sql(f"ALTER MATERIALIZED VIEW totals {moved}")
    assert spark.table("team_gold.daily").columns == ["newest"]
    said["penstock.publish.as"] = "view"
    db.create_view("totals", "SELECT MAX(id) AS newest FROM orders", properties=said, or_replace=True)
    assert told(spark, "team_gold.daily")["Type"][0] == "VIEW"
    db.drop_view("totals")
    assert names(spark) == set()


@pytest.mark.long
def test_the_embedded_spark_knows_no_names_that_last(tmp_path: Path) -> None:
    with penstock.connect(tmp_path / "w") as db:
        db.sql("CREATE TABLE orders (id INT)")
        with pytest.raises(PenstockError, match="the embedded Spark forgets its catalog"):
            db.create_view("ids", "SELECT id FROM orders", properties={"penstock.publish": "ids"})
        assert db.status() == []
