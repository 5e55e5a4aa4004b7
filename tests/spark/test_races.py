"""Several processes on one warehouse: whoever comes first, views equal their queries, and nothing that is seen changes.

Two databases in one process stand for two processes; where a process must really end or stop, there are two.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from catalogs import catalog_of, connected
from oracle import assert_all_fresh, assert_fresh, rows
from penstock import points
from penstock.catalog.leases import Leases
from penstock.storage import row_change
from penstock.storage.delta_log import Snapshot, check_files
from races import between, let_leases_run_out

pytestmark = pytest.mark.catalogs

COUNTS = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"


@pytest.fixture
def other(spark: SparkSession, warehouse: Path) -> Iterator[penstock.Database]:
    with connected(warehouse) as database:
        yield database


@pytest.fixture
def t(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE t (k INT)")
    db.sql("INSERT INTO t VALUES (1), (2), (2)")
    return db


def when(text: str, do: Callable[[], object]) -> Callable[[str], None]:
    """A progress callback that does something once, at the first words that begin so."""
    done: list[bool] = []

    def progress(said: str) -> None:
        if said.startswith(text) and not done:
            done.append(True)
            do()

    return progress


def in_a_thread(do: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    came: list[object] = []

    def run() -> None:
        try:
            came.append(do())
        except Exception as problem:
            came.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, came


# -- epochs -----------------------------------------------------------------------------------------------------------


def test_an_epoch_that_took_longer_comes_after_one_that_was_published_meanwhile(
    t: penstock.Database, other: penstock.Database, warehouse: Path
) -> None:
    for statement in (
        f"CREATE MATERIALIZED VIEW a1 AS {COUNTS}", "CREATE MATERIALIZED VIEW a2 AS SELECT SUM(n) AS n FROM a1",
        "CREATE TABLE s (k INT)", "CREATE MATERIALIZED VIEW b AS SELECT COUNT(*) AS n FROM s",
        "INSERT INTO t VALUES (7)", "INSERT INTO s VALUES (7)",
    ):  # fmt: skip
        t.sql(statement)
    seen: list[int] = []
    then = rows(t.table("a1"))
    meanwhile = when("refreshing a2", lambda: seen.append(other.refresh("b").epoch))
    with connected(warehouse, progress=meanwhile) as slow:
        epoch = slow.refresh("a2").epoch
    assert epoch == seen[0] + 1
    assert rows(t.table("a1", epoch=seen[0])) == then, "what epoch b showed, it still shows"
    assert rows(t.changes("a1", since=seen[0])) == [(7, 1, 1)]
    assert_all_fresh(t, "INCREMENTAL")


def test_a_watermark_does_not_move_back(db: penstock.Database, other: penstock.Database, warehouse: Path) -> None:
    db.sql("CREATE TABLE t (at TIMESTAMP, v INT, WATERMARK FOR at AS at)")
    db.sql("INSERT INTO t VALUES (TIMESTAMP'2024-01-01 10:00:00', 1)")
    db.create_view("x", "SELECT COUNT(*) AS n FROM t")
    db.create_view("y", "SELECT SUM(v) AS n FROM t")
    db.sql("INSERT INTO t VALUES (TIMESTAMP'2024-01-01 11:00:00', 1)")

    def further() -> None:
        other.sql("INSERT INTO t VALUES (TIMESTAMP'2024-01-01 12:00:00', 1)")
        other.refresh("y")

    with connected(warehouse, progress=when("refreshing x", further)) as slow:
        slow.refresh("x")
    (mark,) = [row["watermark"] for row in db.sql("SHOW WATERMARKS").collect() if row["name"] == "t"]
    assert str(mark).startswith("2024-01-01 12:00")
    with db.snapshot() as newest:
        assert newest.table("t").count() == newest.table("y").collect()[0]["n"] == 3


# -- leases -----------------------------------------------------------------------------------------------------------


def test_who_was_paused_for_too_long_cannot_publish(t: penstock.Database, other: penstock.Database) -> None:
    t.create_view("v", "SELECT COUNT(*) AS n FROM t")
    t.create_view("w", "SELECT n AS m FROM v")
    t.sql("INSERT INTO t VALUES (3)")

    def taken_over() -> int:
        let_leases_run_out(t)
        other.sql("INSERT INTO t VALUES (4)")
        return other.refresh().epoch

    # Before publishing: a look at the catalog, leases, another look, a lease checked for each of the two commits.
    with between(points.TRANSACTION, 6, taken_over) as came, pytest.raises(penstock.RefreshError) as problem:
        t.refresh()
    assert "taken over by another process" in str(problem.value)
    assert {view.reason for view in problem.value.report.values()} == {"LEASE_LOST"}
    assert t.history("v", 1)[0].reason == "LEASE_LOST"
    assert [rows(t.table(name)) for name in ("v", "w")] == [[(5,)], [(5,)]]
    assert rows(t.table("v", epoch=came[0])) == [(5,)]
    t.sql("INSERT INTO t VALUES (5)")
    t.refresh()
    assert_all_fresh(t, "INCREMENTAL")


def test_a_lease_that_ran_out_is_still_good_if_nobody_wanted_it(t: penstock.Database) -> None:
    t.create_view("v", "SELECT COUNT(*) AS n FROM t")
    t.sql("INSERT INTO t VALUES (3)")
    with between(points.COMMIT, 1, lambda: let_leases_run_out(t)):
        t.refresh()
    assert_fresh(t, "v", "INCREMENTAL")


@pytest.mark.parametrize(
    "statement", ["INSERT INTO t VALUES (7)", "UPDATE t SET k = 8 WHERE k = 2", "DELETE FROM t WHERE k = 2"]
)
def test_a_table_made_anew_is_not_written_by_a_statement_on_the_one_before(
    t: penstock.Database, other: penstock.Database, statement: str
) -> None:
    def meanwhile() -> None:
        other.sql("DROP TABLE t")
        other.sql("CREATE TABLE t (k INT)")
        other.sql("INSERT INTO t VALUES (5)")

    with (
        pytest.raises(penstock.NotFoundError, match="was dropped and created again"),
        between(points.COMMIT, 1, meanwhile),
    ):
        t.sql(statement)
    assert [tuple(row) for row in t.table("t").collect()] == [(5,)]
    t.create_view("counts", COUNTS)
    t.sql("INSERT INTO t VALUES (6)")
    t.refresh()
    assert_fresh(t, "counts", "INCREMENTAL")


@pytest.mark.parametrize("moment", [1, 2])
def test_a_table_dropped_during_an_insert(
    t: penstock.Database, other: penstock.Database, warehouse: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Before its rows are written, or after: it says so, and leaves nothing where the table was."""
    write = row_change.write_table

    def dropping(*arguments: Any) -> Any:
        if moment == 1:
            other.sql("DROP TABLE t")
        written = write(*arguments)
        if moment == 2:
            other.sql("DROP TABLE t")
        return written

    monkeypatch.setattr(row_change, "write_table", dropping)
    with pytest.raises(penstock.NotFoundError, match="'t' was dropped meanwhile"):
        t.sql("INSERT INTO t VALUES (7)")
    assert not (warehouse / "tables" / "t").exists()


