"""What somebody should know of: raised once when it begins, cleared when it is over, told to whoever listens."""

from __future__ import annotations

import json
import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import penstock
from connect_server import opened
from oracle import assert_fresh
from penstock.catalog.alerts import SUGGESTIONS, Alert
from penstock.observe.alerting import overdue
from penstock.schedule.scheduler import Scheduler
from penstock.vocabulary import AlertKind
from receivers import Receiver

TOTALS = "SELECT region, SUM(amount) AS total FROM orders GROUP BY region"


@pytest.fixture
def orders(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE orders (id INT, region STRING, amount INT)")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20)")
    return db


@pytest.fixture
def heard(orders: penstock.Database) -> list[Alert]:
    found: list[Alert] = []
    orders.on_alert(found.append)
    return found


def told(heard: list[Alert]) -> list[tuple[str, str, bool]]:
    """Kind, view, and whether it was raised, of what was heard since the last time."""
    found = [(str(alert.kind), alert.view, alert.cleared_at is None) for alert in heard]
    heard.clear()
    return found


def refreshed(db: penstock.Database) -> None:
    with suppress(penstock.RefreshError):
        db.refresh()


def test_every_kind_has_a_suggestion() -> None:
    assert set(SUGGESTIONS) == set(AlertKind)


def test_a_view_that_fails_too_often(orders: penstock.Database, heard: list[Alert]) -> None:
    orders.create_view("shares", "SELECT id, 100 DIV amount AS share FROM orders", refresh="ON COMMIT")
    orders.create_view("small", "SELECT * FROM shares WHERE share < 7", refresh="ON COMMIT")
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 0), (4, 'eu', 50)")
    refreshed(orders)
    assert told(heard) == [("upstream_failed", "small", True)]
    refreshed(orders)
    assert told(heard) == [], "it goes on"
    refreshed(orders)
    assert told(heard) == [("auto_suspended", "shares", True)]
    alert = orders.alerts("shares")[0]
    assert "3 times in a row" in alert.message
    assert "RESUME" in str(alert.suggestion)
    orders.sql("DELETE FROM orders WHERE amount = 0")
    orders.resume("shares")
    assert told(heard) == [("auto_suspended", "shares", False)]
    refreshed(orders)
    assert told(heard) == [("upstream_failed", "small", False)]
    assert_fresh(orders, "small", "INCREMENTAL")
    assert [alert for alert in orders.alerts() if alert.cleared_at is None] == []


def test_a_view_that_gets_too_old(orders: penstock.Database, heard: list[Alert]) -> None:
    orders.create_view("totals", TOTALS, target_lag="10 minutes")
    now = datetime.now(timezone.utc)
    scheduler = Scheduler(orders._catalog, lambda: orders._at.engine, clock=lambda: now)

    def looked(**length: float) -> list[tuple[str, str, bool]]:
        nonlocal now
        now += timedelta(**length)
        scheduler._look(now)
        return told(heard)

    assert looked() == []
    assert looked(minutes=19) == []
    assert looked(minutes=2) == [("lag_exceeded", "totals", True)]
    assert looked(minutes=20) == []
    with ThreadPoolExecutor(1) as pool:
        scheduler.tick(pool)
    assert orders.alerts() != []
    assert told(heard) == [("lag_exceeded", "totals", False)], "told at once by who asks"


def test_commits_that_nobody_reads(orders: penstock.Database, heard: list[Alert]) -> None:
    orders.create_view("totals", TOTALS, refresh="ON COMMIT")
    orders.create_view("by_hand", TOTALS)
    orders.sql("SET max_change_backlog = 3")
    for number in range(3):
        orders.sql(f"INSERT INTO orders VALUES ({number}, 'eu', 1)")
    assert orders.alerts() == []
    orders.sql("INSERT INTO orders VALUES (4, 'eu', 1)")
    assert [(a.kind, a.view, a.message) for a in orders.alerts()] == [
        ("change_backlog", "totals", "4 commits to what it reads wait to be read")
    ]
    orders.refresh()
    assert [a.cleared_at is None for a in orders.alerts()] == [False]
    assert told(heard) == [("change_backlog", "totals", True), ("change_backlog", "totals", False)]


