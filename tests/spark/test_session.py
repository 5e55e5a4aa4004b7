"""A way to Spark that starts it only when it must, and a session of the user's that is left as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from pyspark.sql import SparkSession

import penstock
from connect_server import OVER_CONNECT, without_connect
from oracle import assert_fresh
from penstock.engine.jobs import counting_jobs
from penstock.engine.session import Spark
from penstock.frames.settings import ANSI, DEFAULTS, STORED, USUAL, ZONE, Settings, in_force, own, under
from penstock.frames.spark.session import SparkOnDemand, over_connect

BERLIN = Settings.of({ZONE: "Europe/Berlin"})

LAZY = """
    import threading
    from penstock.engine.jobs import counting_jobs
    from penstock.engine.session import Spark
    from penstock.frames.settings import USUAL, ZONE, Settings, in_force, own, under

    berlin, kathmandu = Settings.of({ZONE: "Europe/Berlin"}), Settings.of({ZONE: "Asia/Kathmandu"})
    spark, other = Spark(None), Spark(None)
    waiting, seen = threading.Event(), []

    def computing_elsewhere():
        waiting.set()
        with under(other, kathmandu):
            seen.append((in_force(other)[ZONE], other.session().conf.get(ZONE)))

    thread = threading.Thread(target=computing_elsewhere)
    assert own(spark).settings == in_force(spark) == USUAL
    with under(spark, berlin), counting_jobs() as jobs:
        thread.start()
        assert in_force(spark) == berlin
        waiting.wait()
        assert not spark.started and not other.started and jobs() == 0 and not seen
        session = spark.session()
        assert spark.started and other.started and not seen
        assert session.conf.get(ZONE) == "Europe/Berlin"
        assert jobs() == 0
        session.range(10).repartition(2).count()
        assert jobs() > 0
    thread.join()
    assert seen == [("Asia/Kathmandu", "Asia/Kathmandu")]
    assert other.session() is session is spark.session()
    assert session.conf.get(ZONE) == "UTC" and own(spark).settings == USUAL and not own(spark).files
    spark.close()
    assert other.session().range(3).count() == 3
    other.close()
    assert not other.started
    print("all of it")
