"""What the workload driver is made of, at a tiny size: small changes, what is recorded of them, every view right."""

from __future__ import annotations

from pyspark.sql import SparkSession

from oracle import assert_fresh
from penstock.bench import nexmark, on_driver
from penstock.bench.session import Sparks
from penstock.bench.stage import Bench
from penstock.bench.workloads.driver import SETS, measured


def test_the_bars_follow_small_changes(spark: SparkSession) -> None:
    """A view that differs from its recomputation would be an error."""
    bench = Bench(sparks=Sparks(spark, None), scale=0.001, repeat=1)
    (cell,) = measured(bench, ["cascade"])
    assert 0 < cell.changed <= on_driver.SMALL
    assert {action.action for action in cell.actions} <= {"INCREMENTAL", "NO_DATA"}
    assert len(cell.driven) >= 2
    assert all(found.without_jobs <= found.refreshes == 1 for found in cell.driven)


def test_the_auction_house_follows_small_changes(spark: SparkSession) -> None:
    with Bench(sparks=Sparks(spark, None), scale=0.001, repeat=1).stage() as stage:
        _, change = SETS["nexmark"](stage)
        assert 0 < change(1) <= on_driver.SMALL
        stage.database.refresh()
        assert set(stage.views) == set(nexmark.VIEWS)
        for view in stage.views:
            assert_fresh(stage.database, view, ("INCREMENTAL", "NO_DATA"))


def test_every_kind_of_view_that_the_benchmark_knows_is_a_set() -> None:
    assert list(SETS) == ["constructs", "cascade", "medallion", "nexmark", "brokerage", "tpch"]
