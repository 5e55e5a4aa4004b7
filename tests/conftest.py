"""One Spark for the whole run: a keeper database holds it open while the tests open and close their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

import penstock
from connect_server import OVER_CONNECT, connect_session, opened

# How long an example takes says more about the machine than about the code.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, so that two processes end at about the same time."""
    longest = (
        "test_constructs.py", "test_tpch.py", "test_random_views.py", "test_pipelines.py", "test_metamorphic.py",
        "test_mismatch.py", "test_settings.py", "test_races.py", "test_replanning.py", "test_replacing.py",
        "test_schedules.py", "test_expression_fuzz.py", "test_reading.py", "test_on_driver.py",
        "test_brokerage.py", "test_bench_sets.py",
    )  # fmt: skip
    items.sort(key=lambda item: item.path.name not in longest)


# What counts is how much is done in all, not how long a pause lasts.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:+UseParallelGC")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of all tests: the embedded one, or one of a Spark Connect server."""
    with ExitStack() as open_things:
        if OVER_CONNECT:
            session = open_things.enter_context(connect_session())
        else:
            session = open_things.enter_context(penstock.connect(tmp_path_factory.mktemp("keeper"))).spark
        if "PENSTOCK_TPCH_SF" not in os.environ:
            # Hundreds of different queries on a few rows: compiling each would take longer than running it.
            session.conf.set("spark.sql.codegen.wholeStage", "false")
            session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
            session.conf.set("spark.sql.adaptive.enabled", "false")
        yield session


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def db(spark: SparkSession, warehouse: Path) -> Iterator[penstock.Database]:
    with opened(warehouse, spark) as database:
        yield database
