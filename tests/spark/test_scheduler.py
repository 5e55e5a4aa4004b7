"""Views that keep themselves fresh: what makes them due, what failures do, and who shares the work."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import penstock
from oracle import assert_all_fresh, assert_fresh
from penstock.catalog.leases import Leases
from penstock.schedule import parts, scheduler
from penstock.schedule.scheduler import Finished, Scheduler
from penstock.vocabulary import Fault, State

pytestmark = pytest.mark.catalogs


@pytest.fixture
def orders(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE orders (id INT, region STRING, amount INT)")
    db.sql("INSERT INTO orders VALUES (1, 'eu', 10), (2, 'us', 20)")
    return db


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = datetime.now(timezone.utc)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **length: float) -> None:
        self.now += timedelta(**length)


class Played:
    """A scheduler that is asked step by step, each time to the end of what it begins."""

    def __init__(self, db: penstock.Database, clock: Callable[[], datetime] | None = None):
        self.heard: list[Finished] = []
        given = {} if clock is None else {"clock": clock}
        self.scheduler = Scheduler(db._catalog, lambda: db._at.engine, tell=self.heard.append, **given)

    def step(self) -> list[tuple[str, ...]]:
        with ThreadPoolExecutor(4) as pool:
            tick = self.scheduler.tick(pool)
        return sorted(tick.begun)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def played(orders: penstock.Database, clock: Clock) -> Played:
    return Played(orders, clock)


def states(db: penstock.Database) -> dict[str, tuple[State, int]]:
    return {view.name: (view.state, view.errors) for view in db.status()}


TOTALS = "SELECT region, SUM(amount) AS total FROM orders GROUP BY region"


def test_on_commit(orders: penstock.Database, played: Played) -> None:
    orders.create_view("totals", TOTALS, refresh="ON COMMIT")
    orders.create_view("by_hand", TOTALS)
    assert played.step() == []
    for number in range(5):
        orders.sql(f"INSERT INTO orders VALUES ({number + 3}, 'eu', 1)")
    assert played.step() == [("totals",)], "five commits are one refresh"
    assert played.step() == []
    assert_fresh(orders, "totals", "INCREMENTAL")
    assert [view.name for view in orders.status() if view.stale] == ["by_hand"]
    (report,) = played.heard[0].reports
    assert (report.name, report.action, played.heard[0].due[0].why.value) == (
        "totals", "INCREMENTAL", "a commit to a source",
    )  # fmt: skip


def test_commits_while_a_refresh_runs_make_one_more(orders: penstock.Database, clock: Clock) -> None:
    class Busy:
        def refresh(self, names: list[str], **how: Any) -> Any:
            """A refresh that has pinned its sources when others write."""
            report = orders._at.engine.refresh(names, **how)
            for number in range(100 if len(played.heard) == 0 else 0):
                orders.sql(f"INSERT INTO orders VALUES ({number + 10}, 'eu', 1)")
            return report

    played = Played(orders, clock)
    played.scheduler._engine = Busy  # type: ignore[assignment]
    orders.create_view("totals", TOTALS, refresh="ON COMMIT")
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 1)")
    assert [played.step() for _ in range(3)] == [[("totals",)], [("totals",)], []]
    assert_fresh(orders, "totals", "INCREMENTAL")
    assert orders._catalog.world().frontiers["totals"]["orders"].version == 102


def test_at_most_so_often(orders: penstock.Database, played: Played, clock: Clock) -> None:
    orders.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS} TRIGGER ON UPDATE AT MOST EVERY INTERVAL 5 MINUTES")
    clock.move(minutes=6)
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 1)")
    assert played.step() == [("totals",)]
    orders.sql("INSERT INTO orders VALUES (4, 'eu', 1)")
    assert played.step() == []
    clock.move(minutes=6)
    assert played.step() == [("totals",)]
    assert_fresh(orders, "totals", "INCREMENTAL")


def test_every_and_cron_and_lag(orders: penstock.Database, played: Played, clock: Clock) -> None:
    orders.set("max_concurrent_refreshes", "4")
    orders.create_view("hourly", TOTALS, refresh="EVERY 1 HOUR")
    orders.create_view("nightly", TOTALS, refresh="CRON '0 3 * * *' AT TIME ZONE 'Europe/Berlin'")
    orders.create_view("live", TOTALS, target_lag="10 minutes")
    assert played.step() == []
    clock.move(minutes=9)
    assert ("live",) in played.step()
    clock.move(hours=2)
    assert {("hourly",), ("live",)} <= set(played.step())
    clock.move(days=1, hours=1)
    begun = {key for group in played.step() for key in group}
    assert begun == {"hourly", "nightly", "live"}
    orders.sql("ALTER MATERIALIZED VIEW hourly DROP SCHEDULE")
    orders.alter_view("nightly", refresh="MANUAL")
    orders.sql("ALTER MATERIALIZED VIEW live SUSPEND")
    clock.move(days=2)
    assert played.step() == []
    orders.resume("live")
    assert played.step() == [("live",)]


def test_a_reader_says_how_fresh_what_it_reads_must_be(orders: penstock.Database) -> None:
    orders.create_view("clean", "SELECT * FROM orders WHERE amount > 0", target_lag="DOWNSTREAM")
    orders.create_view("alone", "SELECT * FROM orders", target_lag="downstream")
    orders.create_view("live", "SELECT region, COUNT(*) AS n FROM clean GROUP BY region", target_lag="2 minutes")
    told = {view.name: (view.target_lag, view.lag_from) for view in orders.status()}
    assert told == {
        "clean": (timedelta(minutes=2), "live"),
        "alone": (timedelta(minutes=1), None),
        "live": (timedelta(minutes=2), "live"),
    }
    orders.set("min_target_lag", "30 seconds")
    assert {v.name: v.target_lag for v in orders.status()}["alone"] == timedelta(seconds=30)


def test_a_lag_is_altered_in_place_and_who_cannot_keep_it_says_so(
    orders: penstock.Database, played: Played, clock: Clock
) -> None:
    orders.create_view("totals", TOTALS, target_lag="2 milliseconds")
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 1)")
    clock.move(hours=1)
    assert played.step() == [("totals",)]
    (view,) = orders.status()
    assert view.too_slow
    assert view.takes is not None
    assert "too slow: a refresh takes" in view.state_in_words()
    assert "and one is due every 0.0 s" in next(a.message for a in orders.alerts() if a.kind == "lag_exceeded")
    orders.alter_view("totals", target_lag="1 hour")
    (view,) = orders.status()
    assert (view.too_slow, view.state_in_words(), view.target_in_words()) == (False, "ACTIVE", "1 hour")
    orders.sql("ALTER MATERIALIZED VIEW totals DROP TARGET LAG")
    (view,) = orders.status()
    assert (view.target_lag, view.refreshes_itself, view.target_in_words()) == (None, False, "")
    orders.alter_view("totals", target_lag="DOWNSTREAM")
    orders.alter_view("totals", target_lag="none")
    assert not orders.status()[0].refreshes_itself


def test_readers_of_a_view_that_waits_follow_when_it_goes_on(
    orders: penstock.Database, played: Played, clock: Clock
) -> None:
    """What a suspended view has not read its readers have not read either, though they are refreshed meanwhile."""
    orders.create_view("base", "SELECT region, amount FROM orders WHERE amount > 0", refresh="ON COMMIT")
    orders.create_view("readers", "SELECT region, SUM(amount) AS total FROM base GROUP BY region", refresh="ON COMMIT")
    orders.suspend("base")
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 1)")
    assert played.step() == [], "there is nothing that its readers could read"
    orders.alter_view("readers", target_lag="2 milliseconds")
    clock.move(hours=1)
    assert played.step() == [("readers",)]
    assert_fresh(orders, "readers", "NO_DATA")
    assert [view.name for view in orders.status() if view.stale] == ["base", "readers"]
    orders.alter_view("readers", target_lag="NONE")
    orders.resume("base")
    assert played.step() == [("base", "readers")]
    assert_fresh(orders, "readers", "INCREMENTAL")
    orders.alter_view("base", refresh="MANUAL")
    orders.sql("INSERT INTO orders VALUES (4, 'us', 1)")
    orders.refresh("base")
    assert played.step() == [("readers",)], "its input was refreshed by somebody else"
    assert_all_fresh(orders)


def test_who_is_held_by_another_process_is_asked_for_less_and_less(
    orders: penstock.Database, played: Played, clock: Clock
) -> None:
    orders.create_view("totals", TOTALS, refresh="ON COMMIT")
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 1)")
    with Leases(orders._catalog, ["totals"]):
        tries = 0
        for _ in range(240):
            tries += played.step() == [("totals",)]
            clock.move(seconds=0.25)
        assert 10 < tries < 20, "a minute"
    skipped, _ = orders.history("totals")
    assert skipped.times == tries, "what is said again and again is one line"
    clock.move(seconds=5)
    assert played.step() == [("totals",)]
    assert_fresh(orders, "totals", "INCREMENTAL")


def test_once_ends_though_there_is_always_something_due(orders: penstock.Database) -> None:
    orders.create_view("live", TOTALS, target_lag="1 millisecond")
    heard: list[Finished] = []
    orders.runner(heard.append).run(until_idle=True)
    assert len(heard) == 1


def test_an_error_of_the_loop_is_not_its_end(orders: penstock.Database, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Clock):
        asked = 0

        def __call__(self) -> datetime:
            self.asked += 1
            return 1 / 0 if self.asked == 3 else super().__call__()  # type: ignore[return-value]

    orders.create_view("totals", TOTALS, refresh="ON COMMIT")
    played = Played(orders, Broken())
    thread = threading.Thread(target=played.scheduler.run)
    thread.start()
    try:
        wait_for(lambda: played.scheduler.look_again() or "what is due cannot be told" in caplog.text)
        orders.sql("INSERT INTO orders VALUES (3, 'eu', 1)")
        wait_for(lambda: played.scheduler.look_again() or bool(played.heard))
    finally:
        played.scheduler.stop()
        thread.join()
    assert_fresh(orders, "totals", "INCREMENTAL")


def test_what_has_nothing_in_common_is_refreshed_side_by_side(orders: penstock.Database, played: Played) -> None:
    orders.sql("CREATE TABLE other (id INT)")
    for name, query in {"a": TOTALS, "b": "SELECT id FROM other", "c": "SELECT region FROM a"}.items():
        orders.create_view(name, query, refresh="ON COMMIT")
    orders.sql("INSERT INTO other VALUES (1)")
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 1)")
    assert [set(group) for group in played.step()] == [{"a", "c"}, {"b"}]
    assert_all_fresh(orders)
    orders.set("max_concurrent_refreshes", "1")
    orders.sql("INSERT INTO other VALUES (2)")
    orders.sql("INSERT INTO orders VALUES (4, 'eu', 1)")
    assert len(played.step()) == 1
    assert len(played.step()) == 1
    assert played.step() == []
    assert_all_fresh(orders)


def test_what_is_more_important_goes_first(orders: penstock.Database, played: Played) -> None:
    orders.set("max_concurrent_refreshes", "1")
    for number in range(3):
        orders.sql(f"CREATE TABLE t{number} (id INT)")
        orders.create_view(f"v{number}", f"SELECT id FROM t{number}", refresh="ON COMMIT", priority=number)
        orders.sql(f"INSERT INTO t{number} VALUES (1)")
    assert [played.step() for _ in range(4)] == [[("v2",)], [("v1",)], [("v0",)], []]


def test_a_users_error_is_not_tried_again_before_something_changes(
    orders: penstock.Database, played: Played, clock: Clock
) -> None:
    orders.create_view("ratios", "SELECT id, 100 / amount AS r FROM orders", refresh="ON COMMIT")
    orders.create_view("readers", "SELECT COUNT(*) AS n FROM ratios", refresh="ON COMMIT")
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 0)")
    played.step()
    assert states(orders)["ratios"] == (State.ERROR, 1)
    assert orders._catalog.world().states["ratios"].kind == Fault.USER
    assert next(v for v in orders.status() if v.name == "readers").held_back_by == ("ratios",)
    clock.move(hours=5)
    assert not any("ratios" in group for group in played.step()), "the same rows would fail again"
    safe = "SELECT id, 100 / NULLIF(amount, 0) AS r FROM orders"
    orders.create_view("ratios", safe, refresh="ON COMMIT", or_replace=True)
    assert states(orders)["ratios"] == (State.ACTIVE, 0), "the new query is another"
    orders.sql("UPDATE orders SET amount = 5 WHERE id = 3")
    played.step()
    assert states(orders)["ratios"] == (State.ACTIVE, 0)
    assert_fresh(orders, "ratios", "INCREMENTAL")


def test_after_three_errors_a_view_is_suspended_until_it_is_resumed(orders: penstock.Database, played: Played) -> None:
    orders.create_view("ratios", "SELECT id, 100 / amount AS r FROM orders", refresh="ON COMMIT")
    orders.create_view("totals", TOTALS, refresh="ON COMMIT")
    for number in range(3):
        orders.sql(f"INSERT INTO orders VALUES ({10 + number}, 'eu', 0)")
        played.step()
        assert_fresh(orders, "totals", "INCREMENTAL")
    assert states(orders) == {"ratios": (State.SUSPENDED, 3), "totals": (State.ACTIVE, 0)}
    orders.sql("DELETE FROM orders WHERE amount = 0")
    assert played.step() == [("totals",)]
    orders.sql("ALTER MATERIALIZED VIEW ratios RESUME")
    assert states(orders)["ratios"] == (State.ACTIVE, 0)
    assert played.step() == [("ratios",)]
    assert_all_fresh(orders)


def test_errors_of_views_that_are_refreshed_by_hand_are_not_counted(orders: penstock.Database) -> None:
    orders.create_view("ratios", "SELECT id, 100 / amount AS r FROM orders")
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 0)")
    for _ in range(4):
        with pytest.raises(penstock.RefreshError):
            orders.refresh()
    assert states(orders)["ratios"] == (State.ACTIVE, 0)


WRITER = "import sys, pyarrow as pa, deltalake as d\nfor i in range(3): d.write_deltalake(sys.argv[1], pa.table({'id': pa.array([i + 50], pa.int32()), 'region': ['x'], 'amount': pa.array([1], pa.int32())}), mode='append')"  # noqa: E501


def test_in_the_background_commits_of_this_and_of_other_processes_are_followed(orders: penstock.Database) -> None:
    orders.set("poll_interval", "200 milliseconds")
    orders.create_view("totals", TOTALS, refresh="ON COMMIT")
    heard: list[Finished] = []
    with orders.run(background=True, tell=heard.append) as runner:
        orders.sql("INSERT INTO orders VALUES (3, 'eu', 1)")
        wait_for(lambda: not orders.status()[0].stale)
        path = orders._catalog.world().tables["orders"].path
        subprocess.run([sys.executable, "-c", WRITER, path], check=True)
        wait_for(lambda: not orders.status()[0].stale and heard[-1].reports[0].name == "totals")
        assert runner.running
    assert not runner.running
    assert_fresh(orders, "totals", "INCREMENTAL")
    orders.sql("INSERT INTO orders VALUES (4, 'eu', 1)")
    time.sleep(0.5)
    assert orders.status()[0].stale, "nobody runs any more"


def test_what_was_written_in_its_block_is_followed_before_it_ends(orders: penstock.Database) -> None:
    orders.create_view("totals", TOTALS, refresh="ON COMMIT")
    orders.create_view("rich", "SELECT * FROM totals WHERE total > 5", refresh="ON COMMIT")
    with orders.run(background=True):
        orders.sql("INSERT INTO orders VALUES (3, 'eu', 7)")
    assert [view.name for view in orders.status() if view.stale] == []
    assert_fresh(orders, "totals", "INCREMENTAL")
    assert_fresh(orders, "rich", "INCREMENTAL")
    with pytest.raises(ZeroDivisionError), orders.run(background=True) as runner:
        1 // 0  # noqa: B018
    assert not runner.running


def test_two_schedulers_share_the_work(orders: penstock.Database) -> None:
    orders.set("poll_interval", "100 milliseconds")
    orders.create_view("totals", TOTALS, refresh="ON COMMIT")
    heard: list[list[Finished]] = [[], []]
    with orders.run(background=True, tell=heard[0].append), orders.run(background=True, tell=heard[1].append):
        for number in range(12):
            orders.sql(f"INSERT INTO orders VALUES ({number + 3}, 'eu', 1)")
            time.sleep(0.05)
        wait_for(lambda: not orders.status()[0].stale)
    reports = [report for each in heard for finished in each for report in finished.reports]
    assert not [report for report in reports if report.status == "FAILED"]
    assert sum(report.rows_inserted > 0 for report in reports) <= 12, "no commit is taken twice"
    orders.refresh()
    assert_fresh(orders, "totals")


def test_callbacks_fire_once_after_success_in_order(
    orders: penstock.Database, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[tuple[str, object]] = []
    forget = orders.on_commit(lambda commit: seen.append(("first", commit.operation)))
    orders.on_commit(lambda commit: 1 // 0)
    orders.on_commit(lambda commit: seen.append(("last", (commit.table, commit.version, commit.rows))))
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 1)")
    assert seen == [("first", "INSERT"), ("last", ("orders", 2, 1))]
    assert "a callback failed after the INSERT on 'orders', which is committed" in caplog.text
    with pytest.raises(penstock.PenstockError):
        orders.sql("INSERT INTO orders VALUES ('no number', 'eu', 1)")
    orders.sql("SELECT * FROM orders")
    orders.sql("DELETE FROM orders WHERE id = 999")
    assert len(seen) == 2
    forget()
    orders.sql("UPDATE orders SET amount = 7 WHERE id = 3")
    orders.sql("MERGE INTO orders USING (SELECT 2 AS id) s ON orders.id = s.id WHEN MATCHED THEN DELETE")
    assert [who for who, _ in seen[2:]] == ["last", "last"]


def wait_for(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"it does not come to hold in {seconds} s; threads: {threading.enumerate()}"
        time.sleep(0.05)


def test_small_views_share_an_epoch_where_many_are_due(
    orders: penstock.Database, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fails is told of alone, and the others are published with the epoch."""
    for number in range(4):
        orders.sql(f"CREATE TABLE t{number} (k STRING)")
        query = f"SELECT k, COUNT(*) AS n FROM t{number} GROUP BY k" if number else "SELECT CAST(k AS INT) AS n FROM t0"
        orders.create_view(f"v{number}", query, refresh="ON COMMIT")
        orders.sql(f"INSERT INTO t{number} VALUES ('1')")
    assert played.step() == [("v0",), ("v1",)], "few go each on their own, two side by side"
    assert played.step() == [("v2",), ("v3",)]
    for number in range(4):
        orders.sql(f"INSERT INTO t{number} VALUES ('{'no number' if number == 0 else 2}')")
    monkeypatch.setattr(parts, "MANY", 2)
    monkeypatch.setattr(scheduler, "WORTH", 1_000_000)
    played.heard.clear()
    assert played.step() == [("v0", "v1", "v2", "v3")]
    (finished,) = played.heard
    assert {report.name: str(report.status) for report in finished.reports} == {
        "v0": "FAILED", "v1": "SUCCEEDED", "v2": "SUCCEEDED", "v3": "SUCCEEDED",
    }  # fmt: skip
    for view in ("v1", "v2", "v3"):
        assert_fresh(orders, view, "INCREMENTAL")


