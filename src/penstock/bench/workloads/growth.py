"""The same change on tables of growing size: the time of a refresh should follow the change, not the table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench.contenders import Recomputation
from penstock.bench.measure import PENSTOCK, Cell, Goal, at_most
from penstock.bench.workloads import operators
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

SIZES = (1_000_000, 4_000_000, 16_000_000)
CHANGED = 1_000
_MEMORY = 6
_LIMITS = {"filter": 1.5, "aggregate": 1.5, "join": 2.0, "join + aggregate": 2.0}
_VIEWS = {view: query for view, query in operators.VIEWS.items() if operators.KINDS[view] in _LIMITS}


def _change(stage: Stage, rows: int, changed: int, number: int) -> int:
    """Neighbouring facts near the end of the table, and the heads that some of them refer to."""
    first = rows - 2 * changed * (number % 8 + 1)
    half, quarter = changed // 2, changed // 4
    touched = stage.sql(
        f"UPDATE facts SET amount = (amount + 37) % 1000 WHERE id >= {first} AND id < {first + half}"
    ) + stage.sql(f"DELETE FROM facts WHERE id >= {first + half} AND id < {first + half + quarter}")
    new = rows + number * quarter
    stage.sql(f"INSERT INTO facts {operators.facts(new, new + quarter, 0, 0, True)}")
    some = f"d >= {first // 10} AND d < {first // 10 + quarter // 20 + 1}"
    return touched + quarter + stage.sql(f"UPDATE heads SET rate = rate % 9 + 1 WHERE {some}")


def _run(bench: Bench) -> list[Cell]:
    cells = []
    changed = max(int(CHANGED * min(bench.scale * 10, 1)), 40)
    for size in SIZES:
        rows = max(int(size * bench.scale), size // 1_000)
        with bench.stage() as stage:
            tables = {
                "facts": (operators.FACTS, operators.facts(0, rows, 0, 0, True)),
                "heads": (operators.HEADS, operators.heads(rows // 10 + 1_000)),
            }
            stage.create(tables, _VIEWS)
            cases = {f"{operators.KINDS[view]}, {rows:,} rows": [view] for view in _VIEWS}
            kinds = {f"{operators.KINDS[view]}, {rows:,} rows": operators.KINDS[view] for view in _VIEWS}
            change = partial(_change, stage, rows, changed)
            cells += stage.measure(cases, change, [Recomputation(stage)], rows=rows, kinds=kinds)
    return cells


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    """The largest table takes at most so many times as long as the smallest; and so much memory."""
    goals = []
    for kind, limit in _LIMITS.items():
        own = sorted((cell for cell in cells if cell.kind == kind), key=lambda cell: cell.rows)
        if len(own) > 1:
            small, large = own[0].median(PENSTOCK), own[-1].median(PENSTOCK)
            growth = large / small if small and large is not None else None
            goals.append(at_most("times as long as on the smallest table", growth, limit, own[-1].case))
    peak = max((cell.peak or 0 for cell in cells), default=0)
    return [*goals, at_most("GiB of memory", peak / 2**30 if peak else None, _MEMORY)]


GROWTH = Workload(
    name="growth",
    title="1,000 rows changed in tables of 1, 4 and 16 million rows, clustered by their keys",
    run=_run,
    goals=_goals,
)
