"""Statements of few rows on tables of growing size, beside delta-spark and delta-rs on the same rows."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.bench.measure import DELTA_RS, DELTA_SPARK, PENSTOCK, Cell, Goal, at_most, faster_than, rotated
from penstock.bench.workloads.workload import Workload
from penstock.errors import InternalError

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from penstock.bench.stage import Bench, Stage

SIZES = (1_000_000, 10_000_000)
MERGED = 1_000
_COLUMNS = "id BIGINT, customer STRING, amount DECIMAL(12,2), day DATE"
_PROPERTIES = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
_FASTER, _GROWTH = 10, 1.5
_INSERT, _UPDATE, _DELETE, _MERGE = "INSERT of a row", "UPDATE by key", "DELETE by key", "MERGE of 1,000 rows"
_MATCH = "t.id = s.id"


@dataclass(frozen=True)
class _Change:
    """One statement: as text for a table's name, and for delta-rs, which has functions instead."""

    text: str
    by_delta_rs: Callable[[DeltaTable], Any]
    rows: pa.Table | None = None
    """What a MERGE merges."""


def _loaded(first: int, last: int) -> str:
    return (
        "SELECT id, concat('customer-', id % 5000), CAST(id % 100000 / 100 AS DECIMAL(12,2)), "
        f"date_add(DATE'2024-01-01', CAST(id DIV 20000 AS INT)) FROM range({first}, {last}, 1, 2)"
    )


def _insert(rows: int, turn: int) -> _Change:
    from deltalake import write_deltalake

    new = _rows([rows + 1_000_000 + turn], turn)
    values = ", ".join(f"({r['id']}, '{r['customer']}', {r['amount']}, DATE'{r['day']}')" for r in new.to_pylist())
    return _Change(f"INSERT INTO {{}} VALUES {values}", lambda table: write_deltalake(table, new, mode="append"))


