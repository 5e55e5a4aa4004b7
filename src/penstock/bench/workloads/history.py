"""Windows over a growing history: bars of a minute and an hour with a watermark, and trades that go on at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.bench.contenders import Recomputation
from penstock.bench.measure import PENSTOCK, Cell, Goal, at_most
from penstock.bench.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.bench.stage import Bench

SIZES = (1_000_000, 4_000_000, 16_000_000)
APPENDED = 1_000
_LIMIT = 1.5
_COLUMNS = "id BIGINT, symbol STRING, at TIMESTAMP, price DECIMAL(10,2), WATERMARK FOR at AS at - INTERVAL 10 SECONDS"
_VIEWS = {
    view: f"SELECT symbol, TUMBLE_START({at}, INTERVAL 1 {unit}) AS bar, FIRST_VALUE({open_}) AS open, "
    f"MAX({high}) AS high, MIN({low}) AS low, LAST_VALUE({close}) AS close "
    f"FROM {below} GROUP BY symbol, TUMBLE({at}, INTERVAL 1 {unit})"
    for view, unit, below, at, open_, high, low, close in (
        ("bars_1m", "MINUTE", "trades", "at", *("price",) * 4),
        ("bars_1h", "HOUR", "bars_1m", "bar", "open", "high", "low", "close"),
    )
}


def _trades(first: int, last: int) -> str:
    """The trades with these numbers: 100 a second, of 50 symbols."""
    return (
        "SELECT id, concat('S', id % 50), timestamp_micros(1700000000000000 + id * 10000), "
        f"CAST(100 + pmod(hash(id), 1000) / 100 AS DECIMAL(10,2)) FROM range({first}, {last}, 1, 2)"
    )


def _run(bench: Bench) -> list[Cell]:
    cells = []
    for size in SIZES:
        rows = max(int(size * bench.scale), size // 1_000)
        with bench.stage() as stage:
            stage.create({"trades": (_COLUMNS, _trades(0, rows))}, {})
            for view, query in _VIEWS.items():
                lateness = "ALLOW LATENESS INTERVAL 1 MINUTE" if view == "bars_1m" else ""
                stage.sql(f"CREATE MATERIALIZED VIEW {view} AS {query} {lateness}")
                stage.views[view] = query

            def append(number: int, rows: int = rows) -> int:
                first = rows + (number - 1) * APPENDED
                stage.sql(f"INSERT INTO trades {_trades(first, first + APPENDED)}")
                return APPENDED

            case = f"two levels, {rows:,} trades"
            cells += stage.measure({case: list(_VIEWS)}, append, [Recomputation(stage)], rows=rows)
    return cells


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    own = sorted(cells, key=lambda cell: cell.rows)
    small, large = (own[0].median(PENSTOCK), own[-1].median(PENSTOCK)) if len(own) > 1 else (None, None)
    growth = large / small if small and large is not None else None
    return [at_most("times as long as with the shortest history", growth, _LIMIT, own[-1].case if own else "")]


HISTORY = Workload(
    name="history",
    title="bars of a minute and an hour, 1,000 trades more behind 1, 4 and 16 million earlier ones",
    run=_run,
    goals=_goals,
)
