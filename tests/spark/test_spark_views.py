"""Names of three parts; views of Spark's catalog, which are watched; and what tells no changes, read under FULL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock
from oracle import after, assert_fresh, rows
from penstock.errors import DefinitionError, NotFoundError, NotSupportedError, RefreshError


@pytest.fixture
def lake(spark: SparkSession, db: penstock.Database, tmp_path: Path) -> Iterator[penstock.Database]:
    """Two schemas of Spark's: tables of two formats in one, views in the other, made where that was current."""
    place = (tmp_path / "lake").as_uri()
    for schema in ("raw_lake", "view_lake"):
        spark.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        spark.sql(f"CREATE SCHEMA {schema}")
    spark.sql(f"CREATE TABLE raw_lake.orders (id INT, region STRING, amount INT) USING delta LOCATION '{place}/orders'")
    spark.sql(f"CREATE TABLE raw_lake.events (id INT, kind STRING) USING parquet LOCATION '{place}/events'")
    spark.sql("INSERT INTO raw_lake.orders VALUES (1, 'eu', 10), (2, 'us', 20)")
    spark.sql("INSERT INTO raw_lake.events VALUES (1, 'a')")
    spark.sql("USE view_lake")
    spark.sql("CREATE VIEW europe (number, euros) AS SELECT id, o.amount FROM raw_lake.orders o WHERE region = 'eu'")
    spark.sql("CREATE VIEW large AS SELECT europe.number FROM europe WHERE europe.euros > 5")
    spark.sql("USE default")
    yield db
    for schema in ("raw_lake", "view_lake"):
        spark.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def outcome(db: penstock.Database, name: str) -> tuple[str, str]:
    last = db.history(name, 1)[0]
    return last.action, last.reason


def test_three_parts_mean_a_catalog_of_sparks(spark: SparkSession, lake: penstock.Database) -> None:
    query = "SELECT Spark_Catalog.raw_lake.orders.region, SUM(`orders`.amount) AS total "
    query += "FROM spark_catalog.`raw_lake`.Orders GROUP BY region"
    explained = lake.explain(f"CREATE MATERIALIZED VIEW totals AS {query}")
    assert explained.incremental
    assert not lake._catalog.world().tables, "nothing was taken"
    lake.create_view("totals", query)
    spark.sql("INSERT INTO raw_lake.orders VALUES (3, 'eu', 30)")
    after(lake, action="INCREMENTAL")
    assert rows(lake.table("totals")) == [("eu", 40), ("us", 20)]
    assert lake.graph().node("totals").reads == ("spark_catalog.raw_lake.Orders",)
    both = "SELECT o.id FROM spark_catalog.raw_lake.orders o JOIN totals USING (region)"
    found = lake.sql(f"{both} WHERE total > (SELECT MAX(amount) FROM spark_catalog.raw_lake.ORDERS)")
    assert rows(found) == [(1,), (3,)]
    lake.create_view("same", "SELECT id FROM raw_lake.orders")
    assert list(lake._catalog.world().tables) == ["spark_catalog.raw_lake.orders"], "one table is one source"
    lake.sql("CREATE TABLE kinds (id INT, kind STRING)")
    lake.sql("INSERT INTO kinds SELECT * FROM spark_catalog.raw_lake.events")
    lake.sql(
        "MERGE INTO kinds USING spark_catalog.raw_lake.orders o ON kinds.id = o.id "
        "WHEN NOT MATCHED THEN INSERT (id, kind) VALUES (o.id, 'b')"
    )
    assert rows(lake.table("kinds")) == [(1, "a"), (2, "b"), (3, "b")]
    with pytest.raises(NotFoundError, match=r"there is no 'nowhere.gold.orders' in a catalog of the Spark session"):
        lake.create_view("v", "SELECT 1 AS a FROM nowhere.gold.orders")
    with pytest.raises(NotSupportedError, match=r"three parts means what is in a catalog of the Spark session"):
        lake.sql("CREATE TABLE spark_catalog.raw_lake.mine (id INT)")


