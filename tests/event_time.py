"""Trades by event time, for the tests of watermarks, windows and lateness."""

from __future__ import annotations

from datetime import datetime, timezone

import penstock

BARS = """SELECT TUMBLE_START(at, INTERVAL '1 second') AS bar, FIRST_VALUE(price) AS open, MAX(price) AS high,
          MIN(price) AS low, LAST_VALUE(price) AS close FROM trades GROUP BY TUMBLE(at, INTERVAL '1 second')"""
SECONDS = "SELECT date_trunc('second', at) AS s, COUNT(*) AS n, MAX(price) AS high FROM trades GROUP BY 1"


def at(millis: int) -> str:
    return f"TIMESTAMP_MILLIS({millis})"


def moment(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, timezone.utc)


def rows(db: penstock.Database, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in db.table(name).collect())


def watermarks(db: penstock.Database) -> dict[str, int | None]:
    found = db.sql("SELECT 1") and db.sql("SHOW WATERMARKS")
    assert not isinstance(found, penstock.Done)
    shown = found.selectExpr("name", "UNIX_MILLIS(watermark) AS millis").collect()
    return {row["name"]: row["millis"] for row in shown}


def put(db: penstock.Database, *trades: tuple[int, float]) -> None:
    db.sql(f"INSERT INTO trades VALUES {', '.join(f'({at(millis)}, {price})' for millis, price in trades)}")
