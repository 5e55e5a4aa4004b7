"""The warehouse of the workload brokerage at a tiny size: every view right and incremental, round after round."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from longer import varied
from oracle import assert_fresh
from penstock.bench.brokerage.tables import Brokerage
from penstock.bench.brokerage.views import VIEWS
from penstock.bench.session import Sparks
from penstock.bench.stage import Bench, Stage
from penstock.bench.workloads.brokerage import CHANGES

BROKERAGE = Brokerage.of(lambda rows: 400)


@pytest.fixture(scope="module")
def stage(spark: SparkSession) -> Iterator[Stage]:
    with Bench(sparks=Sparks(spark, None)).stage() as stage:
        stage.create(BROKERAGE.tables(), VIEWS)
        yield stage


def test_every_view_can_be_maintained(stage: Stage) -> None:
    assert len(VIEWS) >= 40
    recomputed = {
        view: explained.reason for view in VIEWS if not (explained := stage.database.explain(view)).incremental
    }
    assert recomputed == {}
    assert [view for view in VIEWS if stage.count(view) == 0] == [], "a view without rows shows nothing"


@pytest.mark.parametrize("case", varied(CHANGES, often=["mixed"]))
def test_every_view_equals_its_query_after_each_round(stage: Stage, case: str) -> None:
    stage.round += 1
    assert CHANGES[case](stage, BROKERAGE, stage.round) > 0
    report = stage.database.refresh()
    for view in VIEWS:
        assert_fresh(stage.database, view)
    actions = {view: (report[view].action, report[view].reason) for view in VIEWS}
    assert set(actions.values()) <= {("INCREMENTAL", "CHANGED"), ("NO_DATA", "NO_CHANGE")}
    assert sum(action == "INCREMENTAL" for action, _ in actions.values()) >= 40
