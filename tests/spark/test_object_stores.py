"""A warehouse in an object store, where Spark plans and reads nothing: its session knows no such store. All rows are
written, read and refreshed on the driver.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from http_server import Server
from pyspark.sql import SparkSession

import penstock
from forking import Writers, transfer
from kinds_of_stores import KINDS, Kind, running
from oracle import assert_fresh
from penstock.storage.delta_log import Snapshot, newest
from penstock.storage.file_cache import FILES
from penstock.storage.files import files_of
from penstock.storage.log_writer import put, said
from postgres import new_database
from races import between


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Kind]:
    with running(request.param) as found:
        yield found


on_s3 = pytest.mark.parametrize("server", ["s3"], indirect=True)


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


@on_s3
def test_another_engine_reads_and_what_was_is_read(far: penstock.Database, store: Kind) -> None:
    orders(far)
    before = far.refresh().epoch
    far.sql("INSERT INTO orders VALUES (10, 'r1', 100)")
    epoch = far.refresh().epoch
    assert before is not None
    options = {**store.options, "AWS_ALLOW_HTTP": "true"}
    seen = DeltaTable(path_of(far, "totals"), storage_options=options).to_pyarrow_table(columns=["region", "total"])
    assert {row["region"]: row["total"] for row in seen.to_pylist()} == {"r0": 3, "r1": 105, "r2": 7}
    for at, total in ((before, 5), (epoch, 105)):
        moment = far.snapshot(at)
        node = moment.moment.world.nodes["totals"]
        rows = Snapshot(node.path, node.version).rows
        assert rows == 3
        found = far.read_here(f"SELECT region, total FROM totals AS OF EPOCH {at}")
        assert found is None or {"c0": "r1", "c1": total} in found.rows.rows().to_pylist()


@on_s3
def test_a_transaction_copies_only_what_it_wrote(far: penstock.Database, store: Kind) -> None:
    far.sql("CREATE TABLE parts (id INT, amount INT)")
    for number in range(12):
        far.sql(f"INSERT INTO parts VALUES ({number}, {number}), ({number + 100}, 1)")
    far.sql("DELETE FROM parts WHERE id = 103")
    path = path_of(far, "parts")
    before = set(newest(path).state.adds)
    with store.front.noted() as asked, far.transaction() as tx:
        tx.sql("UPDATE parts SET amount = 1000 WHERE id IN (1, 5)")
        tx.sql("DELETE FROM parts WHERE id = 102")
        tx.sql("INSERT INTO parts VALUES (200, 2)")
    copied = [
        name for method, name in asked if method == "PUT" and "/tables/parts" in name and "_delta_log" not in name
    ]
    assert len(copied) == 2, "the updated rows and the new one; marks are in the log"
    assert {name for name in newest(path).state.adds if name in before} == before, "as the table calls them"
    rows = far.read_here("SELECT id, amount FROM parts WHERE id IN (1, 5, 102, 103, 200)").rows.rows().to_pylist()
    assert Counter(tuple(row.values()) for row in rows) == Counter([(1, 1000), (5, 1000), (200, 2)])
    assert DeltaTable(path).version() == newest(path).version
    assert files_of(f"{far.path}/tx").listing() == []


@on_s3
def test_two_processes_share_a_warehouse(
    store: Kind, spark: SparkSession, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its catalog is on PostgreSQL. Writers make transactions without Spark, and some of them die."""
    place, catalog = f"{store.place}/{tmp_path.name}/shared", new_database(postgres)
    with penstock.connect(place, spark, catalog) as db, closing(Writers()) as writers:
        for name in "ab":
            db.sql(f"CREATE TABLE {name} (id INT, amount INT)")
            db.sql(f"INSERT INTO {name} VALUES (1, 100), (2, 50)")
        db.sql("CREATE MATERIALIZED VIEW both_ab REFRESH IMMEDIATE AS SELECT * FROM a UNION ALL SELECT * FROM b")

        def total() -> int:
            rows = db.read_here("SELECT id, amount FROM both_ab").rows.rows().to_pylist()
            return sum(row["c1"] for row in rows)

        order = {"warehouse": place, "catalog": catalog}
        for deadly in (7, 14, 20):
            assert writers.run(**order, times=1, seed=deadly, die_at=deadly) == -9
            transfer(db, 1)
            assert total() == 300
        writers.begin(**order, times=3, seed=1, writers=2)
        for _ in range(5):
            assert total() == 300
        assert [writers.ended(), writers.ended()] == [0, 0]
        assert total() == 300
        assert_fresh(db, "both_ab", "INCREMENTAL")
    with penstock.connect(place, spark, catalog) as again:
        assert_fresh(again, "both_ab", "INCREMENTAL")


