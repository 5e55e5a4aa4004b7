"""Reading the past: snapshots, AS OF, changes between epochs, and going back to a checkpoint."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import penstock
from connect_server import without_connect
from oracle import assert_fresh

QUERY = "SELECT region, SUM(amount) AS total FROM orders GROUP BY region"


@pytest.fixture
def sales(db: penstock.Database) -> penstock.Database:
    """Three epochs: totals of eu are 10, then 30, then 0."""
    db.sql("CREATE TABLE orders (id INT, region STRING, amount INT)")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10)")
    db.sql(f"CREATE MATERIALIZED VIEW totals AS {QUERY}")
    db.sql("INSERT INTO orders VALUES (2, 'eu', 20)")
    db.refresh()
    db.sql("DELETE FROM orders WHERE id = 1")
    db.sql("INSERT INTO orders VALUES (3, 'us', 5)")
    db.refresh()
    return db


def rows(frame: object) -> list[tuple[object, ...]]:
    assert not isinstance(frame, penstock.Done)
    return sorted(tuple(row) for row in frame.collect())  # type: ignore[attr-defined]


def test_an_epoch_can_be_read_again(sales: penstock.Database) -> None:
    assert rows(sales.table("totals", epoch=1)) == [("eu", 10)]
    assert rows(sales.sql("SELECT total FROM totals AS OF EPOCH 2")) == [(30,)]
    assert rows(sales.table("totals")) == [("eu", 20), ("us", 5)]
    assert rows(sales.table("orders", epoch=2)) == [(1, "eu", 10), (2, "eu", 20)]
    grown = """SELECT n.region, n.total - COALESCE(o.total, 0) FROM totals n
               LEFT JOIN totals AS OF EPOCH 1 AS o ON o.region = n.region WHERE n.total > 1"""
    assert rows(sales.sql(grown)) == [("eu", 10), ("us", 5)]
    sales.sql("CREATE VIEW large AS SELECT region FROM totals WHERE total > 1")
    assert sales.read_here("SELECT total FROM totals AS OF EPOCH 2") is None, "the past is read by Spark"


def test_a_time_is_the_epoch_that_was_current(sales: penstock.Database) -> None:
    epochs = {record.epoch: record for record in sales.history("totals")}
    later = datetime.now(timezone.utc).isoformat(sep=" ")
    assert rows(sales.sql(f"SELECT * FROM totals AS OF TIMESTAMP '{later}'")) == [("eu", 20), ("us", 5)]
    between = epochs[3].started_at.isoformat(sep=" ")
    assert rows(sales.sql(f"SELECT totals.total FROM totals AS OF TIMESTAMP '{between}'")) == [(30,)]
    with pytest.raises(penstock.NotFoundError, match="nothing was published before"):
        sales.sql("SELECT * FROM totals AS OF TIMESTAMP '1999-01-01'")
    with pytest.raises(penstock.SqlError, match="is no time"):
        sales.sql("SELECT * FROM totals AS OF TIMESTAMP 'yesterday'")


@pytest.mark.parametrize("hours", [5, -8, 5.5])
def test_the_offset_of_a_time_counts(sales: penstock.Database, hours: float) -> None:
    started = {record.epoch: record.started_at for record in sales.history("totals")}[3]
    elsewhere = started.astimezone(timezone(timedelta(hours=hours)))
    for written in (elsewhere.isoformat(), elsewhere.strftime("%Y-%m-%d %H:%M:%S.%f%z"), f"{started:%FT%T.%f}Z"):
        assert rows(sales.sql(f"SELECT total FROM totals AS OF TIMESTAMP '{written}'")) == [(30,)]
    assert sales._catalog.epoch_at(elsewhere) == 2
    with pytest.raises(penstock.SqlError, match=r"is no time\. Write it as .* or with an offset"):
        sales.sql("SELECT * FROM totals AS OF TIMESTAMP '2026-01-31 12:00:00+5:00'")


def test_a_snapshot_agrees_with_itself_while_the_world_moves_on(sales: penstock.Database) -> None:
    with sales.snapshot() as snap:
        assert snap.epoch == 3
        sales.sql("INSERT INTO orders VALUES (4, 'eu', 100)")
        sales.refresh()
        difference = f"SELECT * FROM ({QUERY}) EXCEPT ALL SELECT * FROM totals"
        assert rows(snap.sql(difference)) == []
        assert rows(snap.table("totals")) == [("eu", 20), ("us", 5)]
        with pytest.raises(penstock.NotSupportedError, match="can only be read"):
            snap.sql("DELETE FROM orders")
    assert rows(sales.table("totals")) == [("eu", 120), ("us", 5)]
    sales.sql("INSERT INTO orders VALUES (5, 'eu', 1)")  # a writer sees its own writes
    assert rows(sales.sql("SELECT COUNT(*) FROM orders")) == [(4,)]
    assert rows(sales.snapshot().sql("SELECT COUNT(*) FROM orders")) == [(3,)]


def test_a_table_that_no_view_reads_is_part_of_a_snapshot(sales: penstock.Database) -> None:
    sales.sql("CREATE TABLE notes (n INT)")
    sales.sql("INSERT INTO notes VALUES (1)")
    sales.sql("INSERT INTO orders VALUES (6, 'eu', 1)")
    epoch = sales.refresh().epoch
    sales.sql("INSERT INTO notes VALUES (2)")
    assert rows(sales.snapshot(epoch).sql("SELECT n FROM notes")) == [(1,)]
    assert rows(sales.table("notes")) == [(1,), (2,)]


def test_changes_between_epochs(sales: penstock.Database) -> None:
    assert rows(sales.changes("totals", since=1)) == [("eu", 10, -1), ("eu", 20, 1), ("us", 5, 1)]
    assert rows(sales.changes("totals", since=1, until=2)) == [("eu", 10, -1), ("eu", 30, 1)]
    none = sales.changes("totals", since=3)
    assert rows(none) == []
    assert none.columns == ["region", "total", "__weight"]
    with pytest.raises(penstock.DefinitionError, match="which is earlier"):
        sales.changes("totals", since=3, until=2)


def test_epochs_that_cannot_be_read(sales: penstock.Database) -> None:
    with pytest.raises(penstock.NotFoundError, match=r"there is no published epoch 9\. The newest is 3"):
        sales.table("totals", epoch=9)
    sales.sql("CREATE MATERIALIZED VIEW later AS SELECT COUNT(*) AS n FROM orders")
    with pytest.raises(penstock.NotFoundError, match="no rows at epoch 2: it was created or replaced later"):
        sales.table("later", epoch=2)
    with pytest.raises(penstock.SqlError, match="a view cannot read AS OF"):
        sales.sql("CREATE MATERIALIZED VIEW old AS SELECT * FROM totals AS OF EPOCH 1")


def test_retention(sales: penstock.Database) -> None:
    assert sales.settings()["retention"] == "7 days"
    sales.checkpoint("first_of_may")
    sales.sql("INSERT INTO orders VALUES (7, 'eu', 1)")
    sales.refresh()
    sales.sql("SET retention = '0 seconds'")
    with pytest.raises(penstock.RetentionError, match="epoch 2 is too old to be read"):
        sales.table("totals", epoch=2)
    assert rows(sales.table("totals", epoch=3)) == [("eu", 20), ("us", 5)]  # which the checkpoint keeps
    assert rows(sales.table("totals", epoch=4)) == [("eu", 21), ("us", 5)]  # which is current
    with pytest.raises(penstock.DefinitionError, match="a length of time"):
        sales.set("retention", "for ever")


# -- checkpoints ------------------------------------------------------------------------------------------------------


def test_going_back_to_a_checkpoint_and_catching_up(sales: penstock.Database) -> None:
    sales.sql("CREATE MATERIALIZED VIEW top AS SELECT MAX(total) AS most FROM totals")
    assert "epoch 4" in str(sales.sql("CHECKPOINT before_the_flood"))
    sales.sql("INSERT INTO orders VALUES (8, 'eu', 1000), (9, 'uk', 7)")
    sales.refresh()
    assert rows(sales.table("top")) == [(1020,)]

    assert "restored as epoch 6" in str(sales.sql("RESTORE CHECKPOINT before_the_flood"))
    assert rows(sales.table("totals")) == [("eu", 20), ("us", 5)]
    assert rows(sales.table("top")) == [(20,)]
    assert rows(sales.table("totals", epoch=4)) == [("eu", 20), ("us", 5)]
    assert rows(sales.table("top", epoch=5)) == [(1020,)], "an epoch that was seen can be seen again"

    report = sales.refresh()
    assert {report["totals"].action, report["top"].action} == {"INCREMENTAL"}
    assert_fresh(sales, "totals")
    assert_fresh(sales, "top")
    assert sales.refresh()["totals"].action == "NO_DATA"


def test_views_that_came_and_went_since_a_checkpoint(sales: penstock.Database) -> None:
    sales.checkpoint("then")
    sales.sql("CREATE MATERIALIZED VIEW later AS SELECT id FROM orders")
    sales.drop_view("totals")
    sales.restore("then")
    assert [view.name for view in sales.status()] == ["totals"]
    assert rows(sales.table("totals")) == [("eu", 20), ("us", 5)]
    sales.sql("UPDATE orders SET amount = amount + 1")
    assert sales.refresh()["totals"].action == "INCREMENTAL"
    assert_fresh(sales, "totals")
    sales.sql(f"CREATE OR REPLACE MATERIALIZED VIEW totals AS {QUERY} HAVING SUM(amount) > 10")
    sales.restore("then")
    sales.refresh()
    assert rows(sales.table("totals")) == [("eu", 21), ("us", 6)]
    assert [(c.name, c.epoch) for c in sales.checkpoints()] == [("then", 3)]
    sales.drop_checkpoint("then")
    assert sales.checkpoints() == []
    assert_fresh(sales, "totals")


def test_what_cannot_be_restored(sales: penstock.Database) -> None:
    with pytest.raises(penstock.NotFoundError, match=r"there is no checkpoint 'nowhere'\. Known are: none yet"):
        sales.restore("nowhere")
    sales.checkpoint("then")
    with pytest.raises(penstock.AlreadyExistsError, match="a checkpoint 'then' already"):
        sales.checkpoint("then")
    sales.drop_view("totals")
    sales.sql("DROP TABLE orders")
    with pytest.raises(penstock.NotFoundError, match=r"table 'orders'.*was dropped"):
        sales.restore("then")
    assert [row.name for row in sales.sql("SHOW CHECKPOINTS").collect()] == ["then"]  # type: ignore[union-attr]


# -- readers while another process writes ----------------------------------------------------------------------------

TRANSFERS = """
import itertools, os, sys, penstock
with penstock.connect(sys.argv[1]) as db:
    for step in itertools.takewhile(lambda step: not os.path.exists(sys.argv[2]), itertools.count()):
        giver, taker = step % 4, (step + 1) % 4
        db.sql(f"UPDATE accounts SET money = money + IF(id = {giver}, -7, 7) WHERE id IN ({giver}, {taker})")
        db.refresh()
