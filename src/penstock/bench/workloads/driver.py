"""Small changes of all that the benchmark knows: how many refreshes need no Spark job, and what leaves the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench import constructs
from penstock.bench.measure import Cell, Goal, at_least
from penstock.bench.on_driver import share
from penstock.bench.workloads import brokerage, cascade, medallion, nexmark, tpch
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

Change = Callable[[int], int]

_PART = 0.2
"""How large the tables are beside those of the workloads themselves: 0.1 % of them is a small change."""


def _constructs(stage: Stage) -> tuple[int, Change]:
    """What SQL is made of, each in a view, over a few rows with NULLs, ties, NaN and -0.0."""
    for table, statement in constructs.TABLES.items():
        stage.database.sql(statement)
        stage.database.sql(f"INSERT INTO {table} VALUES {', '.join(constructs.ROWS[table])}")
    maintained = [construct for construct in constructs.CONSTRUCTS if construct.code is None]
    stage.create_views({f"v{number:03d}": construct.query for number, construct in enumerate(maintained)})
    return sum(map(len, constructs.ROWS.values())), partial(_change_constructs, stage)


def _change_constructs(stage: Stage, number: int) -> int:
    first = 100 + 4 * number
    stage.sql(f"INSERT INTO t VALUES {', '.join(constructs.t_row(i) for i in range(first, first + 4))}")
    stage.sql(f"INSERT INTO u VALUES {constructs.u_row(20 + number)}")
    touched = 5
    for statement in (
        f"UPDATE t SET k = 'b', g = 1, x = 6 WHERE id IN ({number}, {first})",
        f"DELETE FROM t WHERE id = {number + 10}",
        f"UPDATE r SET hi = hi + 1 WHERE g = {number % 3}",
    ):
        touched += stage.sql(statement)
    return touched


def _scaled(stage: Stage, rows: int) -> int:
    return stage.bench.rows(int(rows * _PART))


SETS: dict[str, Callable[[Stage], tuple[int, Change]]] = {
    "constructs": _constructs,
    "cascade": lambda stage: cascade.create(stage, _scaled(stage, cascade.TRADES)),
    "medallion": lambda stage: medallion.create(stage, _scaled(stage, medallion.ORDERS)),
    "nexmark": lambda stage: nexmark.create(stage, _scaled(stage, nexmark.BIDS)),
    "brokerage": lambda stage: brokerage.create(stage, partial(_scaled, stage)),
    "tpch": lambda stage: tpch.create(stage, stage.bench.scale * _PART / 2, one_in=4_000),
}
"""Each makes tables and views, and gives the number of rows and what changes some of them."""


def measured(bench: Bench, names: Iterable[str] = SETS) -> list[Cell]:
    """Each set on a stage of its own. What a test compares anyway, with what SQL leaves open, is not compared here."""
    cells = []
    for name in names:
        with bench.stage() as stage:
            rows, change = SETS[name](stage)
            views = {f"{name}, {len(stage.views)} views": list(stage.views)}
            cells += stage.measure(views, change, [], rows=rows, check=name != "constructs")
    return cells


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    without, every = share(cells)
    return [at_least("% of small refreshes without a Spark job", 100 * without / every if every else None, 95)]


DRIVER = Workload(
    name="driver",
    title="small changes of all these views: what needs no Spark job, and what does",
    run=measured,
    goals=_goals,
)
