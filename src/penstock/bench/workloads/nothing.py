"""Fifty views and nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.bench.measure import PENSTOCK, Cell, Goal, at_most
from penstock.bench.workloads.chains import chain, create, fan
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench


def _run(bench: Bench) -> list[Cell]:
    views = chain(25) | fan(25)
    with bench.stage() as stage:
        rows = create(stage, views)
        return stage.measure({"50 views": list(views)}, lambda number: 0, [], rows=rows)


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    goals = []
    for cell in cells:
        seconds = cell.median(PENSTOCK)
        each = seconds * 1_000 / cell.views if seconds is not None else None
        goals += [at_most("ms a view", each, 2, cell.case), at_most("Spark jobs", cell.jobs, 0, cell.case)]
    return goals


NOTHING = Workload(
    name="nothing", title="a chain of 25 and a fan of 25 small views, nothing changed", run=_run, goals=_goals
)
