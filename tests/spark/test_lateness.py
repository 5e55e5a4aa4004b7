"""Rows that come too late for a view: kept aside, read, and replayed."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import pytest

import penstock
from event_time import BARS, SECONDS, at, put, rows, watermarks
from oracle import assert_fresh
from penstock.engine import cost
from penstock.frames import limits


@pytest.fixture
def trades(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE trades (at TIMESTAMP, price DECIMAL(6,1), WATERMARK FOR at AS at - INTERVAL 0 SECONDS)")
    return db


def seconds(db: penstock.Database, view: str = "late_seconds") -> list[tuple[int, int, float]]:
    return sorted((int(row.s.timestamp() * 1000), row.n, float(row.high)) for row in db.table(view).collect())


def test_rows_that_are_too_late_are_kept_aside_and_can_be_replayed(trades: penstock.Database) -> None:
    put(trades, (500, 1), (9000, 2))
    trades.sql(f"CREATE MATERIALIZED VIEW late_seconds AS {SECONDS} ALLOW LATENESS INTERVAL 2 SECONDS")
    trades.sql(f"CREATE MATERIALIZED VIEW all_seconds AS {SECONDS}")
    assert seconds(trades) == [(0, 1, 1.0), (9000, 1, 2.0)]  # what was there from the beginning is not late

    put(trades, (7500, 3), (6900, 99), (10000, 4))
    report = trades.refresh()
    assert (report["late_seconds"].action, report["late_seconds"].late) == ("INCREMENTAL", 1)
    assert report["all_seconds"].late == 0
    assert seconds(trades) == [(0, 1, 1.0), (7000, 1, 3.0), (9000, 1, 2.0), (10000, 1, 4.0)]
    assert_fresh(trades, "all_seconds", "INCREMENTAL")
    shown = trades.sql("SELECT price, __change FROM late_seconds_late")
    assert [tuple(row) for row in shown.collect()] == [(Decimal("99.0"), 1)]  # type: ignore[union-attr]
    assert (trades.history("late_seconds", 1)[0].details or {})["late"] == 1

    # The window at 7 s goes on without the late row, also when it is computed anew.
    put(trades, (8100, 5), (7900, 1))
    trades.sql(f"UPDATE trades SET price = 0 WHERE at = {at(8100)}")
    assert trades.refresh()["late_seconds"].late == 1
    assert seconds(trades)[1:3] == [(7000, 1, 3.0), (8000, 1, 0.0)]

    done = trades.sql("REPLAY LATE ROWS FOR late_seconds")
    assert "INCREMENTAL" in str(done)
    assert seconds(trades) == seconds(trades, "all_seconds")
    assert trades.table("late_seconds_late").count() == 0
    assert_fresh(trades, "all_seconds")


def test_what_is_late_for_one_view_is_not_for_another_that_is_created_later(trades: penstock.Database) -> None:
    """Only what comes after a view was created, or replaced, can be late for it."""
    create = "MATERIALIZED VIEW {} AS SELECT SUM(price) AS s FROM trades ALLOW LATENESS INTERVAL 1 SECOND"
    trades.sql("CREATE " + create.format("first"))
    put(trades, (10_000, 1))
    trades.refresh()
    put(trades, (1000, 5))
    assert trades.refresh()["first"].late == 1
    trades.sql("CREATE " + create.format("second"))
    assert rows(trades, "first") == [(Decimal("1.0"),)]
    assert rows(trades, "second") == [(Decimal("6.0"),)]
    assert rows(trades, "second_late") == []

    put(trades, (2000, 7))
    trades.refresh()
    trades.sql("REPLAY LATE ROWS FOR second")
    assert rows(trades, "second") == [(Decimal("13.0"),)]
    assert rows(trades, "first") == [(Decimal("1.0"),)]
    assert len(rows(trades, "first_late")) == 2

    trades.sql("CREATE OR REPLACE " + create.format("first"))
    assert rows(trades, "first") == [(Decimal("13.0"),)]
    assert rows(trades, "first_late") == []
    put(trades, (3000, 9))
    assert {name: view.late for name, view in trades.refresh().items()} == {"first": 1, "second": 1}


def test_changes_of_rows_that_are_too_old_are_late_too(trades: penstock.Database) -> None:
    put(trades, (500, 1), (1500, 2), (9000, 3))
    trades.sql(f"CREATE MATERIALIZED VIEW late_seconds AS {SECONDS} ALLOW LATENESS INTERVAL '2 seconds'")
    trades.sql(f"DELETE FROM trades WHERE at = {at(500)}")
    trades.sql(f"UPDATE trades SET price = 7 WHERE at = {at(1500)}")
    trades.sql(f"UPDATE trades SET price = 8 WHERE at = {at(9000)}")
    assert trades.refresh()["late_seconds"].late == 3
    assert seconds(trades) == [(0, 1, 1.0), (1000, 1, 2.0), (9000, 1, 8.0)]
    late = trades.sql("SELECT price, __change FROM late_seconds_late ORDER BY price, __change")
    assert [(float(row[0]), row[1]) for row in late.collect()] == [(1.0, -1), (2.0, -1), (7.0, 1)]  # type: ignore[union-attr]
    report = trades.refresh(full=True)
    assert report["late_seconds"].action == "FULL"
    assert seconds(trades) == [(0, 1, 1.0), (1000, 1, 2.0), (9000, 1, 8.0)]
    trades.replay_late("late_seconds")
    assert seconds(trades) == [(1000, 1, 7.0), (9000, 1, 8.0)]


def test_large_changes_do_not_let_late_rows_in(trades: penstock.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recomputing may be cheaper, but which rows came late cannot be computed again."""
    monkeypatch.setattr(limits, "WEIGHED_ROWS", 0)
    monkeypatch.setattr(limits, "WEIGHED_CHANGE_ROWS", 0)
    monkeypatch.setattr(cost, "MARGIN", 0.0)
    put(trades, (500, 1), (9000, 2))
    trades.sql(f"CREATE MATERIALIZED VIEW late_seconds AS {SECONDS} ALLOW LATENESS INTERVAL 2 SECONDS")
    for millis in (600, 700):
        put(trades, (millis, 50), (9500, 3))
        report = trades.refresh()["late_seconds"]
        assert (report.action, report.reason, report.late) == ("FULL", "CHEAPER", 1)
    assert seconds(trades) == [(0, 1, 1.0), (9000, 3, 3.0)]
    assert trades.table("late_seconds_late").count() == 2
    assert trades.status()[0].last_late == 1


