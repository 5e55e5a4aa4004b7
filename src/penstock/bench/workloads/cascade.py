"""Bars of 1 second, 1 minute and 1 hour over trades, each level over the finer one, under three kinds of change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench import bars
from penstock.bench.contenders import DuckDb, Feed, HandWritten, Merges, Pipelines, Recomputation
from penstock.bench.measure import FULL, MERGE, Cell, Goal, faster_than
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.bench.stage import Bench, Stage

TRADES = 5_000_000
COLUMNS = f"id BIGINT, {bars.TRADES}"
_ROWS_PER_FILE = 500_000


def trades(first: int, last: int) -> str:
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
    return append(stage, rows + (number - 1) * batch, batch)


def append(stage: Stage, first: int, count: int) -> int:
    """So many trades from one on."""
    stage.sql(f"INSERT INTO trades {trades(first, first + count)}")
    return count


def _correct(newest: float, stage: Stage, rows: int, number: int) -> int:
    """One trade in a thousand, of all, among the newest ones: half of them corrected, half deleted."""
    among = f"id >= {int(rows * (1 - newest))} AND pmod(hash(id, {number}), {int(2_000 * newest)})"
    corrected = stage.sql(f"UPDATE trades SET price = price + 1 WHERE {among} = 0")
    return corrected + stage.sql(f"DELETE FROM trades WHERE {among} = 1")


# -- the same by hand -------------------------------------------------------------------------------------------------


def _reach(change: DataFrame) -> tuple[str, str]:
    """The first and the last bar of a change, as literals: conditions on them let Delta skip files."""
    first, last = change.selectExpr("string(min(bar_time))", "string(max(bar_time))").collect()[0]
    return f"TIMESTAMP '{first or '1970-01-01'}'", f"TIMESTAMP '{last or '1970-01-01'}'"


def _follow_appends(feed: Feed) -> None:
    """New trades only: a bar's change is merged into the stored bar, which keeps the times of its first and last trade.

    The changes of the coarser levels are those of the finer one, aggregated; nothing is read back.
    """
    change = feed.changes("trades").selectExpr(
        "symbol", "event_time AS bar_time", "event_time AS first_at", "event_time AS last_at", "price AS open",
        "price AS high", "price AS low", "price AS close", "quantity AS volume",
    )  # fmt: skip
    held = []
    for view, unit in bars.UNITS.items():
        change = change.groupBy("symbol", _expr(f"date_trunc('{unit}', bar_time) AS bar_time")).agg(
            _expr("min(first_at) AS first_at"), _expr("max(last_at) AS last_at"),
            _expr("min_by(open, first_at) AS open"), _expr("max(high) AS high"), _expr("min(low) AS low"),
            _expr("max_by(close, last_at) AS close"), _expr("sum(volume) AS volume"),
        ).persist()  # fmt: skip
        held.append(change)
        first, last = _reach(change)
        feed.merge(
            view, change, f"t.symbol = d.symbol AND t.bar_time = d.bar_time AND t.bar_time BETWEEN {first} AND {last}",
            """WHEN MATCHED THEN UPDATE SET open = IF(d.first_at < t.first_at, d.open, t.open),
                high = greatest(t.high, d.high), low = least(t.low, d.low),
                close = IF(d.last_at > t.last_at, d.close, t.close), volume = t.volume + d.volume,
                first_at = least(t.first_at, d.first_at), last_at = greatest(t.last_at, d.last_at)
            WHEN NOT MATCHED THEN INSERT (symbol, bar_time, open, high, low, close, volume, first_at, last_at)
                VALUES (d.symbol, d.bar_time, d.open, d.high, d.low, d.close, d.volume, d.first_at, d.last_at)""",
        )  # fmt: skip
    for frame in held:
        frame.unpersist()


def _follow_corrections(feed: Feed) -> None:
    """Any change: the bars that it touched are computed anew from the level below, and merged or deleted."""
    touched = (
        feed.changes("trades").selectExpr("symbol", "date_trunc('SECOND', event_time) AS bar_time").distinct().persist()
    )
    held = [touched]
    for view, unit in bars.UNITS.items():
        if view != "bars_1s":
            touched = touched.selectExpr("symbol", f"date_trunc('{unit}', bar_time) AS bar_time").distinct().persist()
            held.append(touched)
        first, last = _reach(touched)
        at = "event_time" if view == "bars_1s" else "bar_time"
        below = feed.table(bars.BELOW[view]).where(f"{at} >= {first} AND {at} < {last} + INTERVAL 1 {unit}")
        inside = _expr(f"b.symbol = g.symbol AND date_trunc('{unit}', b.{at}) = g.bar_time")
        reached = below.alias("b").join(touched.alias("g"), inside, "left_semi")
        reached.createOrReplaceTempView("__reached")
        anew = feed.spark.sql(bars.in_spark(view).replace(f"FROM {bars.BELOW[view]} ", "FROM __reached "))
        change = touched.join(anew, ["symbol", "bar_time"], "left")
        feed.merge(
            view, change, f"t.symbol = d.symbol AND t.bar_time = d.bar_time AND t.bar_time BETWEEN {first} AND {last}",
            """WHEN MATCHED AND d.volume IS NULL THEN DELETE
            WHEN MATCHED THEN UPDATE SET open = d.open, high = d.high, low = d.low, close = d.close, volume = d.volume
            WHEN NOT MATCHED AND d.volume IS NOT NULL THEN INSERT (symbol, bar_time, open, high, low, close, volume)
                VALUES (d.symbol, d.bar_time, d.open, d.high, d.low, d.close, d.volume)""",
        )  # fmt: skip
    for frame in held:
        frame.unpersist()


def _expr(text: str) -> Column:
    from pyspark.sql import functions as F

    return F.expr(text)


# -- the workloads ----------------------------------------------------------------------------------------------------


def create(stage: Stage, rows: int) -> tuple[int, Callable[[int], int]]:
    """The trades and their bars; gives the number of rows, and what appends and corrects some."""
    spelled = {view: bars.in_spark(view) for view in bars.VIEWS}
    stage.create({"trades": (COLUMNS, trades(0, rows))}, bars.VIEWS, spelled)
    return rows, lambda number: (_append if number % 2 else partial(_correct, 1.0))(stage, rows, number)


def _run(change: Change, appends: bool, bench: Bench) -> list[Cell]:
    rows = bench.rows(TRADES)
    with bench.stage() as stage:
        create(stage, rows)
        targets = stage.spelled
        if appends:
            finer = ", MIN(first_at) AS first_at, MAX(last_at) AS last_at"
            finest = ", MIN(event_time) AS first_at, MAX(event_time) AS last_at"
            targets = {view: bars.in_spark(view, finest if view == "bars_1s" else finer) for view in bars.VIEWS}
        by_hand = HandWritten(targets, _follow_appends if appends else _follow_corrections)
        contenders = [Recomputation(stage), Merges(stage, [by_hand]), Pipelines(stage), DuckDb(stage)]
        return stage.measure(
            {"three levels": list(bars.VIEWS)}, lambda number: change(stage, rows, number), contenders, rows=rows
        )


def _goals(full: float, merge: float | None, cells: Sequence[Cell]) -> list[Goal]:
    goals = faster_than(cells, FULL, full)
    return goals + faster_than(cells, MERGE, merge) if merge else goals


APPEND = Workload(
    name="cascade-append",
    title="price bars of 1 s, 1 min and 1 h over 5 million trades, 0.1 % more trades",
    run=partial(_run, _append, True),
    goals=partial(_goals, 30, 6),
)
RECENT = Workload(
    name="cascade-recent",
    title="the same bars, 0.1 % of the trades corrected or deleted, all among the newest 1 %",
    run=partial(_run, partial(_correct, 0.01), False),
    goals=partial(_goals, 15, None),
)
SCATTERED = Workload(
    name="cascade-scattered",
    title="the same bars, 0.1 % of the trades corrected or deleted, anywhere",
    run=partial(_run, partial(_correct, 1.0), False),
    goals=partial(_goals, 8, None),
)
