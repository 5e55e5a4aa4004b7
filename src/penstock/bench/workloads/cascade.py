"""Bars of 1 second, 1 minute and 1 hour over trades, each level over the finer one, under three kinds of change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench.contenders import DuckDb, Feed, HandWritten, Merges, Pipelines, Recomputation
from penstock.bench.measure import FULL, MERGE, Cell, Goal, faster_than
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.bench.stage import Bench, Stage

TRADES = 5_000_000
_COLUMNS = "id BIGINT, symbol STRING, at TIMESTAMP, price DECIMAL(10,2), quantity INT"
_LEVELS = {"bars_1s": "SECOND", "bars_1m": "MINUTE", "bars_1h": "HOUR"}
_BELOW = {"bars_1s": "trades", "bars_1m": "bars_1s", "bars_1h": "bars_1m"}
_ROWS_PER_FILE = 500_000


def _bars(view: str, more: str = "") -> str:
    """One level of bars; ``more`` are further columns."""
    at, open_, high, low, close, volume = (
        ("at", *("price",) * 4, "quantity") if view == "bars_1s" else ("bar", "open", "high", "low", "close", "volume")
    )
    bar = f"date_trunc('{_LEVELS[view]}', {at})"
    return (
        f"SELECT symbol, {bar} AS bar, MIN_BY({open_}, {at}) AS open, MAX({high}) AS high, MIN({low}) AS low, "
        f"MAX_BY({close}, {at}) AS close, SUM({volume}) AS volume{more} FROM {_BELOW[view]} GROUP BY symbol, {bar}"
    )


VIEWS = {view: _bars(view) for view in _LEVELS}


def _trades(first: int, last: int) -> str:
    """The trades with these numbers: 100 a second, two of them of each of 50 symbols."""
    files = max(2, (last - first) // _ROWS_PER_FILE)
    return (
        "SELECT id, concat('S', id % 50), timestamp_micros(1700000000000000 + id * 10000), "
        "CAST(100 + pmod(hash(id), 1000) / 100 AS DECIMAL(10,2)), CAST(id % 9 + 1 AS INT) "
        f"FROM range({first}, {last}, 1, {files})"
    )


# -- changes ----------------------------------------------------------------------------------------------------------

Change = Callable[["Stage", int, int], int]


def _append(stage: Stage, rows: int, number: int) -> int:
    batch = max(rows // 1_000, 1)
    first = rows + (number - 1) * batch
    stage.sql(f"INSERT INTO trades {_trades(first, first + batch)}")
    return batch


def _correct(newest: float, stage: Stage, rows: int, number: int) -> int:
    """One trade in a thousand, of all, among the newest ones: half of them corrected, half deleted."""
    among = f"id >= {int(rows * (1 - newest))} AND pmod(hash(id, {number}), {int(2_000 * newest)})"
    corrected = stage.sql(f"UPDATE trades SET price = price + 1 WHERE {among} = 0")
    return corrected + stage.sql(f"DELETE FROM trades WHERE {among} = 1")


# -- the same by hand -------------------------------------------------------------------------------------------------


def _reach(change: DataFrame) -> tuple[str, str]:
    """The first and the last bar of a change, as literals: conditions on them let Delta skip files."""
    first, last = change.selectExpr("string(min(bar))", "string(max(bar))").collect()[0]
    return f"TIMESTAMP '{first or '1970-01-01'}'", f"TIMESTAMP '{last or '1970-01-01'}'"


def _follow_appends(feed: Feed) -> None:
    """New trades only: a bar's change is merged into the stored bar, which keeps the times of its first and last trade.

    The changes of the coarser levels are those of the finer one, aggregated; nothing is read back.
    """
    change = feed.changes("trades").selectExpr(
        "symbol", "at AS bar", "at AS first_at", "at AS last_at", "price AS open", "price AS high", "price AS low",
        "price AS close", "quantity AS volume",
    )  # fmt: skip
    held = []
    for view, unit in _LEVELS.items():
        change = change.groupBy("symbol", _expr(f"date_trunc('{unit}', bar) AS bar")).agg(
            _expr("min(first_at) AS first_at"), _expr("max(last_at) AS last_at"),
            _expr("min_by(open, first_at) AS open"), _expr("max(high) AS high"), _expr("min(low) AS low"),
            _expr("max_by(close, last_at) AS close"), _expr("sum(volume) AS volume"),
        ).persist()  # fmt: skip
        held.append(change)
        first, last = _reach(change)
        feed.merge(
            view, change, f"t.symbol = d.symbol AND t.bar = d.bar AND t.bar BETWEEN {first} AND {last}",
            """WHEN MATCHED THEN UPDATE SET open = IF(d.first_at < t.first_at, d.open, t.open),
                high = greatest(t.high, d.high), low = least(t.low, d.low),
                close = IF(d.last_at > t.last_at, d.close, t.close), volume = t.volume + d.volume,
                first_at = least(t.first_at, d.first_at), last_at = greatest(t.last_at, d.last_at)
            WHEN NOT MATCHED THEN INSERT (symbol, bar, open, high, low, close, volume, first_at, last_at)
                VALUES (d.symbol, d.bar, d.open, d.high, d.low, d.close, d.volume, d.first_at, d.last_at)""",
        )  # fmt: skip
    for frame in held:
        frame.unpersist()


def _follow_corrections(feed: Feed) -> None:
    """Any change: the bars that it touched are computed anew from the level below, and merged or deleted."""
    touched = feed.changes("trades").selectExpr("symbol", "date_trunc('SECOND', at) AS bar").distinct().persist()
    held = [touched]
    for view, unit in _LEVELS.items():
        if view != "bars_1s":
            touched = touched.selectExpr("symbol", f"date_trunc('{unit}', bar) AS bar").distinct().persist()
            held.append(touched)
        first, last = _reach(touched)
        at = "at" if view == "bars_1s" else "bar"
        below = feed.table(_BELOW[view]).where(f"{at} >= {first} AND {at} < {last} + INTERVAL 1 {unit}")
        inside = _expr(f"b.symbol = g.symbol AND date_trunc('{unit}', b.{at}) = g.bar")
        reached = below.alias("b").join(touched.alias("g"), inside, "left_semi")
        reached.createOrReplaceTempView("__reached")
        anew = feed.spark.sql(_bars(view).replace(f"FROM {_BELOW[view]} ", "FROM __reached "))
        change = touched.join(anew, ["symbol", "bar"], "left")
        feed.merge(
            view, change, f"t.symbol = d.symbol AND t.bar = d.bar AND t.bar BETWEEN {first} AND {last}",
            """WHEN MATCHED AND d.volume IS NULL THEN DELETE
            WHEN MATCHED THEN UPDATE SET open = d.open, high = d.high, low = d.low, close = d.close, volume = d.volume
            WHEN NOT MATCHED AND d.volume IS NOT NULL THEN INSERT (symbol, bar, open, high, low, close, volume)
                VALUES (d.symbol, d.bar, d.open, d.high, d.low, d.close, d.volume)""",
        )  # fmt: skip
    for frame in held:
        frame.unpersist()


def _expr(text: str) -> Column:
    from pyspark.sql import functions as F

    return F.expr(text)


# -- the workloads ----------------------------------------------------------------------------------------------------


def _run(change: Change, appends: bool, bench: Bench) -> list[Cell]:
    rows = bench.rows(TRADES)
    with bench.stage() as stage:
        stage.create({"trades": (_COLUMNS, _trades(0, rows))}, VIEWS)
        targets = VIEWS
        if appends:
            finer = ", MIN(first_at) AS first_at, MAX(last_at) AS last_at"
            times = {"bars_1s": ", MIN(at) AS first_at, MAX(at) AS last_at", "bars_1m": finer, "bars_1h": finer}
            targets = {view: _bars(view, times[view]) for view in VIEWS}
        by_hand = HandWritten(targets, _follow_appends if appends else _follow_corrections)
        contenders = [Recomputation(stage), Merges(stage, [by_hand]), Pipelines(stage), DuckDb(stage)]
        return stage.measure(
            {"three levels": list(VIEWS)}, lambda number: change(stage, rows, number), contenders, rows=rows
        )


def _goals(full: float, merge: float | None, cells: Sequence[Cell]) -> list[Goal]:
    goals = faster_than(cells, FULL, full)
    return goals + faster_than(cells, MERGE, merge) if merge else goals


APPEND = Workload(
    "cascade-append",
    "price bars of 1 s, 1 min and 1 h over 5 million trades, 0.1 % more trades",
    partial(_run, _append, True),
    partial(_goals, 15, 6),
)
RECENT = Workload(
    "cascade-recent",
    "the same bars, 0.1 % of the trades corrected or deleted, all among the newest 1 %",
    partial(_run, partial(_correct, 0.01), False),
    partial(_goals, 8, None),
)
SCATTERED = Workload(
    "cascade-scattered",
    "the same bars, 0.1 % of the trades corrected or deleted, anywhere",
    partial(_run, partial(_correct, 1.0), False),
    partial(_goals, 4, None),
)
