"""Many small views: chains, a fan and diamonds over one small table, and a change of a few rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench.contenders import Recomputation
from penstock.bench.measure import PENSTOCK, Cell, Goal, at_most
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

ROWS = 10_000
CHANGED = 10


def chain(length: int) -> dict[str, str]:
    """Views one over the other: a projection with a filter, an aggregate, and so on."""
    views, below = {}, "base"
    for i in range(1, length + 1):
        views[f"link_{i}"] = _link(i, below)
        below = f"link_{i}"
    return views


def fan(width: int) -> dict[str, str]:
    """Views beside each other over the table."""
    return {f"blade_{i}": _link(i, "base") for i in range(1, width + 1)}


def diamonds(count: int) -> dict[str, str]:
    """Four views over one, joined again in a fifth, over which stands the next diamond."""
    views, below = {}, "base"
    for i in range(1, count + 1):
        sides = [f"side_{i}_{j}" for j in range(1, 5)]
        for j, side in enumerate(sides, 1):
            views[side] = f"SELECT id, k, v + {j} AS v FROM {below} WHERE v % 7 <> {j}"
        joined = " ".join(f"JOIN {side} ON {side}.id = {sides[0]}.id" for side in sides[1:])
        total = " + ".join(f"{side}.v" for side in sides)
        views[f"joint_{i}"] = f"SELECT {sides[0]}.id, {sides[0]}.k, ({total}) % 1000 AS v FROM {sides[0]} {joined}"
        below = f"joint_{i}"
    return views


def _link(i: int, below: str) -> str:
    if i % 2:
        return f"SELECT id, k, v + 1 AS v FROM {below} WHERE v % 101 <> {i}"
    return f"SELECT id, MAX(k) AS k, SUM(v) AS v FROM {below} GROUP BY id"


CASES = {
    "chain of 1": chain(1),
    "chain of 10": chain(10),
    "chain of 50": chain(50),
    "fan of 50": fan(50),
    "3 diamonds of 4 sides": diamonds(3),
}


def create(stage: Stage, views: dict[str, str]) -> int:
    """The table and the views; gives the number of rows."""
    rows = stage.bench.rows(ROWS)
    base = f"SELECT CAST(id AS INT), CAST(id % 100 AS INT), pmod(hash(id), 1000) FROM range({rows})"
    stage.create({"base": ("id INT, k INT, v BIGINT", base)}, views)
    return rows


def _change(stage: Stage, rows: int, number: int) -> int:
    """A few rows changed, and one more."""
    first = number * CHANGED * 3 % (rows - CHANGED)
    touched = stage.sql(f"UPDATE base SET v = v + 10 WHERE id >= {first} AND id < {first + CHANGED - 1}")
    stage.sql(f"INSERT INTO base VALUES ({rows + number}, {number % 100}, {number})")
    return touched + 1


def _run(bench: Bench) -> list[Cell]:
    cells = []
    for case, views in CASES.items():
        with bench.stage() as stage:
            rows = create(stage, views)
            cells += stage.measure(
                {case: list(views)}, partial(_change, stage, rows), [Recomputation(stage)], rows=rows
            )
    return cells


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    one = next((cell for cell in cells if cell.views == 1), None)
    base = one.median(PENSTOCK) if one else None
    goals = []
    for cell in cells:
        seconds = cell.median(PENSTOCK)
        if cell.views > 1 and base is not None and seconds is not None:
            goals.append(at_most("s for each further view", (seconds - base) / (cell.views - 1), 0.02, cell.case))
    return goals


CHAINS = Workload(
    name="chains", title="chains, a fan and diamonds of small views, 10 rows changed", run=_run, goals=_goals
)
