"""Fixed cost: the number of Spark jobs of a small refresh is small and known."""

from __future__ import annotations

import pytest

import penstock
from oracle import assert_all_fresh


def jobs_of_refresh(db: penstock.Database) -> int:
    """How many Spark jobs one refresh runs."""
    context = db.spark.sparkContext
    group = f"refresh-{db.path}-{len(db.history())}"
    context.setJobGroup(group, "counted by a test")
    try:
        db.refresh()
    finally:
        context.setJobGroup("", "")
    return len(context.statusTracker().getJobIdsForGroup(group))


@pytest.fixture
def chain(db: penstock.Database) -> penstock.Database:
    """A filter over an aggregate over a table."""
    db.sql("CREATE TABLE orders (id INT, region STRING, amount DECIMAL(10,2))")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20)")
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT region, SUM(amount) AS total FROM orders GROUP BY region")
    db.sql("CREATE MATERIALIZED VIEW large AS SELECT region, total FROM totals WHERE total > 15")
    return db


def test_a_refresh_with_nothing_to_do_runs_no_job(chain: penstock.Database) -> None:
    assert jobs_of_refresh(chain) == 0
    assert [r.action for r in chain.history(limit=2)] == ["NO_DATA", "NO_DATA"]


def test_a_small_change_of_two_views_costs_no_job(chain: penstock.Database) -> None:
    """It is read, merged into the aggregate, filtered and written where it is: on the driver."""
    chain.sql("INSERT INTO orders VALUES (3, 'eu', 30)")
    assert jobs_of_refresh(chain) == 0
    assert_all_fresh(chain, "INCREMENTAL")
    assert [record.details["jobs"] for record in chain.history(limit=2) if record.details] == [0, 0]
    chain.sql("UPDATE orders SET amount = 31 WHERE id = 3")
    assert jobs_of_refresh(chain) == 0
    assert_all_fresh(chain, "INCREMENTAL")


def test_what_only_spark_computes_is_one_job(chain: penstock.Database) -> None:
    chain.sql("CREATE MATERIALIZED VIEW shouted AS SELECT UPPER(region) AS region, total FROM large")
    chain.sql("INSERT INTO orders VALUES (3, 'eu', 30)")
    assert jobs_of_refresh(chain) == 1
    assert_all_fresh(chain, "INCREMENTAL")


def test_optimize_is_no_change_and_no_job(chain: penstock.Database) -> None:
    chain.sql("INSERT INTO orders VALUES (3, 'eu', 30)")
    chain.refresh()
    chain.sql("OPTIMIZE orders")
    assert jobs_of_refresh(chain) == 0
    assert_all_fresh(chain, "NO_DATA")