def test_definitions_that_change_as_a_refresh_begins(
    orders: penstock.Database, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A diamond that was made meanwhile advances as one, and a view that was dropped holds up nobody."""
    changes: list[Callable[[], object]] = []

    class Late:
        def refresh(self, names: list[str], **how: Any) -> Any:
            changes.pop()()
            return orders._at.engine.refresh(names, **how)

    played.scheduler._engine = Late  # type: ignore[assignment]
    orders.create_view("totals", TOTALS, refresh="ON COMMIT")
    orders.create_view("counts", "SELECT region, COUNT(*) AS n FROM orders GROUP BY region")
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 1)")
    both = "SELECT region, total, n FROM totals JOIN counts USING (region)"
    changes.append(lambda: (orders.create_view("both", both), orders.sql("INSERT INTO orders VALUES (4, 'eu', 1)")))
    assert played.step() == [("totals",)]
    frontiers = orders._catalog.world().frontiers
    assert {frontiers[view]["orders"].version for view in ("totals", "counts", "both")} == {3}
    assert_all_fresh(orders, action="INCREMENTAL")

    orders.sql("DROP MATERIALIZED VIEW totals CASCADE")
    monkeypatch.setattr(parts, "MANY", 0)
    monkeypatch.setattr(scheduler, "WORTH", 1_000_000)
    for name in "ab":
        orders.sql(f"CREATE TABLE of_{name} (k STRING)")
        orders.create_view(name, f"SELECT k, COUNT(*) AS n FROM of_{name} GROUP BY k", refresh="ON COMMIT")
        orders.sql(f"INSERT INTO of_{name} VALUES ('x')")
    changes.append(lambda: orders.drop_view("a"))
    played.heard.clear()
    assert played.step() == [("a", "b")]
    assert [(finished.error, [report.name for report in finished.reports]) for finished in played.heard] == [
        (None, ["b"])
    ]
    assert_fresh(orders, "b", "INCREMENTAL")


def test_each_shard_refreshes_its_own_views(orders: penstock.Database) -> None:
    """What reads each other is in one shard; all together do what one scheduler would."""
    orders.create_view("totals", TOTALS, refresh="ON COMMIT")
    orders.create_view("most", "SELECT MAX(total) AS most FROM totals", refresh="ON COMMIT")
    for name in "abcd":
        orders.create_view(name, "SELECT region FROM orders", refresh="ON COMMIT")
    orders.sql("INSERT INTO orders VALUES (3, 'eu', 1)")
    done: list[set[str]] = []
    for shard in ("1/2", "2/2"):
        heard: list[Finished] = []
        orders.runner(heard.append, shard=shard).run(until_idle=True)
        done.append({one.key for finished in heard for one in finished.due})
    assert done[0] | done[1] == {"totals", "most", *"abcd"}
    assert not done[0] & done[1]
    assert all(done)
    assert {"totals", "most"} <= done[0] or {"totals", "most"} <= done[1]
    assert_all_fresh(orders, action="INCREMENTAL")
