"""Rows at the end of a window's order: of a large view only the last rows are read, and Spark does nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import penstock
from oracle import assert_fresh
from penstock.frames import limits
from penstock.storage.delta_log import Snapshot

PARTITIONS, ROWS = 200, 500
VIEWS = {
    "earlier": "SELECT *, LAG(x) OVER (PARTITION BY k ORDER BY t) AS x_before FROM ticks",
    "sums": """
        SELECT *, SUM(x) OVER (PARTITION BY k ORDER BY t ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS recent,
               SUM(f) OVER (PARTITION BY k ORDER BY t) AS total, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS place
        FROM ticks""",
    "later": "SELECT *, LEAD(t) OVER (PARTITION BY k ORDER BY t) AS t_after FROM ticks",
    "filled": """
        SELECT k, t, LAST_VALUE(x) IGNORE NULLS OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING) AS x
        FROM ticks""",
}
STRATEGIES = {"earlier": "APPEND", "sums": "APPEND", "filled": "APPEND", "later": None}
"""The row before a new one has another LEAD, so it goes; of the others none does."""


def rows(keys: list[int], times: list[int]) -> pa.Table:
    numbers = range(len(keys))
    return pa.table({
        "k": pa.array(keys, pa.int32()), "t": pa.array(times, pa.int64()),
        "x": pa.array([None if n % 5 == 0 else n % 17 for n in numbers], pa.int32()),
        "f": pa.array([n * 0.1 for n in numbers], pa.float64()),
        "note": pa.array([f"tick {n * 7919}" for n in numbers]),
    })  # fmt: skip


@pytest.fixture
def ticks(db: penstock.Database, tmp_path: Path) -> str:
    path = str(tmp_path / "ticks")
    write_deltalake(path, rows([*range(PARTITIONS)] * ROWS, [t for t in range(ROWS) for _ in range(PARTITIONS)]))
    db.register_table("ticks", path)
    return path


def append(db: penstock.Database, ticks: str, keys: list[int], t: int) -> dict[str, int]:
    """The bytes that each view reads for new rows at the end of some partitions; Spark does nothing for them."""
    write_deltalake(ticks, rows(keys, [t] * len(keys)), mode="append")
    report = db.refresh()
    assert {view: report[view].action for view in VIEWS} == dict.fromkeys(VIEWS, "INCREMENTAL")
    assert {view: report[view].jobs for view in VIEWS} == dict.fromkeys(VIEWS, 0)
    return {view: report[view].bytes_read for view in VIEWS}


def size(path: str) -> int:
    return sum(file.size for file in Snapshot(path).files)


def test_an_append_reads_the_last_rows_of_the_view_and_no_table(db: penstock.Database, ticks: str) -> None:
    for view, query in VIEWS.items():
        db.create_view(view, query)
    nodes = db._catalog.world().nodes
    append(db, ticks, list(range(20)), ROWS)
    for view in VIEWS:
        assert_fresh(db, view, "INCREMENTAL", STRATEGIES[view])
    for n in range(1, 4):
        read = append(db, ticks, list(range(20)), ROWS + n)
    sizes = {view: size(nodes[view].path) for view in VIEWS}
    for view in ("earlier", "sums", "filled"):  # the last rows lie in small files by now
        assert read[view] * 10 < sizes[view], view
    assert read["later"] < 1.1 * sizes["later"], "the view is read, which was written anew, but not its table"
    for view in VIEWS:
        assert_fresh(db, view, "INCREMENTAL", STRATEGIES[view])


OVER = "OVER (PARTITION BY k ORDER BY g DESC NULLS LAST, t"
FUNCTIONS = {
    "ranks": f"ROW_NUMBER() {OVER}) AS a, RANK() {OVER}) AS b, DENSE_RANK() {OVER}) AS c, COUNT(x) {OVER}) AS n",
    "shifts": f"LAG(x, 2, -1) {OVER}) AS a, LEAD(g) {OVER}) AS b, LAG(x) IGNORE NULLS {OVER}) AS c",
    "running": f"SUM(d) {OVER}) AS a, SUM(f) {OVER} ROWS UNBOUNDED PRECEDING) AS b, MIN(g) {OVER}) AS c, "
    f"MAX(x) {OVER} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS e",
    "sliding": f"AVG(f) {OVER} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS a, "
    f"LAST_VALUE(x) IGNORE NULLS {OVER} ROWS UNBOUNDED PRECEDING) AS b",
    "ranged": "SUM(x) OVER (PARTITION BY k ORDER BY at RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS a, "
    "COUNT(*) OVER (PARTITION BY k ORDER BY at RANGE BETWEEN CURRENT ROW AND INTERVAL 2 HOURS FOLLOWING) AS b",
}
# Rows that tie are the same row: Spark may take others in any order.
FIRST = """(1, 9, 5.0, 1, 0.1, 1.50, 0), (1, 10, 5.0, NULL, 0.2, 2.50, 0), (1, 10, 5.0, NULL, 0.2, 2.50, 0),
           (1, 7, 4.0, 3, 1e17, 0.25, 1), (2, 1, DOUBLE('NaN'), NULL, 0.7, 1.00, 0), (NULL, 1, 0.0, 2, 0.3, NULL, 1)"""
THEN = (
    "(1, 8, 4.0, 2, -1e17, 1.00, 1), (1, 9, 4.0, NULL, 0.3, 1.00, 2), (2, 1, 1.0, 4, 0.1, 3.00, 1)",
    "(1, 1, NULL, 5, 0.7, 9.00, 3), (NULL, 2, -0.0, 2, 0.9, 1.00, 1), (3, 1, 1.0, 1, 1.0, 1.00, 0)",
    "(1, 1, NULL, 5, 0.7, 9.00, 3), (2, 0, 1.0, NULL, 0.3, NULL, 5), (2, 2, NULL, 8, 0.3, 1.00, 5)",
)


@pytest.mark.parametrize("searched", [False, True])
def test_ties_nulls_nan_and_both_zeros(db: penstock.Database, searched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TAIL_LEAST_ROWS", 0)
    monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 0 if searched else limits.LOOKUP_LEAST_ROWS)
    db.sql("CREATE TABLE given (k INT, t INT, g DOUBLE, x INT, f DOUBLE, d DECIMAL(10,2), at TIMESTAMP)")
    start = "TIMESTAMPADD(HOUR, h, TIMESTAMP '2024-01-01')"
    values = f"SELECT k, t, g, x, f, d, {start} FROM VALUES {{}} AS v (k, t, g, x, f, d, h)"
    db.sql(f"INSERT INTO given {values.format(FIRST)}")
    for view, functions in FUNCTIONS.items():
        db.create_view(view, f"SELECT *, {functions} FROM given")
    db.create_view("unseen", f"SELECT k, g, t, x - LAG(x) {OVER}) AS step, LEAD(f) {OVER}) AS f_after FROM given")
    for rows_ in THEN:
        db.sql(f"INSERT INTO given {values.format(rows_)}")
        db.refresh()
        for view in (*FUNCTIONS, "unseen"):
            assert_fresh(db, view, "INCREMENTAL")
