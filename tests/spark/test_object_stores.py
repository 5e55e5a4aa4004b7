"""A warehouse in an object store, where Spark plans and reads nothing: its session knows no such store. All rows are
written, read and refreshed on the driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

import penstock
from kinds_of_stores import KINDS, Kind, running
from oracle import assert_fresh
from penstock.storage.delta_log import Snapshot, newest
from penstock.storage.file_cache import FILES
from penstock.storage.files import files_of
from penstock.storage.log_writer import put, said
from races import between


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Kind]:
    with running(request.param) as found:
        yield found


@pytest.fixture
def store(server: Kind, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """The store, which the oracle finds through the environment."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    FILES.clear()
    return server


@pytest.fixture
def far(store: Kind, spark: SparkSession, tmp_path: Path) -> Iterator[penstock.Database]:
    """A warehouse in it."""
    with opened(spark, store, tmp_path) as db:
        yield db


def opened(spark: SparkSession, store: Kind, tmp_path: Path) -> penstock.Database:
    return penstock.connect(
        f"{store.place}/{tmp_path.name}/warehouse", spark, f"sqlite:///{tmp_path}/catalog.sqlite",
        storage_options=store.options,
    )  # fmt: skip


def path_of(db: penstock.Database, name: str) -> str:
    world = db._catalog.world()
    return str(world.tables[name].path if name in world.tables else world.nodes[name].path)


def orders(db: penstock.Database, count: int = 6) -> None:
    db.sql("CREATE TABLE orders (id INT, region STRING, amount INT)")
    db.sql("INSERT INTO orders VALUES " + ", ".join(f"({i}, 'r{i % 3}', {i})" for i in range(count)))
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT region, SUM(amount) AS total FROM orders GROUP BY region")


def kinds(requests: list[tuple[str, str]]) -> Counter[str]:
    """What was asked of the store."""
    return Counter(method if method != "GET" or "." in path.rpartition("/")[2] else "LIST" for method, path in requests)


def test_all_of_it_without_spark(far: penstock.Database) -> None:
    orders(far)
    assert_fresh(far, "totals", ("FULL", "REINITIALIZE", "INCREMENTAL"))
    for change in (
        "INSERT INTO orders VALUES (6, 'r1', 60), (7, 'new', 7)",
        "UPDATE orders SET amount = amount + 1 WHERE id < 3",
        "DELETE FROM orders WHERE id IN (1, 4)",
        "MERGE INTO orders AS t USING (VALUES (0, 'r2', 5), (8, 'r0', 8)) AS s(id, region, amount) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET region = s.region, amount = s.amount WHEN NOT MATCHED THEN INSERT *",
    ):
        far.sql(change)
        assert far.refresh()["totals"].jobs == 0
        assert_fresh(far, "totals", "INCREMENTAL")
    far.sql("DROP MATERIALIZED VIEW totals")
    far.sql("DROP TABLE orders")
    assert [info.name for info in files_of(f"{far.path}/tables").listing()] == []
    far.sql("CREATE TABLE orders (id INT)")
    assert newest(path_of(far, "orders")).version == 0


@pytest.mark.parametrize("server", [kind for kind in KINDS if kind != "hdfs"], indirect=True)
def test_a_tiny_refresh_costs_a_handful_of_round_trips(far: penstock.Database, store: Kind) -> None:
    front = store.front
    assert front is not None
    orders(far)
    far.sql("CREATE MATERIALIZED VIEW large AS SELECT region, total FROM totals WHERE total > 1")
    far.sql("CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n, SUM(total) AS total FROM large")
    far.refresh()
    with front.noted() as insert:
        far.sql("INSERT INTO orders VALUES (100, 'r1', 70)")
    assert kinds(insert) == {"LIST": 1, "PUT": 2}  # its newest version; the file, the commit
    with front.noted() as refresh:
        report = far.refresh()
    assert [view.action for view in report.values()] == ["INCREMENTAL"] * 3
    assert kinds(refresh) == {"LIST": 1, "HEAD": 3, "PUT": 6}  # of each view: nothing follows; the file, the commit
    with front.noted() as nothing:
        far.refresh()
    assert kinds(nothing) == {"LIST": 1}
    for view in ("totals", "large", "counted"):
        assert_fresh(far, view)