def test_a_source_that_cannot_be_followed(orders: penstock.Database, heard: list[Alert], tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = orders.spark.range(3).selectExpr("id AS k", "id AS v")
    frame.write.format("delta").save(path)
    orders.register_table("t", path)
    orders.create_view("v", "SELECT k, SUM(v) AS total FROM t GROUP BY k")
    shutil.rmtree(path)
    frame.write.format("delta").save(path)
    orders.refresh()
    assert told(heard) == [("reinitialize_needed", "v", True)]
    assert_fresh(orders, "v", "REINITIALIZE")
    orders.refresh()
    assert told(heard) == [("reinitialize_needed", "v", False)]
    frame.selectExpr("k").write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    refreshed(orders)
    refreshed(orders)
    assert told(heard) == [("reinitialize_needed", "v", True)]
    assert "column 'v' of table 't' is gone" in orders.alerts("v")[0].message
    orders.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS total FROM t GROUP BY k")
    assert [a for a in orders.alerts() if a.cleared_at is None] == []


def test_recomputing_what_could_be_maintained(orders: penstock.Database, heard: list[Alert]) -> None:
    from penstock.engine.cost import Estimate
    from penstock.engine.outcomes import alerts_of
    from penstock.engine.report import ViewReport
    from penstock.vocabulary import Action, Reason

    expected = Estimate(incremental=2.0, full=0.5)
    report = ViewReport(name="v", action=Action.FULL, reason=Reason.CHEAPER, estimate=expected)
    assert alerts_of(report) == {
        "fell_back_to_full": "it was recomputed: that was expected to take 0.5 s, and maintaining it 2.0 s"
    }
    for asked in (Reason.INITIAL, Reason.REQUESTED, Reason.POLICY_FULL, Reason.TRIED_AGAIN):
        assert alerts_of(ViewReport(name="v", action=Action.FULL, reason=asked, estimate=expected)) == {}


def test_two_processes_tell_of_an_episode_once(orders: penstock.Database, heard: list[Alert], warehouse: Path) -> None:
    orders.create_view("totals", TOTALS, target_lag="1 minute")
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    world, seen = orders._catalog.world(), orders._catalog.last_refreshes(that_saw_sources=True)
    raised = overdue(world, seen, {}, later)
    assert list(raised) == [("totals", AlertKind.LAG_EXCEEDED)]
    with opened(warehouse, orders.spark) as other:
        also: list[Alert] = []
        other.on_alert(also.append)
        other._catalog.change_alerts(raised, [])
        orders._catalog.change_alerts(raised, [])
    assert (len(also), len(heard)) == (1, 0)


def test_an_alert_is_a_structured_line_in_the_log(orders: penstock.Database, caplog: pytest.LogCaptureFixture) -> None:
    orders.create_view("Totals", TOTALS, target_lag="1 minute")
    with caplog.at_level(logging.WARNING, "penstock.alerts"):
        orders._catalog.change_alerts({("totals", AlertKind.LAG_EXCEEDED): "it is old"}, [])
    (record,) = [record for record in caplog.records if record.name == "penstock.alerts"]
    assert record.getMessage() == "lag_exceeded raised: view 'Totals': it is old"
    document = record.penstock  # type: ignore[attr-defined]
    assert (document["kind"], document["view"], document["event"]) == ("lag_exceeded", "Totals", "raised")
    json.dumps(document)


def test_a_callback_that_fails_stops_nothing(orders: penstock.Database, heard: list[Alert]) -> None:
    def fails(alert: Alert) -> None:
        raise ValueError("no")

    remove = orders.on_alert(fails)
    orders.create_view("totals", TOTALS, target_lag="1 minute")
    orders._catalog.change_alerts({("totals", AlertKind.LAG_EXCEEDED): "it is old"}, [])
    assert len(heard) == 1
    remove()


@pytest.mark.parametrize("value", ["nowhere", "ftp://x/y", "https://"])
def test_the_address_of_a_webhook_is_checked(db: penstock.Database, value: str) -> None:
    with pytest.raises(penstock.DefinitionError, match="alert_webhook"):
        db.set("alert_webhook", value)


def test_alerts_go_to_the_webhook(orders: penstock.Database, monkeypatch: pytest.MonkeyPatch, warehouse: Path) -> None:
    monkeypatch.setenv("PENSTOCK_ALERT_SECRET", "s3cret")
    with Receiver() as receiver:
        orders.set("alert_webhook", receiver.url)
        orders.create_view("totals", TOTALS, target_lag="1 minute")
        with opened(warehouse, orders.spark) as other:
            other._catalog.change_alerts({("totals", AlertKind.LAG_EXCEEDED): "it is old"}, [])
        ((headers, body),) = receiver.heard
    assert json.loads(body)["view"] == "totals"
    assert "X-Penstock-Signature" in headers