def test_two_who_vacuum_at_once_delete_what_was_left_and_not_what_came_in_its_place(
    t: penstock.Database, other: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find the table of a dropped view; the second comes to it when another view has its name and place."""
    monkeypatch.setattr("penstock.engine.vacuum._LEAST", timedelta(0))
    t.create_view("counts", COUNTS)
    before = t._catalog.world().nodes["counts"].path
    t.sql("DROP MATERIALIZED VIEW counts")

    def meanwhile() -> None:
        other.vacuum()
        assert not Path(before).exists()
        other.create_view("counts", COUNTS)
        assert other._catalog.world().nodes["counts"].path == before

    with between(points.DELETION, 1, meanwhile):
        t.vacuum()
    t.sql("INSERT INTO t VALUES (3)")
    t.refresh()
    assert_fresh(t, "counts", "INCREMENTAL")


def test_vacuum_spares_what_a_writer_may_still_commit(
    t: penstock.Database, other: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease has run out, but it lives."""
    monkeypatch.setattr("penstock.engine.vacuum._LEAST", timedelta(0))
    t.create_view("v", COUNTS)
    t.sql("INSERT INTO t VALUES (3)")
    t.set("retention", "0 seconds")

    def vacuumed() -> None:
        let_leases_run_out(t)
        assert other.vacuum().files == 0

    with between(points.COMMIT, 1, vacuumed):
        t.refresh()
    assert_fresh(t, "v", "INCREMENTAL")


STOPPED = """
    import os, signal, sys
    import penstock
    from penstock import points

    def stop(point):
        if point == points.COMMIT:
            points.listener = None
            print("stopped", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)

    db = penstock.connect(sys.argv[1], catalog=sys.argv[2] or None)
    db.spark
    points.listener = stop
    try:
        print(db.refresh())
    except penstock.RefreshError as problem:
        print(problem)
    db.close()
"""


def test_a_process_that_is_stopped_and_continued(t: penstock.Database, warehouse: Path) -> None:
    t.create_view("v", "SELECT COUNT(*) AS n FROM t")
    t.sql("INSERT INTO t VALUES (3)")
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(STOPPED), str(warehouse), catalog_of(warehouse) or ""],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "stopped\n"
        let_leases_run_out(t)
        t.sql("INSERT INTO t VALUES (4)")
        t.refresh()
        os.kill(child.pid, signal.SIGCONT)
        said, _ = child.communicate()
    finally:
        child.kill()
    assert "another" in said, "it lost either the version that it wanted to write, or its lease"
    assert rows(t.table("v")) == [(5,)]
    t.sql("INSERT INTO t VALUES (5)")
    t.refresh()
    assert_fresh(t, "v", "INCREMENTAL")


