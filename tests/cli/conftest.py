"""The command, run in this process so that it shares the tests' Spark, on a warehouse of a few views."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Run, run_command
from pyspark.sql import SparkSession

import penstock


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in an empty directory; what it prints is not wrapped."""
    monkeypatch.chdir(tmp_path)
    for variable in ("PENSTOCK_WAREHOUSE", "PENSTOCK_CATALOG", "COLUMNS"):
        monkeypatch.delenv(variable, raising=False)
    return run_command


@pytest.fixture(scope="session")
def stocked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse to look at: a diamond of views, one that is recomputed in full, one whose last refresh failed."""
    path = tmp_path_factory.mktemp("stocked")
    with penstock.connect(path) as db:
        db.sql("CREATE TABLE Orders (id INT, region STRING, amount DECIMAL(10,2), note STRING)")
        db.sql("INSERT INTO Orders VALUES (1, 'eu', 10, '7'), (2, 'us', 20, '8'), (3, NULL, NULL, NULL)")
        db.sql("CREATE MATERIALIZED VIEW totals AS SELECT region, SUM(amount) AS total FROM orders GROUP BY region")
        db.sql("CREATE MATERIALIZED VIEW large AS SELECT region, total FROM totals WHERE total > 10")
        db.sql("CREATE MATERIALIZED VIEW shares AS SELECT t.region FROM totals t JOIN large l ON t.region = l.region")
        db.sql("CREATE MATERIALIZED VIEW whole AS SELECT id FROM orders REFRESH POLICY FULL")
        db.sql("CREATE MATERIALIZED VIEW Notes AS SELECT id, CAST(note AS INT) AS number FROM orders")
        db.sql("INSERT INTO Orders VALUES (4, 'eu', 5, 'not a number')")
        with pytest.raises(penstock.RefreshError):
            db.refresh()
    return path
