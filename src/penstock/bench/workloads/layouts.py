"""The same change in tables that are laid out in other ways: with partitions, mapped columns, without vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.bench.contenders import Recomputation
from penstock.bench.measure import PENSTOCK, Cell, Goal, at_most
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench, Stage

ROWS, CHANGED, DAYS = 1_000_000, 300, 60
PLAIN = "plain"
_NO_MARKS = "'delta.enableChangeDataFeed' = 'false', 'delta.enableDeletionVectors' = 'false'"
_NAMES = "'delta.columnMapping.mode' = 'name'"
_OPTIONS = {
    PLAIN: "",
    "by day": "PARTITIONED BY (day)",
    "mapped": f"TBLPROPERTIES ({_NAMES})",
    "by day, mapped": f"PARTITIONED BY (day) TBLPROPERTIES ({_NAMES})",
    "no feed, no vectors": f"TBLPROPERTIES ({_NO_MARKS})",
    "by day, no feed, no vectors": f"PARTITIONED BY (day) TBLPROPERTIES ({_NO_MARKS})",
}
_MAINTAINED = 1.5
"""How many times as long as on a plain table it may take."""


def _facts(first: int, last: int, rows: int) -> str:
    day = f"date_add(DATE'2024-01-01', CAST(LEAST(id * {DAYS} DIV {rows}, {DAYS - 1}) AS INT))"
    return (
        f"SELECT id, {day}, CAST(pmod(hash(id), 500) AS INT), CAST(pmod(hash(id, 3), 100000) / 100 AS DECIMAL(12,2)) "
        f"FROM range({first}, {last}, 1, 2)"
    )


def _tables() -> dict[str, str]:
    return {layout: f"facts_{number}" for number, layout in enumerate(_OPTIONS)}


def _create(stage: Stage, rows: int) -> None:
    for layout, table in _tables().items():
        stage.bench.say(f"loading {table}")
        columns = "id BIGINT, day DATE, k INT, amount DECIMAL(12,2)"
        stage.database.sql(f"CREATE TABLE {table} ({columns}) {_OPTIONS[layout]}")
        stage.database.sql(f"INSERT INTO {table} {_facts(0, rows, rows)}")
    for table in _tables().values():
        query = f"SELECT day, k, COUNT(*) AS n, SUM(amount) AS total FROM {table} GROUP BY day, k"
        stage.create_views({f"by_{table}": query})


def _change(stage: Stage, rows: int, changed: int, number: int) -> int:
    """Rows of the last days are updated and deleted, and some come."""
    first, third = rows - 3 * changed * (number % 8 + 1), changed // 3
    for table in _tables().values():
        stage.sql(f"UPDATE {table} SET amount = (amount + 37) % 1000 WHERE id >= {first} AND id < {first + third}")
        stage.sql(f"DELETE FROM {table} WHERE id >= {first + third} AND id < {first + 2 * third}")
        stage.sql(f"INSERT INTO {table} {_facts(rows + number * third, rows + (number + 1) * third, rows)}")
    return 3 * third


def _run(bench: Bench) -> list[Cell]:
    rows = bench.rows(ROWS)
    with bench.stage() as stage:
        _create(stage, rows)
        cases = {layout: [f"by_{table}"] for layout, table in _tables().items()}
        change = partial(_change, stage, rows, min(CHANGED, rows // 100))
        return stage.measure(cases, change, [Recomputation(stage)], rows=rows)


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    plain = next((cell.median(PENSTOCK) for cell in cells if cell.case == PLAIN), None)
    goals = []
    for cell in cells:
        if "no feed" in cell.case:
            continue
        seconds = cell.median(PENSTOCK)
        times = seconds / plain if seconds is not None and plain else None
        goals += [at_most("Spark jobs", cell.jobs, 0, cell.case)]
        if cell.case != PLAIN:
            goals += [at_most("times as long as on a plain table", times, _MAINTAINED, cell.case)]
    return goals


LAYOUTS = Workload(
    name="layouts",
    title="300 rows changed in a table of 1 million: plain, by day, with mapped columns, without marks",
    run=_run,
    goals=_goals,
)