"""


def test_money_is_never_lost_or_made_while_another_process_moves_it(
    db: penstock.Database, warehouse: Path, tmp_path: Path
) -> None:
    """Money moves between accounts of two banks; three views and the table always tell of the same sum."""
    db.sql("CREATE TABLE accounts (id INT, bank STRING, money INT)")
    db.sql("INSERT INTO accounts VALUES (0, 'a', 100), (1, 'b', 100), (2, 'a', 100), (3, 'b', 100)")
    db.create_view("balances", "SELECT id, bank, money FROM accounts WHERE money > 0")
    db.create_view("banks", "SELECT bank, SUM(money) AS money FROM accounts GROUP BY bank")
    db.create_view("everything", "SELECT SUM(money) AS money FROM banks")
    sums = "(SELECT SUM(money) FROM balances), (SELECT SUM(money) FROM banks), (SELECT money FROM everything)"
    by_bank = """SELECT b.money FROM banks b JOIN (SELECT bank, SUM(money) AS money FROM balances GROUP BY bank) s
                 ON s.bank = b.bank WHERE s.money <> b.money"""
    enough = tmp_path / "enough"
    child = subprocess.Popen([sys.executable, "-c", TRANSFERS, str(warehouse), str(enough)], env=without_connect())
    epochs = set()
    try:
        while child.poll() is None:
            assert rows(db.sql(f"SELECT {sums}")) == [(400, 400, 400)]
            with db.snapshot() as snap:
                epochs.add(snap.epoch)
                assert rows(snap.sql(f"SELECT {sums}, (SELECT SUM(money) FROM accounts)")) == [(400, 400, 400, 400)]
                assert rows(snap.sql(by_bank)) == []
                assert rows(snap.sql("SELECT id, bank, money FROM accounts")) == rows(snap.table("balances"))
            if len(epochs) > 2:
                enough.touch()
                child.wait()
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0
    assert len(epochs) > 2, "nothing moved while it was read"


def test_a_version_of_a_table_is_read_as_delta_counts_them(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (version INT, of INT)")
    for values in ("(1, 2)", "(3, 4)"):
        db.sql(f"INSERT INTO t VALUES {values}")
    db.create_view("v", "SELECT version AS of FROM t")

    def rows(text: str) -> list[tuple[int, ...]]:
        return sorted(tuple(row) for row in db.sql(text).collect())  # type: ignore[union-attr]

    assert rows("SELECT * FROM t VERSION AS OF 1") == [(1, 2)]
    assert rows("SELECT x.version AS of FROM t FOR VERSION AS OF 1 x JOIN t VERSION AS OF 2 ON t.of = x.of") == [(1,)]
    assert rows("SELECT version AS of FROM t") == [(1,), (3,)], "a column is no version"
    for text, said in {
        "SELECT * FROM t VERSION AS OF 9": "has no version 9: its newest is 2",
        "SELECT * FROM v VERSION AS OF 1": "'v' is a view: it is read AS OF EPOCH n",
        "SELECT * FROM t TIMESTAMP AS OF '2026-01-01'": "write AS OF TIMESTAMP '..'",
        "CREATE MATERIALIZED VIEW w AS SELECT * FROM t VERSION AS OF 1": "a view cannot read AS OF",
    }.items():
        with pytest.raises(penstock.PenstockError, match=re.escape(said)):
            db.sql(text)
    db.sql("RESTORE TABLE t TO VERSION AS OF 1")
    assert rows("SELECT * FROM t") == [(1, 2)]
