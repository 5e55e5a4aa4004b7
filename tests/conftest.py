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
from catalogs import put_elsewhere
from connect_server import OVER_CONNECT, connect_session, opened
from postgres import new_database, running_server
from spark_cluster import ON_CLUSTER, Cluster, running_cluster

# How long an example takes says more about the machine than about the code.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first, so that all processes end at about the same time; and only the usual variations."""
    if not config.option.markexpr and "PENSTOCK_FUZZ_MINUTES" not in os.environ:
        items[:] = [item for item in items if item.get_closest_marker("long") is None]
    longest = (
        "test_constructs", "test_mismatch", "test_laws", "test_driver_rules", "test_lateral", "test_settings",
        "test_replanning", "test_vacuumed_sources", "test_read_only", "test_event_windows", "test_brokerage",
        "test_aggregates_on_driver", "test_partitioned_sources", "test_tpch", "test_change_reading",
        "test_ends_of_windows", "test_reading", "test_regressions", "test_spellings", "test_small_changes",
        "test_races", "test_patch", "test_time_windows", "test_process", "test_types", "test_placement",
        "test_windows_on_driver", "test_schedules", "test_numbers", "test_aggregates", "test_bench_sets",
    )  # fmt: skip
    places = {f"{name}.py": place for place, name in enumerate(longest)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


# What counts is how much is done in all, not how long a pause lasts.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:+UseParallelGC")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster | None]:
    """The cluster on which all tests run; None where Spark computes in its driver."""
    if ON_CLUSTER:
        with running_cluster() as started:
            yield started
    else:
        yield None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster | None) -> Iterator[SparkSession]:
    """The session of all tests: the embedded one, or one of a Spark Connect server; either may be on a cluster."""
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


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    with running_server() as url:
        yield url


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is marked ``catalogs`` runs on SQLite and on PostgreSQL."""
    if metafunc.definition.get_closest_marker("catalogs") and "warehouse" in metafunc.fixturenames:
        metafunc.parametrize("warehouse", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def warehouse(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "warehouse"
    if getattr(request, "param", "sqlite") == "postgresql":
        put_elsewhere(path, new_database(request.getfixturevalue("postgres")))
    return path


@pytest.fixture
def db(spark: SparkSession, warehouse: Path) -> Iterator[penstock.Database]:
    with opened(warehouse, spark) as database:
        yield database
