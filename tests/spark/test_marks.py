"""How long a watermark lives: through replacing, dropping, recreating and restoring what it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from oracle import assert_fresh

SECONDS = "SELECT DATE_TRUNC('second', at) AS second, SUM(price) AS total FROM {} GROUP BY 1"


def at(seconds: float) -> str:
    return f"TIMESTAMP_MILLIS({int(seconds * 1000)})"


def trade(db: penstock.Database, *trades: tuple[float, int], table: str = "trades") -> None:
    db.sql(f"INSERT INTO {table} VALUES " + ", ".join(f"({at(when)}, {price})" for when, price in trades))


def create_table(db: penstock.Database, name: str = "trades") -> None:
    db.sql(f"CREATE TABLE {name} (at TIMESTAMP, price INT, WATERMARK FOR at AS at)")


def create_view(db: penstock.Database, table: str = "trades", how: str = "CREATE") -> None:
    db.sql(f"{how} MATERIALIZED VIEW bars AS {SECONDS.format(table)} EMIT AFTER WATERMARK")


def bars(db: penstock.Database) -> list[tuple[int, int]]:
    """The seconds that are shown, with their totals."""
    return sorted(tuple(r) for r in db.sql("SELECT UNIX_SECONDS(second), total FROM bars").collect())  # type: ignore[union-attr]


def watermarks(db: penstock.Database) -> dict[str, int | None]:
    """In milliseconds."""
    shown = db.sql("SHOW WATERMARKS").selectExpr("name", "UNIX_MILLIS(watermark) AS millis").collect()  # type: ignore[union-attr]
    return {row["name"]: row["millis"] for row in shown}


@pytest.fixture
def trades(db: penstock.Database) -> penstock.Database:
    """Two trades: the second 0 has ended, the second 1 has not."""
    create_table(db)
    trade(db, (0.5, 1), (1.5, 2))
    return db


def test_a_replaced_view_shows_each_window_once(trades: penstock.Database) -> None:
    create_view(trades)
    create_view(trades, how="CREATE OR REPLACE")
    assert watermarks(trades) == {"trades": 1500, "bars": 1500}
    trade(trades, (2.5, 4))
    trades.refresh()
    assert bars(trades) == [(0, 1), (1, 2)]
    assert_fresh(trades, "bars", action="INCREMENTAL")


def test_a_view_replaced_by_one_over_a_slower_table_waits_for_that(trades: penstock.Database) -> None:
    create_table(trades, "fast")
    trade(trades, (100, 1), table="fast")
    create_view(trades, "fast")
    create_view(trades, "trades", how="CREATE OR REPLACE")
    assert watermarks(trades)["bars"] == 1500
    assert bars(trades) == [(0, 1)]
    trade(trades, (2.5, 4))
    trades.refresh()
    assert_fresh(trades, "bars", action="INCREMENTAL")


def test_what_is_created_anew_does_not_inherit_a_watermark(db: penstock.Database) -> None:
    """Also not by a part of its query that has the same name as before."""
    create_table(db)
    trade(db, (100, 1))
    create_view(db)
    db.sql("DROP MATERIALIZED VIEW bars")
    db.sql("DROP TABLE trades")
    create_table(db)
    trade(db, (0.5, 1), (1.5, 2))
    create_view(db)
    assert watermarks(db) == {"trades": 1500, "bars": 1500}
    assert bars(db) == [(0, 1)]


@pytest.mark.parametrize(
    "meanwhile",
    [
        "DROP MATERIALIZED VIEW bars",
        "CREATE OR REPLACE MATERIALIZED VIEW bars AS SELECT at AS second, price AS total FROM trades",
    ],
)
def test_a_view_comes_back_from_a_checkpoint_with_its_watermark(trades: penstock.Database, meanwhile: str) -> None:
    create_view(trades)
    trades.checkpoint("before")
    trades.sql(meanwhile)
    trades.restore("before")
    assert watermarks(trades) == {"trades": 1500, "bars": 1500}
    trade(trades, (2.5, 4))
    trades.refresh()
    assert bars(trades) == [(0, 1), (1, 2)]
    assert_fresh(trades, "bars", action="INCREMENTAL")


def test_rows_are_as_late_for_a_restored_view_as_they_were(trades: penstock.Database) -> None:
    trades.sql(f"CREATE MATERIALIZED VIEW lately AS {SECONDS.format('trades')} ALLOW LATENESS INTERVAL 0 SECONDS")
    trades.checkpoint("before")
    trades.sql("DROP MATERIALIZED VIEW lately")
    trades.restore("before")
    trade(trades, (1, 100))
    assert trades.refresh()["lately"].late == 1


def test_going_back_and_then_forward_between_checkpoints(trades: penstock.Database) -> None:
    create_view(trades)
    trades.checkpoint("a")
    trade(trades, (2.5, 4), (5.5, 8))
    trades.refresh()
    trades.checkpoint("b")
    trades.restore("a")
    assert watermarks(trades) == {"trades": 1500, "bars": 1500}
    trades.restore("b")
    assert watermarks(trades) == {"trades": 5500, "bars": 5500}
    with trades.snapshot() as then:
        assert then.table("trades").count() == 4
    trade(trades, (9, 16))
    trades.refresh()
    assert bars(trades) == [(0, 1), (1, 2), (2, 4), (5, 8)]
    assert_fresh(trades, "bars", action="INCREMENTAL")


def test_a_recreated_table_does_not_get_the_watermark_of_a_checkpoint(trades: penstock.Database) -> None:
    create_view(trades)
    trades.checkpoint("before")
    trades.sql("DROP MATERIALIZED VIEW bars")
    trades.sql("DROP TABLE trades")
    create_table(trades)
    trades.restore("before")
    assert watermarks(trades) == {"trades": None, "bars": 1500}
    trade(trades, (0.7, 1))
    trades.refresh()
    assert watermarks(trades) == {"trades": 700, "bars": 1500}
    assert_fresh(trades, "bars")


def test_a_view_that_had_no_rows_at_a_checkpoint_is_filled_again(trades: penstock.Database) -> None:
    trades.sql("CREATE MATERIALIZED VIEW total AS SELECT SUM(price) AS total FROM trades WITH NO DATA")
    trades.checkpoint("empty")
    trades.refresh()
    trades.restore("empty")
    trade(trades, (2.5, 4))
    report = trades.refresh()["total"]
    assert (report.rows_inserted, report.rows_deleted) == (1, 0)
    assert_fresh(trades, "total", action="FULL")
    trade(trades, (3.5, 8))
    trades.refresh()
    assert_fresh(trades, "total", action="INCREMENTAL")


@pytest.mark.parametrize("when", ["TIMESTAMP '+12000-01-01 00:00:00'", "TIMESTAMP '0001-01-01 00:00:00'"])
def test_years_that_python_does_not_know(db: penstock.Database, when: str) -> None:
    """Only what is shown of such a watermark is cut."""
    db.sql("CREATE TABLE trades (at TIMESTAMP, price INT, WATERMARK FOR at AS at - INTERVAL 1 HOUR)")
    db.sql(f"INSERT INTO trades VALUES ({when}, 1)")
    create_view(db)
    assert [status.watermark is not None for status in db.status()] == [True]
    assert set(watermarks(db)) == {"trades", "bars"}
    assert len(db.sql("SHOW WATERMARKS").collect()) == 2  # type: ignore[union-attr]
    db.sql(f"INSERT INTO trades VALUES ({when} + INTERVAL 2 HOURS, 2)")
    db.refresh()
    assert_fresh(db, "bars", action="INCREMENTAL")


def test_a_table_that_has_lost_the_column_of_its_watermark(db: penstock.Database) -> None:
    db.sql(
        "CREATE TABLE trades (at TIMESTAMP, price INT, WATERMARK FOR at AS at) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    trade(db, (0.5, 1))
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT SUM(price) AS total FROM trades")
    db.sql("ALTER TABLE trades DROP COLUMN at")
    db.sql("INSERT INTO trades VALUES (2)")
    said = r"'trades' has no column 'at' .* ALTER TABLE trades DROP WATERMARK"
    with pytest.raises(penstock.RefreshError, match=said):
        db.refresh()
    db.sql("ALTER TABLE trades DROP WATERMARK")
    db.refresh()
    assert_fresh(db, "total", action="INCREMENTAL")


def test_a_watermark_is_not_advanced_to_an_earlier_time(trades: penstock.Database) -> None:
    create_view(trades)

    def advance(second: int) -> str:
        done = trades.sql(f"ALTER TABLE trades ADVANCE WATERMARK TO TIMESTAMP '1970-01-01 00:00:0{second}'")
        return str(done)

    assert "stays where it is" in advance(1)
    assert "advanced" in advance(3)
    assert "stays where it is" in advance(2)
    trades.refresh()
    assert watermarks(trades)["trades"] == 3000


@pytest.fixture
def tokyo(db: penstock.Database, tmp_path: Path) -> Iterator[penstock.Database]:
    """A user's own session, nine hours ahead."""
    db.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        with penstock.connect(tmp_path / "tokyo", spark=db.spark) as database:
            yield database
    finally:
        db.spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize("window", ["DATE_TRUNC('hour', at)", "TUMBLE(at, INTERVAL 1 HOUR)"])
