"""Columns that are not in the files: what the log says of partitions, read and looked up without Spark."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.frames import limits
from penstock.frames.frame import NotHere
from penstock.frames.keys import Place, Sought
from penstock.storage.change_files import read_locally
from penstock.storage.columns import Columns
from penstock.storage.commits import read_commits
from penstock.storage.delta_log import Snapshot
from penstock.storage.lookup import look_up
from penstock.storage.parquet import read_rows
from penstock.storage.skipping import files_near

DAYS = [date(2024, 5, day) for day in (1, 2, 3)]
REGIONS = ["eu", "a b/c=d%", None]


@pytest.fixture
def sales(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """By day and region, one commit after the other; some days and regions are not known."""
    monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 0)
    chance = Random(5)
    for commit in range(3):
        rows = [
            {
                "id": 10 * commit + i,
                "day": chance.choice([*DAYS, None]),
                "region": chance.choice(["eu", "a b/c=d%", None]),
            }
            for i in range(10)
        ]
        table = pa.Table.from_pylist(
            rows, pa.schema([("id", pa.int32()), ("day", pa.date32()), ("region", pa.string())])
        )
        write_deltalake(str(tmp_path / "sales"), table, partition_by=["day", "region"], mode="append")
    return str(tmp_path / "sales")


def listed(table: pa.Table | None) -> list[tuple[Any, ...]]:
    assert table is not None
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return sorted(rows, key=repr)


def expected(path: str, columns: list[str]) -> list[tuple[Any, ...]]:
    return listed(pa.table(DeltaTable(path).to_pyarrow_table()).select(columns))


@pytest.mark.parametrize("columns", [["id", "day", "region"], ["region", "id"], ["day"], ["id"]])
def test_rows_of_all_partitions(sales: str, columns: list[str]) -> None:
    assert listed(read_rows(Snapshot(sales), columns)) == expected(sales, columns)


@pytest.mark.parametrize("columns", [["id", "day", "region"], ["region", "day"]])
def test_a_change_of_several_partitions(sales: str, columns: list[str]) -> None:
    DeltaTable(sales).delete("id % 3 = 0")
    found = read_locally(Snapshot(sales), read_commits(sales, -1, Snapshot(sales).version)[1:], columns)
    assert found is not None
    first = listed(read_rows(Snapshot(sales, 0), columns))
    change = [row[:-1] for row in listed(found) for _ in range(abs(row[-1])) if row[-1] > 0]
    gone = [row[:-1] for row in listed(found) for _ in range(abs(row[-1])) if row[-1] < 0]
    assert sorted(first + change, key=repr) == sorted(expected(sales, columns) + gone, key=repr)


@pytest.mark.parametrize(
    ("keys", "places"),
    [
        ({"k": [DAYS[0], None]}, {"k": "day"}),
        ({"k": ["eu"]}, {"k": "region"}),
        ({"k": pa.array([3, 17, 99], pa.int32())}, {"k": "id"}),
        ({"k": [DAYS[1], None], "r": [None, "a b/c=d%"]}, {"k": "day", "r": "region"}),
        ({"k": pa.array([3, 4, 5], pa.int32()), "r": ["eu", None, "us"]}, {"k": "id", "r": "region"}),
    ],
)
def test_keys_in_partitions_and_in_files(sales: str, keys: dict[str, Any], places: dict[str, str]) -> None:
    table, sought = Snapshot(sales), pa.table(keys)
    columns = ["id", "day", "region"]
    found = look_up(table, columns, Sought(sought, {key: Place(column) for key, column in places.items()}))
    wanted = {tuple(row[key] for key in places) for row in sought.to_pylist()}
    rows = [dict(zip(columns, row, strict=True)) for row in expected(sales, columns)]
    assert listed(found) == sorted(
        [tuple(row.values()) for row in rows if tuple(row[c] for c in places.values()) in wanted], key=repr
    )


def test_files_of_other_partitions_are_not_near(sales: str) -> None:
    table = Snapshot(sales)
    near = files_near(table, pa.table({"k": [DAYS[0]]}), {"day": "k"})
    assert {table.partition_value(file.path, "day").as_py() for file in near} == {DAYS[0], None}
    assert len(near) < len(table.files)


@pytest.mark.parametrize(
    ("data_type", "text", "value"),
    [
        (IntegerType(), "-5", -5),
        (StringType(), "a b/c=d%", "a b/c=d%"),
        (StringType(), "", None),
        (DateType(), "0001-01-01", date(1, 1, 1)),
        (BooleanType(), "true", True),
        (DecimalType(10, 3), "-0.001", Decimal("-0.001")),
        (TimestampType(), "2024-05-01T10:11:12.123456Z", datetime(2024, 5, 1, 10, 11, 12, 123456, timezone.utc)),
        (TimestampNTZType(), "2024-05-01 10:11:12.5", datetime(2024, 5, 1, 10, 11, 12, 500000)),
        (IntegerType(), None, None),
    ],
)
def test_what_a_text_of_the_log_means(sales: str, data_type: DataType, text: str | None, value: Any) -> None:
    columns = Columns(Snapshot(sales), StructType([StructField("day", data_type)]))
    assert columns.constants({"day": text, "region": None})["day"].as_py() == value


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        (TimestampType(), "2024-05-01 10:11:12"),
        (TimestampNTZType(), "2024-05-01T10:11:12Z"),
        (IntegerType(), "five"),
        (IntegerType(), "99999999999"),
        (BooleanType(), "yes"),
        (DateType(), "294247-01-10"),
        (DecimalType(4, 1), "1.25"),
    ],
)
def test_what_is_left_to_spark(sales: str, data_type: DataType, text: str) -> None:
    columns = Columns(Snapshot(sales), StructType([StructField("day", data_type)]))
    with pytest.raises(NotHere):
        columns.constants({"day": text, "region": None})


def test_files_of_other_partitions_are_left_to_spark(sales: str) -> None:
    columns = Columns(Snapshot(sales), StructType([StructField("day", DateType())]))
    for values in ({}, {"day": None}, {"day": None, "year": "2024"}):
        with pytest.raises(NotHere):
            columns.constants(values)
    assert columns.constants({"region": "eu"}, missing=True)["day"].as_py() is None
