"""Rows of large tables are found by Arrow. No Spark: the tables are written by delta-rs."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.frames import limits
from penstock.frames.keys import Place, Sought
from penstock.ivm.touched import key_values, place_of, sought
from penstock.plan.build import build
from penstock.plan.nodes import split
from penstock.plan.operators import Aggregate, Scan, walk
from penstock.sql.query import parse_query
from penstock.storage import row_groups
from penstock.storage.delta_log import Snapshot
from penstock.storage.lookup import look_up

UTC = pa.timestamp("us", tz="UTC")
NOON = datetime(2026, 3, 31, 12, tzinfo=timezone.utc)
SECOND, MINUTE = 1_000_000, 60_000_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 1)
    monkeypatch.setattr(row_groups, "_BATCH", 7)


def rows_of(dice: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "n": dice.choice([None, *range(-3, 4)]),
            "name": dice.choice([None, "", "a", "b", "ü"]),
            "at": None
            if dice.random() < 0.1
            else NOON + timedelta(seconds=dice.randrange(-99, 99), microseconds=dice.randrange(10**6)),
            "day": dice.choice([None, date(1969, 12, 31), date(2026, 3, 31)]),
            "pair": dice.choice([None, {"x": 1, "y": None}, {"x": None, "y": "b"}]),
            "id": dice.randrange(10**9),
        }
        for _ in range(count)
    ]


SCHEMA = pa.schema(
    [
        ("n", pa.int32()), ("name", pa.string()), ("at", UTC), ("day", pa.date32()),
        ("pair", pa.struct([("x", pa.int32()), ("y", pa.string())])), ("id", pa.int64()),
    ]
)  # fmt: skip


def floor(moment: datetime | None, unit: int | None) -> datetime | None:
    if moment is None or unit is None:
        return moment
    since = (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=since - since % unit)


@pytest.mark.parametrize("columns", [("n",), ("name",), ("at",), ("day",), ("n", "name"), ("name", "at", "day")])
@pytest.mark.parametrize("unit", [None, SECOND, MINUTE])
@pytest.mark.parametrize("few", [0, 1_000])
def test_just_the_rows_with_a_key_are_found(
    tmp_path: Path, columns: tuple[str, ...], unit: int | None, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.frames.limits.LOOKUP_FEW_VALUES", few)
    dice = random.Random(str(columns) + str(unit))
    rows = rows_of(dice, 100)
    for part in (rows[:60], rows[60:]):
        write_deltalake(str(tmp_path), pa.Table.from_pylist(part, SCHEMA), mode="append")
    units = {name: unit if name == "at" else None for name in columns}
    chosen = [{name: floor(row[name], units[name]) if name == "at" else row[name] for name in columns}
              for row in dice.sample(rows, 9)]  # fmt: skip
    keys = pa.Table.from_pylist(chosen, pa.schema([SCHEMA.field(name) for name in columns]))
    places = {name: Place(name, units[name]) for name in columns}
    found = look_up(Snapshot(str(tmp_path)), SCHEMA.names, Sought(keys, places), located=True)
    assert found is not None
    wanted = [
        row for row in rows
        if {name: floor(row[name], units[name]) if name == "at" else row[name] for name in columns} in chosen
    ]  # fmt: skip
    by_id = {row["id"]: row for row in found.select(SCHEMA.names).to_pylist()}
    assert by_id == {row["id"]: row for row in wanted}
    assert found.num_rows == len(wanted)
    for row in found.to_pylist():
        path = next(file.path for file in Snapshot(str(tmp_path)).files if file.name == row["__file"])
        assert pq.read_table(f"{tmp_path}/{path}")["id"][row["__place"]].as_py() == row["id"]


def test_row_groups_without_a_key_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DeltaTable.create(str(tmp_path), pa.schema([("id", pa.int64()), ("at", UTC)]))
    ids = pa.array(range(100), pa.int64())
    rows = pa.table({"id": ids, "at": pa.array([NOON + timedelta(seconds=i) for i in range(100)], UTC)})
    write_deltalake(str(tmp_path), rows, mode="append")
    file = next(tmp_path.glob("*.parquet"))
    pq.write_table(rows, file, row_group_size=10)
    read: list[int] = []
    batches = row_groups.RowGroup.batches
    monkeypatch.setattr(row_groups.RowGroup, "batches", lambda g, *a: read.append(g.number) or batches(g, *a))
    table = Snapshot(str(tmp_path))
    found = look_up(table, ["id"], Sought(pa.table({"k": pa.array([5, 99], pa.int32())}), {"k": Place("id")}))
    assert found is not None
    assert found["id"].to_pylist() == [5, 99]
    assert set(read) == {0, 9}
    read.clear()
    keys = pa.table({"k": pa.array([NOON + timedelta(minutes=1)], UTC)})
    found = look_up(table, ["id"], Sought(keys, {"k": Place("at", MINUTE)}))
    assert found is not None
    assert found["id"].to_pylist() == list(range(60, 100))
    assert set(read) == {6, 7, 8, 9}


def test_what_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "x": [0.5, -0.0], "day": [date(2026, 1, 1)] * 2})
    write_deltalake(str(tmp_path), rows)
    table = Snapshot(str(tmp_path))
    seek = {"id": pa.array([1]), "x": pa.array([0.5]), "day": pa.array([NOON], UTC)}
    answers = {name: look_up(table, ["id"], Sought(pa.table({"k": v}), {"k": Place(name)})) for name, v in seek.items()}
    assert answers["id"] is not None
    assert answers["x"] is None, "Spark has its own ways with floats"
    assert answers["day"] is None, "a date is compared with a time as a time"
    assert look_up(table, ["id"], Sought(pa.table({"k": ["1"]}), {"k": Place("id")})) is None
    monkeypatch.setattr(limits, "LOOKUP_FOUND", 0)
    assert look_up(table, ["id"], Sought(pa.table({"k": [1]}), {"k": Place("id")})) is None
    monkeypatch.setattr(limits, "LOOKUP_LEAST_ROWS", 3)
    assert look_up(table, ["id"], Sought(pa.table({"k": [7]}), {"k": Place("id")})) is None


# -- where keys are found ---------------------------------------------------------------------------------------------

TABLES = {"o": ("id", "customer", "at"), "i": ("order_id", "product", "price"), "p": ("id", "name"), "c": ("id", "x")}


def places(query: str) -> dict[str, list[str]]:
    """In which columns of which tables the keys of the aggregate are sought."""
    node = split(build(parse_query(query), TABLES), "v")[-1]
    body = next(op for op in walk(node.body) if isinstance(op, Aggregate))
    keys = pa.table({name: pa.array([1]) for name, _ in body.keys})
    found = sought(body.child, keys, dict(body.keys), utc=True)
    scanned = {
        name: f"{op.relation}.{stored}" for op in walk(body) if isinstance(op, Scan) for name, stored in op.stored
    }
    names = {name: str(number) for number, (name, _) in enumerate(body.keys, start=1)}
    if found is None:
        return {}
    return {
        names[key]: sorted(scanned[p.column] + (f" by {p.unit}" if p.unit else "") for p in where)
        for key, where in found.places.items()
    }


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("SELECT customer, COUNT(*) FROM o WHERE at IS NOT NULL GROUP BY customer", {"1": ["o.customer"]}),
        ("SELECT customer + 1, COUNT(*) FROM o GROUP BY customer + 1", {}),
        ("SELECT DATE_TRUNC('HOUR', at), COUNT(*) FROM o GROUP BY 1", {"1": ["o.at by 3600000000"]}),
        ("SELECT DATE_TRUNC('MONTH', at), COUNT(*) FROM o GROUP BY 1", {}),
        ("SELECT c, COUNT(*) FROM (SELECT customer AS c, at FROM o) GROUP BY c", {"1": ["o.customer"]}),
        ("SELECT o.id, SUM(price) FROM o JOIN i ON o.id = i.order_id GROUP BY o.id", {"1": ["i.order_id", "o.id"]}),
        ("SELECT o.id, SUM(price) FROM o JOIN i ON o.id > i.order_id GROUP BY o.id", {"1": ["o.id"]}),
        (
            "SELECT p.id, SUM(price) FROM o, i, p WHERE o.id = i.order_id AND i.product = p.id GROUP BY p.id",
            {"1": ["i.product", "p.id"]},
        ),
        (
            "SELECT c.id, COUNT(o.id) FROM c LEFT JOIN o ON o.customer = c.id GROUP BY c.id",
            {"1": ["c.id", "o.customer"]},
        ),
        ("SELECT o.customer, COUNT(*) FROM c LEFT JOIN o ON o.customer = c.id GROUP BY o.customer", {}),
        ("SELECT c.id, COUNT(o.id) FROM c FULL JOIN o ON o.customer = c.id GROUP BY c.id", {}),
        (
            "SELECT id, COUNT(*) FROM c WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.customer = c.id) GROUP BY id",
            {"1": ["c.id", "o.customer"]},
        ),
        ("SELECT id, COUNT(*) FROM (SELECT id FROM c UNION ALL SELECT id FROM p) GROUP BY id", {}),
    ],
)
def test_where_keys_are_sought(query: str, where: dict[str, list[str]]) -> None:
    assert places(query) == where


def test_keys_of_a_change_are_told_by_its_rows() -> None:
    query = "SELECT customer, DATE_TRUNC('MINUTE', at), COUNT(*) FROM o GROUP BY 1, 2"
    body = split(build(parse_query(query), TABLES), "v")[-1].body
    assert isinstance(body, Aggregate)
    scan = body.child
    assert isinstance(scan, Scan)
    stored = {name: internal for internal, name in scan.stored}
    times = [NOON + timedelta(seconds=61), None, datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc)]
    known = pa.table({stored["customer"]: [7, 8, None], stored["at"]: pa.array(times, UTC)})
    found = key_values(known, body.keys, utc=True)
    assert found is not None
    assert [c.to_pylist() for c in found.columns] == [
        [7, 8, None],
        [NOON + timedelta(seconds=60), None, datetime(1969, 12, 31, 23, 59, tzinfo=timezone.utc)],
    ]
    elsewhere = key_values(known, body.keys, utc=False)
    assert elsewhere is not None
    assert elsewhere.num_columns == 1, "where a minute begins depends on the zone"
    assert place_of(body.keys[1][1], utc=False) is None
