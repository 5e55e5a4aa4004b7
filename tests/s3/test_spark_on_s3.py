"""A warehouse in a store, with a Spark that knows the store: ``make test-s3`` fetches ``hadoop-aws``, and
``make test-stores`` tells the same on HDFS.

The embedded Spark starts in this process with what it takes to reach the store, so this file is run by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from deltalake import DeltaTable

import penstock
from kinds_of_stores import KINDS, Kind, running
from oracle import assert_fresh
from penstock.bench.store_server import BUCKET, Store
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


def test_a_statement_of_spark_copies_only_what_it_wrote(far: penstock.Database, store: Store) -> None:
    far.sql("CREATE TABLE large (id BIGINT, x BIGINT)")
    for part in range(4):
        far.sql(f"INSERT INTO large SELECT id, id FROM range({part * 1000}, {part * 1000 + 1000}, 1, 2)")
    far.sql("UPDATE large SET x = 0 WHERE id = 7")  # by us: a mark
    far.sql("CREATE MATERIALIZED VIEW sums AS SELECT id % 10 AS k, SUM(x) AS s FROM large GROUP BY id % 10")
    changes = {
        "INSERT INTO large SELECT id, 1 FROM range(9000, 9003)": 3,
        "DELETE FROM large WHERE id IN (SELECT id FROM range(7, 3000, 100))": 0,
        "UPDATE large SET x = x + 1 WHERE id IN (SELECT id FROM range(3, 4000, 50))": 3,
        "MERGE INTO large t USING (SELECT id FROM range(3990, 4010)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET x = -1 WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, -2)": 3,
    }
    path = far._catalog.world().tables["large"].path
    for text, most in changes.items():
        before = newest(path)
        with store.noted() as asked:
            assert far.sql(text).by_spark, "it is Spark's"
        put = [name for how, name in asked if how == "PUT" and "/tables/large" in name and name.endswith(".parquet")]
        old = {file.path for file in before.files}
        assert not [name for name in put if any(name.endswith(file) for file in old)], text
        assert len([name for name in put if "_change_data" not in name]) <= most, text
        assert not [file.path for file in newest(path).files if "://" in file.path]
        far.refresh()
        assert_fresh(far, "sums")
    assert DeltaTable(path).version() == newest(path).version


def test_eight_writers_of_both_kinds_lose_nothing(far: penstock.Database) -> None:
    """Four let Spark compute their rows, four do not need it; whoever is told that nothing was changed tries again."""
    far.sql("CREATE TABLE mixed (who INT, n BIGINT)")
    far.set("lock_timeout", "30 minutes")  # in HDFS, as on this machine, Spark's statements wait for each other

    def write(who: int) -> None:
        for number in range(3):
            text = f"VALUES ({who}, {number})" if who % 2 else f"SELECT {who}, id FROM range({number}, {number + 1})"
            while True:
                try:
                    done = far.sql(f"INSERT INTO mixed {text}")
                except penstock.ConflictError:  # which says that nothing was changed
                    continue
                assert (getattr(done, "by_spark", None) is None) == bool(who % 2)
                break

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    found = far.read_here("SELECT who, n FROM mixed").rows.rows().to_pylist()
    assert Counter((row["c0"], row["c1"]) for row in found) == Counter((who, n) for who in range(8) for n in range(3))
    assert newest(far._catalog.world().tables["mixed"].path).version == 24


def test_sparks_own_commits_are_no_conditional_puts(far: penstock.Database, store: Store) -> None:
    """Which is why none is made to tables of the warehouse. When this fails, Delta has learnt it."""
    place = f"{BUCKET}/outside"
    far.spark.sql(f"CREATE TABLE delta.`{place}` (a INT) USING delta")
    far.register_table("outside", place)
    far.sql("INSERT INTO outside SELECT 1")
    assert newest(place).version == 1
    assert not [name for name in store.conditional if name.startswith("/bucket/outside/_delta_log")]
    far.sql("CREATE TABLE inside (a INT)")
    with store.noted() as asked:
        far.sql("INSERT INTO inside SELECT 1 FROM range(1)")
    commits = [name for how, name in asked if how == "PUT" and "/tables/inside" in name and name.endswith(".json")]
    assert commits
    assert set(commits) <= set(store.conditional)
