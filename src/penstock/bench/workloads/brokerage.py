"""The warehouse of a brokerage: dimensions with history, validity intervals, windows of a year, fixed-width records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench.brokerage.tables import Brokerage
from penstock.bench.brokerage.views import VIEWS
from penstock.bench.contenders import DuckDb, Pipelines, Recomputation
from penstock.bench.measure import FULL, Cell, Goal, at_most, faster_than
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

Change = Callable[["Stage", Brokerage, int], int]


def insert(stage: Stage, brokerage: Brokerage, number: int, one_in: int = 1_000) -> int:
    """So many rows more in every table, at the end of time."""
    touched = 0
    for table, size in brokerage.sizes.items():
        some = max(size // one_in, 1)
        first = size + (number - 1) * max(size // 1_000, 1)  # so that no round repeats numbers of another
        stage.sql(f"INSERT INTO {table} {brokerage.rows(table, first, first + some)}")
        touched += some
    return touched


def mix(stage: Stage, brokerage: Brokerage, number: int) -> int:
    """Half as many new rows, and as many that are corrected or deleted, anywhere."""
    touched = insert(stage, brokerage, number, one_in=2_000)
    for statement in _corrections(brokerage, number):
        touched += stage.sql(statement)
    return touched


def _corrections(brokerage: Brokerage, number: int) -> list[str]:
    def one(table: str, which: int, key: str = "id") -> str:
        """One row in four thousand of a table; others for another ``which``."""
        parts = min(4_000, brokerage.sizes[table] // 2)
        return f"{table} WHERE pmod(hash({key}, {number}), {parts}) = {which}"

    def corrected(table: str, values: str, key: str = "id") -> str:
        name, _, where = one(table, 0, key).partition(" ")
        return f"UPDATE {name} SET {values} {where}"

    return [
        corrected("trade_events", "price = price + 1, fee = fee + 0.5"),
        f"DELETE FROM {one('trade_events', 1)}",
        corrected("cash_entries", "amount = amount + 100"),
        f"DELETE FROM {one('cash_entries', 1)}",
        corrected("daily_market", "close = close + 0.5, high = high + 3", "symbol, day"),
        f"DELETE FROM {one('watch_events', 1)}",
        corrected("customer_events", f"city = 'City {number}', tier = 3"),
        corrected("account_events", "broker = 1"),
        f"DELETE FROM {one('account_events', 1)} AND kind = 'UPD'",
        corrected("holding_entries", "after = after + 10"),
        f"DELETE FROM {one('statements', 1)} AND SUBSTRING(line, 16, 3) = 'FIN'",
        corrected("prospects", "income = 250000"),
        f"DELETE FROM {one('prospects_late', 1)}",
    ]


CHANGES: dict[str, Change] = {"inserts": insert, "mixed": mix}


def create(stage: Stage, rows: Callable[[int], int]) -> tuple[int, Callable[[int], int]]:
    """The tables and views with so many of the rows at scale one; gives how many that is, and what mixes changes."""
    brokerage = Brokerage.of(rows)
    stage.create(brokerage.tables(), VIEWS)
    return sum(brokerage.sizes.values()), partial(mix, stage, brokerage)


def _run(bench: Bench) -> list[Cell]:
    brokerage = Brokerage.of(bench.rows)
    cells = []
    with bench.stage() as stage:
        stage.create(brokerage.tables(), VIEWS)
        contenders = [Recomputation(stage), Pipelines(stage), DuckDb(stage)]
        rows = sum(brokerage.sizes.values())
        for case, change in CHANGES.items():
            views = {f"{len(VIEWS)} views, {case}": list(VIEWS)}
            cells += stage.measure(views, partial(change, stage, brokerage), contenders, rows=rows)
    return cells


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    anew = [at_most("refreshes of a view that recomputed it", cell.recomputed, 0, cell.case) for cell in cells]
    return [*faster_than(cells, FULL, 6), *anew]


BROKERAGE = Workload(
    name="brokerage",
    title=f"{len(VIEWS)} views of a brokerage over 2 million rows, 0.1 % new, then 0.1 % new, corrected or deleted",
    run=_run,
    goals=_goals,
)