def test_a_table_whose_history_is_gone_keeps_what_came_late(trades: penstock.Database) -> None:
    put(trades, (500, 1), (9000, 2))
    trades.sql(f"CREATE MATERIALIZED VIEW late_seconds AS {SECONDS} ALLOW LATENESS INTERVAL 2 SECONDS")
    put(trades, (600, 50))
    assert trades.refresh()["late_seconds"].late == 1
    put(trades, (9500, 3))
    trades.sql("DELETE FROM trades WHERE price = 2")
    put(trades, (9600, 4))
    trades.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    trades.sql("OPTIMIZE trades")
    trades.sql("VACUUM trades RETAIN 0 HOURS")
    report = trades.refresh()["late_seconds"]
    assert (report.action, report.reason) == ("REINITIALIZE", "HISTORY_GONE")
    assert seconds(trades) == [(0, 1, 1.0), (9000, 2, 4.0)]


def test_what_was_shown_is_kept_up_to_date_without_a_watermark(trades: penstock.Database) -> None:
    """Neither a view that waits nor a watermark that is taken away makes one that was known unknown."""
    trades.sql(f"CREATE MATERIALIZED VIEW bars AS {BARS} EMIT AFTER WATERMARK")
    put(trades, (100, 5), (1100, 6))
    trades.refresh()
    trades.sql("ALTER TABLE trades DROP WATERMARK")
    put(trades, (200, 9), (9000, 1))
    trades.refresh()
    assert_fresh(trades, "bars", "INCREMENTAL")
    assert [float(row.high) for row in trades.table("bars").collect()] == [9.0]


def test_a_reader_of_a_view_that_waits_keeps_its_watermark(trades: penstock.Database) -> None:
    bars = BARS.replace("FROM trades", "FROM seldom")
    trades.sql("CREATE MATERIALIZED VIEW seldom AS SELECT at, price FROM trades EMIT PERIODICALLY INTERVAL 1 DAY")
    trades.sql(f"CREATE MATERIALIZED VIEW bars AS {bars} EMIT AFTER WATERMARK")
    put(trades, (100, 5), (1100, 6))
    trades.refresh("seldom", full=True)
    trades.refresh()
    assert watermarks(trades) == {"trades": 1100, "seldom": 1100, "bars": 1100}
    put(trades, (9000, 5))
    assert trades.refresh()["seldom"].reason == "NOT_DUE"
    assert watermarks(trades)["bars"] == 1100  # and not unknown, which would let nothing through
    assert len(rows(trades, "bars")) == 1


