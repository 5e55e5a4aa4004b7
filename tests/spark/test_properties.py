"""TBLPROPERTIES of a view: what is shown is honoured, and what could not be honoured is refused."""

from __future__ import annotations

import pytest

import penstock
from oracle import assert_fresh
from penstock.engine.properties import delta_properties
from penstock.frames import limits
from penstock.storage import apply
from penstock.storage.delta_log import Snapshot


@pytest.fixture
def orders(db: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> penstock.Database:
    """Every table counts as large, and patching it as cheap."""
    monkeypatch.setattr(limits, "SMALL_TABLE_ROWS", 0)
    monkeypatch.setattr(apply, "cheaper", lambda **_: "PATCH")
    db.sql("CREATE TABLE orders (id INT, amount INT)")
    db.sql("INSERT INTO orders SELECT id, id FROM range(100)")
    return db


def table(db: penstock.Database, view: str) -> Snapshot:
    return Snapshot(db._catalog.world().nodes[view].path)


@pytest.mark.parametrize(("value", "strategy"), [("false", "REWRITE"), ("true", "PATCH")])
def test_a_view_without_deletion_vectors_is_never_patched(orders: penstock.Database, value: str, strategy: str) -> None:
    orders.sql(
        f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('delta.enableDeletionVectors' = '{value}', 'team' = 'sales') AS "
        "SELECT id, amount FROM orders"
    )
    for change in ("UPDATE orders SET amount = 7 WHERE id = 3", "DELETE FROM orders WHERE id IN (5, 50)"):
        orders.sql(change)
        orders.refresh()
        assert_fresh(orders, "v", "INCREMENTAL", strategy)
    assert table(orders, "v").configuration["delta.enableDeletionVectors"] == value
    assert bool(table(orders, "v").deleted) == (value == "true")
    facts = {row[0]: row[1] for row in orders.sql("DESCRIBE MATERIALIZED VIEW v").collect()}  # type: ignore[union-attr]
    assert facts["# Property delta.enableDeletionVectors"] == value
    assert facts["# Property team"] == "sales"


def test_checkpoints_as_often_as_asked(orders: penstock.Database) -> None:
    orders.create_view("v", "SELECT id, amount FROM orders", properties={"delta.checkpointInterval": "3"})
    for number in range(7):
        orders.sql(f"UPDATE orders SET amount = amount + 1 WHERE id = {number}")
        orders.refresh()
    assert_fresh(orders, "v", "INCREMENTAL", "PATCH")
    path = table(orders, "v").path
    found = orders.spark.read.format("binaryFile").load(f"{path}/_delta_log/*.checkpoint.parquet").select("path")
    numbers = {int(row[0].rsplit("/", 1)[1][:20]) for row in found.collect()}
    assert numbers == {3, 6}


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("delta.enableDeletionVectors", "maybe", "'true' or 'false'"),
        ("delta.enableChangeDataFeed", "true", r"db\.changes"),
        ("delta.appendOnly", "true", "remove rows"),
        ("delta.columnMapping.mode", "name", "own names"),
        ("delta.logRetentionDuration", "interval 1 day", "SET retention"),
        ("delta.deletedFileRetentionDuration", "interval 1 day", "SET retention"),
        ("delta.enableExpiredLogCleanup", "true", "SET retention"),
        ("delta.checkpointInterval", "0", "number of commits"),
        ("delta.minReaderVersion", "3", "protocol"),
        ("delta.feature.deletionVectors", "supported", "protocol"),
        ("delta.dataSkippingNumIndexedCols", "2", "Statistics"),
        ("delta.autoOptimize.autoCompact", "true", "does not know it"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(name: str, value: str, why: str) -> None:
    with pytest.raises(penstock.DefinitionError, match=rf"view 'v': the property '{name}' cannot be .*{why}"):
        delta_properties("v", [(name, value)])


def test_a_view_that_was_refused_is_not_there(orders: penstock.Database) -> None:
    with pytest.raises(penstock.DefinitionError, match=r"'delta\.appendOnly' cannot be 'true'"):
        orders.create_view("v", "SELECT id FROM orders", properties={"delta.appendOnly": "true"})
    assert orders.status() == []
