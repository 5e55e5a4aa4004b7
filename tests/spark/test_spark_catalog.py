"""Tables that Spark's catalog knows: taken as external sources where a view names them, or imported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from oracle import after, rows
from penstock.errors import AlreadyExistsError, DefinitionError, NotFoundError, NotSupportedError


@pytest.fixture
def lake(spark: SparkSession, db: penstock.Database, tmp_path: Path) -> Iterator[penstock.Database]:
    """A schema of Spark's with two Delta tables, one of another format, and a view."""
    place = (tmp_path / "lake").as_uri()
    spark.sql("DROP SCHEMA IF EXISTS spark_lake CASCADE")
    spark.sql("CREATE SCHEMA spark_lake")
    spark.sql(f"CREATE TABLE spark_lake.orders (id INT, amount INT) USING delta LOCATION '{place}/orders'")
    spark.sql(f"CREATE TABLE spark_lake.others (id INT) USING delta LOCATION '{place}/others'")
    spark.sql(f"CREATE TABLE spark_lake.events (id INT) USING parquet LOCATION '{place}/events'")
    spark.sql("CREATE VIEW spark_lake.some AS SELECT id FROM spark_lake.orders")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW passing AS SELECT 1 AS id")
    spark.sql("INSERT INTO spark_lake.orders VALUES (1, 10), (2, 20)")
    yield db
    spark.sql("DROP SCHEMA spark_lake CASCADE")
    spark.catalog.dropTempView("passing")


def tables(db: penstock.Database) -> dict[str, Any]:
    found = db.read_here("SHOW TABLES")
    assert found is not None
    return {row["c0"]: (row["c1"], row["c3"]) for row in found.rows.table.to_pylist()}


def test_a_table_that_only_spark_knows_is_taken_where_a_view_names_it(
    spark: SparkSession, lake: penstock.Database
) -> None:
    lake.sql("CREATE MATERIALIZED VIEW total AS SELECT SUM(amount) AS total FROM spark_lake.orders")
    assert tables(lake) == {"spark_lake.orders": ("external", "spark_catalog.spark_lake.orders")}
    spark.sql("INSERT INTO spark_lake.orders VALUES (3, 30)")
    after(lake, action="INCREMENTAL")
    assert rows(lake.table("total")) == [(60,)]
    lake.sql("USE spark_lake")
    lake.sql("CREATE VIEW others_here AS SELECT id FROM others")
    assert set(tables(lake)) == {"spark_lake.orders", "spark_lake.others"}
    lake.sql("DROP SCHEMA spark_lake CASCADE")
    assert spark.table("spark_lake.orders").count() == 3, "what is external stays"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("spark_lake.events", "format parquet .*CONVERT TO DELTA"),
        ("passing", "is a temporary view of the Spark session"),
    ],
)
def test_what_is_no_delta_table_is_refused(lake: penstock.Database, name: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        lake.create_view("v", f"SELECT id FROM {name}")
    assert tables(lake) == {}


def test_what_nobody_knows(lake: penstock.Database) -> None:
    with pytest.raises(NotFoundError, match="no schema 'nowhere'"):
        lake.create_view("v", "SELECT id FROM nowhere.orders")
    with pytest.raises(NotFoundError, match="no schema 'no where'"):
        lake.create_view("v", "SELECT id FROM `no where`.`or ders`")
    with pytest.raises(NotFoundError, match="no table or view 'nothing'"):
        lake.create_view("v", "SELECT id FROM nothing")
    with pytest.raises(NotSupportedError, match=r"two parts, schema\.name, or three"):
        lake.create_view("v", "SELECT id FROM a.spark_catalog.spark_lake.orders")
    with pytest.raises(NotFoundError, match=r"no table 'spark_catalog\.nowhere'"):
        lake.import_tables("spark_catalog.nowhere")


def test_many_are_imported_at_once(lake: penstock.Database) -> None:
    one = lake.import_tables("spark_catalog.spark_lake.orders")
    assert [(each.source, each.name) for each in one] == [("spark_catalog.spark_lake.orders", "spark_lake.orders")]
    found = {each.source.rpartition(".")[2]: each for each in lake.import_tables("spark_catalog.spark_lake")}
    assert {name: each.name for name, each in found.items()} == {
        "orders": "spark_lake.orders", "others": "spark_lake.others", "events": None, "some": "spark_lake.some",
    }  # fmt: skip
    assert lake._catalog.world().plain["spark_lake.some"].query == (
        "SELECT `id` FROM (SELECT id FROM `spark_lake`.`orders` AS `orders`\n)"
    )
    assert "format parquet" in (found["events"].why_not or "")
    assert lake.import_tables("spark_lake") == list(lake.import_tables("spark_catalog.spark_lake"))
    lake.sql("CREATE MATERIALIZED VIEW total AS SELECT SUM(amount) AS total FROM spark_lake.orders")
    assert rows(lake.table("total")) == [(30,)]


def test_a_name_that_is_taken_stays_what_it_is(lake: penstock.Database) -> None:
    lake.sql("CREATE SCHEMA spark_lake")
    lake.sql("CREATE TABLE spark_lake.orders (id INT, amount INT)")
    with pytest.raises(AlreadyExistsError, match=r"the name 'spark_lake\.orders' is taken by a table"):
        lake.import_tables("spark_lake.orders")
    lake.sql("CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n FROM spark_lake.orders")
    assert rows(lake.table("total")) == [(0,)]
