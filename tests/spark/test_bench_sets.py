"""What the workload driver is made of, at a tiny size: small changes, what is recorded of them, every view right."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.bench import nexmark, on_driver
from penstock.bench.session import Sparks
from penstock.bench.stage import Bench
from penstock.bench.workloads.driver import SETS, measured


def test_the_auction_house_follows_small_changes(spark: SparkSession) -> None:
    """A view that differs from its recomputation would be an error."""
    bench = Bench(sparks=Sparks(spark, None), scale=0.001, repeat=1)
    (cell,) = measured(bench, ["nexmark"])
    assert 0 < cell.changed <= on_driver.SMALL
    assert {action.action for action in cell.actions} <= {"INCREMENTAL", "NO_DATA"}
    assert len(cell.driven) >= 20
    assert {found.view for found in cell.driven} <= set(nexmark.VIEWS)
    assert all(found.without_jobs <= found.refreshes == 1 for found in cell.driven)


def test_every_kind_of_view_that_the_benchmark_knows_is_a_set() -> None:
    assert list(SETS) == ["constructs", "cascade", "medallion", "nexmark", "brokerage", "tpch"]
