"""AUTO is not locked in by what a busy machine once made it believe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import text

import penstock
from oracle import assert_fresh
from penstock.frames import limits


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> penstock.Database:
    monkeypatch.setattr(limits, "WEIGHED_ROWS", 0)
    monkeypatch.setattr(limits, "WEIGHED_CHANGE_ROWS", 0)
    db = penstock.connect(tmp_path / "warehouse", spark=spark)
    db.sql("CREATE TABLE orders (id INT, region STRING, amount INT)")
    db.sql("INSERT INTO orders SELECT CAST(id AS INT), concat('r', id % 7), CAST(id AS INT) FROM range(500)")
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT region, SUM(amount) AS total FROM orders GROUP BY region")
    return db


USUAL, BUSY = {"INCREMENTAL": 0.1, "FULL": 0.4}, {"INCREMENTAL": 486.0, "FULL": 0.4}
"""Seconds by action."""


def refreshed(db: penstock.Database, view: str, seconds: Mapping[str, float]) -> tuple[str, str]:
    """Refresh after a change. The real times of this machine are replaced in the history: they would be chance."""
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10)")
    report = db.refresh()[view]
    newest = "id = (SELECT MAX(id) FROM history WHERE view = :view)"
    statement = f"UPDATE history SET seconds = :took, details = json_set(details, '$.in_line', 0.0) WHERE {newest}"
    with db._catalog.transaction(writes=True) as connection:
        connection.execute(text(statement), {"took": seconds[report.action], "view": view})
    return report.action, report.reason


def test_a_view_that_was_slow_while_the_machine_was_busy_is_maintained_again(db: penstock.Database) -> None:
    taken = [refreshed(db, "totals", USUAL) for _ in range(2)]
    assert set(taken) == {("INCREMENTAL", "CHANGED")}
    taken = [refreshed(db, "totals", BUSY) for _ in range(4)]
    assert taken[-1] == ("FULL", "CHEAPER")
    assert_fresh(db, "totals", action="FULL")
    taken = [refreshed(db, "totals", USUAL) for _ in range(20)]
    back = taken.index(("INCREMENTAL", "TRIED_AGAIN"))
    assert set(taken[:back]) == {("FULL", "CHEAPER")}
    assert set(taken[back + 1 :]) == {("INCREMENTAL", "CHANGED")}, "found to be fast, and kept"
    assert_fresh(db, "totals", action="INCREMENTAL")


def test_explain_says_why_a_way_was_tried_again(db: penstock.Database) -> None:
    while refreshed(db, "totals", BUSY) != ("INCREMENTAL", "TRIED_AGAIN"):
        assert len(db.history("totals")) < 50
    assert_fresh(db, "totals", action="INCREMENTAL")
    explained = str(db.explain("totals"))
    assert "INCREMENTAL is tried again: what was measured" in explained
    assert "AUTO looks whether this way is still the slower one" in explained