def test_late_rows_can_be_read_in_every_way_and_written_in_none(trades: penstock.Database) -> None:
    trades.sql(f"CREATE MATERIALIZED VIEW v AS {SECONDS} ALLOW LATENESS INTERVAL 1 SECOND")
    put(trades, (10_000, 1))
    trades.refresh()
    put(trades, (1000, 5))
    epoch = trades.refresh().epoch
    expected = rows(trades, "v_late")
    assert len(expected) == 1
    with trades.snapshot() as snapshot:
        assert sorted(tuple(row) for row in snapshot.sql("SELECT * FROM v_late").collect()) == expected
    past = trades.sql(f"SELECT COUNT(*) AS n FROM v_late AS OF EPOCH {epoch - 1}")
    assert not isinstance(past, penstock.Done)
    assert past.collect()[0].n == 0
    described = trades.sql("DESCRIBE v_late")
    assert not isinstance(described, penstock.Done)
    assert {"at", "price", "__change", "# Late for"} <= {row.col_name for row in described.collect()}
    with pytest.raises(penstock.NotSupportedError, match="DESCRIBE HISTORY is for tables, and 'v_late' is none"):
        trades.sql("DESCRIBE HISTORY v_late")
    trades.sql("SHOW DEPENDENCIES FOR v_late")
    for statement in (
        "INSERT INTO v_late SELECT * FROM v_late", "DELETE FROM v_late", "DROP TABLE v_late", "VACUUM v_late",
        "ALTER TABLE v_late DROP WATERMARK", "DROP TABLE IF EXISTS v_late",
    ):  # fmt: skip
        with pytest.raises(penstock.NotSupportedError, match=r"came late for view 'v'.*REPLAY LATE ROWS FOR v"):
            trades.sql(statement)


def test_late_rows_of_two_tables_are_read_apart(trades: penstock.Database) -> None:
    trades.sql("CREATE TABLE news (seen TIMESTAMP, price DECIMAL(6,1), text STRING, WATERMARK FOR seen AS seen)")
    trades.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT t.at, n.seen, n.text FROM trades t JOIN news n ON t.price = n.price "
        "ALLOW LATENESS INTERVAL 1 SECOND"
    )
    put(trades, (10_000, 1))
    trades.sql(f"INSERT INTO news VALUES ({at(20_000)}, 1.0, 'a')")
    trades.refresh()
    put(trades, (1000, 1))
    trades.sql(f"INSERT INTO news VALUES ({at(15_000)}, 1.0, 'b')")
    assert trades.refresh()["v"].late == 2
    with pytest.raises(penstock.NotFoundError, match=r"Read v_late_[a-z]* or v_late_[a-z]*"):
        trades.table("v_late")
    assert [row.text for row in trades.table("v_late_news").collect()] == ["b"]
    assert [row.price for row in trades.table("v_late_trades").collect()] == [Decimal("1.0")]


def test_names_of_late_rows_are_taken_and_a_view_without_rows_has_none_yet(trades: penstock.Database) -> None:
    lateness = "ALLOW LATENESS INTERVAL 1 SECOND"
    trades.sql("CREATE TABLE w_late (i INT)")
    with pytest.raises(penstock.AlreadyExistsError, match="would keep its late rows as 'w_late', and a table has"):
        trades.sql(f"CREATE MATERIALIZED VIEW w AS {SECONDS} {lateness}")
    trades.sql(f"CREATE MATERIALIZED VIEW v AS {SECONDS} {lateness} WITH NO DATA")
    for statement in ("CREATE TABLE v_late (i INT)", f"CREATE MATERIALIZED VIEW v_late AS {SECONDS}"):
        with pytest.raises(penstock.AlreadyExistsError, match="taken by the rows that come late for view 'v'"):
            trades.sql(statement)
    for statement in ("SELECT * FROM v_late", "REPLAY LATE ROWS FOR v"):
        with pytest.raises(penstock.DefinitionError, match="Run REFRESH MATERIALIZED VIEW v"):
            trades.sql(statement)
    trades.refresh("v")
    assert rows(trades, "v_late") == []


