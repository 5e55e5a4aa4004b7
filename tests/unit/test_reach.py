"""Between which values the keys of a change lie, told by what is known of its rows."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pyarrow as pa
import pytest
import sqlglot

from penstock.ivm.touched import reach_of
from penstock.sql.dialect import SparkSql
from penstock.sql.query import parse_query

UTC = pa.timestamp("us", tz="UTC")
NOON = datetime(2026, 3, 31, 12, 0, 30, tzinfo=timezone.utc)
KNOWN = pa.table(
    {
        "n": pa.array([7, 3, 5], pa.int32()),
        "at": pa.array([NOON, NOON + timedelta(hours=1), NOON], UTC),
        "local": pa.array([NOON.replace(tzinfo=None)] * 3, pa.timestamp("us")),
        "day": pa.array([date(2026, 1, 2), None, date(2025, 1, 2)]),
        "name": ["a", "b", "c"],
        "nothing": pa.array([None, None, None], pa.int32()),
    }
)


def reach(key: str) -> list[object] | None:
    found = reach_of(KNOWN, [("k", sqlglot.parse_one(key, dialect=SparkSql))])
    return None if found is None else found.column("k").to_pylist()


@pytest.mark.parametrize(
    ("key", "first", "last"),
    [
        ("n", 3, 7),
        ("at", NOON, NOON + timedelta(hours=1)),
        ("DATE_TRUNC('MINUTE', at)", NOON - timedelta(minutes=30), NOON + timedelta(hours=1)),
        ("DATE_TRUNC('QUARTER', at)", NOON - timedelta(days=6 * 31), NOON + timedelta(hours=1)),
    ],
)
def test_keys_that_have_an_order_are_bounded(key: str, first: object, last: object) -> None:
    assert reach(key) == [first, last]


def test_a_window_begins_before_what_is_in_it() -> None:
    query = parse_query("SELECT 1 FROM t GROUP BY TUMBLE(at, INTERVAL 5 MINUTES)")
    key = query.args["group"].expressions[0]
    found = reach_of(KNOWN, [("k", key)])
    assert found is not None
    assert found.column("k").to_pylist() == [NOON - timedelta(minutes=10), NOON + timedelta(hours=1)]


def test_null_is_a_key_too() -> None:
    assert reach("day") == [date(2025, 1, 2), date(2026, 1, 2), None]


@pytest.mark.parametrize(
    "key", ["name", "nothing", "n + 1", "unknown", "DATE_TRUNC('DAY', local)", "DATE_TRUNC('DAY', day)"]
)
def test_other_keys_are_not(key: str) -> None:
    assert reach(key) is None


def test_years_that_python_does_not_know() -> None:
    far = pa.table({"at": pa.array([2**62, -(2**62)], pa.int64()).cast(UTC)})
    found = reach_of(far, [("k", sqlglot.parse_one("DATE_TRUNC('DAY', at)", dialect=SparkSql))])
    assert found is not None
    assert found.column("k").cast(pa.int64()).to_pylist()[1] == 2**62