# -- definitions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True], ids=["one name", "one hidden node"])
def test_two_create_at_once(t: penstock.Database, warehouse: Path, shared: bool) -> None:
    """The second waits, and finds what the first has made."""
    query = f"SELECT g.k, g.n, t.k AS j FROM ({COUNTS}) g JOIN t ON t.k = g.k"
    waits = threading.Event()
    with connected(warehouse, progress=lambda text: waits.set() if "waiting" in text else None) as second:
        name = "w" if shared else "v"
        found: list[tuple[threading.Thread, list[object]]] = []

        def begin() -> None:
            statement = f"CREATE MATERIALIZED VIEW IF NOT EXISTS {name} AS {query}"
            found.append(in_a_thread(lambda: second.sql(statement)))
            assert waits.wait(60)

        with connected(warehouse, progress=when("filling", begin)) as first:
            first.sql(f"CREATE MATERIALIZED VIEW IF NOT EXISTS v AS {query}")
        thread, came = found[0]
        thread.join()
    assert ("exists already" in str(came[0])) != shared
    assert ("created: " in str(came[0])) == shared
    assert_all_fresh(t)
    t.sql("INSERT INTO t VALUES (2)")
    t.refresh()
    assert_all_fresh(t, "INCREMENTAL")


def test_two_create_a_table_at_once(db: penstock.Database, other: penstock.Database) -> None:
    came: list[tuple[threading.Thread, list[object]]] = []
    statement = "CREATE TABLE IF NOT EXISTS t (k INT)"
    # A look at the catalog, one for the setting, the lease, another look: by now the name is ours alone.
    with between(points.TRANSACTION, 5, lambda: came.append(in_a_thread(lambda: other.sql(statement)))):
        assert "created" in str(db.sql(statement))
    came[0][0].join()
    assert "exists already" in str(came[0][1][0])
    db.sql("INSERT INTO t VALUES (1)")
    assert rows(other.table("t")) == [(1,)]