def test_lateness_that_cannot_be(trades: penstock.Database) -> None:
    trades.sql("CREATE TABLE plain (at TIMESTAMP, price INT)")
    with pytest.raises(penstock.DefinitionError, match="ALLOW LATENESS needs a table with a watermark"):
        trades.sql("CREATE MATERIALIZED VIEW v AS SELECT price FROM plain ALLOW LATENESS INTERVAL 1 SECOND")
    with pytest.raises(penstock.DefinitionError, match="maintained incrementally, and this one is not"):
        trades.sql(f"CREATE MATERIALIZED VIEW v AS {SECONDS} ALLOW LATENESS INTERVAL 1 SECOND REFRESH POLICY FULL")
    trades.sql(f"CREATE MATERIALIZED VIEW v AS {SECONDS}")
    with pytest.raises(penstock.DefinitionError, match="without ALLOW LATENESS"):
        trades.sql("REPLAY LATE ROWS FOR v")
    with pytest.raises(penstock.NotFoundError, match="no table or view 'v_late'"):
        trades.table("v_late")


# -- lateness against a model -----------------------------------------------------------------------------------------


class Model:
    """What a table and a view with ALLOW LATENESS hold, worked out in plain Python: rows are (id, millis, price)."""

    def __init__(self, lateness: int):
        self.lateness = lateness
        self.table: dict[int, tuple[int, int]] = {}
        self.taken: Counter[tuple[int, int, int]] = Counter()
        self.watermark: int | None = None
        self._consumed: Counter[tuple[int, int, int]] = Counter()

    def refresh(self) -> int:
        """Take what is not late; gives how many changed rows were."""
        now = Counter((number, *row) for number, row in self.table.items())
        change = Counter(now)
        change.subtract(self._consumed)
        late = 0
        for row, weight in change.items():
            if weight and self.watermark is not None and row[1] < self.watermark - self.lateness:
                late += 1
            else:
                self.taken[row] += weight
        seen = [row[1] for row, weight in change.items() if weight > 0]
        self.watermark = max([*seen, *([] if self.watermark is None else [self.watermark])], default=None)
        self._consumed = now
        return late

    def seconds(self) -> list[tuple[int, int, float]]:
        groups: dict[int, list[int]] = {}
        for (_, millis, price), weight in self.taken.items():
            groups.setdefault(millis // 1000 * 1000, []).extend([price] * weight)
        return sorted((s, len(prices), float(max(prices))) for s, prices in groups.items() if prices)


@pytest.mark.parametrize("seed", [2])
def test_lateness_follows_its_model(db: penstock.Database, seed: int) -> None:
    chance = random.Random(seed)
    model, number = Model(lateness=3000), 0
    db.sql("CREATE TABLE trades (id INT, at TIMESTAMP, price INT, WATERMARK FOR at AS at)")
    db.sql(f"CREATE MATERIALIZED VIEW late_seconds AS {SECONDS} ALLOW LATENESS INTERVAL 3 SECONDS")
    for step in range(1, 7):
        for _ in range(chance.randint(1, 2)):
            what = chance.choice(["insert", "insert", "update", "delete"])
            victims = chance.sample(sorted(model.table), min(3, len(model.table)))
            if what == "insert" or not victims:
                rows_of = []
                for _ in range(chance.randint(1, 5)):
                    number += 1
                    model.table[number] = (max(0, step * 2000 - chance.randint(0, 9000)), chance.randint(1, 9))
                    rows_of.append(f"({number}, {at(model.table[number][0])}, {model.table[number][1]})")
                db.sql(f"INSERT INTO trades VALUES {', '.join(rows_of)}")
            elif what == "update":
                for victim in victims:
                    model.table[victim] = (model.table[victim][0], model.table[victim][1] + 1)
                db.sql(f"UPDATE trades SET price = price + 1 WHERE id IN ({', '.join(map(str, victims))})")
            else:
                for victim in victims:
                    del model.table[victim]
                db.sql(f"DELETE FROM trades WHERE id IN ({', '.join(map(str, victims))})")
        late = model.refresh()
        report = db.refresh()["late_seconds"]
        assert report.action in ("INCREMENTAL", "NO_DATA"), f"step {step}"
        assert (report.late, seconds(db)) == (late, model.seconds()), f"step {step}"
    model.taken = Counter((n, *row) for n, row in model.table.items())
    db.replay_late("late_seconds")
    assert seconds(db) == model.seconds()
