"""The questions of an auction house as views over persons, auctions and bids, while bids come and are withdrawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench import nexmark
from penstock.bench.contenders import DuckDb, Pipelines, Recomputation
from penstock.bench.measure import FULL, Cell, Goal, faster_than
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

BIDS = 1_000_000


def insert(stage: Stage, bids: int, number: int) -> int:
    """One row in a thousand more in every table, at the end of time."""
    touched, sizes = 0, nexmark.sizes(bids)
    for table, size in sizes.items():
        some = max(size // 1_000, 1)
        first = size + (number - 1) * some
        stage.sql(f"INSERT INTO {table} {nexmark.rows(table, sizes, first, first + some)}")
        touched += some
    return touched


def mix(stage: Stage, bids: int, number: int) -> int:
    """The same, and some bids are corrected or withdrawn."""
    one = f"pmod(hash(id, {number}), {min(4_000, bids // 4)})"
    touched = insert(stage, bids, number)
    touched += stage.sql(f"UPDATE bids SET price = price + 500 WHERE {one} = 0")
    touched += stage.sql(f"DELETE FROM bids WHERE {one} = 1")
    return touched + stage.sql(f"UPDATE auctions SET category = 10 WHERE {one} = 2")


CHANGES = {"inserts": insert, "mixed": mix}


def create(stage: Stage, bids: int) -> tuple[int, Callable[[int], int]]:
    """The tables and views with so many bids; gives the number of rows, and what mixes changes."""
    stage.create(nexmark.tables(bids), nexmark.VIEWS)
    return sum(nexmark.sizes(bids).values()), partial(mix, stage, bids)


def _run(bench: Bench) -> list[Cell]:
    bids = bench.rows(BIDS)
    cells = []
    with bench.stage() as stage:
        rows, _ = create(stage, bids)
        contenders = [Recomputation(stage), Pipelines(stage), DuckDb(stage)]
        for case, change in CHANGES.items():
            views = {f"{len(nexmark.VIEWS)} views, {case}": list(nexmark.VIEWS)}
            cells += stage.measure(views, partial(change, stage, bids), contenders, rows=rows)
    return cells


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    return faster_than(cells, FULL, 3)


NEXMARK = Workload(
    name="nexmark",
    title=f"{len(nexmark.VIEWS)} views of an auction house over 1 million bids, 0.1 % more, then 0.1 % mixed changes",
    run=_run,
    goals=_goals,
)
