"""The cascade of the README in an object store that answers late, after a change of a few rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.bench import bars
from penstock.bench.contenders import OnDisk, Recomputation
from penstock.bench.measure import PENSTOCK, Cell, Goal, at_most
from penstock.bench.workloads import cascade
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

_LATE = 0.02
"""Seconds that each request takes longer than on loopback."""
_CHANGED = 100
_LONGEST = 2.0


def _run(bench: Bench) -> list[Cell]:
    from penstock.bench.store_server import far_store

    rows = bench.rows(cascade.TRADES)

    def change(stage: Stage, number: int) -> int:
        return cascade.append(stage, rows + (number - 1) * _CHANGED, _CHANGED)

    with far_store(_LATE) as store, bench.stage(store) as stage:
        cascade.create(stage, rows)
        contenders = [Recomputation(stage), OnDisk(stage, lambda disk: cascade.create(disk, rows), change)]
        return stage.measure(
            {"three levels": list(bars.VIEWS)}, lambda number: change(stage, number), contenders, rows=rows
        )


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    return [at_most("s for all three levels", cell.median(PENSTOCK), _LONGEST, cell.case) for cell in cells]


STORES = Workload(
    name="stores",
    title=f"the same bars in an S3 server that answers {_LATE * 1000:.0f} ms late, {_CHANGED} more trades",
    run=_run,
    goals=_goals,
    in_store=True,
)
