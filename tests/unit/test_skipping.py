"""Which files may hold some keys, told by the bounds in the log. No Spark: the tables are written by delta-rs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.storage.delta_log import Snapshot
from penstock.storage.skipping import files_near, rows_near, widest

NOON = datetime(2026, 1, 1, 12, 0, 0, 123_456, tzinfo=timezone.utc)


@pytest.fixture
def table(tmp_path: Path) -> Snapshot:
    """Three files: ids 0 to 9, 10 to 19 and 20 to 29, a minute apart."""
    for first in (0, 10, 20):
        ids = list(range(first, first + 10))
        times = pa.array([NOON + timedelta(minutes=i) for i in ids], pa.timestamp("us", tz="UTC"))
        rows = pa.table({"id": pa.array(ids, pa.int64()), "at": times, "name": [f"n{i}" for i in ids]})
        write_deltalake(str(tmp_path), rows, mode="append")
    return Snapshot(str(tmp_path))


def near(table: Snapshot, **keys: pa.Array) -> list[int]:
    """How many rows the files have that are left."""
    return sorted(file.rows or 0 for file in files_near(table, pa.table(keys), {name: name for name in keys}))


def test_the_widest_column_may_tell_rows_apart(table: Snapshot) -> None:
    keys = pa.table({"id": pa.array([12], pa.int64()), "name": ["n12"]})
    assert widest(table, keys, ["name", "id"]) == "id"
    assert widest(table, keys, ["name"]) is None, "text has no range"
    write_deltalake(table.path, pa.table({"id": pa.array([3, 4], pa.int64())}), mode="append", schema_mode="merge")
    assert widest(Snapshot(table.path), keys, ["id"]) is None, "32 rows cannot have 30 different numbers"


def test_files_are_told_by_their_bounds(table: Snapshot) -> None:
    assert near(table, id=pa.array([12, 15], pa.int64())) == [10]
    assert near(table, id=pa.array([9, 10], pa.int64())) == [10, 10]
    assert near(table, id=pa.array([99], pa.int64())) == []
    last = pa.array([NOON + timedelta(minutes=29)], pa.timestamp("us", tz="UTC"))
    assert near(table, at=last) == [10], "the log has milliseconds only"
    assert near(table, id=pa.array([1], pa.int64()), at=last) == []


def test_what_bounds_do_not_tell(table: Snapshot) -> None:
    assert near(table, id=pa.array([99, None], pa.int64())) == [10, 10, 10], "NULL may be anywhere"
    assert near(table, id=pa.array([99], pa.int32())) == [10, 10, 10], "of another type"
    assert near(table, name=pa.array(["zzz"])) == [10, 10, 10], "text may be compared by a collation"


def test_a_table_without_files(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": pa.array([], pa.int64())}))
    assert files_near(Snapshot(str(tmp_path)), pa.table({"id": pa.array([1], pa.int64())}), {"id": "id"}) == ()


def test_rows_are_expected_where_the_keys_reach(table: Snapshot) -> None:
    ids = {"id": "id"}
    assert rows_near(table, pa.table({"id": pa.array([0, 29], pa.int64())}), ids) == 30
    assert 4 <= rows_near(table, pa.table({"id": pa.array([12, 15], pa.int64())}), ids) <= 5
    assert rows_near(table, pa.table({"id": pa.array([99], pa.int64())}), ids) == 0
    assert rows_near(table, pa.table({"id": pa.array([1, None], pa.int64())}), ids) == 30, "NULL may be anywhere"
    assert rows_near(table, pa.table({"name": ["n1"]}), {"name": "name"}) == 30, "texts are not compared"
