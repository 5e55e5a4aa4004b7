"""A view whose state is kept beside it: who reads its directory sees its columns, and it is maintained as before."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import penstock
from oracle import after, assert_fresh, assert_same_rows
from penstock.vocabulary import Action, Outcome

BESIDE = {"penstock.state": "beside"}
QUERIES = {
    "totals": "SELECT region, SUM(amount) / COUNT(*) AS mean, MAX(amount) AS most FROM orders GROUP BY region",
    "regions": "SELECT DISTINCT region FROM orders",
    "places": "SELECT id, RANK() OVER (PARTITION BY region ORDER BY amount DESC) AS place FROM orders",
    "first": "SELECT id FROM orders ORDER BY amount DESC, id LIMIT 2",
    "overall": "SELECT SUM(amount) AS total FROM orders",
    "large": "SELECT id FROM orders WHERE amount > 15",
}


@pytest.fixture
def shop(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE orders (id INT, region STRING, amount INT)")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20), (3, 'eu', 20), (4, NULL, NULL)")
    return db


def path_of(db: penstock.Database, view: str) -> str:
    return db._catalog.world().nodes[view].path


def shown(db: penstock.Database, view: str) -> tuple[list[str], list[str]]:
    """The columns of a view's directory, as Spark and delta-rs see them."""
    path = path_of(db, view)
    by_spark = db.spark.read.format("delta").load(path).columns
    return by_spark, [field.name for field in DeltaTable(path).schema().fields]


def test_the_directory_has_the_views_columns_and_no_others(spark: SparkSession, shop: penstock.Database) -> None:
    for name, query in QUERIES.items():
        shop.create_view(name, query, properties=BESIDE)
    for changes in (
        ["INSERT INTO orders VALUES (5, 'us', 30), (6, 'asia', 1)"],
        ["UPDATE orders SET amount = 25 WHERE id = 1", "DELETE FROM orders WHERE id = 2"],
        ["DELETE FROM orders WHERE region = 'eu'"],
    ):
        after(
            shop, *changes, action="INCREMENTAL", large=("INCREMENTAL", "NO_DATA"), regions=("INCREMENTAL", "NO_DATA")
        )
        for name in QUERIES:
            columns = [column for column, _, _ in shop._catalog.world().views[name].columns]
            assert shown(shop, name) == (columns, columns)
            assert_same_rows(spark.read.format("delta").load(path_of(shop, name)), shop.table(name))
    report = shop.refresh()
    assert {view.action for view in report.values()} == {Action.NO_DATA}
    assert [one.outcome for one in shop.verify()] == [Outcome.EQUAL] * len(QUERIES)
    hidden = [node.hidden for node in shop.explain("totals").nodes]
    assert hidden == [True, False]
    assert [node.hidden for node in shop.explain("large").nodes] == [False], "what has no state has nothing beside it"


def test_the_property_can_be_changed(shop: penstock.Database) -> None:
    shop.create_view("totals", QUERIES["totals"])
    place = path_of(shop, "totals")
    assert "__rows" in shown(shop, "totals")[0]
    shop.sql("ALTER MATERIALIZED VIEW totals SET TBLPROPERTIES ('penstock.state' = 'beside')")
    assert shown(shop, "totals") == (["region", "mean", "most"],) * 2
    after(shop, "INSERT INTO orders VALUES (5, 'us', 30)", action="INCREMENTAL")
    shop.create_view("totals", QUERIES["totals"], or_replace=True)
    assert "__rows" in shown(shop, "totals")[0]
    assert path_of(shop, "totals") == place
    after(shop, "INSERT INTO orders VALUES (6, 'us', 30)", action="INCREMENTAL")
    assert_fresh(shop, "totals")
    with pytest.raises(penstock.DefinitionError, match="'within' or 'beside', not 'elsewhere'"):
        shop.sql("ALTER MATERIALIZED VIEW totals SET TBLPROPERTIES ('penstock.state' = 'elsewhere')")
