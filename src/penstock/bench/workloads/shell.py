"""Small work from a cold shell: the command, which starts no Java for it, and the same in a process that has Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.bench.measure import PENSTOCK, SPARK, Cell, Goal, faster_than, rotated
from penstock.bench.workloads.workload import Workload
from penstock.errors import InternalError

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

_VIEWS = {
    "totals": "SELECT UPPER(region) AS region, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY UPPER(region)",
    "large": "SELECT id, region, amount FROM orders WHERE amount >= 900",
}
_ROWS = 10_000
_FASTER = 10

_COMMAND = "from penstock.cli import run; run()"
_WITH_SPARK = "import sys, penstock; db = penstock.connect(sys.argv[1]); spark = db.spark; {}; db.close()"
_INSERT = "INSERT INTO {} VALUES ({}, 'eu', 950)"


def _run(bench: Bench) -> list[Cell]:
    with bench.stage() as stage:
        filled = f"SELECT id, concat('r', id % 20), CAST(id % 1000 AS DECIMAL(12,2)) FROM range({_ROWS})"
        stage.create({"orders": ("id BIGINT, region STRING, amount DECIMAL(12,2)", filled)}, _VIEWS)
        return [_measured(stage, case) for case in ("INSERT of a row", "refresh", "refresh, nothing to do", "SELECT")]


def _measured(stage: Stage, case: str) -> Cell:
    """Both ways in turns, each in a process of its own, with the byte code that an installed package has."""
    seconds: dict[str, list[float]] = {PENSTOCK: [], SPARK: []}
    for turn in range(1 + stage.bench.repeat):
        for who in rotated([PENSTOCK, SPARK], turn):
            stage.round += 1
            if case == "refresh":
                stage.sql(_INSERT.format("orders", _ROWS + stage.round))
            stage.bench.say(f"{case}: run {turn + 1} of {1 + stage.bench.repeat}")
            spent = _timed(_process(stage, case, who))
            if turn:
                seconds[who].append(spent)
    changed = 1 if case in ("INSERT of a row", "refresh") else 0
    return Cell(case=case, rows=_ROWS, changed=changed, views=len(_VIEWS), seconds=seconds)


def _process(stage: Stage, case: str, who: str) -> list[str]:
    warehouse = str(stage.scratch / "warehouse")
    path, values = stage.paths()["orders"], _ROWS + stage.round
    here, there = {
        "INSERT of a row": (["sql", _INSERT.format("orders", values)],
                            f"spark.sql({_INSERT.format(f'delta.`{path}`', values)!r})"),
        "refresh": (["refresh"], "; ".join(_recomputed(stage, view) for view in _VIEWS)),
        "refresh, nothing to do": (["refresh"], "db.refresh()"),
        "SELECT": (["sql", "SELECT * FROM totals"], "db.table('totals').show()"),
    }[case]  # fmt: skip
    if who == PENSTOCK:
        return [sys.executable, "-c", _COMMAND, "-w", warehouse, *here]
    return [sys.executable, "-c", _WITH_SPARK.format(there), warehouse]


def _recomputed(stage: Stage, view: str) -> str:
    """What keeps a view by Spark alone: its rows are computed and written anew."""
    query = _VIEWS[view].replace(" orders", f" delta.`{stage.paths()['orders']}`")
    target = str(stage.scratch / "by_hand" / view)
    return f"spark.sql({query!r}).write.format('delta').mode('overwrite').save({target!r})"


def _timed(command: list[str]) -> float:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=kept)
    if done.returncode:
        raise InternalError(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")
    return time.perf_counter() - started


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    return faster_than(cells, SPARK, _FASTER)


SHELL = Workload(
    name="shell",
    title="an INSERT, a refresh and a SELECT from a cold shell, with and without Spark",
    run=_run,
    goals=_goals,
)