def test_rows_are_marked_as_deleted(far: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.apply.cheaper", lambda **_: "PATCH")
    monkeypatch.setattr("penstock.frames.limits.SMALL_TABLE_ROWS", 1)
    monkeypatch.setattr("penstock.storage.deletion_vectors.LARGEST_INLINE", 1)
    orders(far, 90)
    far.sql("CREATE MATERIALIZED VIEW each AS SELECT id, amount FROM orders")
    far.sql("UPDATE orders SET amount = 0 WHERE id IN (5, 17)")
    assert far.refresh()["each"].strategy == "PATCH"
    FILES.clear()
    assert sum(map(len, newest(path_of(far, "each")).deleted.values())) == 2
    assert_fresh(far, "each", "INCREMENTAL")
    assert_fresh(far, "totals", "INCREMENTAL")


def test_tables_that_others_write(store: Kind, db: penstock.Database, tmp_path: Path) -> None:
    """A warehouse on this machine reads a table in a store: what is appended, and what is written anew."""
    place = f"{store.place}/{tmp_path.name}/outside".replace("s3://", "s3a://")
    write_deltalake(place, pa.table({"k": [1, 2], "x": [10, 20]}))
    db.register_table("outside", place)
    db.create_view("v", "SELECT k, SUM(x) AS x FROM outside GROUP BY k")
    write_deltalake(place, pa.table({"k": [1, 3], "x": [1, 3]}), mode="append")
    db.refresh()
    assert_fresh(db, "v", "INCREMENTAL")
    DeltaTable(place).delete("k = 2")
    db.refresh()
    assert_fresh(db, "v", "INCREMENTAL")
    DeltaTable(place).create_checkpoint()
    FILES.clear()
    write_deltalake(place, pa.table({"k": [9], "x": [9]}), mode="overwrite")
    db.refresh()
    assert_fresh(db, "v", "INCREMENTAL")
    assert Snapshot(place).rows == 1


def test_a_transaction_is_seen_as_a_whole(far: penstock.Database) -> None:
    orders(far)
    far.sql("CREATE TABLE log (what STRING)")
    with far.transaction() as tx:
        tx.sql("UPDATE orders SET amount = 100 WHERE id = 1")
        tx.sql("INSERT INTO log VALUES ('raised')")
        assert far.read_here("SELECT * FROM log").rows.rows().num_rows == 0
    assert far.read_here("SELECT * FROM log").rows.rows().num_rows == 1
    far.refresh()
    assert_fresh(far, "totals", "INCREMENTAL")

    def late() -> None:
        with far.transaction() as tx:
            tx.sql("INSERT INTO log VALUES ('late')")
            far.sql("INSERT INTO log VALUES ('first')")

    with pytest.raises(penstock.ConflictError, match="first one wins"):
        late()
    assert files_of(f"{far.path}/tx").listing() == []


def test_an_immediate_view_follows(far: penstock.Database) -> None:
    orders(far)
    far.sql("CREATE MATERIALIZED VIEW now REFRESH IMMEDIATE AS SELECT COUNT(*) AS n FROM orders")
    far.sql("INSERT INTO orders VALUES (10, 'r1', 1)")
    assert_fresh(far, "now", "INCREMENTAL")


def test_what_a_crash_left_is_undone(far: penstock.Database) -> None:
    """A commit that was not published."""
    orders(far)
    path = path_of(far, "totals")
    published = newest(path)
    gone = [{"remove": {"path": path_, "dataChange": True, "size": add["size"], "deletionTimestamp": 1}}
            for path_, add in published.state.adds.items()]  # fmt: skip
    put(path, published.version + 1, [said("WRITE"), *gone])
    FILES.clear()
    far.sql("INSERT INTO orders VALUES (10, 'r1', 1)")
    far.refresh()
    assert_fresh(far, "totals", "INCREMENTAL")


def test_expired_files_go_and_checkpoints_stay(far: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.vacuum._LEAST", timedelta(0))
    orders(far)
    far.checkpoint("first")
    first = newest(path_of(far, "totals"))
    for number in range(10, 14):
        far.sql(f"INSERT INTO orders VALUES ({number}, 'r1', {number})")
        far.refresh()
    far.drop_checkpoint("first")
    far.checkpoint("second")
    far.set("retention", "0 seconds")
    before = len(files_of(path_of(far, "totals")).listing())
    freed = far.vacuum()
    assert freed.files == before - len(files_of(path_of(far, "totals")).listing())
    assert_fresh(far, "totals", "INCREMENTAL")
    far.restore("second")
    far.refresh()
    assert_fresh(far, "totals")
    assert first.version < newest(path_of(far, "totals")).version


def test_another_process_sees_the_same(
    far: penstock.Database, spark: SparkSession, store: Kind, tmp_path: Path
) -> None:
    orders(far)
    often = "TBLPROPERTIES ('delta.checkpointInterval' = '20')"
    far.sql(f"CREATE MATERIALIZED VIEW often {often} AS SELECT region, COUNT(*) AS n FROM orders GROUP BY region")
    for number in range(100, 145):  # over two checkpoints of the view's log
        far.sql(f"INSERT INTO orders VALUES ({number}, 'r1', 1)")
        far.refresh()
    names = [info.name for info in files_of(path_of(far, "often")).listing("_delta_log")]
    assert sum(name.endswith(".checkpoint.parquet") for name in names) == 2
    far.close()
    FILES.clear()
    with opened(spark, store, tmp_path) as again:
        again.sql("UPDATE orders SET amount = 7 WHERE id > 140")
        again.sql("INSERT INTO orders VALUES (200, 'r2', 1)")
        again.refresh()
        assert_fresh(again, "totals", "INCREMENTAL")
        assert_fresh(again, "often", "INCREMENTAL")


def test_a_document_is_read_by_its_key(far: penstock.Database) -> None:
    far.sql("CREATE TABLE users (pk_user INT, name STRING)")
    far.sql("INSERT INTO users VALUES (1, 'Ada'), (2, 'Bob')")
    far.sql("CREATE TABLE tv_user AS SELECT pk_user, jsonb_build_object('name', name) AS data FROM users")
    far.sql("UPDATE users SET name = 'Eve' WHERE pk_user = 2")
    far.refresh()
    assert far.get("tv_user", pk_user=2)["data"] == {"name": "Eve"}


def test_eight_writers_lose_nothing(far: penstock.Database) -> None:
    """Each statement is computed again as often as another was first."""
    orders(far)

    def write(who: int) -> None:
        for number in range(5):
            far.sql(f"INSERT INTO orders VALUES ({1000 * who + number}, 'w{who}', 1)")
            far.sql(f"UPDATE orders SET amount = amount + 1 WHERE id = {1000 * who + number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(1, 9)))
    FILES.clear()
    assert newest(path_of(far, "orders")).version == 1 + 8 * 10
    assert newest(path_of(far, "orders")).rows == 6 + 8 * 5
    far.refresh()
    assert_fresh(far, "totals", "INCREMENTAL")
    rows = far.read_here("SELECT region, total FROM totals").rows.rows().to_pylist()
    assert {row["c0"]: row["c1"] for row in rows}["w3"] == 10


def test_a_writer_that_comes_between_wins(far: penstock.Database) -> None:
    orders(far)
    with between("commit", 1, lambda: far.sql("INSERT INTO orders VALUES (50, 'r1', 50)")):
        far.sql("UPDATE orders SET amount = 0 WHERE id >= 5")
    rows = far.read_here("SELECT id, amount FROM orders WHERE id >= 5").rows.rows().to_pylist()
    assert Counter(map(tuple, (row.values() for row in rows))) == Counter([(5, 0), (50, 0)])


def test_secrets_stay_in_memory(
    far: penstock.Database, store: Kind, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    orders(far)
    far.refresh()
    told = repr(far) + str(far.explain("totals")) + str(far.status()) + str(far.history()) + caplog.text
    kept = b"".join(file.read_bytes() for file in tmp_path.glob("catalog.sqlite*"))
    for secret in store.secrets:
        assert secret not in told
        assert secret.encode() not in kept
        assert not any(secret.encode() in files_of(far.path).read(info.name) for info in files_of(far.path).listing())
