"""A worker or an executor that is really killed in the middle of a refresh costs a retry, not a wrong row.

The tables are large enough, and what the driver takes small enough, that all of it is Spark's work: reading the change,
what is kept of it for several readers, and writing. Doubles are of sizes so different that the order of adding shows.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

import penstock
from oracle import assert_fresh
from penstock.frames import limits
from spark_cluster import ON_CLUSTER, Cluster

pytestmark = pytest.mark.skipif(not ON_CLUSTER, reason="PENSTOCK_TEST_CLUSTER is not set: make test-cluster sets it")

VIEWS = {
    "sums": "SELECT customer, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY customer",
    "weights": "SELECT customer, customer % 50 AS region, SUM(weight) AS weight FROM orders GROUP BY customer",
    "heaviest": "SELECT region, MAX(weight) AS weight, COUNT(DISTINCT weight) AS kinds FROM weights GROUP BY region",
    "named": "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.id % 5 < 3",
}
ROWS = 200_000


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[penstock.Database]:
    with penstock.connect(tmp_path_factory.mktemp("killed") / "warehouse") as db, pytest.MonkeyPatch.context() as patch:
        for name in ("LOCAL_ROWS", "CHANGE_ROWS", "READ_ROWS", "LOCATED_ROWS", "LOCAL_TABLE_ROWS", "SMALL_TABLE_ROWS"):
            patch.setattr(limits, name, 1_000)
        patch.setattr(limits, "LOOKUP_MOST_ROWS", 0)
        db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT, weight DOUBLE)")
        db.sql("CREATE TABLE customers (id BIGINT, name STRING)")
        db.sql(f"INSERT INTO orders {_orders(0, ROWS)}")
        db.sql("INSERT INTO customers SELECT id, CONCAT('c', id % 900) FROM range(4000)")
        for view, query in VIEWS.items():
            db.create_view(view, query, policy="INCREMENTAL STRICT")
        yield db


def _orders(first: int, last: int) -> str:
    return (
        f"SELECT id, id % 4000 AS customer, id * 7 % 1009 AS amount, "
        f"SIN(id) * POW(10, id % 17) AS weight FROM range({first}, {last}, 1, 8)"
    )


class Killer(threading.Thread):
    """Kills when so many stages have begun and one of them has a task on each executor; then it goes on looking."""

    def __init__(self, spark: SparkSession, stages: int, kill: Callable[[], object]):
        super().__init__()
        self._tracker = spark.sparkContext.statusTracker()
        self._stages, self._kill = stages, kill
        self._over = threading.Event()
        self.seen: set[int] = set()
        self.killed = False
        self.failed: dict[int, int] = {}
        """By stage, the tasks that were lost."""

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.is_set():
            for stage in self._tracker.getActiveStageIds():
                self.seen.add(stage)
                info = self._tracker.getStageInfo(stage)
                if info is None:
                    continue
                if info.numFailedTasks:
                    self.failed[stage] = info.numFailedTasks
                if not self.killed and len(self.seen) >= self._stages and info.numActiveTasks > 1:
                    self._kill()
                    self.killed = True
            time.sleep(0.002)


def _change(db: penstock.Database, number: int) -> None:
    db.sql(f"UPDATE orders SET amount = amount + 1, weight = weight * 1.5 WHERE id % 7 = {number}")
    db.sql(f"INSERT INTO orders {_orders(ROWS * (number + 2), ROWS * (number + 2) + 20_000)}")


def _assert_right(db: penstock.Database) -> None:
    for view in VIEWS:
        assert_fresh(db, view, "INCREMENTAL")
    # To the last bit: what was handed to the reader is what was written.
    below = db.table("weights").groupBy("region").agg({"weight": "max"}).toDF("region", "weight")
    assert below.exceptAll(db.table("heaviest").select("region", "weight")).count() == 0


def test_killed_in_the_middle(shop: penstock.Database, cluster: Cluster) -> None:
    spark = shop.spark
    _change(shop, 0)
    with Killer(spark, 10**9, lambda: None) as whole:
        shop.refresh()
    _assert_right(shop)
    assert len(whole.seen) > 10, "the refresh is meant to be Spark's work"
    lost = 0
    for number, part in enumerate((0.2, 0.45, 0.7), 1):
        before = cluster.executors()
        by_worker = number % 2 == 0
        _change(shop, number)
        stages = max(int(len(whole.seen) * part), 1)
        with Killer(spark, stages, cluster.kill_worker if by_worker else cluster.kill_executor) as killer:
            shop.refresh()
        assert killer.killed, f"{len(killer.seen)} stages were seen, and {stages} waited for"
        _assert_right(shop)
        assert not any(r.action in ("FULL", "REINITIALIZE") for r in shop.history(limit=len(VIEWS)))
        lost += sum(killer.failed.values())
        if by_worker:
            cluster.start_worker()
        _await(lambda before=before: len(cluster.executors()) == 2 and cluster.executors() != before)
    assert lost, "tasks were killed, and done again"


def _await(there: Callable[[], bool]) -> None:
    while not there():
        time.sleep(0.1)


def test_executors_need_no_python(shop: penstock.Database, cluster: Cluster) -> None:
    """No process of Python was ever started by one; ``make test-cluster`` tells Spark of a Python that is not there."""
    parents = set(cluster.executors())
    assert len(parents) == 2
    children = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) in parents]
    assert not children


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat") as told:
            return int(told.read().rpartition(")")[2].split()[1])
    except OSError:
        return None
