"""All queries of TPC-H as views over shared tables, with refreshes as its functions prescribe: orders come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench.contenders import DuckDb, Pipelines, Recomputation
from penstock.bench.measure import FULL, Cell, Goal, at_least, geometric_mean
from penstock.bench.tpch.queries import QUERIES, query
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

_TOGETHER = "all 22 in one refresh"
_ORDERS = {
    "orders": "o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk, "
    "o_shippriority, o_comment",
    "lineitem": "l_orderkey, l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, "
    "l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment",
}


def _change(stage: Stage, parts: int, number: int) -> int:
    """One order in a thousand inserted with its lines, one deleted."""
    touched = 0
    for table, columns in _ORDERS.items():
        key, _, others = columns.partition(", ")
        chosen = f"{key} < 1000000000 AND pmod(hash({key}, {number}), {parts})"
        copies = f"FROM {table} WHERE {chosen} = 0"
        touched += stage.database.table(table).where(f"{chosen} = 0").count()
        stage.sql(f"INSERT INTO {table} SELECT {key} + {number * 1_000_000_000}L, {others} {copies}")
        touched += stage.sql(f"DELETE FROM {table} WHERE {chosen} = 1")
    return touched


def create(stage: Stage, scale: float, one_in: int = 1_000) -> tuple[int, Callable[[int], int]]:
    """The tables and queries at a scale; gives the rows of those that change, and what changes one order in so many."""
    from penstock.bench.tpch.data import generate, load

    stage.bench.say("generating the tables")
    load(stage.database, generate(stage.scratch, scale))
    stage.create_views({f"q{number:02d}": query(number, scale) for number in QUERIES})
    rows = stage.count("orders") + stage.count("lineitem")
    return rows, partial(_change, stage, min(one_in, max(rows // 100, 10)))


def _run(bench: Bench) -> list[Cell]:
    with bench.stage() as stage:
        rows, change = create(stage, bench.scale)
        contenders = [Recomputation(stage), DuckDb(stage)]
        each = {view: [view] for view in stage.views}
        cells = stage.measure(each, change, contenders, rows=rows)
        together = {_TOGETHER: list(stage.views)}
        return cells + stage.measure(together, change, [*contenders, Pipelines(stage)], rows=rows)


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    """On the whole three times as fast as recomputation, and no query slower."""
    each = [cell for cell in cells if cell.case != _TOGETHER]
    ratios = [ratio for ratio in (cell.ratio(FULL) for cell in each) if ratio is not None]
    single = [at_least("x the speed of recomputation", cell.ratio(FULL), 1, cell.case) for cell in each]
    mean = at_least("x the speed of recomputation, the geometric mean of the queries", geometric_mean(ratios), 3)
    return [*single, mean]


TPCH = Workload(
    name="tpch",
    title="the 22 queries of TPC-H over tables of scale factor 1, 0.1 % of the orders inserted and 0.1 % deleted",
    run=_run,
    goals=_goals,
)