"""


@pytest.mark.skipif(OVER_CONNECT, reason="there is no embedded Spark beside a Spark Connect session")
def test_spark_starts_in_the_middle_and_gets_the_settings_that_are_in_force() -> None:
    """In a process of its own, where no test has started Spark before."""
    run = subprocess.run([sys.executable, "-c", dedent(LAZY)], capture_output=True, text=True, check=False)
    assert run.stdout.strip().endswith("all of it"), run.stderr


@pytest.mark.parametrize("name", ["SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"])
def test_where_all_is_set_up_for_connect_no_spark_is_embedded(tmp_path: Path, name: str) -> None:
    asking = [sys.executable, "-c", f"import penstock; penstock.connect({str(tmp_path)!r}).spark"]
    environment = without_connect() | {name: "sc://127.0.0.1:1"}
    run = subprocess.run(asking, capture_output=True, text=True, check=False, env=environment)
    assert "SparkError: this process is set up for Spark Connect" in run.stderr


def test_a_given_session_is_a_way_to_spark(spark: SparkSession) -> None:
    way = Spark(spark)
    assert isinstance(way, SparkOnDemand)
    assert way.started
    before = spark.conf.getAll
    with under(way, BERLIN):
        assert way.session() is spark
        assert spark.conf.get(ZONE) == "Europe/Berlin"
        with under(spark, BERLIN):  # who has the session takes turns with those who have a way to it
            assert in_force(way) == in_force(spark) == BERLIN
        assert spark.conf.get(ZONE) == "Europe/Berlin"
    assert spark.conf.getAll == before
    assert own(way) == own(spark)


def test_jobs_are_counted_or_not_known(spark: SparkSession) -> None:
    way = Spark(spark)
    with counting_jobs() as jobs:
        way.session().range(10).repartition(2).count()
        found = jobs()
    assert found is None if over_connect(spark) else found


def test_own_settings_follow_what_is_set(spark: SparkSession) -> None:
    """They are asked for one by one only if anything was set, or unset, since they were last."""
    before = spark.conf.get(ANSI, None)
    try:
        for value in ("false", "true", "false"):
            spark.conf.set(ANSI, value)
            assert own(spark).settings[ANSI] == value
    finally:
        spark.conf.unset(ANSI) if before is None else spark.conf.set(ANSI, before)
    assert own(spark).settings == USUAL


def test_the_embedded_session_has_the_usual_settings(spark: SparkSession) -> None:
    assert {name: spark.conf.get(name) for name in DEFAULTS} == DEFAULTS
    assert own(spark).files == {}


def test_the_users_session_is_left_as_it_was(spark: SparkSession, warehouse: Path) -> None:
    """Also where it reads and writes times in another way than views are kept, and while views have other settings."""
    theirs = {
        ZONE: "America/New_York", "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.datetime.java8API.enabled": "false", "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    }  # fmt: skip
    assert theirs.keys() - STORED.keys() == {ZONE}
    before = {name: spark.conf.get(name, None) for name in theirs}
    try:
        for name, value in theirs.items():
            spark.conf.set(name, value)
        with penstock.connect(warehouse, spark=spark) as db:
            _a_day_that_old_dates_do_not_have(db, spark)
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def _settings(spark: SparkSession) -> dict[str, str]:
    """All that is set, but for the version of the last commit, which Delta Lake notes there with every statement."""
    return {name: value for name, value in spark.conf.getAll.items() if "lastCommitVersion" not in name}


def _a_day_that_old_dates_do_not_have(db: penstock.Database, spark: SparkSession) -> None:
    given, views = _settings(spark), [row["tableName"] for row in spark.sql("SHOW TABLES").collect()]
    db.sql("CREATE TABLE days (id INT, d DATE)")
    db.sql("INSERT INTO days VALUES (1, DATE'1582-10-10'), (2, DATE'2026-01-01')")
    db.sql("CREATE MATERIALIZED VIEW kept AS SELECT d, COUNT(*) AS n FROM days GROUP BY d")
    db.sql("INSERT INTO days VALUES (3, DATE'1582-10-10'), (4, DATE'1582-10-10')")
    db.sql("DELETE FROM days WHERE id = 1")
    db.refresh()
    assert db.verify()[0].outcome == "EQUAL"
    assert _settings(spark) == given
    assert [row["tableName"] for row in spark.sql("SHOW TABLES").collect()] == views
    assert_fresh(db, "kept", "INCREMENTAL")


KILLED = """
    import os, signal, sys, tempfile, threading, time
    import penstock
    from penstock.engine.session import _embedded

    with penstock.connect(tempfile.mkdtemp()) as db:
        db.sql("CREATE TABLE t (k INT)")
        db.sql("INSERT INTO t VALUES (1), (2)")
        many = "SELECT COUNT(*) AS n FROM t JOIN range(400000) r ON pmod(hash(r.id), t.k) >= 0"
        db.sql(f"CREATE MATERIALIZED VIEW slow AS {many} REFRESH POLICY FULL")
        db.sql("CREATE MATERIALIZED VIEW quick AS SELECT k, COUNT(*) AS n FROM t GROUP BY k")
        db.sql("INSERT INTO t VALUES (3)")
        pid, jobs = _embedded._gateway.proc.pid, db.spark.sparkContext.statusTracker()

        def kill():
            while not jobs.getActiveJobsIds():
                time.sleep(0.002)
            os.kill(pid, signal.SIGKILL)

        threading.Thread(target=kill).start()
        try:
            db.refresh()
            raise AssertionError("nobody was killed")
        except penstock.RefreshError as problem:
            report = problem.report
            assert "Java process has ended" in str(problem), problem
        assert (report["quick"].action, report["slow"].fault) == ("INCREMENTAL", "SYSTEM")
        assert db.refresh()["slow"].action == "FULL"
        assert db.table("slow").first()["n"] == 1200000
        assert _embedded._gateway.proc.pid != pid and _embedded._users == 1
    assert not _embedded.running
    print("all of it")
"""


@pytest.mark.skipif(OVER_CONNECT, reason="there is no embedded Spark beside a Spark Connect session")
def test_a_jvm_that_is_killed_in_a_refresh_is_followed_by_another() -> None:
    run = subprocess.run([sys.executable, "-c", dedent(KILLED)], capture_output=True, text=True, check=False)
    assert run.stdout.strip().endswith("all of it"), run.stderr