def test_times_without_a_zone_in_a_session_of_another_zone(tokyo: penstock.Database, window: str) -> None:
    """They are those of the session: a window ends when its own hour is over, however a change was read."""
    tokyo.sql("CREATE TABLE visits (at TIMESTAMP_NTZ, n INT, WATERMARK FOR at AS at)")
    tokyo.sql(
        f"CREATE MATERIALIZED VIEW hours AS SELECT {window.replace('TUMBLE', 'TUMBLE_START')} AS hour, SUM(n) AS n "
        f"FROM visits GROUP BY {window} EMIT AFTER WATERMARK"
    )
    for minute, shown in (("10:10", []), ("10:20", []), ("11:00", [2]), ("11:59", [2]), ("12:01", [2, 2])):
        tokyo.sql(f"INSERT INTO visits VALUES (TIMESTAMP_NTZ '2026-03-07 {minute}:00', 1)")
        tokyo.refresh()
        assert [row["n"] for row in tokyo.table("hours").collect()] == shown, minute
        assert_fresh(tokyo, "hours")


def test_days_in_a_session_of_another_zone(tokyo: penstock.Database) -> None:
    tokyo.sql("CREATE TABLE visits (day DATE, n INT, WATERMARK FOR day AS day)")
    tokyo.sql(
        "CREATE MATERIALIZED VIEW lately AS SELECT SUM(n) AS n, MAX(day) AS day FROM visits "
        "ALLOW LATENESS INTERVAL 0 SECONDS"
    )
    tokyo.sql(
        "CREATE MATERIALIZED VIEW days AS SELECT DATE_TRUNC('day', day) AS day, SUM(n) AS n FROM visits GROUP BY 1 "
        "EMIT AFTER WATERMARK"
    )
    for day, shown, late in ((7, [], 0), (7, [], 0), (8, [2], 0), (8, [2], 0), (7, [3], 1)):
        tokyo.sql(f"INSERT INTO visits VALUES (DATE '2026-03-0{day}', 1)")
        report = tokyo.refresh()
        assert report["lately"].late == late
        assert [row["n"] for row in tokyo.table("days").collect()] == shown
        assert_fresh(tokyo, "days")
