"""Rows at the end of a window's order: of a large view only the last rows are read, and Spark does nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import penstock
from oracle import assert_fresh

PARTITIONS, ROWS = 200, 500
VIEWS = {
    "before": "SELECT *, LAG(x) OVER (PARTITION BY k ORDER BY t) AS x_before FROM ticks",
    "sums": """SELECT *, SUM(x) OVER (PARTITION BY k ORDER BY t ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS recent,
                      SUM(f) OVER (PARTITION BY k ORDER BY t) AS total, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS n
               FROM ticks""",
    "after": "SELECT *, LEAD(t) OVER (PARTITION BY k ORDER BY t) AS t_after FROM ticks",
    "filled": """SELECT k, t, LAST_VALUE(x) IGNORE NULLS OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING) AS x
                 FROM ticks""",
}


def rows(keys: list[int], times: list[int]) -> pa.Table:
    count = len(keys)
    return pa.table({
        "k": pa.array(keys, pa.int32()), "t": pa.array(times, pa.int64()),
        "x": pa.array([None if n % 5 == 0 else n % 17 for n in range(count)], pa.int32()),
        "f": pa.array([n * 0.1 for n in range(count)], pa.float64()),
        "note": pa.array([f"tick {n * 7919}" for n in range(count)]),
    })  # fmt: skip


@pytest.fixture
def ticks(db: penstock.Database, tmp_path: Path) -> str:
    path = str(tmp_path / "ticks")
    keys, times = zip(*((k, t) for t in range(ROWS) for k in range(PARTITIONS)), strict=True)
    write_deltalake(path, rows(list(keys), list(times)))
    db.register_table("ticks", path)
    return path


@pytest.mark.parametrize("view", VIEWS)
def test_an_append_reads_the_last_rows(db: penstock.Database, ticks: str, view: str) -> None:
    db.create_view(view, VIEWS[view])
    for n in range(3):
        write_deltalake(ticks, rows(list(range(20)), [ROWS + n] * 20), mode="append")
        report = db.refresh()
        print(view, n, report[view].bytes_read, report[view].jobs, report[view].strategy, db.history(view, 1)[0].details)
        assert_fresh(db, view, "INCREMENTAL")