def test_a_view_is_replaced_before_its_refresh_has_the_lease(t: penstock.Database, other: penstock.Database) -> None:
    t.create_view("v", COUNTS, policy="FULL")
    statement = "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, 100 * COUNT(*) AS n FROM t GROUP BY k"
    with between(points.TRANSACTION, 2, lambda: other.sql(f"{statement} REFRESH POLICY FULL")):
        t.refresh()
    assert rows(t.table("v")) == [(1, 100), (2, 200)]
    assert_fresh(t, "v", "FULL")


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("DROP MATERIALIZED VIEW x", ["y", "z"]),
        ("DROP MATERIALIZED VIEW y CASCADE", ["x"]),
        ("CREATE OR REPLACE MATERIALIZED VIEW y AS SELECT 10 * k AS k FROM t WITH NO DATA", ["x", "y", "z"]),
        ("CREATE OR REPLACE MATERIALIZED VIEW y AS SELECT 10 * k AS k FROM t", ["x", "y", "z"]),
    ],
)
def test_what_changes_a_view_waits_for_its_refresh(
    t: penstock.Database, warehouse: Path, statement: str, left: list[str]
) -> None:
    t.create_view("x", "SELECT COUNT(*) AS n FROM t")
    t.create_view("y", "SELECT k FROM t")
    t.create_view("z", "SELECT k FROM y")
    t.sql("INSERT INTO t VALUES (7)")
    waits, found = threading.Event(), list[tuple[threading.Thread, list[object]]]()
    with connected(warehouse, progress=lambda text: waits.set() if "waiting" in text else None) as second:

        def begin() -> None:
            found.append(in_a_thread(lambda: second.sql(statement)))
            assert waits.wait(60)

        with connected(warehouse, progress=when("refreshing z", begin)) as first:
            report = first.refresh()
        found[0][0].join()
    assert {view.action for view in report.values()} == {"INCREMENTAL"}
    assert not isinstance(found[0][1][0], Exception), found[0][1][0]
    assert [status.name for status in t.status()] == left
    t.refresh()
    assert_all_fresh(t)


def test_what_waits_for_too_long_says_for_whom(t: penstock.Database, other: penstock.Database) -> None:
    t.create_view("v", COUNTS)
    t.set("lock_timeout", "0 seconds")
    leases, elsewhere = Leases(other._catalog, ["v"]), copy_context()  # what is called from here does not wait for here
    elsewhere.run(leases.__enter__)
    try:
        with pytest.raises(penstock.BusyError, match=rf"'v' is being changed or refreshed by process {os.getpid()} on"):
            t.sql("DROP MATERIALIZED VIEW v")
    finally:
        elsewhere.run(leases.__exit__)
    assert_fresh(t, "v")


def test_a_listener_that_fails_stops_nothing(t: penstock.Database, warehouse: Path) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with connected(warehouse, progress=when("filling", fail)) as db:
        db.create_view("v", COUNTS)
    assert_fresh(t, "v", "FULL")


def test_a_view_that_fails_leaves_no_directory_and_no_other_loses_one(t: penstock.Database) -> None:
    query = f"SELECT g.k, g.n, t.k AS j FROM ({COUNTS}) g JOIN t ON t.k = g.k"
    t.create_view("v", query, initialize=False)
    with pytest.raises(penstock.PenstockError, match=r"(?i)divi"):
        t.sql(f"CREATE MATERIALIZED VIEW w AS SELECT k, 1 DIV (n - n) AS e FROM ({query})")
    assert not (Path(t.path) / "views" / "w").exists()
    t.refresh()
    assert_fresh(t, "v", "FULL")
    for node in t._catalog.world().nodes.values():
        check_files(Snapshot(node.path, node.version))