def test_a_view_of_sparks_is_written_out_and_watched(spark: SparkSession, lake: penstock.Database) -> None:
    lake.create_view("numbers", "SELECT number FROM spark_catalog.view_lake.large")
    lake.create_view("others", "SELECT COUNT(*) AS n FROM raw_lake.orders")
    lake.create_view("reader", "SELECT SUM(number) AS s FROM numbers")
    assert set(lake._catalog.world().plain) == {"spark_catalog.view_lake.large", "spark_catalog.view_lake.europe"}
    spark.sql("INSERT INTO raw_lake.orders VALUES (3, 'eu', 30)")
    after(lake, action="INCREMENTAL")
    assert rows(lake.table("numbers")) == [(1,), (3,)]

    spark.sql("CREATE OR REPLACE VIEW view_lake.europe (number, euros) AS SELECT id, amount FROM raw_lake.orders")
    assert rows(lake.sql("SELECT * FROM spark_catalog.view_lake.large")) == [(1,), (2,), (3,)], (
        "it is read as it is now"
    )
    lake.create_view("late", "SELECT number FROM spark_catalog.view_lake.large")
    assert rows(lake.table("late")) == [(1,), (2,), (3,)]
    lake.drop_view("late")
    report = lake.refresh()
    assert {name: (report[name].action, report[name].reason) for name in report} == {
        "numbers": ("REINITIALIZE", "VIEW_REPLACED"), "others": ("NO_DATA", "NO_CHANGE"),
        "reader": ("INCREMENTAL", "CHANGED"),
    }  # fmt: skip
    assert_fresh(lake, "numbers")
    assert_fresh(lake, "reader")
    spark.sql(
        "CREATE OR REPLACE VIEW view_lake.large AS SELECT number -- the same\n FROM view_lake.europe WHERE euros > 5"
    )
    assert {one.action for one in lake.refresh().values()} == {"NO_DATA"}, "another text with the same meaning"
    spark.sql("INSERT INTO raw_lake.orders VALUES (4, 'us', 40)")
    after(lake, action="INCREMENTAL")

    spark.sql("DROP VIEW view_lake.europe")
    spark.sql("INSERT INTO raw_lake.orders VALUES (5, 'us', 40)")
    with pytest.raises(
        RefreshError, match=r"view 'spark_catalog.view_lake.europe' of Spark's catalog is gone.*SHOW CREATE VIEW"
    ):
        lake.refresh()
    assert outcome(lake, "others") == ("INCREMENTAL", "CHANGED")
    assert outcome(lake, "reader") == ("SKIP", "UPSTREAM_FAILED")
    spark.sql("CREATE VIEW view_lake.europe AS SELECT id AS number FROM raw_lake.orders")
    with pytest.raises(RefreshError, match=r"was replaced, and the query no longer holds.*euros"):
        lake.refresh()
    spark.sql("CREATE OR REPLACE VIEW view_lake.europe AS SELECT id AS number, 6 AS euros FROM raw_lake.orders")
    lake.refresh()
    assert outcome(lake, "numbers") == ("REINITIALIZE", "VIEW_REPLACED")
    assert rows(lake.table("numbers")) == [(1,), (2,), (3,), (4,), (5,)]


def test_functions_of_a_views_own_schema(spark: SparkSession, lake: penstock.Database) -> None:
    """Without a schema they mean those of the view's, as its tables do, though there are others where it is read."""
    for schema, more in (("default", 100), ("view_lake", 1)):
        spark.sql(f"CREATE OR REPLACE FUNCTION {schema}.taxed(amount INT) RETURNS INT RETURN amount + {more}")
    spark.sql("USE view_lake")
    called = "taxed(amount) AS a, abs(id) AS id, view_lake.taxed(1) AS b"
    spark.sql(f"CREATE VIEW taxes AS SELECT {called} FROM raw_lake.orders")
    spark.sql("USE default")
    lake.create_view("taxes", "SELECT a, id, b FROM spark_catalog.view_lake.taxes")
    assert rows(lake.table("taxes")) == [(11, 1, 2), (21, 2, 2)]
    spark.sql("DROP FUNCTION default.taxed")


def test_what_tells_no_changes_is_read_under_full(spark: SparkSession, lake: penstock.Database, tmp_path: Path) -> None:
    files = f"parquet.`{tmp_path / 'lake' / 'events'}`"
    spark.sql("CREATE VIEW view_lake.kinds AS SELECT kind FROM raw_lake.events")
    for name in ("raw_lake.events", "spark_catalog.raw_lake.events", files, "view_lake.kinds"):
        with pytest.raises(DefinitionError, match=r"only of a Delta table can be told what changed.*POLICY FULL"):
            lake.create_view("v", f"SELECT kind FROM {name}")
    spark.sql("CREATE TEMPORARY VIEW passing_by AS SELECT 'a' AS kind")
    for policy in ("AUTO", "FULL"):
        with pytest.raises(DefinitionError, match=r"temporary view of the Spark session.*CREATE VIEW name AS"):
            lake.create_view("v", "SELECT kind FROM passing_by", policy=policy)
    spark.catalog.dropTempView("passing_by")
    lake.create_view("kinds", "SELECT id, kind FROM raw_lake.events e JOIN raw_lake.orders o USING (id)", policy="FULL")
    lake.create_view("counted", "SELECT kind, COUNT(*) AS n FROM kinds GROUP BY kind")
    assert "    inputs    raw_lake.orders, spark_catalog.raw_lake.events\n" in str(lake.explain("kinds"))
    lake.create_view("by_path", f"SELECT * FROM {files}", policy="FULL")
    more = pa.table({"id": pa.array([2], pa.int32()), "kind": ["b"]})
    pq.write_table(more, tmp_path / "lake" / "events" / "more.parquet")  # by somebody else
    report = lake.refresh()
    assert {name: (report[name].action, report[name].reason) for name in report} == {
        "kinds": ("FULL", "POLICY_FULL"), "counted": ("INCREMENTAL", "CHANGED"), "by_path": ("FULL", "POLICY_FULL"),
    }  # fmt: skip
    assert rows(lake.table("counted")) == rows(lake.sql("SELECT 'a', 1 UNION ALL SELECT 'b', 1"))
    assert rows(lake.table("by_path")) == [(1, "a"), (2, "b")]
    assert lake.verify("kinds")[0].outcome == "NOT_VERIFIED"
    assert lake.graph().node("spark_catalog.raw_lake.events").outside
    assert lake.graph().node("kinds").reads == ("raw_lake.orders", "spark_catalog.raw_lake.events")
    spark.sql("DROP TABLE raw_lake.events")
    with pytest.raises(RefreshError, match=r"'spark_catalog.raw_lake.events' cannot be read by Spark.*Put it back"):
        lake.refresh("kinds")
