"""The server on copies of a small shop, whose views are made once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from http_server import Server, Servers
from pyspark.sql import SparkSession

import penstock


@pytest.fixture(scope="session")
def stocked_shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once, with Spark; what the tests do with copies of it needs none."""
    path = tmp_path_factory.mktemp("shop") / "shop"
    with penstock.connect(path) as db:
        db.sql("CREATE TABLE orders (id INT, region STRING, amount DECIMAL(10,2))")
        db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20), (3, 'eu', 30)")
        db.sql("CREATE MATERIALIZED VIEW totals AS SELECT region, SUM(amount) AS total FROM orders GROUP BY region")
        db.sql("CREATE MATERIALIZED VIEW large AS SELECT region, total FROM totals WHERE total >= 40")
        db.sql("CREATE MATERIALIZED VIEW copies AS SELECT id, region, amount FROM orders")
    return path


@pytest.fixture(scope="module")
def copied(stocked_shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Copies of the shop."""

    def copy() -> Path:
        place = tmp_path_factory.mktemp("copy") / "shop"
        shutil.copytree(stocked_shop, place)
        return place

    return copy


@pytest.fixture(scope="module")
def serving() -> Iterator[Servers]:
    servers = Servers()
    yield servers
    servers.stop()


@pytest.fixture(scope="module")
def server(copied: Callable[[], Path], serving: Servers) -> Server:
    """A server without tokens, on this machine."""
    return serving("-w", f"shop={copied()}", "--rate", 100_000)
