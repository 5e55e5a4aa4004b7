"""Transactions and IMMEDIATE views: what was written and what follows from it are seen together, or not at all.

Views are created once, with Spark; everything else, but for the oracle, needs none.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock
from catalogs import catalog_of
from forking import Writers, transfer
from oracle import assert_all_fresh, assert_fresh
from penstock import points
from penstock.catalog.transactions import Intents
from penstock.engine.callbacks import Committed
from penstock.schedule.scheduler import Scheduler
from penstock.storage.log_listing import newest_version
from races import between, let_leases_run_out

VIEWS = {
    "both_ab": "SELECT id, amount FROM a UNION ALL SELECT id, amount FROM b",
    "total": "SELECT SUM(amount) AS total FROM both_ab",
    "large": "SELECT id, amount FROM both_ab WHERE amount > 50",
    "summary": "SELECT l.id, l.amount, t.total FROM large l CROSS JOIN total t",
}
"""A chain, a fan, and a diamond, all IMMEDIATE."""
STARTED = 300
OF_A = 5
"""Which of a transfer's commits is that to ``a``: after those to its branches."""


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse to be copied."""
    place = tmp_path_factory.mktemp("made") / "warehouse"
    with penstock.connect(place) as db:
        for name in "ab":
            db.sql(f"CREATE TABLE {name} (id INT, amount INT)")
            db.sql(f"INSERT INTO {name} VALUES (1, 100), (2, 50)")
        for name, query in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH IMMEDIATE AS {query}")
        db.sql("CREATE MATERIALIZED VIEW later AS SELECT COUNT(*) AS n, MAX(total) AS m FROM summary")
    return place


@pytest.fixture
def bank(made: Path, tmp_path: Path) -> Iterator[penstock.Database]:
    shutil.copytree(made, tmp_path / "bank")
    with penstock.connect(tmp_path / "bank") as db:
        yield db


@pytest.fixture
def other(bank: penstock.Database) -> Iterator[penstock.Database]:
    """Another process, as far as anybody can tell."""
    with penstock.connect(bank.path) as db:
        yield db


def rows(db: Any, table: str) -> list[tuple[Any, ...]]:
    found = db.read_here(f"SELECT * FROM {table}")
    assert found is not None
    return sorted(tuple(row.values()) for row in found.rows.table.to_pylist())


def seen(db: penstock.Database) -> dict[str, list[tuple[Any, ...]]]:
    """Everything at one moment."""
    with db.transaction() as tx:
        return {name: rows(tx, name) for name in ("a", "b", *VIEWS)}


def check(db: penstock.Database) -> dict[str, list[tuple[Any, ...]]]:
    """Nothing is lost, and every view is what its tables are."""
    now = seen(db)
    together = sorted(now["a"] + now["b"])
    assert sum(amount for _, amount in together) == STARTED
    assert now["both_ab"] == together
    assert now["total"] == [(STARTED,)]
    assert now["large"] == [row for row in together if row[1] > 50]
    assert now["summary"] == [(*row, STARTED) for row in now["large"]]
    return now


def left_behind(db: penstock.Database) -> list[str]:
    """What is left of transactions: intents, and branches."""
    folder = Path(db.path) / "tx"
    return [*Intents(db._catalog).all(), *(str(p) for p in (folder.iterdir() if folder.exists() else ()))]


def elsewhere(do: Callable[[], object]) -> None:
    """Let somebody else do it, meanwhile."""
    thread = Thread(target=do)
    thread.start()
    thread.join()


# -- all or nothing ---------------------------------------------------------------------------------------------------


def test_statements_of_a_transaction_see_their_own_writes_and_others_see_none(
    bank: penstock.Database, other: penstock.Database
) -> None:
    before = check(bank)
    with bank.transaction() as tx:
        tx.sql("UPDATE a SET amount = amount - 60 WHERE id = 1")
        tx.sql("INSERT INTO b VALUES (3, 50), (4, 5)")
        tx.sql("UPDATE b SET amount = amount + 5 WHERE id = 3")
        tx.sql("DELETE FROM a WHERE id = 2")
        tx.sql("MERGE INTO b USING (SELECT 1 AS id, 50 AS more) AS m ON b.id = m.id "
               "WHEN MATCHED THEN UPDATE SET amount = b.amount + m.more")  # fmt: skip
        assert rows(tx, "a") == [(1, 40)]
        assert rows(tx, "b") == [(1, 150), (2, 50), (3, 55), (4, 5)]
        assert rows(tx, "total") == before["total"], "views are as they were when the transaction began"
        assert seen(other) == seen(bank) == before
    after = check(other)
    assert (after["a"], after["b"]) == ([(1, 40)], [(1, 150), (2, 50), (3, 55), (4, 5)])
    assert left_behind(bank) == []
    assert {record.view for record in bank.history(limit=4)} == set(VIEWS), "each has followed once"
    for view in VIEWS:
        assert_fresh(bank, view, "INCREMENTAL")
    assert bank.refresh()["summary"].action == "NO_DATA"
    assert_all_fresh(bank)


def test_a_hundred_statements_are_one_refresh_and_one_commit(bank: penstock.Database) -> None:
    told: list[Committed] = []
    bank.on_commit(told.append)
    known = len(bank.history("total"))
    with bank.transaction() as tx:
        for number in range(100):
            tx.sql(f"INSERT INTO {'ab'[number % 2]} VALUES ({number + 10}, {number % 7})")
    assert len(bank.history("total")) == known + 1
    (event,) = told
    assert (event.table, event.operation, event.rows, len(event.parts)) == ("a, b", "COMMIT", 100, 100)
    assert len(rows(bank, "a")) == 52
    assert_fresh(bank, "summary", "INCREMENTAL")


def test_what_fails_or_is_rolled_back_leaves_nothing(bank: penstock.Database) -> None:
    told: list[Committed] = []
    bank.on_commit(told.append)
    before = check(bank)
    with pytest.raises(ZeroDivisionError):
        _in_a_transaction(bank, "UPDATE a SET amount = 0", then=lambda: 1 / 0)
    bank.sql("BEGIN")
    bank.sql("DELETE FROM b WHERE id = 1")
    assert rows(bank, "b") == [(2, 50)]
    with pytest.raises(penstock.PenstockError, match="cast"):
        bank.sql("INSERT INTO b VALUES (1, 'much')")
    assert rows(bank, "b") == [(2, 50)], "a statement that fails does nothing, and the transaction goes on"
    with pytest.raises(penstock.NotSupportedError, match=r"CREATE TABLE c \.\. cannot be part of a transaction"):
        bank.sql("CREATE TABLE c (x INT)")
    with pytest.raises(penstock.PenstockError, match="a transaction has begun already"):
        bank.sql("BEGIN TRANSACTION")
    bank.sql("ROLLBACK")
    with pytest.raises(penstock.PenstockError, match="there is no transaction to COMMIT"):
        bank.sql("COMMIT")
    assert check(bank) == before
    assert told == []
    assert left_behind(bank) == []


def test_the_first_who_commits_wins(bank: penstock.Database, other: penstock.Database) -> None:
    with pytest.raises(penstock.ConflictError, match="table 'a' was changed by another writer"):
        _in_a_transaction(bank, "UPDATE a SET amount = 0", "DELETE FROM b", then=lambda: transfer(other, 5))
    assert check(bank)["a"] == [(1, 95), (2, 50)]
    with bank.transaction() as tx:  # another table is no conflict
        tx.sql("INSERT INTO a VALUES (7, 0)")
        other.sql("UPDATE b SET id = 3 WHERE id = 2")
    assert check(bank)["a"] == [(1, 95), (2, 50), (7, 0)]
    assert left_behind(bank) == []


# -- views that follow ------------------------------------------------------------------------------------------------


def test_a_view_that_cannot_follow_fails_the_statement(bank: penstock.Database) -> None:
    before = check(bank)
    largest = 9_000_000_000_000_000_000
    bank.sql("CREATE TABLE big (n BIGINT)")
    bank.sql(f"INSERT INTO big VALUES ({largest})")
    bank.sql("CREATE MATERIALIZED VIEW more AS SELECT n * 1 AS n FROM big REFRESH IMMEDIATE")
    bank.sql("CREATE MATERIALIZED VIEW most AS SELECT n + 200000000000000000 AS n FROM more REFRESH IMMEDIATE")
    for write in (
        lambda: bank.sql(f"UPDATE big SET n = {largest} + 100000000000000000"),
        lambda: _in_a_transaction(bank, "UPDATE a SET amount = 0", f"INSERT INTO big VALUES ({largest + 10**17})"),
    ):
        with pytest.raises(penstock.RefreshError, match="'most' is REFRESH IMMEDIATE and cannot follow") as problem:
            write()
        assert problem.value.report["most"].status == "FAILED"
        assert rows(bank, "big") == rows(bank, "more") == [(largest,)]
        assert check(bank) == before
    bank.sql("UPDATE big SET n = 1")
    assert rows(bank, "most") == [(200000000000000001,)]
    assert_fresh(bank, "most", "INCREMENTAL")
    assert left_behind(bank) == []


def _in_a_transaction(db: penstock.Database, *statements: str, then: Callable[[], object] | None = None) -> None:
    with db.transaction() as tx:
        for statement in statements:
            tx.sql(statement)
        if then is not None:
            then()


def test_a_lease_that_is_held_too_long_fails_the_statement(bank: penstock.Database, other: penstock.Database) -> None:
    bank.sql("SET lock_timeout = '1 millisecond'")
    came: list[str] = []

    def meanwhile() -> None:
        try:
            other.sql("UPDATE a SET amount = 0")
        except penstock.BusyError as problem:
            came.append(str(problem))

    with between(points.COMMIT, OF_A, lambda: elsewhere(meanwhile)):
        transfer(bank, 1)
    assert "is being changed or refreshed by" in came[0]
    check(bank)


def test_only_what_moves_with_its_tables_can_be_immediate(bank: penstock.Database, tmp_path: Path) -> None:
    bank.sql(f"CREATE TABLE outside (x INT) USING delta LOCATION '{tmp_path / 'outside'}'")
    refused = {
        "SELECT n FROM later": "it reads view 'later', which is REFRESH MANUAL. Make that IMMEDIATE first",
        "SELECT x FROM outside": "it reads 'outside', an external table",
        "SELECT PERCENTILE_APPROX(amount, 0.5) AS m, AVG(DISTINCT id) FILTER (WHERE id > 1) AS n FROM a":
            "has no incremental rule",
    }  # fmt: skip
    for query, why in refused.items():
        with pytest.raises(penstock.DefinitionError, match=why):
            bank.create_view("v", query, refresh="IMMEDIATE")
    with pytest.raises(penstock.DefinitionError, match="its policy is FULL"):
        bank.create_view("v", "SELECT id FROM a", refresh="IMMEDIATE", policy="FULL")
    with pytest.raises(penstock.DependencyError, match="'summary' reads it, and is"):
        bank.alter_view("total", refresh="MANUAL")
    with pytest.raises(penstock.DefinitionError, match="cannot be suspended"):
        bank.suspend("summary")
    with pytest.raises(penstock.NotSupportedError, match="external table"), bank.transaction() as tx:
        tx.sql("INSERT INTO outside VALUES (1)")
    assert "v" not in bank._catalog.world().views


def test_to_immediate_and_back(bank: penstock.Database) -> None:
    bank.sql("INSERT INTO a VALUES (9, 0)")
    assert rows(bank, "later") == [(2, STARTED)]
    bank.sql("UPDATE a SET amount = 51 WHERE id = 2")
    bank.sql("UPDATE b SET amount = 49 WHERE id = 2")
    assert rows(bank, "later") == [(2, STARTED)], "it is not IMMEDIATE yet"
    bank.sql("ALTER MATERIALIZED VIEW later REFRESH IMMEDIATE")
    assert rows(bank, "later") == [(3, STARTED)]
    assert "IMMEDIATE" in str(bank.explain("later"))
    bank.sql("DELETE FROM a WHERE id = 2")
    assert rows(bank, "later") == [(2, STARTED - 51)]
    assert_fresh(bank, "later", "INCREMENTAL")
    bank.sql("ALTER MATERIALIZED VIEW later REFRESH ON COMMIT")
    bank.sql("INSERT INTO a VALUES (2, 51)")
    assert rows(bank, "later") == [(2, STARTED - 51)]
    bank.refresh()
    assert_fresh(bank, "later", "INCREMENTAL")
    bank.sql("ALTER MATERIALIZED VIEW later SUSPEND")
    with pytest.raises(penstock.DefinitionError, match="'later' cannot be REFRESH IMMEDIATE: it is suspended"):
        bank.sql("ALTER MATERIALIZED VIEW later REFRESH IMMEDIATE")


def test_large_statements_by_spark_are_followed_too(bank: penstock.Database) -> None:
    bank.sql("INSERT INTO a SELECT CAST(id AS INT) + 100, 0 FROM RANGE(3000)")
    assert len(rows(bank, "both_ab")) == 3004
    with bank.transaction() as tx:
        tx.sql("INSERT INTO b SELECT CAST(id AS INT) + 100, 1 FROM RANGE(2000)")
        tx.sql("UPDATE b SET amount = amount - 1 WHERE id >= 100 AND FORMAT_NUMBER(id, 0) <> '1'")
        tx.sql("DELETE FROM a WHERE id >= 100 AND FORMAT_NUMBER(id, 0) <> '1'")
        assert tx.table("b").count() == 2002
        assert bank.table("b").count() == 2
    check(bank)
    assert_all_fresh(bank, ("INCREMENTAL", "FULL", "NO_DATA"))


# -- several processes ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    found = Writers()
    yield found
    found.close()


def test_a_crash_at_any_point_leaves_nothing(bank: penstock.Database, writers: Writers) -> None:
    """A writer dies at its first point, the next at its second, and so on, until one comes through."""
    died = moved = 0
    while True:
        before = check(bank)
        status = writers.run(warehouse=bank.path, times=1, seed=died, die_at=died + 1)
        after = check(bank)
        moved += after != before
        if status == 0:
            break
        assert status == -9
        died += 1
        if died % 2:  # whoever writes next undoes what was left; or the next transaction does
            bank.sql("UPDATE b SET amount = amount WHERE id = 2")
            assert check(bank) == after
    assert died >= 10
    assert moved >= 1
    bank.sql("UPDATE a SET amount = amount WHERE id = 2")
    bank.sql("UPDATE b SET amount = amount WHERE id = 2")
    transfer(bank, 1)
    check(bank)
    assert left_behind(bank) == []
    assert_all_fresh(bank, ("INCREMENTAL", "FULL"))


def test_readers_never_see_half_of_what_writers_do_that_are_killed(bank: penstock.Database, writers: Writers) -> None:
    chance, ends = Random(5), list[int]()
    for _ in range(6):
        deadly = chance.randint(15, 60)
        writers.begin(warehouse=bank.path, times=2, seed=chance.randint(0, 999), die_at=deadly, writers=2)
        for _ in range(8):
            check(bank)
        ends += [writers.ended(), writers.ended()]
    assert set(ends) <= {0, -9}
    assert -9 in ends
    transfer(bank, 1)
    check(bank)
    assert_fresh(bank, "summary", ("INCREMENTAL", "FULL"))


def test_what_a_dead_writer_left_makes_nobody_late(bank: penstock.Database, writers: Writers) -> None:
    """Commits that were never published are not read, so no view is behind them, and none is refreshed for them."""
    bank.sql("ALTER MATERIALIZED VIEW later REFRESH ON COMMIT")
    bank.refresh()
    paths = {name: table.path for name, table in bank._catalog.world().tables.items()}
    place = 0
    while not any((newest_version(paths[name]) or 0) > i.base for name, i in Intents(bank._catalog).all().items()):
        place += 1
        assert writers.run(warehouse=bank.path, times=1, seed=1, die_at=place) == -9
    assert {view.name: view.behind for view in bank.status() if view.behind} == {}
    played = Scheduler(bank._catalog, lambda: bank._at.engine)
    with ThreadPoolExecutor(1) as pool:
        assert played.tick(pool).begun == []
    transfer(bank, 1)
    check(bank)
    assert {view.name for view in bank.status() if view.behind} == {"later"}
    with ThreadPoolExecutor(1) as pool:
        assert played.tick(pool).begun == [("later",)]


@pytest.mark.catalogs
def test_on_any_catalog(db: penstock.Database, warehouse: Path, writers: Writers) -> None:
    for name in "ab":
        db.sql(f"CREATE TABLE {name} (id INT, amount INT)")
        db.sql(f"INSERT INTO {name} VALUES (1, 100), (2, 50)")
    db.sql("CREATE MATERIALIZED VIEW both_ab REFRESH IMMEDIATE AS SELECT * FROM a UNION ALL SELECT * FROM b")
    order = {"warehouse": str(warehouse), "catalog": catalog_of(warehouse)}
    for place in (14, 17, 20):
        writers.run(**order, times=1, seed=place, die_at=place)
        transfer(db, 1)
    writers.begin(**order, times=3, seed=1, writers=2)
    seen = 0
    while seen < 5:
        with db.transaction() as tx:
            now = [rows(tx, name) for name in ("a", "b", "both_ab")]
        assert sorted(now[0] + now[1]) == now[2]
        assert sum(amount for _, amount in now[2]) == STARTED
        seen += 1
    assert [writers.ended(), writers.ended()] == [0, 0]
    assert left_behind(db) == []
    assert_fresh(db, "both_ab", "INCREMENTAL")


def test_the_page_about_transactions_runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "transactions.md").read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "transactions.md", "exec"), names)
    assert rows(names["db"], "accounts") == [(1, "ann", 65), (2, "bob", 115), (3, "cid", 30)]
    names["db"].close()


def test_who_was_paused_in_a_transaction_cannot_publish(bank: penstock.Database, other: penstock.Database) -> None:
    def take_over() -> None:
        let_leases_run_out(other)
        transfer(other, 3)

    refused = (penstock.LeaseLostError, penstock.ConflictError, penstock.RefreshError)
    for number in (OF_A, OF_A + 1, OF_A + 2):  # before its commits to the tables, and before one to a view
        with between(points.COMMIT, number, lambda: elsewhere(take_over)), pytest.raises(refused):
            transfer(bank, 50)
        check(bank)
    assert check(bank)["a"][0] == (1, 100 - 9)
    assert_all_fresh(bank, ("INCREMENTAL", "FULL"))
