"""One view of each operator over ten million rows, while ever more of them change: from where on does it not pay?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench.contenders import DuckDb, Insisting, Merges, Recomputation
from penstock.bench.measure import DUCKDB, FULL, TITLES, Cell, Goal, at_least
from penstock.bench.workloads import operators
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

ROWS = 10_000_000
PERCENTAGES = (0.01, 0.1, 1.0, 10.0, 50.0)
_WORTHWHILE = 10.0
_LAST_SMALL = 1.0
_NEVER_SLOWER = 1 / 1.15


def _change(stage: Stage, rows: int, percent: float, number: int) -> int:
    """Of the rows to change half are updated, a quarter deleted and a quarter inserted, spread over the table."""
    quarter = max(round(rows * percent / 400), 1)
    parts = max(round(rows / quarter), 3)
    one_in = f"pmod(hash(id, {number}), {parts})"
    touched = stage.sql(f"UPDATE facts SET amount = (amount + 37) % 1000 WHERE {one_in} IN (0, 1)")
    touched += stage.sql(f"DELETE FROM facts WHERE {one_in} = 2")
    first = number * 100 * rows
    stage.sql(f"INSERT INTO facts {operators.facts(first, first + quarter, rows // 100, rows // 100, False)}")
    return touched + quarter


def _run(bench: Bench) -> list[Cell]:
    rows = bench.rows(ROWS)
    cells = []
    with bench.stage() as stage:
        others = rows // 100
        tables = {
            "facts": (operators.FACTS, operators.facts(0, rows, others, others, False)),
            "heads": (operators.HEADS, operators.heads(others)),
        }
        stage.create(tables, operators.VIEWS)
        contenders = [Recomputation(stage), Insisting(stage), Merges(stage, operators.by_hand()), DuckDb(stage)]
        for percent in PERCENTAGES:
            cases = {_case(view, percent): [view] for view in operators.VIEWS}
            kinds = {_case(view, percent): operators.KINDS[view] for view in operators.VIEWS}
            change = partial(_change, stage, rows, percent)
            warm_up = 1 if percent == PERCENTAGES[0] else 0
            # A large change may make views recompute, so what the small ones did is compared before it.
            check = percent in (_LAST_SMALL, PERCENTAGES[-1])
            cells += stage.measure(cases, change, contenders, rows=rows, warm_up=warm_up, kinds=kinds, check=check)
    return cells


def _case(view: str, percent: float) -> str:
    return f"{operators.KINDS[view]}, {percent:g} %"


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    """Up to a tenth of the rows faster than recomputation, beyond never much slower; up to one in a hundred also
    faster than an engine without commits and versions.
    """
    goals = []
    for cell in cells:
        kind, share = cell.case.split(", ")
        changed = float(share.removesuffix(" %"))
        target = 1.0 if changed <= _WORTHWHILE else round(_NEVER_SLOWER, 2)
        goals.append(at_least("x the speed of recomputation", cell.ratio(FULL), target, cell.case))
        if changed <= _LAST_SMALL and kind != "window":
            goals.append(at_least(f"x the speed of {TITLES[DUCKDB]}", cell.ratio(DUCKDB), 1.0, cell.case))
    choices = [choice for choice in (cell.chose_well() for cell in cells) if choice is not None]
    right = 100 * sum(choices) / len(choices) if choices else None
    return [*goals, at_least("% of AUTO's choices right, or hardly worse", right, 90)]


CROSSOVER = Workload(
    name="crossover",
    title="a filter, a join, an aggregate, both, and a window over 10 million rows, 0.01 to 50 % of them changed",
    run=_run,
    goals=_goals,
)
