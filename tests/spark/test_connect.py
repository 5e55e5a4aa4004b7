"""What is other over Spark Connect: frames are plans that the server reads anew, and the server may be gone."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from connect_server import OVER_CONNECT, connect_server
from oracle import rows
from penstock.cli.interrupt import interruptible

pytestmark = pytest.mark.skipif(not OVER_CONNECT, reason="PENSTOCK_TEST_CONNECT is not set: make test-connect sets it")


def test_a_frame_keeps_the_rows_of_its_epoch(db: penstock.Database) -> None:
    """Also that of a table that only Delta's own reader can read: its columns have other names in its files."""
    db.sql("CREATE TABLE t (id INT, x INT) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    db.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
    db.create_view("v", "SELECT id, x + 1 AS y FROM t")
    frames = [db.table("v"), db.sql("SELECT id, y FROM v"), db.table("t").selectExpr("id", "x + 1")]
    frames.append(db.sql("SELECT t.id, v.y FROM t JOIN v ON t.id = v.id"))  # type: ignore[arg-type]
    db.sql("DELETE FROM t WHERE id = 1")
    db.sql("INSERT INTO t VALUES (3, 30)")
    db.refresh()
    for frame in frames:
        assert rows(frame) == [(1, 11), (2, 21)]  # type: ignore[arg-type]
    assert rows(db.table("v")) == [(2, 21), (3, 31)]


def test_braces_in_a_query_are_text(db: penstock.Database) -> None:
    """Frames are handed over by names in braces; what the user wrote in braces is the user's."""
    db.sql("CREATE TABLE t (id INT)")
    db.sql("INSERT INTO t VALUES (1)")
    db.create_view("v", "SELECT id, '{id} {{x}} }' AS s FROM t")
    db.sql("INSERT INTO t VALUES (2)")
    db.refresh()
    assert [row.s for row in db.table("v").collect()] == ["{id} {{x}} }"] * 2
    assert db.verify()[0].outcome == "EQUAL"


def test_jobs_are_not_known(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT)")
    db.create_view("v", "SELECT id FROM t")
    db.sql("INSERT INTO t VALUES (2)")
    assert db.refresh()["v"].jobs is None
    assert db.refresh()["v"].jobs == 0  # there was nothing to do
    assert db.sql("SHOW REFRESH HISTORY FOR v LIMIT 2").select("jobs").collect() == [(0,), (None,)]  # type: ignore[union-attr]
    assert "Spark job" not in str(db.explain("v"))


def test_an_error_is_sparks_message_without_its_stack(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (id INT, s STRING)")
    with pytest.raises(penstock.QueryError) as found:
        db.sql("SELECT nothing FROM t")
    assert "`nothing` cannot be resolved" in str(found.value)
    db.create_view("v", "SELECT id, CAST(s AS INT) AS n FROM t")
    db.sql("INSERT INTO t VALUES (1, 'x')")
    with pytest.raises(penstock.RefreshError) as failed:
        db.refresh()
    assert '\'x\' of the type "STRING" cannot be cast to "INT"' in str(failed.value)
    for problem in (found.value, failed.value):
        assert "stacktrace" not in str(problem)
        assert "org.apache" not in str(problem)


def test_ctrl_c_ends_what_the_server_does(db: penstock.Database) -> None:
    begun = threading.Event()

    def endless() -> None:
        begun.set()
        db.spark.sql("SELECT SUM(hash(id)) FROM range(1000000000000)").collect()

    def interrupt_once_it_runs() -> None:
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    # A shell starts what runs behind it with this signal ignored, and then Python does not listen either.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt_once_it_runs, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            interruptible(db, endless)
    finally:
        signal.signal(signal.SIGINT, before)
    assert db.spark.range(3).count() == 3


def test_a_server_that_is_gone_is_told_in_one_sentence(tmp_path: Path) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    with connect_server() as address:
        session = SparkSession.builder.remote(address).create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=1)])  # the usual ones take ten minutes
        db = penstock.connect(tmp_path / "warehouse", spark=session)
        db.sql("CREATE TABLE t (id INT)")
        db.create_view("v", "SELECT id FROM t")
        db.sql("INSERT INTO t VALUES (1)")
    for attempt in (db.refresh, lambda: db.sql("SELECT * FROM t"), lambda: db.sql("INSERT INTO t VALUES (2)")):
        with pytest.raises(penstock.PenstockError) as told:
            attempt()
        assert "the Spark Connect server does not answer. Start it again" in str(told.value)
        assert "\n" not in str(told.value)
    session.stop()
    with pytest.raises(penstock.SparkError, match="was stopped"):
        db.sql("SELECT * FROM t")
    db.close()
