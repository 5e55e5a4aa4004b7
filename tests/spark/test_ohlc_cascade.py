"""The cascade of price bars: one second, one minute, one hour, each view reading the finer one."""

from __future__ import annotations

import random
from datetime import datetime
from decimal import Decimal

import pytest

import penstock
from oracle import after, assert_all_fresh, assert_fresh, rows
from penstock.frames import limits
from penstock.storage import apply


def bars(source: str, time: str, columns: tuple[str, str, str, str, str], width: str) -> str:
    first, high, low, last, volume = columns
    return (
        f"SELECT symbol, TUMBLE_START({time}, INTERVAL '{width}') AS bar_time, FIRST_VALUE({first}) AS open, "
        f"MAX({high}) AS high, MIN({low}) AS low, LAST_VALUE({last}) AS close, SUM({volume}) AS volume "
        f"FROM {source} GROUP BY symbol, TUMBLE({time}, INTERVAL '{width}')"
    )


TRADES = ("price", "price", "price", "price", "quantity")
BARS = ("open", "high", "low", "close", "volume")


@pytest.fixture
def cascade(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE trades (symbol STRING, event_time TIMESTAMP, price DECIMAL(10,2), quantity INT)")
    db.sql(
        "INSERT INTO trades VALUES "
        "('A', TIMESTAMP'2024-01-01 10:00:00.100', 100.00, 1), ('A', TIMESTAMP'2024-01-01 10:00:00.900', 105.00, 2), "
        "('A', TIMESTAMP'2024-01-01 10:00:01.000', 98.00, 3), ('A', TIMESTAMP'2024-01-01 10:01:30.000', 99.00, 4), "
        "('B', TIMESTAMP'2024-01-01 10:59:59.999', 7.00, NULL), ('B', NULL, 8.00, 1)"
    )
    db.create_view("bars_1s", bars("trades", "event_time", TRADES, "1 second"))
    db.create_view("bars_1m", bars("bars_1s", "bar_time", BARS, "1 minute"))
    db.create_view("bars_1h", bars("bars_1m", "bar_time", BARS, "1 hour"))
    return db


def test_bars_hold_first_highest_lowest_and_last_price(cascade: penstock.Database) -> None:
    hour = [r for r in rows(cascade.table("bars_1h")) if r[0] == "A"]
    assert hour == [
        ("A", datetime(2024, 1, 1, 10), Decimal("100.00"), Decimal("105.00"), Decimal("98.00"), Decimal("99.00"), 10)
    ]
    assert_all_fresh(cascade)


def test_new_trades_and_corrections_run_through_the_cascade(cascade: penstock.Database) -> None:
    db = cascade
    db.sql("INSERT INTO trades VALUES ('A', TIMESTAMP'2024-01-01 10:01:30.500', 120.00, 1)")
    report = db.refresh()
    assert [view.action for view in report.values()] == ["INCREMENTAL"] * 3
    assert_all_fresh(db, "INCREMENTAL")

    db.sql("INSERT INTO trades VALUES ('A', TIMESTAMP'2024-01-01 09:59:59.000', 1.00, 1)")
    db.sql("UPDATE trades SET price = 97.00 WHERE price = 120.00")
    db.sql("DELETE FROM trades WHERE price = 100.00")
    db.refresh()
    assert_all_fresh(db, "INCREMENTAL")


def test_among_trades_of_one_instant_the_smallest_is_first_and_the_largest_last(db: penstock.Database) -> None:
    db.sql("CREATE TABLE ticks (symbol STRING, event_time TIMESTAMP, price INT, quantity INT)")
    db.sql(
        "INSERT INTO ticks SELECT 'A', TIMESTAMP'2024-01-01 00:00:00', price, 1 FROM VALUES (5), (3), (9), (3) v(price)"
    )
    db.create_view("bars", bars("ticks", "event_time", TRADES, "1 second"))
    assert rows(db.table("bars")) == [("A", datetime(2024, 1, 1), 3, 9, 3, 9, 4)]
    db.sql("DELETE FROM ticks WHERE price = 9")
    db.refresh()
    assert_fresh(db, "bars", "INCREMENTAL")
    assert rows(db.table("bars")) == [("A", datetime(2024, 1, 1), 3, 5, 3, 5, 3)]


def test_a_large_cascade(cascade: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if its tables were large: what is near a change, and where removed rows lie, is found on the way."""
    monkeypatch.setattr(limits, "SMALL_TABLE_ROWS", 0)
    monkeypatch.setattr(apply, "cheaper", lambda **_: "PATCH")
    dice = random.Random(3)

    def trade() -> str:
        at = dice.choice([f"TIMESTAMP'2024-01-01 10:00:00' + INTERVAL {dice.randrange(200)} SECONDS"] * 9 + ["NULL"])
        return f"({dice.choice(['NULL', repr('A'), repr('B')])}, {at}, {dice.randrange(9)}, {dice.randrange(3)})"

    ways = ((True, True, False), (True, False, False), (False, False, True), (False, True, True))
    for number, (near, recomputed, looked_up) in enumerate(ways):
        with monkeypatch.context() as patch:
            patch.setattr(limits, "NEARBY_ROWS", 10_000 if near else -1)
            patch.setattr(limits, "SCANNED_GROUP_ROWS", 10_000 if recomputed else -1)
            patch.setattr(limits, "LOOKUP_LEAST_ROWS", 1 if looked_up else 10**9)
            patch.setattr(apply, "locate", None)  # which would be another query
            after(
                cascade,
                f"INSERT INTO trades VALUES {', '.join(trade() for _ in range(40))}",
                f"UPDATE trades SET price = price + 1 WHERE second(event_time) % 3 = {number}",
                f"DELETE FROM trades WHERE price = {number} OR quantity = {number} AND minute(event_time) = 1",
            )
    assert {record.strategy for record in cascade.history("bars_1s", 4)} == {"PATCH"}
