"""A warehouse in a store, with a Spark that knows the store: ``make test-s3`` fetches ``hadoop-aws``, and
``make test-stores`` tells the same on HDFS.

The embedded Spark starts in this process with what it takes to reach the store, so this file is run by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import penstock
from kinds_of_stores import KINDS, Kind, running
from oracle import assert_fresh
from penstock.storage.delta_log import newest


@pytest.fixture(scope="module", params=KINDS)
def store(request: pytest.FixtureRequest) -> Iterator[Kind]:
    with running(request.param) as found, pytest.MonkeyPatch.context() as patch:
        for name, value in found.environment.items():  # the oracle finds it there
            patch.setenv(name, value)
        yield found


@pytest.fixture(scope="module")
def far(store: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[penstock.Database]:
    catalog = tmp_path_factory.mktemp("catalog") / "catalog.sqlite"
    with penstock.connect(
        f"{store.place}/warehouse", catalog=f"sqlite:///{catalog}", storage_options=store.options
    ) as db:
        yield db


def test_spark_writes_and_penstock_commits(far: penstock.Database, store: Kind) -> None:
    far.sql("CREATE TABLE orders (id BIGINT, region STRING, amount BIGINT)")
    path = far._catalog.world().tables["orders"].path
    far.sql("INSERT INTO orders SELECT id, concat('r', id % 7), id FROM range(20000)")
    assert newest(path).rows == 20_000
    far.sql("CREATE MATERIALIZED VIEW totals AS SELECT region, SUM(amount) AS total FROM orders GROUP BY region")
    assert_fresh(far, "totals")
    far.sql("UPDATE orders SET amount = amount + 1 WHERE id % 3 = 0")
    far.sql("DELETE FROM orders WHERE id % 5 = 0")
    far.refresh()
    assert_fresh(far, "totals")
    far.sql("CREATE MATERIALIZED VIEW days PARTITIONED BY (region) AS SELECT region, id FROM orders WHERE id % 2 = 0")
    far.sql("INSERT INTO orders VALUES (-2, 'r1', 1)")
    far.refresh()
    assert_fresh(far, "days")
    if store.front is None:  # where Spark's commits overwrite nothing
        far.sql("ALTER TABLE orders ADD COLUMN note STRING")
        far.sql("OPTIMIZE orders")
        far.sql("INSERT INTO orders VALUES (-3, 'r1', 1, 'late')")
        far.refresh()
        assert_fresh(far, "totals", "INCREMENTAL")
        return
    commits = [
        path
        for method, path in store.front.requests
        if method == "PUT" and "/tables/" in path and "_delta_log/" in path
    ]
    assert len(commits) == len(set(commits)), "no commit of the table was put twice"
    with pytest.raises(penstock.NotSupportedError, match="a table in an object store is only changed by INSERT"):
        far.sql("ALTER TABLE orders ADD COLUMN note STRING")


def test_eight_writers_of_both_kinds_lose_nothing(far: penstock.Database, tmp_path: Path) -> None:
    far.sql("CREATE TABLE mixed (who INT, n BIGINT)")
    far.set("lock_timeout", "30 minutes")  # in HDFS, as on this machine, Spark's statements wait for each other

    def write(who: int) -> int:
        done = 0
        for number in range(3):
            text = f"VALUES ({who}, {number})" if who % 2 else f"SELECT {who}, id FROM range({number}, {number + 1})"
            try:
                far.sql(f"INSERT INTO mixed {text}")
            except penstock.ConflictError:  # which says that nothing was changed
                continue
            done += 1
        return done

    with ThreadPoolExecutor(8) as pool:
        done = sum(pool.map(write, range(8)))
    found = newest(far._catalog.world().tables["mixed"].path)
    assert done >= 12, "those without Spark go on until they are through"
    assert found.rows == done
