"""Sessions on the driver are those that Spark's session_window makes: edges, equal times, NULLs, and keys of floats."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.frames.arrow.groups import normalised, whole
from penstock.frames.arrow.sessions import sessions_of
from penstock.frames.arrow.tables import loosened
from penstock.frames.spark.types import collected
from random_rows import RandomRows, identity

MINUTE = 60_000_000
KEYS = ((), ("k",), ("kf", "b"))


@pytest.mark.parametrize("time", ["ts", "n"])
@pytest.mark.parametrize("gap", [0, 1, 30 * MINUTE - 1, 30 * MINUTE, 100 * MINUTE])
def test_sessions_are_those_that_spark_makes(spark: SparkSession, time: str, gap: int) -> None:
    """Times are multiples of half an hour, so that the gaps are met, missed by a microsecond, and passed."""
    for seed, count, spread in ((1, 0, 6), (3, 40, 40), (4, 200, 120)):
        data = RandomRows(seed, count, spread=spread)
        data.frame(spark).createOrReplaceTempView("random_rows")
        for keys in KEYS if count else KEYS[:1]:
            window = f"SESSION_WINDOW({time}, '{gap} microseconds')"
            by = ", ".join([*keys, window])
            shown = ", ".join([*keys, "session_window.start AS a", "session_window.`end` AS z", "COUNT(*) AS c"])
            there = collected(spark.sql(f"SELECT {shown} FROM random_rows GROUP BY {by}")).to_pylist()
            wanted = {tuple(identity(row[name]) for name in (*keys, "a", "z")): row["c"] for row in there}
            assert counted(data, time, keys, gap) == wanted, f"{keys}, seed {seed}"


def counted(data: RandomRows, time: str, keys: tuple[str, ...], gap: int) -> dict[tuple[object, ...], int]:
    columns = {name: whole(data.table.column(name)) for name in (*keys, time)}
    rows, sessions = sessions_of(columns[time], [columns[key] for key in keys], gap)
    places = pa.array(rows, pa.int64())
    found = {key: normalised(columns[key]).take(places) for key in keys} | {"session": sessions}
    flat = loosened(pa.table(found)).to_pylist()
    return dict(
        Counter(
            tuple(identity(v) for v in (*(row[key] for key in keys), *row["session"].values())) for row in flat
        )
    )  # fmt: skip


def test_a_session_keeps_the_type_of_its_times() -> None:
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        _, sessions = sessions_of(pa.array([0, None], pa.int64()).cast(kind), [], 5)
        assert sessions.type == pa.struct([("start", kind), ("end", kind)])
        assert pa.compute.struct_field(sessions, "end").cast(pa.int64()).to_pylist() == [5]