@on_s3
def test_from_the_shell_and_over_http(far: penstock.Database, store: Kind, tmp_path: Path) -> None:
    """What opens the store is in the environment; nothing starts Java."""
    orders(far)
    place = {"PENSTOCK_WAREHOUSE": far.path, "PENSTOCK_CATALOG": far.catalog_url, "JAVA_HOME": str(tmp_path / "none")}

    def shell(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from penstock.cli import run; run()", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **place})

    assert shell("sql", "INSERT INTO orders VALUES (10, 'r1', 100)").returncode == 0
    (told,) = json.loads(shell("status", "--json").stdout)
    assert (told["name"], told["stale"]) == ("totals", True)
    assert "INCREMENTAL" in shell("refresh").stdout
    assert "105" in shell("sql", "SELECT region, total FROM totals").stdout
    assert_fresh(far, "totals", "INCREMENTAL")
    given = ("-w", f"shop={far.path}", "--catalog", f"shop={far.catalog_url}", "--state", tmp_path / "server.sqlite")
    server = Server(*given)
    try:
        assert server.sql("UPDATE orders SET amount = 0 WHERE id = 10").status == 200
        assert server.ask("POST", "/api/v1/refresh", {}).status == 200
        rows = server.sql("SELECT region, total FROM totals", "query").json["result"]
        assert {"region": "r1", "total": 5} in rows
    finally:
        server.stop()
    nowhere = shell("--catalog", "", "sql", "SELECT 1")
    assert nowhere.returncode == 1


@on_s3
def test_a_store_that_refuses(
    far: penstock.Database, store: Kind, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so in a sentence, which names no key, though S3 repeats what it was asked with; then all goes on."""
    orders(far)
    far.refresh()
    said = []

    def told(do: Callable[[], object]) -> None:
        with pytest.raises(penstock.PenstockError) as problem:
            do()
        said.append(str(problem.value))

    far.sql("INSERT INTO orders VALUES (10, 'r1', 100)")
    store.front.refusing = "403 Forbidden"
    try:
        for clear in (False, True):
            if clear:
                FILES.clear()
            told(far.refresh)
            told(lambda: far.sql("INSERT INTO orders VALUES (11, 'r1', 100)"))
            told(lambda: far.sql("CREATE TABLE another (id INT)"))
            told(lambda: far.register_table("others", f"{store.place}/others"))
            told(far.vacuum)
            assert [view.name for view in far.status()] == ["totals"]
        told(lambda: far.explain("totals"))
        told(lambda: far.read_here("SELECT * FROM orders"))
        said += [str(record.error) for record in far.history()]
    finally:
        store.front.refusing = ""
    far.refresh()
    assert_fresh(far, "totals", "INCREMENTAL")
    for options, text in (
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "there is no answer from http://127.0.0.1:9"),
        ({}, r"404 Not Found \(NoSuchBucket\)"),
    ):
        far.close()
        with penstock.connect(
            "s3://none/w", catalog=f"sqlite:///{tmp_path}/no.sqlite", storage_options=options
        ) as none:
            with pytest.raises(penstock.WarehouseError, match=text) as problem:
                none.sql("CREATE TABLE t (id INT)")
            said.append(str(problem.value))
    assert "403 Forbidden (InvalidAccessKeyId)" in "".join(said)
    assert "Put its files back" not in "".join(said), "they are there"
    kept = b"".join(file.read_bytes() for file in tmp_path.glob("*.sqlite*"))
    for secret in (store.options["AWS_ACCESS_KEY_ID"], store.options["AWS_SECRET_ACCESS_KEY"]):
        assert secret not in "".join(said) + caplog.text
        assert secret.encode() not in kept


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
