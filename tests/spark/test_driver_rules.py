"""Every rule of expressions on the driver, under both ANSI settings and in several zones, beside Spark's own result."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import chain

import pytest
from pyspark.sql import SparkSession

import penstock
from driver_expressions import HERE, MAYBE, NEVER
from driver_rules import Trial
from driver_values import Values
from longer import varied
from penstock.frames.arrow.expressions.zones import STEADY, zone

ROWS = 40
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SETTINGS = [
    {"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": zone}
    for ansi, zone in [
        ("true", "UTC"), ("false", "UTC"), ("true", "Europe/Berlin"), ("false", "America/New_York"),
        ("true", "Asia/Kolkata"), ("false", "+05:45"),
    ]
]  # fmt: skip
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with penstock.connect(tmp_path_factory.mktemp("rules")) as db:
        before = {name: db.spark.conf.get(name, None) for name in INTERPRETED}
        for name, value in INTERPRETED.items():
            db.spark.conf.set(name, value)
        yield db.spark
        for name, old in before.items():
            db.spark.conf.unset(name) if old is None else db.spark.conf.set(name, old)


@pytest.mark.parametrize("settings", varied(SETTINGS, often=SETTINGS[1:3]), ids=lambda s: "-".join(s.values()))
@pytest.mark.parametrize("subject", HERE)
def test_ordinary_rows_are_computed_on_the_driver_as_by_spark(
    spark: SparkSession, subject: str, settings: dict[str, str]
) -> None:
    trial = Trial(spark, Values(random.Random(f"{settings}"), odd=False).rows(ROWS), settings)
    assert trial.wrong(HERE[subject], whole=True) == []


@pytest.mark.parametrize("settings", varied(SETTINGS[:4], often=SETTINGS[1:3]), ids=lambda s: "-".join(s.values()))
def test_odd_rows_are_computed_as_by_spark_or_left_to_it(spark: SparkSession, settings: dict[str, str]) -> None:
    trial = Trial(spark, Values(random.Random(f"{settings}"), odd=True).rows(ROWS), settings)
    assert trial.wrong([*chain(*HERE.values(), *MAYBE.values())], whole=False) == []


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=lambda s: "-".join(s.values()))
def test_what_may_differ_is_left_to_spark(spark: SparkSession, settings: dict[str, str]) -> None:
    trial = Trial(spark, Values(random.Random("left"), odd=False).rows(10), settings)
    assert trial.computed(NEVER) == []


def test_clocks_of_zones_show_what_they_show_to_spark(spark: SparkSession) -> None:
    """Around every change of every zone that is known: the hours that are left out, and those that are there twice."""
    changes = {int(change) for name in STEADY for change in zone(name).changes}
    around = (-7_200, -3_600, -1_800, -1, 0, 1_800, 3_600, 36_000, 39_600, 43_200)
    moments = sorted({change + seconds * 10**6 for change in changes for seconds in around})
    rows = [{"at": EPOCH + timedelta(microseconds=micros)} for micros in moments]
    calls = [f"{call}(at, '{name}')" for name in sorted(STEADY) for call in ("FROM_UTC_TIMESTAMP", "TO_UTC_TIMESTAMP")]
    assert Trial(spark, rows, SETTINGS[0]).wrong(calls, whole=True) == []


def test_no_row_is_no_error(spark: SparkSession) -> None:
    trial = Trial(spark, [], SETTINGS[0])
    assert trial.wrong([*chain(*HERE.values())], whole=True) == []
