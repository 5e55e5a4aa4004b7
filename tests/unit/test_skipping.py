"""Which files may hold some keys, told by the bounds in the log. No Spark: the tables are written by delta-rs."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.storage.delta_log import Snapshot, newest
from penstock.storage.file_bounds import bounds_of
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


@pytest.mark.parametrize("partitions", [[], ["whole"], ["day"], ["naive"]])
def test_bounds_are_those_that_delta_rs_tells(tmp_path: Path, partitions: list[str]) -> None:
    kinds = {
        "tiny": pa.int8(), "whole": pa.int64(), "day": pa.date32(), "at": pa.timestamp("us", "UTC"),
        "naive": pa.timestamp("us"), "x": pa.int32(),
    }  # fmt: skip
    for some in ([-3, 7], [5], [None, 9], [None]):
        rows = [
            {
                "tiny": n, "whole": None if n is None else n * 10**15, "x": 1,
                "day": None if n is None else date(1965, 1, 1) + timedelta(days=n),
                "at": None if n is None else NOON - timedelta(days=40_000, milliseconds=n),
                "naive": None if n is None else datetime(1969, 12, 31, 23, 59, 59, 999_000) + timedelta(hours=n),
            }
            for n in some
        ]  # fmt: skip
        table = pa.Table.from_pylist(rows, pa.schema(list(kinds.items())))
        write_deltalake(str(tmp_path), table, mode="append", partition_by=partitions or None)
    here, there = newest(str(tmp_path)), Snapshot(str(tmp_path))  # which delta-rs has opened
    order = [file.path for file in here.files]
    assert here.short is not None
    for name in kinds:
        mine, theirs = bounds_of(here, name), bounds_of(there, name)
        assert mine is not None
        assert theirs is not None
        places = [there._numbers[path] for path in order]
        for one, other in zip(mine, theirs, strict=True):
            assert one.type == other.type
            assert one.to_pylist() == other.take(pa.array(places, pa.int64())).to_pylist(), name
    assert bounds_of(here, "none") is None
