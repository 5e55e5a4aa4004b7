"""Watermarks, and windows that are shown when they have ended."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from deltalake import DeltaTable

import penstock
from event_time import BARS, SECONDS, at, moment, put, rows, watermarks
from longer import varied
from oracle import assert_fresh
from penstock.storage import changes


@pytest.fixture
def trades(db: penstock.Database) -> penstock.Database:
    db.sql("CREATE TABLE trades (at TIMESTAMP, price DECIMAL(6,1), WATERMARK FOR at AS at - INTERVAL 0 SECONDS)")
    return db


def test_the_worked_example(trades: penstock.Database) -> None:
    """Trades at 1000, 1500 and 2000 ms; the watermark is advanced to 3000."""
    trades.sql(f"CREATE MATERIALIZED VIEW bars AS {BARS} EMIT AFTER WATERMARK REFRESH POLICY INCREMENTAL STRICT")
    trades.sql(f"INSERT INTO trades VALUES ({at(1000)}, 100.0), ({at(1500)}, 105.0), ({at(2000)}, 98.0)")
    trades.refresh()
    first = ("open", "high", "low", "close")
    assert watermarks(trades) == {"trades": 2000, "bars": 2000}
    shown = [tuple(row[name] for name in first) for row in trades.table("bars").collect()]
    assert shown == [tuple(map(Decimal, ("100.0", "105.0", "100.0", "105.0")))]

    trades.sql("ALTER TABLE trades ADVANCE WATERMARK TO TIMESTAMP '1970-01-01 00:00:03'")
    report = trades.refresh()["bars"]
    assert (report.action, report.rows_inserted, report.rows_deleted) == ("INCREMENTAL", 1, 0)
    assert trades.table("bars").where("bar = TIMESTAMP_MILLIS(2000)").collect()[0].close == Decimal("98.0")
    assert watermarks(trades) == {"trades": 3000, "bars": 3000}
    assert trades.refresh()["bars"].action == "NO_DATA"


@pytest.mark.parametrize(
    "options",
    varied(
        ["", "PARTITIONED BY (p)", "delta.enableChangeDataFeed", "delta.enableDeletionVectors"],
        often=["PARTITIONED BY (p)", "delta.enableChangeDataFeed"],
    ),
)
@pytest.mark.parametrize("on_driver", [True, False])
def test_what_came_and_went_between_two_refreshes_moves_no_watermark(
    db: penstock.Database, monkeypatch: pytest.MonkeyPatch, options: str, on_driver: bool
) -> None:
    """Whoever reads the change, and whatever it is read from."""
    if not on_driver:
        monkeypatch.setattr(changes, "read_locally", lambda *_: None)
    if options.startswith("delta."):
        options = f"TBLPROPERTIES ('{options}' = 'false')"
    db.sql(f"CREATE TABLE t (at TIMESTAMP, p INT, WATERMARK FOR at AS at) {options}")
    db.sql(f"INSERT INTO t VALUES ({at(1000)}, 1), ({at(500)}, 1)")
    db.create_view("v", "SELECT COUNT(*) AS n FROM t")
    db.sql(f"INSERT INTO t VALUES ({at(99_000)}, 1), ({at(2000)}, 1)")
    db.sql(f"DELETE FROM t WHERE at > {at(50_000)}")
    db.sql(f"UPDATE t SET at = {at(50_000)} WHERE at = {at(500)}")
    db.sql(f"UPDATE t SET at = {at(700)} WHERE at = {at(50_000)}")
    db.refresh()
    assert watermarks(db)["t"] == 2000
    db.sql(f"DELETE FROM t WHERE at = {at(2000)}")
    db.sql(f"INSERT INTO t VALUES ({at(1500)}, 1)")
    db.refresh()
    assert watermarks(db)["t"] == 2000, "what was there at an epoch counts for good"
    assert_fresh(db, "v", "INCREMENTAL")


def test_the_watermark_of_a_table_whose_log_was_cleaned_up(db: penstock.Database) -> None:
    db.sql("CREATE TABLE t (at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL 1 SECOND)")
    db.sql(f"INSERT INTO t VALUES ({at(1000)}), ({at(5000)})")
    db.create_view("v", "SELECT COUNT(*) AS n FROM t")
    db.sql(f"INSERT INTO t VALUES ({at(99_000)})")
    db.sql(f"DELETE FROM t WHERE at >= {at(5000)}")
    path = db._catalog.world().tables["t"].path
    DeltaTable(path).create_checkpoint()
    for commit in Path(path, "_delta_log").glob("*.json"):
        commit.unlink()
    db.refresh()
    assert watermarks(db)["t"] == 4000
    db.sql("ALTER TABLE t SET WATERMARK FOR at AS at")
    db.refresh()
    assert watermarks(db)["t"] == 5000, "the latest time that was seen is not forgotten with the log"


def test_a_window_appears_once_and_its_readers_never_see_it_before(trades: penstock.Database) -> None:
    trades.sql(f"CREATE MATERIALIZED VIEW bars AS {BARS} EMIT AFTER WATERMARK")
    trades.sql("CREATE MATERIALIZED VIEW top AS SELECT MAX(high) AS high FROM bars")
    seen = []
    for millis, price in ((100, 1), (200, 9), (900, 5), (1100, 7), (1900, 2), (2500, 3), (2600, 4), (5000, 1)):
        trades.sql(f"INSERT INTO trades VALUES ({at(millis)}, {price})")
        report = trades.refresh()
        assert report["bars"].rows_deleted == 0
        assert_fresh(trades, "bars")
        assert_fresh(trades, "top")
        seen.append((millis, len(rows(trades, "bars")), rows(trades, "top")[0][0]))
    assert seen == [
        (100, 0, None), (200, 0, None), (900, 0, None), (1100, 1, 9), (1900, 1, 9), (2500, 2, 9), (2600, 2, 9),
        (5000, 3, 9),
    ]  # fmt: skip


def test_a_cascade_waits_for_its_own_windows(trades: penstock.Database) -> None:
    trades.sql(f"CREATE MATERIALIZED VIEW bars AS {BARS} EMIT AFTER WATERMARK")
    trades.sql(
        "CREATE MATERIALIZED VIEW tens AS SELECT TUMBLE_START(bar, INTERVAL '10 seconds') AS ten, MAX(high) AS high, "
        "LAST_VALUE(close) AS close FROM bars GROUP BY TUMBLE(bar, INTERVAL '10 seconds') EMIT AFTER WATERMARK"
    )
    for second in range(0, 25, 3):
        trades.sql(f"INSERT INTO trades VALUES ({at(1000 * second + 500)}, {second})")
        trades.refresh()
        assert len(rows(trades, "bars")) == second // 3
        assert len(rows(trades, "tens")) == second // 10
        assert_fresh(trades, "tens", "INCREMENTAL")
    assert [(row.high, row.close) for row in trades.table("tens").orderBy("ten").collect()] == [
        (Decimal("9.0"), Decimal("9.0")),
        (Decimal("18.0"), Decimal("18.0")),
    ]


def test_late_rows_are_applied(trades: penstock.Database) -> None:
    """Without ALLOW LATENESS a view stays equal to its query, of the windows that have ended."""
    trades.sql(f"CREATE MATERIALIZED VIEW bars AS {BARS} EMIT AFTER WATERMARK")
    trades.sql(f"INSERT INTO trades VALUES ({at(100)}, 5), ({at(5100)}, 7)")
    trades.refresh()
    trades.sql(f"INSERT INTO trades VALUES ({at(50)}, 3), ({at(5050)}, 1)")
    trades.refresh()
    assert [(row.open, row.high) for row in trades.table("bars").collect()] == [(Decimal("3.0"), Decimal("5.0"))]
    trades.sql(f"DELETE FROM trades WHERE at < {at(60)}")
    report = trades.refresh()["bars"]
    assert (report.action, report.rows_inserted, report.rows_deleted) == ("INCREMENTAL", 1, 1)
    assert watermarks(trades)["trades"] == 5100


def test_a_watermark_never_moves_back_and_survives(trades: penstock.Database) -> None:
    trades.sql("ALTER TABLE trades SET WATERMARK FOR at AS at - INTERVAL 2 SECONDS")
    trades.sql(f"CREATE MATERIALIZED VIEW bars AS {BARS}")
    assert watermarks(trades) == {"trades": None, "bars": None}
    trades.sql(f"INSERT INTO trades VALUES ({at(9000)}, 5)")
    trades.refresh()
    assert watermarks(trades) == {"trades": 7000, "bars": 7000}
    trades.sql(f"DELETE FROM trades WHERE at = {at(9000)}")
    trades.sql(f"INSERT INTO trades VALUES ({at(1000)}, 5)")
    trades.refresh()
    assert watermarks(trades)["bars"] == 7000
    trades.sql("ALTER TABLE trades SET WATERMARK FOR at AS at - INTERVAL '1 hour'")
    trades.sql(f"INSERT INTO trades VALUES ({at(9500)}, 5)")
    trades.refresh()
    assert watermarks(trades) == {"trades": 7000, "bars": 7000}
    with penstock.connect(trades.path, spark=trades.spark) as again:
        assert again.status()[0].watermark == moment(7000)


def test_a_view_is_as_far_as_its_slowest_table(trades: penstock.Database) -> None:
    trades.sql("CREATE TABLE quotes (at TIMESTAMP, bid INT, WATERMARK FOR at AS at)")
    trades.sql("CREATE TABLE names (n STRING)")
    trades.sql("CREATE MATERIALIZED VIEW priced AS SELECT t.price, q.bid FROM trades t JOIN quotes q ON q.at = t.at")
    trades.sql("CREATE MATERIALIZED VIEW named AS SELECT p.price, n.n FROM priced p CROSS JOIN names n")
    trades.sql(f"INSERT INTO trades VALUES ({at(9000)}, 5)")
    trades.refresh()
    assert watermarks(trades) == {"trades": 9000, "quotes": None, "priced": None, "named": None}
    trades.sql(f"INSERT INTO quotes VALUES ({at(4000)}, 5)")
    trades.refresh()
    assert watermarks(trades) == {"trades": 9000, "quotes": 4000, "priced": 4000, "named": None}


def test_what_cannot_be(trades: penstock.Database) -> None:
    with pytest.raises(penstock.DefinitionError, match="EMIT AFTER WATERMARK needs windows that end"):
        trades.sql("CREATE MATERIALIZED VIEW v AS SELECT price FROM trades EMIT AFTER WATERMARK")
    with pytest.raises(penstock.DefinitionError, match="has no column 'when' for a watermark"):
        trades.sql("ALTER TABLE trades SET WATERMARK FOR `when` AS `when` - INTERVAL 1 SECOND")
    with pytest.raises(penstock.DefinitionError, match=r"'price' is decimal\(6,1\), not a timestamp"):
        trades.sql("CREATE TABLE t (price DECIMAL(6,1), WATERMARK FOR price AS price)")
    with pytest.raises(penstock.SqlError, match="an interval of fixed length"):
        trades.sql("ALTER TABLE trades SET WATERMARK FOR at AS at - INTERVAL 1 MONTH")
    trades.sql("ALTER TABLE trades DROP WATERMARK")
    with pytest.raises(penstock.DefinitionError, match="has no watermark"):
        trades.advance_watermark("trades", moment(1000))


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT DISTINCT COUNT(*) AS n FROM trades GROUP BY TUMBLE(at, INTERVAL 1 SECOND)", "DISTINCT"),
        ("SELECT date_trunc('second', at) AS s FROM trades GROUP BY 1 ORDER BY s DESC LIMIT 1", "LIMIT"),
        ("SELECT date_trunc('second', at) AS s FROM trades GROUP BY 1 ORDER BY s DESC OFFSET 1", "OFFSET"),
        ("SELECT date_trunc('second', at) AS s, SUM(COUNT(*)) OVER () AS n FROM trades GROUP BY 1", r"OVER \(..\)"),
        (
            "SELECT date_trunc('second', at) AS s FROM trades GROUP BY 1 QUALIFY ROW_NUMBER() OVER (ORDER BY s) = 1",
            "QUALIFY",
        ),
        ("SELECT COUNT(*) AS n FROM trades GROUP BY ROLLUP (date_trunc('second', at))", "not within ROLLUP"),
        ("SELECT COUNT(*) AS n FROM trades GROUP BY price, date_trunc('second', at) WITH ROLLUP", "not within ROLLUP"),
    ],
)
def test_what_is_computed_from_several_windows_does_not_wait(
    trades: penstock.Database, query: str, construct: str
) -> None:
    with pytest.raises(penstock.DefinitionError, match=construct):
        trades.sql(f"CREATE MATERIALIZED VIEW v AS {query} EMIT AFTER WATERMARK")


def test_the_newest_window_that_has_ended_is_a_view_over_the_windows(trades: penstock.Database) -> None:
    """Expected rows are written down here: the oracle shares the text of EMIT AFTER WATERMARK with the product."""
    trades.sql(f"CREATE MATERIALIZED VIEW counts AS {SECONDS} EMIT AFTER WATERMARK")
    trades.sql("CREATE MATERIALIZED VIEW newest AS SELECT s, n FROM counts ORDER BY s DESC LIMIT 1")
    trades.sql("CREATE MATERIALIZED VIEW ever AS SELECT DISTINCT n, SUM(n) OVER () AS total FROM counts")
    put(trades, (100, 1), (1200, 1), (1300, 1), (2500, 1))
    trades.refresh()
    assert [row.n for row in trades.table("newest").collect()] == [2]
    assert rows(trades, "ever") == [(1, 3), (2, 3)]


def test_windows_by_the_short_names_of_units_and_columns_of_one_name(trades: penstock.Database) -> None:
    for name, unit in (("days", "dd"), ("months", "MON")):
        trades.sql(
            f"CREATE MATERIALIZED VIEW {name} AS SELECT DATE_TRUNC('{unit}', at) AS d, COUNT(*) AS n FROM trades "
            "GROUP BY 1 EMIT AFTER WATERMARK"
        )
    trades.sql(
        "CREATE MATERIALIZED VIEW pairs (p1, p2, n) AS SELECT a.price, b.price, COUNT(*) FROM trades a JOIN trades b "
        "ON a.at = b.at GROUP BY a.price, b.price, TUMBLE(a.at, INTERVAL 1 SECOND) EMIT AFTER WATERMARK"
    )
    day = 24 * 60 * 60 * 1000
    put(trades, (100, 1), (day + 100, 2))
    trades.refresh()
    assert [row.n for row in trades.table("days").collect()] == [1]
    assert rows(trades, "months") == []
    assert rows(trades, "pairs") == [(Decimal("1.0"), Decimal("1.0"), 1)]
    put(trades, (40 * day, 3))
    trades.refresh()
    assert [row.n for row in trades.table("months").collect()] == [2]


@pytest.mark.parametrize("policy", ["INCREMENTAL STRICT", "FULL"])
def test_every_policy_shows_the_same_windows(trades: penstock.Database, policy: str) -> None:
    query = "SELECT date_trunc('second', at) AS s, COUNT(*) AS n FROM trades GROUP BY 1 HAVING COUNT(*) > 1"
    trades.sql(f"INSERT INTO trades VALUES ({at(100)}, 5), ({at(200)}, 5), ({at(1200)}, 5)")
    trades.sql(f"CREATE MATERIALIZED VIEW busy AS {query} EMIT AFTER WATERMARK REFRESH POLICY {policy}")
    assert [row.n for row in trades.table("busy").collect()] == [2]
    trades.sql(f"INSERT INTO trades VALUES ({at(1300)}, 5), ({at(2000)}, 5)")
    trades.refresh()
    assert sorted(row.n for row in trades.table("busy").collect()) == [2, 2]


def test_changes_become_visible_now_and_then(trades: penstock.Database) -> None:
    trades.sql(f"CREATE MATERIALIZED VIEW often AS {SECONDS}")
    trades.sql(f"CREATE MATERIALIZED VIEW seldom AS {SECONDS} EMIT PERIODICALLY INTERVAL 1 DAY")
    trades.sql("CREATE MATERIALIZED VIEW top AS SELECT MAX(n) AS n FROM seldom")
    put(trades, (100, 1))
    report = trades.refresh()
    assert (report["seldom"].action, report["seldom"].reason, report["seldom"].status) == (
        "SKIP",
        "NOT_DUE",
        "SUCCEEDED",
    )
    assert rows(trades, "seldom") == []
    assert rows(trades, "top") == [(None,)]
    assert len(rows(trades, "often")) == 1
    assert trades.refresh("seldom", full=True)["seldom"].action == "FULL"
    assert len(rows(trades, "seldom")) == 1
    with pytest.raises(penstock.DefinitionError, match="goes with emit_every"):
        trades.create_view("v", SECONDS, emit="PERIODICALLY")


def test_a_view_that_is_not_due_says_so_though_nodes_under_it_move(trades: penstock.Database) -> None:
    put(trades, (100, 1))
    trades.sql(
        "CREATE MATERIALIZED VIEW seldom AS SELECT price, n FROM (SELECT price, COUNT(*) AS n FROM trades GROUP BY 1) "
        "WHERE n > 0 EMIT PERIODICALLY INTERVAL 1 DAY"
    )
    put(trades, (200, 1))
    report = trades.refresh()["seldom"]
    assert (report.action, report.reason, report.rows_inserted) == ("SKIP", "NOT_DUE", 0)
    assert (trades.history("seldom", 1)[0].action, trades.history("seldom", 1)[0].reason) == ("SKIP", "NOT_DUE")
    assert rows(trades, "seldom") == [(Decimal("1.0"), 1)]
    trades.refresh("seldom", full=True)
    assert_fresh(trades, "seldom")


# -- windows that overlap ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("slide", "size"), [(2, 5)])
def test_windows_that_overlap_are_those_of_spark(trades: penstock.Database, slide: int, size: int) -> None:
    """HOP against Spark's own ``window``, through inserts, updates and deletes."""
    hop = f"at, INTERVAL {slide} SECONDS, INTERVAL {size} SECONDS"
    trades.sql(
        f"CREATE MATERIALIZED VIEW hops AS SELECT HOP_START({hop}) AS b, HOP_END({hop}) AS e, COUNT(*) AS n, "
        f"MAX(price) AS high FROM trades GROUP BY HOP({hop}) REFRESH POLICY INCREMENTAL STRICT"
    )
    spark = f"SELECT window.start, window.end, COUNT(*), MAX(price) FROM trades GROUP BY window(at, '{size} seconds'"
    spark += f", '{slide} seconds')" if slide < size else ")"
    changes = [
        "INSERT INTO trades SELECT TIMESTAMP_MILLIS(id * 700), id FROM range(20)",
        "INSERT INTO trades VALUES (NULL, 5)",
        f"DELETE FROM trades WHERE at = {at(3500)}",
        f"UPDATE trades SET price = 99, at = at + INTERVAL 3 SECONDS WHERE at = {at(4200)}",
    ]
    for change in changes:
        trades.sql(change)
        assert trades.refresh()["hops"].action in ("INCREMENTAL", "NO_DATA")
        assert_fresh(trades, "hops")
        if slide <= size:
            trades.table("trades").createOrReplaceTempView("trades")
            assert rows(trades, "hops") == sorted(tuple(row) for row in trades.spark.sql(spark).collect())


def test_windows_that_overlap_wait_for_the_watermark(trades: penstock.Database) -> None:
    hop = "at, INTERVAL 1 SECOND, INTERVAL 2 SECONDS"
    trades.sql(
        f"CREATE MATERIALIZED VIEW hops AS SELECT HOP_START({hop}) AS b, COUNT(*) AS n FROM trades GROUP BY HOP({hop}) "
        "EMIT AFTER WATERMARK"
    )
    put(trades, (1500, 1), (2500, 1), (3000, 1))
    trades.refresh()
    assert [(int(b.timestamp()), n) for b, n in rows(trades, "hops")] == [(0, 1), (1, 2)]  # type: ignore[attr-defined]
    assert_fresh(trades, "hops")