def _update(rows: int, turn: int) -> _Change:
    key = (rows // 2 + turn * 7_919) % rows
    return _Change(
        f"UPDATE {{}} SET amount = amount + 1.5, customer = 'moved' WHERE id = {key}",
        lambda table: table.update({"amount": "amount + 1.5", "customer": "'moved'"}, predicate=f"id = {key}"),
    )


def _delete(rows: int, turn: int) -> _Change:
    key = (rows // 3 + turn * 7_907) % rows
    return _Change(f"DELETE FROM {{}} WHERE id = {key}", lambda table: table.delete(f"id = {key}"))


def _merge(rows: int, turn: int) -> _Change:
    """Neighbours, as new data has them, of which every tenth is new."""
    first = rows // 4 + turn * 3 * MERGED
    keys = [first + n if n % 10 else rows + 2_000_000 + turn * MERGED + n for n in range(MERGED)]
    merged = _rows(keys, turn)
    return _Change(
        f"MERGE INTO {{}} t USING {{changes}} s ON {_MATCH} WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *",
        lambda table: table.merge(merged, _MATCH, source_alias="s", target_alias="t")
        .when_matched_update_all().when_not_matched_insert_all().execute(),
        merged,
    )  # fmt: skip


_KINDS = {_INSERT: _insert, _UPDATE: _update, _DELETE: _delete, _MERGE: _merge}


def _rows(keys: Sequence[int], turn: int) -> pa.Table:
    from datetime import date
    from decimal import Decimal

    return pa.table(
        {
            "id": pa.array(keys, pa.int64()),
            "customer": [f"turn-{turn}"] * len(keys),
            "amount": pa.array([Decimal(turn * 100 + key % 100) / 100 for key in keys], pa.decimal128(12, 2)),
            "day": [date(2025, 1, 1 + turn % 28)] * len(keys),
        }
    )


def _run(bench: Bench) -> list[Cell]:
    cells = []
    for size in SIZES:
        with bench.stage() as stage:
            cells += _Tables(stage, bench.rows(size)).measured()
    return cells


class _Tables:
    """One table for each contender, with the same rows in files alike."""

    def __init__(self, stage: Stage, rows: int):
        self.stage, self.rows = stage, rows
        self.spark = stage.database.spark
        self.paths = {name: str(stage.scratch / name) for name in (DELTA_SPARK, DELTA_RS)}
        stage.create({"facts": (_COLUMNS, _loaded(0, rows)), "changes": (_COLUMNS, "")}, {})
        for name, properties in ((DELTA_SPARK, _PROPERTIES), (DELTA_RS, "")):
            stage.bench.say(f"loading the table of {name}")
            self.spark.sql(f"CREATE TABLE delta.`{self.paths[name]}` ({_COLUMNS}) USING delta {properties}")
            self.spark.sql(f"INSERT INTO delta.`{self.paths[name]}` {_loaded(0, rows)}")

    def measured(self) -> list[Cell]:
        found = []
        for kind, change in _KINDS.items():
            seconds: dict[str, list[float]] = {name: [] for name in (PENSTOCK, DELTA_SPARK, DELTA_RS)}
            for turn in range(1 + self.stage.bench.repeat):
                self.stage.bench.say(f"{kind}: run {turn + 1} of {1 + self.stage.bench.repeat}")
                spent = self._turn(change(self.rows, turn), turn)
                for name, taken in spent.items() if turn else ():
                    seconds[name].append(taken)
            changed = MERGED if kind == _MERGE else 1
            case = f"{kind}, {self.rows:,} rows"
            found.append(Cell(case=case, rows=self.rows, changed=changed, views=0, seconds=seconds, kind=kind))
        self._check()
        return found

    def _turn(self, change: _Change, turn: int) -> Mapping[str, float]:
        """One statement by each. What it merges is at hand before."""
        from deltalake import DeltaTable

        if change.rows is not None:
            self._lay_out(change.rows)
        ways: dict[str, Callable[[], Any]] = {
            PENSTOCK: partial(self._here, change.text.format("facts", changes="changes")),
            DELTA_SPARK: partial(
                self._by_spark, change.text.format(f"delta.`{self.paths[DELTA_SPARK]}`", changes="changes")
            ),
            DELTA_RS: lambda: change.by_delta_rs(DeltaTable(self.paths[DELTA_RS])),
        }
        return {name: _timed(ways[name]) for name in rotated(list(ways), turn)}

    def _lay_out(self, rows: pa.Table) -> None:
        self.stage.sql("DELETE FROM changes")
        told = ", ".join(f"({r['id']}, '{r['customer']}', {r['amount']}, DATE'{r['day']}')" for r in rows.to_pylist())
        self.stage.sql(f"INSERT INTO changes VALUES {told}")
        self.spark.createDataFrame(rows).createOrReplaceTempView("changes")

    def _here(self, text: str) -> None:
        by_spark = getattr(self.stage.database.sql(text), "by_spark", None)
        if by_spark is not None:
            raise InternalError(f"{text!r} was done by Spark: {by_spark}. Its times mean nothing. Please report this.")

    def _by_spark(self, text: str) -> None:
        self.spark.sql(text).collect()

    def _check(self) -> None:
        """All three have the same rows in the end."""
        from penstock.bench.stage import differing_rows

        expected = self.stage.database.table("facts")
        for name, path in self.paths.items():
            if differing := differing_rows(expected, self.spark.read.format("delta").load(path)):
                raise InternalError(f"the table of {name} differs in {differing:,} rows. The times mean nothing.")


def _timed(way: Callable[[], Any]) -> float:
    gc.collect()
    started = time.perf_counter()
    way()
    return time.perf_counter() - started


def _goals(cells: Sequence[Cell]) -> list[Goal]:
    goals = faster_than([cell for cell in cells if cell.changed == 1], DELTA_SPARK, _FASTER)
    for kind in _KINDS:
        own = sorted((cell for cell in cells if cell.kind == kind), key=lambda cell: cell.rows)
        if len(own) > 1:
            small, large = own[0].median(PENSTOCK), own[-1].median(PENSTOCK)
            growth = large / small if small and large is not None else None
            goals.append(at_most("times as long as on the smaller table", growth, _GROWTH, own[-1].case))
    return goals


WRITES = Workload(
    name="writes",
    title="a row inserted, updated and deleted by its key, and 1,000 merged, in tables of 1 and 10 million rows",
    run=_run, goals=_goals,
)  # fmt: skip
